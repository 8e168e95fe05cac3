"""The entries that the repository carries."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.reference_entries import ENTRIES, SUITES, players
from textagent_gym.evaluation import load_result, suite_of
from textagent_gym.leaderboard import check_entry, find_results


def test_every_agent_that_can_play_has_an_entry() -> None:
    expected = {ENTRIES / name / agent for name in SUITES for agent in players(suite_of(name))}
    assert expected <= set(find_results(ENTRIES))


@pytest.mark.parametrize("folder", find_results(ENTRIES), ids=lambda path: path.relative_to(ENTRIES).as_posix())
def test_an_entry_lies_where_it_belongs(folder: Path) -> None:
    result = load_result(folder)
    assert folder.parent.name == result.suite.name
    assert folder.name.startswith(result.agent)


@pytest.mark.slow
@pytest.mark.parametrize("folder", find_results(ENTRIES), ids=lambda path: path.relative_to(ENTRIES).as_posix())
def test_an_entry_is_right(folder: Path) -> None:
    assert check_entry(folder).trust == ("replayed",)


@pytest.mark.parametrize("folder", find_results(ENTRIES), ids=lambda path: path.relative_to(ENTRIES).as_posix())
def test_the_oracle_is_the_ceiling_and_random_play_the_floor(folder: Path) -> None:
    result = load_result(folder)
    share = sum(episode.success for episode in result.episodes) / len(result.episodes)
    if result.agent == "oracle":
        assert share == 1.0
    if result.agent == "random":
        assert share == 0.0
