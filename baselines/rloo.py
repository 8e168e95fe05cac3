"""RLOO: REINFORCE, with the mean return of the other episodes of the same task as the baseline.

    python -m baselines.rloo --model runs/sft --out runs/rloo --env textagent/TextWorld-w2-o3-q4-v0 \\
        --set num_tasks=100 reward_density=dense

In the order of Ahmadian et al., 2024 (arXiv 2402.14740), with an episode of many turns in the place of one answer:

1. for each of `groups` tasks, sample `group_size` episodes from the current policy;
2. what an episode earns is its return less `kl` times log p - log p_first, summed over its tokens (section 2, eq. 3);
3. its advantage is that, less the mean of the others of its group (`advantages.rloo`, eq. 9): the baseline does not
   depend on the episode, so the gradient is unbiased, as GRPO's is not, which divides by the deviation. With
   `--credit turn` a turn is compared by its return-to-go, which is unbiased too;
4. the whole episode is one action: its gradient is A times that of its log-probability (eq. 6). The paper makes one
   update per collection, the default here; with more, the probability ratio of the whole episode corrects for the
   policy that has moved on meanwhile, and is clipped (`losses.episode_ratio`), as in TRL.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from baselines.command_line import run_from_terminal, train_with
from baselines.credit.advantages import Credit, EpisodeOrTurn, less_kl, rloo
from baselines.credit.method import Method
from baselines.credit.rollouts import Rollouts
from baselines.settings.config import Aggregation, PolicyConfig, PolicyLoss


@dataclass(frozen=True, kw_only=True)
class Config(PolicyConfig):
    """RLOO over episodes of many turns, on any registered text environment."""

    credit: EpisodeOrTurn = "episode"
    """Number that is compared with the group: the return of the episode, or the return-to-go of each turn."""
    discount: float = 1.0
    """Discount of later rewards per turn, with the credit "turn"."""
    minibatches: int = 1
    """Number of updates per pass."""
    aggregation: Aggregation = "sequence"
    """Divisor that makes the loss of the tokens one number; "sequence" makes the loss "episode" one term per episode,
    as in the paper."""
    loss: PolicyLoss = "episode"
    """Loss of a sampled token: "episode" (the product of the episode's ratios, clipped), "clip" (each token's
    probability ratio, clipped), "gspo" (the episode's mean ratio, clipped), or "cispo" (log-probability, weighted by
    the ratio up to 1 + clip_high)."""
    clip_high: float = 0.2
    """Distance above 1 at which the probability ratio is clipped."""
    kl_in: Literal["loss", "reward"] = "reward"
    """Place of the divergence: in the loss of each token, or in the reward of each step."""


def method(config: Config) -> Method:
    """Advantages against the others of the group, and the episode's loss: -min(w A, clip(w, 1 - low, 1 + high) A)."""
    from baselines.credit.losses import policy_losses

    def advantages(rollouts: Rollouts) -> Credit:
        return rloo(less_kl(rollouts, config.reward_kl), credit=config.credit, discount=config.discount)

    loss = partial(policy_losses, config=config)
    return Method(advantages, loss, smallest_group=2, reference=config.reference, rescored=config.rescored)


run = train_with(method)


if __name__ == "__main__":
    run_from_terminal(Config, run)
