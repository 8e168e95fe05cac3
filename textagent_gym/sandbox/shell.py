"""The shell that a sandbox keeps for its agent: a bash over two file descriptors."""

from __future__ import annotations

import logging
import os
import re
import secrets
import select
import shlex
import time
from abc import abstractmethod

from textagent_gym.sandbox.base import Limits, Result, Sandbox
from textagent_gym.sandbox.messages import write_all
from textagent_gym.sandbox.toolbox import Toolbox
from textagent_gym.texts import notice

_log = logging.getLogger("textagent_gym.sandbox")
_MOST_STARTS = 4  # Of a shell, in a row, where it ends before it does anything.
_LONGEST_MARKER = 64  # Bytes; what may be the beginning of a marker is kept apart.
_START_SECONDS = 20.0  # Seconds in which a shell answers its first command, on a machine that is busy.


class Shell:
    """A bash that answers command by command, over two file descriptors.

    After each command it prints a word that nobody can guess with the exit status. A command that ends the shell, or
    takes the word's way out from it, costs a new shell, and nothing else.
    """

    def __init__(self, stdin: int, stdout: int, keep: int) -> None:
        for descriptor in (stdin, stdout):  # An agent may have read, or written, what was there a moment ago.
            os.set_blocking(descriptor, False)
        self._stdin = stdin
        self._stdout = stdout
        self._keep = keep

    def run(self, command: str, timeout: float) -> Result:
        """See `Sandbox.run`; the caller ends the shell where the status is `None`."""
        word = secrets.token_hex(16)
        script = f"eval {shlex.quote(command)} </dev/null; printf '\\n{word} %s\\n' \"$?\"\n"
        deadline = time.monotonic() + timeout
        if not write_all(self._stdin, script.encode(), deadline):
            return Result("", None, timed_out=time.monotonic() >= deadline)
        collected = _Ends(self._keep)
        marker = re.compile(rf"\n{word} ([0-9]{{1,3}})\n".encode())
        while True:
            if match := collected.end_at(marker):
                return Result(collected.text(), int(match[1]))
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._stdout], [], [], left)[0]:
                return Result(collected.text(), None, timed_out=True)
            try:
                data = os.read(self._stdout, 1 << 16)
            except BlockingIOError:
                continue
            if not data:
                return Result(collected.text(), None)
            collected.add(data)

    def close(self) -> None:
        """Close both ends."""
        os.close(self._stdin)
        os.close(self._stdout)


class ShellSandbox(Sandbox):
    """A sandbox whose shell hangs on two file descriptors of this process."""

    def __init__(self, limits: Limits | None = None, toolbox: Toolbox | None = None) -> None:
        super().__init__(limits, toolbox)
        self._shell: Shell | None = None

    def run(self, command: str, timeout: float) -> Result:
        """See `Sandbox.run`."""
        if self._shell is None:
            self._begin_shell()
        assert self._shell is not None
        self._resume()
        result = self._shell.run(command, timeout)
        if result.status is None:
            self._end_shell()
        return result

    def _begin_shell(self) -> None:
        """Start a shell; again, after a while, where it ends at once: what has just been killed may still count."""
        for start in range(_MOST_STARTS):
            self._end_shell()
            time.sleep(0.3 * start)
            self._shell = self._start_shell()
            answer = self._shell.run(":", _START_SECONDS)
            if answer.status == 0 or answer.timed_out:
                return
            _log.info("a shell has ended before it did anything: %s", answer.output)

    @abstractmethod
    def _start_shell(self) -> Shell:
        """A shell in the tree."""

    @abstractmethod
    def _resume(self) -> None:
        """Let the shell continue if it stands still."""

    def _end_shell(self) -> None:
        """End the shell and all that it has started."""
        if self._shell is not None:
            self._kill_shell()
            self._shell.close()
            self._shell = None

    @abstractmethod
    def _kill_shell(self) -> None:
        """End the processes of the shell."""


class _Ends:
    """The beginning and the end of a long output."""

    def __init__(self, keep: int) -> None:
        self._half = max(256, keep // 2)
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0
        self._last = b""  # What has come last, with the end of what came before.

    def add(self, data: bytes) -> None:
        """Take what has come."""
        self._keep(self._last[:-_LONGEST_MARKER])
        self._last = self._last[-_LONGEST_MARKER:] + data

    def end_at(self, marker: re.Pattern[bytes]) -> re.Match[bytes] | None:
        """Let go of everything from a marker on, whatever others have written behind it."""
        match = marker.search(self._last)
        if match:
            self._last = self._last[: match.start()]
        return match

    def _keep(self, data: bytes) -> None:
        room = self._half - len(self._head)
        if room > 0 and not self._left_out:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * self._half:
            self._left_out += len(self._tail) - self._half
            self._tail = self._tail[-self._half :]

    def text(self) -> str:
        """All that has come, with a word on what is left out between."""
        self._keep(self._last)
        self._last = b""
        tail = self._tail[-self._half :]
        left_out = self._left_out + len(self._tail) - len(tail)
        middle = notice(left_out, "bytes").encode() if left_out else b""
        return (self._head + middle + tail).decode(errors="replace")
