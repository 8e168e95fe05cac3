"""Reads a tree of files that somebody has made, whatever has been put in the way.

Everything here is bounded, follows no link out of the tree and holds for any name, depth, mode and kind of file. It is
sent as a text to where the tree is (see `bundle`) and runs with Python 3.8 or later and its standard library alone.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Collection, Iterator

LARGEST_FILE = 4 << 20
"""Bytes of a file; the longest module that anybody has written by hand is far from it."""
MOST_BYTES = 32 << 20
"""Bytes of all files: what the memory of the one who reads can do with."""
MOST_NEW_FILES = 2000
"""Files that the task's tree did not have."""
LONGEST_PATH = 1000
"""Bytes of a path; Linux opens none that is longer than 4,096."""
MOST_SENTENCES = 10
"""Sentences on what is left out: more than that, an agent does not read."""
_DEEPEST = 64  # Folders within each other; no repository has a third of that.
_MOST_ENTRIES = 200_000  # Names that are looked at: some seconds of reading.
_MOST_LINKS = 40  # On the way to one file, as in Linux.
_SECONDS = 10.0  # For all reading: an agent's turn may wait that long.
_MOST_UNLOCKED = 256  # Files and folders of closed modes: each is a descriptor that stays open.
_LONGEST_SHOWN = 100  # Characters of a name in a sentence.

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PLACE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class Tree:
    """A tree that is being read. Folders and files that nobody may read are opened for a while where that is possible.

    Args:
        root: root of the tree.
        inside: name of the root for whoever made the tree, so that links which begin with that name are understood.
        skip: names of files and folders that are not looked at.
    """

    def __init__(self, root: str, inside: str = "", skip: Collection[str] = ()) -> None:
        self.inside = inside or root
        self.skip = frozenset(skip)
        self.left_out: list[str] = []
        self.more = 0
        self.deadline = time.monotonic() + _SECONDS
        self._entries = 0
        self._unlocked: list[tuple[int, int]] = []
        self._root = os.open(root, _PLACE | os.O_DIRECTORY)

    def close(self) -> None:
        """Put modes back, and let go of the tree."""
        for place, mode in reversed(self._unlocked):
            with contextlib.suppress(OSError):
                os.chmod(f"/proc/self/fd/{place}", mode)
            os.close(place)
        os.close(self._root)

    def leave_out(self, name: str, why: str) -> None:
        """Say that something is not taken into account."""
        if len(self.left_out) < MOST_SENTENCES - 1:
            shown = "".join(letter if letter.isprintable() else "?" for letter in name)
            shown = shown if len(shown) <= _LONGEST_SHOWN else shown[:48] + "..." + shown[-48:]
            self.left_out.append(f"{shown} {why}.")
        else:
            self.more += 1

    def sentences(self) -> list[str]:
        """What was left out."""
        last = [f"{self.more} more are left out."] if self.more else []
        return self.left_out + last

    def is_late(self) -> bool:
        """The time for reading is up."""
        return time.monotonic() > self.deadline

    def is_skipped(self, path: str) -> bool:
        """It is, or lies in, something that is not looked at."""
        return not self.skip.isdisjoint(path.split("/"))

    def open(self, path: str, flags: int) -> int:
        """Open what lies at a path, through no link.

        Raises:
            OSError: it cannot be opened.
        """
        folder = os.dup(self._root)
        try:
            parts = path.split("/") if path else ["."]
            for part in parts[:-1]:
                inner = self._open_in(folder, part, _PLACE | os.O_DIRECTORY)
                os.close(folder)
                folder = inner
            return self._open_in(folder, parts[-1], flags)
        finally:
            os.close(folder)

    def _open_in(self, folder: int, name: str, flags: int) -> int:
        try:
            return os.open(name, flags, dir_fd=folder)
        except PermissionError:
            self._unlock(folder, 0o700)
        try:
            return os.open(name, flags, dir_fd=folder)
        except PermissionError:
            place = os.open(name, _PLACE, dir_fd=folder)
            try:
                self._unlock(place, 0o700 if stat.S_ISDIR(os.fstat(place).st_mode) else 0o400)
            finally:
                os.close(place)
        return os.open(name, flags, dir_fd=folder)

    def _unlock(self, place: int, mode: int) -> None:
        before = stat.S_IMODE(os.fstat(place).st_mode)
        if before & mode != mode and len(self._unlocked) < _MOST_UNLOCKED:
            os.chmod(f"/proc/self/fd/{place}", before | mode)
            self._unlocked.append((os.dup(place), before))

    def status(self, path: str) -> os.stat_result | None:
        """What lies at a path, or `None`."""
        try:
            place = self.open(path, _PLACE)
        except (OSError, ValueError):
            return None
        try:
            return os.fstat(place)
        finally:
            os.close(place)

    def walk(self, top: str, visit: Callable[[str, int], None] | None = None) -> Iterator[tuple[str, os.stat_result]]:
        """Everything below a folder but what is skipped, folders before what is in them.

        Args:
            top: path of the folder, "" for the root.
            visit: function that is called with the path and descriptor of each folder.
        """
        waiting = [top]
        while waiting and not self.is_late():
            folder = waiting.pop()
            try:
                descriptor = self.open(folder, _FOLDER)
            except OSError:
                self.leave_out(folder or ".", "cannot be read")
                continue
            try:
                if visit is not None:
                    visit(folder, descriptor)
                for name in self._names(descriptor):
                    if self.is_late():
                        waiting.append(folder)
                        break
                    path = f"{folder}/{name}" if folder else name
                    try:
                        status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                    except PermissionError:  # It may be listed, and not entered.
                        self._unlock(descriptor, 0o700)
                        status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                    except OSError:
                        continue
                    if path.count("/") >= _DEEPEST or len(os.fsencode(path)) > LONGEST_PATH:
                        self.leave_out(path, "lies too deep")
                        continue
                    if stat.S_ISDIR(status.st_mode):
                        waiting.append(path)
                    yield path, status
            except OSError:
                self.leave_out(folder or ".", "cannot be read")
            finally:
                os.close(descriptor)
        if waiting:
            self.leave_out(f"{len(waiting)} folders", "are left out: there is too much to read")

    def _names(self, descriptor: int) -> Iterator[str]:
        with os.scandir(descriptor) as entries:
            for entry in entries:
                self._entries += 1
                if self._entries > _MOST_ENTRIES:
                    self.deadline = 0.0
                    return
                if entry.name not in self.skip:
                    yield entry.name

    def content(self, path: str, room: int) -> bytes | None:
        """Content of a plain file, or `None` if it is not a plain file, cannot be read or is too large.

        Args:
            path: path of the file.
            room: number of bytes that are left for all files.
        """
        try:
            descriptor = self.open(path, _FILE)
        except OSError:
            self.leave_out(path, "cannot be read")
            return None
        with os.fdopen(descriptor, "rb") as stream:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return None
            if status.st_size > LARGEST_FILE:
                self.leave_out(path, f"is larger than {LARGEST_FILE >> 20} MiB")
                return None
            if status.st_size > room:
                self.leave_out(path, f"is left out: all changes may be {MOST_BYTES >> 20} MiB at most")
                return None
            try:
                return stream.read(status.st_size)
            except OSError:
                return None

    def resolve(self, path: str) -> tuple[str, os.stat_result] | None:
        """Where a path leads once all links in it have been followed; `None` if nowhere in the tree, or late."""
        done: list[str] = []
        parts = path.split("/")[::-1]
        links = 0
        while parts:
            part = parts.pop()
            if part in ("", "."):
                continue
            if part == "..":
                if not done:
                    return None
                done.pop()
                continue
            here = "/".join([*done, part])
            status = self.status(here)
            if status is None or len(done) > _DEEPEST or self.is_late():
                return None
            if not stat.S_ISLNK(status.st_mode):
                done.append(part)
                continue
            links += 1
            target = self._target(here)
            if target is None or links > _MOST_LINKS:
                return None
            if target.startswith("/"):
                if target != self.inside and not target.startswith(self.inside + "/"):
                    return None
                done, target = [], target[len(self.inside) :]
            parts += target.split("/")[::-1]
        where = "/".join(done)
        status = self.status(where)
        return None if status is None or self.is_skipped(where) else (where, status)

    def _target(self, path: str) -> str | None:
        try:
            place = self.open(path, _PLACE)
            try:
                return os.readlink("", dir_fd=place)
            finally:
                os.close(place)
        except OSError:
            return None
