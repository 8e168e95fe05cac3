"""One container that is running, and the streams to processes in it; and a pool that has some ready."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from textagent_gym.sandbox.base import ROOT, Limits, SandboxError
from textagent_gym.sandbox.bundle import bundle
from textagent_gym.sandbox.container import init
from textagent_gym.sandbox.container.engine import LABEL, SECONDS, engine_errors, is_podman
from textagent_gym.sandbox.messages import converse, wait_until_ready

if TYPE_CHECKING:
    import docker

USER = 1000
"""Number of the agent's user, as people have it; root is asked to keep out."""
HOME = "/tmp"
"""Folder for what is temporary, in memory like the tree."""
PYTHON = (
    "for p in python3 /opt/miniconda3/bin/python3; do "
    'if command -v $p >/dev/null; then exec $p -I -S -X utf8 -c "$0" "$@"; fi; done; echo no python3 >&2'
)
"""Runs a Python program, the shell's "$0", with the image's own Python."""
_SPARE = 2  # Containers that wait to be asked for: the next task's and the next question's.
_STANDARD_OUTPUT = 1  # In the frames of a stream.


class Stream:
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


class Container:
    """A container that is running.

    Args:
        engine: client of the engine that runs the container.
        limits: limits of the container.
        image: image that the container is made of.
        holds_tree: whether the tree lies in the image, and is root's.
    """

    def __init__(self, engine: docker.DockerClient, limits: Limits, image: str, *, holds_tree: bool) -> None:
        from docker.types import Ulimit

        self._api = engine.api
        self._user = 0 if holds_tree else USER
        memory = (limits.memory if holds_tree else limits.memory + limits.disk) << 20  # With what is written.
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
            cap_add=["SETUID", "SETGID", *(["CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL"] if holds_tree else [])],
            security_opt=["no-new-privileges"],
            read_only=not holds_tree,
            tmpfs=None if holds_tree else {ROOT: space, HOME: space},
            mem_limit=memory,
            memswap_limit=memory,
            pids_limit=limits.processes,
            cpu_period=100_000,
            cpu_quota=int(limits.cpus * 100_000),
            shm_size=64 << 20,
            ulimits=ulimits,
            auto_remove=True,
        )
        created = self._api.create_container(
            image,
            entrypoint=["/bin/sh", "-c", PYTHON, bundle(init)],
            command=[ROOT, str(self._user)],
            user="0:0",
            stdin_open=True,
            working_dir="/",
            hostname="sandbox",
            labels={LABEL: f"{socket.gethostname()}/{os.getpid()}"},
            host_config=host,
        )
        self.id: str = created["Id"]
        self._init: Stream | None = None
        try:
            self._init = Stream(self._api.attach_socket(self.id, params={"stdin": 1, "stdout": 1, "stream": 1}))
            self._api.start(self.id)
            wait_until_ready(self._init.stdout)
        except BaseException:  # Ctrl-C too must leave no container.
            self.remove()
            raise

    def ask(self, request: str, data: bytes = b"", **arguments: Any) -> bytes:
        """Ask the first process."""
        assert self._init is not None
        message = json.dumps({"do": request, **arguments}).encode() + b"\n" + data
        answer = converse(self._init.stdin, self._init.stdout, message, SECONDS)
        if answer is None:
            raise SandboxError("the container of the sandbox has ended")
        if answer.startswith(b'{"error": '):
            raise SandboxError(f"{request} failed in the container: {answer[:500].decode(errors='replace')}")
        return answer

    def execute(self, argv: list[str], environment: Mapping[str, str]) -> Stream:
        """Start a program as the agent's user."""
        try:
            created = self._api.exec_create(
                self.id,
                argv,
                stdin=True,
                user=f"{self._user}:{self._user}",
                workdir="/",
                environment={**environment},
            )
            return Stream(self._api.exec_start(created["Id"], socket=True))
        except engine_errors() as error:
            raise SandboxError(f"nothing can be started in the container: {error}") from error

    def remove(self) -> None:
        """End it; it may be gone already."""
        if self._init is not None:
            self._init.close()
        with contextlib.suppress(*engine_errors()):
            self._api.remove_container(self.id, force=True)


class Pool:
    """Containers, some of them started before anybody asks for them."""

    def __init__(self, engine: docker.DockerClient, limits: Limits) -> None:
        self._engine = engine
        self._limits = limits
        self._spare: deque[Future[Container]] = deque()
        self._live: set[Container] = set()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="textagent-containers")

    def start(self, image: str, *, holds_tree: bool = False) -> Container:
        """A container; with an image of its own, its tree comes from there, and it is root's."""
        try:
            container = Container(self._engine, self._limits, image, holds_tree=holds_tree)
        except engine_errors() as error:
            raise SandboxError(f"no container of the image {image} can be started: {error}") from error
        self._live.add(container)
        return container

    def take(self, image: str) -> Container:
        """A fresh container, and another one in its place."""
        while len(self._spare) <= _SPARE:
            self._spare.append(self._worker.submit(self.start, image))
        return self._spare.popleft().result()

    def discard(self, container: Container) -> None:
        """End a container, some time soon."""
        self._worker.submit(self._remove, container)

    def _remove(self, container: Container) -> None:
        container.remove()
        self._live.discard(container)

    def close(self) -> None:
        """End all of them."""
        for future in self._spare:
            future.cancel()
        self._worker.shutdown(wait=True)
        for container in list(self._live):
            self._remove(container)
