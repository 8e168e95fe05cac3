"""The benchmark of a large site runs, with less to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import leaderboard_site
from tests.evaluation.results import SUITE
from tests.leaderboard.test_browser import CHROMIUM, pytestmark  # noqa: F401 (it marks the test here)


def test_the_benchmark_of_a_large_site_runs(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = {"results": 6, "episodes": 10, "repeats": 1, "chromium": CHROMIUM}
    leaderboard_site.main(leaderboard_site.Settings(entries=results / SUITE.name, **asked))
    shown = capsys.readouterr().out
    assert "6 results and 10 episodes" in shown
    assert "Sorting the table" in shown
