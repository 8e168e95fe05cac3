"""Random episodes for the tests of exactness: of one turn or many, ended or cut, alone or in groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from baselines.credit.rollouts import Array, Rollouts, rollouts_of
from baselines.rollout.trajectory import Trajectory, Turn
from baselines.settings.config import Level


@dataclass(frozen=True)
class Episodes:
    """Episodes and what models would say of them.

    Attributes:
        trajectories: the episodes; every third set of them has one turn each.
        kl: log p - log p_first per token of each conversation.
        values: the critic's estimate per token of each conversation.
        bootstrap: shape (episodes,), 0 where the world ended.
    """

    trajectories: list[Trajectory]
    kl: list[Array]
    values: list[Array]
    bootstrap: Array

    def rollouts(self, level: Level) -> Rollouts:
        """The episodes as arrays, with a critic's estimates and a first policy's divergence."""
        rows = []
        for trajectory, numbers in zip(self.trajectories, self.values, strict=True):
            at, row = 0, []
            for turn in trajectory.turns:
                begin = at + len(turn.prompt)
                at = begin + len(turn.action)
                row += numbers[begin : begin + 1].tolist() if level == "turn" else numbers[begin:at].tolist()
            rows.append(row)
        values = np.zeros((len(rows), max(map(len, rows))))
        for number, row in enumerate(rows):
            values[number, : len(row)] = row
        return rollouts_of(self.trajectories, level, values, self.bootstrap, self.kl)


def random_episodes(
    seed: int, *, groups: int = 3, group_size: int = 4, vocabulary: int = 100, states: int = 1
) -> Episodes:
    """Episodes of `groups` tasks, in a shuffled order, through so many states, two of which look the same."""
    random, walk = np.random.default_rng(seed), np.random.default_rng((seed, 1))
    longest = 1 if seed % 3 == 0 else 5
    trajectories = []
    for group in random.permutation(np.repeat(random.permutation(100)[:groups], group_size)):
        turns = []
        for _ in range(random.integers(1, longest + 1)):
            prompt, action = (random.integers(5, vocabulary, random.integers(1, 6)).tolist() for _ in range(2))
            log_probs = tuple(float(x) for x in -2 * random.random(len(action)))
            reward = float(random.normal()) if random.random() < 0.7 else 0.0
            state = int(walk.integers(states))
            turns.append(Turn(tuple(prompt), tuple(action), log_probs, reward, "", str(state // 2), state=str(state)))
        trajectories.append(Trajectory(tuple(turns), int(group), terminated=bool(random.random() < 0.6)))
    kl, values = ([random.normal(size=len(t.ids)) for t in trajectories] for _ in range(2))
    bootstrap = np.array([0.0 if t.terminated else random.normal() for t in trajectories])
    return Episodes(trajectories, kl, values, bootstrap)
