"""The one who holds a sandbox's mounts: a process in a user and mount namespace of its own.

It is started by `sandbox.py`, which sends it as a text (see `bundle`); it talks over a socket on standard input, and
ends when that is closed, and all mounts and processes with it. It imports nothing but the standard library and runs no
line that an agent wrote. Started by root, it becomes a user whom nobody else is before it does anything.

All its mounts lie on a small file system over `/sys`, which nobody here needs, under names that say nothing:

    system       what every box sees of this machine, read-only
    devices      the machine's devices that every box has; their dates would tell one box of another
    agent        the agent's tree: layers, what was written over them, and both together
    asked        the same for the tree that a program is asked about
    question     what is written over that for one question
    box          four places that are shared with the program's box: what is mounted there appears in it
"""

from __future__ import annotations

import array  # noqa: F401 (needed by `socket.recv_fds`; once root's folders cannot be read, it is too late)
import contextlib
import ctypes
import encodings.ascii  # noqa: F401 (as above)
import json
import os
import signal
import socket
import sys
from typing import Any

from textagent_gym.sandbox import changes, writing
from textagent_gym.sandbox.bubblewrap import mounts, processes, trees

_NEW_MOUNTS, _NEW_USERS = 0x00020000, 0x10000000  # CLONE_NEWNS, CLONE_NEWUSER
_PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 4, 36
PLACE = "/sys"
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
"""Devices that bubblewrap shows."""
ROOT = "/testbed"
_FILES_SIZE, _FILES = 256 << 20, 50_000
"""Room for what is written over a tree before anybody is asked about it: more than anybody sends."""
_USER_LIMITS = {"max_inotify_instances": 32, "max_inotify_watches": 8192, "max_fanotify_groups": 0}
"""What the kernel counts for each user: less than it would allow, so that enough is left for the others."""

_libc = ctypes.CDLL(None, use_errno=True)


def become_nobody(user: int) -> None:
    """Become a user whom nobody else is, without a way back."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    _libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)  # Or our own files in /proc would be root's.


def enter_namespaces() -> None:
    """Become root of a user namespace, with mounts of our own."""
    user, group = os.geteuid(), os.getegid()
    mounts.check(_libc.unshare(_NEW_USERS | _NEW_MOUNTS), "unshare")
    with contextlib.suppress(OSError):
        _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"0 {user} 1")
    _write("/proc/self/gid_map", f"0 {group} 1")
    mounts.make_private()
    mounts.mount("tmpfs", PLACE, "tmpfs", mounts.NOSUID | mounts.NODEV, "size=16m,mode=755")
    os.chdir(PLACE)
    for name in ("system", "devices", "agent", "asked", "question", "box"):
        os.mkdir(name)
    for name in DEVICES:
        open(f"devices/{name}", "wb").close()
        mounts.bind_read_only(f"/dev/{name}", f"devices/{name}")
    for name in ("box/tree", "box/tmp", "box/shm", "box/pts"):
        os.mkdir(name)
        mounts.bind(name, name)
        mounts.mount("none", name, None, mounts.SHARED, None)
    for name, value in _USER_LIMITS.items():
        with contextlib.suppress(OSError):
            _write(f"/proc/sys/user/{name}", str(value))


def _write(path: str, text: str) -> None:
    with open(path, "wb", buffering=0) as file:
        file.write(text.encode())


class Supervisor:
    """Answers requests; the name of each is that of a method.

    Args:
        line: socket that the requests come from.
    """

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._boxes = processes.Boxes()
        self._groups: dict[str, list[int]] = {}
        self._agent, self._asked = trees.MountedTree("agent"), trees.MountedTree("asked")
        self._given: list[int] = []

    def serve(self) -> None:
        """Answer until the other side is gone."""
        while True:
            message, self._given, _, _ = socket.recv_fds(self._line, 1 << 20, 64)
            if not message:
                break
            answer: dict[str, Any] = {}
            try:
                request = json.loads(message)
                answer = getattr(self, "do_" + request["do"])(request) or {}
            except Exception as error:  # noqa: BLE001 (whatever an agent has done to its tree)
                answer = {"error": f"{type(error).__name__}: {error}"}
            finally:
                for descriptor in self._given:
                    os.close(descriptor)
            data = answer.pop("data", None)
            sent = [] if data is None else [processes.in_memory(data)]
            socket.send_fds(self._line, [json.dumps(answer).encode()], sent)
            for descriptor in sent:
                os.close(descriptor)
        self._boxes.kill_all()

    def _sources(self, request: dict[str, Any]) -> list[str | int]:
        """What is to be mounted: paths, or else the descriptors that came with the request."""
        return list(request["sources"] or self._given)

    def _sent(self) -> dict[str, bytes | None]:
        """Files that came with a request."""
        with open(self._given[-1], "rb", closefd=False) as stream:
            stream.seek(0)
            return changes.decode(stream.read())[0]

    def do_groups(self, request: dict[str, Any]) -> None:
        """Keep descriptors by which processes enter control groups."""
        given = [os.dup(descriptor) for descriptor in self._given]
        for name, count in request["counts"].items():
            self._groups[name], given = given[:count], given[count:]

    def do_system(self, request: dict[str, Any]) -> None:
        """See `trees.make_system`."""
        trees.make_system(request, self._sources(request))

    def do_place(self, request: dict[str, Any]) -> None:
        """Let a file appear under a name of ours."""
        mounts.unmount(request["name"])  # First: what was there is not always ours to open.
        open(request["name"], "ab").close()
        mounts.bring(self._sources(request)[0], request["name"])

    def do_begin(self, request: dict[str, Any]) -> None:
        """A fresh tree for the agent."""
        self._agent.mount(self._sources(request), request["size"], request["files"])

    def do_ask(self, request: dict[str, Any]) -> None:
        """A tree for questions, with files over it, which come last of the descriptors."""
        self._end_question()
        self._asked.mount([*request["sources"]] or list(self._given[:-1]), _FILES_SIZE, _FILES)
        writing.write_files("asked/tree", self._sent())
        mounts.unmount("asked/tree")

    def do_question(self, request: dict[str, Any]) -> None:
        """The same tree, afresh, in the box of the program."""
        self._end_question()
        trees.mount_space("question", request["size"], request["files"])
        trees.mount_overlay("question", ["asked/upper", *self._asked.layers], "box/tree")
        writing.write_files("box/tree", self._sent())
        for name in ("tmp", "shm", "pts"):
            mounts.bind(f"question/{name}", f"box/{name}")

    def do_vacate(self, request: dict[str, Any]) -> None:
        """Take the tree of the last question away."""
        self._end_question()

    def do_done(self, request: dict[str, Any]) -> None:
        """Take everything away that questions were about."""
        self._end_question()
        mounts.unmount("asked")

    def _end_question(self) -> None:
        for name in ("tree", "tmp", "shm", "pts"):
            if trees.is_covered(f"box/{name}"):
                mounts.detach(f"box/{name}")
        mounts.unmount("question")

    def do_spawn(self, request: dict[str, Any]) -> dict[str, Any]:
        """Start a program."""
        return {"pid": self._boxes.spawn(request, self._given, self._groups.get(request["group"], []))}

    def do_kill(self, request: dict[str, Any]) -> None:
        """End a program."""
        self._boxes.kill(request["pid"])

    def do_quiet(self, request: dict[str, Any]) -> dict[str, Any]:
        """See `processes.quiet`."""
        return {"quiet": processes.quiet(request["pid"])}

    def do_resume(self, request: dict[str, Any]) -> None:
        """Let the first process of a box continue."""
        processes.resume(request["pid"])

    def do_changes(self, request: dict[str, Any]) -> dict[str, Any]:
        """What the agent has made of its tree."""
        order = changes.ReadingOrder(*request["order"])
        read = changes.overlay_changes(
            "agent/upper", "agent/tree", self._agent.layers, ROOT, skip=request["skip"], order=order
        )
        return {"data": changes.encode(*read)}


def main() -> None:
    """Set everything up, say so, and answer requests."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.umask(0o022)
    line = socket.socket(fileno=0)
    try:
        if sys.argv[1]:
            become_nobody(int(sys.argv[1]))
        enter_namespaces()
        line.send(b"{}")
    except OSError as error:
        line.send(json.dumps({"error": str(error)}).encode())
        return
    Supervisor(line).serve()


if __name__ == "__main__":
    main()
    sys.exit(0)
