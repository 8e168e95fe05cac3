"""Multi-turn PPO: a critic estimates what will still be earned, and what turns out better than that is preferred.

    python -m baselines.ppo --model runs/sft --out runs/ppo --env textagent/TextWorld-w2-o3-q4-v0 \\
        --set num_tasks=100 reward_density=dense

In the order of Schulman et al., 2017 (arXiv 1707.06347), with the turns of an episode, or their tokens, as steps:

1. sample one episode of each of `groups` tasks (more per task with `group_size`);
2. the reward of a step is that of its turn, less `kl` times log p - log p_first of the step's tokens;
3. the critic's estimates before each step make the advantages (`advantages.gae`: discount and decay per turn and, with
   `--level token`, per token), which are normalised over the batch. Nothing follows the last turn of a budget, unless
   `--bootstrap` says so;
4. for `critic_warmup` iterations only the critic learns; then both do: the policy raises the clipped objective
   (`losses.clip`), and the critic approaches advantage + estimate (`losses.value_clip`).

The critic is a second model of the policy's kind (`critic.py`), not a head on the policy's body: the policy stays any
causal language model, no weight between two losses has to be found, a critic that is far off does not move the policy's
features, and the critic has a learning rate and a warm-up of its own. It costs the memory of a second model, which may
be smaller (`--critic-model`, of the same tokenizer).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from baselines.command_line import run_from_terminal, train_with
from baselines.credit.advantages import Credit, gae, less_kl
from baselines.credit.method import CriticConfig, Forward, Losses, Method
from baselines.credit.rollouts import Rollouts
from baselines.settings.config import Level, PolicyConfig, check_at_least


@dataclass(frozen=True, kw_only=True)
class Config(PolicyConfig):
    """Multi-turn PPO with a critic, on any registered text environment."""

    level: Level = "turn"
    """Unit that has an advantage and an estimate of its own: a turn, or a token."""
    discount: float = 1.0
    """Discount of later rewards per turn."""
    gae_lambda: float = 0.95
    """Decay of later errors of the critic per turn: 0 trusts its next estimate, 1 trusts the rewards alone."""
    token_discount: float = 1.0
    """Discount per token within a turn, with the level "token"."""
    token_gae_lambda: float = 1.0
    """Decay per token within a turn, with the level "token"."""
    bootstrap: bool = False
    """Estimate of what would have followed, for episodes that a turn budget or the context cut. It suits tasks without
    an end, whose budgets are the trainer's. Where success within the budget counts, it pays for dawdling."""
    whiten: bool = True
    """Advantages shifted and scaled to mean 0 and deviation 1 over the batch."""
    value_clip: float = 0.2
    """Largest change of an estimate that is learned from in one iteration; `inf` for no bound."""
    critic_learning_rate: float = 1e-3
    """Learning rate of the critic. The default suits a tiny model; about 1e-5 suits a pretrained one."""
    critic_warmup: int = 0
    """Number of iterations at the beginning in which only the critic learns; their updates count as `warmup` too."""
    critic_model: str | None = None
    """Folder or hub name of the weights that the critic begins with; the policy's by default."""
    groups: int = 64
    """Number of different tasks per iteration, over all processes."""
    group_size: int = 1
    """Number of episodes per task."""
    clip_high: float = 0.2
    """Distance above 1 at which the probability ratio is clipped."""
    kl_in: Literal["loss", "reward"] = "reward"
    """Place of the divergence: in the loss of each token, or in the reward of each step."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("value_clip", "critic_learning_rate", "critic_warmup"):
            check_at_least(name, getattr(self, name), 0)


def method(config: Config) -> Method:
    """Advantages by GAE, the clipped loss of a token, and max((V - G)^2, (V' - G)^2) / 2 for the critic."""
    from baselines.credit.losses import policy_losses, value_clip

    def advantages(rollouts: Rollouts) -> Credit:
        rollouts = less_kl(rollouts, config.reward_kl)
        return gae(
            rollouts if config.bootstrap else replace(rollouts, bootstrap=np.zeros(len(rollouts.lengths))),
            discount=config.discount,
            gae_lambda=config.gae_lambda,
            token_discount=config.token_discount,
            token_gae_lambda=config.token_gae_lambda,
            whitened=config.whiten,
        )

    def loss(forward: Forward) -> Losses:
        assert forward.values is not None
        assert forward.old_values is not None
        assert forward.returns is not None
        critic = value_clip(forward.values, forward.old_values, forward.returns, clip=config.value_clip)
        return replace(policy_losses(forward, config), critic=critic)

    return Method(
        advantages,
        loss,
        critic=CriticConfig(config.critic_learning_rate, config.critic_model, config.critic_warmup),
        level=config.level,
        reference=config.reference,
        rescored=config.rescored,
    )


run = train_with(method)


if __name__ == "__main__":
    run_from_terminal(Config, run)
