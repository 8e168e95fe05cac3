"""Generation with `transformers` on any device, the key-value cache continued from turn to turn.

All slots share one cache whose columns grow together; a mask says which columns a slot's conversation uses:

    slot 0   x x x x . . x x x . x x        x  a token of this conversation, at its own position
    slot 1   x x x x x x x . . . x x        .  a hole: another slot had more to say in that call
    slot 2   x x x . . . . . . . x x        a new conversation began after two turns of the others, in the first columns

Holes cost memory and time, so the cache is packed when they are too many. The model computes only the slots that speak,
and of these only the ones whose action has not ended: their rows of the cache are the first ones, for which rows are
exchanged. New conversations that begin equally, as those of a group do, are read once and their columns copied. The
cache's memory is allocated ahead, so that a token is added without copying the others.

What an episode samples follows from the seed of its first prompt: each token is drawn with one uniform number of the
episode's own stream, by inverting the cumulative distribution. So it depends neither on the other conversations nor on
the order of the calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from transformers import Cache, DynamicLayer, PreTrainedModel

from baselines.policy.last_layer import last_layer_for
from baselines.policy.microbatches import pack
from baselines.policy.models import context_length
from baselines.rollout.backend import Completion, Prompt

_PACK_AT = 1.5  # Pack when the cache is that many times as wide as its longest conversation.
_PREFILL = 16_384  # Largest number of tokens of new conversations that are read at once, which bounds the memory.
_AHEAD = 0.25  # Share of the columns in use for which memory is allocated ahead.
_ROUNDING = 1e-3  # Larger differences of log-probabilities have other reasons.
_BELOW_ONE = (
    1 - 2**-20
)  # Largest uniform number: its product with a sum of 1, rounded to 32 bits, stays below that sum.


@dataclass(slots=True)
class _Place:
    """Where in the cache the model writes: from a row and from a column on, of as many columns as are expected."""

    row: int = 0
    column: int = 0
    expected: int = 0


class _Layer(DynamicLayer):  # type: ignore[misc]
    """Keys and values of one layer for all slots, in memory that is allocated ahead.

    Args:
        slots: number of rows.
        place: place at which the model writes, which is the same in all layers.

    Attributes:
        keys, values: shape (slots, heads, columns, size).
    """

    keys: torch.Tensor
    values: torch.Tensor

    def __init__(self, slots: int, place: _Place) -> None:
        super().__init__()
        self._slots = slots
        self._place = place

    def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Write columns of some rows; returns these rows up to there."""
        start, end = self._place.column, self._place.column + key_states.shape[2]
        rows = slice(self._place.row, self._place.row + len(key_states))
        self.keys, self.values = (
            self._with_columns(tensor, states, end)
            for tensor, states in ((self.keys, key_states), (self.values, value_states))
        )
        self.is_initialized = True
        self.keys[rows, :, start:end] = key_states
        self.values[rows, :, start:end] = value_states
        return self.keys[rows, :, :end], self.values[rows, :, :end]

    def get_seq_length(self) -> int:
        """Number of columns before those that the model writes."""
        return self._place.column

    def copy(self, to: list[int], source: list[int], width: int) -> None:
        """Put the first columns of the rows `source` in the place of those of the rows `to`."""
        for tensor in self._tensors:
            tensor[to, :, :width] = tensor[source, :, :width]

    def pack(self, order: torch.Tensor) -> None:
        """Keep some columns of each row, shape (slots, columns)."""
        for tensor in self._tensors:
            index = order[:, None, :, None].expand(-1, tensor.shape[1], -1, tensor.shape[3])
            tensor[:, :, : order.shape[1]] = tensor.gather(2, index)

    @property
    def _tensors(self) -> tuple[torch.Tensor, torch.Tensor]:
        assert self.keys is not None
        assert self.values is not None
        return self.keys, self.values

    def _with_columns(self, tensor: torch.Tensor | None, states: torch.Tensor, columns: int) -> torch.Tensor:
        """The tensor, or a larger copy where it has too few columns."""
        if tensor is None:
            tensor = states.new_zeros((self._slots, states.shape[1], self._place.expected, states.shape[3]))
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
        self._columns = 0  # Of the cache when it was last forgotten.
        self._mask = torch.zeros((slots, 0), dtype=torch.bool)
        self.forget()

    def take_weights(self, model: PreTrainedModel) -> None:
        """See `Generator`."""
        self.model = model
        self.forget()

    def forget(self) -> None:
        """See `Generator`."""
        self._columns = self._mask.shape[1] or self._columns
        self._place = _Place(expected=self._columns)
        layer = partial(_Layer, self.slots, self._place)
        self._cache = Cache(layer_class_to_replicate=cast("type[_Layer]", layer))
        self._mask = torch.zeros((self.slots, 0), dtype=torch.bool, device=self.model.device)
        self._order = list(range(self.slots))  # The slot of each row of the cache and of the mask.
        self._lengths = [0] * self.slots  # Number of tokens that the model has read of each slot's conversation.
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
                self._lengths[prompt.slot] = 0
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
            slots, logits = self._read_prompts(new) if step == 0 else self._continue(new)
            tokens, values = self._sample(logits, [float(uniform[slot][step]) for slot in slots])
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
        return any(length for slot, length in enumerate(self._lengths) if slot not in named)

    def _read_prompts(self, new: Mapping[int, Sequence[int]]) -> tuple[list[int], torch.Tensor]:
        """Add ids to conversations, some of which begin; returns the slots, and the logits after their last ids."""
        continued = {slot: ids for slot, ids in new.items() if self._lengths[slot]}
        slots: list[int] = []
        logits = []
        if continued:
            slots, after = self._continue(continued)
            logits.append(after)
        openings: dict[tuple[int, ...], list[int]] = {}
        for slot, ids in new.items():
            if slot not in continued:
                openings.setdefault(tuple(ids), []).append(slot)
        begun = list(openings.items())
        for places in pack([len(ids) for ids in openings], _PREFILL):
            some = [begun[place] for place in places]
            readers = [equal[0] for _, equal in some]
            others = [(number, slot) for number, (_, equal) in enumerate(some) for slot in equal[1:]]
            first = len(slots)
            slots = slots + self._bring([*readers, *(slot for _, slot in others)], first)
            after = self._read([ids for ids, _ in some], first, 0)
            if others:
                columns = max(len(ids) for ids, _ in some)
                self._repeat([first + number for number, _ in others], first + len(readers), columns)
            logits.append(after[[*range(len(readers)), *(number for number, _ in others)]])
        return slots, torch.cat(logits)

    def _continue(self, new: Mapping[int, Sequence[int]]) -> tuple[list[int], torch.Tensor]:
        """Add ids to conversations that have begun; returns the slots, and the logits after their last ids."""
        count = len(new)
        from_behind = iter([slot for slot in self._order[count:] if slot in new])
        slots = self._bring([slot if slot in new else next(from_behind) for slot in self._order[:count]])
        return slots, self._read([new[slot] for slot in slots], 0, self._mask.shape[1])

    def _bring(self, slots: list[int], first: int = 0) -> list[int]:
        """Exchange rows of the cache until those of `slots` are the ones from the row `first` on; returns `slots`."""
        before = {slot: row for row, slot in enumerate(self._order)}
        rows = dict(before)
        for row, slot in enumerate(slots, start=first):
            other = self._order[row]
            self._order[row], self._order[rows[slot]] = slot, other
            rows[slot], rows[other] = row, rows[slot]
        moved = [slot for slot in self._order if rows[slot] != before[slot]]
        if moved:
            self._mask[[rows[slot] for slot in moved]] = self._mask[[before[slot] for slot in moved]]
        kept = [slot for slot in moved if self._lengths[slot]]
        self._copy([rows[slot] for slot in kept], [before[slot] for slot in kept], self._mask.shape[1])
        return slots

    def _repeat(self, source: list[int], first: int, columns: int) -> None:
        """Let conversations that begin in the rows from `first` on begin as those of the rows `source` do."""
        to = list(range(first, first + len(source)))
        self._mask[to] = self._mask[source]
        for row, like in zip(to, source, strict=True):
            self._lengths[self._order[row]] = self._lengths[self._order[like]]
        self._copy(to, source, columns)

    def _copy(self, to: list[int], source: list[int], columns: int) -> None:
        """Put the first columns of the rows `source` in the place of those of the rows `to`."""
        for layer in self._layers if to else ():
            layer.copy(to, source, columns)

    def _read(self, new: Sequence[Sequence[int]], row: int, column: int) -> torch.Tensor:
        """Add ids to the conversations of some rows; the logits after their last ones, shape (rows, vocabulary).

        Args:
            new: ids for each row.
            row: the first of the rows.
            column: column from which on they are written.
        """
        device = self.model.device
        count, width = len(new), max(len(ids) for ids in new)
        ids = torch.zeros((count, width), dtype=torch.int64)
        used = torch.zeros((count, width), dtype=torch.bool)
        for number, some in enumerate(new):  # On the right, so that the last column holds everybody's last token.
            ids[number, width - len(some) :] = torch.tensor(some)
            used[number, width - len(some) :] = True
        slots = self._order[row : row + count]
        lengths = torch.tensor([self._lengths[slot] for slot in slots])
        positions = (lengths[:, None] + used.cumsum(1) - 1).clamp(min=0)
        missing = max(0, column + width - self._mask.shape[1])
        self._mask = torch.nn.functional.pad(self._mask, (0, missing))
        self._mask[row : row + count, column : column + width] = used.to(device)
        self._place.row, self._place.column = row, column
        readers = torch.arange(count if width > 1 else 0, device=device)
        with last_layer_for(self.model, readers, torch.full_like(readers, width - 1)):
            output = self.model(
                input_ids=ids.to(device),
                attention_mask=self._mask[row : row + count, : column + width],
                position_ids=positions.to(device),
                past_key_values=self._cache,
                use_cache=True,
                logits_to_keep=1,
            )
        for slot, some in zip(slots, new, strict=True):
            self._lengths[slot] += len(some)
        logits: torch.Tensor = output.logits[:, -1].float()
        return logits

    def _sample(self, logits: torch.Tensor, uniform: Sequence[float]) -> tuple[torch.Tensor, torch.Tensor]:
        """A token per row and its log-probability at the temperature, both of shape (rows,)."""
        if self.temperature == 0.0:
            token = logits.argmax(-1)
            return token, logits.log_softmax(-1).gather(-1, token[:, None]).squeeze(-1)
        token, log_probs, _, _ = drawn(logits, self.temperature, uniform)
        return token, log_probs.gather(-1, token[:, None]).squeeze(-1)

    def _pack(self) -> None:
        """Move every conversation to the left of the cache, closing its holes."""
        longest = max(self._lengths)
        if self._mask.shape[1] <= max(64, _PACK_AT * longest):
            return
        # A stable sort brings the used columns to the front without changing their order.
        order = torch.sort((~self._mask).long(), dim=1, stable=True).indices[:, :longest]
        for layer in self._layers:
            layer.pack(order)
        self._mask = self._mask.gather(1, order)


def depends_on_others(model: PreTrainedModel) -> bool:
    """Whether what a model says in a conversation depends on what else it reads at once.

    Some measure distances in columns of the cache, of which others use some. It is tried with two conversations. With
    "longrope" positions, `transformers` scales those of all conversations by the longest one, beyond a length that is
    not tried.
    """
    rope = getattr(model.config.get_text_config(), "rope_parameters", None) or {}
    if any(isinstance(each, dict) and each.get("rope_type") == "longrope" for each in (rope, *rope.values())):
        return True
    together = TransformersGenerator(model, -1, slots=2, max_action_tokens=1)
    alone = [TransformersGenerator(model, -1, slots=1, max_action_tokens=1) for _ in range(2)]
    vocabulary = model.get_input_embeddings().num_embeddings
    for turn, lengths in enumerate(((3, 9), (0, 5), (6, 2))):
        prompts = [
            Prompt(slot, tuple((7 * place + slot) % vocabulary for place in range(length)), fresh=turn == 0)
            for slot, length in enumerate(lengths)
            if length
        ]
        for prompt, completion in zip(prompts, together.generate(prompts), strict=True):
            (other,) = alone[prompt.slot].generate([replace(prompt, slot=0)])
            if completion.ids != other.ids or abs(completion.log_probs[0] - other.log_probs[0]) > _ROUNDING:
                return True
    return False


def drawn(
    logits: torch.Tensor, temperature: float, uniform: Sequence[float]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Draw tokens: a row's is the first one whose cumulative probability is above the row's height.

    Args:
        logits: shape (rows, vocabulary), of 32 bits.
        temperature: sampling temperature, above 0.
        uniform: a number per row, at least 0 and less than 1.

    Returns:
        tokens, of shape (rows,); log-probabilities and cumulative probabilities, of the shape of the logits; and
        heights, of shape (rows, 1). How these are rounded decides which token is drawn, so whoever computes it again
        does so here. They have 64 bits, where the device has such numbers: in 32 bits, sums of 150,000 probabilities
        are rounded so coarsely that other batches pick other tokens (9 of 1,920 with random weights; 2 of 5,760 in 64).
    """
    exact = torch.float32 if logits.device.type == "mps" else torch.float64
    log_probs = (logits.to(exact) / temperature).log_softmax(-1)
    cumulative = log_probs.exp().cumsum(-1)
    numbers = torch.tensor(uniform, dtype=exact, device=logits.device)
    heights = numbers[:, None] * (_BELOW_ONE * cumulative[:, -1:])
    return torch.searchsorted(cumulative, heights, right=True).squeeze(-1), log_probs, cumulative, heights
