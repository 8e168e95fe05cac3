"""Runs beside tested code and says in words what a probe sees there. It knows nothing, and is not to be trusted.

It is sent to the runner as a text. Words are JSON: what has no other is a pair of a letter and what it takes.
"""

from __future__ import annotations

import collections
import enum
import operator
import re
from typing import Any

_DEEPEST = 40  # Levels of a value that are put into words.
_MOST = 20_000  # Words of one value.
_LONGEST = 200_000  # Characters of a text, or bytes.

_COMPARE = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "in": lambda a, b: a in b, "not in": lambda a, b: a not in b, "is": operator.is_, "is not": operator.is_not,
}  # fmt: skip
_SEQUENCES = ((list, "l"), (tuple, "t"), (set, "s"), (frozenset, "s"))
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


class Witness:
    """What happened, in words."""

    def __init__(self) -> None:
        self.events: list[list[Any]] = []

    def see(self, site: int, value: object) -> None:
        self.events.append([site, words(value)])

    def key(self, site: int, value: object, expected: object) -> None:
        if type(expected).__name__.startswith("Approx"):
            expected = ("approx", expected.expected, expected.rel, expected.abs)  # type: ignore[attr-defined]
        self.events.append([site, words(value), words(expected)])

    def compare(self, site: int, how: str, left: object, right: object) -> None:
        sides = [words(left), words(right)]
        self.events.append([site, bool(_COMPARE[how](left, right)), *sides])

    def call(self, site: int, function: Any, *args: object, **kwargs: object) -> None:
        arguments = [words(argument) for argument in args]
        self.events.append([site, words(function(*args, **kwargs)), *arguments])

    def raises(self, site: int, expected: object = None, match: object = None) -> Raised:
        return Raised(self, site, expected, match)


class Raised:
    """Lets an exception pass for one that was expected, whichever it is."""

    value: Any = None

    def __init__(self, witness: Witness, site: int, expected: object, match: object) -> None:
        self._witness, self._site, self._key = witness, site, (expected, match)

    def __enter__(self) -> Raised:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, _: object) -> bool:
        if kind is not None and not issubclass(kind, Exception):
            return False
        self.value = self.exception = value
        self.type = kind
        raised = [[name(base) for base in kind.__mro__[:-1]], str(value)[:1000]] if kind is not None else [[], ""]
        expected, match = self._key
        if expected is not None:
            kinds = expected if isinstance(expected, tuple) else (expected,)
            pattern = getattr(match, "pattern", match)
            raised = [*raised, [name(one) for one in kinds], pattern if isinstance(pattern, str) else None]  # type: ignore[list-item]
        self._witness.events.append([self._site, *raised])
        return True

    def match(self, _: object) -> bool:
        return True


def name(kind: Any) -> str:
    return f"{getattr(kind, '__module__', '')}.{getattr(kind, '__qualname__', '')}"


def words(value: object, depth: int = 0, count: list[int] | None = None) -> Any:
    count = [0] if count is None else count
    count[0] += 1
    if depth > _DEEPEST or count[0] > _MOST:
        return ["?", name(type(value)), "", None]
    kind: Any = type(value)
    if value is None or kind is bool or (kind is str and len(value) <= _LONGEST):  # type: ignore[arg-type]
        return value
    if isinstance(value, int) and kind.__eq__ is int.__eq__ and not isinstance(value, enum.Enum):
        return ["i", hex(value)]
    if isinstance(value, float) and kind.__eq__ is float.__eq__:
        return ["f", float.hex(value)]
    if kind is complex:
        return ["c", float.hex(value.real), float.hex(value.imag)]  # type: ignore[attr-defined]
    if (
        isinstance(value, str)
        and kind.__eq__ is str.__eq__
        and len(value) <= _LONGEST
        and not isinstance(value, enum.Enum)
    ):
        return str.__str__(value)
    if isinstance(value, bytes | bytearray) and len(value) <= _LONGEST:
        return ["b", bytes(value).hex()]
    for base, letter in _SEQUENCES:
        if isinstance(value, base) and kind.__eq__ is base.__eq__ and kind.__iter__ is base.__iter__:
            return [letter, *(words(element, depth + 1, count) for element in base.__iter__(value))]
    if isinstance(value, dict) and (
        (kind.__eq__ is dict.__eq__ and kind.__iter__ is dict.__iter__)
        or kind in (collections.OrderedDict, collections.Counter)
    ):
        pairs = dict.items(value)
        return ["d", *([words(k, depth + 1, count), words(v, depth + 1, count)] for k, v in pairs)]
    if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        return ["n", name(value)]
    return ["?", name(kind), shown(value), truth(value)]


def shown(value: object) -> str:
    try:
        text = repr(value)
        return text if len(text) < 5000 and not _ADDRESS.search(text) else ""
    except Exception:  # noqa: BLE001 (whatever a value does when it is shown)
        return ""


def truth(value: object) -> bool | None:
    try:
        return bool(value)
    except Exception:  # noqa: BLE001 (the same)
        return None
