"""What an agent is: something that answers an observation with an action."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import gymnasium

from textagent_gym.core import TextEnv
from textagent_gym.errors import InvalidOptionError

_PRICES = ("price_input", "price_output")


class Agent(Protocol):
    """Plays one environment, an episode at a time.

    An agent may have further attributes: `details` (facts about it that are recorded, as JSON values), `stop_reason`
    (why its last `act` returned `None`, in a word; "gave up" if it does not say), `tokens` and `tokens_read` (number of
    tokens that it has written and read in this episode), `cost` (money that this episode has cost), `cut` and `refused`
    (number of its answers that ended at a limit of tokens, and that were refused or withheld), `served` (names of the
    models that answered), `sampled` (`ids` and `log_probs` of the tokens of its last action) and `remarks` (what its
    model wrote beside that action; see `evaluation.remarks.REMARKS`).
    """

    name: str

    def reset(self, seed: int) -> None:
        """A new episode begins; whatever the agent draws at random follows from the seed."""
        ...

    def act(self, observation: str, info: dict[str, Any]) -> str | None:
        """The action that follows an observation; `None` if the agent cannot continue (see `stop_reason`).

        Raises:
            AgentError: it cannot answer, and this says nothing about its policy.
        """
        ...


def identifying(details: Mapping[str, Any]) -> dict[str, Any]:
    """The facts about an agent that say who it is: all on which its actions can depend.

    Where its server is and what it costs do not; prices do where a limit of cost ends episodes.

    >>> identifying({"model": "m", "base_url": "http://localhost/v1", "price_input": 2.0, "price_output": 8.0})
    {'model': 'm'}
    """
    others = ("base_url", *(_PRICES if details.get("episode_cost") is None else ()))
    return {name: value for name, value in details.items() if name not in others}


def chosen(details: Mapping[str, Any]) -> dict[str, Any]:
    """The facts about an agent that stay the same in a result: all but where its server is.

    >>> chosen({"model": "m", "base_url": "http://localhost/v1", "price_input": 2.0})
    {'model': 'm', 'price_input': 2.0}
    """
    return {name: value for name, value in details.items() if name != "base_url"}


def differing(
    details: Sequence[Mapping[str, Any]], facts: Callable[[Mapping[str, Any]], dict[str, Any]] = identifying
) -> list[str]:
    """Names of some facts in which several agents differ, sorted: of those that say who an agent is, unless told.

    >>> differing([{"model": "m", "temperature": 0.0}, {"model": "m", "temperature": 1.0, "effort": "high"}])
    ['effort', 'temperature']
    """
    known = [{name: json.dumps(value, sort_keys=True) for name, value in facts(each).items()} for each in details]
    names = {name for each in known for name in each}
    return sorted(name for name in names if len({each.get(name) for each in known}) > 1)


def text_env(env: gymnasium.Env[str, str], agent: str, needs: str) -> TextEnv[Any]:
    """The `TextEnv` at the base of an environment.

    Args:
        env: environment that is played, wrapped or not.
        agent: name of the agent, for the message.
        needs: what the world must support (see `TextEnv.supports`).

    Raises:
        InvalidOptionError: the base is another class, or does not support that, so the agent cannot play it.
    """
    base = env.unwrapped
    if not isinstance(base, TextEnv):
        raise InvalidOptionError(f"agent {agent!r} plays text environments of this suite only, not {base}")
    if needs not in base.supports:
        supported = ", ".join(sorted(base.supports)) or "nothing beside reset and step"
        raise InvalidOptionError(
            f"agent {agent!r} cannot play {type(base).__name__}, which has no {needs.replace('_', ' ')} "
            f"(it supports: {supported})"
        )
    return base
