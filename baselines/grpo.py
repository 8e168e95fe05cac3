"""Multi-turn GRPO: sample groups of episodes from the same start, and prefer those that did better than their group.

    python -m baselines.grpo --model runs/sft --out runs/grpo --env textagent/TextWorld-w2-o3-q4-v0 \\
        --env-kwargs num_tasks=100 reward_density=dense

In the order of Shao et al., 2024 (arXiv 2402.03300), section 4.1, with an episode of many turns in the place of one
answer:

1. for each of `groups` tasks, sample `group_size` episodes from the current policy (`rollout/collector.py`);
2. an episode's advantage is its return, less the group's mean, over the group's deviation (`advantages.grpo`); with
   `advantage="grpo_process"` each turn has an advantage of its own, from the rewards that followed it;
3. every token that the policy sampled in a turn gets the turn's advantage, and no other token gets any;
4. raise the clipped objective (`losses.ppo_clip`), less `kl` times the divergence from the first policy
   (`losses.kl_k3`): `method` below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from baselines.advantages import ADVANTAGES, grpo_process
from baselines.command_line import run_from_terminal
from baselines.config import TrainerConfig
from baselines.method import Forward, Losses, Method


@dataclass(frozen=True, kw_only=True)
class Config(TrainerConfig):
    """Multi-turn GRPO, Dr. GRPO, RLOO and GRPO with process supervision, on any registered text environment."""

    advantage: Literal["grpo", "dr_grpo", "rloo", "grpo_process"] = "grpo"
    """Way in which an episode, or with "grpo_process" each of its turns, is compared with its group."""
    discount: float = 1.0
    """Discount of later rewards per turn, for the advantage "grpo_process" only."""
    clip_low: float = 0.2
    """Distance below 1 at which the probability ratio is clipped."""
    clip_high: float = 0.28
    """Distance above 1 at which the probability ratio is clipped."""
    kl: float = 0.0
    """Weight of the divergence from the first policy; 0 spares the memory that the first policy would take."""


def method(config: Config) -> Method:
    """The advantages and the loss of a token: -min(r A, clip(r, 1 - low, 1 + high) A) + kl (exp(d) - d - 1)."""
    from baselines.losses import clipped, kl_k3, ppo_clip

    def loss(forward: Forward) -> Losses:
        bounds = {"clip_low": config.clip_low, "clip_high": config.clip_high}
        policy = ppo_clip(forward.log_probs, forward.old_log_probs, forward.advantages, **bounds)
        if forward.reference_log_probs is not None:
            policy = policy + config.kl * kl_k3(forward.log_probs, forward.reference_log_probs)
        return Losses(policy, metrics={"clipped": clipped(forward.log_probs, forward.old_log_probs, **bounds)})

    advantages = ADVANTAGES[config.advantage]
    if config.advantage == "grpo_process":
        advantages = partial(grpo_process, discount=config.discount)
    return Method(advantages, loss, smallest_group=2, reference=config.kl > 0)


def run(config: Config, log: Callable[[dict[str, Any]], None] | None = None) -> Path:
    """Train on `config.env` and return the folder of the policy."""
    from baselines.trainer import train

    return train(config, method(config), log)


def main() -> None:
    """Command line."""
    run_from_terminal(Config, run)


if __name__ == "__main__":
    main()
