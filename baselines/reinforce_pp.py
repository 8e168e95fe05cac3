"""REINFORCE++: PPO's clipped objective without a critic; the baseline is the mean of the whole batch.

    python -m baselines.reinforce_pp --model runs/sft --out runs/reinforce_pp \\
        --env textagent/TextWorld-w2-o3-q4-v0 --set num_tasks=100 reward_density=dense

In the order of Hu et al., 2025 (arXiv 2501.03262v9), with an episode of many turns in the place of one answer:

1. sample one episode of each of `groups` tasks (more per task with `group_size`);
2. the reward of a token is that of its turn, on the last token, less `kl` times log p - log p_first of the token;
3. the advantage of a token is the sum of the rewards from there on, and these sums are normalised over all tokens of
   the batch (`advantages.reinforce_pp`). With `--baseline` (REINFORCE++-baseline) the mean of the group is subtracted
   first, so that the episodes of a hard task are not all worse than the batch. The paper then takes the divergence out
   of the reward and adds it to the loss (equations 6 to 8, k2): `--kl-in loss`;
4. raise PPO's clipped objective (`losses.clip`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from baselines.command_line import run_from_terminal, train_with
from baselines.credit.advantages import Credit, EpisodeOrTurn, reinforce_pp
from baselines.credit.method import Method
from baselines.credit.rollouts import Rollouts
from baselines.settings.config import KLEstimator, PolicyConfig


@dataclass(frozen=True, kw_only=True)
class Config(PolicyConfig):
    """REINFORCE++ and REINFORCE++-baseline over episodes of many turns, on any registered text environment."""

    baseline: bool = False
    """Mean of the group subtracted before the normalisation; it needs a group_size of 2 or more."""
    credit: EpisodeOrTurn = "turn"
    """Place of the rewards: at the end of the turn that earned them, or all at the end of the episode."""
    discount: float = 1.0
    """Discount of later rewards per turn."""
    groups: int = 64
    """Number of different tasks per iteration, over all processes."""
    group_size: int = 1
    """Number of episodes per task."""
    clip_high: float = 0.2
    """Distance above 1 at which the probability ratio is clipped."""
    kl_in: Literal["loss", "reward"] = "reward"
    """Place of the divergence: in the reward of each step (REINFORCE++), or in the loss of each token
    (REINFORCE++-baseline)."""
    kl_estimator: KLEstimator = "k2"
    """Estimator of the divergence in the loss; in the reward it is always k1."""


def method(config: Config) -> Method:
    """Returns-to-go of tokens, normalised over the batch, and the loss of a token: -min(r A, clip(r, 1 +- c) A)."""
    from baselines.credit.losses import policy_losses

    def advantages(rollouts: Rollouts) -> Credit:
        return reinforce_pp(
            rollouts,
            credit=config.credit,
            baseline=config.baseline,
            discount=config.discount,
            kl=config.reward_kl,
        )

    return Method(
        advantages,
        partial(policy_losses, config=config),
        level="token",
        smallest_group=2 if config.baseline else 1,
        reference=config.reference,
        rescored=config.rescored,
    )


run = train_with(method)


if __name__ == "__main__":
    run_from_terminal(Config, run)
