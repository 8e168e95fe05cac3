"""Each method on a world of another package: what is rewarded becomes more probable, and what every run reports."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium
import pytest
import torch

from baselines import gigpo, grpo, ppo, reinforce_pp, rloo, vineppo
from baselines.credit.advantages import GroupTooSmallError
from baselines.policy.chat import chat_of
from baselines.policy.models import load_policy
from baselines.rollout.trajectory import Trajectory, Turn
from baselines.training.scoring import read_log_probs
from textagent_gym.errors import InvalidOptionError

ENV = "lights/Lights-v0"
KWARGS = {"switches": 1, "max_turns": 2}


@dataclass(frozen=True)
class Case:
    """A method with settings of its own."""

    module: Any
    settings: dict[str, Any] = field(default_factory=dict)
    alone: bool = False

    def run(self, model: Path, out: Path, log: Callable[[dict[str, Any]], None] | None = None, **more: Any) -> Path:
        sizes = {"groups": 32, "group_size": 1} if self.alone else {"groups": 4, "group_size": 8}
        basis = {
            "model": str(model),
            "env": ENV,
            "set": KWARGS,
            "out": out,
            "iterations": 6,
            "slots": 32,
            "max_action_tokens": 6,
            "learning_rate": 3e-3,
            "checkpoint_every": 100,
        }
        config = self.module.Config(**{**basis, **sizes, **self.settings, **more})
        policy: Path = self.module.run(config, log)
        return policy


CASES = {
    "grpo": Case(grpo),
    "dr_grpo": Case(grpo, {"scale": False, "aggregation": "constant"}),
    "grpo per turn": Case(grpo, {"credit": "turn"}),
    "grpo with process supervision": Case(grpo, {"credit": "process"}),
    "dapo": Case(grpo, {"resample": 2, "clip_high": 0.28}),
    "gspo": Case(grpo, {"loss": "gspo", "clip_low": 0.03, "clip_high": 0.04}),
    "cispo": Case(grpo, {"loss": "cispo", "max_sampling_weight": 2.0}),
    "grpo one update late": Case(grpo, {"staleness": 1}),
    "gigpo": Case(gigpo),
    "gigpo by observations": Case(gigpo, {"state": "observation", "scale": False, "kl": 0.01, "kl_in": "reward"}),
    "vineppo": Case(vineppo, {"branches": 2}),
    "rloo": Case(rloo, {"kl": 0.01}),
    "rloo per turn": Case(rloo, {"credit": "turn"}),
    "reinforce++": Case(reinforce_pp, {"kl": 0.01}, alone=True),
    "reinforce++-baseline": Case(reinforce_pp, {"baseline": True}),
    "ppo per turn": Case(ppo, {"kl": 0.01}, alone=True),
    "ppo per token": Case(ppo, {"level": "token", "critic_warmup": 1}, alone=True),
}


def probability(policy: Path, action: str) -> float:
    """Probability of an action at the begin of an episode."""
    model, tokenizer = load_policy(str(policy))
    chat = chat_of(str(policy), tokenizer)
    observation, info = gymnasium.make(ENV, **KWARGS).reset(seed=0)
    prompt = chat.opening(observation, info["instructions"])
    ids = [*tokenizer(action, add_special_tokens=False)["input_ids"], chat.end_id]
    turn = Turn(tuple(prompt), tuple(ids), (0.0,) * len(ids), 0.0, "", "")
    [scores] = read_log_probs(model.eval(), [Trajectory((turn,), 0)], 1.0, 1, torch.device("cpu"))
    return math.exp(scores[len(prompt) :].sum())


@pytest.mark.parametrize("name", CASES)
def test_the_rewarded_action_becomes_more_probable(name: str, talker: Path, tmp_path: Path) -> None:
    before = probability(talker, "press red")
    seen: list[dict[str, Any]] = []
    policy = CASES[name].run(talker, tmp_path, seen.append)
    assert probability(policy, "press red") > before + 0.2
    # Every run says how far the log-probabilities of sampling were from those of training.
    differences = [metrics["log_prob_difference_max"] for metrics in seen if "log_prob_difference_max" in metrics]
    assert differences
    assert (max(differences) < 1e-4) == (name != "grpo one update late")
    assert all(m["log_prob_difference_mean"] <= m["log_prob_difference_max"] for m in seen if "clipped" in m)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    state: dict[str, torch.Tensor] = load_policy(str(folder))[0].state_dict()
    return state


def test_in_the_warm_up_of_the_critic_the_policy_stays_as_it_is(tiny: Path, tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    run = Case(ppo, {"set": {**KWARGS, "turn_penalty": 0.1}, "critic_warmup": 2}, alone=True).run
    warm = run(tiny, tmp_path, seen.append, iterations=2)
    before = weights(tiny)
    assert all(torch.equal(before[name], value) for name, value in weights(warm).items())
    assert seen[1]["critic_loss"] < seen[0]["critic_loss"]
    assert [metrics["gradient_norm"] for metrics in seen] == [0.0, 0.0]
    assert min(metrics["critic_gradient_norm"] for metrics in seen) > 0
    after = weights(run(tiny, tmp_path, seen.append, iterations=3))
    assert any(not torch.equal(before[name], value) for name, value in after.items())
    assert seen[2]["gradient_norm"] > 0


def test_groups_without_any_advantage_are_replaced_by_new_tasks_up_to_a_limit(tiny: Path, tmp_path: Path) -> None:
    settings = {"iterations": 1, "groups": 3, "group_size": 2}
    for resample in (0, 2):  # A policy of random weights solves nothing: no group ever has an advantage.
        seen: list[dict[str, Any]] = []
        Case(grpo, {"resample": resample}).run(tiny, tmp_path / str(resample), seen.append, **settings)
        assert seen[0]["return"] == 0.0
        assert seen[0]["episodes"] == 6 * (1 + resample)


def test_what_is_resampled_fills_the_iteration_and_no_more(talker: Path, tmp_path: Path) -> None:
    settings = {"iterations": 4, "groups": 6, "group_size": 2}
    case = Case(grpo, {"resample": 50, "learning_rate": 0.0})
    seen: list[dict[str, Any]] = []
    case.run(talker, tmp_path / "whole", seen.append, **settings)
    assert all(metrics["useful_groups"] == 6 for metrics in seen)
    assert any(metrics["episodes"] > 12 for metrics in seen)
    again: list[dict[str, Any]] = []
    for iterations in (2, 4):
        case.run(talker, tmp_path / "parts", again.append, **{**settings, "iterations": iterations})
    for one, two in zip(seen, again, strict=True):
        assert {k: v for k, v in one.items() if "seconds" not in k} == {
            k: v for k, v in two.items() if "seconds" not in k
        }


def test_resampling_and_a_divergence_in_the_reward_do_not_go_together(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="kl_in='loss'"):
        Case(grpo, {"resample": 1, "kl": 0.1, "kl_in": "reward"}).run(tiny, tmp_path)


@pytest.mark.parametrize("name", ["grpo", "gigpo", "rloo", "reinforce++-baseline"])
def test_a_group_of_one_is_refused_where_episodes_are_compared(name: str, tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(GroupTooSmallError, match="at least 2"):
        CASES[name].run(tiny, tmp_path, group_size=1)


@pytest.mark.parametrize(
    ("module", "setting"),
    [
        (grpo, {"clip_low": -0.1}),
        (rloo, {"kl": -1.0}),
        (reinforce_pp, {"max_sampling_weight": 0.0}),
        (grpo, {"resample": -1}),
        (ppo, {"critic_warmup": -1}),
        (ppo, {"value_clip": float("nan")}),
        (gigpo, {"step_weight": -1.0}),
        (gigpo, {"discount": float("nan")}),
        (vineppo, {"branches": 0}),
        (vineppo, {"kl_in": "reward", "kl": 0.1}),
    ],
)
def test_settings_out_of_range_are_refused(module: Any, setting: dict[str, float], tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match=next(iter(setting))):
        Case(module, dict(setting)).run(tiny, tmp_path)


def test_metrics_can_be_read_as_json(talker: Path, tmp_path: Path) -> None:
    Case(ppo, {"kl": 0.01, "iterations": 1}, alone=True).run(talker, tmp_path)
    [metrics] = map(json.loads, (tmp_path / "metrics.jsonl").read_text().splitlines())
    for name in ("clipped", "kl", "critic_loss", "log_prob_difference_mean", "log_prob_difference_max"):
        assert math.isfinite(metrics[name])
    assert metrics["kl"] >= 0
