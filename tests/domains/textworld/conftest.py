"""Games compiled by TextWorld itself, to compare with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("textworld", reason='needs: pip install "textagent-gym[textworld]"')

from textagent_gym.domains.textworld.generation import draw_as_made, textworld_generator
from textagent_gym.domains.textworld.specs import Spec


@pytest.fixture(scope="session")
def upstream_game(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Spec, int], tuple[Any, str]]:
    """Makes a game as `tw-make` does and compiles it with its description: the game and the story's path."""
    stories: dict[tuple[str, int], tuple[Any, str]] = {}

    def make(spec: Spec, seed: int) -> tuple[Any, str]:
        key = (spec.slug, seed)
        if key not in stories:
            with textworld_generator() as textworld:
                game = draw_as_made(spec, seed)
                options = textworld.GameOptions()
                options.path = str(tmp_path_factory.mktemp("games") / f"{spec.kind}-{seed}.z8")
                stories[key] = game, textworld.generator.compile_game(game, options)
        return stories[key]

    return make


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for games."""
    monkeypatch.setenv("TEXTAGENT_CACHE", str(tmp_path))
    return tmp_path
