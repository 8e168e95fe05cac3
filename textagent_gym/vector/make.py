"""Making a vector environment from a registered id."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode

from textagent_gym.errors import InvalidOptionError
from textagent_gym.vector.vector_env import InProcessVectorEnv, ProcessVectorEnv

Wrap = Callable[[gymnasium.Env[Any, Any]], gymnasium.Env[Any, Any]]


def make_vec(
    env_id: str | EnvSpec,
    num_envs: int,
    *,
    kind: Literal["in-process", "process"] = "in-process",
    workers: int | None = None,
    wrappers: Sequence[Wrap] = (),
    autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    **kwargs: Any,
) -> InProcessVectorEnv | ProcessVectorEnv:
    """A vector environment of any registered id.

    Args:
        env_id: a registered id, or a spec.
        num_envs: number of environments.
        kind: "in-process" (one after the other; fastest where a step is cheap) or "process".
        workers: number of worker processes; by default one a processor core.
        wrappers: put around each environment, first one innermost.
        autoreset_mode: "NextStep", "SameStep" or "Disabled".
        kwargs: keyword arguments of the environment.

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
        return ProcessVectorEnv([make] * num_envs, workers=workers, autoreset_mode=autoreset_mode)
    if kind != "in-process":
        raise InvalidOptionError(f'kind must be "in-process" or "process", got {kind!r}')
    if workers is not None:
        raise InvalidOptionError('workers is for kind="process"; environments in this process need none')
    return InProcessVectorEnv([make] * num_envs, autoreset_mode=autoreset_mode)


def env_maker(
    env_id: str | EnvSpec, *, wrappers: Sequence[Wrap] = (), **kwargs: Any
) -> Callable[[], gymnasium.Env[Any, Any]]:
    """A function that makes an environment, here or in any other process.

    It carries the spec, not the id: a worker need not have run the code that registered the id.

    Raises:
        gymnasium.error.Error: there is no such id.
    """
    spec = copy.deepcopy(gymnasium.spec(env_id) if isinstance(env_id, str) else env_id)
    return partial(_make, spec, tuple(wrappers), kwargs)


def _make(spec: EnvSpec, wrappers: tuple[Wrap, ...], kwargs: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    env: gymnasium.Env[Any, Any] = gymnasium.make(spec, **kwargs)
    for wrap in wrappers:
        env = wrap(env)
    return env
