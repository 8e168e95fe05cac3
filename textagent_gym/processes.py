"""Worker processes that leave Ctrl-C to their caller and do not outlive it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor

_ORPHAN_CHECK_SECONDS = 1.0  # Between two looks at whether the caller of a worker still lives.


def worker_processes(count: int) -> ProcessPoolExecutor:
    """A pool of worker processes, spawned and not forked, for the caller may hold threads and locks."""
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(count, mp_context=context, initializer=_follow, initargs=(os.getpid(),))


def _follow(caller: int) -> None:
    """In a worker: leave Ctrl-C to the caller, and end when the caller ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == caller:
            time.sleep(_ORPHAN_CHECK_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
