"""Snapshots of wrapped environments: every wrapper on the way saves what it remembers, or says that it cannot."""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium import spaces
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from textagent_gym.core import TextEnv
from textagent_gym.errors import InvalidOptionError, UnsupportedOperationError


class TextWrapper(gymnasium.Wrapper[Any, str, Any, str]):
    """A wrapper with `snapshot` and `restore`; one that remembers something overrides `_remembered` and `_remember`."""

    def snapshot(self) -> Any:
        """Save the environment's moment, and what the wrappers around it remember.

        Raises:
            UnsupportedOperationError: the world, or a wrapper of another library in between, cannot do so.
        """
        return snapshot(self.env), self._remembered()

    def restore(self, token: Any) -> None:
        """Go back to what `snapshot` returned, of this environment or of one made and reset with the same arguments."""
        inner, remembered = token
        restore(self.env, inner)
        self._remember(remembered)

    def _remembered(self) -> Any:
        return None

    def _remember(self, remembered: Any) -> None:
        pass


def check_text(env: gymnasium.Env[Any, Any], wrapper: str) -> None:
    """Raise `InvalidOptionError` unless the observations are text."""
    if not isinstance(env.observation_space, spaces.Text):
        raise InvalidOptionError(
            f"{wrapper} changes observations that are text, not {env.observation_space}; "
            "ChatMessages goes around it, not inside it."
        )


def snapshot(env: gymnasium.Env[Any, Any]) -> Any:
    """Save the moment of an environment with whatever is wrapped around it.

    Gymnasium's own wrappers of `gymnasium.make` are known: `TimeLimit` counts, the others remember nothing.

    Raises:
        UnsupportedOperationError: a wrapper may remember something, and does not say how to save it.
    """
    if isinstance(env, TextEnv | TextWrapper):
        return env.snapshot()
    if isinstance(env, OrderEnforcing | PassiveEnvChecker):
        return snapshot(env.env)
    if isinstance(env, TimeLimit):
        return snapshot(env.env), env._elapsed_steps
    raise UnsupportedOperationError(
        f"{type(env).__name__} cannot save what it remembers: take it out, or save an environment inside it."
    )


def restore(env: gymnasium.Env[Any, Any], token: Any) -> None:
    """Go back to what `snapshot` returned."""
    if isinstance(env, TextEnv | TextWrapper):
        env.restore(token)
    elif isinstance(env, TimeLimit):
        inner, env._elapsed_steps = token
        restore(env.env, inner)
    elif isinstance(env, OrderEnforcing | PassiveEnvChecker):
        restore(env.env, token)
    else:
        raise UnsupportedOperationError(f"{type(env).__name__} cannot go back to a state.")
