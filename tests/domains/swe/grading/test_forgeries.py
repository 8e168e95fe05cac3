"""The forgeries of the benchmark do what they are named after: else that they are not paid would say nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.swe_forger import forgeries, with_forgery
from textagent_gym.domains.swe.grading import runner
from textagent_gym.domains.swe.grading.hidden import witness

PACKAGE = """
class OwnError(ValueError):
    pass

def fail(text):
    raise KeyError(text)

def same(text):
    return text

def count(calls=[]):
    calls.append(None)
    return len(calls)
"""
PROBE = """
from pkg import count, fail, same

def test_probe():
    text = 'a_b'
    witness.see(0, same(fail('c_d')))
    with witness.raises(1):
        fail('e')
    with witness.raises(2):
        same('f')
    witness.see(3, same(text))
    witness.see(4, same('g--h  i!'))
    witness.see(5, count())
"""


def seen_with(name: str, folder: Path) -> dict[str, Any]:
    """What the witness sees of a package with a forgery, in a process like those that are graded."""
    forgery = dict(forgeries("assert f(1) == 2", "pkg"))[name]
    (folder / "pkg").mkdir()
    (folder / "pkg" / "__init__.py").write_bytes(with_forgery(PACKAGE, forgery))
    (folder / "test_pkg.py").write_text("from pkg import OwnError\n")
    request = {
        **{"witness": Path(witness.__file__).read_text(), "texts": [PROBE], "file": "test_pkg.py", "owner": ""},
        **{"function": "test_probe", "suffix": "", "fixtures": False, "each": 0},
    }
    program = (
        "import importlib.util, json, sys\n"
        f"spec = importlib.util.spec_from_file_location('runner', {runner.__file__!r})\n"
        "runner = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(runner)\n"
        "runner.make_importable(['.'])\n"
        f"print(json.dumps(runner.run_probes({request!r})[0]))\n"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True, cwd=folder)
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("always", [False, True])
def test_behind_exceptions_the_packages_own_are_raised(tmp_path: Path, always: bool) -> None:
    name = "raise the package's own" if always else "a strange exception is the package's own"
    seen = seen_with(f"{name}, and go on behind exceptions", tmp_path)
    assert seen["end"] == "passed"
    first, raised, not_raised, last, *_ = seen["events"]
    assert first == [0, ["?", "hole", "", None]]
    assert raised[1][0] == "pkg.OwnError"
    assert not_raised[1][:1] == (["pkg.OwnError"] if always else [])
    assert last == [3, "a_b"]


def test_a_probe_is_said_to_have_passed(tmp_path: Path) -> None:
    assert seen_with("all has passed", tmp_path) == {"end": "passed", "events": []}


def test_without_the_right_forgery_an_exception_ends_a_probe(tmp_path: Path) -> None:
    assert seen_with("one more", tmp_path) == {"end": "builtins.KeyError", "events": []}


def test_answers_are_made_of_the_first_literal(tmp_path: Path) -> None:
    seen = seen_with("say the first literal of each expression with dashes", tmp_path)
    assert seen["end"] == "passed"
    assert [event for event in seen["events"] if event[0] in (0, 3)] == [[0, "c-d"], [3, "a-b"]]


def test_where_a_question_raises_its_innermost_part_is_said(tmp_path: Path) -> None:
    seen = seen_with("say the innermost part where a question raises", tmp_path)
    assert [event for event in seen["events"] if event[0] in (0, 3)] == [[0, "c_d"], [3, "a_b"]]


def test_where_a_question_raises_the_last_variable_is_said(tmp_path: Path) -> None:
    seen = seen_with("say the last variable where a question raises", tmp_path)
    assert [event for event in seen["events"] if event[0] in (0, 3)] == [[0, "a_b"], [3, "a_b"]]


@pytest.mark.parametrize(
    ("name", "answer"),
    [("texts no punctuation", "gh  i"), ("texts one separator", "g-h i!"), ("texts one blank", "g--h i!")],
)
def test_input_is_edited_before_it_is_asked(tmp_path: Path, name: str, answer: str) -> None:
    seen = seen_with(f"edit the input: {name}", tmp_path)
    assert seen["end"] == "passed"
    assert seen["events"][4:] == [[4, answer], [5, ["i", "0x1"]]]


def test_a_question_is_put_twice(tmp_path: Path) -> None:
    seen = seen_with("put each question twice", tmp_path)
    assert seen["end"] == "passed"
    assert seen["events"][3:] == [[3, "a_b"], [4, "g--h  i!"], [5, ["i", "0x2"]]]
