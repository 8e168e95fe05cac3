"""REINFORCE with a quantile of the group's other returns as the baseline; by default their median.

    python quantile_baseline.py --model runs/sft --out runs/median --env TextWorld-w2-o3-q4 --set num_tasks=100

1. For each of `groups` tasks, sample `group_size` episodes from the current policy.
2. The advantage of an episode is its return, less the quantile of the returns of the group's other episodes. The
   baseline does not depend on the episode, so the gradient is unbiased, as with the mean of the others in RLOO.
3. Every token that the policy sampled gets the advantage of its episode, in the loss that `--loss` names.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from baselines.command_line import run_from_terminal, train_with
from baselines.credit.advantages import Credit, less_kl
from baselines.credit.method import Method
from baselines.credit.rollouts import Rollouts
from baselines.settings.config import PolicyConfig
from textagent_gym.errors import InvalidOptionError


@dataclass(frozen=True, kw_only=True)
class Config(PolicyConfig):
    """REINFORCE with a quantile of the group as the baseline, on any registered text environment."""

    quantile: float = 0.5
    """Quantile of the others' returns that an episode is compared with, from 0 to 1; 0.5 is the median."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.quantile <= 1:
            raise InvalidOptionError(f"quantile must be from 0 to 1, got {self.quantile}")


def quantile_baseline(rollouts: Rollouts, quantile: float = 0.5) -> Credit:
    """A_i = R_i - quantile of R_j over the group's other episodes j, the same for every step of episode i."""
    advantages = np.zeros(rollouts.rewards.shape)
    for episode, group in enumerate(rollouts.groups):
        others = rollouts.groups == group
        others[episode] = False
        advantages[episode] = rollouts.returns[episode] - np.quantile(rollouts.returns[others], quantile)
    return Credit(np.where(rollouts.played, advantages, 0.0))


def method(config: Config) -> Method:
    """Advantages against the quantile of the group, and the loss of a token of a `PolicyConfig`."""
    from baselines.credit.losses import policy_losses  # Loads torch, which `--help` does without.

    def advantages(rollouts: Rollouts) -> Credit:
        return quantile_baseline(less_kl(rollouts, config.reward_kl), config.quantile)

    loss = partial(policy_losses, config=config)
    return Method(advantages, loss, smallest_group=2, reference=config.reference, rescored=config.rescored)


run = train_with(method)


if __name__ == "__main__":
    run_from_terminal(Config, run)
