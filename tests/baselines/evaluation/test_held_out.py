"""Evaluation during training: on held-out tasks, always the same, and training does not notice."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from baselines import grpo
from baselines.evaluation.evaluate import FIRST_SEED, evaluate_policy
from baselines.training import trainer
from tests.baselines.training.test_training import config, curve
from textagent_gym.errors import InvalidOptionError

EVALUATED = {"eval_every": 2, "eval_tasks": 5, "eval_episodes": 2, "checkpoint_every": 3}


class EchoEnv(gymnasium.Env[str, str]):
    """A world of somebody else: its task follows from the seed, and it knows neither splits nor success."""

    observation_space = gymnasium.spaces.Text(100)
    action_space = gymnasium.spaces.Text(100)
    seeds: list[int] = []  # noqa: RUF012 (shared by all environments, to look at)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        assert not options
        super().reset(seed=seed)
        assert seed is not None
        self.seeds.append(seed)
        return f"Say {self.np_random.integers(10)}.", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        return "Bye.", len(action) % 7 / 7, True, False, {}


def evaluations(out: Path) -> list[dict[str, Any]]:
    lines = (out / "evaluations.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if k != "seconds"} for line in lines]


@pytest.fixture(scope="module")
def whole(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole")
    grpo.run(config(tiny, out, **EVALUATED))
    return out


def test_training_has_the_same_curve_with_evaluations_and_without(tiny: Path, whole: Path, tmp_path: Path) -> None:
    grpo.run(config(tiny, tmp_path, eval_every=0, checkpoint_every=3))
    assert curve(tmp_path) == curve(whole)
    assert not (tmp_path / "evaluations.jsonl").exists()


def test_an_evaluation_is_what_anybody_measures_who_plays_that_policy(tiny: Path, whole: Path) -> None:
    first, *_, last = evaluations(whole)
    assert [line["iteration"] for line in evaluations(whole)] == [0, 2, 4]
    settings = {"switches": 2, "max_turns": 3, "reward_density": "dense", "split": "test"}
    for line, policy in ((first, tiny), (last, whole / "policy")):
        result, _ = evaluate_policy(
            str(policy), "lights/Lights-v0", settings, tasks=5, episodes=2, slots=8, max_action_tokens=6
        )
        returns = [episode.total_reward for episode in result.episodes]
        assert line["return"] == pytest.approx(sum(returns) / 10, abs=1e-12)
        assert line["success"] == sum(episode.success for episode in result.episodes) / 10
        low, high = line["success_interval"]
        assert low - 1e-12 <= line["success"] < high
        assert (line["episodes"], line["broken"], line["tasks"], line["episodes_per_task"]) == (10, 0, 5, 2)
        assert (line["temperature"], line["max_action_tokens"], line["set"]) == (1.0, 6, settings)


def test_a_resumed_run_neither_repeats_nor_loses_an_evaluation(
    tiny: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, written = trainer.append_metrics, []

    def kill_at(number: int) -> None:
        def killed(folder: Path, metrics: dict[str, Any], *file: str) -> None:
            written.append(metrics)
            if len(written) == number:
                raise KeyboardInterrupt
            append(folder, metrics, *file)

        written.clear()
        monkeypatch.setattr(trainer, "append_metrics", killed)

    # In turn: in the first evaluation, in iteration 3 (whose evaluations since the checkpoint are made again), in
    # iteration 4 and in the last evaluation.
    for number, evaluated in ((1, [0]), (5, [0, 2]), (5, [2]), (2, [4])):
        kill_at(number)
        with pytest.raises(KeyboardInterrupt):
            grpo.run(config(tiny, tmp_path, **EVALUATED))
        assert [metrics["iteration"] for metrics in written if "tasks" in metrics] == evaluated
    kill_at(0)
    grpo.run(config(tiny, tmp_path, **EVALUATED))
    assert [metrics["iteration"] for metrics in written] == [4]
    assert evaluations(tmp_path) == evaluations(whole)
    assert curve(tmp_path) == curve(whole)
    written.clear()
    grpo.run(config(tiny, tmp_path, **EVALUATED))
    assert written == []


def test_evaluations_are_logged_apart_from_iterations(tiny: Path, tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    grpo.run(config(tiny, tmp_path, iterations=1, eval_every=1, eval_tasks=2), log=seen.append)
    assert [(line["iteration"], "evaluation" in line) for line in seen] == [(0, True), (1, False), (1, True)]


def test_evaluation_has_settings_of_its_own(tiny: Path, tmp_path: Path) -> None:
    changes = {
        "eval_set": {"max_turns": 7},
        "eval_split": "validation",
        "eval_temperature": 0.0,
        "eval_max_action_tokens": 3,
    }
    grpo.run(config(tiny, tmp_path, iterations=0, eval_every=1, eval_tasks=200, hints=True, **changes))
    (line,) = evaluations(tmp_path)
    assert line["set"] == {"switches": 2, "reward_density": "dense", "max_turns": 7, "split": "validation"}
    assert (line["temperature"], line["max_action_tokens"], line["hints"]) == (0.0, 3, True)
    assert line["tasks"] == 200  # The eight tasks of training are no bound.
    assert line["turns"] > 3


def test_settings_of_the_evaluation_may_change_when_a_run_resumes(tiny: Path, tmp_path: Path) -> None:
    grpo.run(config(tiny, tmp_path, iterations=1))
    grpo.run(config(tiny, tmp_path, iterations=2, eval_every=2, eval_tasks=2))
    assert [line["iteration"] for line in evaluations(tmp_path)] == [2]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"eval_split": "exam"}, "exam"),
        ({"eval_set": {"switches": 9}}, "switches must be"),
        ({"eval_set": {"split": "test"}}, "give it as eval_split"),
        ({"eval_tasks": 0}, "eval_tasks must be at least 1"),
        ({"eval_temperature": -1.0}, "eval_temperature must be at least 0"),
    ],
)
def test_a_bad_setting_is_refused_before_a_model_is_loaded(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        grpo.run(config(tmp_path / "no-such-model", tmp_path / "run", eval_every=1, **changes))
    assert not (tmp_path / "run").exists()


def test_a_world_without_numbered_tasks_is_evaluated_on_seeds_that_training_never_draws(
    tiny: Path, tmp_path: Path
) -> None:
    if "echo/Seeded-v0" not in gymnasium.registry:
        gymnasium.register("echo/Seeded-v0", entry_point=f"{__name__}:EchoEnv", disable_env_checker=True)
    EchoEnv.seeds.clear()
    settings = config(tiny, tmp_path, env="echo/Seeded-v0", set={}, iterations=2, eval_every=2, eval_tasks=9)
    policy = grpo.run(replace(settings, learning_rate=1e-2))
    assert [seed for seed in EchoEnv.seeds if seed >= FIRST_SEED] == [FIRST_SEED + n for n in range(9)] * 2
    assert len(EchoEnv.seeds) == 9 + 2 * 8 + 9
    before, after = evaluations(tmp_path)
    assert before["return"] != after["return"]  # Each has the weights of its moment.
    for line, played in ((before, tiny), (after, policy)):
        assert line["episodes"] == 9
        assert "success" not in line
        result, _ = evaluate_policy(str(played), "echo/Seeded-v0", {}, tasks=9, slots=8, max_action_tokens=6)
        assert line["return"] == pytest.approx(sum(each.total_reward for each in result.episodes) / 9, abs=1e-12)
    grpo.run(replace(settings, learning_rate=1e-2, eval_every=0, out=tmp_path / "alone"))
    assert curve(tmp_path / "alone") == curve(tmp_path)
    assert curve(tmp_path)[1]["gradient_norm"] > 0


def test_the_last_policy_is_evaluated_too(tiny: Path, tmp_path: Path) -> None:
    grpo.run(config(tiny, tmp_path, iterations=3, eval_every=2, eval_tasks=2))
    assert [line["iteration"] for line in evaluations(tmp_path)] == [0, 2, 3]


def test_of_a_ladder_the_last_settings_are_evaluated(tiny: Path, tmp_path: Path) -> None:
    ladder = ("switches=1", "switches=3")
    grpo.run(config(tiny, tmp_path, iterations=1, eval_every=1, eval_tasks=2, difficulty=ladder, difficulty_every=1))
    assert [line["set"]["switches"] for line in evaluations(tmp_path)] == [3, 3]


def test_tasks_of_training_are_not_held_out(tiny: Path, tmp_path: Path) -> None:
    settings = config(tiny, tmp_path / "run", eval_every=1)
    wanted = replace(settings, set={**settings.set, "split": "test"})
    with pytest.raises(InvalidOptionError, match="trained on split='test', and has no other to evaluate on"):
        grpo.run(wanted)
    grpo.run(replace(wanted, iterations=0, eval_split="test", eval_tasks=2))
    assert [line["iteration"] for line in evaluations(tmp_path / "run")] == [0]
