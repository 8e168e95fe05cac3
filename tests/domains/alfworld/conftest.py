"""The official games, where they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from textagent_gym.domains.alfworld.data import OfficialGames, find_games

SHARED = Path(os.environ.get("TEXTAGENT_SHARED_DATA") or Path(__file__).parents[4] / "shared" / "data")


@pytest.fixture(scope="session")
def folder() -> str:
    """Folder of the official games."""
    path = SHARED / "alfworld"
    if not (path / "games.jsonl.xz").is_file():
        pytest.skip(f"the official ALFWorld games are not in {path}; TEXTAGENT_SHARED_DATA names their folder")
    return str(path)


@pytest.fixture(scope="session")
def games(folder: str) -> OfficialGames:
    """The official games."""
    return find_games(folder)
