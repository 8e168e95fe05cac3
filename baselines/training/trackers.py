"""What trackers of metrics need; `accelerate` speaks with them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from baselines.training.run_log import LOG
from textagent_gym.errors import InvalidOptionError


def check_trackers(trackers: Sequence[str]) -> None:
    """Refuse a tracker that cannot be imported; `accelerate` would leave it out.

    Raises:
        InvalidOptionError: its package is not installed.
    """
    for name in trackers:
        if find_spec(name) is None:
            raise InvalidOptionError(f"trackers={name}: install its package first (pip install {name})")


def flat_settings(config: Any) -> dict[str, int | float | str | bool]:
    """The settings of a run, as trackers take them: numbers, truth values and texts."""
    return {name: value if isinstance(value, (int, float)) else str(value) for name, value in asdict(config).items()}


def run_names(folder: Path) -> dict[str, dict[str, Any]]:
    """What W&B and trackio are told of a run, so that one that resumes continues what it had begun there.

    Args:
        folder: the run's folder; its log has begun, which tells it from others of the same name.
    """
    with (folder / LOG).open("rb") as log:
        identity = hashlib.sha256(log.readline()).hexdigest()[:12]
    return {
        "wandb": {"name": folder.name, "id": identity, "resume": "allow", "dir": str(folder)},
        "trackio": {"name": f"{folder.name}-{identity}", "resume": "allow"},
    }
