"""The life of a worker: it makes its environments and does what comes through its connection, until that closes."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import connection as connections
from multiprocessing import parent_process
from typing import Any

import gymnasium
from gymnasium import Space

from textagent_gym.vector.messages import Failure, Reply, Request, perform

Connection = connections.Connection
MakeEnv = Callable[[], gymnasium.Env[Any, Any]]


@dataclass(frozen=True, slots=True)
class Ready:
    """A worker's first message: what its environments look like."""

    spaces: tuple[tuple[Space[Any], Space[Any]], ...]
    metadata: dict[str, Any]
    render_mode: str | None


def main(connection: Connection, make_envs: bytes) -> None:
    """A worker process."""
    # Ctrl-C reaches every process of the terminal; the one that the user talks to decides what happens.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    serve(connection, make_envs)


def _end_with_the_parent() -> None:
    """Even in the middle of a step that never returns: the parent may be killed without closing anything."""
    parent = parent_process()
    if parent is not None:
        connections.wait([parent.sentinel])
        os._exit(1)


def serve(connection: Connection, make_envs: bytes | list[tuple[int, MakeEnv]]) -> None:
    """Answer until the other end is closed.

    Args:
        connection: Pipe to the owner. Every message is a list of (slot, request), answered by a list of (slot, reply).
            The empty list says goodbye.
        make_envs: Makers of the environments; see `Envs`.
    """
    envs = Envs(make_envs)
    try:
        connection.send_bytes(envs.first())
        while envs.ready and (reply := envs.answer(connection.recv_bytes())):
            connection.send_bytes(reply)
    except (EOFError, OSError):
        pass  # Closed, or the parent is gone.
    finally:
        envs.close()
        connection.close()


class Envs:
    """The environments of one worker, wherever it lives. Messages are pickled.

    Args:
        make_envs: List of (slot, function that makes its environment), pickled for another process.

    Attributes:
        ready: Whether all environments could be made.
    """

    def __init__(self, make_envs: bytes | list[tuple[int, MakeEnv]]) -> None:
        self._envs: dict[int, gymnasium.Env[Any, Any]] = {}
        self._first: Ready | Failure
        try:
            for slot, make in pickle.loads(make_envs) if isinstance(make_envs, bytes) else make_envs:
                self._envs[slot] = make()
            self._first = _describe(list(self._envs.values()))
        except Exception as error:  # noqa: BLE001 (raised again in the parent)
            self._first = Failure.of(error)
        self.ready = isinstance(self._first, Ready)

    def first(self) -> bytes:
        """The first message: a `Ready`, or the `Failure` of the environment that could not be made."""
        return _pickled(self._first)

    def answer(self, message: bytes) -> bytes:
        """The replies to a message; empty if it says goodbye."""
        requests: list[tuple[int, Request]] = pickle.loads(message)
        if not requests:
            return b""
        return _pickled([(slot, _answer(self._envs[slot], request)) for slot, request in requests])

    def close(self) -> None:
        """Close the environments."""
        for env in self._envs.values():
            env.close()


def _describe(envs: Sequence[gymnasium.Env[Any, Any]]) -> Ready:
    spaces = tuple((env.observation_space, env.action_space) for env in envs)
    return Ready(spaces, dict(envs[0].metadata), envs[0].render_mode)


def _answer(env: gymnasium.Env[Any, Any], request: Request) -> Reply:
    try:
        return perform(env, request)
    except Exception as error:  # noqa: BLE001 (raised again in the parent)
        return Failure.of(error)


def _pickled(message: Any) -> bytes:
    try:
        return pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # noqa: BLE001 (anything that a world puts into its info)
        failure = Failure.of(error)
        message = [(slot, failure) for slot, _ in message] if isinstance(message, list) else failure
        return pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
