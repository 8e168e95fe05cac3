"""Games compiled by TextWorld itself, to compare with."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("textworld", reason='needs: pip install "textagent-gym[textworld]"')

from textagent_gym.domains.textworld import generator
from textagent_gym.domains.textworld.specs import Spec


@pytest.fixture(scope="session")
def upstream_game(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Spec, int], tuple[Any, str]]:
    """Makes a game as `tw-make` does and compiles it with its description: the game and the story's path."""
    import textworld

    made: dict[tuple[str, int], tuple[Any, str]] = {}

    def make(spec: Spec, seed: int) -> tuple[Any, str]:
        key = (spec.slug, seed)
        if key not in made:
            with warnings.catch_warnings(), generator.quick_upstream():
                warnings.simplefilter("ignore")
                game = generator._guide_game(spec, seed)
                options = textworld.GameOptions()
                options.path = str(tmp_path_factory.mktemp("games") / f"{spec.kind}-{seed}.z8")
                made[key] = game, textworld.generator.compile_game(game, options)
        return made[key]

    return make


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).parents[3]
