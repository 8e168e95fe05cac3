"""Both trainers, on a world of another package, unchanged."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import gymnasium
import pytest
import torch

from baselines import grpo, ppo, sft
from baselines.credit.advantages import GroupTooSmallError
from baselines.evaluation.evaluate import evaluate_policy
from baselines.policy.chat import chat_of
from baselines.policy.models import load_policy
from baselines.settings.run_folder import RunFolderError
from tests.baselines.runs import ROOT, curve, kill_and_resume, small_run
from textagent_gym.errors import InvalidOptionError


class NumbersEnv(gymnasium.Env[str, int]):
    """Observations that are text, actions that are not."""

    observation_space = gymnasium.spaces.Text(100)
    action_space = gymnasium.spaces.Discrete(3)


def config(tiny: Path, out: Path, **changes: object) -> grpo.Config:
    settings: grpo.Config = small_run(grpo.Config, tiny, out, **{"iterations": 4, "checkpoint_every": 1, **changes})
    return settings


def test_the_loss_of_sft_is_on_the_agents_tokens_only(tiny: Path, demos: Path, tmp_path: Path) -> None:
    trainer = sft.make_trainer(sft.Config(model=str(tiny), demos=demos, out=tmp_path))
    _, tokenizer = load_policy(str(tiny))
    recorded = [json.loads(line) for line in demos.read_text().splitlines()]
    longest = max(range(len(recorded)), key=lambda index: len(recorded[index]["messages"]))
    demo = recorded[longest]
    batch = trainer.data_collator([trainer.train_dataset[longest]])
    trained = batch["input_ids"][batch["labels"] != -100]
    actions = [m["content"] for m in demo["messages"] if m["role"] == "assistant"]
    assert len(actions) > 1  # Every turn is trained on, not the last one alone.
    assert tokenizer.decode(trained) == "".join(action + "<|end|>" for action in actions)


def test_learning_every_token_is_a_choice(tiny: Path, demos: Path, tmp_path: Path) -> None:
    trainer = sft.make_trainer(sft.Config(model=str(tiny), demos=demos, out=tmp_path, every_token=True))
    row = trainer.train_dataset[0]
    batch = trainer.data_collator([row])
    assert batch["labels"][0].tolist() == row["input_ids"]


@pytest.mark.parametrize("kept", [False, True])
def test_freed_memory_is_kept_for_the_next_update(kept: bool) -> None:
    """Tensors of 36 MB, more than glibc ever keeps by itself; the heap may need some rounds to settle."""
    script = (
        "import resource, torch; from baselines.training.allocator import keep_freed_memory\n"
        "def faults():\n"
        "    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "    for _ in range(5): torch.ones(9_000_000)\n"
        "    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before\n"
        f"before = faults(); assert not {kept} or keep_freed_memory(); print(before, min(faults() for _ in range(4)))"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    before, after = map(int, out.split())
    assert (after < before / 10) == kept


def test_sft_learns_and_rl_improves_a_world_it_has_never_heard_of(tiny: Path, demos: Path, tmp_path: Path) -> None:
    losses: list[float] = []
    settings = sft.Config(
        model=str(tiny), demos=demos, out=tmp_path / "sft", epochs=8, batch_size=8, learning_rate=5e-3
    )
    sft.run(settings, log=lambda logs: losses.append(logs["loss"]) if "loss" in logs else None)
    assert losses[-1] < 0.5 * losses[0]
    policy = grpo.run(
        config(tmp_path / "sft", tmp_path / "rl", iterations=12, groups=8, learning_rate=2e-3, minibatches=2)
    )
    returns = [metrics["return"] for metrics in curve(tmp_path / "rl")]
    assert len(returns) == 12
    assert sum(returns[-4:]) > sum(returns[:4])
    load_policy(str(policy))


@pytest.mark.parametrize("setting", [{}, {"scale": False}, {"credit": "turn"}, {"credit": "process"}])
def test_every_advantage_trains(tiny: Path, tmp_path: Path, setting: dict[str, str | bool]) -> None:
    grpo.run(config(tiny, tmp_path, iterations=1, kl=0.1, **setting))
    assert curve(tmp_path)[0]["episodes"] == 8


def test_a_group_of_one_is_an_error(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(GroupTooSmallError, match="at least 2"):
        grpo.run(config(tiny, tmp_path, group_size=1))


def test_a_finished_run_does_nothing_and_resumes_when_asked_for_more(tiny: Path, tmp_path: Path) -> None:
    grpo.run(config(tiny, tmp_path / "whole", iterations=3))
    out = tmp_path / "parts"
    policy = grpo.run(config(tiny, out, iterations=2))
    before = (policy / "model.safetensors").stat().st_mtime_ns
    seen: list[dict[str, float]] = []
    grpo.run(config(tiny, out, iterations=2), log=seen.append)
    assert seen == []
    assert len(curve(out)) == 2
    assert (policy / "model.safetensors").stat().st_mtime_ns == before
    grpo.run(config(tiny, out, iterations=3), log=seen.append)
    assert len(seen) == 1
    assert curve(out) == curve(tmp_path / "whole")
    again, whole = (load_policy(str(folder / "policy"))[0].state_dict() for folder in (out, tmp_path / "whole"))
    assert all(torch.equal(again[key], whole[key]) for key in whole)


def test_settings_that_change_no_curve_may_change_and_so_may_the_name_of_the_folder(tiny: Path, tmp_path: Path) -> None:
    grpo.run(config(tiny, tmp_path / "before", iterations=1))
    out = (tmp_path / "before").rename(tmp_path / "after")
    grpo.run(config(tiny, out, iterations=2, microbatch=100, slots=3, checkpoint_every=5))
    assert [metrics["iteration"] for metrics in curve(out)] == [1, 2]


@pytest.mark.parametrize(
    ("env", "space"),
    [
        ("FrozenLake-v1", r"observation space is Discrete\(16\)"),
        ("numbers/Numbers-v0", r"action space is Discrete\(3\)"),
    ],
)
def test_a_world_that_is_not_text_is_refused_before_anything_is_made(env: str, space: str, tmp_path: Path) -> None:
    if "numbers/Numbers-v0" not in gymnasium.registry:
        gymnasium.register("numbers/Numbers-v0", entry_point=NumbersEnv)
    nowhere = tmp_path / "no-such-model"
    with pytest.raises(InvalidOptionError, match=f"{env} is not a text environment: its {space}"):
        grpo.run(config(nowhere, tmp_path / "run", env=env, set={}))
    assert not (tmp_path / "run").exists()
    with pytest.raises(InvalidOptionError, match=space):
        evaluate_policy(str(nowhere), env, {}, tasks=1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "/no-such-model"}, "/no-such-model of the model does not exist"),
        ({"max_action_tokens": 4096}, "max_action_tokens must be less than the policy's context of 4096 tokens"),
        ({"eval_max_action_tokens": 9000}, "of 4096 tokens, got 9000"),
        ({"generator": "vllm-server", "server_url": "http://127.0.0.1:9"}, "no vLLM server answers there"),
        ({"generator": "vllm-server", "server_url": "localhost:9"}, "server_url must begin with http:// or https://"),
    ],
)
def test_a_start_that_fails_leaves_no_folder_behind(
    tiny: Path, tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        grpo.run(config(tiny, tmp_path / "runs" / "first", **changes))
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_place_of_the_folder_is_told_before_a_model_is_loaded(demos: Path, tmp_path: Path) -> None:
    file = tmp_path / "run"
    file.write_text("mine")
    with pytest.raises(RunFolderError, match=f"{file} is a file"):
        grpo.run(config(tmp_path / "no-such-model", file))
    with pytest.raises(RunFolderError, match=f"{file} is a file"):
        sft.run(sft.Config(model=str(tmp_path / "no-such-model"), demos=demos, out=file))


DAMAGES: dict[str, Callable[[bytes], bytes] | None] = {
    "cut": lambda content: content[: len(content) // 2],
    "empty": lambda _: b"",
    "zeros": lambda content: bytes(len(content)),  # As some file systems leave it where the power fails.
    "missing": None,
}


def damage(file: Path, how: str) -> None:
    change = DAMAGES[how]
    if change is None:
        file.unlink()
    else:
        file.write_bytes(change(file.read_bytes()))


@pytest.mark.parametrize("name", ["state.pt", "model.safetensors", "critic/model.safetensors"])
def test_a_damaged_checkpoint_is_named(tiny: Path, tmp_path: Path, name: str) -> None:
    settings = {"env": "lights/Lights-v0", "groups": 2, "group_size": 4, "slots": 8, "max_action_tokens": 6}
    asked = ppo.Config(model=str(tiny), out=tmp_path, iterations=1, **settings)
    ppo.run(asked)
    file = tmp_path / "checkpoint" / name
    whole = file.read_bytes()
    for how in DAMAGES:
        file.write_bytes(whole)
        damage(file, how)
        with pytest.raises(RunFolderError, match=r"checkpoint is damaged .*\. Delete what is damaged; without a check"):
            ppo.run(replace(asked, iterations=2))
    file.write_bytes(whole)
    ppo.run(replace(asked, iterations=2))
    assert [metrics["iteration"] for metrics in curve(tmp_path)] == [1, 2]


@pytest.mark.parametrize("name", [None, "state.pt", "model.safetensors"])
def test_the_checkpoint_before_a_damaged_one_is_used(tiny: Path, tmp_path: Path, name: str | None) -> None:
    grpo.run(config(tiny, tmp_path, iterations=1))
    (tmp_path / "checkpoint").rename(tmp_path / "checkpoint.old")
    if name is not None:
        shutil.copytree(tmp_path / "checkpoint.old", tmp_path / "checkpoint")
        damage(tmp_path / "checkpoint" / name, "cut")
    grpo.run(config(tiny, tmp_path, iterations=2))
    assert [metrics["iteration"] for metrics in curve(tmp_path)] == [1, 2]


def test_a_checkpoint_takes_its_name_when_it_and_the_metrics_are_on_the_disk(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: set[Path] = set()
    renamed: list[str] = []
    rename, fsync = Path.rename, os.fsync

    def note_flush(descriptor: int) -> None:
        flushed.add(Path(os.readlink(f"/proc/self/fd/{descriptor}")))
        fsync(descriptor)

    def note_rename(self: Path, target: Path) -> Path:
        if self.name == "checkpoint.new":
            assert {self, *self.rglob("*"), tmp_path / "metrics.jsonl"} <= flushed
            renamed.append(target.name)
            flushed.clear()
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", note_flush)
    monkeypatch.setattr(Path, "rename", note_rename)
    grpo.run(config(tiny, tmp_path, iterations=2, checkpoint_every=1))
    assert renamed == ["checkpoint"] * 2
    assert tmp_path in flushed  # The new name too.


def test_damaged_settings_and_metrics_are_no_traceback(tiny: Path, tmp_path: Path) -> None:
    grpo.run(config(tiny, tmp_path, iterations=1))
    with open(tmp_path / "metrics.jsonl", "a") as file:
        file.write('[1]\n{"iteration": 2, "ret')
    grpo.run(config(tiny, tmp_path, iterations=2))
    assert [metrics["iteration"] for metrics in curve(tmp_path)] == [1, 2]
    (tmp_path / "config.json").write_text("")
    with pytest.raises(RunFolderError, match=r"config\.json is damaged"):
        grpo.run(config(tiny, tmp_path, iterations=2))


@pytest.mark.parametrize(
    "setting",
    [
        {"groups": 0},
        {"minibatches": 0},
        {"checkpoint_every": 0},
        {"max_action_tokens": 0},
        {"seed": -1},
        {"temperature": -1.0},
        {"answer_seconds": 0.0},
        {"temperature": float("nan")},
    ],
)
def test_settings_out_of_range_are_refused(tiny: Path, tmp_path: Path, setting: dict[str, float]) -> None:
    with pytest.raises(InvalidOptionError, match=next(iter(setting))):
        config(tiny, tmp_path, **setting)


@pytest.mark.parametrize(
    "module",
    [f"baselines.{name}" for name in ("ppo", "grpo", "gigpo", "vineppo", "rloo", "reinforce_pp", "sft", "dagger")],
)
def test_an_executable_tells_openmp_how_to_wait_before_torch_is_loaded(module: str) -> None:
    script = (
        f"import os, runpy, sys, {module}; assert 'OMP_WAIT_POLICY' not in os.environ; sys.argv = ['x', '--help']\n"
        f"try: runpy.run_module({module!r}, run_name='__main__', alter_sys=True)\n"
        "except SystemExit: pass\n"
        "assert 'torch' not in sys.modules; print(os.environ['OMP_WAIT_POLICY'])"
    )
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT, env=environment
    )
    assert done.stdout.splitlines()[-1] == "passive"


def test_sft_keeps_the_system_message_of_the_demonstrations(tiny: Path, demos: Path, tmp_path: Path) -> None:
    told = tmp_path / "told.jsonl"
    system = {"role": "system", "content": "Press switches."}
    lines = [{"messages": [system, *json.loads(line)["messages"][1:]]} for line in demos.read_text().splitlines()[:4]]
    told.write_text("".join(json.dumps(line) + "\n" for line in lines))
    sft.run(sft.Config(model=str(tiny), demos=told, out=tmp_path / "sft", epochs=1.0))
    chat = chat_of(str(tmp_path / "sft"), load_policy(str(tmp_path / "sft"))[1])
    assert (chat.system, chat.instructed) == ("Press switches.", False)  # It is played as it was trained.
    assert sft.common_system(lines) == "Press switches."
    assert sft.common_system([*lines, {"messages": lines[0]["messages"][1:]}]) == ""


def test_a_policy_of_sft_reads_what_it_will_read_when_it_is_played(tiny: Path, demos: Path, tmp_path: Path) -> None:
    trainer = sft.make_trainer(sft.Config(model=str(tiny), demos=demos, out=tmp_path))
    sft.run(sft.Config(model=str(tiny), demos=demos, out=tmp_path, epochs=1.0, max_demos=4))
    _, tokenizer = load_policy(str(tmp_path))
    chat = chat_of(str(tmp_path), tokenizer)
    assert (chat.system, chat.instructed) == ("", True)
    _, collection = evaluate_policy(str(tmp_path), "lights/Lights-v0", {"switches": 2, "split": "train"}, tasks=3)
    for row, trajectory in zip(trainer.train_dataset, collection.trajectories, strict=False):
        prompt = list(trajectory.turns[0].prompt)
        assert "blows the fuse" in tokenizer.decode(prompt)  # From the instructions.
        assert row["input_ids"][: len(prompt)] == prompt


def test_demonstrations_with_and_without_instructions_do_not_mix(demos: Path, tmp_path: Path) -> None:
    first, second = (json.loads(line) for line in demos.read_text().splitlines()[:2])
    mixed = tmp_path / "mixed.jsonl"
    mixed.write_text(json.dumps(first) + "\n" + json.dumps({**second, "instructed": False}) + "\n")
    with pytest.raises(sft.DemonstrationError, match=r"line 2: .* with instructions and some without"):
        sft.read_demos(mixed)


def test_a_file_that_cannot_be_used_is_one_line_on_the_command_line(tmp_path: Path) -> None:
    demos = tmp_path / "demos.jsonl"
    demos.write_text('{"messages": []}\n')
    arguments = ["--model", "none", "--demos", str(demos), "--out", str(tmp_path / "out")]
    done = subprocess.run(
        [sys.executable, "-m", "baselines.sft", *arguments], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 1
    assert done.stderr.strip().splitlines() == [f"{demos}, line 1: the agent says nothing"]


def test_other_settings_do_not_continue_a_run(tiny: Path, tmp_path: Path) -> None:
    grpo.run(config(tiny, tmp_path, iterations=1))
    with pytest.raises(ValueError, match="other settings"):
        grpo.run(config(tiny, tmp_path, iterations=1, seed=5))


@pytest.mark.slow
def test_a_run_killed_at_any_instant_goes_on_along_the_same_curve(tiny: Path, tmp_path: Path) -> None:
    grpo.run(config(tiny, tmp_path / "whole", iterations=6))
    code = """
from baselines import grpo
from tests.baselines.training.test_training import config
grpo.run(config(Path(sys.argv[1]), Path(sys.argv[2]), iterations=6))
"""
    kill_and_resume(code, tiny, tmp_path / "killed", [(1, 0.05), (2, 0.15), (3, 0.3)])
    assert curve(tmp_path / "killed") == curve(tmp_path / "whole")


def test_a_file_that_holds_no_demonstrations_is_named(tmp_path: Path) -> None:
    path = tmp_path / "demos.jsonl"
    path.write_text('{"messages": [{"role": "user", "content": "?"}]}\n')
    with pytest.raises(sft.DemonstrationError, match="line 1"):
        sft.read_demos(path)
    path.write_text("")
    with pytest.raises(sft.DemonstrationError, match="no demonstrations"):
        sft.read_demos(path)
