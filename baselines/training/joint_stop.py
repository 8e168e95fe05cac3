"""How several processes of a run stop together, at a point where they can write a checkpoint.

    process 0   play ------------------> | agree | update | agree | save | ...
    process 1   play --- SIGTERM ------> | agree: stop | save | end

No process may leave an update by itself: the others would wait for it in vain. So a signal is noted, and at points that
all processes come to they tell each other; if one of them was asked to stop, all do. What each process does by itself,
as playing its episodes, is ended at once by a signal, as by an error; the others hear of both at the next such point.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TypeVar

from accelerate.utils import gather_object

from baselines.training.run_log import said_by
from baselines.training.signals import TerminatedError, heard_signals
from textagent_gym.errors import TextAgentError

_Result = TypeVar("_Result")
_ECHO_SECONDS = 5.0
"""How long after a first signal others are taken for its echo: a scheduler sends it to the launcher and to the
processes, and the launcher passes it on to them."""
_NOTED = b"\nStopping when all processes can; the same again, at least five seconds later, stops at once.\n"
"""Said by the main process, because the others may play and update for minutes."""


class OtherProcessError(TextAgentError, RuntimeError):
    """Another process of the run has failed; the message says which, and why."""


class JointStop:
    """Lets the processes of a run stop together. A process that is alone is left as it is.

    Args:
        processes, process: number of processes, and the number of this one.

    Attributes:
        agreed: whether the processes have agreed to stop, and none was told to end at once since.
    """

    def __init__(self, processes: int, process: int) -> None:
        self.agreed = False
        self._several = processes > 1
        self._process = process
        self._noted = 0  # Number of the first signal.
        self._noted_at = 0.0
        self._is_apart = False

    @contextmanager
    def noted_signals(self) -> Iterator[None]:
        """Note Ctrl-C and SIGTERM in the block; a second one comes through at once, unless it is an echo of the first.

        One that no agreement has answered is delivered at the end of the block.
        """
        with heard_signals(self._hear) if self._several else nullcontext():
            yield
        if self._noted:
            signal.raise_signal(self._noted)

    def apart(self, act: Callable[[], _Result]) -> _Result:
        """Do what each process does by itself, without waiting for another; then agree whether to continue.

        Raises:
            KeyboardInterrupt: a process was asked to stop.
            OtherProcessError: another process has failed.
        """
        if not self._several:
            return act()
        failure: BaseException | None = None
        try:
            try:
                self._is_apart = True
                if self._noted:
                    raise _error_of(self._noted)
                result = act()
            finally:
                self._is_apart = False
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 (raised again when all know of it)
            failure = error
        self.agree(failure)
        return result

    def agree(self, failure: BaseException | None = None) -> None:
        """Tell the other processes, which call it too, whether this one must stop; if one must, it raises in all.

        Args:
            failure: what has ended this process's work before.

        Raises:
            KeyboardInterrupt: a process was asked to stop.
            OtherProcessError: another process has failed.
        """
        if not self._several:
            return
        fault = "" if failure is None or self._noted else f"process {self._process}: {said_by(failure)}"
        try:
            answers: list[tuple[int, str]] = gather_object([(self._noted, fault)])
        except RuntimeError as gone:  # Another process has ended, and its launcher ends this one.
            if failure is not None or self._noted:
                raise failure or _error_of(self._noted) from gone
            raise
        asked = max(number for number, _ in answers)  # SIGTERM comes before Ctrl-C.
        faults = [words for _, words in answers if words]
        self.agreed = bool(asked or faults)
        if asked:
            raise _error_of(asked) from failure
        if failure is not None:
            raise failure
        if faults:
            raise OtherProcessError("; ".join(faults))

    def _hear(self, number: int) -> bool:
        """Whether a signal is noted, or an echo of the one that was."""
        if not self._noted:
            self._noted, self._noted_at = number, time.monotonic()
            if self._process == 0:
                os.write(2, _NOTED)  # Not printed: the signal may have interrupted a print.
            if self._is_apart:
                self._is_apart = False
                raise _error_of(number)
        elif time.monotonic() - self._noted_at > _ECHO_SECONDS:
            self.agreed = False
            return False
        return True


def _error_of(number: int) -> KeyboardInterrupt:
    return TerminatedError("SIGTERM") if number == signal.SIGTERM else KeyboardInterrupt()
