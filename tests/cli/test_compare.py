"""What `compare` prints."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.cli.program import call
from textagent_gym.cli.compare import Compare
from textagent_gym.evaluation import Evaluation, evaluate, load, save

LIGHTS = "lights/Lights-v0"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a result of each agent."""
    folder = tmp_path_factory.mktemp("played")
    for agent in ("oracle", "random"):
        evaluate(LIGHTS, agent, tasks=40, path=folder / agent)
    return folder


def as_agent(evaluation: Evaluation, path: Path, **details: Any) -> str:
    """Path of a result as if another agent had played it."""
    save(replace(evaluation, agent="mine", details=details), path)
    return str(path)


@pytest.mark.parametrize(("first", "second"), [("oracle", "random"), ("random", "oracle")])
def test_nothing_is_cut_at_80_columns_and_every_number_is_named(
    played: Path, first: str, second: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    Compare(first=played / first, second=played / second).run()
    lines = capsys.readouterr().out.splitlines()
    head = next(number for number, line in enumerate(lines) if line.split()[:1] == ["part"])
    assert lines[head - 1].split() == ["first", "second", "difference", "p"]
    assert lines[head].split() == ["part", "tasks", *3 * ["[95%]"], "better", "worse", "(exact)"]
    row = next(line for line in lines if line.split()[:1] == ["all"])
    assert (row.split()[1], row.split()[-2:]) == ("40", ["<", "0.0001"])
    assert not any("\u2026" in line for line in lines)


def test_a_chance_that_is_not_small_is_shown_as_it_is(played: Path) -> None:
    with patch("textagent_gym.evaluation.comparison.sign_test", lambda *_: 0.00012):
        row = next(
            line
            for line in call("compare", str(played / "oracle"), str(played / "random")).stdout.splitlines()
            if line.split()[:1] == ["all"]
        )
    assert row.split()[-1] == "0.0001"


def test_agents_of_one_name_are_told_apart_by_their_settings(played: Path, tmp_path: Path) -> None:
    oracle, random = load(played / "oracle"), load(played / "random")
    plain = as_agent(random, tmp_path / "plain", model="m", hints=False, base_url="http://one/v1")
    hinted = as_agent(oracle, tmp_path / "hinted", model="m", hints=True, prompt="\x1b[2J" * 100, base_url="http://b")
    told = " ".join(call("compare", plain, hinted).stdout.split())
    assert "mine (second) against mine (first) in lights/Lights-v0, split train; they differ in hints" in told
    assert "hints (True against False), prompt (\u241b[2J" in told
    assert "against not told)" in told
    assert "base_url" not in told
    assert "they differ" not in call("compare", plain, plain).stdout
    assert "they differ" not in call("compare", plain, str(played / "oracle")).stdout
