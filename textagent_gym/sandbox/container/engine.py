"""Engines of containers: Docker where it is said to be, Podman's service, started where none runs."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textagent_gym.errors import MissingDependencyError
from textagent_gym.sandbox.base import SandboxError

if TYPE_CHECKING:
    import docker

LABEL = "textagent-gym"
"""Label of every container of the suite; its value says which process of which machine made it."""
SECONDS = 120
"""Seconds for an answer of an engine; a large tree may be under way for as long."""
_SERVICE_SECONDS = 30  # Seconds until Podman's service listens.


def import_docker() -> None:
    """Raise `MissingDependencyError` where the engines' client is not installed."""
    try:
        import docker  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError("docker", "docker") from error


def connect(engine: str) -> docker.DockerClient:
    """The engine; Podman's service is started where none runs.

    Raises:
        SandboxError: it is not there.
    """
    return _connect(engine, os.getpid())


@cache
def _connect(engine: str, process: int) -> docker.DockerClient:
    """A connection of this process alone."""
    import_docker()
    import docker

    try:
        if engine == "docker":
            client = docker.from_env(timeout=SECONDS)
        else:
            client = docker.DockerClient(base_url=_podman(), timeout=SECONDS)
        client.ping()
        _sweep(client)
    except engine_errors() as error:
        raise SandboxError(f"no engine answers for sandbox={engine!r}: {error}") from error
    return client


def _sweep(engine: docker.DockerClient) -> None:
    """Remove containers of processes that were killed before they could start them; others end by themselves."""
    for container in engine.api.containers(all=True, filters={"label": LABEL}):
        host, _, process = container["Labels"][LABEL].rpartition("/")
        if host == socket.gethostname() and not Path("/proc", process).exists():
            with contextlib.suppress(*engine_errors()):
                engine.api.remove_container(container["Id"], force=True)


@cache
def version(engine: docker.DockerClient) -> dict[str, Any]:
    """What an engine says of itself, asked once: it starts programs to answer."""
    return dict(engine.version())


def is_podman(engine: docker.DockerClient) -> bool:
    """An engine is Podman, whatever its address."""
    return any("Podman" in part.get("Name", "") for part in version(engine).get("Components") or ())


def _podman() -> str:
    """Address of Podman's service, started for this process where there is none."""
    if address := os.environ.get("CONTAINER_HOST"):
        return address
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
    deadline = time.monotonic() + _SERVICE_SECONDS
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
def engine_errors() -> tuple[type[Exception], ...]:
    """What an engine's client raises."""
    import docker.errors
    import requests

    return (docker.errors.DockerException, requests.RequestException, OSError)
