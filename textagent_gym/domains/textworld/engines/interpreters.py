"""Interpreters of compiled games: Frotz through `jericho`, each lent for one command.

An interpreter takes 1.6 MB, and 5 ms to read a story. Whoever has a command to run borrows one, if possible one that
has read the story already:

    borrow(story)  ->  an idle interpreter that has the story
                       otherwise, while there are fewer interpreters than engines in use, a new one
                       otherwise the longest idle one, which reads the story

So each engine in use can have a story to itself, and engines that play the same story share.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any
from weakref import WeakSet

from textagent_gym.domains.textworld.story import check_story
from textagent_gym.errors import GenerationError, MissingDependencyError

_reading = Lock()
"""Held while a story is read: warnings are ignored for a while, in all threads or in none."""


def import_jericho() -> Any:
    """The package that holds Frotz.

    Raises:
        MissingDependencyError: it is not installed.
    """
    try:
        import jericho
    except ImportError as error:
        raise MissingDependencyError("jericho", "textworld") from error
    return jericho


class Interpreters:
    """The interpreters of a process. They may be borrowed and given back in any thread."""

    def __init__(self) -> None:
        self._idle: list[Any] = []  # The longest idle one first.
        self._lent = 0
        self._users: WeakSet[object] = WeakSet()
        self._lock = Lock()

    def __len__(self) -> int:
        """Number of interpreters, lent ones included."""
        return len(self._idle) + self._lent

    def admit(self, user: object) -> None:
        """Keep an interpreter for a user, as long as it is in use and not dismissed; again does nothing."""
        with self._lock:
            self._users.add(user)

    def dismiss(self, user: object) -> None:
        """Keep one interpreter fewer."""
        with self._lock:
            self._users.discard(user)
            self._drop_surplus()

    @contextmanager
    def borrow(self, story: str) -> Iterator[Any]:
        """An interpreter that has read a story, in whatever state; one that has raised an error is not used again.

        Args:
            story: path of the story.

        Raises:
            GenerationError: the story cannot be read.
        """
        with self._lock:
            frotz = self._take(story)
            self._lent += 1
        is_sound = False
        try:
            if frotz is None or frotz.story_file != story.encode():
                frotz = _read(frotz, story)
            yield frotz
            is_sound = True
        finally:
            with self._lock:
                self._lent -= 1
                if is_sound:
                    self._idle.append(frotz)
                self._drop_surplus()

    def _take(self, story: str) -> Any:
        """The interpreter to be used for a story; `None` for a new one."""
        for number in reversed(range(len(self._idle))):
            if self._idle[number].story_file == story.encode():
                return self._idle.pop(number)
        is_full = len(self) >= len(self._users)
        return self._idle.pop(0) if self._idle and is_full else None

    def _drop_surplus(self) -> None:
        del self._idle[: max(0, len(self) - len(self._users))]


def _read(frotz: Any, story: str) -> Any:
    """Let an interpreter, or a new one, read a story."""
    check_story(story)
    with _reading, warnings.catch_warnings():
        # Jericho knows the scores of some published games and warns of every other story.
        warnings.simplefilter("ignore")
        try:
            if frotz is None:
                return import_jericho().FrotzEnv(story, seed=1)
            frotz.close()  # Otherwise the memory of the story before is never given back.
            frotz._cache.clear()  # It would keep every story that it has ever read.
            frotz.load(story, seed=1)
        except (OSError, ValueError) as error:
            raise GenerationError(f"{story} cannot be played: {error}") from error
    return frotz
