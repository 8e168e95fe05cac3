"""The way to one worker: a pipe, and at its other end a process, a thread, or a thread that speaks with a Ray actor."""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from multiprocessing.process import BaseProcess
from typing import Any

from textagent_gym.errors import InvalidOptionError, WorkerError
from textagent_gym.ray_cluster import join_cluster
from textagent_gym.vector import worker as life
from textagent_gym.vector.messages import Failure
from textagent_gym.vector.worker import MakeEnv

GOODBYE: list[Any] = []  # The message that tells a worker to close its environments and to end.
_CPUS_PER_WORKER = 1.0  # CPUs that a Ray cluster sets aside per worker: its environments act one after the other.
_SECONDS_TO_PLACE = 120.0  # Time that a Ray cluster has to find a machine for a worker, and to start it there.
_LONGEST_CAUSE = 300  # Characters of Ray's account of a lost worker; it goes on for pages.


class Transport(ABC):
    """One worker that runs from the moment when this is made, and the pipe to it.

    Attributes:
        pid: Process id of the worker; `None` for a thread, and for a worker on a cluster.
        cause: What is known of the worker's end beside its exit code; empty if nothing is.
    """

    pid: int | None = None
    cause: str = ""

    def __init__(self) -> None:
        self._connection, self._theirs = multiprocessing.Pipe()

    @property
    def sources(self) -> tuple[Any, ...]:
        """What `multiprocessing.connection.wait` watches: ready when there is a message, or the worker has ended."""
        return (self._connection,)

    def send(self, message: bytes) -> None:
        """Send a pickled message.

        Raises:
            OSError: the worker has ended.
        """
        self._connection.send_bytes(message)

    def has_message(self) -> bool:
        """Whether `receive` has something to return."""
        return self._connection.poll()

    def receive(self) -> Any:
        """The next message.

        Raises:
            EOFError: the worker has ended, and has left nothing to read.
        """
        if not self._connection.poll():
            raise EOFError
        return self._connection.recv()

    def say_goodbye(self) -> None:
        """Ask the worker to close its environments and to end, and listen no longer."""
        # Closing is not enough: a forked worker has a copy of this end, its own included.
        with contextlib.suppress(OSError):
            self._connection.send_bytes(pickle.dumps(GOODBYE))
        self._connection.close()

    @abstractmethod
    def join(self, timeout: float) -> None:
        """Wait for the worker to end, at most so many seconds."""

    @abstractmethod
    def end(self) -> int | None:
        """End the worker, whatever it is doing; its exit code, where it has one."""


class ThreadTransport(Transport):
    """A worker thread. Nothing can end one from outside: it is left alone, and ends with what it is doing.

    Args:
        make_envs: Slots and the functions that make their environments.
    """

    def __init__(self, make_envs: Sequence[tuple[int, MakeEnv]]) -> None:
        super().__init__()
        self._thread = threading.Thread(target=life.serve, args=(self._theirs, list(make_envs)), daemon=True)
        self._thread.start()

    def join(self, timeout: float) -> None:
        """Wait for the thread to end, at most so many seconds."""
        self._thread.join(timeout)

    def end(self) -> int | None:
        """Close the pipe: the thread closes its environments when it has finished what it is doing."""
        self.say_goodbye()
        return None


class ProcessTransport(Transport):
    """A worker process.

    Args:
        make_envs: Slots and the functions that make their environments, pickled.
        context: Context of `multiprocessing` that starts the process; see `start_context`.
        name: Name of the process.
    """

    def __init__(self, make_envs: bytes, context: Any, name: str) -> None:
        super().__init__()
        # Not a daemon in the sense of multiprocessing: those may have no children, and worlds start compilers.
        self._process: BaseProcess = context.Process(target=life.main, args=(self._theirs, make_envs), name=name)
        try:
            self._process.start()
        finally:
            self._theirs.close()  # Else the end of the worker would not be seen at the other end.
        self.pid = self._process.pid

    @property
    def sources(self) -> tuple[Any, ...]:
        """The pipe, and what becomes ready when the process ends."""
        return (self._connection, self._process.sentinel)

    def join(self, timeout: float) -> None:
        """Wait for the process to end, at most so many seconds."""
        self._process.join(timeout)

    def end(self) -> int | None:
        """Kill the process, if it still runs; its exit code."""
        self._connection.close()
        self._process.kill()
        self._process.join()
        code = self._process.exitcode
        self._process.close()
        return code


class RayTransport(Transport):
    """A worker on a machine of a Ray cluster; a thread here passes messages on to its actor.

    Args:
        make_envs: Slots and the functions that make their environments, pickled.

    Raises:
        ConnectionError: the cluster does not answer.
    """

    def __init__(self, make_envs: bytes) -> None:
        super().__init__()
        self._ray = join_cluster()
        actor = self._ray.remote(num_cpus=_CPUS_PER_WORKER, scheduling_strategy="SPREAD")(life.Envs)
        self._actor = actor.remote(make_envs)
        self._thread = threading.Thread(target=self._pass_on, daemon=True)
        self._thread.start()

    def _pass_on(self) -> None:
        ray, actor = self._ray, self._actor
        try:
            try:
                first = ray.get(actor.first.remote(), timeout=_SECONDS_TO_PLACE)
            except ray.exceptions.GetTimeoutError:
                why = f"the Ray cluster had no CPU to spare for a worker within {_SECONDS_TO_PLACE:g} seconds"
                first = pickle.dumps(Failure.of(WorkerError(why)))
            self._theirs.send_bytes(first)
            while reply := ray.get(actor.answer.remote(self._theirs.recv_bytes())):
                self._theirs.send_bytes(reply)
            ray.get(actor.close.remote())
        except (EOFError, OSError):
            pass  # Closed.
        except Exception as error:  # noqa: BLE001 (of whatever kind: the worker is lost, and its owner replaces it)
            self.cause = " ".join(str(error).split())[:_LONGEST_CAUSE]
        finally:
            self._theirs.close()

    def join(self, timeout: float) -> None:
        """Wait for the environments to be closed, at most so many seconds."""
        self._thread.join(timeout)

    def end(self) -> int | None:
        """End the actor."""
        self._connection.close()
        if self._ray.is_initialized():
            with contextlib.suppress(self._ray.exceptions.RayError):
                self._ray.kill(self._actor)
        return None


def start_context(method: str | None) -> Any:
    """How worker processes are started.

    Args:
        method: "forkserver", "spawn" or "fork"; `None` for the first one that exists on this system.

    Raises:
        InvalidOptionError: the method does not exist on this system.
    """
    methods = multiprocessing.get_all_start_methods()
    if method is None:
        # Not "fork": it copies the locks that other threads (torch, tokenizers) hold at that moment.
        method = "forkserver" if "forkserver" in methods else "spawn"
        context = multiprocessing.get_context(method)
        if method == "forkserver":
            context.set_forkserver_preload(["__main__", life.__name__])  # Imported once, not by every worker.
        return context
    if method not in methods:
        raise InvalidOptionError(f"context must be one of {', '.join(methods)}, got {method!r}")
    return multiprocessing.get_context(method)
