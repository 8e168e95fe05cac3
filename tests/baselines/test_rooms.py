"""What must answer at once, or run in a worker, loads no torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
WITHOUT_TORCH = (
    *("baselines/*.py", "baselines/settings/*.py", "baselines/envs/*.py"),
    *("baselines/credit/rollouts.py", "baselines/credit/advantages.py", "baselines/credit/method.py"),
)
"""Patterns of the files; of the executables, what `--help` needs."""


def test_executables_settings_and_environments_load_no_torch() -> None:
    paths = sorted(path.relative_to(ROOT) for pattern in WITHOUT_TORCH for path in ROOT.glob(pattern))
    names = [".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in paths]
    assert {"baselines.grpo", "baselines.settings.config", "baselines.envs.mixed_env"} <= set(names)
    script = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    importlib.import_module(name)\n"
        "    assert not {'torch', 'transformers'} & set(sys.modules), name\n"
    )
    subprocess.run([sys.executable, "-c", script, *names], check=True, cwd=ROOT)
