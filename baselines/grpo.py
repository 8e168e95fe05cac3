"""Multi-turn GRPO: sample groups of episodes from the same start, and prefer those that did better than their group.

    python -m baselines.grpo --model runs/sft --out runs/grpo --env textagent/TextWorld-w2-o3-q4-v0

In the order of Shao et al., 2024 (arXiv 2402.03300), section 4.1, with an episode of many turns in the place of one
answer:

1. for each of `groups` tasks, sample `group_size` episodes from the current policy (`rollout/collector.py`);
2. an episode's advantage is its return, less the group's mean, over the group's deviation (`advantages.grpo`); with
   `advantage="grpo_process"` each turn has an advantage of its own, from the rewards that followed it;
3. every token that the policy sampled in a turn gets the turn's advantage, and no other token gets any;
4. raise the clipped objective (`losses.ppo_clip`), less `kl` times the divergence from the first policy
   (`losses.kl_k3`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import gymnasium
import tyro

from baselines.advantages import ADVANTAGES, grpo_process
from baselines.trainer import TrainerConfig, train


@dataclass(frozen=True, kw_only=True)
class Config(TrainerConfig):
    """Multi-turn GRPO on any registered text environment."""

    env: str
    """Id of the environment."""
    env_kwargs: dict[str, Any] = field(default_factory=dict)
    """Keyword arguments of the environment, as JSON values: --env-kwargs reward_density '"dense"'."""
    advantage: Literal["grpo", "dr_grpo", "rloo", "grpo_process"] = "grpo"
    """How an episode, or with "grpo_process" each of its turns, is compared with its group."""
    discount: float = 1.0
    """Of later turns' rewards, for "grpo_process"."""


def run(config: Config, log: Callable[[dict[str, Any]], None] | None = None) -> Path:
    """Train on `config.env` and return the folder of the policy."""
    advantages = ADVANTAGES[config.advantage]
    if config.advantage == "grpo_process":
        advantages = partial(grpo_process, discount=config.discount)
    return train(config, lambda: gymnasium.make(config.env, **config.env_kwargs), advantages, log)


def main() -> None:
    """Command line."""
    config = tyro.cli(Config)
    print(f"Policy saved to {run(config, log=lambda metrics: print(json.dumps(metrics), flush=True))}")


if __name__ == "__main__":
    main()
