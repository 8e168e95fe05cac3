"""What makes a method: how steps are credited, and the loss per token. The loop knows nothing else of a method.

collect -> Rollouts -> method.advantages -> Credit -> Forward (what a microbatch holds) -> method.loss -> Losses
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from baselines.credit.advantages import AdvantageFunction
from baselines.settings.config import Level, StateKind

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Forward:
    """What a loss may depend on; every tensor has the shape (batch, time).

    A row is an episode; where the memory of the conversation begins contexts anew, each context is a row.

    Attributes:
        mask: 1 for every sampled token.
        log_probs: log-probability of each sampled token under the weights that are being trained; like those below, 0
            for the other tokens.
        old_log_probs: log-probability of each sampled token before the iteration's first update: the generator's, or
            with `Method.rescored` the trainer's own.
        sampling_log_probs: log-probability of each sampled token when it was sampled, as the generator gave it.
        advantages: advantage of the step that a token belongs to.
        reference_log_probs: log-probability of each sampled token under the first policy; `None` unless
            `Method.reference`.
        step_mask: 1 for the first token of every step, where a critic's estimate for the step stands.
        values: the critic's estimate before each token; `None` without a critic.
        old_values: estimate before the token's step when it was collected; `None` without a critic.
        returns: target of the critic for the token's step; `None` without a critic.
    """

    mask: torch.Tensor
    log_probs: torch.Tensor
    old_log_probs: torch.Tensor
    sampling_log_probs: torch.Tensor
    advantages: torch.Tensor
    reference_log_probs: torch.Tensor | None
    step_mask: torch.Tensor
    values: torch.Tensor | None = None
    old_values: torch.Tensor | None = None
    returns: torch.Tensor | None = None


@dataclass(frozen=True, slots=True)
class Losses:
    """What a loss returns; every tensor has the shape (batch, time).

    Attributes:
        policy: loss of each sampled token; `TrainerConfig.aggregation` says how it becomes one number.
        critic: loss of each step at its first token, averaged over the steps; `None` without a critic.
        metrics: further measurements per sampled token, by name, averaged over the tokens and logged.
    """

    policy: torch.Tensor
    critic: torch.Tensor | None = None
    metrics: dict[str, torch.Tensor] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CriticConfig:
    """A critic: a second model of the policy's kind that estimates what will still be earned.

    Attributes:
        learning_rate: learning rate after the policy's warm-up.
        model: folder or hub name of the weights to begin with; the policy's by default.
        warmup: number of iterations at the beginning in which only the critic learns.
    """

    learning_rate: float
    model: str | None = None
    warmup: int = 0


@dataclass(frozen=True, slots=True)
class Method:
    """A method of reinforcement learning.

    Attributes:
        advantages: function that credits the steps of all episodes of an iteration, those of other processes included.
        loss: function that returns the loss per token.
        critic: settings of the critic; `None` for methods that need none.
        smallest_group: smallest number of episodes per task that can be learned from.
        level: unit that counts as a step: a turn, or a sampled token.
        reference: whether the log-probabilities under the first policy are needed, for `Forward` or `Rollouts.kl`.
        rescored: whether the trainer computes the sampled tokens' log-probabilities itself before the first update.
        resample: number of times that groups without any advantage are replaced by new tasks in one iteration; for
            methods whose advantages need neither a critic, the first policy nor branches.
        states: what makes two states equal, for `Rollouts.states`; `None` for methods that do not ask.
        branches: number of episodes that are played from each turn's state for its value (`rollout/branching.py`), for
            `Rollouts.values`; for methods without a critic.
    """

    advantages: AdvantageFunction
    loss: Callable[[Forward], Losses]
    critic: CriticConfig | None = None
    smallest_group: int = 1
    level: Level = "turn"
    reference: bool = False
    rescored: bool = False
    resample: int = 0
    states: StateKind | None = None
    branches: int = 0

    @property
    def learns_from_all(self) -> bool:
        """Whether episodes without any advantage teach something too: the critic, or to stay near the reference."""
        return self.critic is not None or self.reference
