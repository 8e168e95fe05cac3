"""The one who holds a sandbox's mounts: a process in a user and mount namespace of its own.

It is started by `bubblewrap.py`, which sends it as a text (see `bundle`); it talks over a socket on standard input, and
ends when that is closed, and all mounts and processes with it. It imports nothing but the standard library and runs no
line that an agent wrote. Started by root, it becomes a user whom nobody else is before it does anything.

All its mounts lie on a small file system over `/sys`, which nobody here needs, under names that say nothing:

    system       what every box sees of this machine, read-only
    agent        the agent's tree: layers, what was written over them, and both together
    asked        the same for the tree that a program is asked about
    question     what is written over that for one question
    box          three places that are shared with the program's box: what is mounted there appears in it
"""

from __future__ import annotations

import array  # noqa: F401 (needed by `socket.recv_fds`; once root's folders cannot be read, it is too late)
import contextlib
import ctypes
import encodings.ascii  # noqa: F401 (as above)
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from typing import Any

from textagent_gym.sandbox import mounts, tree

_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWPID = 0x00020000, 0x10000000, 0x20000000
_MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_PRIVATE, _MS_SHARED = 2, 4, 4096, 16384, 1 << 18, 1 << 20
_MNT_DETACH = 2
_PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 4, 36
ANSWER = 100
"""Number of the file descriptor that a program answers on."""
FILTER = 101
"""Number of the file descriptor with the filter of system calls."""
PLACE = "/sys"
ROOT = "/testbed"
_FILES_SIZE, _FILES = 256 << 20, 50_000
"""Room for what is written over a tree before anybody is asked about it: more than anybody sends."""
_PATIENCE = 2.0  # Seconds until a process stands still, or its box is ended.
_DEATH = 10.0
"""Seconds for what was killed to be gone. Until then it counts, and whoever comes next may be refused processes."""
_USER_LIMITS = {"max_inotify_instances": 32, "max_inotify_watches": 8192, "max_fanotify_groups": 0}
"""What the kernel counts for each user: less than it would allow, so that enough is left for the others."""

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def become_nobody(user: int) -> None:
    """Become a user whom nobody else is, without a way back."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    _libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)  # Or our own files in /proc would be root's.


def enter_namespaces() -> None:
    """Become root of a user namespace, with mounts of our own."""
    user, group = os.geteuid(), os.getegid()
    _check(_libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNS), "unshare")
    with contextlib.suppress(OSError):
        _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"0 {user} 1")
    _write("/proc/self/gid_map", f"0 {group} 1")
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE, None)
    _mount("tmpfs", PLACE, "tmpfs", _MS_NOSUID | _MS_NODEV, "size=16m,mode=755")
    os.chdir(PLACE)
    for name in ("system", "agent", "asked", "question", "box"):
        os.mkdir(name)
    for name in ("box/tree", "box/tmp", "box/shm"):
        os.mkdir(name)
        _mount(name, name, None, _MS_BIND, None)
        _mount("none", name, None, _MS_SHARED, None)
    for name, value in _USER_LIMITS.items():
        with contextlib.suppress(OSError):
            _write(f"/proc/sys/user/{name}", str(value))


def _write(path: str, text: str) -> None:
    with open(path, "wb", buffering=0) as file:
        file.write(text.encode())


def _mount(source: str, target: str, kind: str | None, flags: int, options: str | None) -> None:
    result = _libc.mount(
        os.fsencode(source),
        os.fsencode(target),
        kind and kind.encode(),
        ctypes.c_ulong(flags),
        options and options.encode(),
    )
    _check(result, f"mount {kind or ''} at {target}")


def _unmount(target: str) -> None:
    while _libc.umount2(os.fsencode(target), _MNT_DETACH) == 0:
        pass


def bring(source: str | int, target: str) -> None:
    """Let a file or folder appear: a path of this machine, or a descriptor of a mount."""
    if isinstance(source, int):
        mounts.attach(source, target)
    else:
        _mount(source, target, None, _MS_BIND | _MS_REC, None)


def make_system(request: dict[str, Any], sources: list[str | int]) -> None:
    """Make what every box sees of this machine."""
    for name in request["folders"]:
        os.makedirs(f"system{name}", exist_ok=True)
    for name in request["files"]:
        os.makedirs(os.path.dirname(f"system{name}"), exist_ok=True)
        open(f"system{name}", "wb").close()
    for source, target in zip(sources, request["targets"], strict=True):
        bring(source, target)
    for name, target in request["links"].items():
        os.makedirs(os.path.dirname(f"system{name}"), exist_ok=True)
        os.symlink(target, f"system{name}")
    if request["hidden"]:
        os.mkdir("nothing")
        os.mkdir("nothing/here")
    for name in request["hidden"]:
        _mount("nothing/here", f"system{name}", None, _MS_BIND, None)


class Slot:
    """A tree: layers below, and a temporary file system of a limited size above, which holds all that is written.

    Args:
        name: name of its folder.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.layers: list[str] = []

    def mount(self, sources: list[str | int], size: int, files: int) -> None:
        """Mount the tree afresh.

        Args:
            sources: sources of the layers, the first of which hides the others.
            size: number of bytes that can be written.
            files: number of files that can be made.
        """
        self.layers = []
        mount_space(self.name, size, files)
        for number, source in enumerate(sources):
            layer = f"{self.name}/layers/{number}"
            os.mkdir(layer)
            bring(source, layer)
            self.layers.append(layer)
        mount_overlay(self.name, self.layers, f"{self.name}/tree")


def mount_space(name: str, size: int, files: int) -> None:
    """Mount a temporary file system in the place of the last one, and of all that was mounted there."""
    _unmount(name)
    _mount("tmpfs", name, "tmpfs", _MS_NOSUID | _MS_NODEV, f"size={size},nr_inodes={files},mode=755")
    for folder in ("upper", "work", "tree", "tmp", "shm", "layers"):
        os.mkdir(f"{name}/{folder}")


def mount_overlay(name: str, layers: list[str], target: str) -> None:
    """Mount layers, and what is written over them into a space, somewhere."""
    lower = ":".join(layers or [f"{name}/layers"])
    options = f"lowerdir={lower},upperdir={name}/upper,workdir={name}/work,userxattr"
    _mount("overlay", target, "overlay", _MS_NOSUID | _MS_NODEV, options)


def limit(name: str, value: int) -> None:
    """Set a limit of this process for good; one that is lower already stays."""
    kind = getattr(resource, name)
    hard = resource.getrlimit(kind)[1]
    least = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (least, least))


class Children:
    """Boxes that were started here."""

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
            program = _in_memory(bytes.fromhex(request["filter"]))
            extra.append(os.dup2(program, FILTER))
            os.close(program)
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
        for pid in list(self._running):
            self.kill(pid)
        reap(block=True)  # They have all been killed.


def _in_memory(data: bytes) -> int:
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
        is_alone = _is_alone(first) or (_kill_others(first) and _is_alone(first, deadline))
        if is_alone and _stands_still(first):
            return True
    return False


def _states(folder: str, skip: str = "") -> list[bytes]:
    """The states of processes or threads."""
    found = []
    for name in os.listdir(folder):
        if name.isdigit() and name != skip:
            with contextlib.suppress(OSError), open(f"{folder}/{name}/stat", "rb") as file:
                found.append(file.read().rpartition(b")")[2].split()[0])
    return found


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


def _kill_others(first: int) -> bool:
    """Kill all processes of a namespace but its first, at once: a grandchild of ours goes there to do it."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            namespace = os.open(f"/proc/{first}/ns/pid", os.O_RDONLY)
            if _libc.setns(namespace, _CLONE_NEWPID) == 0:  # There is no way back; whom we start now is there.
                grandchild = os.fork()
                if grandchild == 0:
                    os.kill(-1, signal.SIGKILL)
                    os._exit(0)
                status = os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1])
        finally:
            os._exit(abs(status))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class Supervisor:
    """Answers requests; the name of each is that of a method.

    Args:
        line: socket that the requests come from.
    """

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._children = Children()
        self._groups: dict[str, list[int]] = {}
        self._agent, self._asked = Slot("agent"), Slot("asked")
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
            sent = [] if data is None else [_in_memory(data)]
            socket.send_fds(self._line, [json.dumps(answer).encode()], sent)
            for descriptor in sent:
                os.close(descriptor)
        self._children.kill_all()

    def _sources(self, request: dict[str, Any]) -> list[str | int]:
        """What is to be mounted: paths, or else the descriptors that came with the request."""
        return list(request["sources"] or self._given)

    def _sent(self) -> dict[str, bytes | None]:
        """Files that came with a request."""
        with open(self._given[-1], "rb", closefd=False) as stream:
            stream.seek(0)
            return tree.decode(stream.read())[0]

    def do_groups(self, request: dict[str, Any]) -> None:
        """Keep descriptors by which processes enter control groups."""
        given = [os.dup(descriptor) for descriptor in self._given]
        for name, count in request["counts"].items():
            self._groups[name], given = given[:count], given[count:]

    def do_system(self, request: dict[str, Any]) -> None:
        """See `make_system`."""
        make_system(request, self._sources(request))

    def do_place(self, request: dict[str, Any]) -> None:
        """Let a file appear under a name of ours."""
        open(request["name"], "ab").close()
        _unmount(request["name"])
        bring(self._sources(request)[0], request["name"])

    def do_begin(self, request: dict[str, Any]) -> None:
        """A fresh tree for the agent."""
        self._agent.mount(self._sources(request), request["size"], request["files"])

    def do_ask(self, request: dict[str, Any]) -> None:
        """A tree for questions, with files over it, which come last of the descriptors."""
        self._end_question()
        self._asked.mount([*request["sources"]] or list(self._given[:-1]), _FILES_SIZE, _FILES)
        tree.write_files("asked/tree", self._sent())
        _unmount("asked/tree")

    def do_question(self, request: dict[str, Any]) -> None:
        """The same tree, afresh, in the box of the program."""
        self._end_question()
        mount_space("question", request["size"], request["files"])
        mount_overlay("question", ["asked/upper", *self._asked.layers], "box/tree")
        tree.write_files("box/tree", self._sent())
        for name in ("tmp", "shm"):
            _mount(f"question/{name}", f"box/{name}", None, _MS_BIND, None)

    def do_vacate(self, request: dict[str, Any]) -> None:
        """Take the tree of the last question away."""
        self._end_question()

    def do_done(self, request: dict[str, Any]) -> None:
        """Take everything away that questions were about."""
        self._end_question()
        _unmount("asked")

    def _end_question(self) -> None:
        for name in ("tree", "tmp", "shm"):
            if _is_covered(f"box/{name}"):
                _libc.umount2(f"box/{name}".encode(), _MNT_DETACH)
        _unmount("question")

    def do_spawn(self, request: dict[str, Any]) -> dict[str, Any]:
        """Start a program."""
        return {"pid": self._children.spawn(request, self._given, self._groups.get(request["group"], []))}

    def do_kill(self, request: dict[str, Any]) -> None:
        """End a program."""
        self._children.kill(request["pid"])

    def do_quiet(self, request: dict[str, Any]) -> dict[str, Any]:
        """See `quiet`."""
        return {"quiet": quiet(request["pid"])}

    def do_resume(self, request: dict[str, Any]) -> None:
        """Let the first process of a box continue."""
        if first := first_process(request["pid"]):
            _signal(first, signal.SIGCONT)

    def do_changes(self, request: dict[str, Any]) -> dict[str, Any]:
        """What the agent has made of its tree."""
        found = tree.overlay_changes("agent/upper", "agent/tree", self._agent.layers, ROOT, request["skip"])
        return {"data": tree.encode(*found)}


def _is_covered(name: str) -> bool:
    """Something is mounted over one of the places that are shared."""
    return os.stat(name).st_dev != os.stat("box").st_dev


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
