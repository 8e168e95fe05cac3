"""Runs in the tests: their settings, what their folders say, and runs in processes that are killed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LIGHTS: dict[str, Any] = {"switches": 2, "max_turns": 3, "reward_density": "dense", "num_tasks": 8}
_BEGIN = f"""
import sys, torch
torch.set_num_threads(1)
sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / "tests" / "third_party" / "lights")!r}]
import gymnasium, lights
"lights/Lights-v0" in gymnasium.registry or lights.register()
from pathlib import Path
"""


def small_run(config: type, policy: Path, out: Path, **settings: Any) -> Any:
    """Settings of a run with two groups of four short episodes of the world of lights."""
    basis = {"model": str(policy), "out": out, "env": "lights/Lights-v0", "set": LIGHTS}
    return config(**{**basis, "groups": 2, "group_size": 4, "slots": 8, "max_action_tokens": 6, **settings})


def lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a file of a run."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def curve(out: Path) -> list[dict[str, Any]]:
    """The metrics of a run without seconds, which are others in every run."""
    return [{k: v for k, v in line.items() if not k.endswith("seconds")} for line in lines(out / "metrics.jsonl")]


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Run code in another process, which knows the world of lights and has the arguments in `sys.argv[1:]`."""
    command = [sys.executable, "-c", _BEGIN + code, *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)


def kill_and_resume(code: str, policy: Path, out: Path, kills: Iterable[tuple[int, float]]) -> None:
    """Kill a run again and again, and let it end then.

    Args:
        code: see `start`; the policy and the folder of the run are its arguments.
        policy, out: those folders.
        kills: for each kill, the number of iterations in the metrics, and the seconds after that.
    """
    metrics = out / "metrics.jsonl"
    for iterations, seconds in kills:
        process = start(code, policy, out)
        while not metrics.is_file() or metrics.read_text().count("\n") < iterations:
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.005)
        time.sleep(seconds)
        process.kill()
        process.communicate(timeout=60)
    process = start(code, policy, out)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
