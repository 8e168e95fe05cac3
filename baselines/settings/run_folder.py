"""The folder of a run: its settings and its metrics."""

from __future__ import annotations

import json
import os
import socket
import warnings
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import MISSING, asdict, fields, is_dataclass
from pathlib import Path
from typing import IO, Any

from textagent_gym.files import lock

LOCK = "lock"
"""File that a process locks while it uses a run's folder; it says which process does."""
METRICS = "metrics.jsonl"
EVALUATIONS = "evaluations.jsonl"
RESUMES = "once it can be, the same command resumes from the last checkpoint"


class RunFolderError(ValueError):
    """The folder of a run cannot be used; the message says why and what to do."""


class OtherRunError(RunFolderError):
    """A folder holds a run with other settings."""


class FolderInUseError(RunFolderError):
    """Another process uses the folder."""


@contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """Make the folder of a run, and keep other processes out until the block or this process ends.

    The operating system holds the lock, so it ends with the process however that ends. Where the file system has no
    locks, a warning says so. A folder in which no settings were written is deleted again.

    Args:
        folder: folder of the run.

    Raises:
        FolderInUseError: another process holds it; nothing in it was touched.
        RunFolderError: it is a file, or it cannot be written.
    """
    check_folder(folder)
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        with _opened_lock(folder) as file:
            _lock(folder, file)
            try:
                yield
            finally:
                with suppress(OSError):  # Windows deletes no open file.
                    (folder / LOCK).unlink()
    finally:
        if not (folder / "config.json").is_file():
            with suppress(OSError):  # Somebody has put something there.
                for path in missing:
                    path.rmdir()


def check_folder(folder: Path) -> None:
    """Refuse a path that cannot become a folder.

    Raises:
        RunFolderError: it, or what it lies in, is a file.
    """
    file = next((path for path in (folder, *folder.parents) if path.is_file()), None)
    if file is not None:
        raise RunFolderError(f"{folder} cannot be the folder of a run: {file} is a file; choose another name")


def _opened_lock(folder: Path) -> IO[str]:
    """The file to lock, in a folder that is made where it is missing.

    Raises:
        RunFolderError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return open(folder / LOCK, "a+", encoding="utf-8")
    except OSError as error:
        raise RunFolderError(f"{folder} cannot be written ({error}); choose another folder") from error


def _lock(folder: Path, file: IO[str]) -> None:
    """Lock the open file of a folder.

    Raises:
        FolderInUseError: another process has locked it.
    """
    try:
        lock(file, wait=False)
        # Another process may have held it, and have deleted it as it ended, after it was opened here.
        is_held = os.path.samestat(os.fstat(file.fileno()), (folder / LOCK).stat())
    except (BlockingIOError, FileNotFoundError):
        is_held = False
    except OSError as error:
        warnings.warn(
            f"{folder} cannot be locked ({error}): see to it that no other process uses it",
            RuntimeWarning,
            stacklevel=4,
        )
        return
    if not is_held:
        file.seek(0)
        who = file.read().strip() or "another process"
        raise FolderInUseError(f"{folder} is in use by {who}; wait until that has ended, or choose another folder")
    file.truncate(0)
    file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
    file.flush()


def claim_folder(folder: Path, config: Any, may_change: Collection[str] = (), write: bool = True) -> None:
    """Make the folder of a run and write its settings there: a folder holds one run, other settings need another.

    A setting that the folder does not know yet has its default there. The folder may have been moved, or be spelled
    otherwise: `out` may change, and other paths are compared as seen from it.

    Args:
        folder: folder of the run.
        config: settings, a dataclass.
        may_change: names of settings that may be different when a run resumes.
        write: whether the settings are written, or only checked; of several processes, one writes.

    Raises:
        OtherRunError: the folder holds a run with other settings.
        RunFolderError: the settings in the folder cannot be read.
    """
    path = folder / "config.json"
    wanted: dict[str, Any] = _plain(config)
    if path.is_file():
        try:
            before = dict(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise RunFolderError(f"{path} is damaged ({error}); delete {folder} or choose another folder") from error
        _add_defaults(before, config)
        different = sorted(name for name in wanted.keys() - {"out", *may_change} if not _is_same(name, before, wanted))
        if different:
            raise OtherRunError(
                f"{folder} holds a run with other settings ({', '.join(different)}); choose another folder"
            )
    if write:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(wanted, indent=2))


def _plain(value: Any) -> Any:
    """A value, or a dataclass, as it is read again from JSON."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    return json.loads(json.dumps(value, default=str))


def _add_defaults(before: dict[str, Any], config: Any) -> None:
    """Add the defaults of settings that did not exist yet when the settings of a folder were written."""
    for setting in fields(config):
        value = getattr(config, setting.name)
        if setting.name in before:
            if is_dataclass(value) and isinstance(before[setting.name], dict):
                _add_defaults(before[setting.name], value)
            continue
        default = setting.default if setting.default_factory is MISSING else setting.default_factory()
        if default is not MISSING:
            before[setting.name] = _plain(default)


def _is_same(name: str, before: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Whether a setting is what it was; a path is the same if it is, as seen from the folder of the run."""
    old, new = before.get(name), wanted[name]
    if old == new or not (isinstance(old, str) and isinstance(new, str) and "out" in before.keys() & wanted.keys()):
        return bool(old == new)
    return os.path.relpath(old, before["out"]) == os.path.relpath(new, wanted["out"])


def append_metrics(folder: Path, metrics: dict[str, Any], file: str = METRICS) -> None:
    """Add a line to the metrics of a run, or to another of its files.

    Raises:
        RunFolderError: the line could not be written, because the disk is full for example.
    """
    append_lines(folder, [metrics], file)


def append_lines(folder: Path, lines: Iterable[dict[str, Any]], file: str) -> None:
    """Add lines to a file of a run.

    Raises:
        RunFolderError: they could not be written.
    """
    text = "".join(json.dumps(line) + "\n" for line in lines)
    try:
        if text:
            with open(folder / file, "a", encoding="utf-8") as opened:
                opened.write(text)
    except OSError as error:
        raise RunFolderError(f"{folder / file} could not be written ({error}); {RESUMES}") from error


def logged_iterations(folder: Path, file: str = METRICS) -> set[int]:
    """The iterations that a file has a line for."""
    return {line["iteration"] for line in logged_lines(folder / file)}


def logged_lines(path: Path) -> list[dict[str, Any]]:
    """The lines that a run has logged in a file, without those that a kill has cut; none where there is no file."""
    lines = []
    for text in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []:
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and "iteration" in line:
            lines.append(line)
    return lines


def drop_metrics_after(folder: Path, iteration: int, file: str = METRICS) -> None:
    """Forget what was logged after an iteration, and lines that a kill has cut."""
    path = folder / file
    if not path.is_file():
        return
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            metrics = json.loads(line)
        except ValueError:
            continue
        if isinstance(metrics, dict) and metrics.get("iteration", iteration + 1) <= iteration:
            kept.append(line)
    write_whole(path, "".join(line + "\n" for line in kept))


def drop_cut_line(path: Path) -> None:
    """Drop what follows the last whole line of a file, so that the next line begins where a line should."""
    content = path.read_bytes() if path.is_file() else b""
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        write_whole(path, whole.decode(errors="replace"))


def write_whole(path: Path, text: str) -> None:
    """Write a file that appears as a whole or not at all, also where the power fails."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text, encoding="utf-8")
    flush_to_disk(fresh)
    os.replace(fresh, path)


def flush_to_disk(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk: until then they are lost when the power fails."""
    if os.name == "nt" and path.is_dir():  # Windows opens no folders.
        return
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
