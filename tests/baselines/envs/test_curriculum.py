"""Curricula in a run: turn budgets, levels and mixtures as they are played, resumed, shared out and refused."""

from __future__ import annotations

import math
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from baselines import grpo, sft
from baselines.rollout.trajectory import Trajectory
from baselines.settings.schedule import BySuccess
from baselines.training import trainer
from tests.baselines.runs import curve, kill_and_resume
from textagent_gym import UnicodeText
from textagent_gym.errors import InvalidOptionError

ENV = "lights/Lights-v0"
LADDER = {"difficulty": ("switches=1", "switches=2", "switches=3"), "difficulty_success": 0.6, "success_window": 2}


class EchoEnv(gymnasium.Env[str, str]):
    """A text environment of somebody else, without tasks, options or success."""

    observation_space = UnicodeText()
    action_space = UnicodeText()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        assert not options
        return "Say something.", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        return action, 0.25, True, False, {}


@pytest.fixture(scope="module", autouse=True)
def echo() -> None:
    if "echo/Echo-v0" not in gymnasium.registry:
        gymnasium.register("echo/Echo-v0", entry_point=EchoEnv)


@pytest.fixture(scope="module")
def talker(tiny: Path, demos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy that knows how to speak of switches, and not yet which one to press."""
    out = tmp_path_factory.mktemp("talker") / "sft"
    sft.run(sft.Config(model=str(tiny), demos=demos, out=out, epochs=8, batch_size=8, learning_rate=5e-3))
    return out


def config(model: Path, out: Path, **changes: Any) -> grpo.Config:
    basis = grpo.Config(
        model=str(model),
        out=out,
        env=ENV,
        set={"switches": 2, "num_tasks": 8},
        iterations=4,
        groups=4,
        group_size=4,
        slots=8,
        max_action_tokens=6,
        learning_rate=3e-3,
        checkpoint_every=1,
    )
    return replace(basis, **changes)


def play(settings: grpo.Config) -> list[Trajectory]:
    """The episodes of the first iteration."""
    run = trainer._Run(settings, grpo.method(settings), ExitStack())
    collector = run.make_collector()
    try:
        return collector.collect(run.requests(0, range(settings.groups))).trajectories
    finally:
        collector.close()


def test_the_turn_budget_grows_also_in_a_run_that_resumes(tiny: Path, tmp_path: Path) -> None:
    for iterations in (1, 4):
        kwargs = {"switches": 2, "max_turns": 50}
        grpo.run(config(tiny, tmp_path, iterations=iterations, horizon=(1, 3), horizon_every=2, set=kwargs))
    metrics = curve(tmp_path)
    assert [line["max_turns"] for line in metrics] == [1, 1, 3, 3]
    # A policy of random weights solves nothing: its episodes last as long as they may.
    assert [line["turns"] for line in metrics] == [1.0, 1.0, 3.0, 3.0]
    assert "level" not in metrics[0]


def test_a_level_by_success_is_what_the_metrics_say_it_should_be(talker: Path, tmp_path: Path) -> None:
    grpo.run(config(talker, tmp_path / "whole", iterations=10, **LADDER))
    metrics = curve(tmp_path / "whole")
    # Of the newest rung alone; at times no group is of it.
    successes = [line.get(f"success/{ENV} switches={line['level']}", math.nan) for line in metrics]
    schedule = BySuccess(levels=3, bound=0.6, window=2)
    assert [line["level"] for line in metrics] == [1 + schedule.level(successes[:n]) for n in range(10)]
    assert metrics[-1]["level"] >= 2
    for line in metrics:
        played = {key.rpartition("switches=")[2] for key in line if key.startswith("episodes/")}
        assert played == {"1", "2", "3"} - {str(n) for n in range(1 + line["level"], 4)}
        # The rungs of a level share the episodes, up to one group.
        counts = [count for key, count in line.items() if key.startswith("episodes/")]
        assert sum(counts) == line["episodes"] == 16
        assert max(counts) - min(counts) <= 4
        mean = sum(line["success" + key.removeprefix("episodes")] * line[key] for key in line if "episodes/" in key)
        assert mean / 16 == pytest.approx(line["success"])
    # Stopped and resumed, it goes up at the same iterations.
    for iterations in (3, 4, 7, 10):
        grpo.run(config(talker, tmp_path / "parts", iterations=iterations, **LADDER))
    assert curve(tmp_path / "parts") == metrics


@pytest.mark.slow
def test_a_curriculum_killed_at_any_instant_resumes_along_the_same_curve(talker: Path, tmp_path: Path) -> None:
    settings = "iterations=6, checkpoint_every=2, mixture=MIXTURE, horizon=(1, 2, 4), horizon_every=2, **LADDER"
    grpo.run(eval(f"config(talker, tmp_path / 'whole', {settings})"))
    code = f"""
from tests.baselines.envs.test_curriculum import *
grpo.run(config(Path(sys.argv[1]), Path(sys.argv[2]), {settings}))
"""
    out = tmp_path / "killed"
    kill_and_resume(code, talker, out, [(1, 0.0), (4, 0.0)])
    assert len({(line["max_turns"], line["level"]) for line in curve(out)}) >= 3
    assert curve(out) == curve(tmp_path / "whole")


MIXTURE = [{"env": ENV, "set": {"switches": 4, "max_turns": 2, "num_tasks": 8}, "weight": 0.5}]


def test_a_group_is_of_one_environment_and_of_one_task(tiny: Path, tmp_path: Path) -> None:
    mixture = [*MIXTURE, {"env": "echo/Echo-v0", "weight": 1.5}]
    episodes = play(config(tiny, tmp_path, groups=12, group_size=3, mixture=mixture))
    assert len(episodes) == 36
    kinds = []
    for group in range(12):
        members = [episode for episode in episodes if episode.group == group]
        [task] = {episode.task for episode in members}
        [opening] = {episode.turns[0].prompt for episode in members}
        [component] = {episode.options["component"] for episode in members if episode.options}
        kinds.append(component)
        assert str(task).startswith(("Lights/v1/s2/", "Lights/v1/s4/", "None")[component])
        assert opening
    assert [kinds.count(component) for component in range(3)] == [4, 2, 6]  # Of 12, by 1 : 0.5 : 1.5.
    assert kinds != sorted(kinds)


def test_a_mixture_has_metrics_per_environment_and_trains(tiny: Path, tmp_path: Path) -> None:
    grpo.run(config(tiny, tmp_path, iterations=2, mixture=[{"env": "echo/Echo-v0"}], resample=1))
    for line in curve(tmp_path):
        assert line[f"episodes/{ENV}"] + line["episodes/echo/Echo-v0"] == line["episodes"] == 32  # Once more, for new.
        assert line["episodes/echo/Echo-v0"] == 16
        assert (line["return/echo/Echo-v0"], line["turns/echo/Echo-v0"]) == (0.25, 1.0)
        assert "success/echo/Echo-v0" not in line
        assert line[f"success/{ENV}"] == line["success"] == 0.0  # Of those that say so.


@pytest.mark.parametrize("pool", ["process", "thread"])
def test_a_pool_of_workers_plays_what_one_process_plays(tiny: Path, tmp_path: Path, pool: Any) -> None:
    settings = config(tiny, tmp_path, groups=6, mixture=MIXTURE, horizon=(2,), patience=float("inf"), **LADDER)
    here = play(settings)
    there = play(replace(settings, pool=pool, workers=2))
    assert [episode.turns for episode in here] == [episode.turns for episode in there]
    assert [episode.options for episode in here] == [episode.options for episode in there]


def test_only_easy_tasks_are_played_at_first(tiny: Path, tmp_path: Path) -> None:
    settings = config(
        tiny,
        tmp_path,
        groups=40,
        group_size=2,
        set={"switches": 5, "max_turns": 1},
        difficulty=("solution_length",),
        difficulty_levels=3,
        difficulty_tasks=30,
        difficulty_every=1,
    )
    tasks = gymnasium.make(ENV, switches=5).unwrapped.tasks  # type: ignore[attr-defined]
    lengths = [tasks.task("train", index).complexity.solution_length for index in range(30)]
    easiest = sorted(range(30), key=lambda index: (lengths[index], index))[:10]
    assert {episode.task for episode in play(settings)} <= {f"Lights/v1/s5/train/{index}" for index in easiest}
    run = trainer._Run(settings, grpo.method(settings), ExitStack())
    run.successes = [0.0, 0.0]
    drawn = {request.options["task_index"] for request in run.requests(2, range(200)) if request.options}
    assert drawn == set(range(30))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"env": "echo/Echo-v0", "set": {}, "horizon": (5,)}, "horizon needs the option max_turns .* echo/Echo"),
        ({"mixture": [{"env": "echo/Echo-v0"}], "horizon": (5,)}, "horizon needs the option max_turns .* echo/Echo"),
        ({"mixture": [{"env": "echo/Echo-v0"}], **LADDER}, r"difficulty_success needs info\['success'\], .* echo/Echo"),
        (
            {"mixture": [{"env": "echo/Echo-v0"}], "difficulty": ("state_size",), "difficulty_every": 1},
            "difficulty needs tasks whose complexity is measured, .* echo/Echo",
        ),
        (
            {"difficulty": ("state_size",), "difficulty_every": 1},
            "difficulty=state_size: it is 2 in all of the first 8 tasks of lights/Lights-v0; take another axis",
        ),
        (
            {"difficulty": ("solution_length",), "difficulty_every": 1, "difficulty_levels": 9},
            "difficulty_levels=9: lights/Lights-v0 has 8 tasks",
        ),
        ({"difficulty": ("switches=2", "switches=7"), "difficulty_every": 1}, "switches must be .* from 1 to 6, got 7"),
        ({"difficulty": ("lamps=2", "lamps=3"), "difficulty_every": 1}, "'lamps' is not an option of Lights"),
        ({"mixture": [{"env": "FrozenLake-v1"}]}, "FrozenLake-v1 is not a text environment"),
        ({"mixture": [{"env": ENV, "set": {"switches": 2, "num_tasks": 8}}]}, "names lights/Lights-v0 twice"),
    ],
)
def test_what_cannot_be_played_is_refused_before_a_model_is_loaded(
    tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        grpo.run(config(tmp_path / "no-such-model", tmp_path / "run", **fields))
    assert not (tmp_path / "run").exists()
