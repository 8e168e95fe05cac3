"""Environments that a file made by somebody else asks for.

Nothing in such a file chooses what is imported, read or run on this machine: its id must be registered here, with the
same class; its wrappers must be the suite's; its commands run in the sandbox that this machine chooses, never in none;
and none of its arguments names a file, a folder or a module.
"""

from __future__ import annotations

import copy
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec, WrapperSpec, registry

from textagent_gym import wrappers
from textagent_gym.errors import InvalidOptionError
from textagent_gym.registration import register_all, world_of
from textagent_gym.sandbox import keeps_nothing_in

_MODULE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")  # "package.module:attribute", which something might import.
_PATH = re.compile(r"[/\\~]|\.\.?[/\\]|[A-Za-z]:[/\\]")  # How a path begins, unless it is a plain name.
_LONGEST_NAME = 255  # Bytes of a name in the file systems of Linux: what is longer names no file.
_WORDS = ("split", "reward_density", "reward_at", "observation_format", "tools")  # Arguments whose words are no files.
_LONGEST_TEXT = 10_000  # Characters of an argument: a wrapper may show it in every observation.
_AS_REGISTERED = ("nondeterministic", "reward_threshold", "order_enforce", "disable_env_checker", "vector_entry_point")
_ADVICE = "Give your own with --set {name}=..., or say --trust if you made the file yourself."


def spec_from_file(
    data: dict[str, Any], *, trust: bool = False, kwargs: dict[str, Any] | None = None
) -> tuple[EnvSpec, list[str]]:
    """The spec of a file, as far as it is safe to make it.

    Args:
        data: the spec as JSON values.
        trust: whether the file is the caller's own; it is then taken as it is.
        kwargs: the caller's own keyword arguments, which win over the file's and are not checked.

    Returns:
        the spec, and sentences that say what is done otherwise than the file asks.

    Raises:
        InvalidOptionError: the file asks for something that only its maker's own machine should do, or is no spec.
    """
    register_all()
    chosen = kwargs or {}
    try:
        asked = EnvSpec.from_json(json.dumps(data))
    except (ValueError, TypeError, KeyError, gymnasium.error.Error) as error:
        raise InvalidOptionError(f"the file holds no spec of an environment: {error}") from error
    plain = isinstance(asked.kwargs, dict) and isinstance(asked.max_episode_steps, int | None)
    if not plain or not all(isinstance(wrapper.kwargs, dict) for wrapper in asked.additional_wrappers):
        raise InvalidOptionError(f"the spec of {asked.id} in the file holds values of other types than a spec does")
    if trust:
        asked.kwargs = {**asked.kwargs, **chosen}
        return asked, []
    if asked.id not in registry:
        raise InvalidOptionError(
            f"environment {asked.id!r} is not registered here: install its package. A file of your own may import it: "
            "--trust, or trust=True"
        )
    registered = registry[asked.id]
    if asked.entry_point != registered.entry_point:
        raise InvalidOptionError(
            f"the file makes {asked.id} by {asked.entry_point!r}, which is not what is registered here "
            f"({registered.entry_point!r})"
        )
    spec = copy.deepcopy(registered)
    safe, notes = _safe_kwargs(asked, registered, set(chosen))
    spec.kwargs = {**spec.kwargs, **safe, **chosen}
    names = [wrapper.entry_point for wrapper in asked.additional_wrappers]
    if len(set(names)) < len(names):  # Each may show what the one within shows several times.
        raise InvalidOptionError("the file wraps the environment in the same wrapper twice")
    for name in _AS_REGISTERED:
        value, here = getattr(asked, name), getattr(registered, name)
        if value != here:
            raise InvalidOptionError(
                f"the file says {name}={value!r:.100} of {asked.id}, which is registered with {here!r} here"
            )
    spec.additional_wrappers = tuple(_safe_wrapper(wrapper) for wrapper in asked.additional_wrappers)
    spec.max_episode_steps = asked.max_episode_steps
    return spec, notes


def _safe_kwargs(asked: EnvSpec, registered: EnvSpec, chosen: set[str]) -> tuple[dict[str, Any], list[str]]:
    """The keyword arguments of a file that may be used, and sentences about the others."""
    world = world_of(asked.id)
    local = world.local_options if world is not None else ()
    safe, notes = {}, []
    for name, value in asked.kwargs.items():
        if name in chosen or registered.kwargs.get(name) == value:
            continue
        if name == "sandbox":
            if keeps_nothing_in(str(value)):
                raise InvalidOptionError(
                    f"the file asks for sandbox={value!r}, which keeps nothing in. Its commands run in a sandbox that "
                    f"does, or not at all. {_ADVICE.format(name='sandbox')}"
                )
            if value != "auto":
                notes.append(f"Commands run in sandbox='auto' of this machine, not in sandbox={value!r} of the file.")
            continue
        if name in local:
            raise InvalidOptionError(
                f"the file sets {name}={value!r}, which decides what is read or run on this machine. "
                + _ADVICE.format(name=name)
            )
        _check_value(name, value, known=name in _WORDS)
        safe[name] = value
    return safe, notes


def _check_value(name: str, value: Any, *, known: bool) -> None:
    """Refuse a value that names a file, a folder or a module, or is very long.

    Args:
        name: name of the argument.
        value: its value.
        known: whether the argument is one of this suite's that reads nothing; then a word names no file, although a
            file may have the same name.

    Raises:
        InvalidOptionError: the value is such a one.
    """
    for text in _texts(value):
        if len(text) > _LONGEST_TEXT:
            raise InvalidOptionError(
                f"the file sets {name} to a text of {len(text)} characters, at most {_LONGEST_TEXT} are read. "
                + _ADVICE.format(name=name)
            )
        is_word = known and re.fullmatch(r"\w+", text) is not None
        if _MODULE.fullmatch(text) or _PATH.match(text) or (not is_word and _is_here(text)):
            raise InvalidOptionError(
                f"the file sets {name}={value!r}, which names a file, a folder or a module. {_ADVICE.format(name=name)}"
            )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _is_here(text: str) -> bool:
    """Whether a text is the path of something on this machine."""
    if not text.strip(". ") or len(text.encode(errors="replace")) > _LONGEST_NAME or "\0" in text:
        return text in (".", "..")
    return Path(text).exists()


def _safe_wrapper(wrapper: WrapperSpec) -> WrapperSpec:
    """A wrapper of a file.

    Raises:
        InvalidOptionError: it is not one of the suite's, or an argument names a file or a module.
    """
    kinds = [getattr(wrappers, name) for name in wrappers.__all__]
    known = {
        f"{kind.__module__}:{kind.__name__}"
        for kind in kinds
        if inspect.isclass(kind) and issubclass(kind, gymnasium.Wrapper)
    }
    if wrapper.entry_point not in known:
        raise InvalidOptionError(
            f"the file wraps the environment in {wrapper.entry_point!r}, which is not a wrapper of textagent_gym. "
            "Say --trust if you made the file yourself."
        )
    for name, value in (wrapper.kwargs or {}).items():
        if name == "tokenizer" and value is not None:
            raise InvalidOptionError(
                f"the file counts with tokenizer={value!r}, which would be loaded or fetched here. "
                "Say --trust if you made the file yourself."
            )
        _check_value(name, value, known=True)
    return wrapper
