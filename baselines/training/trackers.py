"""What trackers of metrics need; `accelerate` speaks with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from importlib.util import find_spec
from typing import Any

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
