"""Values near one: what a forger makes of a wrong answer, or of an input, by a rule that fits everywhere."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from textagent_gym.domains.swe.grading.hidden.answers import Told

_DEEPEST_CHANGE = 3
"""Levels of a list below which nothing is changed: changes of changes hardly ever repair an answer."""
_MOST_ELEMENTS = 60
"""Elements of a list that are changed one by one; longer ones are data, and would cost time alone."""
_LARGEST = 10**6
"""Size of a number or of a collection beyond which nothing is computed with it: products would fill the memory."""

_TEXTS: Mapping[str, Callable[[str], Any]] = {
    "turned round": lambda text: text[::-1],
    "one more": lambda text: text + "s",
    "without the last": lambda text: text[:-1],
    "without the first": lambda text: text[1:],
    "small": str.lower,
    "large": str.upper,
    "capital": str.capitalize,
    "titled": str.title,
    "swapped": str.swapcase,
    "trimmed": str.strip,
    "blanks": lambda text: text.replace("_", " "),
    "lines": lambda text: text.replace("-", "_"),
    "dashes": lambda text: text.replace("_", "-"),
    "no blanks": lambda text: text.replace(" ", ""),
    "one blank": lambda text: " ".join(text.split()),
    "nothing": lambda text: "",
    "first small": lambda text: text[:1].lower() + text[1:],
    "first large": lambda text: text[:1].upper() + text[1:],
    "words": str.split,
    "split in lines": str.splitlines,
    "a number": int,
    "bytes": str.encode,
}
_NUMBERS: Mapping[str, Callable[[Any], Any]] = {
    "turned round": operator.neg,
    "one more": lambda number: number + 1,
    "one less": lambda number: number - 1,
    "two more": lambda number: number + 2,
    "two less": lambda number: number - 2,
    "doubled": lambda number: number * 2,
    "halved": lambda number: number / 2,
    "nothing": lambda number: 0,
    "without a sign": abs,
    "rounded": round,
    "whole": int,
    "a fraction": float,
    "a text": str,
    "a truth": bool,
}
_COLLECTIONS: Mapping[str, Callable[[Any], Any]] = {
    "a list": list,
    "a tuple": tuple,
    "a set": frozenset,
    "its size": len,
    "sorted": sorted,
    "each once": lambda items: type(items)(dict.fromkeys(items)),
    "the first": lambda items: next(iter(items)),
    "the last": lambda items: list(items)[-1],
    "the sum": sum,
    "the least": min,
    "the most": max,
    "joined": "".join,
    "not empty": bool,
    "a mapping": dict,
}
_PAIRS: Mapping[str, Callable[[Any, Any], Any]] = {
    "sum": operator.add,
    "difference": operator.sub,
    "quotient": operator.truediv,
    "whole quotient": operator.floordiv,
    "remainder": operator.mod,
    "least": min,
    "most": max,
    "equal": operator.eq,
    "less": operator.lt,
    "member": lambda one, other: one in other,
    "element": lambda one, other: one[other],
    "tuple": lambda one, other: (one, other),
    "list": lambda one, other: [one, other],
    "split": lambda one, other: one.split(other),
    "joined": lambda one, other: one.join(other),
    "counted": lambda one, other: one.count(other),
    "mapping": lambda one, other: dict(zip(one, other, strict=True)),
    "held": lambda one, other: [one, *other],
}


def near(value: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Values near one, each by a rule that could be followed everywhere."""
    match value:
        case bool():
            yield "turned round", not value
        case int() | float():
            if abs(value) < _LARGEST**2:
                yield from _computed(_NUMBERS, value)
        case str():
            yield from _computed(_TEXTS, value)
        case list() | tuple():
            yield from _near_sequence(value, depth)
        case dict() | set() | frozenset():
            yield from _computed(_COLLECTIONS, value)
            yield "nothing", type(value)()
            if isinstance(value, dict):
                yield "keys", list(value)
                yield "values", list(value.values())
                yield "items", list(value.items())
                yield from _computed({"turned round": lambda items: {v: k for k, v in items.items()}}, value)
        case Told(kind="name"):
            return
        case Told(kind=kind, shown=shown, is_true=is_true):
            yield "another truth", Told(kind, shown, not is_true)
            for rule, changed in _computed(_TEXTS, shown):
                if isinstance(changed, str):
                    yield f"shown {rule}", Told(kind, changed, is_true)
            yield "its text", shown


def near_pair(one: Any, other: Any) -> Iterator[tuple[str, Any]]:
    """What comes of two values by simple operations."""
    if not any(isinstance(each, int | float) and abs(each) > _LARGEST for each in (one, other)):
        for rule, operation in _PAIRS.items():
            with contextlib.suppress(Exception):
                yield rule, operation(one, other)
        numbers = all(isinstance(each, int | float) for each in (one, other))
        with contextlib.suppress(Exception):
            if numbers:
                yield "product", one * other


def _computed(rules: Mapping[str, Callable[[Any], Any]], value: Any) -> Iterator[tuple[str, Any]]:
    """What rules make of a value; those that are for other kinds of values make nothing."""
    if isinstance(value, str | list | tuple | dict | set | frozenset) and len(value) > _LARGEST:
        return
    for rule, change in rules.items():
        with contextlib.suppress(Exception):
            yield rule, change(value)


def _near_sequence(value: list[Any] | tuple[Any, ...], depth: int) -> Iterator[tuple[str, Any]]:
    kind = type(value)
    yield from (("turned round", value[::-1]), ("without the last", value[:-1]), ("without the first", value[1:]))
    yield "nothing", kind()
    yield from _computed({"sorted as it is": lambda items: kind(sorted(items))}, value)
    if depth == 0:
        yield from _computed(_COLLECTIONS, value)
        yield from _computed({"flat": lambda items: kind(part for item in items for part in item)}, value)
    if depth >= _DEEPEST_CHANGE:
        return
    for place in (0, -1) if value else ():
        for rule, changed in near(value[place], depth + 1):
            other = list(value)
            other[place] = changed
            yield f"{rule} at {place}", kind(other)
    every = [dict(near(element, _DEEPEST_CHANGE - 1)) for element in value[:_MOST_ELEMENTS]]
    for rule in every[0] if len(every) == len(value) > 0 else ():
        if all(rule in changed for changed in every):
            yield f"{rule} everywhere", kind(changed[rule] for changed in every)
