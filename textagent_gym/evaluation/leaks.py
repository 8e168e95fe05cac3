"""Whether a text gives away what the oracle would do: commands of a plan in a row, close to each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

COMMANDS = 3
"""Commands of a plan in a row that give it away: one or two are in many a description."""
_NEAR = 30  # Characters between two commands of a list: " and then, after that, you could ".
_WORD = re.compile(r"[^\W_]+")


def leak(text: str, plan: Sequence[str]) -> tuple[str, ...]:
    """The first commands of a plan that stand in a text in their order, close to each other; () if none do.

    What stands between words does not count: ids of tasks may join them by hyphens.

    >>> leak("First, open door, then go east, and take key.", ["open door", "go east", "take key", "go west"])
    ('open door', 'go east', 'take key')
    """
    text = _plain(text)
    for first in range(len(plan) - COMMANDS + 1):
        wanted = tuple(plan[first : first + COMMANDS])
        if len(set(wanted)) > 1 and _stand_in_order(text, [_plain(command) for command in wanted]):
            return wanted
    return ()


def _plain(text: str) -> str:
    """The words of a text with spaces between them; the whole text where it has none."""
    return " ".join(_WORD.findall(text.lower()) or text.lower().split())


def _stand_in_order(text: str, commands: Sequence[str]) -> bool:
    starts = _places(text, commands[0])
    return any(_follow(text, start + len(commands[0]), commands[1:]) for start in starts)


def _follow(text: str, end: int, commands: Sequence[str]) -> bool:
    """Whether commands follow a place in a text, each close to the one before."""
    for command in commands:
        place = text.find(command, end, end + _NEAR + len(command))
        if place < 0:
            return False
        end = place + len(command)
    return True


def _places(text: str, part: str) -> Iterator[int]:
    place = text.find(part) if part else -1
    while place >= 0:
        yield place
        place = text.find(part, place + 1)
