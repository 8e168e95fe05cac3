"""Generation with `transformers` on any device, the key-value cache continued from turn to turn.

All slots share one cache whose columns grow together; a mask says which columns a slot's conversation uses:

    slot 0   x x x x . . x x x . x x        x  a token of this conversation, at its own position
    slot 1   x x x x x x x . . . x x        .  a hole: another slot had more to say in that call
    slot 2   . . . . . . x x x x x x        a new conversation began here: everything before it is a hole

Holes cost memory and time, so the cache is packed when they are too many. Slots that do not speak in a call are not
computed: their rows of the cache wait aside.

What an episode samples follows from the seed of its first prompt: each token is drawn with one uniform number of the
episode's own stream, by inverting the cumulative distribution. So it depends neither on the other conversations nor on
the order of the calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache, PreTrainedModel

from baselines.policy.models import context_length
from baselines.rollout.backend import Completion, Prompt

_PACK_AT = 1.5  # Pack when the cache is that many times as wide as its longest conversation.
_BELOW_ONE = 1 - 2**-20  # Largest uniform number: its product with a rounded sum of 1 must stay below that sum.


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
        self._cache = DynamicCache(config=self.model.config)
        self._mask = torch.zeros((self.slots, 0), dtype=torch.bool, device=self.model.device)
        self._unread: list[list[int]] = [[] for _ in range(self.slots)]

    def close(self) -> None:
        """See `Generator`."""
        self.forget()

    @torch.inference_mode()
    def generate(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """See `Generator`; sampled tokens become part of the slot's conversation, as do the ids of the prompt."""
        if all(prompt.fresh for prompt in prompts) and not self._others_speak(prompts):
            self.forget()
        new: list[list[int]] = []
        for prompt in prompts:
            if prompt.fresh:
                self._mask[prompt.slot] = False
                self._unread[prompt.slot] = []
            if prompt.seed is not None:
                self._streams[prompt.slot] = np.random.default_rng(prompt.seed)
            # The last sampled token has not been read by the model yet.
            new.append([*self._unread[prompt.slot], *prompt.ids])
        rows = [prompt.slot for prompt in prompts]
        others = self._set_aside(rows)
        sampled, log_probs, unread = self._speak(rows, new)
        for row, ids in zip(rows, unread, strict=True):
            self._unread[row] = ids
        self._put_back(rows, others)
        self._pack()
        return [Completion(tuple(ids), tuple(values)) for ids, values in zip(sampled, log_probs, strict=True)]

    def _speak(
        self, rows: Sequence[int], new: list[list[int]]
    ) -> tuple[list[list[int]], list[list[float]], list[list[int]]]:
        """Sampled ids, their log-probabilities and the ids that the model has not read yet, per row of the cache."""
        device = self.model.device
        uniform = torch.tensor(
            np.stack([self._streams[row].random(self.max_action_tokens) for row in rows]),
            dtype=torch.float32,
            device=device,
        )
        sampled: list[list[int]] = [[] for _ in rows]
        log_probs: list[list[float]] = [[] for _ in rows]
        unread: list[list[int]] = [[] for _ in rows]
        going = set(range(len(rows)))
        logits = self._read(new)
        for step in range(self.max_action_tokens):
            token, log_prob = self._sample(logits, uniform[:, step])
            ids, values = token.tolist(), log_prob.tolist()
            for row in going:
                sampled[row].append(ids[row])
                log_probs[row].append(values[row])
                unread[row] = [ids[row]]
            going = {row for row in going if ids[row] != self.end_id}
            if step + 1 == self.max_action_tokens or not going:
                break
            for row in going:
                unread[row] = []
            logits = self._read([[ids[row]] if row in going else [] for row in range(len(rows))])
        return sampled, log_probs, unread

    @property
    def _layers(self) -> list[Any]:
        """Layers of the cache; transformers types them as those of linear attention too, which hold no keys."""
        return self._cache.layers

    def _others_speak(self, prompts: Sequence[Prompt]) -> bool:
        """Whether a slot that no prompt names holds a conversation."""
        named = {prompt.slot for prompt in prompts}
        return any(bool(self._mask[slot].any()) for slot in range(self.slots) if slot not in named)

    def _set_aside(self, rows: list[int]) -> tuple[torch.Tensor, list[tuple[torch.Tensor, torch.Tensor]]] | None:
        """Keep only some rows of the cache, in their order; the whole one is returned, for `_put_back`."""
        if rows == list(range(self.slots)):
            return None
        layers = [(layer.keys, layer.values) for layer in self._layers if layer.is_initialized]
        whole = (self._mask, layers)
        self._mask = self._mask[rows]
        self._cache = DynamicCache(config=self.model.config)
        for number, (keys, values) in enumerate(layers):
            self._cache.update(keys[rows], values[rows], number)
        return whole

    def _put_back(
        self, rows: list[int], whole: tuple[torch.Tensor, list[tuple[torch.Tensor, torch.Tensor]]] | None
    ) -> None:
        """Make the cache whole again; rows that did not speak have holes in the new columns."""
        if whole is None:
            return
        mask, layers = whole
        spoken, fresh = self._mask, self._layers
        self._mask = torch.nn.functional.pad(mask, (0, spoken.shape[1] - mask.shape[1]))
        self._mask[rows] = spoken
        self._cache = DynamicCache(config=self.model.config)
        for number, layer in enumerate(fresh):
            both = []
            for before, after in zip(
                layers[number] if layers else (None, None), (layer.keys, layer.values), strict=True
            ):
                shape = (self.slots, after.shape[1], after.shape[2], after.shape[3])
                tensor = after.new_zeros(shape)
                if before is not None:
                    tensor[:, :, : before.shape[2]] = before
                tensor[rows] = after
                both.append(tensor)
            self._cache.update(both[0], both[1], number)

    def _read(self, new: list[list[int]]) -> torch.Tensor:
        """Add ids to each slot's conversation and return the logits after its last one, shape (rows, vocabulary)."""
        device = self.model.device
        width = max(len(ids) for ids in new)
        ids = torch.zeros((len(new), width), dtype=torch.int64)
        used = torch.zeros((len(new), width), dtype=torch.bool)
        for row, some in enumerate(new):
            if some:  # On the right, so that the last column holds everybody's last token.
                ids[row, width - len(some) :] = torch.tensor(some)
                used[row, width - len(some) :] = True
        used = used.to(device)
        lengths = self._mask.sum(1, keepdim=True)
        positions = (lengths + used.cumsum(1) - 1).clamp(min=0)
        self._mask = torch.cat((self._mask, used), 1)
        output = self.model(
            input_ids=ids.to(device),
            attention_mask=self._mask.long(),
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
            index = order[:, None, :, None].expand(-1, layer.keys.shape[1], -1, layer.keys.shape[3])
            layer.keys = layer.keys.gather(2, index)
            layer.values = layer.values.gather(2, index)
        self._mask = self._mask.gather(1, order)
