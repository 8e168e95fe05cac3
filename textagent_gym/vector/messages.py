"""What a vector environment asks of its environments, and what they answer. Plain data, small to pickle."""

from __future__ import annotations

import pickle
import traceback
from dataclasses import dataclass, field
from typing import Any

import gymnasium

from textagent_gym.errors import WorkerError


@dataclass(frozen=True, slots=True)
class Reset:
    """Begin an episode; see `TextEnv.reset`."""

    seed: int | None = None
    options: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """Act."""

    action: Any


@dataclass(frozen=True, slots=True)
class Call:
    """Call a method of the environment or of one of its wrappers, or read an attribute."""

    name: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SetAttribute:
    """Set an attribute where the environment or one of its wrappers has it."""

    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to `Reset` (reward 0.0, not ended) and to `Step`: what Gymnasium's five values are."""

    observation: Any
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]

    @property
    def ended(self) -> bool:
        """Whether the episode is over."""
        return self.terminated or self.truncated


@dataclass(frozen=True, slots=True)
class Value:
    """The answer to `Call` and to `SetAttribute`."""

    value: Any


@dataclass(frozen=True, slots=True)
class Failure:
    """The environment raised: the exception, if it can travel between processes, and its traceback as text."""

    error: Exception | None
    trace: str

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """What is left of an exception when it travels."""
        trace = "".join(traceback.format_exception(error))
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # noqa: BLE001 (exceptions of any library, with any arguments)
            return cls(None, trace)
        return cls(error, trace)

    def throw(self, slot: int) -> None:
        """Raise the exception where the caller is, with the traceback from where it happened as its cause."""
        cause = WorkerError(f"environment {slot} raised in its worker:\n{self.trace}", slot)
        if self.error is None:
            raise cause
        raise self.error from cause


Request = Reset | Step | Call | SetAttribute
Reply = Answer | Value | Failure


def perform(env: gymnasium.Env[Any, Any], request: Request) -> Reply:
    """Do what is asked. The environment's exceptions come out as they are."""
    match request:
        case Step(action):
            observation, reward, terminated, truncated, info = env.step(action)
            return Answer(observation, float(reward), bool(terminated), bool(truncated), info)
        case Reset(seed, options):
            observation, info = env.reset(seed=seed, options=options)
            return Answer(observation, 0.0, False, False, info)
        case Call(name, args, kwargs):
            attribute = env.get_wrapper_attr(name)
            return Value(attribute(*args, **kwargs) if callable(attribute) else attribute)
        case SetAttribute(name, value):
            return Value(env.set_wrapper_attr(name, value))
