"""A time after which a block of code ends, whatever it does."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


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
