"""From a drawn game to the story file that an interpreter plays."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from textagent_gym.domains.textworld.generation.upstream import textworld_generator
from textagent_gym.domains.textworld.story import without_date
from textagent_gym.errors import GenerationError


def compile_story(game: Any) -> bytes:
    """The bytes of a game's `.z8` file, the same on every machine and every day. Takes most of a second.

    Args:
        game: a game of TextWorld, as `draw` returns it.

    Raises:
        GenerationError: Inform 7 did not compile the game.
        MissingDependencyError: TextWorld is not installed.
    """
    with textworld_generator(), tempfile.TemporaryDirectory(prefix="textworld-") as folder:
        from textworld.generator.inform7 import CouldNotCompileGameError, compile_inform7_game, generate_inform7_source

        path = Path(folder, "game.z8")
        try:
            compile_inform7_game(generate_inform7_source(game), str(path))
        except CouldNotCompileGameError as error:
            raise GenerationError(f"Inform 7 could not compile the game: {error}") from error
        return without_date(path.read_bytes())
