"""Agents that run on this machine: a saved policy, and whatever function the caller names."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import gymnasium

from textagent_gym.agents.base import Agent
from textagent_gym.errors import InvalidOptionError, MissingDependencyError
from textagent_gym.registration import import_hint

_POLICIES = "baselines.evaluation.policy_agent"
"""Module of the trainers that plays and recomputes policies: the suite itself never loads torch."""


@dataclass(frozen=True, kw_only=True)
class PolicySettings:
    """How a saved policy is sampled."""

    temperature: float = 1.0
    """Sampling temperature; 0 takes the likeliest token."""
    max_action_tokens: int = 24
    """Largest number of tokens per action."""
    hints: bool = False
    """Whether the policy is told the admissible actions; see `AdmissibleActionHints`."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.temperature < float("inf"):
            raise InvalidOptionError(f"temperature must be at least 0, got {self.temperature}")
        if self.max_action_tokens < 1:
            raise InvalidOptionError(f"max_action_tokens must be at least 1, got {self.max_action_tokens}")


def policy_agents(folder: str, settings: PolicySettings, slots: int, *, vllm: bool = False) -> Any:
    """A maker of agents of a saved policy; see `baselines.evaluation.policy_agent.PolicyAgents`.

    Raises:
        MissingDependencyError: the trainers' packages are not installed, or vLLM is not.
        InvalidOptionError: there is no such policy.
    """
    return _load(_POLICIES).PolicyAgents(folder, settings, slots, vllm=vllm)


def recomputer(folder: str, settings: PolicySettings) -> Any:
    """What checks whether a saved policy said what a result holds; see `baselines.evaluation.policy_agent.Recomputer`.

    Raises:
        MissingDependencyError: the trainers' packages are not installed.
        InvalidOptionError: there is no such policy.
    """
    return _load(_POLICIES).Recomputer(folder, settings)


def agents_of(name: str) -> Callable[[gymnasium.Env[str, str]], Agent]:
    """What `module:function` names: a function or a class that makes an agent for an environment.

    Raises:
        InvalidOptionError: there is no such module or function.
    """
    module, _, function = name.partition(":")
    try:
        agents = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise InvalidOptionError(f"agent {name!r} cannot be imported: {error}{import_hint(error)}") from error
    if not callable(agents):
        raise InvalidOptionError(f"agent {name!r} is not a function or class that makes an agent for an environment")
    return cast(Callable[[gymnasium.Env[str, str]], Agent], agents)


def _load(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependencyError(error.name or "torch", "train") from error
