"""Episodes that are played while the update runs, by weights that are one update behind."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel

from baselines import grpo, ppo, vineppo
from baselines.credit.advantages import Credit
from baselines.credit.rollouts import Rollouts
from baselines.policy.adapters import add_adapters, learned_weights, load_learned_weights
from baselines.policy.models import load_policy
from baselines.rollout.trajectory import Trajectory
from baselines.settings.config import PolicyConfig
from baselines.training import trainer
from baselines.training.player import copy_policy
from baselines.training.scoring import read_log_probs, sampling_log_probs
from tests.baselines.runs import curve, kill_and_resume, small_run
from textagent_gym.errors import InvalidOptionError

CPU = torch.device("cpu")


def config(tiny: Path, out: Path, **changes: Any) -> grpo.Config:
    basis = {"iterations": 5, "learning_rate": 3e-3, "checkpoint_every": 2, "staleness": 1}
    settings: grpo.Config = small_run(grpo.Config, tiny, out, **{**basis, **changes})
    return settings


def noise(rollouts: Rollouts) -> Credit:
    """Advantages for a policy of random weights, which earns nothing."""
    random = np.random.default_rng(rollouts.rewards.shape)
    return Credit(np.where(rollouts.played, random.standard_normal(rollouts.rewards.shape), 0.0))


def run(settings: Any, module: Any = grpo) -> None:
    method = module.method(settings)
    trainer.train(settings, method if module is ppo else replace(method, advantages=noise))


@pytest.fixture
def updates(monkeypatch: pytest.MonkeyPatch) -> list[tuple[PreTrainedModel, list[Trajectory]]]:
    """Before each update: a copy of the policy, and the episodes that the update reads."""
    seen: list[tuple[PreTrainedModel, list[Trajectory]]] = []
    learn = trainer.update

    def update(learner: Any, method: Any, settings: Any, trajectories: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append((copy_policy(learner.policy), list(trajectories)))
        return learn(learner, method, settings, trajectories, *args, **kwargs)

    monkeypatch.setattr(trainer, "update", update)
    return seen


def distance(policy: PreTrainedModel, trajectories: list[Trajectory]) -> float:
    """Largest distance of the recorded log-probabilities from those of a policy."""
    read = read_log_probs(policy, trajectories, 1.0, 4_096, CPU)
    recorded = sampling_log_probs(trajectories)
    return max(float(abs(mine - theirs).max()) for mine, theirs in zip(read, recorded, strict=True))


@pytest.mark.parametrize("lora_rank", [0, 4])
def test_an_iteration_is_played_by_the_weights_before_the_last_update(
    tiny: Path, tmp_path: Path, updates: list[Any], lora_rank: int
) -> None:
    run(config(tiny, tmp_path, lora_rank=lora_rank))
    assert len(updates) == 5
    for number, (policy, trajectories) in enumerate(updates):
        before, _ = updates[max(0, number - 1)]
        assert distance(before, trajectories) < 1e-5
        assert (distance(policy, trajectories) > 1e-3) == (number > 0)
    differences = [line["log_prob_difference_max"] for line in curve(tmp_path)]
    assert differences[0] < 1e-5
    assert min(differences[1:]) > 1e-3


def test_without_staleness_they_are_those_of_the_update(tiny: Path, tmp_path: Path, updates: list[Any]) -> None:
    run(config(tiny, tmp_path, staleness=0))
    assert all(distance(policy, trajectories) < 1e-5 for policy, trajectories in updates)


def test_the_same_tasks_are_played_with_the_same_seeds(tiny: Path, tmp_path: Path, updates: list[Any]) -> None:
    for staleness in (0, 1):
        horizon = {"horizon": (1, 3), "horizon_every": 2}
        run(config(tiny, tmp_path / str(staleness), staleness=staleness, iterations=4, **horizon))
    exact, stale = updates[:4], updates[4:]
    for (_, one), (_, other) in zip(exact, stale, strict=True):
        assert [(t.task, t.group, t.sampling_seed, t.options) for t in one] == [
            (t.task, t.group, t.sampling_seed, t.options) for t in other
        ]
    assert [line["max_turns"] for line in curve(tmp_path / "1")] == [1, 1, 3, 3]
    assert [t.turns for t in exact[0][1]] == [t.turns for t in stale[0][1]]
    assert [t.turns for t in exact[2][1]] != [t.turns for t in stale[2][1]]


@pytest.mark.parametrize(
    "module", [grpo, pytest.param(ppo, marks=pytest.mark.slow), pytest.param(vineppo, marks=pytest.mark.slow)]
)
def test_a_run_that_was_stopped_resumes_along_the_same_curve(module: Any, tiny: Path, tmp_path: Path) -> None:
    shared = {
        name: value for name, value in vars(config(tiny, tmp_path)).items() if name in PolicyConfig.__dataclass_fields__
    }
    settings = {
        **shared,
        **({"branches": 2} if module is vineppo else {}),
        **({"lora_rank": 2} if module is grpo else {}),
    }
    run(module.Config(**{**settings, "out": tmp_path / "whole", "iterations": 4}), module)
    for iterations in (1, 3, 4):
        run(module.Config(**{**settings, "out": tmp_path / "parts", "iterations": iterations}), module)
    assert curve(tmp_path / "parts") == curve(tmp_path / "whole")
    parts, whole = (load_policy(str(tmp_path / name / "policy"))[0].state_dict() for name in ("parts", "whole"))
    assert all(torch.equal(parts[name], value) for name, value in whole.items())


def test_evaluations_change_no_curve(tiny: Path, tmp_path: Path) -> None:
    run(config(tiny, tmp_path / "without", iterations=3))
    run(config(tiny, tmp_path / "with", iterations=3, eval_every=1, eval_tasks=4))
    assert curve(tmp_path / "with") == curve(tmp_path / "without")
    assert len((tmp_path / "with" / "evaluations.jsonl").read_text().splitlines()) == 4


def test_a_run_that_fails_in_its_update_leaves_the_episodes_that_are_played(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[Trajectory] = []
    watch = trainer.Player._watch

    def fail(*_: Any, **__: Any) -> None:
        raise FloatingPointError("no update")

    def count(self: Any, trajectory: Trajectory) -> None:
        ended.append(trajectory)
        watch(self, trajectory)

    monkeypatch.setattr(trainer, "update", fail)
    monkeypatch.setattr(trainer.Player, "_watch", count)
    long = {"switches": 6, "max_turns": 60, "num_tasks": 8}
    with pytest.raises(FloatingPointError, match="no update"):
        run(config(tiny, tmp_path, set=long, horizon=(1, 60), horizon_every=1, slots=1))
    assert 8 < len(ended) < 16  # All of the first iteration, and not all of the second.
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("player")]


def test_an_error_in_the_episodes_that_are_played_is_the_runs(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play = trainer.Player._play

    def fail(self: Any, iteration: int) -> Any:
        if iteration == 2:
            raise FloatingPointError("no episodes")
        return play(self, iteration)

    monkeypatch.setattr(trainer.Player, "_play", fail)
    with pytest.raises(FloatingPointError, match="no episodes"):
        run(config(tiny, tmp_path))
    assert len(curve(tmp_path)) == 2


def test_the_copy_that_plays_shares_the_weights_that_are_not_learned(tiny: Path) -> None:
    policy, _ = load_policy(str(tiny))
    add_adapters(policy, rank=2, alpha=4.0)
    copied = copy_policy(policy)
    mine, theirs = (dict(model.named_parameters()) for model in (policy, copied))
    learned = learned_weights(policy)
    assert 0 < len(learned) < len(mine)
    for name, weight in mine.items():
        assert (weight.data_ptr() == theirs[name].data_ptr()) == (name not in learned)
    load_learned_weights(copied, {name: weight + 1 for name, weight in learned.items()})
    assert all(torch.equal(theirs[name], weight + 1) for name, weight in learned.items())


def test_what_would_not_be_corrected_is_refused(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="staleness must be 0 or 1, got 2"):
        config(tiny, tmp_path, staleness=2)
    settings = config(tiny, tmp_path)
    assert settings.largest_weight == 2.0
    assert replace(settings, max_sampling_weight=1.5).largest_weight == 1.5
    assert replace(settings, staleness=0).largest_weight is None
    with pytest.raises(InvalidOptionError, match=r"staleness=1 needs a method .* Method.rescored"):
        trainer.train(settings, replace(grpo.method(settings), rescored=False))
    assert not (tmp_path / "config.json").exists()


@pytest.mark.slow
def test_a_run_killed_at_any_instant_resumes_along_the_same_curve(tiny: Path, tmp_path: Path) -> None:
    run(config(tiny, tmp_path / "whole", iterations=8))
    code = """
from tests.baselines.training.test_staleness import config, run
run(config(Path(sys.argv[1]), Path(sys.argv[2]), iterations=8))
"""
    kill_and_resume(code, tiny, tmp_path / "killed", [(2, 0.02), (4, 0.15), (6, 0.35)])
    assert curve(tmp_path / "killed") == curve(tmp_path / "whole")
