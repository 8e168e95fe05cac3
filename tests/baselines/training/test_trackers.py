"""Metrics in other places than the run's folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from accelerate.tracking import TensorBoardTracker

from baselines import grpo
from baselines.training import trackers, trainer
from baselines.training.player import Player
from tests.baselines.runs import lines
from textagent_gym.errors import InvalidOptionError


def run(model: Path, out: Path, iterations: int, **more: Any) -> None:
    settings: dict[str, Any] = {
        "env": "lights/Lights-v0",
        "set": {"switches": 2, "reward_density": "dense"},
        "groups": 2,
        "group_size": 4,
        "max_action_tokens": 6,
        "checkpoint_every": 1,
        "eval_every": 1,
        "eval_tasks": 4,
    }
    grpo.run(grpo.Config(model=str(model), out=out, iterations=iterations, **settings, **more))


def test_tensorboard_has_the_numbers_of_the_run_also_when_it_resumes(tiny: Path, tmp_path: Path) -> None:
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    out = tmp_path / "run"
    run(tiny, out, 1, trackers=("tensorboard",))
    run(tiny, out, 3, trackers=("tensorboard",))
    logged = events.EventAccumulator(str(out / "textagent-gym")).Reload()
    for file, prefix in (("metrics.jsonl", ""), ("evaluations.jsonl", "evaluation/")):
        for name in ("return", "turns"):
            expected = [
                (line["iteration"], line[name]) for line in map(json.loads, (out / file).read_text().splitlines())
            ]
            seen = [(event.step, event.value) for event in logged.Scalars(prefix + name)]
            assert seen == [(step, pytest.approx(value, rel=1e-6)) for step, value in expected]


@pytest.mark.parametrize("stage", ["update", "finish"])
def test_a_tracker_is_closed_when_the_run_ends_also_by_an_error(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    pytest.importorskip("tensorboard")
    finished: list[bool] = []
    finish = TensorBoardTracker.finish

    def note(self: TensorBoardTracker) -> None:
        finish(self)
        finished.append(True)

    def fail(*_: Any, **__: Any) -> None:
        raise LookupError("a hole")

    monkeypatch.setattr(TensorBoardTracker, "finish", note)
    if stage == "update":
        monkeypatch.setattr(trainer, "update", fail)
        with pytest.raises(LookupError):
            run(tiny, tmp_path, 1, trackers=("tensorboard",))
        assert (tmp_path / "evaluations.jsonl").read_text()  # It had been told something.
    else:
        run(tiny, tmp_path, 1, trackers=("tensorboard",))
    assert finished == [True]


def test_what_a_tracker_raises_at_its_end_hides_neither_the_environments_nor_the_log(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboard")
    closed: list[bool] = []
    close = Player.close

    def fail(_: TensorBoardTracker) -> None:
        raise ConnectionError("no route to host")

    def note(self: Player) -> None:
        close(self)
        closed.append(True)

    monkeypatch.setattr(TensorBoardTracker, "finish", fail)
    monkeypatch.setattr(Player, "close", note)
    with pytest.raises(ConnectionError):
        run(tiny, tmp_path, 1, trackers=("tensorboard",))
    assert closed == [True]
    assert [line["event"] for line in lines(tmp_path / "log.jsonl")] == ["start", "stop"]


def test_a_tracker_that_is_not_installed_is_named(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trackers, "find_spec", lambda name: None)
    with pytest.raises(InvalidOptionError, match="pip install wandb"):
        run(tiny, tmp_path / "run", 1, trackers=("wandb",))
    assert not (tmp_path / "run").exists()
