"""What a forger can reach, as the judge sees it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from textagent_gym.domains.swe.grading.hidden import witness
from textagent_gym.domains.swe.grading.hidden.answers import Seen
from textagent_gym.domains.swe.grading.hidden.edits import asked, learnt
from textagent_gym.domains.swe.grading.hidden.judge import UNKNOWN_RULE, Assessment, Reach, assess, chance
from textagent_gym.domains.swe.grading.hidden.rules import UNKNOWN, Knowledge
from textagent_gym.domains.swe.grading.hidden.siblings import SIBLINGS, has_siblings
from textagent_gym.domains.swe.grading.hidden.versions import Version
from textagent_gym.domains.swe.grading.hidden.witness import words


def version(text: str, answer: Any, site: str = "==", *, original: bool = False) -> Version:
    """A version with one answer; what an original asserts stands beside it."""
    event = (0, words(answer), words(answer)) if original else (0, words(answer))
    return Version("tests/t.py::test", original, "tests/t.py", text, "", False, (site,), events=(event,))


def seen(answer: Any) -> Seen:
    return Seen("passed", ((0, words(answer)),))


@pytest.mark.parametrize(
    ("statement", "value", "edited"),
    [
        ("assert 'a-b' == 'a_b'", "c-d-e", "c_d_e"),
        ("# AssertionError: assert 'hello' == 'Hello'", "world", "World"),
        ("assert 'x' == 'xs'", "dog", "dogs"),
        ("assert '5 kB' == '5 KiB'", "7 kB", "7 KiB"),
        ("assert 3 == -3", 8, -8),
        ("assert 4 == 5", 10, 11),
        ("assert 30 == 60", 7, 14),
        ("assert [1, 2] == [2, 1]", [5, 6, 7], [7, 6, 5]),
        ("assert [3, 1, 2] == [1, 2, 3]", [9, 8], [8, 9]),
        ("assert [1, 2] == (1, 2)", [4], (4,)),
        ("assert ['a', 'b'] == ['A', 'B']", ["c"], ["C"]),
        ("assert [1, 2] == [1, 3]", [5, 5, 5], [5, 5, 6]),
        ("assert {'a': 1} == {'a': 2}", {"b": 4}, {"b": 5}),
        ("assert {'a': 1, 'b': 2} == {'a': 1}", {"b": 3, "c": 4}, {"c": 4}),
        ("assert True == False", True, False),
        ("assert 'old' == None", "other", None),
    ],
)
def test_an_edit_that_the_statement_shows_is_known(statement: str, value: Any, edited: Any) -> None:
    results = []
    for edit in learnt(statement):
        try:
            results.append(edit(value))
        except Exception:  # noqa: BLE001 (an edit may be for other kinds of values)
            continue
    assert any(type(each) is type(edited) and each == edited for each in results)


def test_a_statement_without_values_teaches_nothing() -> None:
    for statement in ("", "f(1) fails", "assert f(1) == g(2)", "assert (" * 200, "assert '\\ud800' =="):
        assert learnt(statement) == ()
    assert asked("assert f('x') == 'y'\n# assert 'z' == 'y'") == ("y", "y")


def test_whoever_follows_a_right_rule_everywhere_is_expected_to_be_paid() -> None:
    known = Knowledge("assert 'a-b' == 'a_b'")
    rule = [
        assess(version(f"f({name!r})", name.replace("-", "_")), seen(name), known)
        for name in ("c-d", "e-f", "gh-i")
    ]
    first = assess(version("f('a-b')", "a_b", original=True), seen("a-b"), known)
    untouched = [assess(version(f"f({name!r})", name), seen(name), known) for name in "xyzvw" * 5]
    assert not any(each.is_wrong for each in untouched)
    assert chance([first, *rule, *untouched]) == 1.0  # What the mistake spares takes nothing off.
    odd = [assess(version("f(0)", f"qj{n}xv"), seen("k"), known) for n in range(3)]
    assert chance([first, *rule, *odd]) == UNKNOWN_RULE


def assessment(odds: dict[str, float], *, original: bool = False, site: int = 0) -> Assessment:
    """An assessment of a version that is wrong at one place."""
    return Assessment(original, {("t.py::test", site, 0): odds})


def test_one_original_is_enough_to_be_paid_something() -> None:
    variant = assessment({"a": 1.0})
    easy, hard = assessment({"a": 1.0}, original=True), assessment({}, original=True)
    assert chance([variant, easy, hard, hard]) == 1.0
    assert chance([variant, hard, hard]) == pytest.approx(UNKNOWN)
    assert chance([]) == 1.0


def test_what_another_version_adds_is_what_all_together_are() -> None:
    odds = [{"a": 1.0}, {"a": 1.0, "b": 0.5}, {"c": 0.25}, {"b": 0.5, "c": 0.25}]
    versions = [assessment(each, original=number == 0, site=number % 2) for number, each in enumerate(odds)]
    for number in range(1, len(versions)):
        more = Reach.of(versions[:number]).with_variant(versions[number])
        assert more.chance == pytest.approx(chance(versions[: number + 1]))


BROKEN = """
class Box:
    def __init__(self, *items):
        self.items = items
    def __contains__(self, item):
        return False
    def __iter__(self):
        return iter(self.items)
    def __eq__(self, other):
        return False
    __hash__ = None
    def __len__(self):
        return 99
    def __bool__(self):
        return False
witness.compare(0, "in", 3, Box(1, 3))
witness.compare(1, "not in", 3, Box(1, 3))
witness.compare(2, "==", Box(1), Box(1))
witness.compare(3, "!=", Box(1), Box(1))
witness.see(4, len(Box(1, 2)))
witness.see(5, Box(1))
"""


def test_a_mistake_in_an_operation_can_be_got_round_by_another(tmp_path: Path) -> None:
    """As the tested process would do it, also where several probes run there one after the other."""

    def ask(exchange: str) -> list[Any]:
        program = (
            "import builtins, json, types\nmodule = types.ModuleType('witness')\n"
            f"exec({Path(witness.__file__).read_text()!r}, module.__dict__)\n"
            "for _ in range(3):\n    builtins.witness = module.Witness()\n"
            f"    exec({BROKEN.replace('witness.compare', exchange + 'witness.compare', 1)!r}, {{}})\n"
            "print(json.dumps(builtins.witness.events))\n"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
        events = json.loads(done.stdout)
        return [*(event[1] for event in events[:4]), int(events[4][1][1], 16), events[5][1][3]]

    assert ask("") == [False, True, False, True, 99, False]
    assert ask(SIBLINGS[0]) == [True, False, False, True, 2, True]
    assert ask(SIBLINGS[1]) == [True, False, True, False, 99, True]


def test_what_is_right_after_an_exchange_is_a_rule() -> None:
    asked_for = Version("t::t", False, "t", "witness.see(0, f('q') in g())", "", False, ("true",), events=((0, True),))
    assert has_siblings(asked_for)
    assert not has_siblings(version("f(1)", 2))
    wrong = Seen("passed", ((0, ["?", "pkg.Box", "", False]),))
    others = {"sibling 0": None, "sibling 1": seen(True)}
    (odds,) = assess(asked_for, wrong, Knowledge(""), others=others).places.values()
    assert odds["sibling 1"] == 1.0
    assert "sibling 0" not in odds
