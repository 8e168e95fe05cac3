"""How a run is stopped from outside: by Ctrl-C, and by SIGTERM, which schedulers and containers send.

Both raise an exception wherever the main thread is, so that the run is saved, logged and closed. An update alone is not
interrupted: a signal that comes meanwhile is delivered when it has ended. Several processes stop as `joint_stop` says.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_DELAYED = b"\nStopping when this update has ended; the same again stops at once.\n"
"""Said when a signal is delayed, because an update of a large model takes minutes."""


class TerminatedError(KeyboardInterrupt):
    """The process was asked to end by SIGTERM, which is handled as Ctrl-C is."""


@contextmanager
def sigterm_raises() -> Iterator[None]:
    """Make SIGTERM raise `TerminatedError` in the block, in the main thread of a program that has no handler for it."""
    if not _is_main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def terminate(*_: Any) -> NoReturn:
        raise TerminatedError("SIGTERM")

    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def heard_signals(hear: Callable[[int], bool]) -> Iterator[None]:
    """Tell a function of Ctrl-C and SIGTERM in the block; once it has not taken one, this and later ones come through.

    Where a signal has no handler in Python, or this is not the main thread, nothing is heard.
    """
    handlers: dict[int, Any] = {}
    if _is_main_thread():
        handlers = {number: handler for number in _SIGNALS if callable(handler := signal.getsignal(number))}

    def restore() -> None:
        for number, handler in handlers.items():
            signal.signal(number, handler)

    def handle(number: int, _: Any) -> None:
        if not hear(number):
            restore()
            signal.raise_signal(number)

    for number in handlers:
        signal.signal(number, handle)
    try:
        yield
    finally:
        restore()


@contextmanager
def delayed_signals() -> Iterator[None]:
    """Deliver Ctrl-C and SIGTERM at the end of the block; a second one comes through at once."""
    noted: list[int] = []

    def hear(number: int) -> bool:
        noted.append(number)
        if len(noted) == 1:
            os.write(2, _DELAYED)  # Not printed: the signal may have interrupted a print.
        return len(noted) == 1

    with heard_signals(hear):
        yield
    if noted:
        signal.raise_signal(noted[0])


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
