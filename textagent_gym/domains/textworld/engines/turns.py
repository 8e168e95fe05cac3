"""Turns that were worked out before, remembered for everybody who plays the game in this process.

A turn looks at a few places of the world only: "take lamp" at where the lamp is, "go north" at what is open and closed
behind the door. Which place it looks at next depends on what it has found in those before, and on nothing else. So what
is known of a line is a tree, which a turn walks down in the order of its looks:

    line  ->  place, its value  ->  next place, its value  ->  ...  ->  facts that matter  ->  Answer

In another situation that has the same values on the way down, the same turn is played, whatever else has changed since:
a turn that nobody has played yet is mostly one that is known.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import zip_longest
from typing import Any

from textagent_gym.domains.textworld.engines.answers import Answer, Situation, lead_on, work_out
from textagent_gym.domains.textworld.store import StoredGame

_LINES = 4_096  # Lines of all games together that are remembered.
_ANSWERS = 256  # Answers to a line that are remembered, of 2 to 4 KB each; most lines have one to ten.


_Look = tuple[int, dict[Any, Any]]
"""A place that is looked at; and by its value the next look, or an `_End`."""


class _End:
    """What is known once every place has been looked at.

    Attributes:
        facts: facts that matter.
        answers: answers by these facts.
    """

    __slots__ = ("answers", "facts")

    def __init__(self) -> None:
        self.facts = 0
        self.answers: dict[int, Answer] = {}


class _Line:
    """What is known of a line."""

    __slots__ = ("answers", "first")

    def __init__(self) -> None:
        self.first: _Look | None = None
        self.answers = 0

    def find(self, places: list[Any], facts: int) -> Answer | None:
        """The answer in a situation, if it is known."""
        look: Any = self.first
        while type(look) is tuple:
            place, after = look
            look = after.get(places[place])
        if look is None:
            return None
        answer: Answer | None = look.answers.get(facts & look.facts)
        return answer

    def learn(self, game: StoredGame, situation: Situation, line: str) -> Answer:
        """Work an answer out and remember it."""
        answer, grounds = work_out(game, situation, line)
        if self.first is None or self.answers >= _ANSWERS:
            self.first, self.answers = (grounds.places[0], {}), 0
        self.answers += 1
        look: Any = self.first
        for place, following in zip_longest(grounds.places, grounds.places[1:]):
            if type(look) is not tuple or look[0] != place:
                break
            after, value = look[1], situation.places[place]
            look = after.get(value)
            if look is None:
                look = after.setdefault(value, _End() if following is None else (following, {}))
        if type(look) is not _End:  # Of several commands, facts decide which is the last: what was known is forgotten.
            self.first = None
            return answer
        if grounds.facts & ~look.facts:
            look.facts |= grounds.facts
            look.answers.clear()  # What was remembered with fewer facts.
        look.answers[situation.facts & look.facts] = answer
        return answer


@lru_cache(maxsize=_LINES)
def _line(game: StoredGame, lines: tuple[str, ...] | str) -> _Line:
    return _Line()


def play(game: StoredGame, situation: Situation, line: str) -> tuple[Answer, Situation]:
    """What a game says to a line, and the situation that it leads to.

    Args:
        game: game with its text and its logic.
        situation: situation in which the line is typed.
        line: what is typed, as `commands.playable` passes it; not one that begins with "again".
    """
    places, facts, lines = situation
    known = _line(game, (*lines, line) if lines else line)
    answer = known.find(places, facts)
    if answer is None:
        answer = known.learn(game, situation, line)
    assert game.fiction is not None
    return answer, lead_on(game.fiction, situation, answer)


def forget() -> None:
    """Forget every turn."""
    _line.cache_clear()
