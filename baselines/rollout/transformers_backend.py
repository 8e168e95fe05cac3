"""Generation with `transformers` on any device, the key-value cache continued from turn to turn.

All slots share one cache whose columns grow together; a mask says which columns a slot's conversation uses:

    slot 0   x x x x . . x x x . x x        x  a token of this conversation, at its own position
    slot 1   x x x x x x x . . . x x        .  a hole: another slot had more to say in that call
    slot 2   . . . . . . x x x x x x        a new conversation began here: everything before it is a hole

Holes cost memory and time, so the cache is packed when they are too many. The model computes only the slots that speak,
and of these only the ones whose action has not ended: their rows of the cache are the first ones, for which rows are
exchanged. The cache's memory is allocated ahead, so that a token is added without copying the others.

What an episode samples follows from the seed of its first prompt: each token is drawn with one uniform number of the
episode's own stream, by inverting the cumulative distribution. So it depends neither on the other conversations nor on
the order of the calls.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from transformers import Cache, DynamicLayer, PreTrainedModel

from baselines.policy.models import context_length
from baselines.rollout.backend import Completion, Prompt

_PACK_AT = 1.5  # Pack when the cache is that many times as wide as its longest conversation.
_AHEAD = 0.25  # Share of the columns in use for which memory is allocated ahead.
_BELOW_ONE = 1 - 2**-20  # Largest uniform number: its product with a rounded sum of 1 must stay below that sum.


class _Layer(DynamicLayer):  # type: ignore[no-untyped-call]
    """Keys and values of one layer for all slots, in memory that is allocated ahead.

    Attributes:
        keys, values: shape (slots, heads, columns, size); the model reads and writes the first rows.
        width: number of columns in use.
    """

    def __init__(self, slots: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._slots = slots
        self.width = 0

    def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Add columns to the first rows; returns all of the columns of these rows."""
        rows, end = len(key_states), self.width + key_states.shape[2]
        self.keys, self.values = (
            self._with_columns(tensor, states, end)
            for tensor, states in ((self.keys, key_states), (self.values, value_states))
        )
        self.is_initialized = True
        self.keys[:rows, :, self.width : end] = key_states
        self.values[:rows, :, self.width : end] = value_states
        self.width = end
        return self.keys[:rows, :, :end], self.values[:rows, :, :end]

    def get_seq_length(self) -> int:
        """Number of columns in use."""
        return self.width

    def exchange(self, to: list[int], source: list[int]) -> None:
        """Put the rows `source` in the place of the rows `to`, which are the same ones in another order."""
        for tensor in self._tensors:
            tensor[to, :, : self.width] = tensor[source, :, : self.width]

    def pack(self, order: torch.Tensor) -> None:
        """Keep some columns of each row, shape (slots, columns)."""
        self.width = order.shape[1]
        for tensor in self._tensors:
            index = order[:, None, :, None].expand(-1, tensor.shape[1], -1, tensor.shape[3])
            tensor[:, :, : self.width] = tensor.gather(2, index)

    @property
    def _tensors(self) -> tuple[torch.Tensor, torch.Tensor]:
        assert self.keys is not None
        assert self.values is not None
        return self.keys, self.values

    def _with_columns(self, tensor: torch.Tensor | None, states: torch.Tensor, columns: int) -> torch.Tensor:
        """The tensor, or a larger copy where it has too few columns."""
        if tensor is None:
            tensor = states.new_zeros((self._slots, states.shape[1], 0, states.shape[3]))
        missing = columns - tensor.shape[2]
        if missing <= 0:
            return tensor
        return torch.nn.functional.pad(tensor, (0, 0, 0, max(missing, int(_AHEAD * columns))))


class TransformersGenerator:
    """Samples from a causal language model.

    Args:
        model: the policy; its weights may change between calls as long as every slot then begins afresh.
        end_id: id of the token that ends an action.
        slots: number of conversations.
        max_action_tokens: largest number of tokens per action, the end token included.
        temperature: sampling temperature; 0 takes the likeliest token.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        end_id: int,
        *,
        slots: int,
        max_action_tokens: int = 24,
        temperature: float = 1.0,
    ) -> None:
        self.model = model
        self.end_id = end_id
        self.slots = slots
        self.max_action_tokens = max_action_tokens
        self.temperature = temperature
        self.context_length = context_length(model)
        self._streams = [np.random.default_rng(0) for _ in range(slots)]
        self.forget()

    def take_weights(self, model: PreTrainedModel) -> None:
        """See `Generator`."""
        self.model = model
        self.forget()

    def forget(self) -> None:
        """See `Generator`."""
        self._cache = Cache(layer_class_to_replicate=cast("type[_Layer]", partial(_Layer, self.slots)))
        self._mask = torch.zeros((self.slots, 0), dtype=torch.bool, device=self.model.device)
        self._order = list(range(self.slots))  # The slot of each row of the cache and of the mask.
        self._unread: list[list[int]] = [[] for _ in range(self.slots)]

    def close(self) -> None:
        """See `Generator`."""
        self.forget()

    @torch.inference_mode()
    def generate(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """See `Generator`; sampled tokens become part of the slot's conversation, as do the ids of the prompt."""
        if all(prompt.fresh for prompt in prompts) and not self._others_speak(prompts):
            self.forget()
        new: dict[int, list[int]] = {}
        for prompt in prompts:
            if prompt.fresh:
                self._mask[self._order.index(prompt.slot)] = False
                self._unread[prompt.slot] = []
            if prompt.seed is not None:
                self._streams[prompt.slot] = np.random.default_rng(prompt.seed)
            # The last sampled token has not been read by the model yet.
            new[prompt.slot] = [*self._unread[prompt.slot], *prompt.ids]
        sampled, log_probs = self._speak(new)
        for slot, ids in sampled.items():
            self._unread[slot] = ids[-1:]
        self._pack()
        return [Completion(tuple(sampled[prompt.slot]), tuple(log_probs[prompt.slot])) for prompt in prompts]

    def _speak(self, new: dict[int, list[int]]) -> tuple[dict[int, list[int]], dict[int, list[float]]]:
        """Sampled ids and their log-probabilities per slot, after `new` ids of each."""
        uniform = {slot: self._streams[slot].random(self.max_action_tokens) for slot in new}
        sampled: dict[int, list[int]] = {slot: [] for slot in new}
        log_probs: dict[int, list[float]] = {slot: [] for slot in new}
        for step in range(self.max_action_tokens):
            slots = self._bring_first(new)
            logits = self._read([new[slot] for slot in slots])
            heights = torch.tensor([uniform[slot][step] for slot in slots], dtype=torch.float32, device=logits.device)
            tokens, values = self._sample(logits, heights)
            for slot, token, value in zip(slots, tokens.tolist(), values.tolist(), strict=True):
                sampled[slot].append(token)
                log_probs[slot].append(value)
            new = {slot: sampled[slot][-1:] for slot in slots if sampled[slot][-1] != self.end_id}
            if not new:
                break
        return sampled, log_probs

    @property
    def _layers(self) -> list[_Layer]:
        """Layers of the cache, which transformers makes at the first call of the model."""
        return cast("list[_Layer]", self._cache.layers)

    def _others_speak(self, prompts: Sequence[Prompt]) -> bool:
        """Whether a slot that no prompt names holds a conversation."""
        named = {prompt.slot for prompt in prompts}
        return any(bool(self._mask[row].any()) for row, slot in enumerate(self._order) if slot not in named)

    def _bring_first(self, slots: Collection[int]) -> list[int]:
        """Exchange rows of the cache until those of some slots are the first ones; returns the slots in their order."""
        count = len(slots)
        away = [row for row in range(count) if self._order[row] not in slots]
        back = [row for row in range(count, self.slots) if self._order[row] in slots]
        if away:
            to, source = away + back, back + away
            for layer in self._layers:
                layer.exchange(to, source)
            self._mask[to] = self._mask[source]
            moved = [self._order[row] for row in source]
            for row, slot in zip(to, moved, strict=True):
                self._order[row] = slot
        return self._order[:count]

    def _read(self, new: list[list[int]]) -> torch.Tensor:
        """Add ids to the conversations of the first rows; the logits after their last ones, (rows, vocabulary)."""
        device = self.model.device
        count, width = len(new), max(len(ids) for ids in new)
        ids = torch.zeros((count, width), dtype=torch.int64)
        used = torch.zeros((self.slots, width), dtype=torch.bool)
        for row, some in enumerate(new):  # On the right, so that the last column holds everybody's last token.
            ids[row, width - len(some) :] = torch.tensor(some)
            used[row, width - len(some) :] = True
        used = used.to(device)
        lengths = self._mask[:count].sum(1, keepdim=True)
        positions = (lengths + used[:count].cumsum(1) - 1).clamp(min=0)
        self._mask = torch.cat((self._mask, used), 1)
        output = self.model(
            input_ids=ids.to(device),
            attention_mask=self._mask[:count].long(),
            position_ids=positions,
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=1,
        )
        logits: torch.Tensor = output.logits[:, -1].float()
        return logits

    def _sample(self, logits: torch.Tensor, uniform: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """A token per row and its log-probability at the temperature, both of shape (rows,)."""
        if self.temperature == 0.0:
            token = logits.argmax(-1)
            return token, logits.log_softmax(-1).gather(-1, token[:, None]).squeeze(-1)
        log_probs = (logits / self.temperature).log_softmax(-1)
        cumulative = log_probs.exp().cumsum(-1)
        height = uniform[:, None] * (_BELOW_ONE * cumulative[:, -1:])
        token = torch.searchsorted(cumulative, height, right=True)
        return token.squeeze(-1), log_probs.gather(-1, token).squeeze(-1)

    def _pack(self) -> None:
        """Move every conversation to the left of the cache, closing its holes."""
        longest = int(self._mask.sum(1).max())
        if self._mask.shape[1] <= max(64, _PACK_AT * longest):
            return
        # A stable sort brings the used columns to the front without changing their order.
        order = torch.sort((~self._mask).long(), dim=1, stable=True).indices[:, :longest]
        for layer in self._layers:
            layer.pack(order)
        self._mask = self._mask.gather(1, order)
