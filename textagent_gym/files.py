"""Files and folders that appear as a whole or not at all, and the folder for everything that can be made again."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import IO

from textagent_gym.errors import InvalidOptionError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows has none, and nothing is locked there.
    fcntl = None

CHECK = ".check-"
"""Beginning of the name of a folder that is made to find out whether something can be written."""
PART = ".part"
"""Suffix of what is not finished: a run that was stopped resumes from it, and anything else with it may be deleted."""
_LONGEST_STEM = 40  # Characters of a name that its unfinished twin repeats: file systems allow 255 bytes in all.


def cache_folder() -> Path:
    """The folder that `TEXTAGENT_CACHE` names, or `textagent-gym` in the user's cache folder."""
    chosen = os.environ.get("TEXTAGENT_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "textagent-gym"


def part_of(path: Path) -> Path:
    """Where the beginning of a file is kept from which a stopped run resumes.

    >>> part_of(Path("runs/result.jsonl")).as_posix()
    'runs/result.jsonl.part'
    """
    return path.with_name(path.name + PART)


@contextmanager
def whole_file(path: Path) -> Iterator[IO[str]]:
    """A text file to write, which becomes `path` at the end of the block: as a whole, or not at all.

    Folders above it are made. An error in the block leaves what was there before.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name[:_LONGEST_STEM]}-{secrets.token_hex(4)}{PART}")
    try:
        with open(part, "x", encoding="utf-8", newline="\n") as file:
            yield file
        os.replace(part, path)
    except BaseException:  # Ctrl-C too must leave nothing half made.
        part.unlink(missing_ok=True)
        raise


def write_whole(path: Path, text: str) -> None:
    """Write a text file as a whole or not at all; see `whole_file`."""
    with whole_file(path) as file:
        file.write(text)


@contextmanager
def whole_folder(folder: Path, *, replace: bool = False) -> Iterator[Path]:
    """A folder to fill, which becomes `folder` at the end of the block: as a whole, or not at all.

    An error in the block leaves nothing behind.

    Args:
        folder: final place.
        replace: whether a folder that is there by then is deleted; otherwise it stays, and the new one is deleted.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name[:_LONGEST_STEM]}-", suffix=PART))
    try:
        yield part
    except BaseException:  # Ctrl-C too must leave nothing half made.
        shutil.rmtree(part, ignore_errors=True)
        raise
    part.chmod(0o755)
    if replace and folder.is_dir():
        shutil.rmtree(folder)
    elif replace:
        folder.unlink(missing_ok=True)
    try:
        part.rename(folder)
    except OSError:
        shutil.rmtree(part, ignore_errors=True)
        if replace or not folder.is_dir():
            raise


def lock(file: IO[str], *, wait: bool = True) -> None:
    """Lock an open file for this process until it is closed, also by the end of the process.

    Args:
        file: file to lock.
        wait: whether to wait for another process that has locked it.

    Raises:
        BlockingIOError: another process has, and `wait` is false.
    """
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Keep other processes that ask for the same folder waiting until the block ends."""
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def check_writable(path: Path, *, folder: bool = False) -> None:
    """Find out before hours of work whether a file can be written; nothing is left behind.

    Args:
        path: file, which may exist.
        folder: whether it is a folder, into which files are written.

    Raises:
        InvalidOptionError: it cannot; the message says why.
    """
    try:
        if path.exists() and not (path.is_dir() if folder else path.is_file()):
            kind = "a folder" if path.is_dir() else "a file" if path.is_file() else "no plain file"
            raise InvalidOptionError(f"{path} is {kind}; name a {'folder' if folder else 'file'}")
        place = path if folder else path.parent
        above = next(each for each in (place, *place.absolute().parents) if os.path.lexists(each))
        with tempfile.TemporaryDirectory(dir=above, prefix=CHECK):
            pass
    except OSError as error:
        raise InvalidOptionError(f"{path} cannot be written: {error.strerror or error}") from error
