"""Checks what a probe saw against what is right, where no tested code can reach.

What was seen comes from a process that the tested code owns, so it is read as data from a stranger: bounded, and
anything odd is wrong. Equality is Python's own, except that floats may differ in the last digits and that two NaNs are
the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_DEEPEST = 60  # Levels of a value, more than a witness tells of; Python would end at a thousand.
_MOST_WORDS = 50_000  # Of one value.
_MOST_HASHED = 2000  # Elements of all its sets and dictionaries: whoever chooses them can make their hashes the same.
_LONGEST_MESSAGE = 1000


class OddWordsError(ValueError):
    """These are no words of a witness."""


@dataclass(frozen=True, slots=True)
class Told:
    """A value that can only be told by its type and what it shows of itself; if that is nothing, none is the same."""

    kind: str
    shown: str
    is_true: bool | None


@dataclass(frozen=True, slots=True)
class Seen:
    """What a probe saw.

    Attributes:
        end: "passed", or the name of the exception that ended it.
        events: number of each place that was reached, and the words that stand there.
    """

    end: str
    events: tuple[tuple[Any, ...], ...]


def read_seen(report: Any) -> Seen | None:
    """What a process says that a probe saw; `None` where it says nothing of that form."""
    try:
        end, events = report["end"], report["events"]
        if len(report) != 2 or type(end) is not str or type(events) is not list:
            return None
        if not all(type(event) is list and event and type(event[0]) is int for event in events):
            return None
        return Seen(end, tuple(tuple(event) for event in events))
    except (KeyError, TypeError):
        return None


def value(words: Any) -> Any:
    """The value that words stand for.

    Raises:
        OddWordsError: for none.
    """
    return _value(words, _Bounds())


@dataclass(slots=True)
class _Bounds:
    """What a value may still have."""

    words: int = _MOST_WORDS
    hashed: int = _MOST_HASHED

    def take(self, hashed: int) -> None:
        self.words -= 1
        self.hashed -= hashed
        if self.words < 0 or self.hashed < 0:
            raise OddWordsError("too many")


def _value(words: Any, bounds: _Bounds, depth: int = 0) -> Any:
    if depth > _DEEPEST:
        raise OddWordsError("too deep")
    if words is None or isinstance(words, bool | str):
        return words
    try:
        letter, *rest = words
        bounds.take(len(rest) if letter in ("d", "s") else 0)
        match letter:
            case "i":
                return int(rest[0], 16)
            case "f":
                return float.fromhex(rest[0])
            case "c":
                return complex(float.fromhex(rest[0]), float.fromhex(rest[1]))
            case "b":
                return bytes.fromhex(rest[0])
            case "l":
                return [_value(word, bounds, depth + 1) for word in rest]
            case "t":
                return tuple(_value(word, bounds, depth + 1) for word in rest)
            case "s":
                return frozenset(_value(word, bounds, depth + 1) for word in rest)
            case "d":
                return {_value(k, bounds, depth + 1): _value(v, bounds, depth + 1) for k, v in rest}
            case "n":
                return Told("name", str(rest[0]), True)
            case "?":
                return Told(str(rest[0]), str(rest[1]), rest[2])
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        raise OddWordsError(str(error)) from error
    raise OddWordsError(str(letter))


def same(a: Any, b: Any) -> bool:
    """Two values are the same."""
    if isinstance(a, Told) or isinstance(b, Told):
        return a == b and bool(a.shown)
    if isinstance(a, float | complex) or isinstance(b, float | complex):
        try:
            return bool(a == b) or _close(complex(a), complex(b))
        except (TypeError, ValueError, OverflowError):
            return False
    if isinstance(a, list | tuple) and type(a) is type(b):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return bool(a == b)


def _close(a: complex, b: complex) -> bool:
    def close(x: float, y: float) -> bool:
        return math.isclose(x, y, rel_tol=1e-9, abs_tol=1e-12) or (math.isnan(x) and math.isnan(y))

    return close(a.real, b.real) and close(a.imag, b.imag)


def _approximately(seen: Any, key: Any) -> bool:
    import pytest

    _, expected, rel, tolerance = key
    return bool(seen == pytest.approx(expected, rel=rel, abs=tolerance))


def is_approximate(key: Any) -> bool:
    """A right answer holds within bounds."""
    return isinstance(key, tuple) and len(key) == 4 and key[0] == "approx"


_CHECKS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": lambda seen, key: _approximately(seen, key) if is_approximate(key) else same(seen, key),
    "!=": lambda seen, key: not same(seen, key),
    "<": lambda seen, key: seen < key,
    "<=": lambda seen, key: seen <= key,
    ">": lambda seen, key: seen > key,
    ">=": lambda seen, key: seen >= key,
    "in": lambda seen, key: seen in key,
    "not in": lambda seen, key: seen not in key,
    "contains": lambda seen, key: key in seen,
    "contains not": lambda seen, key: key not in seen,
    "is": lambda seen, key: type(seen) is type(key) and same(seen, key),
    "is not": lambda seen, key: not (type(seen) is type(key) and same(seen, key)),
}


def holds(operator: str, seen: Any, key: Any) -> bool:
    """A comparison that a test makes is true."""
    try:
        return bool(_CHECKS[operator](seen, key))
    except Exception:  # noqa: BLE001 (whatever a stranger's value does in a comparison)
        return False


def is_true(seen: Any) -> bool:
    """What was seen counts as true."""
    return bool(seen.is_true) if isinstance(seen, Told) else bool(seen)


def raised_as_expected(raised: tuple[Any, ...], kinds: list[str], pattern: str | None) -> bool:
    """An exception is one of those that a test expects.

    Args:
        told: names of its type and their bases, and its message.
        kinds: names of the types that are expected.
        pattern: regular expression that the message has to contain; `None` for any message.
    """
    names, message = raised[0], raised[1]
    if type(names) is not list or type(message) is not str or not set(kinds) & {str(name) for name in names}:
        return False
    return pattern is None or re.search(pattern, message[:_LONGEST_MESSAGE]) is not None
