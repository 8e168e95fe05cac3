"""Episodes as arrays: all that an advantage may depend on.

An episode is a row of *steps*. A step is a turn, or, for methods that tell a turn's tokens apart, one sampled token:

    level "turn"     turn 1          turn 2              level "token"    t t t t t t t t t t
    rewards            r1              r2                rewards          0 0 0 0 r1 0 0 0 0 r2
    values      V(s1)           V(s2)                    values           V before each token
    kl          sum over turn   sum over turn            kl               of each token
    turns              0               1                 turns            0 0 0 0 0 1 1 1 1 1
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from baselines.settings.config import Level, StateKind

if TYPE_CHECKING:
    from baselines.rollout.trajectory import Trajectory

Array = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Rollouts:
    """Episodes side by side.

    Attributes:
        rewards: shape (episodes, steps), 0 after an episode's last step.
        lengths: shape (episodes,), number of steps.
        groups: shape (episodes,), the same number for episodes that began in the same state.
        terminated: shape (episodes,), true where the world ended; false where a budget or the context ran out.
        values: shape (episodes, steps), the critic's estimate before each step when it was taken, or the mean return of
            branches from there, 0 after the last step; `None` without a critic or branches.
        bootstrap: shape (episodes,), the critic's estimate of what would have followed the last step, 0 where the world
            ended; `None` without a critic or branches.
        kl: shape (episodes, steps), the estimate log p - log p_first of the divergence from the first policy, summed
            over the tokens of each step, with p when they were sampled; `None` unless `Method.reference`.
        turns: shape (episodes, steps), number of the turn that a step belongs to; `None` where each step is a turn.
        states: shape (episodes, steps), the same number for steps that were taken in the same state, 0 after the last
            step; `None` unless `Method.states`.
    """

    rewards: Array
    lengths: Counts
    groups: Counts
    terminated: NDArray[np.bool_]
    values: Array | None = None
    bootstrap: Array | None = None
    kl: Array | None = None
    turns: Counts | None = None
    states: Counts | None = None

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

    @property
    def ends_turn(self) -> NDArray[np.bool_]:
        """True for every step that is the last one of its turn, shape (episodes, steps)."""
        if self.turns is None:
            return self.played
        following = np.pad(self.turns[:, 1:], ((0, 0), (0, 1)))
        last = np.arange(self.rewards.shape[1]) == self.lengths[:, None] - 1
        ends: NDArray[np.bool_] = self.played & (last | (following != self.turns))
        return ends

    def select(self, rows: Counts) -> Rollouts:
        """Some of the episodes."""
        arrays = {field.name: getattr(self, field.name) for field in fields(self)}
        chosen: dict[str, Any] = {name: None if array is None else array[rows] for name, array in arrays.items()}
        return Rollouts(**chosen)


def rollouts_of(
    trajectories: Sequence[Trajectory],
    level: Level = "turn",
    values: Array | None = None,
    bootstrap: Array | None = None,
    kl: Sequence[Array] | None = None,
    *,
    states: StateKind | None = None,
) -> Rollouts:
    """Episodes as arrays.

    Args:
        trajectories: the episodes.
        level: unit that counts as a step.
        values, bootstrap: what a critic says of them (`training.critic.read_values`), or branches do.
        kl: estimated divergence per token of each `Trajectory.ids`.
        states: what makes states equal, if that is asked for.
    """
    per_turn = level == "turn"
    lengths = np.array([len(t.turns) if per_turn else t.sampled for t in trajectories], dtype=np.int64)
    shape = (len(trajectories), int(lengths.max(initial=0)))
    rewards, divergence, turns = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=np.int64)
    numbers = np.zeros(shape, dtype=np.int64)
    for row, trajectory in enumerate(trajectories):
        step, at = 0, 0
        for number, turn in enumerate(trajectory.turns):
            begin = at + len(turn.prompt)
            at = begin + len(turn.action)
            steps = slice(step, step + (1 if per_turn else len(turn.action)))
            step = steps.stop
            turns[row, steps] = number
            if states is not None:
                numbers[row, steps] = _number_of(turn.state if states == "world" else turn.observation)
            rewards[row, step - 1] = turn.reward  # On the last token of the action.
            if kl is not None:
                divergence[row, steps] = kl[row][begin:at].sum() if per_turn else kl[row][begin:at]
    return Rollouts(
        rewards,
        lengths,
        np.array([t.group for t in trajectories], dtype=np.int64),
        np.array([t.terminated for t in trajectories], dtype=np.bool_),
        values,
        bootstrap,
        None if kl is None else divergence,
        None if per_turn else turns,
        None if states is None else numbers,
    )


def _number_of(state: str) -> int:
    """The same number for equal texts, in every process; 64 bits, so that others are different."""
    digest = hashlib.blake2b(state.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def turn_values(trajectories: Sequence[Trajectory]) -> Array:
    """Value of the state before each turn, shape (episodes, turns), 0 after the last one."""
    values = np.zeros((len(trajectories), max((len(t.turns) for t in trajectories), default=0)))
    for row, trajectory in enumerate(trajectories):
        values[row, : len(trajectory.turns)] = [turn.value for turn in trajectory.turns]
    return values


def join(parts: Sequence[Rollouts]) -> Rollouts:
    """The episodes of several processes, in the order of the parts; all parts have the same fields."""
    width = max(part.rewards.shape[1] for part in parts)

    def joined(arrays: list[Any]) -> Any:
        if arrays[0] is None:
            return None
        wide = [np.pad(a, ((0, 0), (0, width - a.shape[1]))) if a.ndim == 2 else a for a in arrays]
        return np.concatenate(wide)

    names = [field.name for field in fields(Rollouts)]
    return Rollouts(**{name: joined([getattr(part, name) for part in parts]) for name in names})
