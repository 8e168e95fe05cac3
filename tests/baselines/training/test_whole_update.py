"""The gradients of a whole update of PPO and REINFORCE++, against episodes that are read one by one, unpadded."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import Accelerator

from baselines import ppo, reinforce_pp
from baselines.credit.method import Method
from baselines.policy.models import load_policy
from baselines.rollout.trajectory import Trajectory, Turn
from baselines.settings.config import Level, PolicyConfig
from baselines.training.critic import load_critic
from baselines.training.update import Learner, update

Gradients = dict[str, torch.Tensor]
KL, DISCOUNT, DECAY, TOKEN_DISCOUNT, TOKEN_DECAY = 0.1, 0.9, 0.8, 0.99, 0.7


@dataclass(frozen=True)
class Models:
    """A policy that has moved from the first one, the first one, and a critic that says something."""

    policy: Any
    first: Any
    critic: Any


@dataclass
class Recorder:
    """An optimizer that notes gradients instead of using them."""

    models: list[Any]
    noted: list[Gradients] = field(default_factory=list)

    def step(self) -> None:
        self.noted += [gradients(model) for model in self.models]

    def zero_grad(self) -> None:
        for model in self.models:
            model.zero_grad()


def gradients(model: Any) -> Gradients:
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


def load(tiny: Path) -> Models:
    models = Models(load_policy(str(tiny))[0], load_policy(str(tiny))[0].eval(), load_critic(str(tiny)))
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in (*models.policy.parameters(), *models.critic.score.parameters()):
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=random))
    return models


def log_probs_of(model: Any, ids: list[int]) -> torch.Tensor:
    """Of each token after the first one; `log_probs_of(...)[k - 1]` belongs to token k."""
    scores = model(input_ids=torch.tensor([ids])).logits[0, :-1].log_softmax(-1)
    return scores.gather(1, torch.tensor(ids[1:])[:, None])[:, 0]


def episodes(models: Models) -> list[Trajectory]:
    """Episodes whose sampling log-probabilities are near the policy's, so that some ratios are clipped and some not."""
    random = np.random.default_rng(5)
    played = []
    for number in range(7):
        texts = [
            [tuple(random.integers(5, 200, random.integers(1, 6)).tolist()) for _ in range(2)]
            for _ in range(random.integers(1, 4))
        ]
        ids = [token for prompt, action in texts for token in (*prompt, *action)]
        with torch.no_grad():
            scores = [0.0, *log_probs_of(models.policy, ids).tolist()]
        turns, at = [], 0
        for prompt, action in texts:
            begin = at + len(prompt)
            at = begin + len(action)
            said = tuple(float(score + random.normal(scale=0.2)) for score in scores[begin:at])
            turns.append(Turn(prompt, action, said, float(random.normal()), "", ""))
        closing = tuple(random.integers(5, 200, 3).tolist())
        played.append(Trajectory(tuple(turns), number, terminated=number % 2 == 0, closing=closing))
    return played


@dataclass
class Read:
    """One episode as a person would write it down: tokens by number, the first token of each step, its rewards."""

    new: torch.Tensor
    values: torch.Tensor
    old: list[float]
    begins: list[int]
    ends_turn: list[bool]
    tokens: list[list[int]]
    rewards: list[float]
    after: float


def read(models: Models, trajectory: Trajectory, level: Level) -> Read:
    ids = trajectory.ids
    new = torch.nn.functional.pad(log_probs_of(models.policy, ids), (1, 0))
    first = [0.0, *log_probs_of(models.first, ids).tolist()]
    said = models.critic(input_ids=torch.tensor([[*ids, *trajectory.closing]])).logits[0, :, 0]
    values = torch.nn.functional.pad(said, (1, 0))  # Before each token, from the tokens before it.
    old = [0.0] * len(ids)
    tokens, rewards, ends = [], [], []
    at = 0
    for turn in trajectory.turns:
        at += len(turn.prompt)
        sampled = list(range(at, at + len(turn.action)))
        at += len(turn.action)
        for token, log_prob in zip(sampled, turn.log_probs, strict=True):
            old[token] = log_prob
        steps = [sampled] if level == "turn" else [[token] for token in sampled]
        for step in steps:
            tokens.append(step)
            last = step is steps[-1]
            ends.append(last)
            rewards.append((turn.reward if last else 0.0) - KL * sum(old[t] - first[t] for t in step))
    after = 0.0 if trajectory.terminated else float(values[-1].detach())
    return Read(new, values, old, [step[0] for step in tokens], ends, tokens, rewards, after)


def naive(
    models: Models, played: list[Trajectory], level: Level, with_critic: bool, bootstrap: bool
) -> list[Gradients]:
    """Gradients of the policy and, with one, of the critic."""
    rows = [read(models, trajectory, level) for trajectory in played]
    advantages: list[list[float]] = []
    for row in rows:
        values = [float(row.values[begin].detach()) for begin in row.begins] if with_critic else [0.0] * len(row.begins)
        ahead, credit = 0.0, []
        for step in reversed(range(len(values))):
            discount = DISCOUNT if row.ends_turn[step] else (TOKEN_DISCOUNT if with_critic else 1.0)
            decay = (DECAY if row.ends_turn[step] else TOKEN_DECAY) if with_critic else 1.0
            last = step + 1 == len(values)
            after = row.after if bootstrap else 0.0
            following = (after if last else values[step + 1]) if with_critic else 0.0
            ahead = (
                row.rewards[step] + discount * following - values[step] + discount * decay * (0.0 if last else ahead)
            )
            credit.insert(0, ahead)
        advantages.append(credit)
    everything = np.array([number for credit in advantages for number in credit])
    deviation = np.sqrt(everything.var(ddof=1 if with_critic else 0) + 1e-8)
    policy, critic, number_of_tokens, stopped = torch.tensor(0.0), torch.tensor(0.0), 0, 0
    for row, credit in zip(rows, advantages, strict=True):
        for begin, tokens, number in zip(row.begins, row.tokens, credit, strict=True):
            advantage = float((number - everything.mean()) / deviation)
            for token in tokens:
                ratio = (row.new[token] - row.old[token]).exp()
                bounded = min(max(ratio.item(), 0.8), 1.2) * advantage
                stops = bounded < ratio.item() * advantage
                policy = policy - (bounded if stops else ratio * advantage)
                stopped += stops
                number_of_tokens += 1
            target = number + float(row.values[begin].detach())
            critic = critic + 0.5 * (row.values[begin] - target) ** 2
    assert 0 < stopped < number_of_tokens
    (policy / number_of_tokens).backward()
    if not with_critic:
        return [gradients(models.policy)]
    (critic / len(everything)).backward()
    return [gradients(models.policy), gradients(models.critic)]


def ours(models: Models, config: PolicyConfig, method: Method, played: list[Trajectory]) -> list[Gradients]:
    critic = models.critic if method.critic is not None else None
    recorder = Recorder([model for model in (models.policy, critic) if model is not None])
    learner = Learner(Accelerator(cpu=True), models.policy, recorder, Recorder([]), critic, models.first)
    update(learner, method, config, played, seed=0)
    return recorder.noted


@pytest.mark.parametrize(
    ("name", "level", "bootstrap"),
    [("ppo", "turn", True), ("ppo", "turn", False), ("ppo", "token", True), ("reinforce_pp", "token", False)],
)
def test_the_gradients_are_those_of_episodes_that_are_read_one_by_one(
    tiny: Path, tmp_path: Path, name: str, level: Level, bootstrap: bool
) -> None:
    shared: dict[str, Any] = {"model": str(tiny), "env": "", "out": tmp_path, "minibatches": 1, "microbatch": 40}
    shared |= {"max_gradient": 1e9, "clip_low": 0.2, "clip_high": 0.2, "kl": KL, "discount": DISCOUNT}
    config: Any
    if name == "ppo":
        decays = {"gae_lambda": DECAY, "token_discount": TOKEN_DISCOUNT, "token_gae_lambda": TOKEN_DECAY}
        config = ppo.Config(**shared, **decays, level=level, bootstrap=bootstrap)
        method = ppo.method(config)
    else:
        config = reinforce_pp.Config(**shared)
        method = reinforce_pp.method(config)
    models = load(tiny)
    played = episodes(models)
    mine = ours(models, config, method, played)
    expected = naive(load(tiny), played, level, method.critic is not None, bootstrap)
    assert len(mine) == len(expected)
    for one, other in zip(mine, expected, strict=True):
        assert one.keys() == other.keys()
        assert max(float(gradient.abs().max()) for gradient in one.values()) > 1e-2
        for key, gradient in one.items():
            torch.testing.assert_close(gradient, other[key], rtol=1e-5, atol=2e-6)
