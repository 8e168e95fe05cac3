"""Episodes as arrays: all that an advantage may depend on.

An episode is a row of *steps*. A step is a turn, or, for methods that tell a turn's tokens apart, one sampled token:

    level "turn"     turn 1          turn 2              level "token"    t t t t t t t t t t
    rewards            r1              r2                rewards          0 0 0 0 r1 0 0 0 0 r2
    values      V(s1)           V(s2)                    values           V before each token
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from baselines.trajectory import Trajectory

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
Level = Literal["turn", "token"]


@dataclass(frozen=True, slots=True)
class Rollouts:
    """Episodes side by side.

    Attributes:
        rewards: shape (episodes, steps), 0 after an episode's last step.
        lengths: shape (episodes,), number of steps.
        groups: shape (episodes,), the same number for episodes that began in the same state.
        terminated: shape (episodes,), true where the world ended; false where a budget or the context ran out.
        values: shape (episodes, steps), the critic's estimate before each step when it was taken, 0 after the last
            step; `None` without a critic.
        bootstrap: shape (episodes,), the critic's estimate of what would have followed the last step, 0 where the world
            ended; `None` without a critic.
    """

    rewards: Array
    lengths: Counts
    groups: Counts
    terminated: NDArray[np.bool_]
    values: Array | None = None
    bootstrap: Array | None = None

    @property
    def played(self) -> NDArray[np.bool_]:
        """True for every step that was taken, shape (episodes, steps)."""
        played: NDArray[np.bool_] = np.arange(self.rewards.shape[1]) < self.lengths[:, None]
        return played

    @property
    def returns(self) -> Array:
        """Undiscounted sum of the rewards, shape (episodes,)."""
        total: Array = self.rewards.astype(np.float64).sum(1)
        return total

    def select(self, rows: Counts) -> Rollouts:
        """Some of the episodes."""
        return Rollouts(
            self.rewards[rows],
            self.lengths[rows],
            self.groups[rows],
            self.terminated[rows],
            None if self.values is None else self.values[rows],
            None if self.bootstrap is None else self.bootstrap[rows],
        )


def rollouts_of(
    trajectories: Sequence[Trajectory],
    level: Level = "turn",
    values: Array | None = None,
    bootstrap: Array | None = None,
) -> Rollouts:
    """Episodes as arrays; `values` and `bootstrap` come from a critic (`critic.read_values`)."""
    rows = [[turn.reward for turn in t.turns] if level == "turn" else _per_token(t) for t in trajectories]
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    rewards = np.zeros((len(rows), int(lengths.max(initial=0))))
    for number, row in enumerate(rows):
        rewards[number, : len(row)] = row
    return Rollouts(
        rewards,
        lengths,
        np.array([t.group for t in trajectories], dtype=np.int64),
        np.array([t.terminated for t in trajectories], dtype=np.bool_),
        values,
        bootstrap,
    )


def _per_token(trajectory: Trajectory) -> list[float]:
    """The reward of each turn on the last token of its action."""
    return [r for turn in trajectory.turns for r in (*(0.0,) * (len(turn.action) - 1), turn.reward)]


def join(parts: Sequence[Rollouts]) -> Rollouts:
    """The episodes of several processes, in the order of the parts."""
    width = max(part.rewards.shape[1] for part in parts)

    def wide(array: Array) -> Array:
        padded: Array = np.pad(array, ((0, 0), (0, width - array.shape[1])))
        return padded

    values = [part.values for part in parts if part.values is not None]
    bootstrap = [part.bootstrap for part in parts if part.bootstrap is not None]
    return Rollouts(
        np.concatenate([wide(part.rewards) for part in parts]),
        np.concatenate([part.lengths for part in parts]),
        np.concatenate([part.groups for part in parts]),
        np.concatenate([part.terminated for part in parts]),
        np.concatenate([wide(array) for array in values]) if values else None,
        np.concatenate(bootstrap) if bootstrap else None,
    )
