"""Metrics in other places than the run's folder."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from accelerate.tracking import TensorBoardTracker

from baselines import grpo
from baselines.training import trackers, trainer
from baselines.training.player import Player
from tests.baselines.runs import lines, start
from textagent_gym.errors import InvalidOptionError

TRACKERS = Path(sys.prefix) / "trackers"  # `make slow` installs them there.
RUN = f"""
sys.path.append({str(TRACKERS)!r})
from baselines import grpo
from tests.baselines.training.test_trackers import run
run(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), trackers=(sys.argv[4],))
"""


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


def told_trackio(folder: Path) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Run, step and values of all that trackio was told."""
    (file,) = (folder / "trackio").glob("*.db")
    with sqlite3.connect(file) as base:
        for name, step, values in base.execute("select run_name, step, metrics from metrics order by id"):
            yield name, step, json.loads(values)


def told_wandb(folder: Path) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Run, step and values of all that W&B was told without a network, in its files: LevelDB's log of messages."""
    from wandb.proto.wandb_internal_pb2 import Record

    for file in sorted((folder / "run").glob("wandb/offline-run-*/run-*.wandb")):
        data, place, message, name = file.read_bytes(), 7, b"", ""
        while place < len(data):
            if place % 32_768 > 32_768 - 7:  # No head begins at the end of a block.
                place += -place % 32_768
            size, kind = int.from_bytes(data[place + 4 : place + 6], "little"), data[place + 6]
            message += data[place + 7 : place + 7 + size]
            place += 7 + size
            if kind not in (1, 4):  # It goes on in the next block.
                continue
            record, message = Record.FromString(message), b""
            name = record.run.run_id or name
            values = {"".join(item.nested_key) or item.key: json.loads(item.value_json) for item in record.history.item}
            if values:
                yield name, values["_step"], values


@pytest.mark.slow
@pytest.mark.parametrize("tracker", ["wandb", "trackio"])
def test_other_trackers_have_the_numbers_of_a_run_that_resumes_under_one_name(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tracker: str
) -> None:
    if not (TRACKERS.is_dir() or find_spec(tracker)):
        pytest.skip(f"needs trackers: make {TRACKERS}")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    monkeypatch.setattr(sys, "path", [*sys.path, str(TRACKERS)])
    out = tmp_path / "run"
    for iterations in (1, 3):
        process = start(RUN, tiny, out, iterations, tracker)
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
    told = list({"wandb": told_wandb, "trackio": told_trackio}[tracker](tmp_path))
    assert len({name for name, _, _ in told}) == 1
    for file, prefix in (("metrics.jsonl", ""), ("evaluations.jsonl", "evaluation/")):
        for name in ("return", "turns"):
            expected = [(line["iteration"], line[name]) for line in lines(out / file)]
            seen = [(step, values[prefix + name]) for _, step, values in told if prefix + name in values]
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
