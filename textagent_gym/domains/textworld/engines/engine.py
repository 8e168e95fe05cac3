"""The face of an engine: a game begins, a command is answered, a moment is saved and taken back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from textagent_gym.domains.textworld.store import StoredGame


class Reply(NamedTuple):
    """What the game answered to one command.

    Attributes:
        text: text that the compiled game prints, as TextWorld's own environment returns it; or what a person reads.
        actions: number of the game's actions that succeeded in this turn; 0 where the command was not understood, or
            could not be done, or the engine cannot know.
        won: whether the game has ended well.
        lost: whether the game has ended badly.
    """

    text: str
    actions: int
    won: bool
    lost: bool


class Engine(ABC):
    """Plays one game at a time, and says what the compiled game says. Not shared between threads.

    A command is what `commands.playable` has returned. Nothing starts before `start`.
    """

    @abstractmethod
    def start(self, game: StoredGame) -> str:
        """Begin a game from its first moment and return what it prints first.

        Raises:
            GenerationError: the engine cannot play the game; the message says why.
        """

    @abstractmethod
    def step(self, command: str, *, plain: bool = False) -> Reply:
        """Play one turn.

        Args:
            command: what is typed.
            plain: whether the text is told as a person reads it.
        """

    @property
    @abstractmethod
    def state(self) -> int | None:
        """The facts that hold now, as the game's `logic` counts them; `None` for a game without a logic."""

    @property
    @abstractmethod
    def order(self) -> bytes:
        """The order in which things lie in their places: they are listed in that order, and no fact tells it."""

    @abstractmethod
    def snapshot(self) -> object:
        """The present moment, for `restore`. It never changes, and any engine of the same class may go back to it."""

    @abstractmethod
    def restore(self, moment: object) -> None:
        """Go back to what `snapshot` returned, in the same game."""

    @abstractmethod
    def close(self) -> None:
        """Give everything back that the engine holds; `start` begins anew."""
