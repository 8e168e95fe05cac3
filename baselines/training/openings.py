"""Openings that several rows begin with, read once per update instead of once per row.

    rows    opening A | rest 1        read first    opening A, opening B        keys and values, with their gradient
            opening A | rest 2        then          rest 1, rest 2, ...         microbatch by microbatch
            opening B | rest 3

A microbatch adds its gradient of the keys and values to a sum; the last one sends the sum on through the openings. So
the gradient is that of rows which are read whole, and no microbatch needs the memory of another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, cast

import torch
from torch.nn.functional import pad
from transformers import DynamicCache, DynamicLayer

from baselines.policy.microbatches import pack
from baselines.rollout.trajectory import Row

_SHARE_OF_BUDGET = 0.5  # Largest share of a microbatch's tokens for the openings, which stay in memory beside it.
_SAVED = 0.1  # Smallest share of all tokens that is saved: reading openings costs a pass of its own.

Opening = tuple[int, ...]
_KeysValues = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True, slots=True)
class Opened:
    """What the rows of one microbatch have read already.

    Attributes:
        cache: keys and values of their openings, padded on the right.
        lengths: int64, shape (batch,), number of tokens of each row's opening; 0 for a row that is read whole.
    """

    cache: DynamicCache
    lengths: torch.Tensor


def opening_of(row: Row) -> Opening:
    """The first prompt without its last token, whose hidden state the first sampled token needs."""
    return row.turns[0].prompt[:-1]


def read_openings(model: Any, rows: Sequence[Row], tokens: int, device: torch.device) -> Openings:
    """Read the openings that several rows begin with; none where a layer does not keep all keys and values.

    Args:
        model: causal language model.
        rows: rows of one update.
        tokens: number of tokens that go through the model at once.
        device: device that holds the model.
    """
    return Openings(model, _shared_openings(rows, tokens) if _keeps_all(model) else [], device)


def _shared_openings(rows: Sequence[Row], tokens: int) -> list[Opening]:
    """The openings of the most rows, as many as have space; none if that saves little."""
    counts = Counter(opening_of(row) for row in rows)
    chosen: list[Opening] = []
    saved = 0
    for opening, count in counts.most_common():
        columns = (len(chosen) + 1) * max(map(len, (*chosen, opening)))
        if count > 1 and opening and columns <= _SHARE_OF_BUDGET * tokens:
            chosen.append(opening)
            saved += (count - 1) * len(opening)
    return chosen if saved >= _SAVED * sum(len(row.ids) for row in rows) else []


class Openings:
    """Keys and values of some openings.

    Args:
        model: causal language model.
        openings: the openings to read; may be none.
        device: device that holds the model.

    Attributes:
        columns: number of tokens that were computed, padding included.
        tokens: the same without padding.
    """

    def __init__(self, model: Any, openings: Sequence[Opening], device: torch.device) -> None:
        lengths = [len(opening) for opening in openings]
        width = max(lengths, default=0)
        packs = [[openings[place] for place in places] for places in pack(lengths, len(openings) * width)]
        self._numbers = {opening: number for number, opening in enumerate(chain.from_iterable(packs))}
        self.columns, self.tokens = sum(len(some) * len(some[0]) for some in packs), sum(lengths)
        self._states = _joined([_read(model, some, device) for some in packs], width)
        self._copies: list[_KeysValues] = [(keys.detach(), values.detach()) for keys, values in self._states]
        for state, copy in zip(self._states, self._copies, strict=True):
            for tensor, leaf in zip(state, copy, strict=True):
                if tensor.requires_grad:
                    add_collected = partial(_add_collected, leaf.requires_grad_())
                    tensor.register_hook(add_collected)  # type: ignore[no-untyped-call]

    def length(self, row: Row) -> int:
        """Number of tokens of the row that have been read."""
        opening = opening_of(row)
        return len(opening) if opening in self._numbers else 0

    def before(self, rows: Sequence[Row], batch: int, *, last: bool = False) -> Opened | None:
        """What the rows of a microbatch have read; `None` where there is no opening at all.

        Args:
            rows: rows of the microbatch.
            batch: number of rows, those of an idle batch included.
            last: whether no further microbatch is read; its backward pass goes through the openings.
        """
        if not self._numbers:
            return None
        idle = [0] * (batch - len(rows))
        lengths = torch.tensor([self.length(row) for row in rows] + idle)
        places = torch.tensor([self._numbers.get(opening_of(row), 0) for row in rows] + idle)
        device, width = self._states[0][0].device, max(1, int(lengths.max()))
        places = places.to(device)
        states = self._states if last else self._copies
        cache = DynamicCache([(keys[places, :, :width], values[places, :, :width]) for keys, values in states])
        return Opened(cache, lengths.to(device))


def _read(model: Any, openings: Sequence[Opening], device: torch.device) -> list[_KeysValues]:
    """Keys and values of each layer, padded to the first opening, which is the longest."""
    ids = torch.tensor([[*opening, *(0,) * (len(openings[0]) - len(opening))] for opening in openings], device=device)
    cache = DynamicCache()
    model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
    return [cast("_KeysValues", (layer.keys, layer.values)) for layer in cast("list[DynamicLayer]", cache.layers)]


def _joined(packs: Sequence[list[_KeysValues]], width: int) -> list[_KeysValues]:
    """Keys and values of all packs in one tensor each, padded to the same width."""

    def join(states: Sequence[torch.Tensor]) -> torch.Tensor:
        return torch.cat([pad(state, (0, 0, 0, width - state.shape[2])) for state in states])

    return [
        (join([keys for keys, _ in layers]), join([values for _, values in layers]))
        for layers in zip(*packs, strict=True)
    ]


def _keeps_all(model: Any) -> bool:
    """Whether every layer of the model keeps the keys and values of all tokens."""
    if getattr(model, "is_gradient_checkpointing", False):
        return False
    layers = DynamicCache(config=model.config).layers
    return bool(layers) and all(type(layer) is DynamicLayer for layer in layers)


def _add_collected(leaf: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    """The gradient of the last microbatch with that of the others."""
    return gradient if leaf.grad is None else gradient + leaf.grad
