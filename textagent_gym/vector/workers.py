"""The workers of a vector environment, as their owner sees them: processes that may be killed, or threads.

    owner --send--> queue of a worker --one message at a time--> worker process, several environments
    owner <--wait-- replies, in the order in which they come in <--one message a message--

A worker has at most one message under way, so neither side can block on a full pipe while the other does too.
A worker process that has died is replaced at once: its running episodes are answered as truncated.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from multiprocessing import connection as connections
from multiprocessing import util
from multiprocessing.process import BaseProcess
from typing import Any, Literal

import cloudpickle  # type: ignore[import-untyped]
from gymnasium import Space
from gymnasium.error import ClosedEnvironmentError

from textagent_gym.errors import InvalidOptionError, WorkerError
from textagent_gym.vector import worker as life
from textagent_gym.vector.requests import Answer, Failure, Reply, Request, Reset, Step
from textagent_gym.vector.worker import Connection, MakeEnv, Ready

Requests = list[tuple[int, Request]]
Kind = Literal["process", "thread"]
_DEATHS_IN_A_ROW = 3  # Without an answer in between: then the next one would not live either.
_SECONDS_TO_END = 5.0  # Time that a worker has to close its environments, before it is terminated.


@dataclass(slots=True, eq=False)
class _Worker:
    """One worker and what is under way with it."""

    slots: range
    make_envs: bytes | list[tuple[int, MakeEnv]]
    connection: Connection | None = None
    process: BaseProcess | None = None
    thread: threading.Thread | None = None
    starting: bool = True
    sent: Requests = field(default_factory=list)
    queue: deque[tuple[Requests, bytes]] = field(default_factory=deque)
    forgotten: bool = False  # What is under way was asked for by somebody who no longer waits.
    deaths: int = 0

    @property
    def busy(self) -> bool:
        return self.starting or bool(self.sent)


class Workers:
    """Sends requests to environments in workers and hands out the replies as they come in.

    Args:
        env_fns: make the environments; slot n is the n-th.
        workers: how many; each has an equal share of neighbouring slots.
        kind: "process", or "thread" for worlds that mostly wait (for a container, a server).
        context: how processes are started: "forkserver", "spawn" or "fork"; by default the first one that exists here.

    Raises:
        WorkerError: the workers die before they have made their environments.
        Exception: what a function of `env_fns` raised.
    """

    def __init__(
        self, env_fns: Sequence[MakeEnv], workers: int, kind: Kind = "process", context: str | None = None
    ) -> None:
        if not env_fns:
            raise InvalidOptionError("env_fns must hold at least one function that makes an environment")
        if not 1 <= workers <= len(env_fns):
            raise InvalidOptionError(f"workers must be from 1 to {len(env_fns)}, one an environment, got {workers}")
        if kind not in ("process", "thread"):
            raise InvalidOptionError(f'kind must be "process" or "thread", got {kind!r}')
        self._kind = kind
        self._context = _start_context(context)
        self._workers: list[_Worker] = []
        self._host: dict[int, _Worker] = {}
        self._last: dict[int, Answer] = {}  # Of the slots whose episode is running.
        self._lost: set[int] = set()  # Their episode went with its worker, and nobody has been told yet.
        self._done: list[tuple[int, Reply]] = []
        self._ready: Ready
        self._spaces: dict[int, tuple[tuple[Space[Any], Space[Any]], ...]] = {}
        for number in range(workers):
            slots = range(number * len(env_fns) // workers, (number + 1) * len(env_fns) // workers)
            makers = [(slot, env_fns[slot]) for slot in slots]
            self._workers.append(_Worker(slots, cloudpickle.dumps(makers) if kind == "process" else makers))
            self._host.update(dict.fromkeys(slots, self._workers[-1]))
        # Run by multiprocessing before it waits for its children at exit, and by `close`; whichever comes first.
        self._end = util.Finalize(self, _end, args=(self._workers,), exitpriority=10)
        try:
            for worker in self._workers:
                self._start(worker)
            while any(worker.starting for worker in self._workers):
                self._receive(None)
            if any(worker.connection is None for worker in self._workers):
                raise WorkerError(f"workers died {_DEATHS_IN_A_ROW} times in a row, making their environments")
        except BaseException:
            self.close()
            raise
        self.spaces = tuple(pair for slot in sorted(self._spaces) for pair in self._spaces[slot])
        self.metadata = self._ready.metadata
        self.render_mode = self._ready.render_mode

    @property
    def pids(self) -> tuple[int | None, ...]:
        """Process ids of the workers; `None` for threads."""
        return tuple(worker.process.pid if worker.process else None for worker in self._workers)

    def send(self, asked: Iterable[tuple[int, Request]]) -> None:
        """Ask; those for the same worker travel in one message and are answered together."""
        if not self._end.still_active():
            raise ClosedEnvironmentError("The environments have been closed.")
        messages: dict[int, Requests] = {}
        for slot, request in asked:
            if slot in self._lost and isinstance(request, Step):
                self._lost.remove(slot)
                self._done.append((slot, self._truncated(slot)))
                continue
            if isinstance(request, Reset):
                self._lost.discard(slot)
                self._last.pop(slot, None)
            messages.setdefault(self._host[slot].slots.start, []).append((slot, request))
        # All of them before any is sent: should one not be picklable, nothing has happened yet.
        for slot, message in [(slot, (requests, _pickled(requests))) for slot, requests in messages.items()]:
            self._host[slot].queue.append(message)
            self._flush(self._host[slot])

    def wait(self, timeout: float | None = None) -> list[tuple[int, Reply]]:
        """Replies, as (slot, reply), that have not been handed out; waits for one if there is none.

        Args:
            timeout: in seconds; after that the list is empty. `None` waits for ever.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._done:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not self._receive(left):
                break
        done, self._done = self._done, []
        return done

    def forget(self) -> None:
        """Nobody waits any longer for the replies to what has been asked so far."""
        self._done.clear()
        for worker in self._workers:
            worker.queue.clear()
            worker.forgotten = bool(worker.sent)

    def close(self) -> None:
        """End the workers and everything they have; again does nothing."""
        self._end()

    def _receive(self, timeout: float | None) -> bool:
        """Take in what has come; False if nothing did in time."""
        watched: dict[Any, _Worker] = {}
        for worker in self._workers:
            if worker.busy:
                watched[worker.connection] = worker
                if worker.process is not None:
                    watched[worker.process.sentinel] = worker
        if not watched:
            raise WorkerError("nothing was asked of any environment, so no answer will come")
        ready = connections.wait(list(watched), timeout)
        for worker in dict.fromkeys(watched[source] for source in ready):
            self._receive_from(worker)
        return bool(ready)

    def _receive_from(self, worker: _Worker) -> None:
        assert worker.connection is not None
        try:
            if not worker.connection.poll():
                raise EOFError  # The process has ended, and has left nothing to read.
            message = worker.connection.recv()
        except (EOFError, OSError):
            self._replace(worker)
            return
        except Exception as error:  # noqa: BLE001 (a value that can be pickled but not unpickled)
            message = [(slot, Failure.of(error)) for slot, _ in worker.sent]
        if worker.starting:
            if isinstance(message, Failure):
                message.throw(worker.slots.start)
            worker.starting = False
            self._ready = message
            self._spaces[worker.slots.start] = message.spaces
        else:
            worker.deaths = 0
            worker.sent = []
            for slot, reply in message:
                self._note(slot, reply)
                if not worker.forgotten:
                    self._done.append((slot, reply))
            worker.forgotten = False
        self._flush(worker)

    def _note(self, slot: int, reply: Reply) -> None:
        if isinstance(reply, Answer):
            if reply.ended:
                self._last.pop(slot, None)
            else:
                self._last[slot] = reply

    def _flush(self, worker: _Worker) -> None:
        """Send the next message, if nothing is under way."""
        if worker.busy or not worker.queue:
            return
        if worker.connection is None:
            self._start(worker)
            return
        worker.sent, data = worker.queue.popleft()
        try:
            worker.connection.send_bytes(data)
        except OSError:
            self._replace(worker)

    def _replace(self, worker: _Worker) -> None:
        """Start another worker in the place of one that has died, and say which episodes went with it."""
        asked = [] if worker.forgotten else list(worker.sent)
        asked += [item for requests, _ in worker.queue for item in requests]
        code = _bury(worker)
        worker.deaths += 1
        worker.sent, worker.forgotten = [], False
        worker.queue.clear()
        hopeless = worker.deaths >= _DEATHS_IN_A_ROW
        died = f"the worker of environments {worker.slots.start} to {worker.slots.stop - 1} died (exit code {code})"
        self._lost |= {slot for slot in worker.slots if slot in self._last}
        again: Requests = []
        for slot, request in asked:
            if isinstance(request, Reset) and not hopeless:
                again.append((slot, request))
            elif isinstance(request, Step) and slot in self._lost:
                self._lost.remove(slot)
                self._done.append((slot, self._truncated(slot)))
            else:
                error = WorkerError(f"{died}, {worker.deaths} times in a row" if hopeless else died)
                self._done.append((slot, Failure(error, str(error))))
        if worker.starting and hopeless:
            worker.starting = False  # Another one is started when something is asked of it.
            return
        if again:
            worker.queue.append((again, _pickled(again)))
        self._start(worker)

    def _truncated(self, slot: int) -> Answer:
        """The end of an episode whose worker has died: what was last seen of it."""
        last = self._last.pop(slot)
        info = {**last.info, "valid_action": False, "worker_restarted": True}
        return Answer(last.observation, 0.0, False, True, info)

    def _start(self, worker: _Worker) -> None:
        worker.starting = True
        worker.connection, theirs = multiprocessing.Pipe()
        if self._kind == "thread":
            worker.thread = threading.Thread(target=life.serve, args=(theirs, worker.make_envs), daemon=True)
            worker.thread.start()
            return
        # Not a daemon in the sense of multiprocessing: those may have no children, and worlds start compilers.
        worker.process = self._context.Process(
            target=life.main, args=(theirs, worker.make_envs), name=f"textagent-gym-{worker.slots.start}"
        )
        try:
            worker.process.start()
        finally:
            theirs.close()  # Else the end of the worker would not be seen at the other end.


def available_cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _start_context(context: str | None) -> Any:
    methods = multiprocessing.get_all_start_methods()
    if context is None:
        # Not "fork": it copies the locks that other threads (torch, tokenizers) hold at that moment.
        context = "forkserver" if "forkserver" in methods else "spawn"
        chosen = multiprocessing.get_context(context)
        if context == "forkserver":
            chosen.set_forkserver_preload(["__main__", life.__name__])  # Imported once, not by every worker.
        return chosen
    if context not in methods:
        raise InvalidOptionError(f"context must be one of {', '.join(methods)}, got {context!r}")
    return multiprocessing.get_context(context)


def _pickled(requests: Requests) -> bytes:
    return pickle.dumps(requests, pickle.HIGHEST_PROTOCOL)


def _bury(worker: _Worker) -> int | None:
    """Close what is left of a dead worker; its exit code."""
    if worker.connection is not None:
        worker.connection.close()
        worker.connection = None
    if worker.process is None:
        return None
    worker.process.kill()
    worker.process.join()
    code = worker.process.exitcode
    worker.process.close()
    worker.process = None
    return code


def _end(workers: list[_Worker]) -> None:
    """End the workers: they close their environments when told so; who does not in time is killed."""
    for worker in workers:
        if worker.connection is not None:
            # Closing is not enough: a forked worker has a copy of this end, its own included.
            with contextlib.suppress(OSError):
                worker.connection.send_bytes(_pickled([]))
            worker.connection.close()
            worker.connection = None
    deadline = time.monotonic() + _SECONDS_TO_END
    for worker in workers:
        left = max(0.0, deadline - time.monotonic())
        if worker.process is not None and worker.process.pid is not None:
            worker.process.join(left)
            _bury(worker)
        elif worker.thread is not None:
            worker.thread.join(left)
    workers.clear()
