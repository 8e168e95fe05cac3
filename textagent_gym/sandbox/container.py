"""Sandboxes in containers of Docker or Podman, on this machine or wherever the engine is.

Each reset takes a fresh container, started ahead of time. In it, the first process (`keeper`) unpacks the tree into a
temporary file system of limited size, the only place beside `/tmp` where anything can be written, and commands run as a
user without any capability, without a network, and without a way to get more. Tests are graded in further containers.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import os
import shutil
import socket
import subprocess
import tarfile
import tempfile
import threading
import time
import weakref
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textagent_gym.errors import MissingDependencyError
from textagent_gym.files import cache_folder
from textagent_gym.sandbox import keeper, seccomp, tree
from textagent_gym.sandbox.base import (
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
    filter_for,
    pack,
    wait_until_ready,
)
from textagent_gym.sandbox.bundle import bundle
from textagent_gym.sandbox.toolbox import TOOLS, VERSION, toolbox, variables

if TYPE_CHECKING:
    import docker

_USER = 1000
_HOME = "/tmp"
_LABEL = "textagent-gym"
_SPARE = 2
_SECONDS = 120
_STANDARD_OUTPUT = 1  # In the frames of a stream.
_PYTHON = (
    "for p in python3 /opt/miniconda3/bin/python3; do "
    'if command -v $p >/dev/null; then exec $p -I -S -X utf8 -c "$0" "$@"; fi; done; echo no python3 >&2'
)
"""Runs a Python program, the shell's "$0", with the image's own Python."""


class ContainerSandbox(ShellSandbox):
    """See the module, and `Sandbox` for what it does.

    Args:
        engine: "docker" (found by `DOCKER_HOST` and its like) or "podman" (by `CONTAINER_HOST`, or started).
        limits: limits on what commands may use.
        image: image with bash, git and Python 3.11 or later; `TEXTAGENT_SWE_IMAGE` by default, or else the official
            image of the Python that runs here.

    Raises:
        SandboxError: there is no such engine, or no such image.
    """

    def __init__(self, engine: str = "docker", limits: Limits | None = None, image: str = "") -> None:
        super().__init__(limits)
        self.name = engine
        self._engine = connect(engine)
        self._base = image or os.environ.get("TEXTAGENT_SWE_IMAGE") or f"docker.io/library/python:{VERSION}-bookworm"
        self._pool = _Pool(self._engine, self.limits)
        # Also runs where nobody calls `close`.
        self._release = weakref.finalize(self, self._pool.close)
        self._container: _Container | None = None
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
            self._container = self._pool.start(present(self._engine, image), own=True)
            self._environment = {"HOME": "/root", "PAGER": "cat", "TERM": "dumb", **environment}
        else:
            self._container = self._pool.take(self._image())
            self._environment = _variables(environment)
        if layers or not image:
            self._container.ask("unpack", pack(layers, {}))

    def _image(self) -> str:
        return prepared(self._engine, present(self._engine, self._base))

    @property
    def filter(self) -> bytes:
        """See `Sandbox.filter`: for the engine's machine."""
        return filter_for(self._machine, seccomp.TESTED_FAMILIES)

    @property
    def _machine(self) -> str:
        return str(self._engine.version().get("Arch"))

    def _start_shell(self) -> Shell:
        assert self._container is not None
        # Of all processes, those of the agent go first where memory runs out.
        line = f"echo 900 2>/dev/null >/proc/self/oom_score_adj; cd {ROOT} 2>/dev/null; exec 2>&1; {_PYTHON}"
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

    def changes(self, skip: Collection[str] = ()) -> TreeChanges:
        assert self._container is not None
        self._quiet()
        files, left_out = tree.decode(self._container.ask("changes", skip=list(skip)))
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
                    asked = _Asked(self._pool.take(self._image()), packed, source, self.filter.hex())
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
        container: a fresh one.
        packed: the tree.
        source: source of the program.
        filter: filter of system calls, as hexadecimal digits.
    """

    def __init__(self, container: _Container, packed: bytes, source: str, filter: str) -> None:
        self.container = container
        self._source = source
        self._filter = filter
        self._stream: _Stream | None = None
        container.ask("tree", packed)

    def answer(self, question: Question) -> bytes | None:
        """See `Sandbox.ask`."""
        self.container.ask("question", tree.encode(question.files))
        if self._stream is None:
            line = (
                "echo 900 2>/dev/null >/proc/self/oom_score_adj; "
                'exec python -P -c "$0" 3 "$1" "$2" 3>&1 1>/dev/null 2>&1'
            )
            argv = ["bash", "-c", line, self._source, ROOT, self._filter]
            self._stream = self.container.execute(argv, _variables({}))
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


class _Stream:
    """A connection to a process in a container: a file descriptor to write to, and one to read from."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._socket: socket.socket = getattr(connection, "_sock", connection)
        self._socket.settimeout(None)
        read_end, self.stdin = os.pipe()
        self.stdout, write_end = os.pipe()
        for work in (self._send, read_end), (self._receive, write_end):
            threading.Thread(target=work[0], args=work[1:], daemon=True).start()

    def _send(self, source: int) -> None:
        with contextlib.suppress(OSError), os.fdopen(source, "rb", buffering=0) as stream:
            while data := stream.read(1 << 16):
                self._socket.sendall(data)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _receive(self, target: int) -> None:
        """Frames: which stream, three zeros, the length in four bytes, the bytes. Podman sends all streams."""
        with contextlib.suppress(OSError), os.fdopen(target, "wb", buffering=0) as stream:
            data = b""
            while part := self._socket.recv(1 << 16):
                data += part
                while len(data) >= 8 and len(data) >= (end := 8 + int.from_bytes(data[4:8], "big")):
                    view = memoryview(data)[8:end] if data[0] == _STANDARD_OUTPUT else memoryview(b"")
                    while view:
                        view = view[stream.write(view) :]
                    data = data[end:]
        with contextlib.suppress(OSError):
            self._socket.close()
            if response := getattr(self._connection, "_response", None):
                response.close()

    def close(self) -> None:
        """End the connection."""
        for descriptor in (self.stdin, self.stdout):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)


class _Container:
    """A container that is running.

    Args:
        engine: client of the engine that runs the container.
        limits: limits of the container.
        image: image that the container is made of.
        own: whether the tree lies in the image, and is root's.
    """

    def __init__(self, engine: docker.DockerClient, limits: Limits, image: str, *, own: bool) -> None:
        from docker.types import Ulimit

        self._api = engine.api
        self._user = 0 if own else _USER
        memory = (limits.memory if own else limits.memory + limits.disk) << 20  # With what is written.
        space = f"rw,nosuid,nodev,exec,size={limits.disk << 20},mode=1777"
        ulimits = [Ulimit(name="nofile", soft=1024, hard=1024), Ulimit(name="core", soft=1, hard=1)]
        if is_podman(engine):  # It would ask for more processes than a machine may allow.
            ulimits.append(Ulimit(name="nproc", soft=4096, hard=4096))
        else:
            space += f",nr_inodes={limits.files}"  # Podman knows no such option.
        host = self._api.create_host_config(
            network_mode="none",
            ipc_mode="private",
            cap_drop=["ALL"],
            # Fewer than an engine gives by default, and for the first process: no command of an agent's user has any.
            cap_add=["SETUID", "SETGID", *(["CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL"] if own else [])],
            security_opt=["no-new-privileges"],
            read_only=not own,
            tmpfs=None if own else {ROOT: space, _HOME: space},
            mem_limit=memory,
            memswap_limit=memory,
            pids_limit=limits.processes,
            cpu_period=100_000,
            cpu_quota=int(limits.cpus * 100_000),
            shm_size=64 << 20,
            ulimits=ulimits,
            auto_remove=True,
        )
        made = self._api.create_container(
            image,
            entrypoint=["/bin/sh", "-c", _PYTHON, bundle(keeper, tree)],
            command=[ROOT, str(self._user)],
            user="0:0",
            stdin_open=True,
            working_dir="/",
            hostname="sandbox",
            labels={_LABEL: f"{socket.gethostname()}/{os.getpid()}"},
            host_config=host,
        )
        self.id: str = made["Id"]
        self._keeper: _Stream | None = None
        try:
            self._keeper = _Stream(self._api.attach_socket(self.id, params={"stdin": 1, "stdout": 1, "stream": 1}))
            self._api.start(self.id)
            wait_until_ready(self._keeper.stdout)
        except BaseException:  # Ctrl-C too must leave no container.
            self.remove()
            raise

    def ask(self, request: str, data: bytes = b"", **arguments: Any) -> bytes:
        """Ask the keeper."""
        assert self._keeper is not None
        message = json.dumps({"do": request, **arguments}).encode() + b"\n" + data
        answer = converse(self._keeper.stdin, self._keeper.stdout, message, _SECONDS)
        if answer is None:
            raise SandboxError("the container of the sandbox has ended")
        if answer.startswith(b'{"error": '):
            raise SandboxError(f"{request} failed in the container: {answer[:500].decode(errors='replace')}")
        return answer

    def execute(self, argv: list[str], environment: Mapping[str, str]) -> _Stream:
        """Start a program as the agent's user."""
        try:
            made = self._api.exec_create(
                self.id,
                argv,
                stdin=True,
                user=f"{self._user}:{self._user}",
                workdir="/",
                environment={**environment},
            )
            return _Stream(self._api.exec_start(made["Id"], socket=True))
        except _errors() as error:
            raise SandboxError(f"nothing can be started in the container: {error}") from error

    def remove(self) -> None:
        """End it; it may be gone already."""
        if self._keeper is not None:
            self._keeper.close()
        with contextlib.suppress(*_errors()):
            self._api.remove_container(self.id, force=True)


class _Pool:
    """Containers, some of them started before anybody asks for them."""

    def __init__(self, engine: docker.DockerClient, limits: Limits) -> None:
        self._engine = engine
        self._limits = limits
        self._spare: deque[Future[_Container]] = deque()
        self._live: set[_Container] = set()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="textagent-containers")

    def start(self, image: str, *, own: bool = False) -> _Container:
        """A container; with an image of its own, its tree comes from there, and it is root's."""
        try:
            made = _Container(self._engine, self._limits, image, own=own)
        except _errors() as error:
            raise SandboxError(f"no container of the image {image} can be started: {error}") from error
        self._live.add(made)
        return made

    def take(self, image: str) -> _Container:
        """A fresh container, and another one in its place."""
        while len(self._spare) <= _SPARE:
            self._spare.append(self._worker.submit(self.start, image))
        return self._spare.popleft().result()

    def discard(self, container: _Container) -> None:
        """End a container, some time soon."""
        self._worker.submit(self._remove, container)

    def _remove(self, container: _Container) -> None:
        container.remove()
        self._live.discard(container)

    def close(self) -> None:
        """End all of them."""
        for future in self._spare:
            future.cancel()
        self._worker.shutdown(wait=True)
        for container in list(self._live):
            self._remove(container)


def connect(engine: str) -> docker.DockerClient:
    """The engine; Podman's service is started where none runs.

    Raises:
        SandboxError: it is not there.
    """
    return _connect(engine, os.getpid())


@cache
def _connect(engine: str, process: int) -> docker.DockerClient:
    """A connection of this process alone."""
    try:
        import docker
    except ImportError as error:
        raise MissingDependencyError("docker", "docker") from error
    try:
        if engine == "docker":
            client = docker.from_env(timeout=_SECONDS)
        else:
            client = docker.DockerClient(base_url=_podman(), timeout=_SECONDS)
        client.ping()
        _sweep(client)
    except _errors() as error:
        raise SandboxError(f"no engine answers for sandbox={engine!r}: {error}") from error
    return client


def _sweep(engine: docker.DockerClient) -> None:
    """Remove containers of processes that were killed before they could start them; others end by themselves."""
    for found in engine.api.containers(all=True, filters={"label": _LABEL}):
        host, _, process = found["Labels"][_LABEL].rpartition("/")
        if host == socket.gethostname() and not Path("/proc", process).exists():
            with contextlib.suppress(*_errors()):
                engine.api.remove_container(found["Id"], force=True)


@cache
def is_podman(engine: docker.DockerClient) -> bool:
    """An engine is Podman, whatever its address."""
    return any("Podman" in part.get("Name", "") for part in engine.version().get("Components") or ())


def _podman() -> str:
    """Address of Podman's service, started for this process where there is none."""
    if found := os.environ.get("CONTAINER_HOST"):
        return found
    for folder in (os.environ.get("XDG_RUNTIME_DIR", ""), "/run"):
        path = Path(folder, "podman", "podman.sock")
        if folder and path.is_socket() and os.access(path, os.W_OK) and _listens(path):
            return f"unix://{path}"
    program = shutil.which("podman")
    if program is None:
        raise SandboxError("sandbox='podman': podman is not installed")
    folder = tempfile.mkdtemp(prefix="textagent-")
    path = Path(folder, "podman.sock")
    # It ends when our end of the pipe is closed, whatever becomes of this process.
    line = '"$0" system service --time=0 "unix://$1/podman.sock" </dev/null & read _; kill $!; wait; rm -rf "$1"'
    process = subprocess.Popen(
        ["/bin/sh", "-c", line, program, folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        start_new_session=True,  # Ctrl-C is for us.
    )
    atexit.register(_stop, process)
    deadline = time.monotonic() + 30
    while not _listens(path):
        if process.poll() is not None or time.monotonic() > deadline:
            raise SandboxError("sandbox='podman': its service does not start")
        time.sleep(0.05)
    return f"unix://{path}"


def _stop(service: subprocess.Popen[bytes]) -> None:
    assert service.stdin is not None
    service.stdin.close()
    service.wait()


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


@cache
def _errors() -> tuple[type[Exception], ...]:
    """What an engine's client raises."""
    import docker.errors
    import requests

    return (docker.errors.DockerException, requests.RequestException, OSError)


@cache
def present(engine: docker.DockerClient, image: str) -> str:
    """The id of an image, pulled if it is not here.

    Raises:
        SandboxError: it is available nowhere.
    """
    import docker.errors

    try:
        try:
            found = engine.images.get(image)
        except docker.errors.ImageNotFound:
            found = engine.images.pull(image)
    except _errors() as error:
        raise SandboxError(
            f"the image {image} is neither here nor can it be pulled: {error}. TEXTAGENT_SWE_IMAGE names another."
        ) from error
    return str(found.id)


@cache
def prepared(engine: docker.DockerClient, base: str) -> str:
    """The id of an image that has pytest over a base, built when it is first asked for."""
    tools = toolbox(cache_folder() / "swe")
    tag = f"textagent-swe:{tools.name}-{base.rpartition(':')[2][:12]}"
    import docker.errors

    try:
        with contextlib.suppress(docker.errors.ImageNotFound):
            return str(engine.images.get(tag).id)
        context = io.BytesIO()
        with tarfile.open(fileobj=context, mode="w") as tar:
            tar.add(tools, "packages")
            for name, text, mode in (
                (
                    "Dockerfile",
                    f"FROM {base}\nCOPY packages {TOOLS}/packages\nCOPY python {TOOLS}/bin/python\n",
                    0o644,
                ),
                ("python", '#!/bin/sh\nexec python3 "$@"\n', 0o755),
            ):
                member = tarfile.TarInfo(name)
                member.size, member.mode = len(text), mode
                tar.addfile(member, io.BytesIO(text.encode()))
        context.seek(0)
        image, _ = engine.images.build(fileobj=context, custom_context=True, tag=tag, rm=True, network_mode="none")
    except _errors() as error:
        raise SandboxError(f"no image can be built on {base}: {error}") from error
    return str(image.id)


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


def _variables(environment: Mapping[str, str]) -> dict[str, str]:
    return variables(environment, home=_HOME, root=ROOT, tools=TOOLS)
