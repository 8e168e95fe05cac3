"""The folder of a run."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any


class OtherRunError(ValueError):
    """A folder holds a run with other settings."""


def claim_folder(folder: Path, config: Any, may_change: Sequence[str] = ()) -> None:
    """Make the folder of a run and write its settings there: a folder holds one run, other settings need another.

    Args:
        folder: of the run.
        config: a dataclass.
        may_change: names of settings with which a run may go on.

    Raises:
        OtherRunError: the folder holds a run with other settings.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "config.json"
    wanted = {key: str(value) for key, value in asdict(config).items()}
    if path.is_file():
        before = json.loads(path.read_text(encoding="utf-8"))
        different = sorted(k for k in wanted if before.get(k) != wanted[k] and k not in may_change)
        if different:
            raise OtherRunError(
                f"{folder} holds a run with other settings ({', '.join(different)}); choose another folder"
            )
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(wanted, indent=2), encoding="utf-8")
    os.replace(fresh, path)
