"""The one way to play an episode: evaluation, demonstrations, replay and recordings all go through `play`."""

from __future__ import annotations

import json
import math
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import gymnasium

from textagent_gym.agents import Agent
from textagent_gym.core import TextEnv
from textagent_gym.errors import AgentError, AgentFailedError, InvalidOptionError, TextAgentError, WorldBrokenError
from textagent_gym.evaluation.remarks import MOST_REMARKS, kept_remarks
from textagent_gym.sources import seed_bytes

MOST_REPEATS = 3
"""Times that an episode is played again after its world has broken: what breaks four times breaks always."""
MOST_SAID = 3 * 2**22
"""Bytes of an episode's actions and observations, written as JSON: three quarters of the longest line that is read of a
result file. An agent is stopped there."""

COUNTED = ("tokens", "cost", "tokens_read", "cut", "refused", "served")
"""Attributes by which an agent tells what an episode took; fields of an episode and of its record."""
_LONGEST_REASON = 1000  # Characters of an error that are kept.
_LONGEST_STOP = 40  # Characters of the word by which an agent says why it stopped.
_MOST_TOKENS = 2**31  # In a vocabulary.


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn.

    Attributes:
        observation: what the agent read.
        action: the agent's answer.
        reward: reward of the action.
        valid: whether the world understood the action and it was applicable.
        sampled: `ids` and `log_probs` of the action's tokens; `None` where the agent does not tell.
        remarks: texts that the agent's model wrote beside the action, bounded, by name (see `remarks.REMARKS`).
    """

    observation: Any
    action: str
    reward: float
    valid: bool
    sampled: dict[str, Any] | None = None
    remarks: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Episode:
    """What was played.

    Attributes:
        beginning: `info` of the reset.
        turns: every turn, in order.
        last_observation: the world's answer to the last action.
        info: `info` of the last step, or of the reset if there was none.
        terminated: whether the world ended, solved or lost.
        truncated: whether the turn budget ran out, or the world broke.
        stopped: reason why the agent could not continue while the world had not ended, in a word; "" if it could.
        seconds: time that the episode took.
        tokens: number of tokens that the agent's model wrote; `None` if they were not counted.
        cost: money that the agent's model cost, in the currency of its prices; `None` if it was not counted.
        tokens_read: number of tokens that the agent's model read; `None` if they were not counted.
        cut, refused: number of answers that ended at a limit of tokens, and of those that the model refused or its
            server withheld; `None` if the agent does not tell.
        served: names of the models that answered, as their server calls them; `None` if the agent does not tell.
    """

    beginning: dict[str, Any]
    turns: tuple[Turn, ...]
    last_observation: Any
    info: dict[str, Any]
    terminated: bool
    truncated: bool
    stopped: str
    seconds: float
    tokens: int | None = None
    cost: float | None = None
    tokens_read: int | None = None
    cut: int | None = None
    refused: int | None = None
    served: list[str] | None = None

    @property
    def broken(self) -> str:
        """Why the world broke, or the agent could not answer; "" if neither happened."""
        return str(self.info.get("broken", ""))

    @property
    def success(self) -> bool:
        """Whether the goal was reached."""
        return bool(self.info.get("success", False))

    @property
    def total_reward(self) -> float:
        """Sum of the rewards, undiscounted."""
        return sum(turn.reward for turn in self.turns)

    @property
    def observations(self) -> tuple[Any, ...]:
        """Every observation, the last one included."""
        return (*(turn.observation for turn in self.turns), self.last_observation)

    @property
    def conversation(self) -> list[dict[str, Any]]:
        """Everything that was said: the instructions as system, unless the first observation holds them, observations
        as user and actions as assistant, in turn; the last observation ends it. Actions of an agent that tells have
        the `ids` and `log_probs` of their tokens, and the remarks of its model."""
        instructions = str(self.beginning.get("instructions", ""))
        shown = self.observations[0]
        hidden = instructions and not (isinstance(shown, str) and instructions in shown)
        system = [{"role": "system", "content": instructions}] if hidden else []
        messages = [
            message
            for turn in self.turns
            for message in (
                {"role": "user", "content": turn.observation},
                {"role": "assistant", "content": turn.action, **(turn.sampled or {}), **turn.remarks},
            )
        ]
        return [*system, *messages, {"role": "user", "content": self.last_observation}]

    @property
    def messages(self) -> list[dict[str, str]]:
        """The conversation: observations as user, actions as assistant, ending with an action."""
        return [
            message
            for turn in self.turns
            for message in (
                {"role": "user", "content": turn.observation},
                {"role": "assistant", "content": turn.action},
            )
        ]


SEEDS = 2
"""Version of `episode_seed`: results of two versions are not of the same episodes."""


def episode_seed(seed: int, task_id: str, repeat: int) -> int:
    """Seed of an episode, 0 to 2**32 - 1: of its environment's reset and of its agent.

    Agents that draw at random thus draw otherwise in each task and in each repetition.

    Args:
        seed: seed of the evaluation.
        task_id: id of the task.
        repeat: number of the repetition, from 0.

    >>> episode_seed(0, "Lights/v1/s4/test/0", 0)
    972928942
    """
    return int.from_bytes(seed_bytes("episode", seed, task_id, repeat)[:4])


def play(
    env: gymnasium.Env[str, str], agent: Agent, *, options: dict[str, Any] | None = None, seed: int = 0
) -> Episode:
    """Play one episode.

    Args:
        env: any environment over text, wrapped or not; what the wrappers show is what the agent reads.
        agent: player, made for this environment.
        options: options of `reset`, to choose the task.
        seed: seed of the reset and of the agent.

    Returns:
        the episode. A world that cannot even be reset is one without turns that says why it broke; what the agent
        could not answer (`AgentError`) breaks the episode too, and is no action.

    Raises:
        InvalidOptionError: the agent answers with something else than a text.
        AgentFailedError: the agent's own code raises.
    """
    started = time.perf_counter()
    try:
        observation, info = env.reset(seed=seed, options=options)
    except WorldBrokenError as error:
        seconds = time.perf_counter() - started
        return Episode({}, (), "", {"broken": _reason(error)}, False, True, "", seconds)
    _asked(agent, agent.reset, seed)
    beginning, turns = dict(info), []
    terminated = truncated = False
    stopped, room, room_for_texts = "", MOST_REMARKS, MOST_SAID - _size(observation)
    while not (terminated or truncated):
        try:
            action = _asked(agent, agent.act, observation, dict(info))  # What is recorded is the world's own.
        except AgentError as error:
            info, truncated = {**info, "broken": _reason(error), "success": False}, True
            break
        if action is None:
            reason = _told(agent, "stop_reason")
            stopped = str.__str__(reason)[:_LONGEST_STOP] if reason and isinstance(reason, str) else "gave up"
            break
        if not isinstance(action, str):
            raise InvalidOptionError(
                f"the agent {getattr(agent, 'name', '')!r} answers {action!r:.100}: an action is a text, or None"
            )
        action = str.__str__(action)  # Of a text with further properties, such as an `Enum`.
        room_for_texts -= len(action) if len(action) > room_for_texts else _size(action)
        if room_for_texts < 0:
            stopped = "size"
            break
        read, sampled = observation, _sampled(agent)
        remarks, room = kept_remarks(_told(agent, "remarks"), room)
        observation, reward, terminated, truncated, info = env.step(action)
        valid = bool(info.get("valid_action", True))
        room_for_texts -= _size(observation)
        turns.append(Turn(read, action, float(reward), valid, sampled, remarks))
    seconds = time.perf_counter() - started
    return Episode(
        beginning,
        tuple(turns),
        observation,
        info,
        bool(terminated),
        bool(truncated),
        stopped,
        seconds,
        **{name: _told(agent, name) for name in COUNTED},
    )


def _size(text: Any) -> int:
    """Bytes of a text as JSON; about as many as it has, of a list of messages or whatever else a wrapper gives."""
    return len(json.dumps(text)) if isinstance(text, str) else len(repr(text))


def _told(agent: Agent, name: str) -> Any:
    """An attribute of an agent; `None` if it has none.

    Raises:
        AgentFailedError: the agent's own code raises.
    """
    return _asked(agent, partial(getattr, agent, name, None), where=name)


def _sampled(agent: Agent) -> dict[str, Any] | None:
    """The tokens of the last action, of an agent whose details name the policy that sampled them.

    Raises:
        InvalidOptionError: they are something else than numbers of tokens and as many log-probabilities.
    """
    details, sampled = _told(agent, "details"), _told(agent, "sampled")
    if not (isinstance(sampled, dict) and isinstance(details, dict) and "policy" in details):
        return None
    ids, log_probs = sampled.get("ids"), sampled.get("log_probs")
    if not _are_tokens(ids, log_probs):
        raise InvalidOptionError(
            f"the agent {getattr(agent, 'name', '')!r:.100} tells {sampled!r:.100} as what it sampled: that is `ids` "
            "and as many `log_probs`"
        )
    return {"ids": ids, "log_probs": log_probs}


def _are_tokens(ids: object, log_probs: object) -> bool:
    """Whether values are numbers of tokens and as many log-probabilities."""
    return (
        isinstance(ids, list)
        and isinstance(log_probs, list)
        and len(ids) == len(log_probs)
        and all(type(token) is int and 0 <= token < _MOST_TOKENS for token in ids)
        and all(type(value) is float and math.isfinite(value) for value in log_probs)
    )


def _asked(agent: Agent, method: Callable[..., Any], *arguments: Any, where: str = "") -> Any:
    """What a method of an agent returns; `where` is its name, if it has none of its own.

    Raises:
        TextAgentError, gymnasium.error.Error: the agent raises it on purpose.
        AgentFailedError: the agent's own code raises something else.
    """
    try:
        return method(*arguments)
    except (TextAgentError, gymnasium.error.Error, KeyboardInterrupt):
        raise
    except BaseException as error:  # A task that was cancelled, or `sys.exit`.
        place = traceback.extract_tb(error.__traceback__)[-1]
        name = getattr(agent, "name", type(agent).__name__)
        method_name = where or getattr(method, "__name__", "a method")
        raise AgentFailedError(
            f"the agent {name!r:.100} fails in {method_name}: {in_words(error):.{_LONGEST_REASON}} "
            f"({place.filename}, line {place.lineno})"
        ) from error


def in_words(error: BaseException) -> str:
    """The class of an error and what it says, if it can say it."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 (of somebody else's class)
        return type(error).__name__


def _reason(error: Exception) -> str:
    return (str(error) or type(error).__name__)[:_LONGEST_REASON]


def play_until_whole(
    env: gymnasium.Env[str, str], agent: Agent, *, options: dict[str, Any] | None = None, seed: int = 0
) -> Episode:
    """Play an episode, and again (`MOST_REPEATS` times at most) as long as its world breaks; see `play`."""
    episode = play(env, agent, options=options, seed=seed)
    for _ in range(MOST_REPEATS):
        if not episode.broken:
            break
        episode = play(env, agent, options=options, seed=seed)
    return episode


def base_of(env: gymnasium.Env[Any, Any]) -> TextEnv[Any]:
    """The `TextEnv` under the wrappers.

    Raises:
        InvalidOptionError: the base of the environment is another class.
    """
    base = env.unwrapped
    if not isinstance(base, TextEnv):
        name = env.spec.id if env.spec is not None else str(base)
        raise InvalidOptionError(f"{name} is not a text environment: it is not built on textagent_gym.TextEnv")
    return base


def count_tasks(env: gymnasium.Env[Any, Any], asked: int, first: int = 0) -> int:
    """Number of tasks to play: those asked for, or fewer where the split or `num_tasks` has fewer.

    Args:
        env: environment that is played.
        asked: number of tasks asked for.
        first: position of the first of them in the split.

    Raises:
        InvalidOptionError: none were asked for, or the split is empty.
    """
    if asked < 1:
        raise InvalidOptionError(f"tasks must be at least 1, got {asked}")
    base = base_of(env)
    sizes = (base.tasks.size(base.split), base.num_tasks)
    count = min([asked, *(max(0, size - first) for size in sizes if size is not None)])
    if count < 1:
        sizes_of_splits = {split: base.tasks.size(split) for split in base.tasks.splits}
        others = [split for split, size in sizes_of_splits.items() if size is None or size > 0]
        choice = f"choose of: {', '.join(others)}" if others else "neither do the others"
        raise InvalidOptionError(f"split {base.split!r} holds no tasks here; {choice}")
    return count
