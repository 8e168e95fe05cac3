"""Two processes learn what one would learn, whoever of them has something to learn from."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from baselines.policy.models import load_policy
from tests.baselines.runs import curve

SCRIPT = Path(__file__).with_name("two_processes.py")
DDP = Path(__file__).parents[3] / "baselines" / "accelerate" / "ddp.yaml"

DEEPSPEED = Path(sys.prefix) / "deepspeed"  # `make slow` installs it there; beside torch it would slow every import.
DIVIDED = ["fsdp_zero2", "fsdp_zero3", "deepspeed_zero1", "deepspeed_zero2", "deepspeed_zero3"]


def play(policy: Path, folder: Path, processes: int, *file: str) -> Path:
    launch = [sys.executable]
    if processes == 2:
        launch += ["-m", "accelerate.commands.launch", "--config_file", str(DDP), "--num_processes", "2"]
        launch += ["--main_process_ip", "127.0.0.1", "--main_process_port", "0"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if "deepspeed" in "".join(file):
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(DEEPSPEED), os.environ.get("PYTHONPATH"))))
    subprocess.run([*launch, str(SCRIPT), str(policy), str(folder), *file], check=True, env=environment, timeout=500)
    return folder


@pytest.fixture(scope="module")
def outcomes(talker: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    return {
        processes: play(talker, tmp_path_factory.mktemp(f"{processes}-processes"), processes) for processes in (1, 2)
    }


@pytest.fixture(scope="module", params=DIVIDED)
def divided(
    request: pytest.FixtureRequest, outcomes: dict[int, Path], talker: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """What two processes do that divide weights or moments."""
    if request.param.startswith("deepspeed") and not (DEEPSPEED.is_dir() or find_spec("deepspeed")):
        pytest.skip(f"needs DeepSpeed: make {DEEPSPEED}")
    folder = tmp_path_factory.mktemp(request.param)
    shutil.copytree(outcomes[1] / "begun", folder / "begun")
    for file in (folder / "begun").rglob("config.json"):  # A run knows its folder.
        file.write_text(file.read_text().replace(str(outcomes[1]), str(folder)))
    return play(talker, folder, 2, request.param)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["token", "sequence", "openings"])
def test_a_process_without_any_advantage_ends_with_the_weights_of_the_others(
    outcomes: dict[int, Path], talker: Path, case: str
) -> None:
    alone = torch.load(outcomes[1] / f"{case}-0.pt")
    both = [torch.load(outcomes[2] / f"{case}-{process}.pt") for process in (0, 1)]
    before = load_policy(str(talker))[0].state_dict()
    assert any(not torch.equal(before[name], value) for name, value in alone["weights"].items())
    for name, value in alone["weights"].items():
        assert torch.equal(both[0]["weights"][name], both[1]["weights"][name])
        # Adam divides by the gradient's size, so rounding shows where a gradient is nearly zero.
        assert torch.allclose(both[0]["weights"][name], value, atol=2e-5)
    assert both[0]["metrics"] == both[1]["metrics"]
    assert both[0]["metrics"] == pytest.approx(alone["metrics"], rel=1e-4, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("run", "iterations"), [("run", 2), ("resampled", 1), ("curricula", 2), ("ppo", 2), ("gigpo", 2), ("vineppo", 2)]
)
def test_a_run_in_two_processes_has_the_curve_of_a_run_in_one(
    outcomes: dict[int, Path], run: str, iterations: int
) -> None:
    curves = [curve(outcomes[processes] / run) for processes in (1, 2)]
    assert len(curves[0]) == iterations
    assert curves[0][0]["episodes"] >= 12
    assert max(line["gradient_norm"] for line in curves[0]) > 0
    for alone, both in zip(*curves, strict=True):
        assert both == pytest.approx(alone, rel=1e-3, abs=1e-4)


@pytest.mark.slow
def test_two_processes_share_the_held_out_episodes(outcomes: dict[int, Path]) -> None:
    alone, both = (
        [json.loads(line) for line in (outcomes[processes] / "run" / "evaluations.jsonl").read_text().splitlines()]
        for processes in (1, 2)
    )
    assert [line["iteration"] for line in both] == [0, 1, 2]
    for one, two in zip(alone, both, strict=True):
        assert two.pop("seconds")
        assert one.pop("seconds")
        assert one["episodes"] == 5
        assert two == one


@pytest.mark.slow
@pytest.mark.parametrize("aggregation", ["token", "sequence"])
def test_processes_that_divide_learn_the_same_also_where_only_one_of_them_has_an_advantage(
    outcomes: dict[int, Path], divided: Path, talker: Path, aggregation: str
) -> None:
    alone = torch.load(outcomes[1] / f"{aggregation}-0.pt")
    before = load_policy(str(talker))[0].state_dict()
    assert any(not torch.equal(before[name], value) for name, value in alone["weights"].items())
    for process in (0, 1):
        both = torch.load(divided / f"{aggregation}-{process}.pt")
        # FSDP divides the weights between two updates too; with DeepSpeed's ZeRO-1 and 2 every process has them whole.
        whole = divided.name.startswith(("deepspeed_zero1", "deepspeed_zero2"))
        assert (alone["divided"], both["divided"]) == (False, not whole)
        assert both["metrics"] == pytest.approx(alone["metrics"], rel=1e-4, abs=1e-6)
        for name, value in alone["weights"].items():
            assert torch.allclose(both["weights"][name], value, atol=2e-5)


@pytest.mark.slow
def test_a_run_that_divides_has_the_curve_of_one_process_and_resumes_along_it(
    outcomes: dict[int, Path], divided: Path
) -> None:
    """`begun` was begun by one process, `resumed` by as many as resume it."""
    alone = curve(outcomes[1] / "run")
    runs = [curve(divided / run) for run in ("run", "resumed", "begun")]
    assert [len(rows) for rows in (alone, *runs)] == [2, 2, 2, 2]
    assert alone[1]["gradient_norm"] > 0
    for row, *others in zip(alone, *runs, strict=True):
        for other in others:
            # Prompts that rows share are read once by one process alone, which makes no difference but to the padding.
            assert {**other, "padding": row["padding"]} == pytest.approx(row, rel=1e-3, abs=1e-4)
    assert runs[1] == runs[0]


@pytest.mark.slow
def test_a_gradient_that_is_not_finite_changes_no_weight_where_processes_divide(divided: Path) -> None:
    for process in (0, 1):
        outcome = torch.load(divided / f"diverged-{process}.pt")
        assert "the update was not made" in outcome["error"]
        assert outcome["unchanged"]
