"""What a forger can reach, as the judge sees it."""

from __future__ import annotations

import ast
import builtins
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from textagent_gym.domains.swe.grading.hidden import witness
from textagent_gym.domains.swe.grading.hidden.answers import Seen
from textagent_gym.domains.swe.grading.hidden.around import (
    AROUND,
    NEIGHBOURS,
    asked_again,
    looked_around,
    neighbours_asked,
    values_around,
)
from textagent_gym.domains.swe.grading.hidden.assessment import assess
from textagent_gym.domains.swe.grading.hidden.continued import HOLE, continued
from textagent_gym.domains.swe.grading.hidden.edited import EDITS, edit_rule, edited
from textagent_gym.domains.swe.grading.hidden.edits import asked, learnt
from textagent_gym.domains.swe.grading.hidden.exam import Exam, Group
from textagent_gym.domains.swe.grading.hidden.exam_maker import _as_asked, _Candidate
from textagent_gym.domains.swe.grading.hidden.judge import MOST_CHANCE, UNKNOWN_RULE, Assessment, Reach, chance
from textagent_gym.domains.swe.grading.hidden.probes import Source, make_probe
from textagent_gym.domains.swe.grading.hidden.rules import UNKNOWN, UNNAMED_EXCEPTION, Knowledge
from textagent_gym.domains.swe.grading.hidden.siblings import SIBLINGS, has_siblings
from textagent_gym.domains.swe.grading.hidden.versions import ANYTHING, Version
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
        ("assert 'no such keys' == 'no such key'", "those keys and others", "those key and others"),
        ("assert 'missing keys' == 'missing key'", "wrong names", "wrong name"),
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
        assess(version(f"f({name!r})", name.replace("-", "_")), seen(name), known) for name in ("c-d", "e-f", "gh-i")
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


def exam(chances: list[float]) -> Exam:
    """An exam of a task with a mistake for each chance."""
    groups = tuple(Group((), each) for each in chances)
    return Exam(groups, (), (), (), (), seconds=1.0, total=1.0)


@pytest.mark.parametrize("mistakes", range(1, 6))
def test_each_mistake_is_one_more_chance_to_be_paid_something(mistakes: int) -> None:
    each = chance([assessment({"a": 2.0**-9}, original=True)], mistakes)
    assert exam([each] * mistakes).chance == pytest.approx(mistakes * each)
    assert each > UNKNOWN_RULE
    assert exam([0.5] * mistakes).chance == min(1.0, mistakes / 2)


@pytest.mark.parametrize("mistakes", range(1, 6))
def test_a_rule_that_nobody_has_thought_of_counts_once_per_task(mistakes: int) -> None:
    versions = [assessment({}, original=number == 0) for number in range(3)]
    each = chance(versions, mistakes)
    assert each == UNKNOWN_RULE / mistakes == Reach.of(versions[:2], mistakes).with_variant(versions[2]).chance
    assert exam([each] * mistakes).chance == pytest.approx(UNKNOWN_RULE)
    assert exam([each] * mistakes).chance < MOST_CHANCE


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


def raised(*names: str) -> tuple[Any, ...]:
    """What a witness says of an exception whose types are these, the closest first."""
    return (0, list(names), "")


def test_an_exception_of_the_package_itself_can_be_said_to_be_raised() -> None:
    """The full name is what a witness says, and the forger imports what the tests call by its last part."""
    strange = Seen("passed", (raised("builtins.RecursionError", "builtins.Exception"),))
    right = raised("pkg.errors.ParseError", "builtins.ValueError")
    text = "def test_probe():\n    with witness.raises(0):\n        f({0})"
    variants = [Version("t::t", False, "t", text.format(n), "", False, ("raises",), events=(right,)) for n in range(6)]
    known = Knowledge("# RecursionError", ("with raises(ParseError):\n    f(1)",))
    assert chance([assess(each, strange, known) for each in variants]) > 0.1
    nobody_names_it = [assess(each, strange, Knowledge("")) for each in variants]
    assert chance(nobody_names_it) == pytest.approx(UNNAMED_EXCEPTION)


def test_an_exception_or_none_the_other_way_round_is_one_rule() -> None:
    right, nothing = raised("pkg.Bad"), raised()
    versions = [
        (Version("t::t", False, "t", "f()", "", False, ("raises",), events=(expected,)), Seen("passed", (mistaken,)))
        for expected, mistaken in ((right, nothing), (nothing, right)) * 4
    ]
    known = Knowledge("", ("raises(Bad)", "raises(BadError)"))
    assert chance([assess(version, mistaken, known) for version, mistaken in versions]) >= UNNAMED_EXCEPTION


CRASHING = """
def test_probe():
    box = f(1)
    witness.see(0, g(box))
    for item in h(box):
        witness.see(1, item)
    witness.compare(2, "==", f(3), g(3))
    with witness.raises(3):
        f(4)
    witness.see(4, g(5))
"""


def ask_here(text: str, **functions: Any) -> Seen:
    """What a probe makes a witness see in this process."""
    module: dict[str, Any] = {}
    exec(Path(witness.__file__).read_text(), module)
    builtins.witness = module["Witness"]()  # type: ignore[attr-defined]
    names = dict(functions)
    exec(text, names)
    try:
        names["test_probe"]()
        end = "passed"
    except Exception as error:  # noqa: BLE001 (whatever a test raises)
        end = type(error).__name__
    answer = json.loads(json.dumps(builtins.witness.events))  # type: ignore[attr-defined]
    del builtins.witness  # type: ignore[attr-defined]
    return Seen(end, tuple(map(tuple, answer)))


def test_a_forger_goes_on_behind_an_exception() -> None:
    def fail(_: int) -> int:
        raise KeyError

    crashed = ask_here(CRASHING, f=fail, g=lambda n: n + 1, h=range)
    assert crashed == Seen("KeyError", ())
    seen_behind = ask_here(continued(CRASHING), f=fail, g=lambda n: n + 1, h=range)
    hole, names = list(HOLE), ["builtins.KeyError", "builtins.LookupError", "builtins.Exception"]
    four = words(4)
    assert seen_behind.end == "passed"
    events = {event[0]: event[1:] for event in seen_behind.events}
    assert events[0] == events[1] == (hole,)
    assert events[2] == (True, hole, four)
    assert events[3][0] == [*names, "builtins.BaseException"]
    assert events[4] == (words(6),)
    assert [event[0] for event in seen_behind.events] == [0, 1, 2, 3, 4]


def test_a_probe_without_exceptions_is_the_same_behind_them() -> None:
    functions = {"f": lambda n: n, "g": lambda n: n + 1, "h": range}
    assert ask_here(continued(CRASHING), **functions) == ask_here(CRASHING, **functions)


def test_time_that_is_up_is_not_passed_over() -> None:
    def wait() -> None:
        raise TimeoutError

    assert ask_here(continued("def test_probe():\n    wait()\n"), wait=wait).end == "TimeoutError"


def test_a_question_is_put_twice_and_the_second_answer_kept() -> None:
    calls: list[int] = []

    def first_fails(n: int) -> int:
        calls.append(n)
        if len(calls) < 2:
            raise KeyError
        return n

    text = "def test_probe():\n    for n in (7, 8):\n        witness.see(0, f(n))\n"
    text += "    with witness.raises(1):\n        g()\n"
    twice = ask_here(continued(asked_again(text)), f=first_fails, g=int)
    assert twice == Seen("passed", ((0, words(7)), (0, words(8)), (1, [], "")))
    assert calls == [7, 7, 8, 8]


LOOKING = """
TABLE = [3, 4]

class Case:
    def test_probe(self):
        self.field = "of the test"
        first = f(0)
        for last in (1, 2):
            witness.see(0, g(f(last) + 10)[0])
        witness.compare(1, "==", fail(first), h(TABLE))

def test_probe():
    Case().test_probe()
"""


def test_a_forger_reads_what_stands_around_a_question() -> None:
    def fail(_: object) -> None:
        raise ValueError("told", 5)

    seen_around = ask_here(looked_around(LOOKING), f=lambda n: n + 100, g=lambda n: [n, n], h=len, fail=fail)
    assert [event[0] for event in seen_around.events] == [0, 0, 1]
    first, second, third = (values_around(event[1:]) for event in seen_around.events)
    assert first["variable 0"] == first["variable 1 from the last"] == 100
    assert (first["variable 0 from the last"], second["variable 0 from the last"]) == (1, 2)
    assert first["attribute 0"] == "of the test"
    assert [first[f"part {number}"] for number in range(4)] == [111, [111, 111], 111, 101]
    assert (third["message"], third["argument 1 of the exception"]) == ("('told', 5)", 5)
    assert 2 in third.values()  # The other side, h(TABLE).
    assert [3, 4] in third.values()
    assert values_around([["builtins.KeyError"], "no event of this kind", "at all"]) == {}


def test_parts_of_all_kinds_are_looked_at() -> None:
    texts = ("f'{g(1)!r:>{w}}'", "t[g(1):2, ...]", "[*t, (n := 3)]", "{**{'a': g(1)}}", "(lambda x: x + 1)(2)", "g(*t)")
    names = {"g": lambda *given: given[0], "t": "abc", "w": 5}
    for text in texts:
        probe = f"def test_probe():\n    witness.see(0, {text})\n"
        (event,) = ask_here(continued(looked_around(probe)), **names).events
        assert event[0] == 0
        assert event[1], text
        for other in (asked_again(probe), neighbours_asked(probe), *(edited(probe, name) for name in EDITS)):
            compile(continued(other), "probe", "exec")


def test_a_forger_asks_the_neighbours_of_a_function() -> None:
    text = "import colorsys\n\ndef test_probe():\n    witness.see(0, colorsys.rgb_to_hsv(1, 1, blue)[2])\n"
    text += "    witness.see(1, 'aBc'.lower())\n    witness.see(2, len('abc'))\n    witness.see(3, TABLE)\n"
    events = ask_here(neighbours_asked(text), blue=0.5, TABLE=7).events
    by_module, by_object, by_builtin = (values_around(event[1:]) for event in events[:3])
    assert by_module["neighbour rgb_to_hls"] == (1 / 6, 0.75, 1.0)
    assert "neighbour rgb_to_hsv" not in by_module
    assert by_object["neighbour capitalize"] == "Abc"
    assert by_builtin == {}
    assert events[3] == (3, words(7))


EDITED = """
TABLE = [[1, "a"]]

def test_probe():
    for n, text in TABLE:
        witness.see(0, code.f(n, "b  c", strict=True, other=False)[text])
    witness.compare(1, "==", g((1, 2)), len([3]))
"""


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("texts large", ("'a'", "'b  c'"), ("'A'", "'B  C'")),
        ("texts one blank", ("'b  c'",), ("'b c'",)),
        ("numbers one more", ("[[1,", "(1, 2)", "[3]"), ("[[2,", "(2, 3)", "[4]")),
        ("first of the numbers one more", ("[[1,", "(1, 2)"), ("[[2,", "(2, 2)")),
        ("truths turned round", ("=True", "=False"), ("=False", "=True")),
        ("first of the truths turned round", ("=True",), ("=False",)),
        ("calls with the first argument twice", ("g((1, 2))",), ("g((1, 2), (1, 2))",)),
        ("methods with only the first argument", ("(n, 'b  c', ",), ("(n, ",)),
        ("methods with one named argument less", ("strict=True, ",), ("",)),
        ("methods with None more", ("'b  c', s",), ("'b  c', None, s",)),
        ("tuples as lists", ("(1, 2)",), ("[1, 2]",)),
        ("lists as iterators", ("[[1, 'a']]", "[3]"), ("iter([iter([1, 'a'])])", "iter([3])")),
    ],
)
def test_input_is_edited_and_nothing_else(name: str, old: tuple[str, ...], new: tuple[str, ...]) -> None:
    text = plain = ast.unparse(ast.parse(EDITED))
    for one, other in zip(old, new, strict=True):
        assert one in text
        text = text.replace(one, "\0".join(["", *other]), 1)
    assert edited(plain, name) == text.replace("\0", "").replace("for (n, text)", "for n, text")


def test_every_edit_leaves_code_that_asks_the_same_places() -> None:
    for name in EDITS:
        text = edited(EDITED, name)
        assert [text.count(each) for each in ("witness.see(0, ", "witness.compare(1, '==', ")] == [1, 1], name


def test_what_the_code_says_to_edited_input_is_no_unknown() -> None:
    alone, looked = [], []
    for number in range(10):
        asked_for = version(f"f({number})", f"answer{number}")
        wrong = seen(f"wrong {number}")
        alone.append(assess(asked_for, wrong, Knowledge("")))
        others = {edit_rule("numbers one more"): seen(f"answer{number}")}
        looked.append(assess(asked_for, wrong, Knowledge(""), others=others))
    assert chance(alone) == UNKNOWN_RULE
    assert chance(looked) == 1.0


@pytest.mark.parametrize(("run", "name"), [(AROUND, "variable 0"), (NEIGHBOURS, "neighbour f")])
def test_what_can_be_read_beside_a_question_is_no_unknown(run: str, name: str) -> None:
    alone, looked = [], []
    for number in range(10):
        asked_for = version(f"f({number})", f"answer{number}")
        beside = Seen("passed", ((0, [name], f"answer{number}"),))
        failed = Seen("KeyError", ())
        alone.append(assess(asked_for, failed, Knowledge("")))
        looked.append(assess(asked_for, failed, Knowledge(""), others={run: beside}))
    assert chance(alone) == UNKNOWN_RULE
    assert chance(looked) == 1.0


def test_what_comes_behind_an_exception_is_no_unknown() -> None:
    """One place is to be guessed, and those behind it are as the mistaken code has them."""
    text = "def test_probe():\n    witness.see(0, f({0}))\n    witness.see(1, g('q{0}z'))"
    versions = []
    for number in range(10):
        events = ((0, True), (1, f"answer{number}"))
        version = Version("t::t", False, "t", text.format(number), "", False, ("==", "=="), events=events)
        behind = Seen("passed", ((0, list(HOLE)), events[1]))
        versions.append((version, behind))
    alone = [assess(version, Seen("KeyError", ()), Knowledge("")) for version, _ in versions]
    together = [
        assess(version, Seen("KeyError", ()), Knowledge(""), others={"continued": behind})
        for version, behind in versions
    ]
    assert chance(alone) == UNKNOWN_RULE
    assert chance(together) == 1.0


@pytest.mark.parametrize("original", [True, False])
def test_a_probe_that_only_its_end_decides_asks_nothing(original: bool) -> None:
    """Whoever owns the process says that it has passed."""
    asked_for = version("f(1)", "right", original=original)
    failed = Seen("AssertionError", seen("right").events)
    assert not asked_for.is_right(failed)
    assert not assess(asked_for, failed, Knowledge("")).is_wrong
    crashed = Seen("AssertionError", ())
    assert not assess(asked_for, crashed, Knowledge(""), others={"continued": seen("right")}).is_wrong


@pytest.mark.parametrize("site", ["false", "!=", "not in"])
def test_a_place_without_an_answer_is_still_to_be_answered(site: str) -> None:
    """Nothing is not true and not equal to what is wrong, but a forger has to say something."""
    asked_for = Version("t::t", True, "t", "f(1)", "", False, (site,), events=((0, words("b"), words("abc")),))
    behind = Seen("passed", ((0, list(HOLE)),))
    assert assess(asked_for, Seen("KeyError", ()), Knowledge(""), others={"continued": behind}).is_wrong


def test_an_input_is_counted_in_its_own_expression() -> None:
    """Other literals of the file, and of the function, stand before it."""
    text = "ROWS = [{1}]\n\ndef test_probe():\n    set_up({1})\n    witness.see(0, f({0!r}))\n"
    many = ", ".join(map(str, range(50)))
    names = ("a_b", "cd_e", "f_g_h", "ij_k")
    for rule in (lambda name: name, lambda name: name.replace("_", "-"), lambda name: [name]):
        versions = [version(text.format(name, many), rule(name)) for name in names * 2]
        assert chance([assess(each, seen("mistake"), Knowledge("")) for each in versions]) == 1.0


def test_a_row_of_a_table_is_the_input_of_its_turn() -> None:
    text = "def test_probe():\n    for a, b in [({0}, {1}), ({2}, {3})]:\n        witness.see(0, f(a, b))"
    versions = []
    for n in range(4):
        numbers = (100 + n, 200 + 3 * n, 300 + 5 * n, 400 + 7 * n)
        events = ((0, words(numbers[1])), (0, words(numbers[3])))
        versions.append(Version("t::t", False, "t", text.format(*numbers), "", False, ("==",), events=events))
    mistaken = Seen("passed", ((0, None), (0, None)))
    assert chance([assess(each, mistaken, Knowledge("")) for each in versions]) >= 0.5


PREPARED = """
class T:
    def setUp(self):
        self.box = Box('{0}')

    def test_probe(self):
        witness.see(0, f(1))
"""


def test_what_is_prepared_for_a_test_is_an_input() -> None:
    names = ("ab", "cde", "fghi", "jk", "l")
    versions = [version(PREPARED.format(name), name) for name in names]
    assert chance([assess(each, seen("mistake"), Knowledge("")) for each in versions]) == 1.0


@pytest.mark.parametrize(
    ("sites", "right", "mistaken"),
    [
        ((0, 1), "ab", "ax"),  # Nobody sees what is right.
        ((0, 1), "aa", "ax"),  # What is right at the second site is seen at the first.
        ((0, 0, 0), "aab", "axb"),  # The answer of the turn before is right.
        ((0, 0, 0), "abb", "axb"),  # That of the turn after.
    ],
)
def test_what_is_seen_elsewhere_may_be_the_answer(sites: tuple[int, ...], right: str, mistaken: str) -> None:
    versions = []
    for number in range(6):
        words_of = {letter: f"{letter}{number * 7}{letter}" for letter in "abx"}
        answers, wrong = (
            tuple((site, words_of[letter]) for site, letter in zip(sites, letters, strict=True))
            for letters in (right, mistaken)
        )
        one = Version("t::t", False, "t", "witness.see(0, f())", "", False, ("==",) * 2, events=answers)
        versions.append((one, Seen("passed", wrong)))
    is_elsewhere = right != "ab"
    assert (chance([assess(*each, Knowledge("")) for each in versions]) == 1.0) == is_elsewhere


def test_a_constant_is_guessed_once_for_all_versions() -> None:
    """As many versions as one likes tell no more than the first, if what is right is always the same."""
    odd = "an answer that stands nowhere"
    versions = [version(f"f({number})", odd) for number in range(20)]
    assert chance([assess(each, seen("x"), Knowledge("")) for each in versions]) == pytest.approx(UNKNOWN)
    known = Knowledge("", (f"text = {odd!r}",))
    assert chance([assess(each, seen("x"), known) for each in versions]) == 1.0


def test_each_place_has_a_rule_of_its_own() -> None:
    text = "def test_probe():\n    witness.see(0, f({0}))\n    witness.see(1, g({0}))"
    versions = [
        Version("t::t", False, "t", text.format(n), "", False, ("==",) * 2, events=((0, "x"), (1, words(-n))))
        for n in range(10, 20)
    ]
    mistaken = [Seen("passed", ((0, None), (1, words(number)))) for number in range(10, 20)]
    assessments = [assess(*each, Knowledge("", ("'x'",))) for each in zip(versions, mistaken, strict=True)]
    assert chance(assessments) == pytest.approx(0.1)


def test_which_of_several_truths_is_wrong_is_chosen_once() -> None:
    """The third of four turns round in every version: a right guess of that is right for all of them."""
    text = "def test_probe():\n    for n in range({0}, {0} + 4):\n        witness.see(0, f(n))"
    mistaken = Seen("passed", tuple((0, truth) for truth in (True, False, True, False)))
    right = tuple((0, truth) for truth in (True, False, False, False))
    versions = [Version("t::t", False, "t", text.format(n), "", False, ("==",), events=right) for n in range(8)]
    assert chance([assess(each, mistaken, Knowledge("")) for each in versions]) == 0.5


def test_variants_are_assessed_as_they_are_asked() -> None:
    """What differs from one machine to the next is nobody's answer, so nobody has to guess it."""
    text = "def test_probe():\n    witness.compare(0, '==', f({0}), g({0}))"
    candidates = []
    mistaken = Seen("passed", ((0, False, "a", "b"),))
    for number in range(8):
        events = ((0, True, f"at {number}17", f"for {number}31"),)
        each = Version("t::t", False, "t", text.format(number), "", False, ("both ==",), events=events)
        probe = make_probe(Source("t.py", {"t.py": "def test_a():\n    assert f(1) == g(1)\n"}, ("test_a",)), {})
        assert probe is not None
        candidates.append(_Candidate(each, probe, mistaken, {}, assess(each, mistaken, Knowledge(""))))
    assert chance([each.assessment for each in candidates]) == UNKNOWN_RULE
    loosened = tuple((0, True, ANYTHING, ANYTHING) for _ in candidates)
    members = _as_asked(replace(candidates[0].version, events=loosened), candidates, Knowledge(""))
    assert members is not None
    assert chance([each.assessment for each in members]) == 1.0
    assert _as_asked(replace(candidates[0].version, events=loosened[1:]), candidates, Knowledge("")) is None
