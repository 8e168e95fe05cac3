"""Several episodes at once: in processes where worlds compute, in threads where agents wait."""

from __future__ import annotations

import inspect
import json
import multiprocessing
import re
import threading
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

import gymnasium
from gymnasium.envs.registration import EnvSpec

from textagent_gym.agents import Agent, make_agent
from textagent_gym.agents.names import resembled
from textagent_gym.calls import FORMATS
from textagent_gym.errors import InvalidOptionError, TextAgentError
from textagent_gym.evaluation.episode import MOST_REPEATS, base_of, in_words, play_until_whole
from textagent_gym.evaluation.records import EpisodeRecord, read_line, record
from textagent_gym.processes import worker_processes

AgentMaker = str | Callable[[gymnasium.Env[str, str]], Agent]
"""A name out of `AGENTS`, or a function that makes an agent for an environment.

Its attribute `waits` says that its agents wait more than they compute, such as for a server.
"""


@dataclass(frozen=True, slots=True)
class Job:
    """An episode to play.

    Attributes:
        spec: environment.
        index: position of the task in the split.
        seed: seed of the reset and of the agent.
        conversation: whether what was said is returned.
    """

    spec: EnvSpec
    index: int
    seed: int
    conversation: bool = False


@dataclass(frozen=True, slots=True)
class Played:
    """An episode that was played: its record, and what was said, which is empty unless it was asked for."""

    record: EpisodeRecord
    conversation: list[dict[str, Any]]


_DIGEST = re.compile(r"[0-9a-f]{64}")


def details_of(agent: AgentMaker) -> Mapping[str, Any]:
    """What the maker of agents tells of them before it has made one: how they want to be told of a world."""
    details = getattr(agent, "details", None)
    return details if isinstance(details, Mapping) else {}


def make_player(agent: AgentMaker, env: gymnasium.Env[str, str]) -> Agent:
    """The agent for an environment.

    Raises:
        InvalidOptionError: there is no such agent, it cannot play this environment, or the function fails or makes no
            agent.
    """
    if isinstance(agent, str):
        return make_agent(agent, env)
    name = ":".join(getattr(agent, part, "") for part in ("__module__", "__qualname__")).strip(":") or repr(agent)
    try:
        player = agent(env)
    except (TextAgentError, gymnasium.error.Error, KeyboardInterrupt):
        raise
    except BaseException as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = "" if place.filename == __file__ else f" ({place.filename}, line {place.lineno})"
        raise InvalidOptionError(f"{name} makes no agent for an environment: {in_words(error)}{where}") from error
    if not (_takes(player, "reset", 0) and _takes(player, "act", "", {})):
        raise InvalidOptionError(
            f"{name} makes no agent for an environment: {player!r:.100} has no methods reset(seed) and "
            "act(observation, info)"
        )
    return player


def identity_of(player: Agent) -> tuple[str, dict[str, Any]]:
    """Name of an agent and further facts about it, as they are recorded.

    Raises:
        InvalidOptionError: a result file cannot hold them, or nobody could verify the result: the name looks like that
            of an agent of this suite which others can check, or is its name, and there are details.
    """
    try:
        name = getattr(player, "name", type(player).__name__)
    except Exception as error:
        raise InvalidOptionError(f"an agent cannot say its name: {in_words(error)}") from error
    if not isinstance(name, str):
        raise InvalidOptionError(f"the name of an agent is a text, got {name!r:.100}")
    try:
        details = dict(getattr(player, "details", None) or {})
        # As deep as they lie in the files of a result.
        (details,) = read_line(json.dumps([[details]]).encode())[0]
        if details.get("format") not in (None, *FORMATS):
            raise ValueError(f"'format' is one of {', '.join(FORMATS)}")
        if not isinstance(details.get("hints", False), bool):
            raise ValueError("'hints' says by True or False whether the agent is told the admissible actions")
        if "policy" in details and not _DIGEST.fullmatch(str(details["policy"])):
            raise ValueError("'policy' is the SHA-256 of a saved policy, whose tokens are recorded")
    except Exception as error:
        raise InvalidOptionError(
            f"the details of the agent {name!r:.100} must be a dictionary of JSON values: {in_words(error)}"
        ) from error
    known = resembled(name)
    if known and (name != known or details):
        raise InvalidOptionError(unverifiable(name, known))
    return name, details


def unverifiable(name: str, known: str) -> str:
    """Why an agent cannot be called as it is, in words.

    Args:
        name: name of the agent.
        known: agent of this suite that it reads like.
    """
    return (
        f"the agent is called {name!r:.100}, which reads like {known!r}, an agent of this suite: nobody could verify "
        "its result. Give it another name"
    )


def _takes(player: object, method: str, *arguments: object) -> bool:
    """Whether something has a method for some arguments."""
    try:
        inspect.signature(getattr(player, method)).bind(*arguments)
    except (AttributeError, TypeError):
        return False
    except ValueError:  # It is written in C and does not tell.
        pass
    return True


def play_job(env: gymnasium.Env[str, str], player: Agent, job: Job) -> Played:
    """Play an episode, again where its world breaks."""
    episode = play_until_whole(env, player, options={"task_index": job.index}, seed=job.seed)
    recorded = record(episode, job.seed)
    if not recorded.task:  # The world could not even be reset.
        recorded = replace(recorded, task=task_id(env, job.index))
    return Played(recorded, episode.conversation if job.conversation else [])


def task_id(env: gymnasium.Env[str, str], index: int) -> str:
    """Id of a task of the split that is played."""
    base = base_of(env)
    return base.tasks.address(base.split, index)


class Players:
    """Plays episodes with several agents of one kind, each in an environment of its own.

    Args:
        agent: maker of the agents. For processes it must pickle.
        workers: number of agents. They are threads if the maker says that agents wait, and processes otherwise.
    """

    def __init__(self, agent: AgentMaker, workers: int) -> None:
        self._agent = agent
        self._workers = workers
        self._waits = bool(getattr(agent, "waits", False))
        self._others = set(multiprocessing.active_children())
        self._executor = self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None and not self._waits:  # What they play may take long, and is not kept.
            for process in set(multiprocessing.active_children()) - self._others:
                process.kill()
        self._executor.shutdown(wait=error is None, cancel_futures=True)
        close = getattr(self._agent, "close", None)
        if error is not None and self._waits and close is not None:  # Agents that wait for a server stop waiting.
            close()

    def play(self, jobs: Sequence[Job]) -> Iterator[tuple[int, Played | None]]:
        """Play episodes; yields the position of each among the jobs, as they end.

        `None` is an episode whose process has died four times: it is played alone after the first time, so that its
        neighbours are not blamed.
        """
        waiting, suspects = deque(enumerate(jobs)), deque[tuple[int, Job]]()
        running: dict[Future[Played], tuple[int, Job]] = {}
        deaths: Counter[int] = Counter()
        while waiting or suspects or running:
            try:
                while (suspects and not running) or (not suspects and waiting and len(running) < 2 * self._workers):
                    queue = suspects or waiting
                    future = self._executor.submit(_play, self._agent, queue[0][1])
                    running[future] = queue.popleft()
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    played = future.result()
                    number, _ = running.pop(future)
                    yield number, played
            except BrokenExecutor:
                lost = list(running.values())
                running.clear()
                self._executor = self._start()
                for number, job in lost:
                    deaths[number] += 1
                    if deaths[number] > MOST_REPEATS:
                        yield number, None
                    else:
                        suspects.append((number, job))

    def _start(self) -> Executor:
        return ThreadPoolExecutor(self._workers) if self._waits else worker_processes(self._workers)


_seat = threading.local()
"""Environment and agent of a thread, kept while the same ones are asked for."""


def _play(agent: AgentMaker, job: Job) -> Played:
    """In a worker: play an episode."""
    if getattr(_seat, "made_for", None) != (agent, job.spec):
        if hasattr(_seat, "env"):
            _seat.env.close()
        _seat.env = gymnasium.make(job.spec)
        _seat.player = make_player(agent, _seat.env)
        _seat.made_for = (agent, job.spec)
    return play_job(_seat.env, _seat.player, job)
