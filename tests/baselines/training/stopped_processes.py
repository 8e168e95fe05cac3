"""What `test_joint_stop.py` starts in two processes: `baselines.grpo` in the world of lights.

python stopped_processes.py [OPTIONS OF baselines.grpo]

With FAULTY_STEP=N, the N-th step of an environment of process 1 raises.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "third_party" / "lights")]

import gymnasium  # noqa: E402
import lights  # noqa: E402

from baselines import grpo  # noqa: E402
from baselines.command_line import run_from_terminal  # noqa: E402

FAULTY_STEP = int(os.environ.get("FAULTY_STEP", "0"))


def break_a_step() -> None:
    """Let a step of this process raise."""
    steps = 0
    step = lights.LightsEnv.step

    def counted(self: lights.LightsEnv, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        nonlocal steps
        steps += 1
        if steps == FAULTY_STEP:
            raise LookupError("the world has a hole")
        return step(self, action)

    lights.LightsEnv.step = counted


if __name__ == "__main__":
    torch.set_num_threads(1)
    if "lights/Lights-v0" not in gymnasium.registry:
        lights.register()
    if FAULTY_STEP and os.environ.get("RANK") == "1":
        break_a_step()
    run_from_terminal(grpo.Config, grpo.run)
