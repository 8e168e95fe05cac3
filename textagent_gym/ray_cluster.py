"""The Ray cluster that sandboxes and workers of environments live on.

It is the one that `ray.init` was called for, or that `RAY_ADDRESS` names, or else one on this machine alone. Its
machines have this suite installed.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from textagent_gym.errors import MissingDependencyError


def import_ray() -> Any:
    """The module `ray`.

    Raises:
        MissingDependencyError: it is not installed.
    """
    try:
        import ray
    except ImportError as error:
        raise MissingDependencyError("ray", "ray") from error
    return ray


@contextmanager
def kept_sigterm() -> Iterator[None]:
    """Set the handler of SIGTERM again that Ray replaces as a process joins a cluster.

    Ray's raises `SystemExit` wherever the main thread is, which a run takes for an error of what it was doing.
    """
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        # `None`: it was not set from Python, and cannot be set again.
        if handler is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


def join_cluster() -> Any:
    """The module `ray`, after this process has joined the cluster.

    SIGTERM does in this process what it did before.

    Raises:
        MissingDependencyError: Ray is not installed.
        ConnectionError: the cluster that `RAY_ADDRESS` names does not answer.
    """
    ray = import_ray()
    if not ray.is_initialized():
        # Left to itself, Ray would join whichever cluster was started last on this machine, also one that has ended.
        address = None if os.environ.get("RAY_ADDRESS") else "local"
        with kept_sigterm():
            ray.init(address=address, log_to_driver=False, configure_logging=False)
    return ray


def cluster_cpus() -> int:
    """Number of CPUs of all machines of the cluster, at least 1.

    Raises:
        MissingDependencyError, ConnectionError: see `join_cluster`.
    """
    return max(1, int(join_cluster().cluster_resources().get("CPU", 1)))
