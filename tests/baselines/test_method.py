"""A method that nobody has written yet: an actor and a critic, through the loop as it is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from baselines import trainer
from baselines.advantages import Credit
from baselines.config import TrainerConfig
from baselines.critic import load_critic, read_values
from baselines.losses import ppo_clip
from baselines.method import CriticConfig, Forward, Losses, Method
from baselines.models import load_policy
from baselines.rollouts import Level, Rollouts
from baselines.trajectory import Trajectory, Turn

ENV = "lights/Lights-v0"
CPU = torch.device("cpu")


def actor_critic(level: Level = "turn", seen: list[Rollouts] | None = None) -> Method:
    """One-step temporal differences as advantages, and the critic's squared error as its loss."""

    def advantages(rollouts: Rollouts) -> Credit:
        assert rollouts.values is not None
        assert rollouts.bootstrap is not None
        if seen is not None:
            seen.append(rollouts)
        values, last = rollouts.values, rollouts.lengths - 1
        following = np.zeros_like(values)
        following[:, :-1] = values[:, 1:]
        following[np.arange(len(last)), last] = rollouts.bootstrap
        targets = np.where(rollouts.played, rollouts.rewards + following, 0.0)
        return Credit(np.where(rollouts.played, targets - values, 0.0), targets)

    def loss(forward: Forward) -> Losses:
        assert forward.values is not None
        assert forward.returns is not None
        error = (forward.values - forward.returns) ** 2
        policy = ppo_clip(forward.log_probs, forward.old_log_probs, forward.advantages)
        return Losses(policy, error, {"value_error": error.detach()})

    return Method(advantages, loss, critic=CriticConfig(learning_rate=3e-3), level=level)


def config(tiny: Path, out: Path, **changes: object) -> TrainerConfig:
    basis = TrainerConfig(
        model=str(tiny),
        env=ENV,
        env_kwargs={"switches": 2, "max_turns": 3, "turn_penalty": 0.1, "num_tasks": 8},  # Something is always earned.
        out=out,
        iterations=3,
        groups=6,
        group_size=1,
        slots=6,
        max_action_tokens=5,
        checkpoint_every=1,
    )
    return replace(basis, **changes)


def curve(out: Path) -> list[dict[str, float]]:
    lines = (out / "metrics.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if not k.endswith("seconds")} for line in lines]


@pytest.mark.parametrize("level", ["turn", "token"])
def test_a_critic_goes_through_the_loop(tiny: Path, tmp_path: Path, level: Level) -> None:
    seen: list[Rollouts] = []
    trainer.train(config(tiny, tmp_path), actor_critic(level, seen))
    assert [rollouts.values.shape == rollouts.rewards.shape for rollouts in seen] == [True] * 3
    assert not seen[0].values.any()  # A critic begins with the estimate 0,
    assert seen[1].values[seen[1].played].all()  # and has learned something after an update.
    assert not seen[1].values[~seen[1].played].any()
    assert not seen[1].bootstrap[seen[1].terminated].any()
    assert seen[1].bootstrap[~seen[1].terminated].all()
    assert all(metrics["value_error"] >= 0 for metrics in curve(tmp_path))
    turns = seen[0].lengths.mean()
    assert turns <= 3 if level == "turn" else turns > 3


def test_a_critic_survives_a_kill(tiny: Path, tmp_path: Path) -> None:
    trainer.train(config(tiny, tmp_path / "whole"), actor_critic())
    trainer.train(config(tiny, tmp_path / "parts", iterations=1), actor_critic())
    trainer.train(config(tiny, tmp_path / "parts"), actor_critic())
    assert curve(tmp_path / "parts") == curve(tmp_path / "whole")
    parts, whole = (load_critic(str(tmp_path / name / "checkpoint" / "critic")) for name in ("parts", "whole"))
    assert all(torch.equal(a, b) for a, b in zip(parts.parameters(), whole.parameters(), strict=True))


def test_the_values_are_those_of_the_tokens_before_each_step(tiny: Path) -> None:
    critic = load_critic(str(tiny)).eval()
    torch.nn.init.normal_(critic.score.weight, generator=torch.Generator().manual_seed(0))
    turns = (Turn((1, 2, 3), (4, 5), (0.0, 0.0), 0.0, "", ""), Turn((6,), (7, 8, 9), (0.0, 0.0, 0.0), 1.0, "", ""))
    cut = Trajectory(turns, 0, closing=(10, 11))
    ended = Trajectory(turns[:1], 0, terminated=True, closing=(6,))
    with torch.no_grad():
        read = critic(input_ids=torch.tensor([[*cut.ids, *cut.closing]])).logits[0, :, 0].double().numpy()
    values, bootstrap = read_values(critic, [cut, ended], "turn", 2, CPU)
    # The prompts end at positions 2 and 5; the closing observation ends at 10.
    assert values == pytest.approx(np.array([[read[2], read[5]], [read[2], 0.0]]), abs=1e-5)
    assert bootstrap == pytest.approx([read[10], 0.0], abs=1e-5)
    values, _ = read_values(critic, [cut, ended], "token", 1, CPU)
    assert values[0] == pytest.approx(read[[2, 3, 5, 6, 7]], abs=1e-5)
    assert values[1] == pytest.approx([read[2], read[3], 0.0, 0.0, 0.0], abs=1e-5)


def test_a_group_that_lost_too_many_episodes_is_left_out(tiny: Path, tmp_path: Path) -> None:
    seen: list[int] = []

    def advantages(rollouts: Rollouts) -> Credit:
        seen.extend(rollouts.groups.tolist())
        return Credit(np.where(rollouts.played, 1.0, 0.0))

    def loss(forward: Forward) -> Losses:
        return Losses(ppo_clip(forward.log_probs, forward.old_log_probs, forward.advantages))

    method = Method(advantages, loss, smallest_group=2)
    settings = config(tiny, tmp_path, group_size=2)
    run = trainer._Run(settings, method)
    turn = Turn((1, 2), (3,), (-1.0,), 0.0, "", "")
    trajectories = [Trajectory((turn,), group) for group in (0, 0, 1, 2, 2)]
    trainer.update(run.learner, method, settings, trajectories, seed=0)
    assert sorted(set(seen)) == [0, 2]
    before = load_policy(str(tiny))[0].state_dict()
    assert trainer.update(run.learner, method, settings, trajectories[2:3], seed=0)["loss"] == 0.0
    assert any(not torch.equal(before[key], value) for key, value in run.learner.policy.state_dict().items())
