"""Multi-turn GRPO: sample groups of episodes from the same start, and prefer those that did better than their group.

    python -m baselines.grpo --model runs/sft --out runs/grpo --env textagent/TextWorld-w2-o3-q4-v0 \\
        --set num_tasks=100 reward_density=dense

In the order of Shao et al., 2024 (arXiv 2402.03300), section 4.1, with an episode of many turns in the place of one
answer:

1. for each of `groups` tasks, sample `group_size` episodes from the current policy (`rollout/collector.py`); groups in
   which nobody did better teach nothing and are left out, and up to `resample` times new tasks take their place (DAPO);
2. an episode's advantage is its return, less the group's mean, over the group's deviation (`advantages.grpo`; Dr. GRPO
   does not divide: `--no-scale`). With `--credit turn` a turn is compared by its return-to-go, with `--credit process`
   its advantage is the sum of the normalised rewards ahead (`advantages.grpo_process`);
3. every token that the policy sampled in a turn gets the turn's advantage, and no other token gets any;
4. raise the clipped objective (`losses.clip`; DAPO's bounds differ), less `kl` times the divergence from the first
   policy (`losses.kl_estimate`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from baselines.command_line import run_from_terminal, train_with
from baselines.credit.advantages import Credit, grpo, grpo_process, less_kl
from baselines.credit.method import Method
from baselines.credit.rollouts import Rollouts
from baselines.settings.config import PolicyConfig, check_at_least
from textagent_gym.errors import InvalidOptionError


@dataclass(frozen=True, kw_only=True)
class Config(PolicyConfig):
    """Multi-turn GRPO, Dr. GRPO, DAPO and GRPO with process supervision, on any registered text environment."""

    credit: Literal["episode", "turn", "process"] = "episode"
    """Number that is compared with the group: the return of the episode, the return-to-go of each turn, or the reward
    of each turn, summed over the turns ahead after normalisation."""
    scale: bool = True
    """Division by the deviation of the group; without it this is Dr. GRPO, with `aggregation="constant"`."""
    discount: float = 1.0
    """Discount of later rewards per turn, with the credit "turn" or "process"."""
    resample: int = 0
    """Number of times per iteration that groups without any advantage are replaced by new tasks."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least("resample", self.resample, 0)
        if self.resample and self.reward_kl:
            raise InvalidOptionError("resample needs kl_in='loss': a divergence in the reward is always an advantage")


def method(config: Config) -> Method:
    """Advantages against the group, and the loss of a token: -min(r A, clip(r, 1 - low, 1 + high) A) + kl KL."""
    from baselines.credit.losses import policy_losses

    def advantages(rollouts: Rollouts) -> Credit:
        rollouts = less_kl(rollouts, config.reward_kl)
        if config.credit == "process":
            return grpo_process(rollouts, scale=config.scale, discount=config.discount)
        return grpo(rollouts, credit=config.credit, scale=config.scale, discount=config.discount)

    return Method(
        advantages,
        partial(policy_losses, config=config),
        smallest_group=2,
        reference=config.reference,
        rescored=config.rescored,
        resample=config.resample,
    )


run = train_with(method)


if __name__ == "__main__":
    run_from_terminal(Config, run)
