"""What somebody has made of a tree: read from an overlay, or from what was noted before, and sent as bytes."""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from fnmatch import translate
from functools import lru_cache
from typing import NamedTuple

from textagent_gym.sandbox.tree import LONGEST_PATH, MOST_BYTES, MOST_NEW_FILES, MOST_SENTENCES, Tree
from textagent_gym.sandbox.writing import is_path

_KNOWN, _FIRST, _OTHERS, _LAST = range(4)  # Ranks of files, the first of which are read first.


class ReadingOrder(NamedTuple):
    """Which new files are read first, where there are more than are read at all.

    Attributes:
        first: patterns of the names of files that are worth most, such as "*.py"; see `fnmatch`.
        last: patterns of the names of files and folders that are worth least, such as "*.o": what a build has made.
    """

    first: tuple[str, ...] = ()
    last: tuple[str, ...] = ()


BY_NAME = ReadingOrder()
"""New files in the order of their paths."""


def signature(status: os.stat_result) -> tuple[int, int, int]:
    """What changes when a file does."""
    return (status.st_ino, status.st_size, status.st_ctime_ns)


class Reading:
    """Collects the changes of a tree: first what has gone, then files that the tree had, then new ones in their order.

    Args:
        tree: tree whose content is read.
        order: order in which new files are read, until there are too many of them.
        is_known: function that says whether the tree had a plain file at a path.
        is_known_folder: function that says whether the tree had a folder at a path.
    """

    def __init__(
        self, tree: Tree, order: ReadingOrder, is_known: Callable[[str], bool], is_known_folder: Callable[[str], bool]
    ) -> None:
        self.tree = tree
        # Each name is looked at once: a deep tree has few of them, and many paths.
        patterns = (re.compile("|".join(map(translate, names)) or "(?!)") for names in order)
        self._is_first, self._is_last = (lru_cache(maxsize=None)(pattern.match) for pattern in patterns)
        self.is_known = is_known
        self.is_known_folder = is_known_folder
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
        ranks = {path: self._rank(path) for path in self.plain}
        waiting = sorted(self.plain, key=lambda path: (ranks[path], path))
        products = [path for path in waiting if ranks[path] == _LAST]
        for path in waiting[: len(waiting) - len(products)]:
            self._take(path, path)
        for path in sorted(self.links, key=lambda path: (not self.is_known_folder(path), path)):
            self._follow(path, path, ())
        for path in products:
            self._take(path, path)
        changes: dict[str, bytes | None] = {path: None for path in sorted(self.gone) if path not in self.files}
        for path, content in self.files.items():
            parents = path.split("/")[:-1]
            if not any("/".join(parents[:count]) in self.files for count in range(1, len(parents) + 1)):
                changes[path] = content
        return changes, self.tree.sentences()

    def _rank(self, path: str) -> int:
        """Rank of a file that has changed."""
        if self.is_known(path):
            return _KNOWN
        if self.tree.is_late():  # It is not read, wherever it comes.
            return _LAST
        parts = path.split("/")
        if any(map(self._is_last, parts)):
            return _LAST
        return _FIRST if self._is_first(parts[-1]) else _OTHERS

    @property
    def _is_full(self) -> bool:
        """No new file is read any more."""
        return self._new >= MOST_NEW_FILES or self.tree.is_late()

    def _take(self, path: str, source: str) -> None:
        """Take the content of a file as that of a path."""
        known = self.is_known(path)
        if not known and self._is_full:
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
        if self.tree.is_late():
            self.tree.leave_out(path, "is left out: there is too much to read")
            return
        target = self.tree.resolve(source)
        if target is None:
            self.tree.leave_out(path, "is a link to something that is not in the repository")
            return
        where, status = target
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
            if len(shown) > LONGEST_PATH or (self._new >= MOST_NEW_FILES and not self.is_known_folder(path)):
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
    upper: str, merged: str, layers: Collection[str], inside: str, *, skip: Collection[str], order: ReadingOrder
) -> tuple[dict[str, bytes | None], list[str]]:
    """What an overlay file system's upper side makes of its layers."""
    changed, tree = Tree(upper, inside, skip), Tree(merged, inside, skip)
    reading = Reading(
        tree,
        order,
        lambda path: any(os.path.isfile(os.path.join(layer, path)) for layer in layers),
        lambda path: any(os.path.isdir(os.path.join(layer, path)) for layer in layers),
    )
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
    root: str, before: Mapping[str, tuple[int, int, int]], inside: str, *, skip: Collection[str], order: ReadingOrder
) -> tuple[dict[str, bytes | None], list[str]]:
    """What has become of a tree since its files and links were noted."""
    try:
        tree = Tree(root, inside, skip)
    except OSError:
        gone = [path for path in before if set(skip).isdisjoint(path.split("/"))]
        return dict.fromkeys(gone), ["The folder of the repository is gone."]
    folders: set[str] = set()
    for path in before:
        parent = os.path.dirname(path)
        while parent and parent not in folders:
            folders.add(parent)
            parent = os.path.dirname(parent)
    reading = Reading(tree, order, before.__contains__, folders.__contains__)
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
        lengths, sentences = list(head["files"].items()), list(head["left_out"])
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
    return files, [sentence for sentence in sentences if isinstance(sentence, str)][:MOST_SENTENCES]
