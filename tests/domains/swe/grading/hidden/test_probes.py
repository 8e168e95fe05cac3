"""A probe asks what a test asks, and holds nothing of what the test expects."""

from __future__ import annotations

import ast

import pytest

from textagent_gym.domains.swe.grading.hidden.answers import Seen
from textagent_gym.domains.swe.grading.hidden.exam_maker import _Candidate, _together
from textagent_gym.domains.swe.grading.hidden.judge import Assessment
from textagent_gym.domains.swe.grading.hidden.probes import NAME, Source, make_probe
from textagent_gym.domains.swe.grading.hidden.versions import Version

HEAD = """
import math, pytest, unittest
from pkg import f, Thing
from .common import assert_equal, assert_in
TABLE = [("in", "OUT-OF-TABLE")]
EXPECTED = "EXPECTED-TEXT"

def helper(x):
    return x + 1
"""


def probe(body: str, *, path: tuple[str, ...] = ("test_it",), parameters: dict[str, str] | None = None) -> str:
    """The text of the probe's function, or of its class."""
    texts = {
        "t.py": HEAD + body,
        "common.py": "class Mixin:\n    def test_it(self):\n        assert g(self) == 'SECRET'\n",
    }
    made = make_probe(Source("t.py", texts, path), parameters or {})
    assert made is not None
    return ast.unparse(ast.fix_missing_locations(made.function))


@pytest.mark.parametrize(
    ("body", "asked", "sites"),
    [
        ("assert f(1) == 'SECRET'", "witness.see(0, f(1))", ("==",)),
        ("assert 'SECRET' == f(1)", "witness.see(0, f(1))", ("==",)),
        ("assert f(1) > 12345", "witness.see(0, f(1))", (">",)),
        ("assert 12345 > f(1)", "witness.see(0, f(1))", ("<",)),
        ("assert 'SECRET' in f(1)", "witness.see(0, f(1))", ("contains",)),
        ("assert f(1) in ('SECRET', 'other')", "witness.see(0, f(1))", ("in",)),
        ("assert f(1) is None", "witness.see(0, f(1))", ("is",)),
        ("assert f(1) == EXPECTED", "witness.see(0, f(1))", ("==",)),
        ("assert f(1) == pytest.approx(12345)", "witness.see(0, f(1))", ("==",)),
        ("assert f(1)", "witness.call(0, f, 1)", ("true",)),
        ("assert not f.g", "witness.see(0, f.g)", ("false",)),
        ("assert f.a and f.b == 'SECRET'", "witness.see(0, f.a)\n    witness.see(1, f.b)", ("true", "==")),
        ("assert f(1) == f(2)", "witness.compare(0, '==', f(1), f(2))", ("both ==",)),
        ("assert 1 == 1", "witness.see(0, None)", ("reached",)),
        ("result = f(1)\n    expected = '-'.join(['SECRET', 'x'])\n    print(expected)\n    assert result == expected",
         "result = f(1)\n    witness.see(0, result)", ("==",)),
        ("expected = [1, 'SECRET']\n    assert_equal(expected, f(1))", "witness.see(0, f(1))", ("==",)),
        ("assert_in(f(1), ['SECRET'])", "witness.see(0, f(1))", ("in",)),
        ("with pytest.raises(ValueError, match='SECRET'):\n        f(1)",
         "with witness.raises(0):\n        f(1)", ("raises",)),
        ("pytest.raises(ValueError, f, 1)", "with witness.raises(0):\n        f(1)", ("raises",)),
        ("for x in (1, 2):\n        assert f(x) == 'SECRET'",
         "for x in (1, 2):\n        witness.see(0, f(x))", ("==",)),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_expected_is_taken_out(body: str, asked: str, sites: tuple[str, ...]) -> None:
    texts = {"t.py": f"{HEAD}\ndef test_it():\n    {body}\n"}
    made = make_probe(Source("t.py", texts, ("test_it",)), {})
    assert made is not None
    text = ast.unparse(ast.fix_missing_locations(made.function))
    assert text == f"def {NAME}():\n    {asked}"
    assert "SECRET" not in text
    assert "12345" not in text
    assert made.sites == sites


def test_only_variants_of_one_function_are_put_together() -> None:
    """What is seen is told by the number of its site, and those of another function are others."""
    found = []
    for name in ("test_one", "test_other"):
        text = "from pkg import f\n\ndef test_one():\n    assert f(1) == 1\n\ndef test_other():\n    assert f(2) > 1\n"
        made = make_probe(Source("t.py", {"t.py": text}, (name,)), {})
        assert made is not None
        version = Version(f"t.py::{name}", False, "t.py", made.text, made.owner, False, made.sites)
        found += [_Candidate(version, made, Seen("passed", ()), {}, Assessment(False, {}))] * 2
    assert found[0].probe.surroundings == found[2].probe.surroundings
    assert [{each.version.function for each in group} for group in _together(found)] == [
        {"t.py::test_one"},
        {"t.py::test_other"},
    ]


def test_tables_that_only_other_tests_read_are_taken_out() -> None:
    text = (
        HEAD + "pytestmark = []\nSECRETS = [('a', 'SECRET')]\nMORE = SECRETS + [('b', 'SECRET')]\nINPUT = ['kept']\n"
        "LOADED = f('kept too')\n\n@pytest.mark.parametrize('one, other', MORE)\ndef test_it(one, other):\n"
        "    assert f(one, INPUT) == other\n"
    )
    made = make_probe(Source("t.py", {"t.py": text}, ("test_it",)), {"one": "'a'", "other": "'SECRET'"})
    assert made is not None
    assert not any(word in made.text for word in ("SECRET", "MORE", "TABLE", "EXPECTED"))
    assert all(word in made.text for word in ("pytestmark", "['kept']", "'kept too'", "helper"))


@pytest.mark.parametrize(
    "body",
    [
        "found = []\n    f(found)\n    assert found == [1]",  # What was plain has been changed by the tested code.
        "found = {}\n    found['x'] = f(1)\n    assert found == {'x': 1}",
        "count = 0\n    for x in f(1):\n        count += 1\n    assert count == 3",  # It decides how often.
        "count = 0\n    if f(1):\n        count = 2\n    assert count == 2",
        "count = 0\n    try:\n        f(1)\n    except ValueError:\n        count = 2\n    assert count == 2",
        "def g():\n        nonlocal_list.append(1)\n    nonlocal_list = []\n    f(g)\n    assert nonlocal_list == [1]",
    ],
)
def test_what_the_tested_code_has_a_part_in_is_asked(body: str) -> None:
    text = probe(f"\ndef test_it():\n    {body}\n")
    assert "witness.see(0, " in text
    assert "witness.see(0, None)" not in text


def test_parameters_that_are_only_expected_are_gone() -> None:
    text = probe(
        '\n@pytest.mark.parametrize("a,b", TABLE)\ndef test_it(a, b):\n    """The SECRET."""\n    assert f(a) == b\n',
        parameters={"a": "'in'", "b": "'SECRET'"},
    )
    assert text == f"def {NAME}():\n    a = 'in'\n    witness.see(0, f(a))"


def test_methods_keep_their_class_and_nothing_else_that_is_a_test() -> None:
    body = (
        "\nclass Test(unittest.TestCase):\n    def setUp(self):\n        self.x = 1\n"
        "    def test_it(self):\n        self.assertEqual(f(self.x), 'SECRET')\n"
        "        with self.assertRaisesRegex(KeyError, 'SECRET'):\n            f()\n"
        "    def test_other(self):\n        assert f(2) == 'OTHER'\n\ndef test_third():\n    assert f(3) == 'THIRD'\n"
    )
    made = make_probe(Source("t.py", {"t.py": HEAD + body}, ("Test", "test_it")), {})
    assert made is not None
    text = made.text
    assert "self.x = 1" in text
    assert "witness.see(0, f(self.x))" in text
    assert not any(word in text for word in ("SECRET", "OTHER", "THIRD", "test_other", "test_third"))
    assert made.owner == "Test"


def test_inherited_methods_are_found_in_other_files() -> None:
    files = {
        "tests/__init__.py": "from pkg import g\nclass Mixin:\n    def test_it(self):\n        assert g(self) == 'X'",
        "tests/test_t.py": "import unittest\nfrom . import Mixin\nclass Test(unittest.TestCase, Mixin):\n    x = 1\n",
    }
    made = make_probe(Source("tests/test_t.py", files, ("Test", "test_it")), {})
    assert made is not None
    assert "from . import g" in made.text
    assert "witness.call(0, g, self)" not in made.text
    assert "witness.see(0, g(self))" in made.text
    assert "'X'" not in made.text


def test_a_probe_with_keys_sees_what_is_expected() -> None:
    source = Source(
        "t.py",
        {"t.py": f"{HEAD}\ndef test_it():\n    expected = 'SECRET'\n    assert f(1) == expected\n"},
        ("test_it",),
    )
    made = make_probe(source, {}, with_keys=True)
    assert made is not None
    assert "witness.key(0, f(1), expected)" in made.text


def test_an_unknown_test_has_no_probe() -> None:
    for path in (("test_that",), ("Test", "test_it"), ("A", "B", "test_it")):
        assert make_probe(Source("t.py", {"t.py": HEAD}, path), {}) is None
