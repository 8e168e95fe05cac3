"""Environments from the command line: an id, and keyword arguments as `--set name=value`."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass, field
from typing import Annotated, Any

import tyro

from textagent_gym.errors import InvalidOptionError


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The environment that a command works on."""

    env: tyro.conf.Positional[str]
    """Id of the environment, such as textagent/TextWorld-w2-o3-q4-v0 (see `textagent-gym list`)."""
    set: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = field(default=())
    """Keyword argument of the environment, as name=value; may be given many times: --set rooms=4 --set goal=brief."""

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments."""
        return parse_settings(self.set)


def parse_settings(settings: tuple[str, ...]) -> dict[str, Any]:
    """`name=value` pairs as keyword arguments: a value is JSON where it can be read as such, and text otherwise.

    >>> parse_settings(("rooms=4", "reward_density=dense", "cut=true"))
    {'rooms': 4, 'reward_density': 'dense', 'cut': True}
    """
    kwargs: dict[str, Any] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name.isidentifier():
            raise InvalidOptionError(f"--set takes name=value, got {setting!r}")
        try:
            kwargs[name] = json.loads(value.lower() if value in ("True", "False", "None") else value)
        except ValueError:
            kwargs[name] = None if value == "None" else value
    return kwargs


def full_id(env: str) -> str:
    """The id that is meant: a version or the namespace may be left out.

    Raises:
        InvalidOptionError: no environment has it; the message names the closest.
    """
    import gymnasium

    import textagent_gym

    textagent_gym.register_all()
    ids = list(gymnasium.registry)
    for candidate in (env, f"textagent/{env}", f"{env}-v0", f"textagent/{env}-v0"):
        if candidate in ids:
            return candidate
    ours = [name for name in ids if "/" in name]
    close = difflib.get_close_matches(env, ours, n=3, cutoff=0.3)
    hint = f" Did you mean: {', '.join(close)}?" if close else ""
    raise InvalidOptionError(f"environment {env!r} does not exist.{hint} See: textagent-gym list")


def make(chosen: Chosen, **kwargs: Any) -> Any:
    """The environment that was chosen."""
    import gymnasium

    name = full_id(chosen.env)
    try:
        return gymnasium.make(name, **{**kwargs, **chosen.kwargs})
    except TypeError as error:
        raise InvalidOptionError(str(error)) from error
