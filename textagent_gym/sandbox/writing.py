"""Writes files into a tree that only we can change, and empties folders, whatever has been put in the way."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PLACE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def is_path(name: str) -> bool:
    """A path of a file below a root, as this module writes them."""
    return bool(name) and "\0" not in name and not any(part in ("", ".", "..") for part in name.split("/"))


def write_files(root: str, files: Mapping[str, bytes | None]) -> None:
    """Write files below a root that only we can change: first what goes, then what comes.

    Files and links in the way of folders, and folders in the way of files, give way.

    Raises:
        ValueError: a path leads out of the tree.
    """
    for name in files:
        if not is_path(name):
            raise ValueError(f"{name!r} is no path of a file in a repository")
    for name in (name for name, content in files.items() if content is None):
        if not any(os.path.islink(parent) for parent in _parents(root, name)):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
                os.unlink(os.path.join(root, name))
    for name, content in files.items():
        if content is None:
            continue
        for parent in _parents(root, name):
            if os.path.islink(parent) or not os.path.isdir(parent):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(parent)
                os.mkdir(parent)
        target = os.path.join(root, name)
        if os.path.isdir(target) and not os.path.islink(target):
            empty(target)
            os.rmdir(target)
        elif os.path.islink(target):
            os.unlink(target)
        with open(target, "wb") as stream:
            stream.write(content)


def _parents(root: str, name: str) -> list[str]:
    parts = name.split("/")[:-1]
    return [os.path.join(root, *parts[:count]) for count in range(1, len(parts) + 1)]


def empty(folder: str) -> None:
    """Remove everything in a folder, whatever the modes and however deep, without following links.

    Folders are moved to the top before they are emptied, so that no path is ever long.
    """
    count = 0
    top = os.open(folder, _FOLDER)
    try:
        while True:
            with os.scandir(top) as entries:
                names = [entry.name for entry in entries]
            if not names:
                return
            for name in names:
                count = _remove(top, name, count)
    finally:
        os.close(top)


def _remove(top: int, name: str, count: int) -> int:
    """Remove an entry of a folder; the folders in it become entries of their own, with numbers for names."""
    try:
        os.unlink(name, dir_fd=top)
        return count
    except (IsADirectoryError, PermissionError):
        place = os.open(name, _PLACE | os.O_DIRECTORY, dir_fd=top)
    try:
        os.chmod(f"/proc/self/fd/{place}", 0o700)
        inner = os.open(f"/proc/self/fd/{place}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        os.close(place)
    try:
        with os.scandir(inner) as entries:
            inside = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        for child, is_folder in inside:
            if not is_folder:
                os.unlink(child, dir_fd=inner)
                continue
            moved = os.open(child, _PLACE, dir_fd=inner)
            os.chmod(f"/proc/self/fd/{moved}", 0o700)  # Only then may it be moved.
            os.close(moved)
            while True:
                count += 1
                try:
                    os.mkdir(f".{count}", dir_fd=top)  # A name that is free; an empty folder gives way.
                    break
                except FileExistsError:
                    continue
            os.rename(child, f".{count}", src_dir_fd=inner, dst_dir_fd=top)
        os.rmdir(name, dir_fd=top)
    finally:
        os.close(inner)
    return count
