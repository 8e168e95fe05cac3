"""Replacements that bring a file to where it should be, as the tools write them: whole lines that occur once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, takewhile

from textagent_gym.domains.swe.tasks import Hunk


@dataclass(frozen=True, slots=True)
class _Place:
    """Lines of a file from `first` to the one before `last`, from 0, and those that belong there."""

    first: int
    last: int
    right: list[str]


def replacements(path: str, now: str, right: str, task: str = "", hunks: Sequence[Hunk] = ()) -> list[Hunk]:
    """Replacements that make a text the right one, to be made one after the other.

    Args:
        path: path of the file.
        now: its text.
        right: the text that it should have, another one.
        task: its text at the beginning of the task.
        hunks: places to repair there, first line first. Where some of them are repaired and nothing else has changed,
            there is a replacement for each of the others; otherwise one for all lines from the first that differs to
            the last.

    Returns:
        Replacements whose wrong lines occur once in the text that those before have left, and are numbered in it.
    """
    lines = lines_of(now)
    steps = []
    for place in reversed(_left(now, task, hunks) or [_difference(lines, lines_of(right))]):  # Numbers above stay.
        steps.append(_alone(path, lines, place))
        lines[place.first : place.last] = place.right
    return steps


def _left(now: str, task: str, hunks: Sequence[Hunk]) -> list[_Place] | None:
    """The hunks that are left to be repaired; `None` where the text has changed otherwise."""
    for count in range(len(hunks), 0, -1):
        for left in combinations(hunks, count):
            lines, places, shift = lines_of(task), [], 0
            for hunk in hunks:
                wrong, right = lines_of(hunk.wrong), lines_of(hunk.right)
                place = _Place(hunk.line - 1 + shift, hunk.line - 1 + shift + len(wrong), right)
                if hunk in left:
                    places.append(place)
                else:
                    lines[place.first : place.last] = right
                    shift += len(right) - len(wrong)
            if "".join(lines) == now:
                return places
    return None


def _difference(now: list[str], right: list[str]) -> _Place:
    """The lines from the first that differs to the last."""
    start = _equal(zip(now, right, strict=False))
    end = _equal(zip(reversed(now[start:]), reversed(right[start:]), strict=False))
    return _Place(start, len(now) - end, right[start : len(right) - end])


def _equal(pairs: Iterable[tuple[str, str]]) -> int:
    """Number of pairs at the beginning that are equal."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _alone(path: str, lines: list[str], place: _Place) -> Hunk:
    """A place with as many lines above, and then below, as it takes to occur once."""
    text = "".join(lines)
    first, last = place.first, place.last
    while not _occurs_once(wrong := "".join(lines[first:last]), text) and (first or last < len(lines)):
        first, last = (first - 1, last) if first else (first, last + 1)
    right = "".join([*lines[first : place.first], *place.right, *lines[place.last : last]])
    return Hunk(path, wrong, right, first + 1)


def _occurs_once(part: str, text: str) -> bool:
    """Whether it does, where occurrences may overlap.

    >>> _occurs_once("a\\na\\n", "a\\na\\na\\n")
    False
    """
    return text.find(part) == text.rfind(part) >= 0


def lines_of(text: str) -> list[str]:
    """Lines with their ends; only a line feed ends one.

    >>> lines_of("one\\n\\ntwo")
    ['one\\n', '\\n', 'two']
    """
    return re.findall(r"[^\n]*\n|[^\n]+", text)
