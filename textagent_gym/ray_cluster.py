"""The Ray cluster that sandboxes and workers of environments live on.

It is the one that `ray.init` was called for, or that `RAY_ADDRESS` names, or else one on this machine alone. Its
machines have this suite installed.
"""

from __future__ import annotations

import os
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


def join_cluster() -> Any:
    """The module `ray`, after this process has joined the cluster.

    Raises:
        MissingDependencyError: Ray is not installed.
        ConnectionError: the cluster that `RAY_ADDRESS` names does not answer.
    """
    ray = import_ray()
    if not ray.is_initialized():
        # Left to itself, Ray would join whichever cluster was started last on this machine, also one that has ended.
        address = None if os.environ.get("RAY_ADDRESS") else "local"
        ray.init(address=address, log_to_driver=False, configure_logging=False)
    return ray


def cluster_cpus() -> int:
    """Number of CPUs of all machines of the cluster, at least 1.

    Raises:
        MissingDependencyError, ConnectionError: see `join_cluster`.
    """
    return max(1, int(join_cluster().cluster_resources().get("CPU", 1)))
