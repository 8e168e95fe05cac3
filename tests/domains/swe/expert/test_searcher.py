"""The expert that searches: what it can repair, and what it leaves alone."""

from __future__ import annotations

import ast
from pathlib import Path

import gymnasium
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.domains.swe.conftest import task_with
from textagent_gym.domains.swe.expert.repairs import repairs
from textagent_gym.domains.swe.expert.searcher import Expectation, Searcher, expectations
from textagent_gym.domains.swe.expert.trial.problem import free_names, understood
from textagent_gym.domains.swe.mutants.mutations import Mutation, mutations
from textagent_gym.domains.swe.mutants.recipe import Recipe
from textagent_gym.domains.swe.mutants.tasks import BuiltTasks
from textagent_gym.domains.swe.tools import TOOLS, ActionFormat, parse
from textagent_gym.errors import UnsupportedOperationError
from textagent_gym.tasks import Task

SUBMIT = "```bash\nsubmit\n```"


def play(env: gymnasium.Env[str, str], searcher: Searcher, task: Task) -> tuple[bool, int]:
    """Whether it solves a task, and in how many turns."""
    said, info = env.reset(options={"task": task.id})
    searcher.observe(None, said)
    for turn in range(1, 51):
        action = searcher.action()
        assert searcher.action() == action
        said, _, terminated, truncated, info = env.step(action)
        assert info["valid_action"]
        if terminated or truncated:
            return bool(info["success"]), turn
        searcher.observe(action, said)
    raise AssertionError("it has not ended")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("a < b", "a <= b"),
        ("a // b", "a % b"),
        ("a * b", "a / b"),
        ("a = b", "a += b"),
        ("a or b", "a and b"),
        ("not (a)", "a"),
        ("a[1 + 1:]", "a[1:]"),
        ("a[-1]", "a[0]"),
        ("a[3]", "a[4]"),
        ("a(True)", "a(False)"),
        ("a.rstrip()", "a.lstrip()"),
        ("a.setdefault(b)", "a.update(b)"),
        ("a(c, b)", "a(b, c)"),
    ],
)
def test_what_undoes_a_mistake_is_among_the_repairs(wrong: str, right: str) -> None:
    statement = "{}" if " = " in wrong else "if {}: pass"
    for indent in ("", "    "):
        code = f"{indent}def f(a, b, c):\n{indent}    {statement.format(wrong)}\n"
        wanted = f"{indent}def f(a, b, c):\n{indent}    {statement.format(right)}\n"
        found = [Mutation("", one.start, one.end, one.text).apply(code) for one in repairs(code)]
        assert any(_same(text, wanted) for text in found)


def _same(one: str, other: str) -> bool:
    try:
        return ast.dump(ast.parse(f"if 1:\n {one}")) == ast.dump(ast.parse(f"if 1:\n {other}"))
    except SyntaxError:
        return one == other


def test_code_that_looks_like_a_mistake_comes_first() -> None:
    code = "def f(a):\n    try:\n        return a + 1\n    except ZeroDivisionError:\n        return a < 2\n"
    best = repairs(code)[0]
    assert code[best.start : best.end] == "ZeroDivisionError"
    code = "def f(a, b=False):\n    b = a if b is None else b\n    return a + b\n"
    assert repairs(code)[0].text == "None"
    assert repairs("this is no Python") == []
    assert repairs("") == []


def test_what_a_statement_says() -> None:
    text = (
        "... is in the comments:\n\n    assert f(1) == 2\n    # assert 3 == 2\n    # +  where 3 = f(1)\n\n"
        "    # KeyError: 1\n\nFind the cause in ..."
    )
    assert expectations(text) == (
        Expectation("assert f(1) == 2", ("assert 3 == 2", "+  where 3 = f(1)")),
        Expectation("", ("KeyError: 1",)),
    )
    assert expectations("Something is wrong.") == ()


def test_lines_that_go_on_elsewhere_are_understood_as_far_as_they_go() -> None:
    def said(line: str, *outcome: str) -> str:
        found = understood(line, list(outcome))
        return "" if found is None else ast.unparse(ast.fix_missing_locations(found))

    assert said("assert f(1) == 2", "assert 3 == 2") == "assert f(1) == 2"
    assert said("assert (list(f([1])) ==", "TypeError: no") == "list(f([1]))"
    assert said("assert f(1) == {", "assert {1: 3} == {1: 2}") == "assert f(1) == {1: 2}"
    assert said("assert f(1) == {", "AssertionError: assert {1: ...3} == {1: 2}") == ""
    assert said("assert f([", "TypeError: no") == "f(unseen)"
    assert said("assert f(", "assert [2] == [1]") == "assert f(unseen) == [1]"
    assert said("with f(", "TypeError: no") == ""
    statement = understood("assert f(a) == [b for b in c if len(b)]", [])
    assert statement is not None
    assert free_names(statement) == {"f", "a", "c"}


@settings(max_examples=60)
@given(st.lists(st.text(max_size=200), min_size=1, max_size=60), st.sampled_from(["bash", "functions", "editor"]))
def test_it_answers_any_text_and_ends_within_its_turns(texts: list[str], form: ActionFormat) -> None:
    searcher = Searcher(form, turns=10)
    searcher.observe(None, texts[0])
    answers = (
        'ANSWER {"places": [["a.py", 1, 2, 30, 1.0]], "tests": 1}',
        "<<< 0\nx = 1\n>>>",
        'ANSWER {"improvements": 3}',
    )
    for turn, text in enumerate([*answers, *texts, *["ANSWER []"] * 10]):
        call = parse(searcher.action(), TOOLS["shell" if form == "bash" else "all"], form)
        if call.tool == "submit":
            break
        assert turn < 9
        searcher.observe(searcher.action(), text)
    else:
        raise AssertionError("it has not ended")


@settings(max_examples=60)
@given(st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=7)))
def test_it_answers_any_answer_of_its_programs(value: object) -> None:
    import json

    for key in ("places", "improvements", "done", "tests"):
        searcher = Searcher(turns=10)
        searcher.observe(None, "")
        for _ in range(10):
            if searcher.action() == SUBMIT:
                break
            searcher.observe(searcher.action(), "ANSWER " + json.dumps({"tests": 1, key: value}))
        assert searcher.action() == SUBMIT


def test_it_watches_somebody_else_play() -> None:
    searcher = Searcher(turns=5)
    searcher.observe("```bash\nls\n```", "a.py")
    assert searcher.action() == SUBMIT
    searcher.observe(None, "Something is wrong.")
    first = searcher.action()
    searcher.observe("```bash\nls\n```", "a.py")
    assert searcher.action() == first != SUBMIT


@pytest.mark.parametrize(
    ("mistake", "path", "options"),
    [
        pytest.param("not (last is None)", "measures/intervals.py", {}, marks=pytest.mark.slow),
        ("    started = True", "measures/durations.py", {"tools": "all", "action_format": "editor"}),
        ("not (11 <=", "measures/numerals.py", {"tools": "all"}),
    ],
)
def test_it_repairs_mistakes_of_one_token(make, tasks: BuiltTasks, mistake: str, path: str, options: dict) -> None:
    env = make(**options)
    env.reset()
    searcher = env.unwrapped.expert()
    solved, turns = play(env, searcher, task_with(tasks, path, mistake))
    assert searcher.has_repaired
    assert solved
    assert turns <= 12


def test_it_gives_up_where_a_function_is_missing(make, tasks: BuiltTasks, tmp_path: Path) -> None:
    repository = tasks.world(tasks.task("train", 0)).repository
    path = "measures/numerals.py"
    mistake = next(
        mutation
        for mutation in mutations((repository.root / path).read_text())
        if mutation.kind == "function" and "ordinal" in mutation.text
    )
    failing = tuple(test for test in repository.tests if "::test_ordinal[" in test)
    recipe = Recipe("0123456789", repository.package.slug, path, mistake, failing, "    # NotImplementedError: ordinal")
    file = tmp_path / "recipes.jsonl"
    file.write_text(recipe.to_json())
    own = BuiltTasks(("measures",), recipes=file)
    split = next(split for split in own.splits if own.size(split))
    env = make(recipes=str(file), split=split)
    searcher = Searcher()
    assert play(env, searcher, own.task(split, 0)) == (False, 1)
    assert not searcher.has_repaired


def test_it_gives_up_where_it_finds_nothing_to_repair(make, tasks: BuiltTasks) -> None:
    env = make(command_timeout=3.0)
    searcher = Searcher(turns=8, seconds=1.5)
    solved, turns = play(env, searcher, task_with(tasks, "measures/durations.py", "            pass"))
    assert not solved
    assert turns <= 8


def test_it_needs_a_shell(make) -> None:
    env = make(tools="edit")
    env.reset()
    with pytest.raises(UnsupportedOperationError, match="shell"):
        env.unwrapped.expert()
