"""Making a vector environment from a registered id."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode

from textagent_gym.errors import InvalidOptionError
from textagent_gym.vector.vector_env import InProcessVectorEnv, ProcessVectorEnv

Wrap = Callable[[gymnasium.Env[Any, Any]], gymnasium.Env[Any, Any]]
"""Puts a wrapper around an environment."""


def make_vec(
    env_id: str | EnvSpec,
    num_envs: int,
    *,
    kind: Literal["in-process", "process"] = "in-process",
    workers: int | None = None,
    time_limit: float | None = None,
    wrappers: Sequence[Wrap] = (),
    autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    **kwargs: Any,
) -> InProcessVectorEnv | ProcessVectorEnv:
    """A vector environment of any registered id.

    Args:
        env_id: Registered id, also as "module:id" with the module that registers it, or a spec.
        num_envs: Number of environments.
        kind: "in-process" (one after the other; fastest where a step is cheap) or "process".
        workers: Number of worker processes; by default one per processor core.
        time_limit: Seconds that a worker process may take over a step before it is replaced; `None` for no limit.
        wrappers: Wrappers around each environment, first one innermost.
        autoreset_mode: "NextStep", "SameStep" or "Disabled".
        kwargs: Keyword arguments of the environment.

    Raises:
        gymnasium.error.Error: there is no such id.
        InvalidOptionError: an argument has a value that does not exist.

    >>> envs = make_vec("lights/Lights-v0", 3, switches=2)
    >>> len(envs.reset(seed=0)[0])
    3
    """
    if num_envs < 1:
        raise InvalidOptionError(f"num_envs must be at least 1, got {num_envs}")
    make = env_maker(env_id, wrappers=wrappers, **kwargs)
    if kind == "process":
        return ProcessVectorEnv([make] * num_envs, workers, autoreset_mode, time_limit=time_limit)
    if kind != "in-process":
        raise InvalidOptionError(f'kind must be "in-process" or "process", got {kind!r}')
    if workers is not None or time_limit is not None:
        raise InvalidOptionError('workers and time_limit are for kind="process"; this process has no workers')
    return InProcessVectorEnv([make] * num_envs, autoreset_mode=autoreset_mode)


def env_maker(
    env_id: str | EnvSpec, *, wrappers: Sequence[Wrap] = (), **kwargs: Any
) -> Callable[[], gymnasium.Env[Any, Any]]:
    """A function that makes an environment of a registered id, here or in any other process.

    It carries the spec, not the id: a worker need not have run the code that registered the id.

    Raises:
        gymnasium.error.Error: there is no such id.
        ModuleNotFoundError: the module named in "module:id" does not exist.
    """
    if isinstance(env_id, str):
        module, _, env_id = env_id.rpartition(":")
        if module:
            importlib.import_module(module)
    spec = copy.deepcopy(gymnasium.spec(env_id) if isinstance(env_id, str) else env_id)
    return partial(_make, spec, tuple(wrappers), kwargs)


def _make(spec: EnvSpec, wrappers: tuple[Wrap, ...], kwargs: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    env: gymnasium.Env[Any, Any] = gymnasium.make(spec, **kwargs)
    for wrap in wrappers:
        env = wrap(env)
    return env
