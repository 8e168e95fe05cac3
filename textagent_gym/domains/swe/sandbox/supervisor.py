"""The one who holds a sandbox's mounts: a process in a user and mount namespace of its own.

It is started as a script by `bubblewrap.py`, talks over a socket on standard input, and ends when that is closed, and
all mounts and processes with it. It imports nothing but the standard library and runs no line that an agent wrote.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_PRIVATE, _MS_SHARED = 2, 4, 4096, 16384, 1 << 18, 1 << 20
_MNT_DETACH = 2
_PR_SET_CHILD_SUBREAPER = 36
ANSWER = 100
"""Number of the file descriptor that a program answers on."""

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def enter_namespaces(folder: str) -> None:
    """Become root of a user namespace, with mounts of our own; those below a folder reach programs that are running."""
    user, group = os.geteuid(), os.getegid()
    _check(_libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNS), "unshare")
    with contextlib.suppress(OSError):
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1", encoding="ascii")
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE, None)
    _mount(folder, folder, None, _MS_BIND, None)
    _mount("none", folder, None, _MS_SHARED, None)


def _mount(source: str, target: str, kind: str | None, flags: int, options: str | None) -> None:
    result = _libc.mount(
        source.encode(),
        target.encode(),
        kind and kind.encode(),
        ctypes.c_ulong(flags),
        options and options.encode(),
    )
    _check(result, f"mount {kind or ''} at {target}")


def mount_tree(slot: str, layers: list[str], size: int, files: int) -> None:
    """Mount a tree at a slot: what is written goes into a temporary file system of a limited size."""
    _mount("tmpfs", slot, "tmpfs", _MS_NOSUID | _MS_NODEV, f"size={size},nr_inodes={files},mode=755")
    for name in ("upper", "work", "merged", "tmp", "empty"):
        os.mkdir(f"{slot}/{name}")
    lower = ":".join(
        layer.replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,") for layer in layers or [f"{slot}/empty"]
    )
    options = f"lowerdir={lower},upperdir={slot}/upper,workdir={slot}/work,userxattr"
    _mount("overlay", f"{slot}/merged", "overlay", _MS_NOSUID | _MS_NODEV, options)


def unmount_tree(slot: str) -> None:
    """Take a slot's mounts away, and all that was written."""
    for target in (f"{slot}/merged", slot):
        _libc.umount2(target.encode(), _MNT_DETACH)


def limit(name: str, value: int) -> None:
    """Set a limit of this process for good; one that is lower already stays."""
    kind = getattr(resource, name)
    hard = resource.getrlimit(kind)[1]
    least = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (least, least))


class Children:
    """Processes that were started here."""

    def __init__(self) -> None:
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    def spawn(self, request: dict[str, Any], descriptors: list[int]) -> int:
        """Start a program; the first two descriptors are its input and output, a third becomes number `ANSWER`."""

        def prepare() -> None:
            for folder in request["groups"]:
                with open(f"{folder}/cgroup.procs", "w", encoding="ascii") as file:
                    file.write("0")
            for name, value in request["limits"].items():
                limit(name, value)

        # A number that nothing else here uses.
        extra = tuple(os.dup2(descriptor, ANSWER) for descriptor in descriptors[2:3])
        process = subprocess.Popen(
            request["argv"],
            stdin=descriptors[0],
            stdout=descriptors[1],
            stderr=descriptors[1],
            env={},
            preexec_fn=prepare,  # noqa: PLW1509 (there are no threads here)
            close_fds=True,
            pass_fds=extra,
        )
        for descriptor in extra:
            os.close(descriptor)
        self._running[process.pid] = process
        return process.pid

    def kill(self, pid: int) -> None:
        """End a program; what it runs in its own process namespace ends with it."""
        process = self._running.pop(pid, None)
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                for child in _children(pid):
                    os.kill(child, signal.SIGKILL)
            process.kill()
            process.wait()
        reap(block=False)

    def kill_all(self) -> None:
        for pid in list(self._running):
            self.kill(pid)
        reap(block=True)  # They have all been killed.


def reap(*, block: bool) -> None:
    """Let go of processes that have ended and whose parents have, too."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, 0 if block else os.WNOHANG)[0]:
            pass


def _children(pid: int) -> list[int]:
    """Of bubblewrap, the first process of the new process namespace: killing it ends everything in there."""
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]
    except OSError:
        return []


def main() -> None:
    """Answer requests until the other side is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    line = socket.socket(fileno=0)
    children = Children()
    try:
        enter_namespaces(sys.argv[1])
        line.send(b"{}")
    except OSError as error:
        line.send(json.dumps({"error": str(error)}).encode())
        return
    while True:
        message, descriptors, _, _ = socket.recv_fds(line, 1 << 20, 8)
        if not message:
            break
        answer: dict[str, Any] = {}
        try:
            request = json.loads(message)
            if request["do"] == "mount":
                unmount_tree(request["slot"])
                mount_tree(request["slot"], request["layers"], request["size"], request["files"])
            elif request["do"] == "unmount":
                unmount_tree(request["slot"])
            elif request["do"] == "spawn":
                answer["pid"] = children.spawn(request, descriptors)
            elif request["do"] == "kill":
                children.kill(request["pid"])
        except (OSError, subprocess.SubprocessError) as error:
            answer["error"] = str(error)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        line.send(json.dumps(answer).encode())
    children.kill_all()
    clean_up(sys.argv[1])


def clean_up(folder: str) -> None:
    """Remove the folder, whatever has become of the one who made it."""
    for name in os.listdir(folder):
        unmount_tree(f"{folder}/{name}")
        with contextlib.suppress(OSError):
            os.rmdir(f"{folder}/{name}")
    _libc.umount2(folder.encode(), _MNT_DETACH)
    with contextlib.suppress(OSError):
        os.rmdir(folder)


if __name__ == "__main__":
    main()
    sys.exit(0)
