"""Agents: the floor, the ceiling, a person, models behind a chat server, and saved policies."""

from __future__ import annotations

from collections.abc import Callable

import gymnasium

from textagent_gym.agents.base import Agent, chosen, differing, identifying
from textagent_gym.agents.chat import ChatAgents, ChatSettings
from textagent_gym.agents.expert import ExpertAgent
from textagent_gym.agents.human import HumanAgent
from textagent_gym.agents.local import PolicySettings, agents_of, policy_agents, recomputer
from textagent_gym.agents.oracle import OracleAgent
from textagent_gym.agents.uniform import AdmissibleRandomAgent, RandomAgent
from textagent_gym.errors import InvalidOptionError

__all__ = [
    "AGENTS",
    "AdmissibleRandomAgent",
    "Agent",
    "ChatAgents",
    "ChatSettings",
    "ExpertAgent",
    "HumanAgent",
    "OracleAgent",
    "PolicySettings",
    "RandomAgent",
    "agents_of",
    "chosen",
    "differing",
    "identifying",
    "make_agent",
    "policy_agents",
    "recomputer",
]

AGENTS: dict[str, Callable[[gymnasium.Env[str, str]], Agent]] = {
    kind.name: kind for kind in (RandomAgent, AdmissibleRandomAgent, OracleAgent, ExpertAgent, HumanAgent)
}
"""By name, for the command line."""


def make_agent(name: str, env: gymnasium.Env[str, str]) -> Agent:
    """The agent of a name for an environment.

    Raises:
        InvalidOptionError: there is no such agent, or it cannot play this environment.
    """
    if name not in AGENTS:
        raise InvalidOptionError(f"agent {name!r} does not exist; choose one of: {', '.join(AGENTS)}")
    return AGENTS[name](env)
