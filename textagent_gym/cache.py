"""Where everything that can be made again is kept."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """The folder that `TEXTAGENT_CACHE` names, or `textagent-gym` in the user's cache folder."""
    chosen = os.environ.get("TEXTAGENT_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "textagent-gym"
