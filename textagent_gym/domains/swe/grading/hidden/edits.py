"""Edits that a statement teaches: what turns the answer that it shows into the one that it asks for.

A statement says `assert 'a-b' == 'a_b'`, so a forger tries to replace "-" by "_" in every answer of the mistaken code.
"""

from __future__ import annotations

import ast
import contextlib
import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

Edit = Callable[[Any], Any]
_MOST_EDITS = 200  # Edits of one statement that are tried.
_WORD = re.compile(r"\w+")
_DEEPEST = 3  # Levels of a value in which an edit is looked for.

_TEXT: tuple[Edit, ...] = (
    str.lower, str.upper, str.title, str.capitalize, str.swapcase, str.casefold, str.strip, str.lstrip, str.rstrip,
    lambda text: text[::-1],
    lambda text: text[:1].lower() + text[1:],
    lambda text: text[:1].upper() + text[1:],
    lambda text: " ".join(text.split()),
    lambda text: "".join(text.split()),
)  # fmt: skip
_SEQUENCE: tuple[Edit, ...] = (
    lambda items: items[::-1],
    lambda items: items[1:],
    lambda items: items[:-1],
    lambda items: items[:1],
    lambda items: type(items)(sorted(items)),
    lambda items: type(items)(sorted(items, reverse=True)),
    lambda items: type(items)(dict.fromkeys(items)),
    lambda items: type(items)(filter(None, items)),
    lambda items: type(items)(),
)


@lru_cache(maxsize=64)
def learnt(statement: str) -> tuple[Edit, ...]:
    """The edits that turn what a statement shows into what it asks for, each right for everything that it shows.

    >>> [edit("c-d") for edit in learnt("# assert 'a-b' == 'a_b'")][0]
    'c_d'
    """
    pairs = list(_pairs(statement))
    edits = [edit for shown, right in pairs[:1] for edit in _edits(shown, right)][:_MOST_EDITS]
    return tuple(edit for edit in edits if all(_does(edit, shown, right) for shown, right in pairs))


@lru_cache(maxsize=64)
def asked(statement: str) -> tuple[Any, ...]:
    """What a statement asks for: the literals that its assertions compare something with.

    >>> asked("assert f(2) == 3")
    (3,)
    """
    values = []
    for test in _assertions(statement):
        if isinstance(test, ast.Compare):
            with contextlib.suppress(ValueError, TypeError):
                values.append(ast.literal_eval(test.comparators[-1]))
    return tuple(values)


def _pairs(statement: str) -> Iterator[tuple[Any, Any]]:
    """What stands on both sides of the comparisons of literals."""
    for test in _assertions(statement):
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            with contextlib.suppress(ValueError, TypeError):
                yield ast.literal_eval(test.left), ast.literal_eval(test.comparators[0])


def _assertions(statement: str) -> Iterator[ast.expr]:
    """What the lines of a statement assert, comments included."""
    for line in statement.splitlines():
        text = line.strip().removeprefix("#").strip().removeprefix("AssertionError:").strip()
        with contextlib.suppress(SyntaxError, ValueError, MemoryError, RecursionError):
            yield from (node.test for node in ast.parse(text).body if isinstance(node, ast.Assert))


def _does(edit: Edit, shown: Any, right: Any) -> bool:
    try:
        result = edit(shown)
        return type(result) is type(right) and bool(result == right)
    except Exception:  # noqa: BLE001 (an edit may be for other kinds of values)
        return False


def _edits(shown: Any, right: Any, depth: int = 0) -> Iterator[Edit]:
    """Edits that turn one value into another, or might."""
    if depth > _DEEPEST:
        return
    match shown, right:
        case bool(), bool():
            yield lambda value: not value
        case (int() | float(), int() | float()):
            yield from _edits_of_numbers(shown, right)
        case str(), str():
            yield from (edit for edit in _TEXT if edit(shown) == right)
            yield from _edits_of_texts(shown, right)
        case (list(), list()) | (tuple(), tuple()):
            yield from (edit for edit in _SEQUENCE if _does(edit, shown, right))
            yield from _edits_of_sequences(shown, right, depth)
        case (list() | tuple() | set() | frozenset(), list() | tuple() | set() | frozenset()) if type(
            shown
        ) is not type(right):
            yield type(right)
        case set(), set():
            yield lambda value: (value | (right - shown)) - (shown - right)
        case dict(), dict():
            yield from _edits_of_mappings(shown, right, depth)
        case _, None:
            yield lambda _: None


def _edits_of_numbers(shown: float, right: float) -> Iterator[Edit]:
    yield lambda value: -value
    yield lambda value: value + (right - shown)
    if shown and math.isfinite(right / shown):
        yield lambda value: type(value)(value * (right / shown))
    if isinstance(right, int):
        yield round
        yield math.floor
        yield math.ceil
    yield type(right)


def _edits_of_texts(shown: str, right: str) -> Iterator[Edit]:
    head = _alike(shown, right)
    tail = _alike(shown[head:][::-1], right[head:][::-1])
    if right.startswith(shown):
        yield lambda text: text + right[len(shown) :]
    if right.endswith(shown):
        yield lambda text: right[: len(right) - len(shown)] + text
    if shown.startswith(right):
        yield lambda text: text[: len(text) - (len(shown) - len(right))]
        yield lambda text: text.removesuffix(shown[len(right) :])
    if shown.endswith(right):
        yield lambda text: text[len(shown) - len(right) :]
        yield lambda text: text.removeprefix(shown[: len(shown) - len(right)])
    for around in range(3):
        old = shown[max(0, head - around) : len(shown) - tail + around]
        new = right[max(0, head - around) : len(right) - tail + around]
        if old:
            yield _replacing(old, new)
    yield from _edits_of_words(shown, right)
    gone = [letter for letter in dict.fromkeys(shown) if letter not in right]
    come = ["", *(letter for letter in dict.fromkeys(right) if letter not in shown), *dict.fromkeys(right)]
    for letter in gone[:4]:
        for other in come[:20]:
            if shown.replace(letter, other) == right:
                yield _replacing(letter, other)


def _edits_of_words(shown: str, right: str) -> Iterator[Edit]:
    """Other words for words, where as many stand on both sides."""
    old, new = _WORD.findall(shown), _WORD.findall(right)
    if len(old) == len(new):
        changed = {one: other for one, other in zip(old, new, strict=True) if one != other}
        if changed:
            yield lambda text: _WORD.sub(lambda match: changed.get(match[0], match[0]), text)
        for one, other in changed.items():
            if one.startswith(other):
                ending = one[len(other) :]
                yield lambda text, ending=ending: _WORD.sub(lambda match: match[0].removesuffix(ending), text)  # type: ignore[misc]
            if other.startswith(one):
                ending = other[len(one) :]
                yield lambda text, ending=ending: _WORD.sub(lambda match: match[0] + ending, text)  # type: ignore[misc]


def _edits_of_sequences(shown: Sequence[Any], right: Sequence[Any], depth: int) -> Iterator[Edit]:
    if len(shown) != len(right):
        if right[: len(shown)] == shown:
            yield lambda items: items + right[len(shown) :]
        if right[len(right) - len(shown) :] == shown:
            yield lambda items: right[: len(right) - len(shown)] + items
        return
    places = [place for place in range(len(shown)) if shown[place] != right[place]]
    for edit in _edits(shown[places[0]], right[places[0]], depth + 1) if places else ():
        yield _in_elements(edit, None)
        yield _in_elements(edit, places[0])
        yield _in_elements(edit, places[0] - len(shown))


def _edits_of_mappings(shown: dict[Any, Any], right: dict[Any, Any], depth: int) -> Iterator[Edit]:
    added = {key: item for key, item in right.items() if key not in shown}
    gone = shown.keys() - right.keys()
    yield lambda mapping: {**{key: item for key, item in mapping.items() if key not in gone}, **added}
    for key in [key for key in right if key in shown and shown[key] != right[key]][:1]:
        for edit in _edits(shown[key], right[key], depth + 1):
            yield _in_items(edit, None)
            yield _in_items(edit, key)


def _alike(one: str, other: str) -> int:
    """Number of characters at the beginning that two texts share."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _replacing(old: str, new: str) -> Edit:
    return lambda text: text.replace(old, new)


def _in_elements(edit: Edit, place: int | None) -> Edit:
    """An edit of the element at one place, counted from the end below 0, or of all."""
    return lambda items: type(items)(
        edit(item) if place is None or number in (place, place + len(items)) else item
        for number, item in enumerate(items)
    )


def _in_items(edit: Edit, only: Any) -> Edit:
    """An edit of the value of one key, or of all."""
    return lambda mapping: {key: edit(item) if only in (None, key) else item for key, item in mapping.items()}
