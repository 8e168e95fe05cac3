"""ScienceWorld's simulator in its process: what it answers, and that nothing of it outlives its use."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from statistics import fmean
from typing import Any

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from textagent_gym.calls import parse_function, render_function
from textagent_gym.core import TextEnv
from textagent_gym.domains.scienceworld import ScienceWorldEnv, gold, server
from textagent_gym.domains.scienceworld.functions import TOOLS, call_of, command_of
from textagent_gym.domains.scienceworld.measure import SIMPLIFIED, action_size
from textagent_gym.domains.scienceworld.server import Server, give, stop_idle, take
from textagent_gym.domains.scienceworld.tasks import SPLITS, TASKS
from textagent_gym.errors import WorldBrokenError

pytestmark = pytest.mark.usefixtures("simulator")


def make(**kwargs: Any) -> TextEnv[Any]:
    return gymnasium.make("textagent/ScienceWorld-find-plant-v0", **kwargs).unwrapped  # type: ignore[return-value]


def is_running(pid: int) -> bool:
    """Whether a process is there and has not ended, be it waited for or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # It has gone before, or while it was read.
        return False


def ends(pid: int) -> bool:
    """Whether a process ends within a minute."""
    limit = time.monotonic() + 60
    while is_running(pid):
        if time.monotonic() > limit:
            return False
        time.sleep(0.1)
    return True


def test_a_recorded_gold_path_solves_its_task_for_a_return_of_one() -> None:
    (name, variation), path = min(gold._recorded().items(), key=lambda entry: len(entry[1].actions))
    env = gymnasium.make("textagent/ScienceWorld-v0", reward_density="dense").unwrapped
    assert isinstance(env, ScienceWorldEnv)
    tasks = env.tasks
    split = next(s for s in SPLITS if f"{tasks._start}/{s}/{name}/{variation}" in tasks._ids(s))
    env.reset(options={"task": f"{tasks._start}/{split}/{name}/{variation}"})
    expert = env.expert()
    rewards, terminated, info = [], False, {}
    while not terminated:
        action = expert.action()
        expert.observe(action, "")
        _, reward, terminated, _, info = env.step(action)
        rewards.append(reward)
    assert info["success"]
    assert sum(rewards) == 1.0
    assert sum(reward > 0 for reward in rewards) > 1
    assert len(rewards) == len(path.actions) == env.task.complexity.solution_length
    env.close()


@pytest.mark.parametrize("simplified", SIMPLIFIED)
def test_an_action_size_is_that_of_the_path_played_again(simplified: str) -> None:
    name, variation = "lifespan-longest-lived", 93
    env = ScienceWorldEnv(
        task_types=name,
        simplifications=simplified or None,
        solution_length=(3, 3),
        split="test",
        infos=("admissible_actions",),
    )
    _, info = env.reset(options={"task_index": 0})
    assert env.task.id.endswith(f"/{name}/{variation}")
    expert, sizes, terminated = env.expert(), list[int](), False
    while not terminated:
        sizes.append(len(info["admissible_actions"]))
        action = expert.action()
        expert.observe(action, "")
        _, _, terminated, _, info = env.step(action)
    assert info["success"]
    again = action_size(env.server, name, variation, simplified, gold.shipped_paths()[name, variation])
    assert env.task.complexity.action_size == again == round(fmean(sizes), 2)
    env.close()


def test_the_wrong_focus_loses() -> None:
    env = make(reward_density="dense", infos=("admissible_actions",))
    observation, info = env.reset(options={"task_index": 0})
    assert observation.startswith("Your task is to find a(n) plant.")
    assert "focus on air" in info["admissible_actions"]
    _, reward, terminated, truncated, info = env.step("focus on air")
    assert (reward, terminated, truncated, info["success"], info["score"]) == (0.0, True, False, False, 0.0)
    env.close()


@pytest.mark.parametrize(
    "action", ["", "\n", "\0", "\ud800", "a\nb", "((", "x" * 1_000_000, "open " * 190, "\N{BED}", "3", "\\u0000", "%s"]
)
def test_any_string_is_an_action(action: str) -> None:
    env = make()
    env.reset(options={"task_index": 0})
    for text in (action, "open door", action):
        _, _, terminated, truncated, _ = env.step(text)
        assert not terminated
        assert not truncated
    assert env.step("look around")[4]["valid_action"]
    env.close()


def test_gymnasium_finds_nothing_to_warn_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = make()
        check_env(env, skip_render_check=True)
        env.close()


def test_a_process_serves_one_environment_after_the_other() -> None:
    one = make()
    one.reset(seed=0)
    pid = one.server.pid  # type: ignore[attr-defined]
    one.close()
    other = make()
    other.reset(seed=0)
    assert other.server.pid == pid  # type: ignore[attr-defined]
    third = make()
    third.reset(seed=0)
    assert third.server.pid != pid  # type: ignore[attr-defined]
    for env in (other, third):
        env.close()


def test_the_simulator_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, here, temporary = (tmp_path / name for name in ("cache", "here", "temporary"))
    for folder in (here, temporary):
        folder.mkdir()
    monkeypatch.setenv("TEXTAGENT_CACHE", str(cache))
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.chdir(here)
    simulator = Server()
    simulator.load("find-plant", 0, "")
    simulator.step("look around")
    assert [*here.iterdir(), *temporary.iterdir()] == []
    os.kill(simulator.pid, signal.SIGKILL)
    simulator._process.wait(60)
    give(simulator)
    (table,) = (path for path in cache.rglob("*") if not path.is_dir())
    assert (table.name, os.readlink(table)) == ("object_type_ids.tsv", os.devnull)
    table.unlink()
    table.write_text("a table that a simulator wrote after its link was deleted")
    assert os.readlink(server._working_folder() / table.name) == os.devnull


@pytest.mark.parametrize("end", ["os._exit(1)", "os.kill(os.getpid(), signal.SIGTERM)"])
def test_no_file_outlives_the_process_that_started_a_simulator(end: str, tmp_path: Path) -> None:
    code = f"import os, signal; from textagent_gym.domains.scienceworld import server; kept = server.take(); {end}"
    ended = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE, check=False
    )
    assert ended.returncode
    assert list(tmp_path.iterdir()) == []


def test_the_splits_are_those_of_the_simulator() -> None:
    simulator = take()
    for name in ("power-component", "grow-fruit", "identify-life-stages-1"):
        simulator.load(name, 0, "")
        listed = [number for split in SPLITS for number in simulator.variations(split)]
        assert listed == list(range(sum(TASKS[name])))
        assert tuple(len(simulator.variations(split)) for split in SPLITS) == TASKS[name]
    give(simulator)


@pytest.mark.slow
def test_every_valid_action_can_be_called() -> None:
    simulator = take()
    for task in TASKS:
        simulator.load(task, 0, "easy")
        for command in simulator.valid_actions():
            call = parse_function(render_function(call_of(command)), TOOLS)
            assert command_of(call) == command
    give(simulator)


def test_a_gold_path_is_computed_and_solves_its_task() -> None:
    simulator = take()
    path = gold.compute(simulator, "find-non-living-thing", 7, "easy")
    assert 1 <= len(path.actions) <= 30
    assert path.objects > 100
    give(simulator)


def test_a_killed_process_breaks_the_episode_and_leaves_no_zombie() -> None:
    env = make()
    env.reset(options={"task_index": 0})
    pid = env.server.pid  # type: ignore[attr-defined]
    os.kill(pid, signal.SIGKILL)
    _, reward, terminated, truncated, info = env.step("look around")
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert "ScienceWorld" in info["broken"]
    assert not Path(f"/proc/{pid}").exists()
    env.reset(options={"task_index": 0})
    assert env.step("look around")[4]["valid_action"]
    env.close()


def test_a_process_that_does_not_answer_is_stopped_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_CALL_SECONDS", 15)
    stop_idle()
    simulator = Server()
    monkeypatch.undo()
    simulator.load("find-plant", 0, "")
    os.kill(simulator.pid, signal.SIGSTOP)
    with pytest.raises(WorldBrokenError, match="failed in step"):
        simulator.step("look around")
    assert not Path(f"/proc/{simulator.pid}").exists()


_PLAYS = """
import gymnasium, os, signal, sys, threading, time
from textagent_gym.domains.scienceworld import server
signal.signal(signal.SIGINT, signal.default_int_handler)  # What is started in the background ignores it otherwise.
child = 1
if "starting" in sys.argv:
    threading.Thread(target=server.take, daemon=True).start()
    while not server._servers:
        time.sleep(0.001)
else:
    env = gymnasium.make("textagent/ScienceWorld-find-plant-v0").unwrapped
    env.reset(options={"task_index": 0})
    child = os.fork() if "fork" in sys.argv else 1
    if child == 0:
        time.sleep(600)
print(next(iter(server._servers)).pid, child, flush=True)
if "exit" not in sys.argv:
    time.sleep(600)
"""


_ENDS = ["exit", "terminate", "interrupt", "kill", "kill fork", "kill starting", "kill stopped"]
_SLOW_ENDS = [pytest.param(end, marks=pytest.mark.slow) for end in _ENDS[:-1]]


@pytest.mark.parametrize("end", [*_SLOW_ENDS, _ENDS[-1]])
def test_no_process_outlives_the_one_that_started_it(end: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _PLAYS, *end.split()], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as player:
        assert player.stdout is not None
        pid, child = map(int, player.stdout.readline().split())
        sent = {"terminate": signal.SIGTERM, "interrupt": signal.SIGINT, "exit": None}.get(end, signal.SIGKILL)
        if "stopped" in end:
            os.kill(pid, signal.SIGSTOP)  # It does not read its input: as one that hangs.
        if sent is not None:
            assert is_running(pid)
            player.send_signal(sent)
        player.wait(60)
    assert ends(pid)
    if child != 1:
        os.kill(child, signal.SIGKILL)
