"""Limits on memory, processes and CPUs: control groups where this machine lets us have one, else limits per process."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Mapping
from pathlib import Path

from textagent_gym.sandbox.base import Limits

_CGROUPS = Path("/sys/fs/cgroup")
_PERIOD = 100_000  # Microseconds.
_TCP_BUFFERS = 16 << 20
"""Bytes that connections of a group may hold: those of some tests with a server, and no burden to a machine."""
_OPTIONAL = (
    "memory.swap.max",
    "cpu.max",
    "memory.kmem.tcp.limit_in_bytes",
)  # Not every machine has them, or lends them to us.


class ControlGroup:
    """A control group of version 1 or 2 with the limits set, or none (`folders` is empty).

    Attributes:
        folders: folders of the group; a process joins by writing to `cgroup.procs` in each.
    """

    def __init__(self, limits: Limits) -> None:
        self.folders: list[Path] = []
        memory = limits.memory << 20
        name = f"textagent-{os.getpid()}-{secrets.token_hex(4)}"  # A process that was killed leaves its groups behind.
        try:
            lines = Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines()
        except OSError:
            return
        quota = int(limits.cpus * _PERIOD)
        wanted: dict[str, dict[str, int | str]] = {
            # Version 1 counts the buffers of connections apart, version 2 with all other memory.
            "memory": {"memory.limit_in_bytes": memory, "memory.kmem.tcp.limit_in_bytes": _TCP_BUFFERS},
            "pids": {"pids.max": limits.processes},
            "cpu": {"cpu.cfs_period_us": _PERIOD, "cpu.cfs_quota_us": quota},
        }
        for line in lines:
            _, controllers, path = line.split(":", 2)
            if not controllers:
                if (_CGROUPS / "cgroup.controllers").is_file():
                    self._make(
                        _CGROUPS / path.lstrip("/") / name,
                        {
                            "memory.max": memory,
                            "memory.swap.max": 0,
                            "pids.max": limits.processes,
                            "cpu.max": f"{quota} {_PERIOD}",
                        },
                    )
                continue
            for controller in controllers.split(","):
                if controller in wanted:
                    self._make(_CGROUPS / controller / path.lstrip("/") / name, wanted[controller])
        if not self.is_complete:
            self.close()

    @property
    def is_complete(self) -> bool:
        """Memory and processes are both limited."""
        files = {file for folder in self.folders for file in ("memory", "pids") if list(folder.glob(f"{file}.*"))}
        return files == {"memory", "pids"}

    def _make(self, folder: Path, values: Mapping[str, int | str]) -> None:
        try:
            folder.mkdir()
            for file, value in values.items():
                if (folder / file).exists() or file not in _OPTIONAL:
                    (folder / file).write_text(str(value), encoding="ascii")
        except OSError:
            with contextlib.suppress(OSError):
                folder.rmdir()
            return
        self.folders.append(folder)

    def open(self) -> list[int]:
        """Descriptors by which a process that may write nothing else enters the group; to be closed by the caller."""
        return [os.open(folder / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC) for folder in self.folders]

    def close(self) -> None:
        """Remove it; its processes have ended."""
        for folder in self.folders:
            for _ in range(100):
                try:
                    folder.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:  # The last process is still on its way out.
                    time.sleep(0.01)
        self.folders = []


def resource_limits(limits: Limits, *, grouped: bool) -> dict[str, int]:
    """Limits of each process, by their names in `resource`."""
    # With 1 and not 0, the kernel does not start this machine's program for core dumps, which would be root's.
    values = {"RLIMIT_CORE": 1, "RLIMIT_FSIZE": limits.disk << 20, "RLIMIT_NOFILE": 1024}
    if not grouped:
        values |= {"RLIMIT_AS": limits.memory << 20, "RLIMIT_NPROC": limits.processes}
    return values
