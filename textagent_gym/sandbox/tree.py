"""Reads what somebody has made of a tree of files, and writes files into one, whatever has been put in the way.

Everything here is bounded, follows no link out of the tree and holds for any name, depth, mode and kind of file. It is
sent as a text to where the tree is (see `bundle`) and runs with Python 3.8 or later and its standard library alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from collections.abc import Callable, Collection, Iterator, Mapping

LARGEST_FILE = 4 << 20
"""Bytes of a file; the longest module that anybody has written by hand is far from it."""
MOST_BYTES = 32 << 20
"""Bytes of all files: what the memory of the one who reads can do with."""
MOST_NEW_FILES = 2000
"""Files that the task's tree did not have."""
_DEEPEST = 64
_LONGEST_PATH = 1000  # Bytes.
_MOST_ENTRIES = 200_000
_MOST_LINKS = 40  # On the way to one file, as in Linux.
_SECONDS = 10.0
_SENTENCES = 10

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PLACE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def is_path(name: str) -> bool:
    """A path of a file below a root, as this module writes them."""
    return bool(name) and "\0" not in name and not any(part in ("", ".", "..") for part in name.split("/"))


def signature(status: os.stat_result) -> tuple[int, int, int]:
    """What changes when a file does."""
    return (status.st_ino, status.st_size, status.st_ctime_ns)


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
        if len(self.left_out) < _SENTENCES - 1:
            shown = "".join(letter if letter.isprintable() else "?" for letter in name)
            shown = shown if len(shown) <= 100 else shown[:48] + "..." + shown[-48:]
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
        if before & mode != mode and len(self._unlocked) < 256:
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
                    path = f"{folder}/{name}" if folder else name
                    try:
                        status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                    except PermissionError:  # It may be listed, and not entered.
                        self._unlock(descriptor, 0o700)
                        status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                    except OSError:
                        continue
                    if path.count("/") >= _DEEPEST or len(os.fsencode(path)) > _LONGEST_PATH:
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
        """Where a path leads once all links in it have been followed; `None` if that is nowhere in the tree."""
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
            if status is None or len(done) > _DEEPEST:
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


class Reading:
    """Collects the changes of a tree: first what has gone, then files that the tree had, then new ones.

    Args:
        tree: tree whose content is read.
        is_known: function that says whether the tree had a plain file at a path.
    """

    def __init__(self, tree: Tree, is_known: Callable[[str], bool]) -> None:
        self.tree = tree
        self.is_known = is_known
        self.gone: set[str] = set()
        self.plain: set[str] = set()
        self.links: set[str] = set()
        self.files: dict[str, bytes] = {}
        self._bytes = 0
        self._new = 0

    def note(self, path: str, status: os.stat_result) -> None:
        """Something has changed at a path."""
        if stat.S_ISREG(status.st_mode):
            self.plain.add(path)
        elif stat.S_ISLNK(status.st_mode):
            self.links.add(path)
        elif not stat.S_ISDIR(status.st_mode):
            self.tree.leave_out(path, "is not a plain file")

    def finish(self) -> tuple[dict[str, bytes | None], list[str]]:
        """The changes, and what was left out."""
        for path in sorted(self.plain, key=lambda path: (not self.is_known(path), path)):
            self._take(path, path)
        for path in sorted(self.links):
            self._follow(path, path, ())
        found: dict[str, bytes | None] = {path: None for path in sorted(self.gone) if path not in self.files}
        for path, content in self.files.items():
            parents = path.split("/")[:-1]
            if not any("/".join(parents[:count]) in self.files for count in range(1, len(parents) + 1)):
                found[path] = content
        return found, self.tree.sentences()

    def _take(self, path: str, source: str) -> None:
        """Take the content of a file as that of a path."""
        known = self.is_known(path)
        if not known and (self._new >= MOST_NEW_FILES or self.tree.is_late()):
            self.tree.leave_out(path, "is one new file too many")
            return
        content = self.tree.content(source, MOST_BYTES - self._bytes)
        if content is None:
            return
        self._new += not known
        self._bytes += len(content)
        self.files[path] = content

    def _follow(self, path: str, source: str, around: tuple[str, ...]) -> None:
        """Take what a link leads to as what lies at a path.

        Args:
            path: path at which the content appears.
            source: path of the link.
            around: the folders whose links are being followed.
        """
        found = self.tree.resolve(source)
        if found is None:
            self.tree.leave_out(path, "is a link to something that is not in the repository")
            return
        where, status = found
        if stat.S_ISREG(status.st_mode):
            self._take(path, where)
            return
        if not stat.S_ISDIR(status.st_mode):
            self.tree.leave_out(path, "is a link to something that is not a file")
            return
        if not where or where in around or (source + "/").startswith(where + "/"):
            self.tree.leave_out(path, "is a link to a folder that it lies in")
            return
        for inner, status in self.tree.walk(where):
            shown = path + inner[len(where) :]
            if len(shown) > _LONGEST_PATH or self._new >= MOST_NEW_FILES:
                self.tree.leave_out(shown, "is one new file too many")
                return
            if stat.S_ISREG(status.st_mode):
                self._take(shown, inner)
            elif stat.S_ISLNK(status.st_mode):
                self._follow(shown, inner, (*around, where))


def files_below(layers: Collection[str], path: str) -> Iterator[str]:
    """Plain files of layers at or below a path."""
    for layer in layers:
        top = os.path.join(layer, path)
        if os.path.isfile(top):
            yield path
        for folder, _, names in os.walk(top):
            for name in names:
                yield os.path.relpath(os.path.join(folder, name), layer)


def overlay_changes(
    upper: str, merged: str, layers: Collection[str], inside: str, skip: Collection[str]
) -> tuple[dict[str, bytes | None], list[str]]:
    """What an overlay file system's upper side makes of its layers."""
    changed, tree = Tree(upper, inside, skip), Tree(merged, inside, skip)
    reading = Reading(tree, lambda path: any(os.path.isfile(os.path.join(layer, path)) for layer in layers))
    changed.leave_out = tree.leave_out  # type: ignore[method-assign]

    def hide(path: str) -> None:
        reading.gone.update(name for name in files_below(layers, path) if not tree.is_skipped(name))

    def visit(path: str, descriptor: int) -> None:
        with contextlib.suppress(OSError):
            if os.getxattr(descriptor, "user.overlay.opaque") == b"y":
                hide(path)

    try:
        for path, status in changed.walk("", visit):
            is_gone = stat.S_ISCHR(status.st_mode) and status.st_rdev == 0
            known = reading.is_known(path)
            if stat.S_ISDIR(status.st_mode) and known:
                reading.gone.add(path)
            elif not (stat.S_ISDIR(status.st_mode) or (stat.S_ISREG(status.st_mode) and known)):
                hide(path)
            if not is_gone:
                reading.note(path, status)
        return reading.finish()
    finally:
        changed.close()
        tree.close()


def noted(root: str) -> dict[str, tuple[int, int, int]]:
    """Plain files and links of a tree that nobody has touched, with what changes when they do."""
    tree = Tree(root)
    try:
        kinds = (stat.S_IFREG, stat.S_IFLNK)
        return {path: signature(status) for path, status in tree.walk("") if stat.S_IFMT(status.st_mode) in kinds}
    finally:
        tree.close()


def noted_changes(
    root: str, before: Mapping[str, tuple[int, int, int]], inside: str, skip: Collection[str]
) -> tuple[dict[str, bytes | None], list[str]]:
    """What has become of a tree since its files and links were noted."""
    try:
        tree = Tree(root, inside, skip)
    except OSError:
        gone = [path for path in before if set(skip).isdisjoint(path.split("/"))]
        return dict.fromkeys(gone), ["The folder of the repository is gone."]
    reading = Reading(tree, before.__contains__)
    try:
        for path, known in before.items():  # First, so that nothing else can be in their way.
            if tree.is_skipped(path):
                continue
            status = tree.status(path)
            if status is not None and signature(status) == known:
                continue
            if status is None or not stat.S_ISREG(status.st_mode):
                reading.gone.add(path)
            else:
                reading.plain.add(path)
        for path, status in tree.walk(""):
            if path not in before or (not stat.S_ISREG(status.st_mode) and signature(status) != before[path]):
                reading.note(path, status)
        return reading.finish()
    finally:
        tree.close()


def encode(files: Mapping[str, bytes | None], left_out: Collection[str] = ()) -> bytes:
    """Changes as bytes: a line of JSON, then what files contain, one after the other."""
    lengths = {name: None if content is None else len(content) for name, content in files.items()}
    head = json.dumps({"files": lengths, "left_out": list(left_out)})
    return b"\n".join([head.encode(), b"".join(content for content in files.values() if content)])


def decode(data: bytes) -> tuple[dict[str, bytes | None], list[str]]:
    """Changes from bytes; nothing odd in them is believed."""
    line, _, rest = data.partition(b"\n")
    try:
        head = json.loads(line.decode())
        lengths, said = list(head["files"].items()), list(head["left_out"])
    except (ValueError, AttributeError, TypeError, KeyError, RecursionError):
        return {}, []
    files: dict[str, bytes | None] = {}
    start = 0
    for name, length in lengths:
        if length is not None and not (type(length) is int and 0 <= length <= len(rest) - start):
            return {}, []
        if is_path(name):
            files[name] = None if length is None else rest[start : start + length]
        start += length or 0
    return files, [sentence for sentence in said if isinstance(sentence, str)][:_SENTENCES]


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
            found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        for child, is_folder in found:
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
