"""A site of small results, built once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluation.results import SUITE
from tests.leaderboard.results import play_all
from textagent_gym.evaluation import SUITES
from textagent_gym.leaderboard import build


@pytest.fixture(autouse=True)
def _suite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SUITES, SUITE.name, SUITE)


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of results."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SUITES, SUITE.name, SUITE)
        return play_all(tmp_path_factory.mktemp("leaderboard") / "results")


@pytest.fixture(scope="session")
def site(results: Path) -> Path:
    """A site that shows them."""
    out = results.parent / "site"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SUITES, SUITE.name, SUITE)
        build(results, out)
    return out
