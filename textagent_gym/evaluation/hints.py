"""Whether texts single out the command that the oracle gives next.

Many a world names commands, so a text that holds the right one proves nothing by itself. A text *marks* commands: it
names them, names them most often, or writes them otherwise than the rest. The right command is singled out if it is
marked more often than chance allows by two comparisons, both of them exact:

    with the other commands of the same turn:     a list of all that can be done marks them alike
    with the same command in other turns:         a goal that is repeated in every text marks it alike
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import NamedTuple

import numpy as np

LEVEL = 1e-6
"""Probability below which something is no chance: some fifty comparisons are made per world."""
SHARE = 0.1
"""Share of the turns in which the right command must be marked: games say now and then what is missing."""
_MOST = 0.5  # Share of the turns in which an order, or what is left out, must be that of the oracle.
_WORD = re.compile(r"[^\W_]+")
_ARTICLES = ("a", "an", "the")
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff]"
)
_PARTING = re.compile(r"[\W_]+")
_BLANK = "".join(chr(code) for code in (9, 32, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000))
_CLOSE = 20  # Characters on each side of a command in which signs and white space are seen.
_BETWEEN = r"[\W_]+(?:(?:a|an|the)[\W_]+)?"  # "Open the door" names the command "open door".


@dataclass(frozen=True, slots=True)
class Moment:
    """A text, and what could be done when it was read.

    Attributes:
        task: id of the task.
        text: a text, or a list of commands in some order.
        right: what the oracle does next.
        commands: what can be done, as the world lists it, which need not hold `right`.
        done: the last actions; texts often repeat them, and what was done is often done again.
        past: everything that was done before in the episode.
    """

    task: str
    text: str | tuple[str, ...]
    right: str
    commands: frozenset[str]
    done: tuple[str, ...]
    past: frozenset[str] = frozenset()


class Mention(NamedTuple):
    """A command in a text, and how it is written there: in capitals, or beside a sign."""

    command: str
    sign: str


def singled_out(moments: Iterable[Moment]) -> str:
    """How texts of one kind single out what the oracle does next; "" if they do not.

    >>> plan = ["go east", "open door", "take key", "go north", "eat apple", "go up", "go down", "take bread"]
    >>> commands = frozenset(plan)
    >>> singled_out(Moment("task", f"You could {right}.", right, commands, ()) for right in plan)
    'named by 8 of 8 texts'
    >>> singled_out(Moment("task", f"You could {', '.join(plan)}.", right, commands, ()) for right in plan)
    ''
    """
    # What is said again in the same situation is no further evidence.
    fresh = (each for each in moments if each.right not in each.done)
    known = list({(each.task, each.text, each.right, each.commands): each for each in fresh}.values())
    rights: dict[str, set[str]] = defaultdict(set)
    for moment in known:
        rights[moment.task].add(moment.right)
    # Tasks of which only one command is known are compared with each other.
    groups = [moment.task if len(rights[moment.task]) > 1 else "" for moment in known]
    rights[""] = {moment.right for moment, group in zip(known, groups, strict=True) if not group}
    mentions = [
        _mentions(moment.text, moment.commands | rights[group]) for moment, group in zip(known, groups, strict=True)
    ]
    for name, mark in _MARKS.items():
        marked = [mark(each) for each in mentions]
        if counted := _marked_more(known, groups, marked, rights):
            return f"{name} by {counted} texts"
    orders = [_order(each, moment) for each, moment in zip(mentions, known, strict=True)]
    for name, number in _ENDS.items():
        if counted := _placed_more(known, [_at(number, order) for order in orders]):
            return f"{name} {counted} texts"
    unnamed = [_left_out(each, moment) for each, moment in zip(mentions, known, strict=True)]
    if counted := _placed_more(known, unnamed):
        return f"left out by {counted} texts"
    for name, number in _INNER_PLACES.items():
        placed = [_at(number, order) for order in orders]
        # Lists that always have the same order show the same command in the same place.
        inside = [frozenset[str]() if each is None else each.inside for each in placed]
        if (counted := _placed_more(known, placed)) and _marked_more(known, groups, inside, rights):
            return f"{name} {counted} texts"
    return ""


def lists(text: str, commands: frozenset[str]) -> bool:
    """Whether a text names all that can be done, such as `commands`."""
    return bool(commands) and _named(_mentions(text, commands)) == commands


# How a text names commands.


def _mentions(text: str | tuple[str, ...], commands: frozenset[str]) -> list[Mention]:
    """The commands that a text names, in its order; none that is a part of a longer one in that place."""
    if isinstance(text, tuple):
        return [Mention(command, "") for command in text]
    pattern, known = _pattern(commands)
    # What cannot be seen would part the words of a command; where it stands is noted.
    plain = _UNSEEN.sub("", text)
    places = None if plain == text else [place for place, sign in enumerate(text) if not _UNSEEN.match(sign)]
    mentions = []
    for match in pattern.finditer(plain):
        written = match.group()
        command = known[_key(written)]
        loud = written[1:] != written[1:].lower() and command[1:] == command[1:].lower()
        parted = {*_PARTING.findall(written)} - {" ", *_PARTING.findall(command)}
        hidden = places is not None and _hides(text, places, match)
        before, after = _beside(plain[max(0, match.start() - _CLOSE) : match.start()], plain[match.end() :][:_CLOSE])
        signs = ("A" if loud else "", "?" if hidden else "", *sorted(parted), before)
        mentions.append(Mention(command, "".join(signs) + " " + after))
    return mentions


def _hides(text: str, places: Sequence[int], match: re.Match[str]) -> bool:
    """Whether something that cannot be seen stands within a command, or beside it.

    Args:
        text: the whole text.
        places: places in the text of what can be seen.
        match: the command, among what can be seen.
    """
    first, last = places[match.start()], places[match.end() - 1]
    return last - first >= match.end() - match.start() or any(
        map(_UNSEEN.match, (text[first - 1 : first], text[last + 1 :][:1]))
    )


def _beside(left: str, right: str) -> tuple[str, str]:
    """Signs and unusual white space on both sides of a command; "" where a text usually has what is there."""
    before, after = left.rstrip(_BLANK), right.lstrip(_BLANK)
    gaps = (left[len(before) :], right[: len(right) - len(after)])
    signs = (before[-1:], after[:1])
    ends = (False, signs[1] in ("", "\n"))  # Nobody sees white space at the end of a line.
    usual = [gap == "" or (gap == " " and not end) for gap, end in zip(gaps, ends, strict=True)]
    first, second = (
        ("" if sign.isalnum() or sign.isspace() or sign in ",.;:" else sign) + ("" if each else gap)
        for sign, gap, each in zip(signs, gaps, usual, strict=True)
    )
    return first, second


@lru_cache(maxsize=1024)
def _pattern(commands: frozenset[str]) -> tuple[re.Pattern[str], dict[tuple[str, ...], str]]:
    """A pattern that finds commands, the longest first, and the commands by their keys."""
    known = {_key(command): command for command in sorted(commands)}
    known.pop((), None)
    parts = [_BETWEEN.join(map(re.escape, key)) for key in sorted(known, key=lambda key: -len(" ".join(key)))]
    bounded = rf"(?<![^\W_])(?:{'|'.join(parts)})(?![^\W_])" if parts else r"(?!)"
    return re.compile(bounded, re.IGNORECASE), known


def _key(command: str) -> tuple[str, ...]:
    """The words of a command, without articles; the whole command where it has none."""
    words = tuple(_WORD.findall(command.lower()))
    return tuple(word for word in words if word not in _ARTICLES) or words or tuple(command.lower().split())


def _named(mentions: Sequence[Mention]) -> frozenset[str]:
    return frozenset(each.command for each in mentions)


def _named_most(mentions: Sequence[Mention]) -> frozenset[str]:
    """Commands that are named most often; none where all are named equally often."""
    counts = Counter(each.command for each in mentions)
    most = max(counts.values(), default=0)
    return frozenset(command for command, count in counts.items() if count == most > min(counts.values()))


def _written_otherwise(mentions: Sequence[Mention]) -> frozenset[str]:
    """Commands that are not written as most are."""
    signs = Counter(each.sign for each in mentions)
    usual = max(signs, key=lambda sign: (signs[sign], sign == " "), default="")
    return frozenset(each.command for each in mentions if each.sign != usual)


_MARKS: dict[str, Callable[[Sequence[Mention]], frozenset[str]]] = {
    "named": _named,
    "named most often": _named_most,
    "written otherwise than the rest": _written_otherwise,
}


class _Place(NamedTuple):
    """A place that a text has for commands, those that are in it, and the number of those that could be."""

    inside: frozenset[str]
    among: int


def _order(mentions: Sequence[Mention], moment: Moment) -> list[str]:
    """Commands in the order in which they are first named; none where that is the order of the alphabet."""
    commands = moment.commands | {moment.right}
    order = list(dict.fromkeys(each.command for each in mentions if each.command in commands))
    return [] if len(order) < 2 or order in (sorted(order), sorted(order, key=str.casefold)) else order


def _at(number: int, order: Sequence[str]) -> _Place | None:
    """The command in a place of an order, from 0; from the end where the number is negative."""
    return _Place(frozenset((order[number],)), len(order)) if -len(order) <= number < len(order) else None


def _left_out(mentions: Sequence[Mention], moment: Moment) -> _Place | None:
    """What is not named, where most commands are that were not done before; what the world does not list at all is
    another matter."""
    commands = moment.commands - moment.past  # A text that tells what was done leaves out what was not.
    unnamed = commands - _named(mentions)
    return _Place(unnamed, len(commands)) if 0 < 2 * len(unnamed) < len(commands) else None


_ENDS = {"the first of the commands in": 0, "the last of the commands in": -1}
_ORDINALS = ("second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_INNER_PLACES = {
    f"the {ordinal}{end} of the commands in": place
    for number, ordinal in enumerate(_ORDINALS, start=1)
    for end, place in (("", number), (" to last", -1 - number))
}


# Whether that is chance.


def _marked_more(
    moments: Sequence[Moment],
    groups: Sequence[str],
    marked: Sequence[frozenset[str]],
    rights: dict[str, set[str]],
) -> str:
    """In how many of how many texts the right command is marked, if that is no chance; else ""."""
    always: dict[str, frozenset[str]] = {"": frozenset()}
    for group, named in zip(groups, marked, strict=True):
        always[group] = always.get(group, named) & named
    chances, hits = [], 0
    tables: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for moment, group, named in zip(moments, groups, marked, strict=True):
        others = moment.commands.union((moment.right,)) - always[group]
        if moment.right in others:
            chances.append(len(named & others) / len(others))
            hits += moment.right in named
        for command in rights[group].difference(moment.done):
            right, there = command == moment.right, command in named
            for cell, value in enumerate((True, right, there, right and there)):
                tables[group, command][cell] += value
    if hits < max(1.0, SHARE * len(moments)):
        return ""
    if _tail([np.array([1 - chance, chance]) for chance in chances], hits) >= LEVEL:
        return ""
    both = sum(table[3] for table in tables.values())
    if _tail([_hypergeometric(*table[:3]) for table in tables.values()], both) >= LEVEL:
        return ""
    return f"{hits} of {len(moments)}"


def _placed_more(moments: Sequence[Moment], placed: Sequence[_Place | None]) -> str:
    """In how many of how many texts the right command is in a place, if that is most of them and no chance; else ""."""
    known = [(moment, place) for moment, place in zip(moments, placed, strict=True) if place is not None]
    hits = sum(moment.right in place.inside for moment, place in known)
    if hits <= _MOST * len(known):
        return ""
    chances = [len(place.inside) / place.among for _, place in known]
    unlikely = _tail([np.array([1 - chance, chance]) for chance in chances], hits) < LEVEL
    return f"{hits} of {len(known)}" if unlikely else ""


def _tail(distributions: Iterable[np.ndarray], hits: int) -> float:
    """Probability that independent counts, each with the probabilities of 0, 1, ..., sum to `hits` or more."""
    total = np.ones(1)
    for each in distributions:
        total = np.convolve(total, each)
    return float(total[hits:].sum())


def _hypergeometric(turns: int, right: int, marked: int) -> np.ndarray:
    """Probabilities of 0, 1, ... turns in which a command is both right and marked, if neither regards the other."""
    ways = comb(turns, marked)
    return np.array([comb(right, both) * comb(turns - right, marked - both) / ways if both <= marked else 0.0
                     for both in range(right + 1)])  # fmt: skip
