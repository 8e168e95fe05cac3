"""Sandboxes in containers of Docker or Podman, on this machine or wherever the engine is.

Each reset takes a fresh container, started ahead of time. In it, the first process (`init`) unpacks the tree into a
temporary file system of limited size, the only place beside `/tmp` where anything can be written, and commands run as a
user without any capability, without a network, and without a way to get more. Programs are asked in further containers.
"""

from __future__ import annotations

import contextlib
import json
import os
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from textagent_gym.sandbox import changes, seccomp
from textagent_gym.sandbox.base import ROOT, Changes, Limits, Question, SandboxError, TreeChanges, filter_for
from textagent_gym.sandbox.changes import BY_NAME, ReadingOrder
from textagent_gym.sandbox.container.container import HOME, PYTHON, Container, Pool, Stream
from textagent_gym.sandbox.container.engine import connect, import_docker, version
from textagent_gym.sandbox.container.images import prepared, present
from textagent_gym.sandbox.layers import pack
from textagent_gym.sandbox.messages import ask_once, wait_until_ready
from textagent_gym.sandbox.registry import register_sandbox
from textagent_gym.sandbox.shell import Shell, ShellSandbox
from textagent_gym.sandbox.toolbox import TOOLS, VERSION, Toolbox, variables


class ContainerSandbox(ShellSandbox):
    """See the module, and `Sandbox` for what it does.

    Args:
        engine: "docker" (found by `DOCKER_HOST` and its like) or "podman" (by `CONTAINER_HOST`, or started).
        limits: limits on what commands may use.
        toolbox: Python packages and variables that commands find beside the tree.
        image: image with bash, git and Python 3.11 or later; `TEXTAGENT_SWE_IMAGE` by default, or else the official
            image of the Python that runs here.

    Raises:
        SandboxError: there is no such engine, or no such image.
    """

    def __init__(
        self, engine: str = "docker", limits: Limits | None = None, toolbox: Toolbox | None = None, image: str = ""
    ) -> None:
        super().__init__(limits, toolbox)
        self.name = engine
        self._engine = connect(engine)
        self._base = image or os.environ.get("TEXTAGENT_SWE_IMAGE") or f"docker.io/library/python:{VERSION}-bookworm"
        self._pool = Pool(self._engine, self.limits)
        # Also runs where nobody calls `close`.
        self._release = weakref.finalize(self, self._pool.close)
        self._container: Container | None = None
        self._is_quiet = False
        self._shell_filter = filter_for(self._machine, seccomp.SHELL_FAMILIES).hex()
        self._environment: dict[str, str] = {}

    @property
    def platform(self) -> str:
        """See `Sandbox.platform`: the image."""
        return f"image-{self._image().rpartition(':')[2][:12]}"

    def begin(self, layers: Sequence[Path], environment: Mapping[str, str], *, image: str = "") -> None:
        self._end_shell()
        if self._container is not None:
            self._pool.discard(self._container)
            self._container = None
        if image:
            self._container = self._pool.start(present(self._engine, image), holds_tree=True)
            self._environment = {"HOME": "/root", "PAGER": "cat", "TERM": "dumb", **environment}
        else:
            self._container = self._pool.take(self._image())
            self._environment = self._variables(environment)
        if layers or not image:
            self._container.ask("unpack", pack(layers, {}))

    def _image(self) -> str:
        return prepared(self._engine, present(self._engine, self._base), self.toolbox)

    def _variables(self, environment: Mapping[str, str]) -> dict[str, str]:
        return variables(self.toolbox, environment, home=HOME, tools=TOOLS)

    @property
    def filter(self) -> bytes:
        """See `Sandbox.filter`: for the engine's machine."""
        return filter_for(self._machine, seccomp.TESTED_FAMILIES)

    @property
    def _machine(self) -> str:
        return str(version(self._engine).get("Arch"))

    def _start_shell(self) -> Shell:
        assert self._container is not None
        # Of all processes, those of the agent go first where memory runs out.
        line = f"echo 900 2>/dev/null >/proc/self/oom_score_adj; cd {ROOT} 2>/dev/null; exec 2>&1; {PYTHON}"
        argv = ["/bin/sh", "-c", line, _shell_program(), self._shell_filter]
        stream = self._container.execute(argv, self._environment)
        return Shell(stream.stdin, stream.stdout, self.limits.output)

    def _kill_shell(self) -> None:
        self._is_quiet = False
        if self._container is not None:
            with contextlib.suppress(SandboxError):  # It has ended already.
                self._container.ask("kill")

    def _resume(self) -> None:
        if self._is_quiet and self._container is not None:
            self._is_quiet = False
            self._container.ask("resume")

    def _quiet(self) -> None:
        """End what the agent has started, and let its shell stand still."""
        if self._shell is None or self._is_quiet or self._container is None:
            return
        self._is_quiet = True
        if not json.loads(self._container.ask("quiet"))["quiet"]:
            self._end_shell()

    def changes(self, skip: Collection[str] = (), order: ReadingOrder = BY_NAME) -> TreeChanges:
        assert self._container is not None
        self._quiet()
        files, left_out = changes.decode(self._container.ask("changes", skip=list(skip), order=order))
        return TreeChanges(files, tuple(left_out))

    def ask(
        self, layers: Sequence[Path], files: Changes, *, program: Path, questions: Iterable[Question]
    ) -> Iterator[bytes | None]:
        self._quiet()
        source, packed = program.read_text(encoding="utf-8"), pack(layers, files)
        asked: _Asked | None = None
        try:
            for question in questions:
                if asked is None:
                    asked = _Asked(
                        self._pool.take(self._image()),
                        self._variables({}),
                        packed,
                        source=source,
                        filter=self.filter.hex(),
                    )
                try:
                    yield asked.answer(question)
                except SandboxError:  # The question has ended the container.
                    self._pool.discard(asked.container)
                    asked = None
                    yield None
        finally:
            if asked is not None:
                asked.end()
                self._pool.discard(asked.container)

    def close(self) -> None:
        with contextlib.suppress(SandboxError, OSError):
            self._end_shell()
        self._container = None
        self._release()


class _Asked:
    """A program in a container of its own that is asked about a tree.

    Args:
        container: fresh container.
        environment: variables of the program.
        packed: the tree, as an archive.
        source: source of the program.
        filter: filter of system calls, as hexadecimal digits.
    """

    def __init__(
        self, container: Container, environment: Mapping[str, str], packed: bytes, *, source: str, filter: str
    ) -> None:
        self.container = container
        self._environment = environment
        self._source = source
        self._filter = filter
        self._stream: Stream | None = None
        container.ask("tree", packed)

    def answer(self, question: Question) -> bytes | None:
        """See `Sandbox.ask`."""
        self.container.ask("question", changes.encode(question.files))
        if self._stream is None:
            line = (
                "echo 900 2>/dev/null >/proc/self/oom_score_adj; "
                'exec python -P -c "$0" 3 "$1" "$2" 3>&1 1>/dev/null 2>&1'
            )
            argv = ["bash", "-c", line, self._source, ROOT, self._filter]
            self._stream = self.container.execute(argv, self._environment)
            wait_until_ready(self._stream.stdout)
        answer = ask_once(self._stream.stdin, self._stream.stdout, question)
        if answer is None:
            self.end()
            self.container.ask("kill")
        return answer

    def end(self) -> None:
        """End the program."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None


@cache
def _shell_program() -> str:
    """A program that applies a filter of system calls, its first argument, and becomes bash."""
    return Path(seccomp.__file__).read_text(encoding="utf-8") + (
        "import os, signal, sys\n"
        "for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python has not left them alone.\n"
        "    signal.signal(number, signal.SIG_DFL)\n"
        "apply(bytes.fromhex(sys.argv[1]))\n"
        "os.execvp('bash', ['bash', '--noprofile', '--norc'])\n"
    )


@register_sandbox("docker", safe=True, images=True, needs=import_docker)
def _docker(limits: Limits, toolbox: Toolbox) -> ContainerSandbox:
    return ContainerSandbox("docker", limits, toolbox)


@register_sandbox("podman", safe=True, images=True, needs=import_docker)
def _podman(limits: Limits, toolbox: Toolbox) -> ContainerSandbox:
    return ContainerSandbox("podman", limits, toolbox)
