"""Software engineering as an environment."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from typing import Any

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from tests.domains.swe.conftest import bash
from textagent_gym.agents import make_agent
from textagent_gym.calls import ActionError, Call
from textagent_gym.domains.swe.env import SWEEnv
from textagent_gym.domains.swe.mutants.tasks import BuiltTasks
from textagent_gym.domains.swe.tasks import Hunk, RepairComplexity
from textagent_gym.domains.swe.tools import TOOLS, parse, render
from textagent_gym.errors import InfeasibleDifficultyError, InvalidOptionError, TextAgentError, UnknownTaskError
from textagent_gym.evaluation.episode import base_of
from textagent_gym.tasks import Task

ID = "textagent/SWE-v0"


pytestmark = pytest.mark.usefixtures("_a_sandbox_can_be_had")


def follow_the_oracle(env: gymnasium.Env[str, str]) -> tuple[float, dict[str, Any]]:
    """As its agent does, which asks for a plan before each action."""
    total, info, plan = 0.0, {}, env.unwrapped.oracle()
    while plan:
        _, reward, terminated, truncated, info = env.step(plan[0])
        total += float(reward)
        assert info["valid_action"], plan[0]
        if terminated or truncated:
            break
        assert env.unwrapped.oracle() == plan[1:]
        plan = plan[1:]
    return total, info


def test_gymnasiums_checker_finds_nothing_to_warn_of(make) -> None:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make().unwrapped)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"tools": "edit"},
        {"tools": "all"},
        {"tools": "all", "action_format": "editor"},
        {"tools": "edit", "action_format": "editor"},
        pytest.param({"mutants": 3, "reward_density": "dense"}, marks=pytest.mark.slow),
        {"mutants": 2, "reward_at": "turn", "reward_density": 0.5},
        pytest.param({"sandbox": "process"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_the_oracle_repairs_every_task(make, options: dict[str, Any]) -> None:
    env = make(**options)
    size = env.unwrapped.tasks.size("train")
    assert size >= 3
    for index in range(2 if "mutants" in options else 4):
        _, info = env.reset(options={"task_index": index})
        if options.get("action_format") != "editor" and "reward_at" not in options:
            assert len(env.unwrapped.oracle()) == info["complexity"].solution_length
        total, info = follow_the_oracle(env)
        assert info["success"], info["task"]
        assert total == pytest.approx(1.0)
        assert env.unwrapped.oracle() == ()


def test_the_oracle_finds_its_way_from_anywhere(make) -> None:
    env = make()
    env.reset(options={"task_index": 0})
    for mess in (
        "rm -r measures",
        "for f in measures/*.py; do sed -i s/return/yield/ $f; done",
        "echo 'x = (' >> measures/sizes.py; mv measures/numerals.py /tmp",
    ):
        env.reset(options={"task_index": 0})
        env.step(bash(mess))
        total, info = follow_the_oracle(env)
        assert info["success"], mess
        assert total == 1.0


def test_doing_nothing_and_doing_harm_are_worth_nothing(make) -> None:
    for density in ("sparse", "dense"):
        for at in ("submit", "turn"):
            env = make(reward_density=density, reward_at=at)
            for command in (
                "true",
                "rm -rf measures tests",
                "echo 'def test_x(): pass' > tests/test_numerals.py",
                "git stash",
            ):
                env.reset(options={"task_index": 0})
                _, first, *_ = env.step(bash(command))
                said, second, terminated, _, info = env.step(bash("submit"))
                assert (first, second, terminated, info["success"]) == (0.0, 0.0, True, False)
                assert said.startswith("Submitted.")


def test_rewards_at_every_turn_pay_for_each_repaired_test_once(make) -> None:
    env = make(mutants=2, reward_at="turn", reward_density="dense")
    env.reset(options={"task_index": 0})
    task = env.unwrapped.task
    plan = env.unwrapped.oracle()
    assert len(plan) == 2
    _, first, terminated, _, info = env.step(plan[0])
    assert 0 < first < 1
    assert not terminated
    assert info["progress"] == pytest.approx(first)
    assert env.step(bash("true"))[1] == 0
    _, last, terminated, _, info = env.step(plan[1])
    assert terminated
    assert info["success"]
    assert first + last == pytest.approx(1.0)
    assert task.milestones == len(env.unwrapped.world.fail_to_pass)


@pytest.mark.parametrize(
    "action",
    [
        "",
        "   ",
        "\0",
        "```bash\nls",
        "```bash\nls\n```\n```bash\nls\n```",
        "ls",
        "\ud800",
        bash("exit"),
        bash("kill -9 $$"),
        bash("exec 0<&-"),
        bash("trap '' TERM INT HUP; echo x"),
        bash("'"),
        bash("cat"),
        bash("printf '\\e[31m\\0'"),
        bash("set -e; false"),
        bash("PS1=x; unset PATH"),
        "x" * 1_000_000,
        bash("x" * 150_000),
        "\N{GRINNING FACE}" * 100,
    ],
    ids=lambda action: repr(action[:30]),
)
def test_any_string_is_answered_and_the_episode_goes_on(make, action: str) -> None:
    env = make(command_timeout=3.0)
    env.reset(options={"task_index": 0})
    said, reward, terminated, truncated, _ = env.step(action)
    assert isinstance(said, str)
    assert said
    assert (reward, terminated, truncated) == (0.0, False, False)
    env.step(bash("exit"))
    said, *_ = env.step(bash('cd "$TESTBED" && /bin/ls -d measures'))
    assert said == "measures"


def test_what_the_agent_reads(make) -> None:
    env = make(command_timeout=1.0, max_observation=400)
    first, info = env.reset(options={"task_index": 0})
    assert first.startswith("Something is wrong in `measures`.")
    assert "test_" not in first.partition("Find the cause")[0]
    assert info["task_type"] == "measures"
    assert env.step(bash("false"))[0] == "[exit status 1]"
    assert env.step(bash("true"))[0] == "[no output]"
    assert "ended after 1 seconds" in env.step(bash("sleep 30"))[0]
    assert "new one" in env.step(bash("exit"))[0]
    long = env.step(bash("seq 100000"))[0]
    assert long.startswith("1\n2\n")
    assert long.endswith("100000")
    assert "left out" in long
    assert len(long) < 500


def test_git_shows_what_has_been_changed(make) -> None:
    env = make()
    env.reset(options={"task_index": 0})
    assert env.step(bash("git status --porcelain; git log --oneline | wc -l"))[0] == "1"
    env.step(env.unwrapped.oracle()[0])
    assert env.step(bash("git diff --stat | tail -1"))[0].strip().startswith("1 file changed")
    assert "passed" in env.step(bash("python -m pytest -q -p no:cacheprovider | tail -1"))[0]


def test_tools_as_functions(make) -> None:
    env = make(tools="all")
    env.reset(options={"task_index": 0})

    def call(name: str, **arguments: object) -> tuple[str, bool]:
        said, _, _, _, info = env.step(json.dumps({"name": name, "arguments": arguments}))
        return said, info["valid_action"]

    assert call("view", path=".")[0].splitlines() == [".git/", "README.md", "measures/", "pyproject.toml", "tests/"]
    said, valid = call("view", path="measures/sizes.py", first=3, last=4)
    assert valid
    assert said.splitlines()[0] == "[measures/sizes.py, lines 3 to 4 of 41]"
    assert call("search", pattern=r"def (to|from)_roman")[0].splitlines()[-1] == "2 lines match."
    assert call("create", path="new/file.py", content="x = 1\n") == ("new/file.py has been written.", True)
    assert call("replace", path="new/file.py", old="x = 1", new="x = 2\ny = 3")[1]
    assert call("shell", command="cat new/file.py")[0] == "x = 2\ny = 3"
    assert "passed" in call("run_tests", path="tests/test_sizes.py")[0]
    for name, arguments in (
        ("replace", {"path": "new/file.py", "old": "nothing", "new": ""}),
        ("replace", {"path": "missing.py", "old": "a", "new": ""}),
        ("view", {"path": "missing.py"}),
        ("view", {"path": 3}),
        ("view", {}),
        ("view", {"path": ".", "colour": "red"}),
        ("fly", {}),
        ("search", {"pattern": "("}),
        ("create", {"path": "/usr/x", "content": ""}),
    ):
        said, valid = call(name, **arguments)
        assert not valid, (name, arguments)
        assert said
        assert "Traceback" not in said


def test_the_editor(make) -> None:
    env = make(tools="all", action_format="editor")
    env.reset(options={"task_index": 0})

    def say(text: str) -> str:
        return str(env.step(text)[0])

    assert "open one first" in say("scroll_down")
    assert say("open measures/durations.py 20").startswith("[measures/durations.py, lines 20 to ")
    assert say("goto 5").startswith("[measures/durations.py, lines 5 to ")
    assert say("scroll_up").startswith("[measures/durations.py, lines 1 to ")
    assert "# new" in say("edit 1:1\n# new\nend_of_edit")
    assert "end_of_edit" in say("edit 1:1\n# new")
    assert "lines." in say("edit 900:901\nx\nend_of_edit")
    assert "has been written" in say("create a.txt\nhello\nend_of_edit")
    assert say("cat a.txt") == "hello"
    assert say("find_file sizes").splitlines() == ["measures/sizes.py", "tests/test_sizes.py"]
    assert "lines match" in say('search_dir "def format" measures')


def test_the_editor_counts_lines_by_line_feeds_alone_and_the_last_may_have_none(make) -> None:
    """As `_replacement` counts; a form feed, for one, ends a line for `str.splitlines` only."""
    env = make(tools="all", action_format="editor")
    env.reset(options={"task_index": 0})

    def say(text: str) -> str:
        return str(env.step(text)[0])

    say("printf 'one\\ftwo\\nthree\\n\\nfour\\r\\nfive' > a.txt")
    shown = say("open a.txt 1")
    assert shown.startswith("[a.txt, lines 1 to 5 of 5]")
    assert shown.endswith("\n     4\tfour\n     5\tfive")
    assert say('search_dir "five" .') == "a.txt:5: five\n1 lines match."
    for action in (
        render(call, "editor") for call in env.unwrapped._replacement(Hunk("a.txt", "four\r\nfive", "4\n5", 4))
    ):
        say(action)
    assert say("cat a.txt").split("\n")[-3:] == ["", "4", "5"]


def test_actions_are_read_back_as_they_were_written() -> None:
    for call, form in (
        (Call("shell", {"command": "ls -la\ncat x"}), "bash"),
        (Call("submit"), "bash"),
        (Call("replace", {"path": "a", "old": "b\n", "new": '"'}), "functions"),
        (Call("submit", {}), "functions"),
        (Call("edit_lines", {"first": 1, "last": 2, "text": "a\n  b\n"}), "editor"),
        (Call("open", {"path": "a", "line": 3}), "editor"),
        (Call("submit"), "editor"),
    ):
        assert parse(render(call, form), TOOLS["shell" if form == "bash" else "all"], form) == call
    wrapped = json.dumps({"id": "x", "function": {"name": "view", "arguments": '{"path": "a"}'}})
    assert parse(f"I look at it.\n{wrapped}", TOOLS["all"], "functions") == Call("view", {"path": "a"})
    with pytest.raises(ActionError, match="no function 'shell'"):
        parse('{"name": "shell", "arguments": {"command": "ls"}}', TOOLS["edit"], "functions")
    with pytest.raises(ActionError):
        parse("[" * 100_000 + "{", TOOLS["edit"], "functions")
    with pytest.raises(ActionError):
        parse("ls", TOOLS["edit"], "editor")
    assert [tool.schema["function"]["name"] for tool in TOOLS["all"]] == [tool.name for tool in TOOLS["all"]]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"tools": "magic"}, InvalidOptionError),
        ({"tools": "edit", "action_format": "bash"}, InvalidOptionError),
        ({"action_format": "xml"}, InvalidOptionError),
        ({"reward_at": "dawn"}, InvalidOptionError),
        ({"command_timeout": 0}, InvalidOptionError),
        ({"packages": ["nothing"]}, InvalidOptionError),
        ({"packages": "/no/such/folder"}, InvalidOptionError),
        ({"recipes": "/no/such/file"}, InvalidOptionError),
        ({"solution_length": 2}, InvalidOptionError),
        ({"mutants": 9}, InvalidOptionError),
        ({"packages": "all", "lines": (10**6, 10**7)}, InfeasibleDifficultyError),
    ],
    ids=str,
)
def test_a_wrong_option_says_what_exists(options: dict[str, Any], error: type[TextAgentError]) -> None:
    with pytest.raises(error):
        gymnasium.make(ID, **options)


def test_tasks_have_ids_splits_and_sizes() -> None:
    everything = BuiltTasks(("measures", "toolz", "boltons"))
    total = sum(everything.size(split) for split in everything.splits)
    recipes = files("textagent_gym.domains.swe.mutants").joinpath("recipes.jsonl").read_text().splitlines()
    assert total == sum(json.loads(line)["package"].startswith(("measures", "toolz", "boltons")) for line in recipes)
    tasks = BuiltTasks(("measures",))
    assert sum(tasks.size(split) for split in tasks.splits) >= 15
    ids = [tasks.task(split, 0).id for split in tasks.splits]
    assert len(set(ids)) == len(ids)
    assert all(tasks.find(name).id == name for name in ids)
    with pytest.raises(UnknownTaskError):
        tasks.find("SWE/measures-own/0000000000")
    with pytest.raises(UnknownTaskError):
        tasks.task("train", 99)
    env = gymnasium.make(ID, packages="all", lines=(200, 1300)).unwrapped
    assert isinstance(env, SWEEnv)
    assert [package.name for package in env.tasks.packages] == ["measures", "inflection", "schema", "webcolors"]


def test_an_expert_is_declared_where_the_tools_have_a_shell() -> None:
    supports = {tools: base_of(gymnasium.make(ID, tools=tools)).supports for tools in ("shell", "all", "edit")}
    assert {tools: "expert" in each for tools, each in supports.items()} == {"shell": True, "all": True, "edit": False}
    with pytest.raises(InvalidOptionError, match="agent 'expert' cannot play"):
        make_agent("expert", gymnasium.make(ID, tools="edit"))


def test_environments_side_by_side_do_not_meet(make) -> None:
    envs = [make() for _ in range(3)]

    def play(number: int, env: gymnasium.Env[str, str]) -> list[tuple[str, bool]]:
        seen = []
        for index in range(2):
            env.reset(options={"task_index": index})
            env.step(bash(f"echo {number} > mine"))
            seen.append((env.step(bash("cat mine; ls /tmp"))[0], follow_the_oracle(env)[1]["success"]))
        return seen

    with ThreadPoolExecutor(len(envs)) as threads:
        played = list(threads.map(play, range(len(envs)), envs))
    assert played == [[(str(number), True)] * 2 for number in range(len(envs))]


def test_what_is_measured_of_a_task(task: Task) -> None:
    measured = task.complexity
    assert isinstance(measured, RepairComplexity)
    assert (measured.state_size, measured.solution_length) == (239, 2)
    assert (measured.files, measured.hunks, measured.lines) == (1, 1, 2)
    assert set(measured.to_dict()) >= {"files", "hunks", "lines", "state_size"}


def test_a_task_that_is_not_served_is_passed_over_unless_it_is_asked_for(make, monkeypatch: pytest.MonkeyPatch) -> None:
    env = make()
    source = env.unwrapped.tasks
    real, left_out = source.task, {1, 2, 3}

    def task(split: str, index: int) -> Task:
        if index in left_out:
            raise UnknownTaskError("not here")
        return real(split, index)

    monkeypatch.setattr(source, "task", task)
    for seed in range(8):
        env.reset(seed=seed)
        assert env.unwrapped.task.index not in left_out
    with pytest.raises(UnknownTaskError):
        env.reset(options={"task_index": 1})
