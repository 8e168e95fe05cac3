"""Recipes: settings of a run in a YAML file, for `--config`. A run's `config.json` is a recipe too."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import yaml

from textagent_gym.errors import TextAgentError
from textagent_gym.knobs import did_you_mean

RECIPES = Path(__file__).parents[1] / "recipes"
"""Folder of the recipes that come with the trainers; `--config` takes paths below it too."""


class RecipeError(TextAgentError, ValueError):
    """A recipe cannot be used; the message names the file and, where one is wrong, the field."""


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """YAML whose numbers are those of YAML 1.2: PyYAML reads 1e-6 as a text."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+\Z"), list("-+.0123456789")
)


def read_recipe(path: str | Path, config: type[Any]) -> dict[str, Any]:
    """The settings of a recipe, of the types that a configuration declares.

    Args:
        path: file in YAML, or in JSON if its name ends in .json; a relative path may also begin in `RECIPES`.
        config: dataclass of the configuration.

    Raises:
        RecipeError: the file does not exist or is not a mapping, a name is not a field of the configuration, or a value
            has another type.
    """
    from pydantic import TypeAdapter, ValidationError

    kinds = get_type_hints(config)
    names = [field.name for field in fields(config)]
    settings = {}
    for name, value in _read_mapping(Path(path)).items():
        if name not in names:
            raise RecipeError(f"{path}: there is no setting {name!r}.{did_you_mean(name, names)}")
        try:
            # JSON, whose strict rules take a text for a path and a list for a tuple.
            settings[name] = TypeAdapter(kinds[name]).validate_json(json.dumps(value, default=str), strict=True)
        except ValidationError as error:
            raise RecipeError(f"{path}: {name} cannot be {value!r}: {error.errors()[0]['msg']}") from error
    return settings


def _read_mapping(path: Path) -> Mapping[str, Any]:
    shipped = RECIPES / path
    if not path.is_file() and not shipped.is_file():
        raise RecipeError(f"the recipe {path} does not exist, neither here nor in {RECIPES}")
    text = (path if path.is_file() else shipped).read_text(encoding="utf-8")
    try:
        # The loader is a `SafeLoader`.
        mapping = json.loads(text) if path.suffix == ".json" else yaml.load(text, Loader=_Loader)
    except (ValueError, yaml.YAMLError) as error:
        raise RecipeError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(mapping, Mapping):
        raise RecipeError(f"{path} must be a mapping of settings, such as 'groups: 8', got {type(mapping).__name__}")
    return mapping
