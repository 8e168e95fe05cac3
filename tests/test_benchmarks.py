"""The benchmarks that need no data run to their tables, with less to do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from benchmarks import learning, rollout, textworld_env

pytestmark = pytest.mark.slow


def test_rollouts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name, value in (("SLOTS", 4), ("TASKS", 2)):
        monkeypatch.setattr(rollout, name, value)
    rollout.main()
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("re-read", "continued", "in-process"))


def test_textworld(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name, value in (("SIZES", textworld_env.SIZES[:1]), ("STEPS", 8), ("RESETS", 2)):
        monkeypatch.setattr(textworld_env, name, value)
    textworld_env.main()
    assert "ratio" in capsys.readouterr().out


def test_learning(monkeypatch: pytest.MonkeyPatch, tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    lights = learning.WORLDS["lights"]
    less = replace(lights, episodes=16, settings={**lights.settings, "iterations": 1})
    monkeypatch.setitem(learning.WORLDS, "lights", less)
    results = [
        learning.train(learning.Job("lights", method, 0, tmp_path, eval_tasks=2))
        for method in ("grpo", "vineppo", "sft")
    ]
    assert all(0 <= result["before"] <= 1 and 0 <= result["after"] <= 1 for result in results)
    assert results[1]["env_steps"] > 0
