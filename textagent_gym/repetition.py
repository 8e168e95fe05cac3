"""Endless splits that are not: a small request can be met by few different tasks, and somebody should say so."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable

IN_A_ROW = 30
"""Tasks without anything new before a split counts as small: less than about 1/30 of its draws is new."""
_WATCHED = 10_000  # Tasks after which nobody watches any more.


class RepetitionWarning(UserWarning):
    """A split that is endless by its indices holds few different tasks."""


class RepetitionWatch:
    """Notes which tasks of one source are equal, and warns once per split when nothing new has come for a while.

    Args:
        name: name of the source, for the warning.

    >>> watch = RepetitionWatch("Dice/d6")
    >>> for index in range(25):
    ...     watch.note("train", index, lambda: index % 6)
    >>> watch.different("train")
    6
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._contents: dict[str, set[int]] = {}
        self._indices: dict[str, set[int]] = {}
        self._repeats: dict[str, int] = {}

    def different(self, split: str) -> int:
        """Number of different tasks of a split that have been noted."""
        return len(self._contents.get(split, ()))

    def note(self, split: str, index: int, content: Callable[[], Hashable]) -> None:
        """A task was made.

        Args:
            split: split of the task.
            index: position of the task in its split.
            content: function that returns equal values for equal tasks, called the first time that the task is made;
                what is kept is the value's hash.
        """
        indices = self._indices.setdefault(split, set())
        if index in indices or len(indices) >= _WATCHED:
            return
        indices.add(index)
        contents = self._contents.setdefault(split, set())
        repeats = self._repeats.get(split, 0)
        digest = hash(content())
        self._repeats[split] = repeats + 1 if digest in contents or repeats < 0 else 0
        contents.add(digest)
        if self._repeats[split] == IN_A_ROW:
            self._repeats[split] = -(10**9)  # Once is enough.
            warnings.warn(
                f"Split {split!r} of {self._name} repeats itself: its first {len(indices)} tasks that were made are "
                f"{len(contents)} different ones, and the last {IN_A_ROW} brought nothing new. Ask for a larger world "
                f"to get more, or be content with these.",
                RepetitionWarning,
                stacklevel=3,
            )
