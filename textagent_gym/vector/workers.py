"""The workers of a vector environment, as their owner sees them: processes or actors that may be killed, or threads.

    owner --send--> queue of a worker --one message at a time--> worker, several environments
    owner <--wait-- replies, in the order in which they come in <--one message per message---

A worker has at most one message under way, so neither side can block on a full pipe while the other does too.
A worker that has died, or has answered too late, is replaced at once: its running episodes are answered as broken.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import pickle
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import connection as connections
from multiprocessing import util
from typing import Any, Literal, get_args

import cloudpickle  # type: ignore[import-untyped]
from gymnasium import Space
from gymnasium.error import ClosedEnvironmentError

from textagent_gym.errors import InvalidOptionError, WorkerError
from textagent_gym.vector.messages import Answer, Failure, Reply, Request, Reset, Step
from textagent_gym.vector.transports import ProcessTransport, RayTransport, ThreadTransport, Transport, start_context
from textagent_gym.vector.worker import MakeEnv, Ready

Requests = list[tuple[int, Request]]
Kind = Literal["process", "thread", "ray"]
_DEATHS_IN_A_ROW = 3  # Without an answer in between: then the next one would not live either.
_SECONDS_TO_END = 5.0  # Time that a worker has to close its environments, before it is killed.
_SECONDS_TO_FINISH = 2.0  # Time that an interrupted step still has when a reset is waiting behind it.
_UNGUARDED = 86  # Exit code of a worker that would start workers while it imports the script; no shell or signal's.
_GUARD = (
    "Worker processes import the script that starts them, so it must make its environments under "
    '`if __name__ == "__main__":`'
)


@dataclass(slots=True, eq=False)
class _Worker:
    """One worker and what is under way with it."""

    slots: range
    start: Callable[[], Transport]
    transport: Transport | None = None
    starting: bool = False
    sent: Requests = field(default_factory=list)
    queue: deque[tuple[Requests, bytes]] = field(default_factory=deque)
    forgotten: bool = False  # What is under way was asked for by somebody who no longer waits.
    deadline: float | None = None  # When what is under way must have been answered, on the monotonic clock.
    deaths: int = 0

    @property
    def busy(self) -> bool:
        return self.starting or bool(self.sent)


class Workers:
    """Sends requests to environments in workers and hands out the replies as they come in.

    Args:
        env_fns: Functions that make the environments; slot n is the n-th.
        workers: Number of workers; each has an equal share of neighbouring slots.
        kind: "process", "thread" for worlds that mostly wait (for a container, a server), or "ray" for actors of a
            cluster.
        context: "forkserver", "spawn" or "fork"; by default the first one that exists here.
        time_limit: Seconds that a worker may take over a message, before it is replaced; `None` for no limit.

    Raises:
        WorkerError: the workers die before they have made their environments.
        Exception: what a function of `env_fns` raised.
    """

    def __init__(
        self,
        env_fns: Sequence[MakeEnv],
        workers: int,
        kind: Kind = "process",
        context: str | None = None,
        time_limit: float | None = None,
    ) -> None:
        if not env_fns:
            raise InvalidOptionError("env_fns must hold at least one function that makes an environment")
        if not 1 <= workers <= len(env_fns):
            raise InvalidOptionError(f"workers must be from 1 to {len(env_fns)}, one per environment, got {workers}")
        if kind not in get_args(Kind):
            raise InvalidOptionError(f"kind must be one of {', '.join(get_args(Kind))}, got {kind!r}")
        if time_limit is not None and not time_limit > 0:
            raise InvalidOptionError(f"time_limit must be a positive number of seconds, or None, got {time_limit!r}")
        start = start_context(context)
        if kind == "process" and getattr(multiprocessing.current_process(), "_inheriting", False):
            os._exit(_UNGUARDED)  # Read by the process that the user started, which says what is wrong.
        self._time_limit = time_limit
        self._workers: list[_Worker] = []
        self._host: dict[int, _Worker] = {}
        self._last: dict[int, Answer] = {}  # Last answers of the slots whose episode is running.
        self._lost: dict[int, str] = {}  # Why an episode went with its worker, while nobody has been told.
        self._done: list[tuple[int, Reply]] = []
        self._ready: Ready
        self._spaces: dict[int, tuple[tuple[Space[Any], Space[Any]], ...]] = {}
        for number in range(workers):
            slots = range(number * len(env_fns) // workers, (number + 1) * len(env_fns) // workers)
            makers = [(slot, env_fns[slot]) for slot in slots]
            self._workers.append(_Worker(slots, _starter(kind, makers, start)))
            self._host.update(dict.fromkeys(slots, self._workers[-1]))
        # Run by multiprocessing before it waits for its children at exit, and by `close`; whichever comes first.
        self._end = util.Finalize(self, _end, args=(self._workers,), exitpriority=10)
        try:
            for worker in self._workers:
                self._start(worker)
            while any(worker.starting for worker in self._workers):
                self._receive(None)
            if any(worker.transport is None for worker in self._workers):
                died = f"workers died {_DEATHS_IN_A_ROW} times in a row, making their environments"
                raise WorkerError(f"{died}. {_GUARD}." if kind == "process" else died)
        except BaseException:
            self.close()
            raise
        self.spaces = tuple(pair for slot in sorted(self._spaces) for pair in self._spaces[slot])
        self.metadata = self._ready.metadata
        self.render_mode = self._ready.render_mode

    @property
    def pids(self) -> tuple[int | None, ...]:
        """Process ids of the workers; `None` for threads."""
        return tuple(worker.transport.pid if worker.transport else None for worker in self._workers)

    def send(self, asked: Iterable[tuple[int, Request]]) -> None:
        """Ask; those for the same worker travel in one message and are answered together."""
        self._check_open()
        messages: dict[int, Requests] = {}
        for slot, request in asked:
            if slot in self._lost and isinstance(request, Step):
                self._done.append((slot, self._broken(slot)))
                continue
            if isinstance(request, Reset):
                self._lost.pop(slot, None)
                self._last.pop(slot, None)
                self._hurry(self._host[slot])
            messages.setdefault(self._host[slot].slots.start, []).append((slot, request))
        # All of them before any is sent: should one not be picklable, nothing has happened yet.
        for slot, message in [(slot, (requests, _pickled(requests))) for slot, requests in messages.items()]:
            self._host[slot].queue.append(message)
            self._flush(self._host[slot])

    def wait(self, timeout: float | None = None) -> list[tuple[int, Reply]]:
        """Replies, as (slot, reply), that have not been handed out; waits for one if none is there.

        Args:
            timeout: Seconds after which an empty list is returned; `None` waits for ever.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._done:
            self._receive(deadline)
            if deadline is not None and time.monotonic() >= deadline:
                break
        done, self._done = self._done, []
        return done

    def forget(self) -> None:
        """Nobody waits any longer for the replies to what has been asked so far."""
        self._done.clear()
        for worker in self._workers:
            worker.queue.clear()
            worker.forgotten = bool(worker.sent)

    def restart(self, slot: int) -> None:
        """Replace the worker of an environment, whatever it is doing, as if it had died."""
        self._check_open()
        worker = self._host[slot]
        if worker.sent and worker.transport is not None and worker.transport.has_message():
            self._receive_from(worker)  # What has been answered stays answered.
        self._replace(worker, "was restarted")

    def close(self) -> None:
        """End the workers and everything they have; again does nothing."""
        self._end()

    def _check_open(self) -> None:
        if not self._end.still_active():
            raise ClosedEnvironmentError("The environments have been closed.")

    def _receive(self, until: float | None) -> None:
        """Take in what comes, and replace who is late; return as soon as something happened, or at `until`."""
        watched: dict[Any, _Worker] = {}
        for worker in self._workers:
            if worker.busy and worker.transport is not None:
                watched.update(dict.fromkeys(worker.transport.sources, worker))
        if not watched:
            raise WorkerError("nothing was asked of any environment, so no answer will come")
        ends = [worker.deadline for worker in watched.values() if worker.deadline is not None]
        first = min([*ends, *([] if until is None else [until])], default=math.inf)
        ready = connections.wait(list(watched), None if first == math.inf else max(0.0, first - time.monotonic()))
        for worker in dict.fromkeys(watched[source] for source in ready):
            self._receive_from(worker)
        now = time.monotonic()
        for worker in dict.fromkeys(watched.values()):
            if worker.deadline is not None and worker.deadline <= now:
                late = "was interrupted" if worker.forgotten else f"gave no answer within {self._time_limit} seconds"
                self._replace(worker, late)

    def _receive_from(self, worker: _Worker) -> None:
        assert worker.transport is not None
        died = False
        try:
            message = worker.transport.receive()
        except (EOFError, OSError):
            died = True
        except Exception as error:  # noqa: BLE001 (a value that can be pickled but not unpickled)
            message = [(slot, Failure.of(error)) for slot, _ in worker.sent]
        if died:
            self._replace(worker)
            return
        if worker.starting:
            if isinstance(message, Failure):
                message.throw(worker.slots.start)
            worker.starting = False
            self._ready = message
            self._spaces[worker.slots.start] = message.spaces
        else:
            worker.deaths = 0
            worker.sent, worker.deadline = [], None
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
        if worker.transport is None:
            self._start(worker)
            return
        worker.sent, data = worker.queue.popleft()
        worker.deadline = None if self._time_limit is None else time.monotonic() + self._time_limit
        try:
            worker.transport.send(data)
        except OSError:
            self._replace(worker)

    def _hurry(self, worker: _Worker) -> None:
        """A reset comes after what was interrupted, which may be hanging."""
        if worker.forgotten:
            end = time.monotonic() + _SECONDS_TO_FINISH
            worker.deadline = end if worker.deadline is None else min(end, worker.deadline)

    def _replace(self, worker: _Worker, why: str | None = None) -> None:
        """Start another worker in the place of one that has died or has to, and say which episodes went with it.

        Args:
            worker: The worker to replace.
            why: What happened to it; `None` where it died by itself.
        """
        asked = [] if worker.forgotten else list(worker.sent)
        asked += [item for requests, _ in worker.queue for item in requests]
        code = None if worker.transport is None else worker.transport.end()
        cause = "" if worker.transport is None else worker.transport.cause
        if worker.starting and code == _UNGUARDED:
            worker.transport = None
            raise WorkerError(f"a worker began to start workers of its own. {_GUARD}.")
        how = cause if code is None else f"exit code {code}"
        why = why or (f"died ({how})" if how else "died")
        worker.transport = None
        worker.deaths += 1
        worker.sent, worker.forgotten, worker.deadline = [], False, None
        worker.queue.clear()
        hopeless = worker.deaths >= _DEATHS_IN_A_ROW
        self._lost |= {slot: f"its worker {why}" for slot in worker.slots if slot in self._last}
        again: Requests = []
        for slot, request in asked:
            if isinstance(request, Reset) and not hopeless:
                again.append((slot, request))
            elif isinstance(request, Step) and slot in self._lost:
                self._done.append((slot, self._broken(slot)))
            else:
                message = f"the worker of environments {worker.slots.start} to {worker.slots.stop - 1} {why}"
                error = WorkerError(f"{message}, {worker.deaths} times in a row" if hopeless else message, slot)
                self._done.append((slot, Failure(error, str(error))))
        if worker.starting and hopeless:
            worker.starting = False  # Another one is started at the next request.
            return
        if again:
            worker.queue.append((again, _pickled(again)))
        self._start(worker)

    def _broken(self, slot: int) -> Answer:
        """The end of an episode whose worker is gone: its last observation, and why it broke."""
        last = self._last.pop(slot)
        info = {**last.info, "valid_action": False, "broken": self._lost.pop(slot)}
        return Answer(last.observation, 0.0, False, True, info)

    def _start(self, worker: _Worker) -> None:
        worker.transport = worker.start()
        worker.starting = True


def available_cores() -> int:
    """Number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _starter(kind: Kind, makers: list[tuple[int, MakeEnv]], context: Any) -> Callable[[], Transport]:
    if kind == "thread":
        return partial(ThreadTransport, makers)
    if kind == "ray":
        return partial(RayTransport, cloudpickle.dumps(makers))
    return partial(ProcessTransport, cloudpickle.dumps(makers), context, f"textagent-gym-{makers[0][0]}")


def _pickled(requests: Requests) -> bytes:
    return pickle.dumps(requests, pickle.HIGHEST_PROTOCOL)


def _end(workers: list[_Worker]) -> None:
    """End the workers: they close their environments when told so; whoever does not in time is killed."""
    transports = [worker.transport for worker in workers if worker.transport is not None]
    for transport in transports:
        transport.say_goodbye()
    deadline = time.monotonic() + _SECONDS_TO_END
    for transport in transports:
        transport.join(max(0.0, deadline - time.monotonic()))
        transport.end()
    workers.clear()
