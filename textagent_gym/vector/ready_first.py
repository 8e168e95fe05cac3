"""A pool of environments that answers in the order in which they are done: the slowest world stalls nobody."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from gymnasium import Space
from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError

from textagent_gym.errors import InvalidOptionError, WorkerError
from textagent_gym.vector.messages import Answer, Call, Failure, Reply, Request, Reset, Step, Value
from textagent_gym.vector.worker import MakeEnv
from textagent_gym.vector.workers import Kind, Workers


@dataclass(frozen=True, slots=True)
class Received:
    """What one environment answered.

    Attributes:
        slot: Number of the environment.
        observation: Text, or whatever else the environment shows now.
        reward: Reward of the step; 0.0 after a reset.
        terminated: Whether the world ended.
        truncated: Whether the turn budget ran out, or the world broke (`info["broken"]` says why).
        info: Infos, as `StepInfo` lists them.
    """

    slot: int
    observation: Any
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


class ReadyFirstPool:
    """Environments that are asked one by one and answer as soon as they are done.

    `reset` and `send` return at once; `recv` returns whichever environment answers first. Nothing is reset on its own:
    whoever receives an end says what is played next. An environment's exception is raised by `recv`, with the
    worker's traceback as its cause (a `WorkerError`, whose `slot` tells which environment); the pool remains usable.

    Args:
        env_fns: Functions that make the environments; for processes, sent to the workers with `cloudpickle`.
        kind: "process", "thread" for worlds that mostly wait (for a container, a server), or "ray" for actors on the
            machines of a Ray cluster (see `textagent_gym.ray_cluster`); what is in `info` must be picklable with all.
            A worker that dies is replaced and its running episodes are truncated.
        workers: Number of workers; by default one per environment. Environments that share one wait for each other.
        context: Start method of processes: "forkserver", "spawn" or "fork"; by default the first one that exists here.
        time_limit: Seconds that an answer may take before the worker is replaced as if it had died; `None` for no
            limit. A thread cannot be ended: it is left behind, and closes its environments when it returns.

    Raises:
        WorkerError: workers die again and again before they have made their environments.

    Example:
        >>> import gymnasium
        >>> make = lambda: gymnasium.make("lights/Lights-v0", switches=1)
        >>> with ReadyFirstPool([make] * 3, kind="thread") as pool:
        ...     for slot in range(pool.num_envs):
        ...         pool.reset(slot, seed=slot)
        ...     begun = [pool.recv() for _ in range(pool.num_envs)]
        ...     pool.send(begun[0].slot, "press red")
        ...     pool.recv().reward
        1.0
    """

    def __init__(
        self,
        env_fns: Sequence[MakeEnv],
        *,
        kind: Kind = "process",
        workers: int | None = None,
        context: str | None = None,
        time_limit: float | None = None,
    ) -> None:
        self._workers = Workers(env_fns, len(env_fns) if workers is None else workers, kind, context, time_limit)
        self._asked: set[int] = set()
        self._ready: deque[tuple[int, Reply]] = deque()
        self.num_envs = len(env_fns)
        self.single_observation_space: Space[Any]
        self.single_action_space: Space[Any]
        self.single_observation_space, self.single_action_space = self._workers.spaces[0]

    @property
    def worker_pids(self) -> tuple[int | None, ...]:
        """Process ids of the workers, in the order of their environments; `None` for threads and actors."""
        return self._workers.pids

    @property
    def pending(self) -> frozenset[int]:
        """The slots that have been asked and whose answer has not been received."""
        return frozenset(self._asked)

    def reset(self, slot: int, *, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin an episode in one environment; `recv` will return its first observation.

        Raises:
            gymnasium.error.AlreadyPendingCallError: its last answer has not been received.
        """
        self._ask(slot, Reset(seed, options))

    def send(self, slot: int, action: Any) -> None:
        """Act in one environment; `recv` will return the outcome.

        Raises:
            gymnasium.error.AlreadyPendingCallError: its last answer has not been received.
        """
        self._ask(slot, Step(action))

    def recv(self, timeout: float | None = None) -> Received:
        """The next answer of any environment that has been asked.

        Args:
            timeout: Seconds to wait at most; `None` waits for ever. Nothing is done to those who are late.

        Raises:
            TimeoutError: no environment has answered in time; they are still at it (see `restart`).
            gymnasium.error.NoAsyncCallError: no environment has been asked.
        """
        if not self._asked:
            raise NoAsyncCallError("No environment has been asked: call send or reset first.", "recv")
        if not self._ready:
            self._ready.extend(self._workers.wait(timeout))
        if not self._ready:
            raise TimeoutError(f"none of {len(self._asked)} environments has answered within {timeout} seconds")
        slot, reply = self._ready.popleft()
        self._asked.remove(slot)
        if isinstance(reply, Failure):
            reply.throw(slot)
        answer = cast(Answer, reply)
        return Received(slot, answer.observation, answer.reward, answer.terminated, answer.truncated, answer.info)

    def restart(self, slot: int) -> None:
        """Replace the worker of an environment that hangs; those that share the worker suffer the same.

        It is as if the worker had died: a step under way, and the next step of any other running episode, answers
        with a truncated episode and `info["broken"]`; a reset under way begins anew.
        """
        self._check(slot)
        self._workers.restart(slot)

    def call(self, slot: int, name: str, *args: Any, timeout: float | None = None, **kwargs: Any) -> Any:
        """Call a method of one environment, such as `oracle` or `snapshot`, or read an attribute, and wait for it.

        Args:
            slot: Number of the environment.
            name: Name of the method or attribute.
            args, kwargs: Arguments of the method.
            timeout: Seconds to wait at most, after which the worker is replaced as by `restart`; `None` for no limit.

        Raises:
            gymnasium.error.AlreadyPendingCallError: its last answer has not been received.
            WorkerError: its worker died meanwhile, or the environment has not answered in time.
        """
        self._ask(slot, Call(name, args, kwargs))
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            while True:
                replies = dict(self._workers.wait(None if deadline is None else max(0.0, deadline - time.monotonic())))
                reply = replies.pop(slot, None)
                self._ready.extend(replies.items())
                if reply is not None:
                    break
                if deadline is not None and time.monotonic() >= deadline:
                    raise WorkerError(f"environment {slot} has not answered {name!r} within {timeout:g} seconds", slot)
        except BaseException:  # Too late, or Ctrl-C: an answer that comes later would be taken for another one's.
            self._workers.restart(slot)
            self._ready.extend(item for item in self._workers.wait(0.0) if item[0] != slot)
            raise
        finally:
            self._asked.discard(slot)
        if isinstance(reply, Failure):
            reply.throw(slot)
        return cast(Value, reply).value

    def close(self) -> None:
        """End the workers, whatever they are doing; again does nothing."""
        self._workers.close()

    def __enter__(self) -> ReadyFirstPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, slot: int, request: Request) -> None:
        self._check(slot)
        if slot in self._asked:
            raise AlreadyPendingCallError(f"Environment {slot} has been asked already: call recv first.", "recv")
        self._workers.send([(slot, request)])
        self._asked.add(slot)

    def _check(self, slot: int) -> None:
        if not 0 <= slot < self.num_envs:
            raise InvalidOptionError(f"slot must be from 0 to {self.num_envs - 1}, got {slot}")
