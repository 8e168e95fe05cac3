"""Agents that need no model: the floor, the ceiling, and a person."""

from textagent_gym.agents.base import AGENTS, Agent, make_agent
from textagent_gym.agents.human import HumanAgent
from textagent_gym.agents.oracle import OracleAgent
from textagent_gym.agents.uniform import AdmissibleRandomAgent, RandomAgent

__all__ = ["AGENTS", "AdmissibleRandomAgent", "Agent", "HumanAgent", "OracleAgent", "RandomAgent", "make_agent"]
