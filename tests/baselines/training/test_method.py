"""A method that nobody has written yet: an actor and a critic, through the loop as it is."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import Accelerator

from baselines import grpo
from baselines.credit.advantages import Credit
from baselines.credit.losses import ppo_clip
from baselines.credit.method import CriticConfig, Forward, Losses, Method
from baselines.credit.rollouts import Rollouts
from baselines.policy.models import load_policy
from baselines.rollout.trajectory import Trajectory, Turn
from baselines.settings.config import Level, TrainerConfig
from baselines.training import trainer
from baselines.training.critic import load_critic, read_values
from baselines.training.scoring import read_log_probs
from baselines.training.update import Learner
from tests.baselines.runs import curve

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
        set={"switches": 2, "max_turns": 3, "turn_penalty": 0.1, "num_tasks": 8},  # Something is always earned.
        out=out,
        iterations=3,
        groups=6,
        group_size=1,
        slots=6,
        max_action_tokens=5,
        checkpoint_every=1,
    )
    return replace(basis, **changes)


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
    values, bootstrap = read_values(critic, [cut, ended], "turn", 1_000, CPU)
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
    run = trainer._Run(settings, method, ExitStack())
    turn = Turn((1, 2), (3,), (-1.0,), 0.0, "", "")
    trajectories = [Trajectory((turn,), group) for group in (0, 0, 1, 2, 2)]
    trainer.update(run.learner, method, settings, trajectories, seed=0)
    assert sorted(set(seen)) == [0, 2]
    before = load_policy(str(tiny))[0].state_dict()
    assert trainer.update(run.learner, method, settings, trajectories[2:3], seed=0)["loss"] == 0.0
    assert any(not torch.equal(before[key], value) for key, value in run.learner.policy.state_dict().items())


@dataclass
class Recorder:
    """An optimizer that notes the policy's gradient instead of using it."""

    model: Any
    noted: list[torch.Tensor] = field(default_factory=list)

    def step(self) -> None:
        self.noted.append(torch.cat([p.grad.flatten() for p in self.model.parameters() if p.grad is not None]))

    def zero_grad(self) -> None:
        self.model.zero_grad()


def gradient_of(
    tiny: Path, out: Path, method: Method, trajectories: list[Trajectory], **changes: object
) -> tuple[torch.Tensor, dict[str, float]]:
    """The policy's gradient of one update, and the metrics."""
    policy = load_policy(str(tiny))[0]
    recorder = Recorder(policy)
    critic = None if method.critic is None else load_critic(str(tiny))
    reference = load_policy(str(tiny))[0].eval() if method.reference else None
    learner = Learner(Accelerator(cpu=True), policy, recorder, Recorder(policy), critic, reference)
    settings = config(tiny, out, minibatches=1, **{"max_gradient": 0.01, **changes})
    metrics = trainer.update(learner, method, settings, trajectories, seed=0)
    return recorder.noted[0], metrics


def some_episodes(rewards: list[list[float]], groups: list[int], off: float = 0.0) -> list[Trajectory]:
    """Episodes with a turn per reward; log-probabilities are off those of sampling by `off`."""
    random = np.random.default_rng(0)
    played = []
    for row, group in zip(rewards, groups, strict=True):
        turns = []
        for reward in row:
            prompt, action = (tuple(random.integers(5, 200, random.integers(1, 7)).tolist()) for _ in range(2))
            turns.append(Turn(prompt, action, (-5.0 + off,) * len(action), reward, "", ""))
        played.append(Trajectory(tuple(turns), group, terminated=True))
    return played


def test_a_critic_that_is_far_off_does_not_shorten_the_policys_step(tiny: Path, tmp_path: Path) -> None:
    def method(weight: float) -> Method:
        whole = actor_critic()

        def loss(forward: Forward) -> Losses:
            losses = whole.loss(forward)
            assert losses.critic is not None
            return Losses(losses.policy, losses.critic * weight)

        return replace(whole, loss=loss)

    trajectories = some_episodes([[1.0, 0.5], [0.0], [2.0]], [0, 1, 2])
    near, far = (gradient_of(tiny, tmp_path, method(weight), trajectories) for weight in (1e-3, 1e3))
    assert far[1]["critic_gradient_norm"] > 100 * near[1]["critic_gradient_norm"]
    assert far[1]["gradient_norm"] > 0.01  # So the bound acts.
    assert torch.equal(near[0], far[0])


@pytest.mark.parametrize("resample", [0, 1])
@pytest.mark.parametrize("aggregation", ["token", "sequence", "constant"])
def test_groups_without_any_advantage_count_in_the_divisor_unless_they_are_replaced(
    tiny: Path, tmp_path: Path, aggregation: str, resample: int
) -> None:
    method = grpo.method(grpo.Config(model="", env="", out=tmp_path, resample=resample))
    # Equal returns, though their sums differ in the last bit; and a group whose second episode is its mean.
    rewards = [[1.0], [0.5, 0.0], [0.0], [0.1, 0.2], [0.3], [0.3]]
    everything = some_episodes(rewards, [0, 0, 0, 1, 1, 1])
    both = gradient_of(tiny, tmp_path, method, everything, aggregation=aggregation, max_gradient=1e9)
    useful = gradient_of(tiny, tmp_path, method, everything[:3], aggregation=aggregation, max_gradient=1e9)
    tokens, useful_tokens = (sum(t.sampled for t in episodes) for episodes in (everything, everything[:3]))
    share = 1.0 if resample else useful_tokens / tokens if aggregation == "token" else 0.5
    torch.testing.assert_close(both[0], useful[0] * share, rtol=1e-5, atol=1e-7)
    assert both[1]["useful_groups"] == useful[1]["useful_groups"] == 1
    for name in ("clipped", "log_prob_difference_mean"):
        assert both[1][name] == pytest.approx(useful[1][name])
    assert sum(reward != 0.1 + 0.2 for [reward] in rewards[-2:]) == 2


def test_the_trainer_can_compute_what_the_generator_should_have_said(tiny: Path, tmp_path: Path) -> None:
    seen: list[Forward] = []

    def loss(forward: Forward) -> Losses:
        seen.append(forward)
        return Losses(ppo_clip(forward.log_probs, forward.old_log_probs, forward.advantages))

    def ones(rollouts: Rollouts) -> Credit:
        return Credit(np.where(rollouts.played, 1.0, 0.0))

    for rescored in (False, True):
        before = len(seen)
        trajectories = some_episodes([[1.0, 0.5], [0.0]], [0, 1])
        _, metrics = gradient_of(tiny, tmp_path, Method(ones, loss, rescored=rescored), trajectories)
        # Generators that are off are told by the metrics in either case.
        distance = torch.cat([(f.log_probs.detach() - f.sampling_log_probs).abs()[f.mask > 0] for f in seen[before:]])
        assert metrics["log_prob_difference_mean"] == pytest.approx(float(distance.mean()), rel=1e-5)
        assert metrics["log_prob_difference_max"] == pytest.approx(float(distance.max()), rel=1e-5)
    microbatches = len(seen) // 2
    for trusted, rescored_forward in zip(seen[:microbatches], seen[microbatches:], strict=True):
        assert torch.equal(trusted.old_log_probs, trusted.sampling_log_probs)
        assert torch.equal(rescored_forward.sampling_log_probs, trusted.sampling_log_probs)
        torch.testing.assert_close(rescored_forward.log_probs, rescored_forward.old_log_probs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("level", ["turn", "token"])
def test_the_divergence_is_that_of_the_sampled_tokens_from_the_first_policy(
    tiny: Path, tmp_path: Path, level: Level
) -> None:
    seen: list[Rollouts] = []

    def advantages(rollouts: Rollouts) -> Credit:
        seen.append(rollouts)
        return Credit(np.where(rollouts.played, 1.0, 0.0))

    def loss(forward: Forward) -> Losses:
        return Losses(ppo_clip(forward.log_probs, forward.old_log_probs, forward.advantages))

    trajectories = some_episodes([[1.0, 0.5], [0.0]], [0, 1])
    gradient_of(tiny, tmp_path, Method(advantages, loss, level=level, reference=True), trajectories)
    first = read_log_probs(load_policy(str(tiny))[0].eval(), trajectories, 1.0, 1, CPU)
    kl = seen[0].kl
    assert kl is not None
    for row, trajectory, scores in zip(kl, trajectories, first, strict=True):
        at, expected = 0, []
        for turn in trajectory.turns:
            begin = at + len(turn.prompt)
            at = begin + len(turn.action)
            tokens = [-5.0 - score for score in scores[begin:at]]
            expected += [sum(tokens)] if level == "turn" else tokens
        assert row[: len(expected)] == pytest.approx(expected, abs=1e-4)
        assert not row[len(expected) :].any()


def test_more_groups_are_other_tasks_and_leave_the_first_ones_as_they_are(tiny: Path, tmp_path: Path) -> None:
    settings = config(tiny, tmp_path, groups=5, group_size=2)
    first = trainer.episode_requests(settings, 3)
    more = trainer.episode_requests(settings, 3, range(5, 9))
    assert [request.group for request in first] == np.repeat(np.arange(5), 2).tolist()
    assert [request.group for request in more] == np.repeat(np.arange(5, 9), 2).tolist()
    assert trainer.episode_requests(settings, 3, range(9)) == first + more
    assert len({request.seed for request in first + more}) == 9
    assert len({request.sampling_seed for request in first + more}) == 18
