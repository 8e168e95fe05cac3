"""Messages between the suite and its programs in a sandbox: a length in eight bytes, then the bytes."""

from __future__ import annotations

import os
import secrets
import select
import time

from textagent_gym.sandbox.base import Question, SandboxError

_LONGEST_ANSWER = 1 << 22  # Bytes; a program that is asked about a tree says less, unless it lies.
_NONCE = 16  # Bytes that nobody guesses.


def ask_once(stdin: int, answers: int, question: Question) -> bytes | None:
    """Put a question to a program, and read the answer.

    Both are messages (see `converse`) that begin with the same random bytes, so that no other message is taken for the
    answer.

    Returns:
        the answer, or `None` when the time is up, the program has ended, or has said something else.
    """
    nonce = secrets.token_bytes(_NONCE)
    answer = converse(stdin, answers, nonce + question.message, question.timeout, _LONGEST_ANSWER + _NONCE)
    if answer is None or not secrets.compare_digest(answer[:_NONCE], nonce):
        return None
    return answer[_NONCE:]


def converse(stdin: int, answers: int, message: bytes, timeout: float, most: int = 1 << 26) -> bytes | None:
    """Send a message and read the answer; both begin with their length in 8 bytes.

    Returns:
        the answer, or `None` when the time is up, the other side has ended, or says more than `most` bytes.
    """
    deadline = time.monotonic() + timeout
    if not write_all(stdin, len(message).to_bytes(8, "big") + message, deadline):
        return None
    head = _read_exactly(answers, 8, deadline)
    length = int.from_bytes(head or b"", "big")
    return None if head is None or length > most else _read_exactly(answers, length, deadline)


def wait_until_ready(answers: int, timeout: float = 60.0) -> None:
    """Wait for the empty message of a program that has started.

    Raises:
        SandboxError: it does not come.
    """
    if _read_exactly(answers, 8, time.monotonic() + timeout) != bytes(8):
        raise SandboxError("the program that runs tests has not started in the sandbox")


def write_all(descriptor: int, data: bytes, deadline: float) -> bool:
    """Write everything; `False` if that is not possible in time."""
    view = memoryview(data)
    while view:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([], [descriptor], [], left)[1]:
            return False
        try:
            view = view[os.write(descriptor, view[:4096]) :]
        except BlockingIOError:
            continue
        except BrokenPipeError:
            return False
    return True


def _read_exactly(descriptor: int, length: int, deadline: float) -> bytes | None:
    parts: list[bytes] = []
    while length:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            return None
        data = os.read(descriptor, min(length, 1 << 16))
        if not data:
            return None
        parts.append(data)
        length -= len(data)
    return b"".join(parts)
