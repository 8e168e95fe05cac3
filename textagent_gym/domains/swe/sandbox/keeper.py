"""The first process of a container: unpacks trees, says what has become of them, and ends what runs there.

It is sent to the container as a text and runs with whatever Python 3.8 or later is in there. It answers requests on
standard input, each a line of JSON and some bytes, and ends when that is closed, and the container with it. What it
does to the tree it does as the agent's user.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import stat
import sys
import tarfile
from collections.abc import Iterator

_LARGEST_FILE = 1 << 20
_MOST_FILES = 2000
_MOST_BYTES = 1 << 25


class Keeper:
    """Keeps a tree.

    Args:
        root: of the tree.
        user: number of the agent's user.
    """

    def __init__(self, root: str, user: int) -> None:
        self.root = root
        self.user = user
        self.noted: dict[str, tuple[int, int, int]] = {}

    def answer(self, request: str, data: bytes) -> bytes:
        """Do what is asked, as the agent's user, and return the bytes of the answer."""
        os.setegid(self.user)
        os.seteuid(self.user)
        try:
            if request == "unpack":
                with tarfile.open(fileobj=io.BytesIO(data)) as tar:
                    tar.extraction_filter = getattr(tarfile, "tar_filter", None)  # Newer Pythons ask for one.
                    tar.extractall(self.root)
                self.noted = dict(self.files())
            elif request == "kill":
                with contextlib.suppress(ProcessLookupError):
                    os.kill(-1, signal.SIGKILL)  # Never this process itself.
            elif request == "changes":
                return self.changes()
            return b"{}"
        finally:
            os.seteuid(0)
            os.setegid(0)

    def files(self) -> Iterator[tuple[str, tuple[int, int, int]]]:
        """Plain files by path, with what changes when they do."""
        for folder, _, names in os.walk(self.root):
            for name in names:
                path = os.path.join(folder, name)
                try:
                    status = os.lstat(path)
                except OSError:
                    continue
                if stat.S_ISREG(status.st_mode):
                    yield os.path.relpath(path, self.root), (status.st_ino, status.st_size, status.st_ctime_ns)

    def changes(self) -> bytes:
        """A line of JSON with the lengths of changed files by path, `None` for one that is gone; then their bytes."""
        now = dict(self.files())
        found: dict[str, int | None] = {name: None for name in self.noted if name not in now}
        contents: list[tuple[str, bytes]] = []
        total = 0
        for name, status in sorted(now.items()):
            if self.noted.get(name) == status:
                continue
            content = self.read(os.path.join(self.root, name))
            if content is not None and len(contents) < _MOST_FILES and total + len(content) <= _MOST_BYTES:
                found[name] = len(content)
                contents.append((name, content))
                total += len(content)
            elif name in self.noted:
                found[name] = None
        contents.sort()
        return json.dumps(found).encode() + b"\n" + b"".join(content for _, content in contents)

    def read(self, path: str) -> bytes | None:
        """Content of a plain file, or `None` if it is none, too large or not to be read."""
        try:
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None
        with os.fdopen(file, "rb") as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST_FILE:
                return None
            return stream.read(_LARGEST_FILE)


def main() -> None:
    """Answer until the other side is gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # Whoever ends up here as an orphan is let go.
    keeper = Keeper(sys.argv[1], int(sys.argv[2]))
    keeper.noted = dict(keeper.files())
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    data = b""
    while True:
        answers.write(len(data).to_bytes(8, "big") + data)  # The first, an empty one, says that we are there.
        answers.flush()
        head = requests.read(8)
        if len(head) < 8:
            return
        line, _, rest = requests.read(int.from_bytes(head, "big")).partition(b"\n")
        try:
            data = keeper.answer(json.loads(line.decode()), rest)
        except (OSError, tarfile.TarError, ValueError) as error:
            data = json.dumps({"error": str(error)}).encode()


if __name__ == "__main__":
    main()
