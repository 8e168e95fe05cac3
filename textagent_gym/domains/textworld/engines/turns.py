"""Turns that were worked out before, remembered for everybody who plays the game in this process.

A turn looks at a few places of the world only: "take lamp" at where the lamp is, "go north" at what is open and closed
behind the door. Of each line in each room it is noted which places any of its turns has looked at; in another situation
that has the same values there, the same turn is played, whatever else has changed since:

    line, room  ->  places that matter  ->  their values  ->  Answer

So a turn that nobody has played yet is mostly one that is known. If a turn looks at a place that is not noted, it is
noted, and what was remembered with fewer places is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

from textagent_gym.domains.textworld.engines.answers import (
    ENDING,
    SCORE,
    Answer,
    Grounds,
    Situation,
    lead_on,
    work_out,
)
from textagent_gym.domains.textworld.inform import PLAYER
from textagent_gym.domains.textworld.store import StoredGame

_LINES = 8_192  # Lines in rooms of all games together that are remembered.
_ANSWERS = 64  # Answers to a line in a room that are remembered, of 1 to 2 KB each; most have one to three.


class _Known(NamedTuple):
    """Answers by the values of the places, and the facts, that they depend on."""

    grounds: Grounds
    values: Callable[[list[Any]], tuple[Any, ...]]
    answers: dict[tuple[tuple[Any, ...], int], Answer]


class _Line:
    """What is known of a line in a room."""

    __slots__ = ("known",)

    def __init__(self) -> None:
        self.known = _known(Grounds(frozenset(), 0))

    def learn(self, game: StoredGame, situation: Situation, line: str) -> Answer:
        """Work an answer out and remember it."""
        answer, grounds = work_out(game, situation, line)
        known = self.known
        places, facts = known.grounds.places | grounds.places, known.grounds.facts | grounds.facts
        if (places, facts) != known.grounds or len(known.answers) >= _ANSWERS:
            known = self.known = _known(Grounds(places, facts))
        known.answers[known.values(situation.places), situation.facts & facts] = answer
        return answer


def _known(grounds: Grounds) -> _Known:
    # Two places more than are needed: `itemgetter` returns a tuple only of two or more.
    return _Known(grounds, itemgetter(SCORE, ENDING, *grounds.places), {})


@lru_cache(maxsize=_LINES)
def _line(game: StoredGame, room: int, lines: tuple[str, ...] | str) -> _Line:
    return _Line()


def play(game: StoredGame, situation: Situation, line: str) -> tuple[Answer, Situation]:
    """What a game says to a line, and the situation that it leads to.

    Args:
        game: game with its text and its logic.
        situation: situation in which the line is typed.
        line: what is typed, as `commands.playable` passes it; not one that begins with "again".
    """
    places, facts, lines = situation
    here = _line(game, places[PLAYER], (*lines, line) if lines else line)
    grounds, values, answers = here.known
    answer = answers.get((values(places), facts & grounds.facts))
    if answer is None:
        answer = here.learn(game, situation, line)
    assert game.fiction is not None
    return answer, lead_on(game.fiction, situation, answer)


def forget() -> None:
    """Forget every turn."""
    _line.cache_clear()
