"""The command line, as somebody types it."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import pytest
from rich.console import Console

from benchmarks.reference_entries import ENTRIES
from tests.cli.program import PROGRAM, call, run
from textagent_gym.cli.environment import ChosenTasks
from textagent_gym.cli.tables import evaluation_table, suite_table
from textagent_gym.evaluation import evaluate, load_result, summarize
from textagent_gym.wrappers import AdmissibleActionHints

LIGHTS = "lights/Lights-v0"
SMALL = "TextWorld-w2-o3-q4"
ENTRY = ENTRIES / "textcraft-quick-v2"
POLICY = ENTRIES.parent / "policies" / "textcraft" / "policy"
INTO_NOTHING = [
    (*command, "--out", "/dev/null/x")
    for command in (
        ("eval", "--suite", "textcraft-quick-v2"),
        ("eval", LIGHTS),
        ("demos", LIGHTS, "--tasks", "1"),
        ("export", "ALFWorld-v0", "--tasks", "1"),
        ("trajectories", str(ENTRY / "oracle"), "--format", "atif"),
        ("trajectories", str(ENTRY / "oracle"), "--format", "inspect"),
        ("leaderboard", "build", str(ENTRY)),
        ("challenge", "commit", str(POLICY), "--suite", "alfworld-quick-v1"),
        ("swe", "build"),
        ("swe", "rows"),
    )
]
"""Every command with --out."""


class NumberAgent:
    """Answers with numbers."""

    name = "numbers"

    def __init__(self, env: object) -> None:
        """Play any environment."""

    def reset(self, seed: int) -> None:
        """Forget nothing."""

    def act(self, observation: str, info: dict[str, Any]) -> Any:
        return 5


class SeedlessAgent(NumberAgent):
    """Takes no seed."""

    def reset(self) -> None:  # type: ignore[override]
        """Forget nothing."""


class FailingAgent(NumberAgent):
    """Plays one episode, and raises in the next."""

    name = "failing"
    episodes = 0

    def reset(self, seed: int) -> None:
        """Count the episode."""
        self.episodes += 1

    def act(self, observation: str, info: dict[str, Any]) -> Any:
        if self.episodes > 1:
            raise KeyError("weights")
        return "press black"


class ReadingAgent(NumberAgent):
    """Notes what it is told beside observations, and asks which actions are admissible."""

    name = "reading"
    told: ClassVar[set[str]] = set()

    def __init__(self, env: Any) -> None:
        self._base = env.unwrapped

    def act(self, observation: str, info: dict[str, Any]) -> Any:
        self.told.update(info)
        return self._base.admissible_actions()[0]


def test_help_and_list_name_everything() -> None:
    shown = run("--help").stdout
    names = (
        "list",
        "info",
        "play",
        "demos",
        "eval",
        "suites",
        "verify",
        "compare",
        "aggregate",
        "leaderboard",
        "trajectories",
        "cache",
    )
    assert [name for name in names if name not in shown] == []
    assert "textagent/TextWorld-w8-o12-q12-v0" in call("list").stdout


def test_help_names_the_option_that_prints_the_version() -> None:
    assert "textagent-gym --version` prints the installed version" in call("--help").stdout


@pytest.mark.parametrize(
    "command",
    [
        *("play", "eval", "suites", "compare", "demos", "export", "verify", "cache", "data", "swe"),
        *("aggregate", "leaderboard", "trajectories"),
    ],
)
def test_help_shows_no_python_and_no_flag_that_does_nothing(command: str) -> None:
    text = call(command, "--help").stdout
    assert "{None}" not in text
    assert "default: None" not in text
    assert "--no-" not in text.replace("--no-instructions", "")


def test_an_agent_of_a_suite_is_told_what_the_documentation_says(tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "r"))
    done = call("eval", "--suite", "textcraft-quick-v2", "--agent", f"{__name__}:ReadingAgent", *out)
    assert done.returncode == 0, done.stderr
    documentation = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text(encoding="utf-8")
    (sentence,) = re.findall(r"plays a suite, its `info` holds (.*?)\.\s", documentation, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", sentence)) == {*ReadingAgent.told, "score"}


@pytest.mark.parametrize("asked", [(LIGHTS, "--tasks", "2"), ("--suite", "textcraft-quick-v2")], ids=["id", "suite"])
def test_a_complete_result_says_that_nothing_was_played(tmp_path: Path, asked: tuple[str, ...]) -> None:
    command = ("eval", *asked, "--agent", "random", "--out", str(tmp_path / "r"))
    first, second, third = (call(*command, *more) for more in ((), (), ("--retry-broken",)))
    assert [each.returncode for each in (first, second, third)] == [0, 0, 0]
    assert second.stdout == third.stdout == "Complete already: nothing was played.\n" + first.stdout
    if asked[0] == LIGHTS:
        (tmp_path / "r").rename(tmp_path / "r.part")  # As if it had been stopped at its last line.
        assert "nothing was played" not in call(*command).stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("info", "TextWorl-w2-o3-q4"), "Did you mean"),
        (("certify", "Guess-v0"), "module:ID"),
        (("info", SMALL, "--set", "romms=3"), "Did you mean 'rooms'"),
        (("info", SMALL, "--set", "rooms"), "name=value"),
        (("info", SMALL, "--set", "rooms=4", "--set", "rooms=5"), "rooms is set twice"),
        (("info", "TextWorldCoinCollector", "--set", "level=999"), "1 to 233"),
        (("eval", LIGHTS, "--agent", "genius"), "admissible-random"),
        (
            ("eval", LIGHTS, "--agent", "openai:", "--base-url", "http://localhost/v1"),
            "Error: --agent openai: does not say which model: openai:MODEL",
        ),
        (("eval", LIGHTS, "--agent", "model:", "--hints"), "--agent model: does not say which folder: model:FOLDER"),
        (("eval", LIGHTS, "--agent", "vllm"), "--agent vllm does not say which folder: vllm:FOLDER"),
        (("eval", LIGHTS, "--agent", "os:system"), "makes no agent for an environment: TypeError"),
        (("eval", LIGHTS, "--agent", "os:getpid"), "makes no agent for an environment: TypeError"),
        (("eval", LIGHTS, "--agent", "json:loads"), "the JSON object must be"),
        (("eval", LIGHTS, "--agent", "builtins:id"), "has no methods reset(seed) and act(observation, info)"),
        (("eval", LIGHTS, "--agent", "math:pi"), "'math:pi' is not a function or class"),
        (("eval", LIGHTS, "--agent", "..os:system"), "cannot be imported"),
        (("certify", "json:mine/Mine-v0"), "call gymnasium.register where the module is imported"),
        (("eval", LIGHTS, "--agent", "agents_of_mine:Agent"), "PYTHONPATH=. for this one"),
        (("eval", LIGHTS, "--agent", f"{__name__}:SeedlessAgent"), "has no methods reset(seed)"),
        (("eval", LIGHTS, "--agent", f"{__name__}:NumberAgent"), "the agent 'numbers' answers 5: an action is a text"),
        (("eval", LIGHTS, "--agent", f"{__name__}:NumberAgent", "--workers", "2"), "the agent 'numbers' answers 5"),
        (
            ("eval", LIGHTS, "--agent", f"{__name__}:FailingAgent"),
            "agent 'failing' fails in act: KeyError: 'weights' (",
        ),
        (("eval", LIGHTS, "--split", "dev"), "validation"),
        (("eval", "--suite", "babyai-quick-v1", "--out", "/proc/x"), "Error: /proc/x cannot be written: "),
        (("eval", LIGHTS, "--workers", "0"), "--workers must be at least 1"),
        (("leaderboard", "build", str(ENTRIES), "--out", "/x", "--workers", "0"), "--workers must be at least 1"),
        (("leaderboard", "accept", str(ENTRIES), "--workers", "0"), "--workers must be at least 1"),
        (("eval", LIGHTS, "--out", "/"), "folder"),
        (("eval", "CartPole-v1"), "CartPole-v1 is not a text environment"),
        (("play", "CartPole-v1"), "CartPole-v1 is not a text environment"),
        (("info", "CartPole-v1"), "CartPole-v1 is not a text environment"),
        (("info", "nowhere.to.be.found:textagent/TextWorld-v0"), "cannot be imported"),
        (("data", "lights"), "alfworld"),
        (("verify", "/nowhere.jsonl"), "Error: /nowhere.jsonl cannot be read: it does not exist"),
        (("verify", "/nowhere", "--challenge", "x"), "Error: /nowhere cannot be read: it does not exist"),
        (("verify", str(ENTRIES / "babyai-quick-v1" / "random" / "summary.json")), "name the folder that it is in"),
        (("compare", "/nowhere", "/nowhere"), "Error: /nowhere cannot be read: it does not exist"),
        (("challenge", "draw", "/nowhere", "--out", "x"), "Error: /nowhere cannot be read: it does not exist"),
        *((command, "Error: /dev/null/x cannot be written: Not a directory") for command in INTO_NOTHING),
        (("frobnicate",), "frobnicate"),
        ((), "subcommand"),
    ],
)
def test_a_wrong_argument_is_one_clear_line_and_no_traceback(arguments: tuple[str, ...], said: str) -> None:
    done = call(*arguments)
    assert done.returncode in (1, 2)
    assert said in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("eval", LIGHTS, "--agent", "expert"), "agent 'expert' cannot play LightsEnv, which has no expert"),
        (("eval", LIGHTS, "--seed", "-1"), "seed must be at least 0 and less than 2**128, got -1"),
        (("eval", LIGHTS, "--episodes", "0"), "episodes must be at least 1"),
        (("eval", LIGHTS, "--tasks", "2", "--out", "OTHER"), "different: agent, seed, tasks"),
        (("eval", LIGHTS, "--tasks", "2", "--out", "OTHER.jsonl"), "OTHER would both keep what was said in OTHER.conv"),
        (("demos", LIGHTS, "--agent", "expert", "--out", "NEW"), "agent 'expert' cannot play LightsEnv"),
        (("demos", LIGHTS, "--out", "OTHER"), "is no demonstration"),
        (("export", LIGHTS, "--out", "NEW"), "writes no files"),
    ],
)
@pytest.mark.parametrize("part", ["", ".part"])
def test_what_is_asked_for_in_vain_is_refused_before_tasks_are_made(
    arguments: tuple[str, ...], said: str, part: str, tmp_path: Path
) -> None:
    other = tmp_path / "OTHER"
    evaluate(LIGHTS, "random", tasks=3, seed=5, path=other, kwargs={"split": "test"})
    if part:
        if said == "is no demonstration":
            return  # What is not a demonstration in an unfinished file was cut by a kill.
        other.rename(tmp_path / f"OTHER{part}")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    done = call(*arguments, cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert "Making tasks" not in done.stderr
    assert "Traceback" not in done.stderr
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("asked", "num_tasks", "said"),
    [(6, None, "Fewer than 6 tasks: split 'train' has 5."), (6, 2, "Fewer than 6 tasks: num_tasks is 2."), (5, 5, "")],
)
def test_fewer_tasks_than_were_asked_for_are_named(
    asked: int, num_tasks: int | None, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    env = gymnasium.make(LIGHTS, num_tasks=num_tasks)
    monkeypatch.setattr(env.unwrapped.tasks, "size", lambda split: 5)
    ChosenTasks(env=LIGHTS, tasks=asked).prepare(env, num_tasks or 5)
    errors = capsys.readouterr().err
    assert said in errors
    assert ("Fewer" in errors) == bool(said)


def test_only_worlds_of_text_are_suggested() -> None:
    errors = call("info", "TextWorldPole").stderr
    assert "textagent/TextWorld" in errors
    assert "phys2d" not in errors


def test_info_is_for_those_who_play() -> None:
    out = call("info", "ALFWorld", "--set", "receptacles=12").stdout
    lines = [line.split() for line in out.splitlines()]
    assert ["knob", "values", "value", "meaning"] in lines
    assert any(words[:1] == ["receptacles"] and "12" in words for words in lines)
    assert not {"Args:", "Raises:", "InvalidOptionError:"} & set(out.split())
    assert "Registered ids" in out


def test_the_package_runs_as_a_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "textagent_gym", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == run("--version").stdout


def test_info_shows_a_task_with_its_complexity() -> None:
    out = call("info", SMALL).stdout
    assert "solution_length: 4" in out
    assert "split guide-test: 100 tasks" in out
    assert "quest_length" in out
    assert "reward_density" in out
    assert "switches" in call("info", LIGHTS).stdout


def test_play_reads_actions_from_a_pipe() -> None:
    done = run("play", LIGHTS, "--task", "0", input="?\n!\npress red\n<\n<\nsing\n")
    assert done.returncode == 0
    assert "press black, press blue" in done.stdout
    assert "This is the first turn" in done.stdout
    assert "Nothing happens." in done.stdout
    assert "The input has ended." in done.stdout
    solved = run("play", LIGHTS, "--task", "0", input="press red\npress green\npress blue\npress white\n")
    assert "Solved after 4 turns; return 1.000" in solved.stdout


def test_eval_then_verify(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    done = run("eval", SMALL, "--agent", "oracle", "--tasks", "2", "--out", str(out))
    assert "1.000" in done.stdout
    assert run("verify", str(out)).returncode == 0
    forged = out.read_text().replace('"rewards": [0.0', '"rewards": [0.5', 1)
    out.write_text(forged)
    done = run("verify", str(out))
    assert done.returncode == 1
    assert "1 of 2 episodes went otherwise" in done.stdout


def test_what_strangers_wrote_is_refused_in_one_line_and_trusted_if_one_says_so(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    (tmp_path / "mine.py").write_text(
        "import gymnasium, lights\n"
        "if 'mine/Lights-v0' not in gymnasium.registry:\n"
        "    gymnasium.register('mine/Lights-v0', entry_point='lights:LightsEnv')\n"
    )
    paths = {"PYTHONPATH": os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))}
    assert (
        run("eval", "mine:mine/Lights-v0", "--agent", "oracle", "--tasks", "1", "--out", str(out), env=paths).returncode
        == 0
    )
    refused = run("verify", str(out), env=paths)
    assert refused.returncode == 2
    assert "not registered here" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert run("verify", str(out), "--trust", env=paths).returncode == 0


def test_a_file_made_with_wrappers_verifies(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    evaluate(AdmissibleActionHints(gymnasium.make(LIGHTS)), "random", tasks=3, path=out)
    done = call("verify", str(out))
    assert done.returncode == 0
    assert "All 3 episodes happened as recorded" in done.stdout
    assert "Not checked: seconds, tokens, and the versions of packages." in done.stdout


def test_an_empty_file_of_results_is_an_error_and_no_traceback(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    evaluate(LIGHTS, "random", tasks=3, path=out)
    out.write_text(out.read_text().splitlines()[0] + "\n")
    done = call("verify", str(out))
    assert done.returncode == 1
    assert "0 episodes are recorded, and 3 were asked for" in done.stdout
    assert "Traceback" not in done.stderr


def test_an_evaluation_without_a_split_is_of_held_out_tasks() -> None:
    assert "split test" in call("eval", LIGHTS, "--tasks", "1").stdout
    assert "split train" in call("eval", LIGHTS, "--tasks", "1", "--set", "split=train").stdout
    both = call("eval", LIGHTS, "--tasks", "1", "--split", "test", "--set", "split=train")
    assert both.returncode == 2
    assert "contradict" in both.stderr


def test_a_stopped_evaluation_does_not_go_on_with_another_seed(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    assert run("eval", LIGHTS, "--tasks", "2", "--out", str(out)).returncode == 0
    out.rename(tmp_path / "r.jsonl.part")
    done = run("eval", LIGHTS, "--tasks", "2", "--seed", "7", "--out", str(out))
    assert done.returncode == 2
    assert "seed" in done.stderr


def test_types_of_tasks_are_never_cut_and_intervals_stay_in_a_line() -> None:
    done = run(
        "eval", "ALFWorld", "--agent", "expert", "--tasks", "12", "--set", 'task_types=["pick","clean"]', columns=80
    )
    assert done.returncode == 0
    rows = [line.split() for line in done.stdout.splitlines() if line.count("[") >= 2]
    assert [row[0] for row in rows if row[1].isdigit()] == ["all", "clean", "pick"]
    assert "expert in textagent/ALFWorld-v0, split test" in done.stdout
    assert "…" not in done.stdout


@pytest.mark.parametrize("columns", [60, 80, 100, 200])
@pytest.mark.parametrize("scored", [False, True])
def test_no_number_and_no_part_is_cut_however_narrow_the_terminal_is(columns: int, scored: bool) -> None:
    result = load_result(ENTRIES / "scienceworld-quick-v1" / "random")
    if not scored:
        evaluations = {
            name: replace(each, episodes=tuple(replace(episode, score=None) for episode in each.episodes))
            for name, each in result.evaluations.items()
        }
        result = replace(result, evaluations=evaluations)
    names = ("one-room", "two-rooms-and-a-door", "x")
    (evaluation, *_) = result.evaluations.values()
    result = replace(result, evaluations=dict.fromkeys(names, evaluation))
    out = io.StringIO()
    Console(file=out, width=columns).print(suite_table(result))
    text = out.getvalue()
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= columns
    for name in names:
        (row,) = (line for line in text.splitlines() if re.match(rf" +{name} ", line))
        intervals = re.findall(r"\d\.\d{3} \[\d\.\d{3}, \d\.\d{3}\]", row)
        assert len(intervals) == sum(f"{column} [95%]" in text for column in ("success", "return", "score"))
        assert intervals[0] == str(summarize(evaluation.episodes).success)
    whole = {"success", "return", "turns", "invalid", *(("score",) if scored else ())}
    left_out = {name for name in whole if not re.search(rf"^.*episodes .*\b{name}\b", text, re.MULTILINE)}
    said = " ".join(text.split()).partition("left out for want of width: ")[2]
    assert set(said.split(", ")) - {""} == left_out
    assert columns < 200 or not left_out


def test_an_interval_that_cannot_be_told_is_shown_as_such() -> None:
    out = io.StringIO()
    Console(file=out, width=200).print(evaluation_table(evaluate(LIGHTS, "oracle", tasks=1)))
    assert re.search(r" \d\.\d\d \[n/a\]", out.getvalue())
    assert "turns over the shortest solution 1.000 [n/a]" in out.getvalue()


def test_a_solution_that_is_not_proven_to_be_shortest_is_not_called_shortest() -> None:
    out = io.StringIO()
    result = evaluate(LIGHTS, "oracle", tasks=2)
    inexact = [replace(each, complexity={**(each.complexity or {}), "exact": False}) for each in result.episodes]
    Console(file=out, width=200).print(evaluation_table(replace(result, episodes=tuple(inexact))))
    assert "turns over the shortest solution known 1.000" in out.getvalue()


def test_the_version_is_that_of_the_package() -> None:
    assert call("--version").stdout == f"textagent-gym {version('textagent-gym')}\n"


def test_help_has_no_stray_lines() -> None:
    shown = call("demos", "--help").stdout
    assert "ID" in shown
    lines = [line.strip("│ ") for line in shown.splitlines()]
    start = next(number for number, line in enumerate(lines) if line.startswith("Record an agent"))
    assert lines[start + 2].startswith("The split is train")
    assert not shown.splitlines()[start + 2].startswith("    ")


@pytest.mark.parametrize("command", [("info", LIGHTS), ("eval", LIGHTS, "--tasks", "1")])
def test_infos_are_asked_for_by_name_or_not_at_all(command: tuple[str, ...]) -> None:
    for value in ("null", "oracle_action", '["oracle_action","admissible_actions"]'):
        done = call(*command, "--set", f"infos={value}")
        assert done.returncode == 0, done.stderr


def test_num_tasks_and_tasks_are_both_kept_to(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    assert call("eval", LIGHTS, "--tasks", "5", "--set", "num_tasks=2", "--out", str(out)).returncode == 0
    assert len(out.read_text().splitlines()) == 4  # A header and a seal.


def test_what_an_agent_has_played_before_it_raises_is_kept(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    done = call("eval", LIGHTS, "--tasks", "3", "--agent", f"{__name__}:FailingAgent", "--out", str(out))
    assert done.returncode == 1
    assert f"Stopped after 1 of 3 episodes, kept in {out}.part; the same command resumes." in " ".join(
        done.stderr.split()
    )


def test_ctrl_c_in_the_middle_keeps_what_is_done(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    part = tmp_path / "r.jsonl.part"
    arguments = ("eval", LIGHTS, "--agent", "admissible-random", "--tasks", "100000", "--out", str(out))
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Shells start background jobs with Ctrl-C switched off, and the tests may run in one.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 (no threads here)
    )
    deadline = time.monotonic() + 60
    while (not part.exists() or part.stat().st_size < 20_000) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    kept = re.search(r"Stopped after (\d+) of 100000 episodes, kept in (.*); the same command resumes\.", errors)
    assert kept is not None
    assert kept[2] == str(part)
    assert "Traceback" not in errors
    assert len(part.read_text().splitlines()) - 1 - int(kept[1]) in (0, 1)  # The last one may not have been counted.
    assert int(kept[1]) > 10
    assert not out.exists()


@pytest.mark.parametrize("command", ["info", "verify", "list", "--help", "--version"])
def test_a_reader_that_goes_ends_a_command_quietly_and_never_says_that_all_is_right(
    tmp_path: Path, command: str
) -> None:
    given = {"info": (LIGHTS,), "verify": (str(tmp_path / "r.jsonl"),)}.get(command, ())
    if command == "verify":
        evaluate(LIGHTS, "oracle", tasks=1, path=tmp_path / "r.jsonl")
    reader, writer = os.pipe()
    os.close(reader)  # As `| head -0`, in a race that is always lost.
    program = [sys.executable, "-c", PROGRAM, command, *given]
    done = subprocess.run(program, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=400, check=False)
    os.close(writer)
    assert done.returncode == 141  # As a program that SIGPIPE ends.
    assert "Error" not in done.stderr
    assert "Traceback" not in done.stderr


def test_the_cache_of_every_world_is_shown_and_cleared(tmp_path: Path) -> None:
    env = {"TEXTAGENT_CACHE": str(tmp_path)}
    assert "nothing" in run("cache", env=env).stdout
    for name, size in (("textworld/v1/game.z8", 1_000_000), ("swe/v1/tree", 3_000_000), ("locks/1.lock", 0)):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(bytes(size))
    shown = run("cache", env=env).stdout
    for line in ("textworld (TextWorld): 1 files, 1.0 MB", "swe (SWE, SWE rows): 1 files, 3.0 MB", "locks"):
        assert line in shown
    done = run("cache", "--clear", env=env)
    assert done.stdout.count("deleted 1") == 3
    assert list(tmp_path.iterdir()) == []


def test_what_could_not_be_deleted_is_not_said_to_have_been(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from textagent_gym.cli.cache import Cache

    (tmp_path / "textworld").mkdir()
    (tmp_path / "textworld" / "game").write_text("x")
    monkeypatch.setenv("TEXTAGENT_CACHE", str(tmp_path))
    monkeypatch.setattr("shutil.rmtree", lambda *_, **__: None)  # As on a disk that is read-only.
    assert Cache(clear=True).run() == 1


def test_no_text_of_a_world_or_a_file_of_actions_commands_the_terminal() -> None:
    done = run("play", LIGHTS, input="press \x1b[2J\x9b31m\u202e\n")
    assert done.returncode == 0
    assert "\x1b[2J" not in done.stdout
    assert not {"\x9b", "\u202e"} & set(done.stdout)
    assert "press ␛[2J\\x9b31m\\u202e" in done.stdout


def test_a_program_that_reads_a_table_gets_every_column(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("eval", "lights/Lights-v0", "--agent", "oracle", "--tasks", "3")
    monkeypatch.setattr("tests.cli.program.WIDTH", {})
    monkeypatch.delenv("COLUMNS", raising=False)
    assert "left out" not in call(*asked).stdout
    assert re.search("success.*return.*turns.*invalid", call(*asked).stdout)
    monkeypatch.setenv("COLUMNS", "60")
    assert "left out" in call(*asked).stdout
