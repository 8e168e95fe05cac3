"""Where the environments of a rollout live: in this process, in worker processes or threads, or on a Ray cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import gymnasium
from gymnasium.envs.registration import EnvSpec

from baselines.settings.config import PoolKind
from textagent_gym.errors import InvalidOptionError, WorkerError
from textagent_gym.ray_cluster import cluster_cpus
from textagent_gym.spaces import check_text_spaces
from textagent_gym.vector import ReadyFirstPool, Received, Wrap, available_cores, env_maker

MakeEnv = Callable[[], gymnasium.Env[str, str]]


class Pool(Protocol):
    """Environments that are asked one by one; `textagent_gym.vector.ReadyFirstPool` is one."""

    num_envs: int

    def reset(self, slot: int, *, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin an episode in one environment; `recv` will return its first observation."""
        ...

    def send(self, slot: int, action: Any) -> None:
        """Act in one environment; `recv` will return its answer."""
        ...

    def recv(self, timeout: float | None = None) -> Received:
        """The next answer of any environment that has been asked; `TimeoutError` if none comes in time."""
        ...

    def call(self, slot: int, name: str, *args: Any, timeout: float | None = None) -> Any:
        """Call a method of one environment that has answered, such as `snapshot`, and wait for it.

        Raises:
            WorkerError: it has not answered within `timeout` seconds, and is replaced as by `restart`.
        """
        ...

    def restart(self, slot: int) -> None:
        """Replace an environment that does not answer; `recv` will return the request to it as broken."""
        ...

    def close(self) -> None:
        """Close the environments; again does nothing."""
        ...


class InProcessPool:
    """Environments in this process, one after the other: the fastest for worlds that answer in a millisecond.

    They answer in the order in which they were asked, so equal seeds give equal rollouts to the last bit. Nothing can
    interrupt them, so time limits have no effect: a world that hangs stops the rollout.

    Args:
        make_env: function that makes one environment.
        num_envs: number of environments.
    """

    def __init__(self, make_env: MakeEnv, num_envs: int) -> None:
        self.num_envs = num_envs
        self._envs = [make_env() for _ in range(num_envs)]
        self._asked: deque[tuple[int, Callable[[], tuple[str, float, bool, bool, dict[str, Any]]]]] = deque()

    def reset(self, slot: int, *, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """See `Pool`."""

        def begin() -> tuple[str, float, bool, bool, dict[str, Any]]:
            observation, info = self._envs[slot].reset(seed=seed, options=options)
            return observation, 0.0, False, False, info

        self._asked.append((slot, begin))

    def send(self, slot: int, action: Any) -> None:
        """See `Pool`."""

        def act() -> tuple[str, float, bool, bool, dict[str, Any]]:
            observation, reward, terminated, truncated, info = self._envs[slot].step(action)
            return observation, float(reward), bool(terminated), bool(truncated), info

        self._asked.append((slot, act))

    def recv(self, timeout: float | None = None) -> Received:
        """See `Pool`, without its timeout; an environment that raises is the `slot` of the error's cause."""
        slot, answer = self._asked.popleft()
        try:
            return Received(slot, *answer())
        except Exception as error:
            raise error from WorkerError(f"environment {slot} raised", slot)

    def call(self, slot: int, name: str, *args: Any, timeout: float | None = None) -> Any:
        """See `Pool`, without its timeout."""
        return self._envs[slot].get_wrapper_attr(name)(*args)

    def restart(self, slot: int) -> None:
        """See `Pool`; nothing to do: an environment here answers before anybody can grow tired of waiting."""

    def close(self) -> None:
        """See `Pool`."""
        for env in self._envs:
            env.close()
        self._envs = []


def make_text_env(
    env: str | EnvSpec, kwargs: Mapping[str, Any], wrappers: Sequence[Wrap] = ()
) -> gymnasium.Env[str, str]:
    """One environment over text, in some wrappers. Nothing starts in it before its first reset.

    Raises:
        InvalidOptionError: its observations or its actions are not text, or it does not take the keyword arguments.
        gymnasium.error.Error: there is no such id.
    """
    try:
        player: gymnasium.Env[str, str] = env_maker(env, wrappers=wrappers, **kwargs)()
    except TypeError as error:  # As Python refuses a keyword argument.
        raise InvalidOptionError(str(error)) from error
    try:
        check_text_spaces(player)
    except InvalidOptionError:
        player.close()
        raise
    return player


def make_pool(make_env: MakeEnv, num_envs: int, kind: PoolKind = "in-process", workers: int | None = None) -> Pool:
    """A pool of equal environments.

    Args:
        make_env: function that makes one environment; for processes, sent to the workers with `cloudpickle`.
        num_envs: number of environments.
        kind: "in-process" for cheap worlds, "process" for worlds that compute, "thread" for worlds that wait, "ray" for
            worlds that need the cores of several machines.
        workers: number of worker processes, threads or actors; by default one per core for processes, one per
            environment for threads, and actors for half of the cluster's CPUs: the evaluations of a run have a pool of
            their own, and each actor keeps its CPU.
    """
    if kind == "in-process":
        return InProcessPool(make_env, num_envs)
    if workers is None and kind != "thread":
        workers = available_cores() if kind == "process" else max(1, cluster_cpus() // 2)
    return ReadyFirstPool([make_env] * num_envs, kind=kind, workers=None if workers is None else min(workers, num_envs))
