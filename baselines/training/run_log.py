"""What a run folder says of the run beside its metrics.

log.jsonl            when the run started, resumed and stopped, and why; with versions and git revision
broken.jsonl         every time that the world of an episode broke, and why
trajectories.jsonl   some episodes to read, from the worst return to the best
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from baselines.rollout import BrokenEpisode
from baselines.rollout.trajectory import Trajectory

LOG = "log.jsonl"
BROKEN = "broken.jsonl"
TRAJECTORIES = "trajectories.jsonl"
_PACKAGES = ("textagent-gym", "gymnasium", "numpy", "torch", "transformers", "accelerate", "peft", "vllm", "ray")
_SAMPLE = 4
"""Number of episodes that are kept of an iteration or an evaluation: enough to see what a policy does, and little to
keep."""


def start_event(iteration: int, processes: int, device: str) -> dict[str, Any]:
    """What a run starts or resumes with: command, versions, git revision and machine."""
    return {
        "event": "start",
        "time": _now(),
        "iteration": iteration,
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "versions": {"python": platform.python_version(), **_versions()},
        "git": git_revision(Path(__file__).parent),
        "processes": processes,
        "device": device,
        "threads": os.environ.get("OMP_NUM_THREADS", ""),
    }


def stop_event(iteration: int, error: BaseException | None) -> dict[str, Any]:
    """How a run ended: with all its iterations, or with an error."""
    cause = None if error is None else f"{type(error).__name__}: {error}".rstrip(": ")
    return {"event": "stop", "time": _now(), "iteration": iteration, "cause": cause}


def broken_lines(iteration: int, breaks: Sequence[BrokenEpisode]) -> list[dict[str, Any]]:
    """A line per time that the world of an episode broke; `iteration` is that of the metrics."""
    return [
        {"iteration": iteration, "group": each.request.group, "seed": each.request.seed, "reason": each.reason}
        for each in breaks
    ]


def sample_lines(iteration: int, kind: str, trajectories: Sequence[Trajectory]) -> list[dict[str, Any]]:
    """A line per episode of a sample, evenly spaced from the worst return to the best.

    Args:
        iteration: number of the iteration, as in the metrics.
        kind: "training" or "evaluation".
        trajectories: episodes to choose from.
    """
    ranked = sorted(trajectories, key=lambda trajectory: trajectory.total_reward)
    places = np.unique(np.linspace(0, len(ranked) - 1, min(_SAMPLE, len(ranked))).round().astype(int))
    return [{"iteration": iteration, "kind": kind, **_readable(ranked[place])} for place in places]


def git_revision(folder: Path) -> str | None:
    """Revision of the checkout that holds a folder, with `+changes` if files differ from it; `None` outside of one."""
    try:
        revision = _git(folder, "rev-parse", "HEAD")
        return revision + ("+changes" if _git(folder, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _readable(trajectory: Trajectory) -> dict[str, Any]:
    return {
        "task": trajectory.task,
        "return": trajectory.total_reward,
        "success": trajectory.success,
        "ending": _ending(trajectory),
        "turns": [
            {"observation": turn.observation, "action": turn.text, "reward": turn.reward} for turn in trajectory.turns
        ],
        "last_observation": trajectory.last_observation,
    }


def _ending(trajectory: Trajectory) -> str:
    if trajectory.overflow:
        return "cut: the context is full"
    return "terminated" if trajectory.terminated else "truncated"


def _versions() -> dict[str, str]:
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
