"""Monte-Carlo values: from each state of an episode, the same policy plays on to the end, several times.

    episode     s0 --a0--> s1 --a1--> s2 --a2--> end
    branches    |          |          +--...--> end     K times
                |          +--...--> end                K times      V(s_t) = mean return of the K branches from s_t
                +--...--> end                           K times

A branch begins at the saved moment of the environment and reads the token ids that the episode had read and sampled up
to there. What remains of the turn budget is part of the moment. Branches give values; nothing is learned from them.

Source: Kazemnejad et al., 2024, "VinePPO" (arXiv 2410.01679), section 4.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from statistics import fmean

from baselines.rollout import BrokenEpisode, Collection, EpisodeRequest, Start
from baselines.rollout.trajectory import Trajectory

SeedOf = Callable[[int, int, int], int]
"""Sampling seed of a branch, from that of its episode, the number of the turn, and its own number among the K."""


def branch_requests(trajectories: Sequence[Trajectory], branches: int, seed_of: SeedOf) -> list[EpisodeRequest]:
    """The branches of all turns; their group is the number of the turn, counted over all episodes.

    Args:
        trajectories: episodes whose requests had `saves`.
        branches: number of branches per turn.
        seed_of: sampling seed of a branch.
    """
    requests: list[EpisodeRequest] = []
    for group, (trajectory, number) in enumerate(_turns(trajectories)):
        turn = trajectory.turns[number]
        before = [token for turn in trajectory.turns[:number] for token in (*turn.prompt, *turn.action)]
        options = {name: value for name, value in (trajectory.options or {}).items() if name != "task_index"}
        start = Start(turn.moment, (*before, *turn.prompt), turn.observation)
        requests += [
            EpisodeRequest(
                group,
                options={**options, "task": trajectory.task},
                sampling_seed=seed_of(trajectory.sampling_seed, number, branch),
                start=start,
            )
            for branch in range(branches)
        ]
    return requests


def with_values(collection: Collection, branched: Collection) -> Collection:
    """The episodes with the value of each turn's state, and without its moment.

    An episode with a state from which every branch broke counts as broken.

    Args:
        collection: the episodes.
        branched: their branches.
    """
    returns: dict[int, list[float]] = defaultdict(list)
    for branch in branched.trajectories:
        returns[branch.group].append(branch.total_reward)
    broken = {one.request.group: one for one in branched.broken if one.request.group not in returns}
    valued: list[Trajectory] = []
    lost: list[BrokenEpisode] = []
    first = 0
    for trajectory in collection.trajectories:
        groups = range(first, first + len(trajectory.turns))
        first = groups.stop
        without = next((broken[group] for group in groups if group in broken), None)
        if without is not None:
            lost.append(without)
            continue
        turns = (
            replace(turn, value=fmean(returns[group]), moment=None)
            for turn, group in zip(trajectory.turns, groups, strict=True)
        )
        valued.append(replace(trajectory, turns=tuple(turns)))
    return Collection(valued, collection.broken + lost, collection.breaks + branched.breaks)


def _turns(trajectories: Sequence[Trajectory]) -> Iterator[tuple[Trajectory, int]]:
    for trajectory in trajectories:
        for number in range(len(trajectory.turns)):
            yield trajectory, number
