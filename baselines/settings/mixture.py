"""Mixtures of environments: how they are spelled, and how the groups of an iteration are dealt out to them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textagent_gym.errors import InvalidOptionError
from textagent_gym.knobs import read_settings, split_settings
from textagent_gym.registration import full_id

Entry = dict[str, Any]
"""One environment of a mixture as it is spelled in a recipe: `env`, and where wanted `set` and `weight`."""

_EXAMPLE = "textagent/ALFWorld-v0"


@dataclass(frozen=True, slots=True)
class Component:
    """One environment of a mixture.

    Attributes:
        env: id of the environment.
        kwargs: keyword arguments of the environment.
        weight: share of the groups, relative to the other weights; above 0.
    """

    env: str
    kwargs: dict[str, Any] = field(default_factory=dict)
    weight: float = 1.0


def parse_mixture(words: Sequence[str]) -> list[Entry]:
    """The entries that the words of a command line name: an id, a weight after `=`, then settings of that environment.

    Ids are spelled as for `whole_id`. A word such as `rooms=4` is a setting, unless an environment has that name.

    Raises:
        InvalidOptionError: a setting stands before the first id or cannot be read, or there is no such id.

    >>> parse_mixture(["ALFWorld=0.5", "receptacles=5", "textagent/TextWorldSimple-v0"])
    ... # doctest: +NORMALIZE_WHITESPACE
    [{'env': 'textagent/ALFWorld-v0', 'set': {'receptacles': 5}, 'weight': 0.5},
     {'env': 'textagent/TextWorldSimple-v0', 'set': {}, 'weight': 1.0}]
    """
    parts: list[tuple[str, list[str]]] = []
    for word in words:
        if _is_setting(word):
            if not parts:
                raise InvalidOptionError(
                    f"mixture begins with the id of an environment, such as {_EXAMPLE}, got {word!r}"
                )
            parts[-1][1].append(word)
        else:
            parts.append((word, []))
    entries = []
    for word, settings in parts:
        env, _, weight = word.partition("=")
        kwargs = read_settings(full_id(env), split_settings(settings))
        entries.append({"env": whole_id(env), "set": kwargs, "weight": _number(weight or "1", word)})
    return entries


def whole_id(env: str) -> str:
    """The id that is meant, as `full_id` reads it, behind the module that registers it where one is named.

    Raises:
        InvalidOptionError: no environment has it.

    >>> whole_id("lights/Lights"), whole_id("textagent_gym:ALFWorld")
    ('lights/Lights-v0', 'textagent_gym:textagent/ALFWorld-v0')
    """
    module, colon, _ = env.rpartition(":")
    return f"{module}{colon}{full_id(env)}"


def spell_mixture(entries: Sequence[Entry]) -> list[str]:
    """The words of a command line that name the entries."""
    return [
        word
        for entry in entries
        for word in (
            f"{entry['env']}={entry.get('weight', 1.0)}",
            *(f"{name}={value}" for name, value in entry.get("set", {}).items()),
        )
    ]


def components_of(entries: Sequence[Entry]) -> tuple[Component, ...]:
    """The environments that the entries name.

    Raises:
        InvalidOptionError: an entry has an unknown key or a value that it cannot have.
    """
    components = []
    for entry in entries:
        if not isinstance(entry, Mapping) or "env" not in entry or not set(entry) <= {"env", "set", "weight"}:
            raise InvalidOptionError(f"mixture has entries of env, set and weight, got {entry!r}")
        env, kwargs, weight = entry["env"], entry.get("set", {}), entry.get("weight", 1.0)
        if not isinstance(env, str) or not isinstance(kwargs, Mapping):
            raise InvalidOptionError(f"mixture: env is the id of an environment and set its settings, got {entry!r}")
        if not isinstance(weight, int | float) or not (weight > 0 and math.isfinite(weight)):
            raise InvalidOptionError(f"mixture: the weight of {env} must be a number above 0, got {weight!r}")
        components.append(Component(env, dict(kwargs), float(weight)))
    return tuple(components)


def deal(weights: Sequence[float], count: int, seed: int) -> NDArray[np.int64]:
    """Deal `count` groups out to the components, in random order (systematic sampling, Madow and Madow, 1944).

    With one uniform number u for all groups, group g = 0, 1, ... goes to the component in whose part of the unit
    interval the point (g + u) / count lies. So component i gets floor or ceil of count * w_i / sum w groups, and that
    number without rounding on average.

    Args:
        weights: weight of each component, at least 0; one of them is above 0.
        count: number of groups.
        seed: seed of u and of the order.

    Returns:
        number of the component for each group, shape (count,).
    """
    rng = np.random.default_rng(seed)
    played = np.flatnonzero(weights)
    ends = np.cumsum(np.asarray(weights, dtype=np.float64)[played])
    points = (np.arange(count) + rng.random()) * (ends[-1] / count)
    dealt = played[np.searchsorted(ends[:-1], points, side="right")]
    return rng.permutation(dealt)


def _is_setting(word: str) -> bool:
    """Whether a word is `name=value`, and not an id with its weight."""
    name, equals, _ = word.partition("=")
    if not equals or not name.isidentifier():
        return False
    try:
        full_id(name)
    except InvalidOptionError:
        return True
    return False


def _number(text: str, word: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidOptionError(f"mixture: a weight is a number, got {word!r}") from None
