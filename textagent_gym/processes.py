"""Processes that leave Ctrl-C to their caller and do not outlive it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache
from queue import SimpleQueue
from typing import Any

_ORPHAN_CHECK_SECONDS = 1.0  # Between two looks at whether the caller of a worker still lives.


def worker_processes(count: int) -> ProcessPoolExecutor:
    """A pool of worker processes, spawned and not forked, for the caller may hold threads and locks."""
    context = multiprocessing.get_context("spawn")
    return _Pool(count, mp_context=context, initializer=_follow, initargs=(os.getpid(),))


class _Pool(ProcessPoolExecutor):
    """Starts its processes where something is submitted: deaf to Ctrl-C, until they ignore it."""

    def submit(self, *call: Any, **kwargs: Any) -> Future[Any]:
        if not hasattr(signal, "pthread_sigmask"):
            return super().submit(*call, **kwargs)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return super().submit(*call, **kwargs)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def kill_on_error(pool: ProcessPoolExecutor) -> Iterator[None]:
    """Kill the workers of a pool where the block ends by an error, such as Ctrl-C: what they do may have no end."""
    others = set(multiprocessing.active_children())
    try:
        yield
    except BaseException:
        for process in set(multiprocessing.active_children()) - others:
            process.kill()
        pool.shutdown(wait=False, cancel_futures=True)
        raise


def _follow(caller: int) -> None:
    """In a worker: leave Ctrl-C to the caller, and end when the caller ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    def watch() -> None:
        while os.getppid() == caller:
            time.sleep(_ORPHAN_CHECK_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def start(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, which Linux kills when this process ends, however that ends.

    A pipe that ends with this process does not do for that: a program reads it late, or never, and whoever was forked
    meanwhile keeps it open. On other systems than Linux, the program is only started.

    Args:
        command: path of the program, and its arguments.
        options: keywords, those of `subprocess.Popen`.

    Returns:
        The process, which on Linux ends with status 1 where there is no such program.

    Raises:
        OSError: no process can be started.
    """
    if sys.platform != "linux" or not sys.executable:
        return subprocess.Popen(command, start_new_session=True, **options)
    guarded = [sys.executable, "-I", "-S", "-c", _DIES_WITH_CALLER, str(os.getpid()), *command]
    return _starter().start(guarded, options)


_DIES_WITH_CALLER = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL; the program that takes this one's place keeps it.
if os.getppid() == int(sys.argv[1]):  # Else the caller has ended already.
    os.execv(sys.argv[2], sys.argv[2:])
"""


class _Starter:
    """A thread that starts programs: Linux kills them when the thread that started them ends, and this one does not."""

    def __init__(self) -> None:
        self._asked: SimpleQueue[tuple[list[str], dict[str, Any], Future[subprocess.Popen[bytes]]]] = SimpleQueue()
        threading.Thread(target=self._run, daemon=True, name="textagent-starter").start()

    def start(self, command: list[str], options: dict[str, Any]) -> subprocess.Popen[bytes]:
        started: Future[subprocess.Popen[bytes]] = Future()
        self._asked.put((command, options, started))
        return started.result()

    def _run(self) -> None:
        while True:
            command, options, started = self._asked.get()
            try:
                started.set_result(subprocess.Popen(command, start_new_session=True, **options))
            except Exception as error:  # noqa: BLE001 - it is raised again where the process was asked for
                started.set_exception(error)


@cache
def _starter() -> _Starter:
    return _Starter()


def after_fork(call: Callable[[], object]) -> None:
    """Have something called in every process that is forked from this one, where the system forks: Windows does not."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=call)


after_fork(_starter.cache_clear)  # A fork has none of its parent's threads.
