"""The benchmarks that need no data run to their tables, with less to do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from accelerate.state import AcceleratorState
from trl import GRPOConfig

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
    shown = gpu.line_of("transformers", ours)
    assert shown.startswith(f"| textagent-gym, transformers | {ours.longest} |")
    assert gpu.line_of("vllm", "out of memory").startswith("| textagent-gym, vLLM | failed: out of memory |")


def test_a_device_is_measured_row_by_row_in_processes_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--shape=tiny", "--precision=float32", f"--out={tmp_path / 'table.md'}", "--iterations=1", "--groups=1"]
    config = gpu.read_settings([*words, "--group-size=2", "--turns=1", "--words=10", "--action-tokens=4"])
    gpu.main(config)
    shown = capsys.readouterr().out
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in shown.splitlines()[4:]]
    assert [row[0] for row in cells] == [gpu.ROWS[row] for row in gpu.rows_of()]
    assert cells[0][0] == "textagent-gym, transformers"
    assert all(float(row[4]) > 0 for row in cells)
    assert (tmp_path / "table.md").read_text() == shown


def test_a_row_that_hangs_loses_none_of_those_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def measured(config: gpu.Config) -> str:
        if config.row != "transformers":
            raise KeyboardInterrupt
        return "no time"

    monkeypatch.setattr(gpu, "rows_of", lambda: ["transformers", "vllm"])
    monkeypatch.setattr(gpu, "measure", measured)
    with pytest.raises(KeyboardInterrupt):
        gpu.main(gpu.Config(shape="tiny", out=tmp_path / "of" / "today.md"))
    for table in (capsys.readouterr().out, (tmp_path / "of" / "today.md").read_text()):
        assert "| textagent-gym, transformers | failed: no time |" in table


def test_a_large_model_is_refused_at_once_where_there_is_no_gpu(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu.torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(gpu, "rows_of", list)
    for arguments in ([], ["--shape", "1.5B"], ["--long"], ["--row", "trl"]):
        with pytest.raises(SystemExit, match=r"no CUDA device here.*Pass --shape tiny --precision float32"):
            gpu.main(gpu.read_settings(arguments))
    assert not capsys.readouterr().out
    gpu.main(gpu.read_settings(["--cpu"]))
    assert "0.5B" in capsys.readouterr().out


def test_the_plan_beside_vllm_holds_the_share_that_vllm_takes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config = gpu.Config(shape="tiny", lora_rank=4, vllm_memory=0.25, row="vllm")
    gpu.make_policy(tmp_path, "tiny")
    alone = gpu.planned_bytes(replace(config, row="transformers"), tmp_path, 200)
    monkeypatch.setattr(gpu.torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(gpu.torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=8 * 2**30))
    quarter, half = (gpu.planned_bytes(replace(config, vllm_memory=share), tmp_path, 200) for share in (0.25, 0.5))
    assert half - quarter == 2 * 2**30
    assert 2 * 2**30 < quarter < 2 * 2**30 + alone + 2**20


def test_trl_generates_with_vllm_in_its_process(tmp_path: Path) -> None:
    settings = gpu.trl_settings(gpu.Config(row="trl-vllm", precision="float32", vllm_memory=0.2), tmp_path)
    arguments = GRPOConfig(**settings)  # Its names are those of this TRL.
    assert (arguments.use_vllm, arguments.vllm_mode, arguments.vllm_gpu_memory_utilization) == (True, "colocate", 0.2)
    assert arguments.gradient_accumulation_steps * arguments.per_device_train_batch_size == 64
    assert not gpu.trl_settings(gpu.Config(row="trl"), tmp_path)["use_vllm"]


def test_a_long_conversation_has_16k_tokens_of_a_large_model_and_what_is_given_stays() -> None:
    long = gpu.read_settings(["--long"])
    assert long.shape == "1.5B"
    assert 16_384 <= long.turns * (long.words + long.action_tokens + 4) < 17_000  # Four open and close a turn.
    assert long.episodes == 16
    mine = gpu.read_settings(["--long", "--microbatch", "4096", "--turns", "3"])
    assert (mine.microbatch, mine.turns, mine.words) == (4_096, 3, long.words)
    assert gpu.read_settings([]) == gpu.Config()


def test_the_memory_of_an_update_is_near_the_plan(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    AcceleratorState._reset_state(reset_partial_state=True)  # Another test's precision would be in the way.
    memory.main(memory.Config(tokens=2_048, hidden=512))
    AcceleratorState._reset_state(reset_partial_state=True)
    rows = [line.split("|")[1:-1] for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[0].strip() for row in rows] == list(memory.CASES)
    assert all(0.6 < float(row[3]) < 1.5 for row in rows)
