"""The command line, as somebody types it."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from textagent_gym.cli import main

WIDTH = {"COLUMNS": "200"}
"""Environment variable by which terminals say how wide they are."""
LIGHTS = Path(__file__).parents[1] / "third_party" / "lights"
PROGRAM = (
    f"import sys; sys.path.insert(0, {str(LIGHTS)!r}); import gymnasium, lights;"
    "'lights/Lights-v0' in gymnasium.registry or lights.register();"
    "from textagent_gym.cli import main; main()"
)


def call(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """What a command prints in this process, and its exit status: as `run`, without the second that a process takes."""
    out, errors = io.StringIO(), io.StringIO()
    variables = {**WIDTH, "TERM": "dumb"}
    with patch.dict(os.environ, variables), chdir(cwd or "."), redirect_stdout(out), redirect_stderr(errors):
        try:
            main(list(arguments))
        except SystemExit as end:
            status = int(end.code or 0)
    return subprocess.CompletedProcess(arguments, status, out.getvalue(), errors.getvalue())


def run(*arguments: str, columns: int = 200, **kwargs: object) -> subprocess.CompletedProcess[str]:
    """What a command printed in a process of its own, and its exit status."""
    variables = {"COLUMNS": str(columns), "TERM": "dumb"}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        **{**kwargs, "env": {**os.environ, **variables, **kwargs.get("env", {})}},
    )
