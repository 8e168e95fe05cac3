"""A time after which a block of code ends, whatever it does."""

from __future__ import annotations

import faulthandler
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

GRACE = 30.0
"""Seconds that a block has for ending by itself before its process is ended."""


class TooSlowError(KeyboardInterrupt):
    """Time is over. It is no `Exception`, so that no world takes it for a failure of its own."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """End the block when it takes too long, also in the middle of an episode.

    Args:
        seconds: time, above 0.

    Raises:
        TooSlowError: time was over.
    """

    def stop(signum: int, frame: object) -> None:
        raise TooSlowError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def killed_after(seconds: float) -> Iterator[None]:
    """End the process with status 1, and say where it was, when the block takes too long, whatever it does.

    `time_limit` cannot end a call into a library's own code, such as that of a tokenizer that somebody has prepared.

    Args:
        seconds: time, above 0.
    """
    faulthandler.dump_traceback_later(seconds, exit=True, file=sys.__stderr__ or sys.stderr)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
