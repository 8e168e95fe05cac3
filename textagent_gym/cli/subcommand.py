"""How a command appears below another one."""

from __future__ import annotations

import inspect
from typing import Any

import tyro


def subcommand(name: str, command: type) -> Any:
    """A sub-command with its docstring as `--help` shows it."""
    return tyro.conf.subcommand(name, description=inspect.cleandoc(command.__doc__ or ""), prefix_name=False)
