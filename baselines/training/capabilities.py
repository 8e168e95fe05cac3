"""What a method needs of an environment beside text, asked before a model is loaded or a folder made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker

from baselines.credit.method import Method
from baselines.envs.pool import make_text_env
from baselines.settings.config import TrainerConfig
from baselines.settings.mixture import Component
from textagent_gym import TextEnv
from textagent_gym.errors import InvalidOptionError
from textagent_gym.wrappers import TextWrapper

_STATE = "state_key"  # How `infos` names the key of the exact state.


def infos_of(method: Method) -> tuple[str, ...]:
    """Infos that the method reads."""
    return (_STATE,) if method.states == "world" else ()


def check_environments(components: Sequence[Component], config: TrainerConfig, method: Method) -> None:
    """Refuse environments that cannot do what the method needs.

    Args:
        components: environments that are played.
        config: settings of the run.
        method: method of the run.

    Raises:
        InvalidOptionError: one does not tell its state, or cannot save its moments.
    """
    if method.branches and len(components) > 1:
        raise InvalidOptionError(f"branches={method.branches} needs a single environment, got {len(components)}")
    for component in components:
        env = make_text_env(component.env, component.kwargs, config.wrappers)
        try:
            if method.states == "world" and not _supports(env.unwrapped, _STATE):
                name = type(env.unwrapped).__name__
                raise InvalidOptionError(
                    f"state='world' needs an environment that tells its state, and {name} does not; "
                    "with state='observation' equal texts are taken for equal states"
                )
            if method.branches:
                _check_snapshots(env, method.branches)
        finally:
            env.close()


def _check_snapshots(env: gymnasium.Env[Any, Any], branches: int) -> None:
    """Refuse an environment whose moments cannot be saved with all that is wrapped around it."""
    layer = env
    while isinstance(layer, TextWrapper | OrderEnforcing | PassiveEnvChecker):
        layer = layer.env
    if not _supports(layer, "snapshot"):
        raise InvalidOptionError(
            f"branches={branches} needs snapshots of the environment, and {type(layer).__name__} has none"
        )


def _supports(env: gymnasium.Env[Any, Any], ability: str) -> bool:
    return isinstance(env, TextEnv) and ability in env.supports
