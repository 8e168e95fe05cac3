"""The engine that tells a game without compiling it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from textagent_gym.domains.textworld.commands import UNKNOWN_VERB
from textagent_gym.domains.textworld.engines.answers import ENDING, SCORE, Situation, opening, status, told
from textagent_gym.domains.textworld.engines.engine import Engine, Reply
from textagent_gym.domains.textworld.engines.turns import play
from textagent_gym.domains.textworld.inform import AGAIN, Fiction, last_words
from textagent_gym.domains.textworld.store import StoredGame
from textagent_gym.errors import GenerationError

_AGAIN = re.compile(rf'({"|".join(AGAIN)})(?![^ .,"])')  # As the first word of a line.


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """A saved moment: the situation, the number of the turn, the line that "again" repeats, and the last edge."""

    situation: Situation
    turn: int
    typed: str
    edge: str


class Native(Engine):
    """The engine that tells a game from its text; it needs no compiled game."""

    def __init__(self) -> None:
        self._game: StoredGame
        self._fiction: Fiction
        self._situation: Situation
        self._turn = 1
        self._typed = ""
        self._edge = ""  # The edge of the screen, which stays as it was before the turn with which the game has ended.

    def start(self, game: StoredGame) -> str:
        """See `Engine`."""
        if game.fiction is None or game.logic is None:
            raise GenerationError(f"{game.story} has no .json file that describes it; play it with engine='reference'")
        text, self._situation = opening(game)
        self._game, self._fiction, self._turn, self._typed, self._edge = game, game.fiction, 1, "", ""
        if self._situation.places[ENDING]:
            self._edge = f"{status(game.fiction, self._situation, 0)}{self._turn}"
        return f"{text}{self._turn}"

    def step(self, command: str, *, plain: bool = False) -> Reply:
        """See `Engine`."""
        if _AGAIN.match(command) and not self._situation.lines:
            command = self._typed or UNKNOWN_VERB
        answer, after = play(self._game, self._situation, command)
        before, turn = self._situation, self._turn
        self._situation, self._turn = after, turn + answer.turns
        if answer.typed:
            self._typed = answer.typed
        if answer.ending:
            self._edge = f"{status(self._fiction, after, before.places[SCORE])}{turn}"
        if plain:
            text = told(self._fiction, answer.plain, after)
        else:
            score = after.places[SCORE]
            words = last_words(self._fiction, answer.ending, score, self._turn) if answer.ending else ""
            edge = self._edge or f"{status(self._fiction, after, score)}{self._turn}"
            text = f"{told(self._fiction, answer.printed, after)}{words}{edge}"
        return Reply(text, answer.actions, answer.ending == "won", answer.ending == "lost")

    @property
    def state(self) -> int | None:
        """See `Engine`."""
        return self._situation.facts

    @property
    def order(self) -> bytes:
        """See `Engine`."""
        return repr(self._situation.contents(self._game)).encode()

    def snapshot(self) -> object:
        """See `Engine`."""
        return _Snapshot(self._situation, self._turn, self._typed, self._edge)

    def restore(self, moment: object) -> None:
        """See `Engine`."""
        assert isinstance(moment, _Snapshot)
        self._situation, self._turn, self._typed, self._edge = moment.situation, moment.turn, moment.typed, moment.edge

    def close(self) -> None:
        """See `Engine`; there is nothing to give back."""
