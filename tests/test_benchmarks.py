"""The benchmarks that need no data run to their tables, with less to do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from accelerate.state import AcceleratorState

from baselines import grpo, sft
from benchmarks import (
    babyai_env,
    gpu,
    learning,
    memory,
    rollout,
    scienceworld_env,
    textworld_env,
    tiny_policies,
    trainers,
)
from tests.domains.scienceworld.conftest import simulator  # noqa: F401

pytestmark = pytest.mark.slow


def test_rollouts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name, value in (("SLOTS", 4), ("TASKS", 2), ("EPISODES", 8), ("PAIRS", 1), ("PAUSE", 0.01)):
        monkeypatch.setattr(rollout, name, value)
    rollout.main()
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("re-read", "continued", "in-process", "one slow"))


def test_textworld(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name, value in (("SIZES", textworld_env.SIZES[:1]), ("STEPS", 8), ("RESETS", 2)):
        monkeypatch.setattr(textworld_env, name, value)
    textworld_env.main()
    assert "ratio" in capsys.readouterr().out


def test_babyai(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(babyai_env, "BABYAI_LEVELS", ("KeyInBox", "GoToObjS6"))
    babyai_env.main(babyai_env.Config(table="expert", tasks=1))
    assert capsys.readouterr().out.splitlines()[-2:] == ["KeyInBox: 0 of 1", "all levels: 1 of 2"]
    monkeypatch.setattr(babyai_env, "OBJECTS", (2, 6))
    babyai_env.main(babyai_env.Config(table="lengths", tasks=2))
    shown = capsys.readouterr().out.splitlines()
    assert ["mean of 2 tasks" in line for line in shown] == [True] * 4


def test_scienceworld(simulator: None, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: F811
    env = scienceworld_env.ScienceWorldEnv(max_turns=10**6)
    shares = scienceworld_env.shares(env, rounds=10, warm_up=1)
    env.close()
    scienceworld_env.print_shares(shares)
    shown = capsys.readouterr().out
    assert all(part in shown for part in ("Java", "sockets", "Python", "reset", "memory of Java"))
    assert 0 < shares.empty < shares.step
    assert 0 < shares.python < shares.step
    assert shares.java + shares.sockets + shares.python == pytest.approx(shares.step)
    assert 50 < shares.megabytes < 1000


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


def test_a_tiny_policy_learns_from_its_recipes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings_of = tiny_policies.settings_of

    def less(world: str, config: tiny_policies.Config) -> tuple[sft.Config, grpo.Config]:
        taught, trained = settings_of(world, config)
        small: dict[str, Any] = {"iterations": 1, "groups": 2, "group_size": 2, "eval_every": 1, "eval_tasks": 2}
        return replace(taught, max_demos=3, epochs=1), replace(trained, **small)

    monkeypatch.setattr(tiny_policies, "settings_of", less)
    config = tiny_policies.Config(worlds=("babyai",), out=tmp_path, plot=tmp_path / "curves.svg")
    (tmp_path / "babyai").mkdir()
    (tmp_path / "babyai" / "demos.jsonl").write_text('{"half a li', encoding="utf-8")  # Of a run that was killed.
    tiny_policies.main(config)
    demos = sft.read_demos(tmp_path / "babyai" / "demos.jsonl")
    assert len(demos) == 3
    assert "babyai" in (tmp_path / "curves.svg").read_text(encoding="utf-8")
    result = tiny_policies.learn("babyai", config)
    assert (result["before"]["iteration"], result["after"]["iteration"]) == (0, 1)
    assert set(result["seconds"]) == {"grpo"}  # What is done is not done again.


def test_the_costs_of_iterations_are_drawn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    costs = trainers.Iteration(rollout=3.0, environment=1.0, update=2.0, turns=8, tokens=8, updated=8)
    monkeypatch.setattr(trainers, "make_policy", lambda *_: None)
    monkeypatch.setattr(trainers, "run_ours", lambda *_: [costs])
    trainers.main(trainers.Config(plot=tmp_path / "costs.svg"))
    drawn = (tmp_path / "costs.svg").read_text(encoding="utf-8")
    assert all(f"<!-- {text} -->" in drawn for text in ("0.2M", "3.5M", "50M", "generation", "environment", "update"))
    assert drawn.count("<!-- 5 s -->") == 9  # An iteration of each of three cases, in three panels.


def test_trainers_do_equal_work(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "200")  # Else names are cut.
    trainers.main(trainers.Config(rounds=1, iterations=2, groups=2, turns=3, action_tokens=6, hidden=32))
    shown = [line for line in capsys.readouterr().out.splitlines() if "textagent-" in line or "TRL, " in line]
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in shown]
    assert [row[1] for row in rows] == ["48", "48"]  # Turns.
    assert [row[3] for row in rows] == ["16", "16"]  # Updated episodes.


def test_a_device_is_measured(tmp_path: Path) -> None:
    less = {"turns": 2, "words": 20, "groups": 2, "group_size": 2, "action_tokens": 6, "iterations": 2, "lora_rank": 4}
    config = gpu.Config(shape="tiny", precision="float32", **less)
    gpu.make_policy(tmp_path / "policy", "tiny")
    ours = gpu.run_ours(replace(config, row="transformers"), tmp_path / "policy", tmp_path / "ours")
    theirs = gpu.run_trl(config, tmp_path / "policy", tmp_path / "trl")
    assert ours.sampled == theirs.sampled == 2 * 2 * 2 * 6  # Random weights end no action early.
    assert ours.longest > 2 * (20 + 6)
    shown = gpu.table(config, {"transformers": ours, "trl": theirs, "vllm": "out of memory"})
    assert f"| transformers | {ours.longest} |" in shown
    assert "| vllm | failed: out of memory |" in shown


def test_the_memory_of_an_update_is_near_the_plan(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    AcceleratorState._reset_state(reset_partial_state=True)  # Another test's precision would be in the way.
    memory.main(memory.Config(tokens=2_048, hidden=512))
    AcceleratorState._reset_state(reset_partial_state=True)
    rows = [line.split("|")[1:-1] for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[0].strip() for row in rows] == list(memory.CASES)
    assert all(0.6 < float(row[3]) < 1.5 for row in rows)
