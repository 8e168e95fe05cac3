"""Both trainers, on a world of another package, unchanged."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from baselines import grpo, sft
from baselines.advantages import GroupTooSmallError
from baselines.models import load_policy

ROOT = Path(__file__).parents[2]
KWARGS = {"switches": 2, "max_turns": 3, "reward_density": "dense", "num_tasks": 8}


def config(tiny: Path, out: Path, **changes: object) -> grpo.Config:
    basis = grpo.Config(
        model=str(tiny),
        out=out,
        env="lights/Lights-v0",
        env_kwargs=KWARGS,
        iterations=4,
        groups=2,
        group_size=4,
        slots=8,
        max_action_tokens=6,
        checkpoint_every=1,
    )
    return replace(basis, **changes)


def curve(out: Path) -> list[dict[str, float]]:
    lines = (out / "metrics.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if not k.endswith("seconds")} for line in lines]


def test_the_loss_of_sft_is_on_the_agents_tokens_only(tiny: Path, demos: Path, tmp_path: Path) -> None:
    trainer = sft.make_trainer(sft.Config(model=str(tiny), demos=demos, out=tmp_path))
    _, tokenizer = load_policy(str(tiny))
    demo = json.loads(demos.read_text().splitlines()[0])
    batch = trainer.data_collator([trainer.train_dataset[0]])
    trained = batch["input_ids"][batch["labels"] != -100]
    actions = [m["content"] for m in demo["messages"] if m["role"] == "assistant"]
    assert tokenizer.decode(trained) == "".join(action + "<|end|>" for action in actions)


def test_learning_every_token_is_a_choice(tiny: Path, demos: Path, tmp_path: Path) -> None:
    trainer = sft.make_trainer(sft.Config(model=str(tiny), demos=demos, out=tmp_path, agent_only=False))
    row = trainer.train_dataset[0]
    batch = trainer.data_collator([row])
    assert batch["labels"][0].tolist() == row["input_ids"]


def test_freed_memory_is_kept_for_the_next_update() -> None:
    script = (
        "import resource, torch; from baselines.allocator import keep_freed_memory\n"
        "def faults():\n"
        "    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "    for _ in range(5): torch.ones(4_000_000)\n"
        "    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before\n"
        "before = faults(); assert keep_freed_memory(); faults(); print(before, faults())"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    before, after = map(int, out.split())
    assert after < before / 10


def test_sft_learns_and_rl_improves_a_world_it_has_never_heard_of(tiny: Path, demos: Path, tmp_path: Path) -> None:
    losses: list[float] = []
    settings = sft.Config(
        model=str(tiny), demos=demos, out=tmp_path / "sft", epochs=20, batch_size=8, learning_rate=5e-3
    )
    sft.train(settings, log=lambda logs: losses.append(logs["loss"]) if "loss" in logs else None)
    assert losses[-1] < 0.5 * losses[0]
    policy = grpo.run(
        config(tmp_path / "sft", tmp_path / "rl", iterations=12, groups=8, learning_rate=2e-3, minibatches=2)
    )
    returns = [metrics["return"] for metrics in curve(tmp_path / "rl")]
    assert len(returns) == 12
    assert sum(returns[-4:]) > sum(returns[:4])
    load_policy(str(policy))


@pytest.mark.parametrize("advantage", ["grpo", "dr_grpo", "rloo", "grpo_process"])
def test_every_advantage_trains(tiny: Path, tmp_path: Path, advantage: str) -> None:
    grpo.run(config(tiny, tmp_path, advantage=advantage, iterations=1, kl=0.1))
    assert curve(tmp_path)[0]["episodes"] == 8


def test_a_group_of_one_is_an_error(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(GroupTooSmallError, match="2 or more"):
        grpo.run(config(tiny, tmp_path, group_size=1))


def test_microbatches_change_memory_and_nothing_else(tiny: Path, tmp_path: Path) -> None:
    for name, size in (("one", 8), ("many", 3)):
        grpo.run(config(tiny, tmp_path / name, iterations=1, microbatch=size, learning_rate=1e-3))
    one, many = (load_policy(str(tmp_path / name / "policy"))[0].state_dict() for name in ("one", "many"))
    # Adam divides by the gradient's size, so rounding shows a little where a gradient is nearly zero.
    assert all(torch.allclose(one[key], many[key], atol=2e-3) for key in one)


def test_other_settings_do_not_continue_a_run(tiny: Path, tmp_path: Path) -> None:
    grpo.run(config(tiny, tmp_path, iterations=1))
    with pytest.raises(ValueError, match="other settings"):
        grpo.run(config(tiny, tmp_path, iterations=1, seed=5))


@pytest.mark.slow
def test_a_run_killed_at_any_instant_goes_on_along_the_same_curve(tiny: Path, tmp_path: Path) -> None:
    grpo.run(config(tiny, tmp_path / "whole", iterations=6))
    script = (
        "import sys, torch; torch.set_num_threads(1); sys.path.insert(0, sys.argv[3]);"
        "import lights, gymnasium; 'lights/Lights-v0' in gymnasium.registry or lights.register();"
        "from pathlib import Path; from tests.baselines.test_training import config; from baselines import grpo;"
        "grpo.run(config(Path(sys.argv[1]), Path(sys.argv[2]), iterations=6))"
    )
    out = tmp_path / "killed"
    command = [sys.executable, "-c", script, str(tiny), str(out), str(ROOT / "tests" / "third_party" / "lights")]
    kills = 0
    for wait in (0.05, 0.15, 0.3):
        process = subprocess.Popen(command, cwd=ROOT)
        while not (out / "metrics.jsonl").exists() or len((out / "metrics.jsonl").read_text().splitlines()) <= kills:
            if process.poll() is not None:
                break
            time.sleep(0.01)
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
    assert kills == 3
    subprocess.run(command, cwd=ROOT, check=True, timeout=120)
    assert curve(out) == curve(tmp_path / "whole")


def test_a_file_that_holds_no_demonstrations_is_named(tmp_path: Path) -> None:
    path = tmp_path / "demos.jsonl"
    path.write_text('{"messages": [{"role": "user", "content": "?"}]}\n')
    with pytest.raises(sft.DemonstrationError, match="line 1"):
        sft.read_demos(path)
    path.write_text("")
    with pytest.raises(sft.DemonstrationError, match="no demonstrations"):
        sft.read_demos(path)
