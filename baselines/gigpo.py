"""Multi-turn GiGPO: episodes are compared with their group, and turns with other turns taken in the same state.

    python -m baselines.gigpo --model runs/sft --out runs/gigpo --env textagent/TextWorld-w2-o3-q4-v0 \\
        --set num_tasks=100 reward_density=dense

In the order of Feng et al., 2025 (arXiv 2505.10978), section 4:

1. for each of `groups` tasks, sample `group_size` episodes from the current policy;
2. the episode advantage of an episode is its return, less the group's mean, over the group's deviation (4.1);
3. turns of the group's episodes that were taken in the same state form a group of their own (4.2). The paper takes
   equal observations for equal states. Here the world tells its exact state (`TextEnv.state_key`), whatever the
   observation shows and however late the turn is; `--state observation` is the paper's way;
4. the step advantage of a turn is its discounted return-to-go, less the mean of that group, over its deviation;
5. every token of a turn gets the sum, `step_weight` times the step advantage (4.3; `advantages.gigpo`);
6. raise the clipped objective (`losses.clip`), less `kl` times the divergence from the first policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from baselines.command_line import run_from_terminal, train_with
from baselines.credit.advantages import Credit, gigpo, less_kl
from baselines.credit.method import Method
from baselines.credit.rollouts import Rollouts
from baselines.settings.config import PolicyConfig, StateKind, check_at_least


@dataclass(frozen=True, kw_only=True)
class Config(PolicyConfig):
    """Multi-turn GiGPO, on any registered text environment that tells its state."""

    state: StateKind = "world"
    """What makes two states equal: "world" (the environment's exact state, which it must tell) or "observation" (the
    last text)."""
    step_weight: float = 1.0
    """Weight of the step advantage; 0 is GRPO."""
    scale: bool = True
    """Division by the deviations of the groups."""
    discount: float = 0.95
    """Discount of later rewards per turn, in the step advantage."""
    clip_high: float = 0.2
    """Distance above 1 at which the probability ratio is clipped."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("step_weight", "discount"):
            check_at_least(name, getattr(self, name), 0)


def method(config: Config) -> Method:
    """Advantages of two levels, and the loss of a token: -min(r A, clip(r, 1 - low, 1 + high) A) + kl KL."""
    from baselines.credit.losses import policy_losses

    def advantages(rollouts: Rollouts) -> Credit:
        rollouts = less_kl(rollouts, config.reward_kl)
        return gigpo(rollouts, step_weight=config.step_weight, scale=config.scale, discount=config.discount)

    return Method(
        advantages,
        partial(policy_losses, config=config),
        smallest_group=2,
        reference=config.reference,
        rescored=config.rescored,
        states=config.state,
    )


run = train_with(method)


if __name__ == "__main__":
    run_from_terminal(Config, run)
