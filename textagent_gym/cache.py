"""Where everything that can be made again is kept."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_folder() -> Path:
    """The folder that `TEXTAGENT_CACHE` names, or `textagent-gym` in the user's cache folder."""
    chosen = os.environ.get("TEXTAGENT_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "textagent-gym"


@contextmanager
def made_whole(folder: Path) -> Iterator[Path]:
    """A folder to fill, which becomes `folder` at the end of the block: as a whole, or not at all.

    Where somebody else has made it meanwhile, theirs stays; any other error leaves nothing behind.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name[:40]}-"))
    try:
        yield part
    except BaseException:  # Ctrl-C too must leave nothing half made.
        shutil.rmtree(part, ignore_errors=True)
        raise
    part.chmod(0o755)
    try:
        part.rename(folder)
    except OSError:
        shutil.rmtree(part, ignore_errors=True)
        if not folder.is_dir():
            raise
