"""What an agent is: something that answers an observation with an action."""

from __future__ import annotations

from typing import Any, Protocol

import gymnasium

from textagent_gym.core import TextEnv
from textagent_gym.errors import InvalidOptionError


class Agent(Protocol):
    """Plays one environment, an episode at a time."""

    name: str

    def reset(self, seed: int) -> None:
        """A new episode begins; whatever the agent draws at random follows from the seed."""
        ...

    def act(self, observation: str, info: dict[str, Any]) -> str | None:
        """The action that follows an observation; `None` if the agent cannot continue, its context being full."""
        ...


def text_env(env: gymnasium.Env[str, str], agent: str) -> TextEnv[Any]:
    """The `TextEnv` at the base of an environment.

    Raises:
        InvalidOptionError: the base is another class, so the agent cannot play it.
    """
    base = env.unwrapped
    if not isinstance(base, TextEnv):
        raise InvalidOptionError(f"agent {agent!r} plays text environments of this suite only, not {base}")
    return base
