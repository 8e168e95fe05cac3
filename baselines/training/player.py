"""The episodes of one iteration after the other, played when they are needed or one iteration ahead.

staleness 0   weights 0 | play 1 | update 1 | weights 1 | play 2 | update 2 | ...

staleness 1   weights 0 | play 1 | update 1 | update 2 | ...            update k reads what the weights
                                 | play 2   | play 3   | ...            before update k - 1 have played
                              weights 0   weights 1

What is played ahead is played in a thread of its own, by a copy of the policy that has its weights before the update.
Which tasks are played, and with which random numbers, is the same: the curriculum knows the success of all iterations
before.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from baselines.credit.method import Method
from baselines.rollout import Collection, Collector, EpisodeRequest
from baselines.rollout.branching import branch_requests, with_values
from baselines.rollout.trajectory import Trajectory
from baselines.settings.config import TrainerConfig
from baselines.training.update import useful_groups

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transformers import PreTrainedModel


class Stream(IntEnum):
    """The streams of random numbers of an iteration; each is independent of the others."""

    TASKS = 0
    SAMPLING = 1
    ORDER = 2
    CURRICULUM = 3
    BRANCHES = 4


def stream_seed(config: TrainerConfig, iteration: int, stream: Stream, *path: int) -> int:
    """Seed of one stream of random numbers of one iteration."""
    return int(np.random.SeedSequence((config.seed, iteration, stream, *path)).generate_state(1)[0])


def episode_requests(
    config: TrainerConfig,
    iteration: int,
    groups: range | None = None,
    options: Sequence[dict[str, Any] | None] | None = None,
) -> list[EpisodeRequest]:
    """The episodes of one iteration, over all processes: equal seeds within a group, so that they begin equally.

    Args:
        config: settings of the run.
        iteration: number of the iteration, from 0.
        groups: numbers of the groups within the iteration; the first `config.groups` by default.
        options: options of `reset` for each of the groups; none by default.
    """
    groups = range(config.groups) if groups is None else groups
    options = [None] * len(groups) if options is None else options
    random = np.random.default_rng(stream_seed(config, iteration, Stream.TASKS))
    seeds = random.integers(2**31, size=groups.stop)
    return [
        EpisodeRequest(
            group,
            seed=int(seed),
            options=chosen,
            sampling_seed=stream_seed(config, iteration, Stream.SAMPLING, group * config.group_size + member),
        )
        for group, seed, chosen in zip(groups, seeds[groups.start :], options, strict=True)
        for member in range(config.group_size)
    ]


def copy_policy(policy: PreTrainedModel) -> PreTrainedModel:
    """A copy of a policy that shares the weights which are not learned, as those under adapters."""
    frozen = {id(weight): weight for weight in policy.parameters() if not weight.requires_grad}
    copied: PreTrainedModel = copy.deepcopy(policy, frozen)
    copied.eval()
    return copied


@dataclass(frozen=True, slots=True)
class Played:
    """What one iteration learns from.

    Attributes:
        collection: episodes of this process, with the values of their states if the method asks for branches.
        branch_steps: number of steps of the environment in the branches.
    """

    collection: Collection
    branch_steps: int


class Player:
    """Plays the episodes of one iteration after the other.

    Args:
        config: settings of the run.
        method: method of the run.
        collector: policy in its environments; closed with the player.
        requests: function that gives this process's episodes of some groups of an iteration.
        device: device that holds the policy.
    """

    def __init__(
        self,
        config: TrainerConfig,
        method: Method,
        collector: Collector,
        requests: Callable[[int, range], list[EpisodeRequest]],
        device: torch.device,
    ) -> None:
        self._config = config
        self._method = method
        self._collector = collector
        self._requests = requests
        prepared = (device, torch.get_num_threads())
        self._thread = ThreadPoolExecutor(1, "player", _prepare_thread, prepared) if config.staleness else None
        self._ahead: Future[Played] | None = None
        self._stopped = False

    def begin(self, iteration: int, policy: PreTrainedModel) -> None:
        """Begin to play the episodes of an iteration in another thread; the policy must not change before they end."""
        assert self._thread is not None
        self._collector.generator.take_weights(policy)
        self._ahead = self._thread.submit(self._play, iteration)

    def take(self, iteration: int, policy: PreTrainedModel) -> Played:
        """The episodes of an iteration: those that have been begun, or else played now with a policy."""
        if self._thread is None:
            self._collector.generator.take_weights(policy)
            return self._play(iteration)
        if self._ahead is None:
            self.begin(iteration, policy)
        assert self._ahead is not None
        ahead, self._ahead = self._ahead, None
        return ahead.result()

    def rest(self) -> None:
        """Wait until nothing is played: generators may share an engine."""
        if self._ahead is not None:
            wait([self._ahead])

    def close(self) -> None:
        """Close the environments and the generator; what is being played is left at the end of an episode."""
        self._stopped = True
        if self._thread is None:
            self._collector.close()
            return
        with self._thread as thread:  # Worlds are closed in the thread that they were used in.
            thread.submit(self._collector.close).result()

    def _play(self, iteration: int) -> Played:
        collection, branch_steps = self._value(iteration, self._collect(iteration))
        self._collector.generator.forget()  # The update needs the memory.
        return Played(collection, branch_steps)

    def _collect(self, iteration: int) -> Collection:
        """The episodes of the policy. All are learned from and counted, also those that were not enough."""
        groups = range(self._config.groups)
        collection = self._collector.collect(self._requests(iteration, groups), self._watch)
        for _ in range(self._method.resample):
            missing = self._config.groups - useful_groups(self._method, collection.trajectories)
            if not missing:
                break
            groups = range(groups.stop, groups.stop + missing)
            more = self._collector.collect(self._requests(iteration, groups), self._watch)
            collection += more
        return collection

    def _value(self, iteration: int, collection: Collection) -> tuple[Collection, int]:
        """The episodes with the values of their states if the method asks for branches, and the branches' steps."""
        if not self._method.branches:
            return collection, 0

        def seed_of(episode: int, turn: int, branch: int) -> int:
            return stream_seed(self._config, iteration, Stream.BRANCHES, episode, turn, branch)

        requests = branch_requests(collection.trajectories, self._method.branches, seed_of)
        branched = self._collector.collect(requests, self._watch)
        return with_values(collection, branched), sum(len(branch.turns) for branch in branched.trajectories)

    def _watch(self, _: Trajectory) -> None:
        if self._stopped:
            raise _StoppedError


class _StoppedError(Exception):
    """The run ends before the episodes do."""


def _prepare_thread(device: torch.device, threads: int) -> None:
    """Let a new thread compute on a device, and share its work among as many threads as the main one does."""
    torch.set_num_threads(threads)
    if device.type != "cpu" and device.index is not None:  # Processes that are joined on CPUs number these.
        torch.accelerator.set_device_index(device.index)
