"""Processes of boxes, seen from the supervisor: started, stopped, ended with all that they have started.

Sent as a text with the supervisor (see `bundle`), so it imports nothing but the standard library.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import resource
import signal
import subprocess
import time
from typing import Any

_NAMESPACES = {"net": 0x40000000, "mnt": 0x00020000, "pid": 0x20000000}
"""Namespaces that a process of ours enters in a box, by their names in /proc, with flags of <linux/sched.h>."""
ANSWER = 100
"""Number of the file descriptor that a program answers on: none that is in use."""
FILTER = 101
"""Number of the file descriptor with the filter of system calls."""
_PATIENCE = 2.0  # Seconds until a process stands still, or its box is ended.
_LEFT = 16
"""Processes that may have ended in a box without its first one's notice; without control groups, whoever asks for
processes next may be refused them because of those."""
_DEATH = 10.0
"""Seconds for what was killed to be gone. Until then it counts, and whoever comes next may be refused processes."""

_libc = ctypes.CDLL(None, use_errno=True)


def limit(name: str, value: int) -> None:
    """Set a limit of this process for good; one that is lower already stays."""
    kind = getattr(resource, name)
    hard = resource.getrlimit(kind)[1]
    least = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (least, least))


class Boxes:
    """Boxes that were started here, by the process that bubblewrap is."""

    def __init__(self) -> None:
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    def spawn(self, request: dict[str, Any], descriptors: list[int], groups: list[int]) -> int:
        """Start a program; the first two descriptors are its input and output, a third becomes number `ANSWER`."""

        def prepare() -> None:
            for group in groups:
                os.write(group, b"0")
            for name, value in request["limits"].items():
                limit(name, value)

        # Numbers that nothing else here uses.
        extra = [os.dup2(descriptor, ANSWER) for descriptor in descriptors[2:3]]
        if request["filter"]:
            program = in_memory(bytes.fromhex(request["filter"]))
            extra.append(os.dup2(program, FILTER))
            os.close(program)
        process = subprocess.Popen(
            request["argv"],
            stdin=descriptors[0],
            stdout=descriptors[1],
            stderr=descriptors[1],
            env=request["environment"],
            preexec_fn=prepare,  # noqa: PLW1509 (there are no threads here)
            close_fds=True,
            pass_fds=extra,
        )
        for descriptor in extra:
            os.close(descriptor)
        self._running[process.pid] = process
        return process.pid

    def kill(self, pid: int) -> None:
        """End a box and everything in it."""
        process = self._running.pop(pid, None)
        if process is not None:
            first = first_process(pid)
            if first:
                _signal(first, signal.SIGKILL)
            process.kill()
            process.wait()
            if first:
                wait_for(first)
        reap(block=False)

    def kill_all(self) -> None:
        """End all boxes."""
        for pid in list(self._running):
            self.kill(pid)
        reap(block=True)  # They have all been killed.


def in_memory(data: bytes) -> int:
    """A descriptor of a file in memory that is read from its beginning."""
    descriptor = os.memfd_create("data")
    with open(descriptor, "wb", closefd=False) as stream:
        stream.write(data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def wait_for(first: int) -> None:
    """Wait until the first process of a box is gone, which has been killed: it is the last one to go."""
    deadline = time.monotonic() + _DEATH
    with contextlib.suppress(ChildProcessError):  # The one who started it has seen its end.
        while os.waitpid(first, os.WNOHANG)[0] == 0 and time.monotonic() < deadline:
            time.sleep(0.0005)


def reap(*, block: bool) -> None:
    """Let go of processes that have ended and whose parents have, too."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, 0 if block else os.WNOHANG)[0]:
            pass


def first_process(pid: int) -> int:
    """The first process of a box; killing it ends everything in there. 0 if it has ended."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:
            return int((file.read().split() or [b"0"])[0])
    except OSError:
        return 0


def quiet(pid: int) -> bool:
    """End every process of a box but the first, which stands still from then on.

    That one is stopped, then all others are killed by one call that no fork escapes, and then nobody is left who could
    have let it continue: so if it still stands still, it has since it was stopped.

    Returns:
        whether it worked; if not, the box is to be ended.
    """
    first = first_process(pid)
    if not first:
        return False
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        _signal(first, signal.SIGSTOP)
        while not _stands_still(first):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.0005)
        is_alone = _is_alone(first) or (_kill_others(first, deadline) and _is_alone(first, deadline))
        if is_alone and _stands_still(first):
            with contextlib.suppress(OSError):  # It has ended after all.
                return len(_states(f"/proc/{first}/root/proc", skip="1")) <= _LEFT
    return False


def resume(pid: int) -> None:
    """Let the first process of a box continue."""
    if first := first_process(pid):
        _signal(first, signal.SIGCONT)


def _states(folder: str, skip: str = "") -> list[bytes]:
    """The states of processes or threads."""
    states = []
    for name in os.listdir(folder):
        if name.isdigit() and name != skip:
            with contextlib.suppress(OSError), open(f"{folder}/{name}/stat", "rb") as file:
                states.append(file.read().rpartition(b")")[2].split()[0])
    return states


def _stands_still(first: int) -> bool:
    try:
        states = _states(f"/proc/{first}/task")
    except OSError:
        return False
    return bool(states) and all(state in (b"T", b"Z", b"X") for state in states)


def _is_alone(first: int, deadline: float = 0.0) -> bool:
    """No other process of its namespace is running; wait for those that are about to end."""
    while True:
        try:
            states = _states(f"/proc/{first}/root/proc", skip="1")
        except OSError:
            return False
        if all(state in (b"Z", b"X") for state in states):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.0005)


def _kill_others(first: int, deadline: float) -> bool:
    """Kill all processes of a namespace but its first, at once: a grandchild of ours goes there to do it.

    Until then they see that one, and may stop it: what /proc tells about it is what it tells about them, and nobody
    waits for it longer than until the deadline.
    """
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if _enter(first):  # There is no way back; whom we start now is there.
                grandchild = os.fork()
                if grandchild == 0:
                    os.kill(-1, signal.SIGKILL)
                    os._exit(0)
                status = _wait_until(grandchild, deadline)
        finally:
            os._exit(abs(status))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _enter(first: int) -> bool:
    """Enter namespaces of a box with this process, and the one of processes with those that it starts."""
    opened = {name: os.open(f"/proc/{first}/ns/{name}", os.O_RDONLY) for name in _NAMESPACES}
    return all(_libc.setns(opened[name], flag) == 0 for name, flag in _NAMESPACES.items())


def _wait_until(child: int, deadline: float) -> int:
    """Exit code of a child, which is killed at a deadline."""
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            deadline = math.inf
        time.sleep(0.0002)
