"""Matrix products of lower precision, with weights, optimizer and losses of float32."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from baselines.policy.models import load_policy
from tests.baselines.runs import ROOT, curve

SCRIPT = """
import sys, torch; torch.set_num_threads(1); sys.path.insert(0, sys.argv[3])
import lights, gymnasium; 'lights/Lights-v0' in gymnasium.registry or lights.register()
from pathlib import Path
from baselines import grpo
from tests.baselines.training.test_training import config
for iterations in (2, 3):
    grpo.run(config(Path(sys.argv[1]), Path(sys.argv[2]), iterations=iterations, precision=sys.argv[4], kl=0.1,
                    staleness=int(sys.argv[5])))
"""


@pytest.mark.slow
@pytest.mark.parametrize("staleness", [0, 1])
def test_the_policy_stays_of_float32_and_rounding_is_told(tiny: Path, tmp_path: Path, staleness: int) -> None:
    # A process of its own: accelerate keeps the first precision that it was asked for.
    for precision in ("bfloat16", "float32"):
        lights = str(ROOT / "tests" / "third_party" / "lights")
        command = [
            sys.executable,
            "-c",
            SCRIPT,
            str(tiny),
            str(tmp_path / precision),
            lights,
            precision,
            str(staleness),
        ]
        subprocess.run(command, cwd=ROOT, check=True, timeout=500)
    policy, _ = load_policy(str(tmp_path / "bfloat16" / "policy"))
    weights = list(policy.parameters())
    assert any(not torch.equal(weight, weight.bfloat16().float()) for weight in weights)
    exact, rounded = (curve(tmp_path / name) for name in ("float32", "bfloat16"))
    assert len(rounded) == len(exact) == 3
    for one, other in zip(exact, rounded, strict=True):
        assert one["entropy_estimate"] == pytest.approx(other["entropy_estimate"], rel=0.02)
        assert one["entropy_estimate"] != other["entropy_estimate"]
