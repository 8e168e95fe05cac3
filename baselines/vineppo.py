"""VinePPO: PPO whose values are measured, not learned, by playing on from the saved states of an episode.

    python -m baselines.vineppo --model runs/sft --out runs/vineppo --env textagent/TextWorld-w2-o3-q4-v0 \\
        --set num_tasks=100 reward_density=dense

In the order of Kazemnejad et al., 2024 (arXiv 2410.01679), section 4, with the turns of an episode in the place of the
steps of a proof:

1. for each of `groups` tasks, sample `group_size` episodes from the current policy, and save the environment's moment
   before each turn;
2. from each of these moments the same policy plays `branches` episodes to their end; the value of the state is their
   mean return (`branching.py`). They are not learned from;
3. the advantage of a turn is r_t + V(s_(t+1)) - V(s_t), with V = 0 after the last turn: `advantages.gae` with a decay
   of 0. The values are unbiased, so that no bias is traded for variance, as with a critic;
4. raise PPO's clipped objective (`losses.clip`), less `kl` times the divergence from the first policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from baselines.command_line import run_from_terminal, train_with
from baselines.credit.advantages import Credit, gae
from baselines.credit.method import Method
from baselines.credit.rollouts import Rollouts
from baselines.settings.config import MemoryKind, PolicyConfig, check_at_least
from textagent_gym.errors import InvalidOptionError


@dataclass(frozen=True, kw_only=True)
class Config(PolicyConfig):
    """VinePPO, on any registered text environment with snapshots."""

    branches: int = 4
    """Number of episodes that are played from each state to estimate its value; the paper's is 9."""
    whiten: bool = True
    """Advantages shifted and scaled to mean 0 and deviation 1 over the batch."""
    clip_high: float = 0.2
    """Distance above 1 at which the probability ratio is clipped."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least("branches", self.branches, 1)
        if self.reward_kl:
            raise InvalidOptionError("kl_in must be 'loss', got 'reward': the returns of branches hold no divergence")

    def check_memory(self, memory: MemoryKind) -> None:
        """See `TrainerConfig`; a branch continues the conversation of its episode."""
        super().check_memory(memory)
        if memory != "whole":
            raise InvalidOptionError(
                f"branches continue whole conversations, so memory must be 'whole', got {memory!r}"
            )


def method(config: Config) -> Method:
    """A = r + V' - V with measured values, and the loss of a token: -min(r A, clip(r, 1 - low, 1 + high) A) + kl KL."""
    from baselines.credit.losses import policy_losses

    def advantages(rollouts: Rollouts) -> Credit:
        return Credit(gae(rollouts, gae_lambda=0.0, whitened=config.whiten).advantages)

    return Method(
        advantages,
        partial(policy_losses, config=config),
        reference=config.reference,
        rescored=config.rescored,
        branches=config.branches,
    )


run = train_with(method)


if __name__ == "__main__":
    run_from_terminal(Config, run)
