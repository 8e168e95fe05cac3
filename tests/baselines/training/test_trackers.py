"""Metrics in other places than the run's folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from baselines import grpo
from baselines.training import trackers
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


def test_a_tracker_that_is_not_installed_is_named(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trackers, "find_spec", lambda name: None)
    with pytest.raises(InvalidOptionError, match="pip install wandb"):
        run(tiny, tmp_path / "run", 1, trackers=("wandb",))
    assert not (tmp_path / "run").exists()
