"""The first process of a container: unpacks trees, says what has become of them, and ends what runs there.

It is sent to the container as a text (see `bundle`) and runs with whatever Python 3.8 or later is in there. It answers
requests on standard input, each a line of JSON and some bytes, and ends when that is closed, and the container with it.
What it does to the agent's tree it does as the agent's user; a tree that programs are asked about is its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import json
import os
import signal
import stat
import sys
import tarfile
import time
from collections.abc import Iterator, Mapping
from typing import Any

from textagent_gym.sandbox import changes, writing

_TEMPORARY = ("/tmp", "/dev/shm")
_PATIENCE = 3.0  # Seconds until what is stopped stands still.
_DEATH = 10.0  # Seconds until what is killed has gone: it counts until then.
_PR_SET_DUMPABLE = 4


class Init:
    """Has the tree of a container.

    Args:
        root: root of the tree.
        user: number of the agent's user.
    """

    def __init__(self, root: str, user: int) -> None:
        self.root = root
        self.user = user
        self.noted = changes.noted(root)
        self.covered = Covered(root)

    def answer(self, request: dict[str, Any], data: bytes) -> bytes:
        """Do what is asked, and return the bytes of the answer; the name of each request is that of a method."""
        answer: bytes | None = getattr(self, "do_" + request["do"])(data, request)
        return answer or b"{}"

    @contextlib.contextmanager
    def as_user(self) -> Iterator[None]:
        """Be the agent's user."""
        os.setegid(self.user)
        os.seteuid(self.user)
        try:
            yield
        finally:
            os.seteuid(0)
            os.setegid(0)

    def do_unpack(self, data: bytes, request: Mapping[str, Any]) -> None:
        """The agent's tree."""
        with self.as_user():
            unpack(data, self.root)
            self.noted = changes.noted(self.root)

    def do_tree(self, data: bytes, request: Mapping[str, Any]) -> None:
        """A tree that programs are asked about; nobody else may write to it."""
        os.chmod(self.root, 0o755)
        unpack(data, self.root)

    def do_question(self, data: bytes, request: Mapping[str, Any]) -> None:
        """Make everything ready for a question: no file of the last one, and those of this one."""
        self.covered.take_back()
        with self.as_user():
            end_others()
            for folder in _TEMPORARY:
                writing.empty(folder)
        self.covered.put(changes.decode(data)[0])

    def do_kill(self, data: bytes, request: Mapping[str, Any]) -> None:
        """End all processes of the agent's user, and wait for their end."""
        deadline = time.monotonic() + _DEATH
        with self.as_user():
            while True:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(-1, signal.SIGKILL)  # Never this process itself.
                if not list(processes()) or time.monotonic() > deadline:
                    return
                time.sleep(0.001)

    def do_quiet(self, data: bytes, request: Mapping[str, Any]) -> bytes:
        """End all processes of the agent's user but the shell, which stands still then."""
        deadline = time.monotonic() + _PATIENCE
        with self.as_user():
            while time.monotonic() < deadline:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(-1, signal.SIGSTOP)  # At once, so that no fork escapes.
                alive = list(processes())
                others = [pid for pid, parent in alive if parent != 0]
                for pid in others:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGKILL)
                if not others and all(stands_still(pid) for pid, _ in alive):
                    return b'{"quiet": true}'
                time.sleep(0.001)
        self.do_kill(data, request)
        return b'{"quiet": false}'

    def do_resume(self, data: bytes, request: Mapping[str, Any]) -> None:
        """Let the shell continue."""
        with self.as_user(), contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGCONT)

    def do_changes(self, data: bytes, request: Mapping[str, Any]) -> bytes:
        """What has become of the agent's tree."""
        with self.as_user():
            order = changes.ReadingOrder(*request["order"])
            return changes.encode(
                *changes.noted_changes(self.root, self.noted, self.root, skip=request["skip"], order=order)
            )


class Covered:
    """Files that lie over a tree for a while.

    Args:
        root: root of the tree, which nobody else writes to.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self.names: list[str] = []
        self.new_folders: list[str] = []
        self.before: dict[str, tuple[int, bytes | str]] = {}

    def put(self, files: Mapping[str, bytes | None]) -> None:
        """Write files over the tree."""
        self.names = list(files)
        for name in files:
            parts = name.split("/")
            for count in range(1, len(parts)):
                parent = "/".join(parts[:count])
                if not os.path.lexists(os.path.join(self.root, parent)):
                    self.new_folders.append(parent)
                    break
                self._note(parent)
            for folder, folders, inner in os.walk(os.path.join(self.root, name)):
                for path in (*folders, *inner):
                    self._note(os.path.relpath(os.path.join(folder, path), self.root))
            self._note(name)
        writing.write_files(self.root, files)

    def _note(self, name: str) -> None:
        path = os.path.join(self.root, name)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                self.before.setdefault(name, (mode, os.readlink(path)))
            elif stat.S_ISREG(mode):
                with open(path, "rb") as stream:
                    self.before.setdefault(name, (mode, stream.read()))

    def take_back(self) -> None:
        """Make the tree what it was."""
        for name in (*self.names, *self.new_folders, *self.before):
            path = os.path.join(self.root, name)
            if os.path.isdir(path) and not os.path.islink(path):
                writing.empty(path)
                os.rmdir(path)
            else:
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    os.unlink(path)
        for name, (mode, content) in self.before.items():
            path = os.path.join(self.root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if isinstance(content, str):
                os.symlink(content, path)
                continue
            with open(path, "wb") as stream:
                stream.write(content)
            os.chmod(path, stat.S_IMODE(mode))
        self.names, self.new_folders, self.before = [], [], {}


def unpack(data: bytes, root: str) -> None:
    """Unpack an archive of ours."""
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        tar.extraction_filter = getattr(tarfile, "tar_filter", None)  # Newer Pythons ask for one.
        tar.extractall(root)


def processes() -> Iterator[tuple[int, int]]:
    """Processes but this one that have not ended, and their parents: 0 for what was started from outside."""
    for name in os.listdir("/proc"):
        if name.isdigit() and name != "1":
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                words = file.read().rpartition(b")")[2].split()
                if words[0] not in (b"Z", b"X"):
                    yield int(name), int(words[1])


def end_others() -> None:
    """End all processes of the user but those that were started from outside, and wait for their end."""
    deadline = time.monotonic() + _DEATH
    while time.monotonic() < deadline:
        others = [pid for pid, parent in processes() if parent != 0]
        if not others:
            return
        for pid in others:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)


def stands_still(pid: int) -> bool:
    """All threads of a process have been stopped, or it has ended."""
    states = set()
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{name}/stat", "rb") as file:
                states.add(file.read().rpartition(b")")[2].split()[0])
    return states <= {b"T", b"Z", b"X"}


def main() -> None:
    """Answer until the other side is gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # Orphans become our children, and end unnoticed.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)  # Nobody reads our memory, or writes to our descriptors.
    first = Init(sys.argv[1], int(sys.argv[2]))
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
            data = first.answer(json.loads(line.decode()), rest)
        except Exception as error:  # noqa: BLE001 (whatever an agent has done to its tree)
            data = json.dumps({"error": f"{type(error).__name__}: {error}"}).encode()


if __name__ == "__main__":
    main()
