"""What a certificate is about: a world, what it declares, and the settings that are compared."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import gymnasium

from textagent_gym.core import TextEnv
from textagent_gym.errors import InvalidOptionError, TextAgentError
from textagent_gym.knobs import Knob, options_of
from textagent_gym.registration import full_id
from textagent_gym.spaces import check_text_spaces

_LONGEST = 100  # Actions of an episode in an environment without a turn budget of its own.


class BrokenPromiseError(TextAgentError, AssertionError):
    """A world does not do what every world does; the message says what, and what came instead."""


class NotApplicableError(TextAgentError):
    """A promise does not concern a world; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A world that is checked.

    Attributes:
        id: registered id.
        kwargs: keyword arguments of the environment.
        tasks: number of tasks that each check plays, at most as many as the split has.
        strings: number of random strings that the world must survive.
        seed: seed of everything that is drawn.
        harder: values of keyword arguments, each from easy to hard.
        supports: what the world declares; see `TextEnv.supports`.
        numbered: whether the world is a `TextEnv`, whose tasks have numbers.
        deterministic: whether equal actions have equal results.
    """

    id: str
    kwargs: dict[str, Any]
    tasks: int
    strings: int
    seed: int
    harder: Mapping[str, tuple[Any, ...]]
    supports: frozenset[str]
    numbered: bool
    deterministic: bool

    @classmethod
    def of(
        cls,
        name: str,
        kwargs: dict[str, Any],
        *,
        tasks: int,
        strings: int,
        seed: int,
        harder: Mapping[str, tuple[Any, ...]] | None,
    ) -> Subject:
        """The subject of an id; see `certificate.certify` for the arguments and the errors."""
        id = full_id(name)
        for knob, values in (harder or {}).items():
            _check_harder(id, kwargs, knob, values)
        with closing(_made(id, kwargs)) as env:
            check_text_spaces(env)
            base = env.unwrapped
            supports: frozenset[str] = frozenset()
            sizes: list[int | None] = []
            deterministic = not gymnasium.spec(id).nondeterministic
            if isinstance(base, TextEnv):
                supports, sizes = base.supports, [base.tasks.size(base.split), base.num_tasks]
                deterministic = deterministic and base.deterministic
        count = min(size for size in (tasks, *sizes) if size is not None)
        return cls(
            id=id,
            kwargs=kwargs,
            tasks=count,
            strings=strings,
            seed=seed,
            harder=axes_of(id, kwargs) if harder is None else harder,
            supports=supports,
            numbered=isinstance(base, TextEnv),
            deterministic=deterministic,
        )

    def make(self, **kwargs: Any) -> gymnasium.Env[str, str]:
        """An environment of the world, with further keyword arguments."""
        spec = gymnasium.spec(self.id)
        limit = None if self.numbered else spec.max_episode_steps or _LONGEST
        return gymnasium.make(self.id, max_episode_steps=limit, **{**self.kwargs, **kwargs})

    def make_base(self, **kwargs: Any) -> TextEnv[Any]:
        """The `TextEnv` of the world."""
        self.need_numbered()
        base = self.make(**kwargs).unwrapped
        assert isinstance(base, TextEnv)
        return base

    def options(self, index: int) -> dict[str, Any] | None:
        """Options of the reset that play a task."""
        return {"task_index": index} if self.numbered else None

    def need(self, *capabilities: str) -> None:
        """Raise `NotApplicableError` unless the world declares capabilities."""
        self.need_numbered()
        for capability in capabilities:
            if capability not in self.supports:
                raise NotApplicableError(f"the world declares no {capability.replace('_', ' ')}")

    def need_numbered(self) -> None:
        """Raise `NotApplicableError` unless the world is a `TextEnv`."""
        if not self.numbered:
            raise NotApplicableError("the world is not built on textagent_gym.TextEnv")

    def need_deterministic(self) -> None:
        """Raise `NotApplicableError` if the world declares that equal actions may have other results."""
        if not self.deterministic:
            raise NotApplicableError("the world declares that equal actions may have other results")


Promise = Callable[[Subject], str]


def _made(id: str, kwargs: Mapping[str, Any]) -> gymnasium.Env[str, str]:
    """The environment of an id.

    Raises:
        BrokenPromiseError: its own code raises.
    """
    try:
        return gymnasium.make(id, **kwargs)
    except (TextAgentError, gymnasium.error.Error):
        raise
    except (Exception, SystemExit) as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        raise BrokenPromiseError(
            f"{id} cannot be made: {type(error).__name__}: {error} ({place.filename}, line {place.lineno})"
        ) from error


def _check_harder(id: str, kwargs: Mapping[str, Any], knob: str, values: tuple[Any, ...]) -> None:
    """Raise `InvalidOptionError` for settings that are no way from easy to hard."""
    if len(values) < 2:
        raise InvalidOptionError(f"harder needs at least two values of {knob}, from easy to hard, got {values}")
    _made(id, kwargs).close()
    for value in values:
        try:
            _made(id, {**kwargs, knob: value}).close()
        except (TextAgentError, gymnasium.error.Error) as error:
            raise InvalidOptionError(f"harder cannot be {knob}={value!r}: {error}") from error


def knobs_of(id: str, kwargs: Mapping[str, Any]) -> list[Knob]:
    return [knob for options in options_of(id, kwargs) for knob in options.knobs()]


def axes_of(id: str, kwargs: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Values of the knobs that are an axis: that of the world as it is asked for, and half as much again."""
    asked = {**gymnasium.spec(id).kwargs, **kwargs}
    axes: dict[str, tuple[Any, ...]] = {}
    for knob in knobs_of(id, kwargs):
        value = asked.get(knob.name, knob.default)
        if knob.axis is None or isinstance(value, bool) or not isinstance(value, int):
            continue
        more = value + (value + 1) // 2
        axes[knob.name] = (value, more if knob.high is None else min(more, int(knob.high)))
    return {name: values for name, values in axes.items() if values[0] < values[1]}
