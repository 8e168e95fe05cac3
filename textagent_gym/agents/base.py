"""What an agent is: something that answers an observation with an action."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import gymnasium

from textagent_gym.errors import InvalidOptionError


class Agent(Protocol):
    """Plays one environment, an episode at a time."""

    name: str

    def reset(self, seed: int) -> None:
        """A new episode begins; whatever the agent draws at random follows from the seed."""
        ...

    def act(self, observation: str, info: dict[str, Any]) -> str:
        """The action that follows an observation."""
        ...


def _random(env: gymnasium.Env[str, str]) -> Agent:
    from textagent_gym.agents.uniform import RandomAgent

    return RandomAgent(env)


def _admissible_random(env: gymnasium.Env[str, str]) -> Agent:
    from textagent_gym.agents.uniform import AdmissibleRandomAgent

    return AdmissibleRandomAgent(env)


def _oracle(env: gymnasium.Env[str, str]) -> Agent:
    from textagent_gym.agents.oracle import OracleAgent

    return OracleAgent(env)


def _expert(env: gymnasium.Env[str, str]) -> Agent:
    from textagent_gym.agents.expert import ExpertAgent

    return ExpertAgent(env)


def _human(env: gymnasium.Env[str, str]) -> Agent:
    from textagent_gym.agents.human import HumanAgent

    return HumanAgent(env)


AGENTS: dict[str, Callable[[gymnasium.Env[str, str]], Agent]] = {
    "random": _random,
    "admissible-random": _admissible_random,
    "oracle": _oracle,
    "expert": _expert,
    "human": _human,
}
"""By name, for the command line."""


def make_agent(name: str, env: gymnasium.Env[str, str]) -> Agent:
    """The agent of that name for an environment.

    Raises:
        InvalidOptionError: there is no such agent.
    """
    if name not in AGENTS:
        raise InvalidOptionError(f"agent {name!r} does not exist; choose one of: {', '.join(AGENTS)}")
    return AGENTS[name](env)


def text_env(env: gymnasium.Env[str, str], agent: str) -> Any:
    """The `TextEnv` at the base of an environment.

    Raises:
        InvalidOptionError: it is none, so the agent cannot play it.
    """
    from textagent_gym.core import TextEnv

    if not isinstance(env.unwrapped, TextEnv):
        raise InvalidOptionError(f"agent {agent!r} plays environments of this suite only; {env} is none")
    return env.unwrapped
