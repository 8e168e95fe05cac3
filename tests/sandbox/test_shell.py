"""The suite's end of a shell's pipes: no wait is longer than its limit, whoever reads and writes at the other ends."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterator

import pytest

from textagent_gym.sandbox import Result
from textagent_gym.sandbox.shell import Shell

WORD = "0123456789abcdef" * 2


@pytest.fixture
def pipes() -> Iterator[tuple[Shell, int]]:
    """A shell that nobody is, and the descriptor of its output; what it would read stays unread."""
    theirs_in, ours_in = os.pipe()
    ours_out, theirs_out = os.pipe()
    shell = Shell(ours_in, ours_out, 1000)
    yield shell, theirs_out
    shell.close()
    for descriptor in (theirs_in, theirs_out):
        os.close(descriptor)


@pytest.mark.parametrize("command", ["true", "x" * 200_000], ids=["nothing to read", "no room to write"])
def test_somebody_else_has_taken_what_was_there(
    pipes: tuple[Shell, int], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Processes of an agent that belong to the caller's user can open both pipes."""
    monkeypatch.setattr(select, "select", lambda reads, writes, others, timeout: (reads, writes, others))
    began = time.monotonic()
    assert pipes[0].run(command, 0.3) == Result("", None, timed_out=True)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("before", [b"", b"x" * 70_000], ids=["a word", "a flood"])
def test_a_command_has_ended_whatever_others_print(
    pipes: tuple[Shell, int], monkeypatch: pytest.MonkeyPatch, before: bytes
) -> None:
    monkeypatch.setattr("secrets.token_hex", lambda length: WORD)
    shell, output = pipes
    os.set_blocking(output, False)
    written = os.write(output, before[:60_000] + f"fine\n\n{WORD} 3\n".encode() + b"noise\n" * 100)
    assert written > 600
    result = shell.run("true", 5)
    assert (result.output[-5:], result.status, result.timed_out) == ("fine\n", 3, False)
