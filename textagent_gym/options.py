"""Options that every world takes: those of `gymnasium.make`, those of `reset`, and how their values are checked."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Literal, TypedDict

from textagent_gym.errors import InvalidOptionError

EPISODE_OPTIONS = ("task", "task_index", "max_turns", "reward_density")
"""What `reset(options={...})` may hold."""
_EPISODE_OPTIONS = frozenset(EPISODE_OPTIONS)

ObservationFormat = Literal["plain", "upstream"]


class TextEnvKwargs(TypedDict, total=False):
    """Keyword arguments that every environment of the suite takes; `TextEnv` says what they mean."""

    split: str
    num_tasks: int | None
    max_turns: int | str | None
    reward_density: float | str
    shaping: Literal["potential"] | None
    shaping_discount: float
    invalid_action_penalty: float
    turn_penalty: float
    infos: Sequence[str]
    instructions: Literal["observation"] | None
    observation_format: ObservationFormat
    render_mode: str | None


def parse_max_turns(value: int | str) -> int | float:
    """A turn budget as a number, or as a multiple of the solution length (a float)."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    if isinstance(value, str) and value.endswith("x"):
        try:
            multiple = float(value[:-1])
        except ValueError:
            multiple = 0.0
        if 1.0 <= multiple < float("inf"):
            return multiple
    raise InvalidOptionError(f'max_turns must be a whole number from 1 or a multiple such as "2x", got {value!r}')


def check_count(name: str, value: int | None) -> int | None:
    """A number of things, at least 1, or `None`."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise InvalidOptionError(f"{name} must be a whole number of at least 1, or None, got {value!r}")
    return value


def check_number(name: str, value: float, low: float, high: float | None) -> float:
    """A finite number within bounds, both allowed; `high=None` for no upper bound."""
    correct = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not correct or value < low or (high is not None and value > high):
        bounds = f"from {low}" + (f" to {high}" if high is not None else " up")
        raise InvalidOptionError(f"{name} must be a number {bounds}, got {value!r}")
    return float(value)


def check_episode_options(options: dict[str, Any] | None) -> dict[str, Any]:
    """A copy of what `reset` was given, with the names and the kinds of the values checked.

    Raises:
        InvalidOptionError: an unknown option, or a value that it cannot have.
    """
    checked = dict(options or {})
    if not _EPISODE_OPTIONS.issuperset(checked) or ("task" in checked and "task_index" in checked):
        raise InvalidOptionError(
            f"options may hold {', '.join(EPISODE_OPTIONS)}, and not both task and task_index; got {options!r}"
        )
    if not isinstance(checked.get("task", ""), str):
        raise InvalidOptionError(f"options['task'] must be the id of a task, got {checked['task']!r}")
    if "task_index" in checked:
        checked["task_index"] = _index(checked["task_index"])
    return checked


def _index(value: object) -> int:
    """A position in a split, from any kind of whole number."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidOptionError(f"options['task_index'] must be a whole number, got {value!r}") from None
