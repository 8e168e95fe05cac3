"""The command line in a process of its own, as somebody types it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

LIGHTS = Path(__file__).parents[1] / "third_party" / "lights"
PROGRAM = (
    f"import sys; sys.path.insert(0, {str(LIGHTS)!r}); import gymnasium, lights;"
    "'lights/Lights-v0' in gymnasium.registry or lights.register();"
    "from textagent_gym.cli import main; main()"
)


def run(*arguments: str, columns: int = 200, **kwargs: object) -> subprocess.CompletedProcess[str]:
    """What a command printed, and its exit status."""
    variables = {"COLUMNS": str(columns), "TERM": "dumb"}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        **{**kwargs, "env": {**os.environ, **variables, **kwargs.get("env", {})}},
    )
