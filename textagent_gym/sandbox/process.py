"""No sandbox at all: a copy of the tree, and limits per process. For agents that one trusts, such as the oracle.

What is started ends with its caller, however that ends: each process has one end of a pipe, whose other end the caller
alone has, and has asked the kernel to end its process group when that is closed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import tempfile
import time
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from textagent_gym.sandbox.base import ROOT, Changes, Limits, Question, TreeChanges
from textagent_gym.sandbox.bubblewrap.processes import limit
from textagent_gym.sandbox.changes import BY_NAME, ReadingOrder, noted, noted_changes
from textagent_gym.sandbox.layers import copy_layers
from textagent_gym.sandbox.limits import ControlGroup, resource_limits
from textagent_gym.sandbox.messages import ask_once, wait_until_ready
from textagent_gym.sandbox.registry import refuse_image, register_sandbox
from textagent_gym.sandbox.shell import Shell, ShellSandbox
from textagent_gym.sandbox.toolbox import EXECUTABLE, Toolbox, packages_folder, variables
from textagent_gym.sandbox.writing import empty, write_files

_DEATH = 10.0  # Seconds for what was killed to be gone.


@dataclass(frozen=True, slots=True)
class _Program:
    """A program that waits for questions."""

    process: subprocess.Popen[bytes]
    stdin: int
    answers: int


@register_sandbox("process")
class ProcessSandbox(ShellSandbox):
    """See the module, and `Sandbox` for what it does. Commands can reach everything that the caller can."""

    name = "process"

    @property
    def platform(self) -> str:
        """See `Sandbox.platform`: tests may connect here."""
        return f"{super().platform}-connected"

    @property
    def filter(self) -> bytes:
        """None: nothing is kept in."""
        return b""

    def __init__(self, limits: Limits | None = None, toolbox: Toolbox | None = None) -> None:
        super().__init__(limits, toolbox)
        self._tools = packages_folder(self.toolbox)
        self._group = ControlGroup(self.limits)
        self._folder = Path(tempfile.mkdtemp(prefix="textagent-"))
        self._hangup, caller = os.pipe()
        # Also runs where nobody calls `close`.
        self._release = weakref.finalize(self, _release, (self._hangup, caller), self._group, self._folder)
        self._process: subprocess.Popen[bytes] | None = None
        self._environment: dict[str, str] = {}
        self._is_quiet = False
        self._noted: dict[str, tuple[int, int, int]] = {}

    @property
    def _root(self) -> Path:
        return self._folder / "testbed"

    def begin(self, layers: Sequence[Path], environment: Mapping[str, str], *, image: str = "") -> None:
        refuse_image(self.name, image)
        self._end_shell()
        remove(self._root)
        copy_layers(layers, self._root)
        self._noted = noted(str(self._root))
        self._environment = self._variables(self._root, environment)

    def _variables(self, root: Path, environment: Mapping[str, str]) -> dict[str, str]:
        tools = self._folder / "tools"
        if not tools.is_dir():
            (tools / "bin").mkdir(parents=True)
            (tools / "bin" / "python").symlink_to(EXECUTABLE)
            (tools / "packages").symlink_to(self._tools)
            (self._folder / "tmp").mkdir()
        values = variables(self.toolbox, environment, home=str(self._folder / "tmp"), tools=str(tools))
        return {name: value.replace(ROOT, str(root)) for name, value in values.items()}

    def _start_shell(self) -> Shell:
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        self._root.mkdir(exist_ok=True)  # An agent may have removed it.
        try:
            self._process = self._start(
                ["bash", "--noprofile", "--norc"], (theirs_in, theirs_out), self._root, self._environment
            )
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        return Shell(ours_in, ours_out, self.limits.output)

    def _kill_shell(self) -> None:
        if self._process is not None:
            self._kill(self._process)
            self._process = None
        self._is_quiet = False

    def _start(
        self,
        argv: list[str],
        descriptors: tuple[int, int],
        root: Path,
        environment: Mapping[str, str],
        answers: int | None = None,
    ) -> subprocess.Popen[bytes]:
        limits = resource_limits(
            self.limits, grouped=True
        )  # The caller's own processes count, so none on their number.

        # A file description of its own: the kernel notes whom to end there.
        hangup = os.open(f"/proc/self/fd/{self._hangup}", os.O_RDONLY | os.O_NONBLOCK)

        def prepare() -> None:
            fcntl.fcntl(hangup, fcntl.F_SETOWN, -os.getpgrp())
            fcntl.fcntl(hangup, fcntl.F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(hangup, fcntl.F_SETFL, os.O_NONBLOCK | os.O_ASYNC)
            for folder in self._group.folders:
                (folder / "cgroup.procs").write_text("0", encoding="ascii")
            for name, value in limits.items():
                limit(name, value)

        try:
            return subprocess.Popen(
                argv,
                stdin=descriptors[0],
                stdout=descriptors[1],
                stderr=descriptors[1],
                cwd=root,
                env=environment,
                start_new_session=True,
                preexec_fn=prepare,  # noqa: PLW1509 (it only writes files and sets limits)
                pass_fds=(hangup,) if answers is None else (hangup, answers),
            )
        finally:
            os.close(hangup)

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        """End a process and what it has started, as far as that can be found."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        self._kill_group({process.pid} if self._process is None else {process.pid, self._process.pid})
        process.wait()

    def _kill_group(self, spared: set[int]) -> None:
        """End all processes of the control group but some, and wait for their end."""
        kept = set(map(str, spared))
        for folder in self._group.folders[:1]:
            deadline = time.monotonic() + _DEATH
            while time.monotonic() < deadline:
                others = set((folder / "cgroup.procs").read_text(encoding="ascii").split()) - kept
                for pid in others:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
                if not others:
                    break
                time.sleep(0.01)

    def _resume(self) -> None:
        if self._is_quiet and self._process is not None:
            os.kill(self._process.pid, signal.SIGCONT)
        self._is_quiet = False

    def _quiet(self) -> None:
        """End what the agent has started, as far as that can be found, and let its shell stand still."""
        if self._process is not None and self._process.poll() is None and not self._is_quiet:
            self._is_quiet = True
            os.kill(self._process.pid, signal.SIGSTOP)
            self._kill_group({self._process.pid})

    def changes(self, skip: Collection[str] = (), order: ReadingOrder = BY_NAME) -> TreeChanges:
        self._quiet()
        files, left_out = noted_changes(str(self._root), self._noted, str(self._root), skip=skip, order=order)
        return TreeChanges(files, tuple(left_out))

    def ask(
        self, layers: Sequence[Path], files: Changes, *, program: Path, questions: Iterable[Question]
    ) -> Iterator[bytes | None]:
        """See `Sandbox.ask`; what a question has started may continue until the last one is answered."""
        self._quiet()
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        root = folder / "testbed"
        running: _Program | None = None
        try:
            for question in questions:
                remove(root)
                copy_layers(layers, root)
                write_files(str(root), files)
                write_files(str(root), question.files)
                running = running or self._start_program(program, folder, root)
                answer = ask_once(running.stdin, running.answers, question)
                if answer is None:
                    self._end_program(running)
                    running = None
                yield answer
        finally:
            if running is not None:
                self._end_program(running)
            remove(folder)

    def _start_program(self, program: Path, folder: Path, root: Path) -> _Program:
        theirs_in, ours_in = os.pipe()
        ours_answer, theirs_answer = os.pipe()
        silence = os.open(os.devnull, os.O_WRONLY)
        argv = [str(EXECUTABLE), "-P", str(program), str(theirs_answer), str(root), self.filter.hex()]
        try:
            process = self._start(argv, (theirs_in, silence), folder, self._variables(root, {}), theirs_answer)
        finally:
            for descriptor in (theirs_in, theirs_answer, silence):
                os.close(descriptor)
        wait_until_ready(ours_answer)
        return _Program(process, ours_in, ours_answer)

    def _end_program(self, running: _Program) -> None:
        os.close(running.stdin)
        os.close(running.answers)
        self._kill(running.process)

    def close(self) -> None:
        self._end_shell()
        self._release()


def _release(hangup: tuple[int, int], group: ControlGroup, folder: Path) -> None:
    for descriptor in hangup:
        os.close(descriptor)
    group.close()
    remove(folder)


def remove(folder: Path) -> None:
    """Remove a folder with everything in it, as far as that is possible."""
    with contextlib.suppress(OSError):
        empty(str(folder))
        folder.rmdir()
