"""Words stand for values, and nothing that a stranger says does harm or passes for what it is not."""

from __future__ import annotations

import collections
import contextlib
import json
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textagent_gym.domains.swe.grading.hidden.answers import OddWordsError, Seen, Told, read_seen, same, value
from textagent_gym.domains.swe.grading.hidden.exam import read_answer
from textagent_gym.domains.swe.grading.hidden.versions import Version
from textagent_gym.domains.swe.grading.hidden.witness import words

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=4)
        | st.frozensets(st.integers() | st.text(), max_size=4)
    ),
    max_leaves=12,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=20,
)


@given(VALUES)
def test_values_come_back_as_they_were(one: Any) -> None:
    assert same(value(json.loads(json.dumps(words(one)))), frozenset(one) if isinstance(one, set) else one)


@given(VALUES, VALUES)
def test_other_values_are_not_the_same(one: Any, other: Any) -> None:
    if same(one, other):
        assert one == other or "nan" in repr(one) or math.isclose(1, 1 + 1e-12)


@given(JSON)
def test_whatever_a_stranger_says_is_read_or_refused(said: Any) -> None:
    with contextlib.suppress(OddWordsError):
        value(said)
    read_answer(json.dumps(said).encode())
    version = Version("t", True, "t.py", "", "", False, ("==", "raises", "true", "both in"), events=((0, 1, 1),))
    for events in (said, [said], [[0, said]], [[0, said, said]], [[said]]):
        assert not version.is_right(read_seen({"end": "passed", "events": events})) or events == [[0, 1]] or said == 1


@pytest.mark.parametrize(
    "said",
    [
        b"", b"x", b"{}", b"[", b"[[]]", b"null", b"[1]", b'[{"end": 1, "events": []}]', b"[" * 100_000, b"9" * 10_000,
        b'[{"end": "passed", "events": 3}]', b'[{"end": "passed", "events": [[true, 1]]}]',
        b'[{"end": "passed", "events": [["0"]]}]',
    ],
)  # fmt: skip
def test_odd_answers_are_none(said: bytes) -> None:
    assert all(seen is None for seen in read_answer(said))


def test_collisions_of_hashes_cost_nothing() -> None:
    """Numbers whose hashes are all the same would make a dictionary of them take hours."""
    prime = (1 << 61) - 1
    said = ["d", *([["i", hex(prime * n)], None] for n in range(1, 50_000))]
    with pytest.raises(OddWordsError):
        value(said)


def test_collisions_of_hashes_of_sets_in_sets_cost_nothing_either() -> None:
    prime = (1 << 61) - 1
    said = ["s", *(["s", *(["i", hex(prime * (100 * n + m))] for m in range(100))] for n in range(200))]
    with pytest.raises(OddWordsError):
        value(said)


def test_no_value_makes_a_comparison_raise() -> None:
    huge = 10**400
    for operator, key in (("==", ["t", "approx", ["i", "0x64"], None, None]), ("<", ["f", "0x1p0"]), ("in", ["l"])):
        version = Version("t", True, "t.py", "", "", False, (operator,), events=((0, None, key),))
        for seen in (huge, [huge], {huge: huge}, float("nan"), complex(1, 2), b"x"):
            assert not version.is_right(Seen("passed", ((0, words(seen)),)))


@dataclass
class Point:
    """Its representation says all of it."""

    x: int


class Silent:
    """Nothing can be told of it."""

    def __repr__(self) -> str:
        raise RuntimeError

    def __bool__(self) -> bool:
        raise RuntimeError


class Liar(str):
    """Equal to everything."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


def test_what_has_no_words_is_told_by_its_looks() -> None:
    assert same(value(words(Point(1))), value(words(Point(1))))
    assert not same(value(words(Point(1))), value(words(Point(2))))
    assert not same(value(words(Silent())), value(words(Silent())))
    assert value(words(Fraction(1, 2))) == Told("fractions.Fraction", "Fraction(1, 2)", True)
    assert value(words(object())).shown == ""
    assert value(words(collections.OrderedDict(a=1))) == {"a": 1}
    assert isinstance(value(words(Liar("x"))), Told)
    assert value(words(Silent)).shown.endswith("Silent")
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(OddWordsError):
        value(json.loads(json.dumps(words(endless)).replace('"?"', '["deeper"]')))


@pytest.mark.parametrize(
    ("operator", "key", "right", "wrong"),
    [
        ("==", 3, [3, 3.0, 3.0000000001], [4, "3", None, [3], True]),
        ("==", ["l", ["i", "0x1"]], [[1], [True]], [(1,), [1, 1], "[1]"]),
        ("<", 3, [2, -1], [3, "x", None]),
        ("in", ["l", "a", "b"], ["a"], ["c", 1, ["a"]]),
        ("contains", "needle", ["a needle here"], ["x", 3, None]),
        ("is", None, [None], [0, False, ""]),
        ("is", True, [True], [1, "True"]),
        ("!=", 3, [4, "x"], [3]),
        ("==", ["t", "approx", ["i", "0x64"], None, None], [100.00001], [101, "x", None]),
    ],
)
def test_originals_hold_what_they_assert(operator: str, key: Any, right: list[Any], wrong: list[Any]) -> None:
    key = words(key) if isinstance(key, int) and not isinstance(key, bool) else key
    version = Version("t", True, "t.py", "", "", False, (operator,), events=((0, None, key),))
    for seen in right:
        assert version.is_right(Seen("passed", ((0, words(seen)),))), seen
    for seen in wrong:
        assert not version.is_right(Seen("passed", ((0, words(seen)),))), seen


def test_exceptions_are_those_that_are_expected() -> None:
    def seen(error: Exception) -> Seen:
        names = [f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__[:-1]]
        return Seen("passed", ((0, names, str(error)),))

    version = Version(
        "t", True, "t.py", "", "", False, ("raises",), events=((0, [], "", ["builtins.LookupError"], "not .* here"),)
    )
    assert version.is_right(seen(KeyError("it is not really here")))
    assert not version.is_right(seen(KeyError("it is here")))
    assert not version.is_right(seen(ValueError("not it here")))
    assert not version.is_right(Seen("passed", ((0, [], ""),)))
