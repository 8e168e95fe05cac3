"""What the executables of the trainers share: settings from the terminal, errors in one line, Ctrl-C."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tyro

from baselines.method import Method
from baselines.run_folder import RunFolderError
from textagent_gym.errors import TextAgentError

LogFunction = Callable[[dict[str, Any]], None]


def let_waiting_threads_sleep() -> None:
    """Make OpenMP's waiting threads yield their core instead of spinning; it must be called before torch is imported.

    Spinning makes small models many times slower on a machine that does anything else (30 updates on two busy cores:
    62 s, with this 4.5 s).
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def train_with(method: Callable[[Any], Method]) -> Callable[..., Path]:
    """The function that trains with a method: it takes the configuration and, where wanted, a function that logs."""

    def run(config: Any, log: LogFunction | None = None) -> Path:
        """Train on `config.env` and return the folder of the policy."""
        from baselines.trainer import train

        return train(config, method(config), log)

    return run


def run_from_terminal(config: type[Any], run: Callable[[Any, LogFunction], Path]) -> None:
    """Read a configuration from the command line, train with it and print a line of metrics per iteration."""
    let_waiting_threads_sleep()
    from baselines.advantages import GroupTooSmallError

    program = f"python -m baselines.{Path(sys.argv[0]).stem}"
    try:
        settings = tyro.cli(config, prog=program, config=(tyro.conf.FlagCreatePairsOff,))
        policy = run(settings, lambda metrics: print(json.dumps(metrics), flush=True))
    except (TextAgentError, RunFolderError, GroupTooSmallError, OSError) as error:
        raise SystemExit(str(error)) from None
    except KeyboardInterrupt:
        print("Stopped. The same command resumes from the last checkpoint.")
        raise SystemExit(130) from None
    print(f"Policy saved to {policy}")
