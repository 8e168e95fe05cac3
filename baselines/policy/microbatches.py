"""Which rows go through a model together: of nearly the same length, so that little of what is computed is padding."""

from __future__ import annotations

from collections.abc import Sequence

_PADDING = 0.05
"""Largest share of padding in a microbatch. Less makes more microbatches, each of which has a cost of its own."""


def pack(lengths: Sequence[int], tokens: int) -> list[list[int]]:
    """Divide rows into microbatches, from long to short.

    Args:
        lengths: number of tokens of each row.
        tokens: largest number of tokens per microbatch, padding included; a longer row goes by itself.

    Returns:
        positions of the rows of each microbatch.

    >>> pack([100, 10, 98, 10, 55], tokens=250)
    [[0, 2], [4], [1, 3]]
    """
    microbatches: list[list[int]] = []
    width = filled = 0
    for row in sorted(range(len(lengths)), key=lambda row: -lengths[row]):
        computed = (len(microbatches[-1]) + 1) * width if microbatches else 0
        padding = computed - filled - lengths[row]
        if microbatches and computed <= tokens and padding <= _PADDING * computed:
            microbatches[-1].append(row)
            filled += lengths[row]
        else:
            microbatches.append([row])
            width = filled = lengths[row]
    return microbatches
