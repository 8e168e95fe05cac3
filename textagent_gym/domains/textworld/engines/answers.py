"""What a game says to a line, and where that leads.

    opening    game                       -> Answer, Situation
    work_out   game, situation, line      -> Answer, and what it depends on
    lead_on    game, situation, answer    -> Situation

An answer depends on a part of the situation only, and is told in a way that depends on as little as possible:
what is listed in it is left blank, and where it leads to is told as changes. So whatever agrees with the situation in
the places that were looked at has the same answer; `turns` remembers answers by these places.

The number of the turn is no part of a situation: it is only printed, by whoever counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

from textagent_gym.domains.textworld.inform import (
    FINAL_ANSWER,
    PLAYER,
    Blank,
    Fiction,
    Kept,
    Memory,
    Outline,
    Page,
    World,
    begin,
    beginning,
    carry_out,
    end_turn,
    last_thing,
    last_words,
    listed_closely,
    look_around,
    move,
    understand,
)
from textagent_gym.domains.textworld.logic import Action, GameLogic
from textagent_gym.domains.textworld.prose import readable
from textagent_gym.domains.textworld.store import StoredGame

_REMEMBERED = 8_192  # First texts of games, and lists of things, that are kept.
_SCREEN = 128  # Columns of the screen that TextWorld's interpreter has.

_BANNER = r"""
                    ________  ________  __    __  ________        
                   |        \|        \|  \  |  \|        \       
                    \$$$$$$$$| $$$$$$$$| $$  | $$ \$$$$$$$$       
                      | $$   | $$__     \$$\/  $$   | $$          
                      | $$   | $$  \     >$$  $$    | $$          
                      | $$   | $$$$$    /  $$$$\    | $$          
                      | $$   | $$_____ |  $$ \$$\   | $$          
                      | $$   | $$     \| $$  | $$   | $$          
                       \$$    \$$$$$$$$ \$$   \$$    \$$          
              __       __   ______   _______   __        _______  
             |  \  _  |  \ /      \ |       \ |  \      |       \ 
             | $$ / \ | $$|  $$$$$$\| $$$$$$$\| $$      | $$$$$$$\
             | $$/  $\| $$| $$  | $$| $$__| $$| $$      | $$  | $$
             | $$  $$$\ $$| $$  | $$| $$    $$| $$      | $$  | $$
             | $$ $$\$$\$$| $$  | $$| $$$$$$$\| $$      | $$  | $$
             | $$$$  \$$$$| $$__/ $$| $$  | $$| $$_____ | $$__/ $$
             | $$$    \$$$ \$$    $$| $$  | $$| $$     \| $$    $$
              \$$      \$$  \$$$$$$  \$$   \$$ \$$$$$$$$ \$$$$$$$ 
"""  # noqa: W291


class Situation(NamedTuple):
    """All that decides how a game answers.

    Attributes:
        places: places of the world (see `World`), then what the parser remembers (see `Memory`); never changed.
        facts: facts that hold, as the game's logic counts them.
        lines: lines typed since a question was asked.
    """

    places: list[Any]
    facts: int
    lines: tuple[str, ...]

    @property
    def memory(self) -> Kept:
        """What the parser remembers."""
        return cast("Kept", tuple(self.places[-_MEMORY:]))

    def contents(self, game: StoredGame) -> tuple[tuple[int, ...], ...]:
        """The things in every place, in order."""
        assert game.fiction is not None
        size = len(game.fiction.kinds)
        return tuple(self.places[size : 2 * size])


_MEMORY = len(Memory().values)
_IT = -_MEMORY  # Where the memory begins, with what "it" stands for.
SCORE, ENDING = -_MEMORY - 2, -_MEMORY - 1
"""Where a situation has the score, and how the game has ended."""


class Text(NamedTuple):
    """A text, in which letters of `Outline` stand for lists that are left blank."""

    form: str
    blanks: dict[str, Blank]


class Answer(NamedTuple):
    """What a game says to a line, and what changes.

    Attributes:
        printed: text, without what stands at the edge of the screen; where the game ends, only up to `last_words`.
        plain: text as a person reads it.
        actions: number of actions that succeeded.
        turns: number of turns that count; a line may hold several commands.
        ending: "won" or "lost" if the game has ended with this turn, otherwise "".
        typed: line that "again" repeats from now on; "" if it is still the one before.
        moves: things that are moved, and where to, in order.
        written: values of other places.
        last_in: room whose last thing "it" stands for; or 0.
        keeps: facts that stay as they are.
        adds: facts that begin to hold.
        lines: lines that wait for more, as in `Situation`.
    """

    printed: Text
    plain: Text
    actions: int
    turns: int
    ending: str
    typed: str
    moves: tuple[tuple[int, int], ...]
    written: tuple[tuple[int, Any], ...]
    last_in: int
    keeps: int
    adds: int
    lines: tuple[str, ...]


class Grounds(NamedTuple):
    """What an answer depends on, apart from the line.

    Attributes:
        places: places of the situation, in the order in which they were looked at: which place is the next depends on
            what was found in those before it, and on nothing else.
        facts: facts.
    """

    places: tuple[int, ...]
    facts: int


@lru_cache(maxsize=_REMEMBERED)
def opening(game: StoredGame) -> tuple[str, Situation]:
    """What a game says before anybody has typed a command, without the number of the turn; and the first situation."""
    assert game.fiction is not None
    assert game.logic is not None
    world, memory, page = World(game.fiction, beginning(game.fiction)), Memory(), Page()
    page.put("\n\n\n" + _BANNER + "\n")
    page.say_part(game.fiction.objective)
    page.put("\n")
    look_around(world, memory, page)
    page.prompt()
    begin(world)
    situation = Situation(world.places + memory.values, game.logic.initial, ())
    return page.text + status(game.fiction, situation, 0), situation


def work_out(game: StoredGame, situation: Situation, line: str) -> tuple[Answer, Grounds]:
    """What a game says to a line.

    Args:
        game: game with its text and its logic.
        situation: situation in which the line is typed.
        line: what is typed, as `commands.playable` passes it; not one that begins with "again".
    """
    assert game.fiction is not None
    assert game.logic is not None
    world, memory, page = World(game.fiction, situation.places), Memory(situation.memory), Page()
    memory.looked = world.looked
    outline = Outline() if _can_be_outlined(game.fiction) else None
    facts = _Following(game.logic, situation.facts)
    page.put("\n")
    actions = turns = 0
    typed = ending = ""
    lines: tuple[str, ...] = (*situation.lines, line)
    ended = world.ending
    if ended or not line:
        page.complain(FINAL_ANSWER if ended else "I beg your pardon?\n")
        lines = situation.lines
    else:
        while lines:
            heard = understand(world, memory, lines)
            typed = heard.typed or typed
            page.put(heard.note)
            if heard.command is None:
                lines = lines if heard.asked else ()
                page.divide()
                page.complain(heard.reply)
                break
            memory.blamed = 0
            # What is listed is as it is at the end of the turn only if nothing is done afterwards.
            is_last = heard.rest is None and not heard.command.several
            events = carry_out(heard.command, heard.text, world, memory, page, outline=outline if is_last else None)
            turns += end_turn(world, page)
            actions += len(events)
            facts.follow(events)
            ending = world.ending
            if ending:
                ended, lines = ending, ()
                break
            lines = () if heard.rest is None else (heard.rest,)
    if not ended:
        page.prompt()
    text = page.text
    end = last_words(game.fiction, ending, world.score, 0) if ending else ""
    blanks = outline.blanks if outline else {}
    answer = Answer(
        printed=Text(text, blanks),
        plain=Text(readable(text + end), blanks),
        actions=actions,
        turns=turns,
        ending=ending,
        typed=typed,
        moves=tuple(world.moves),
        written=(
            *((place, world.places[place]) for place in world.written),
            *((_IT + index, memory.values[index]) for index in memory.written),
        ),
        last_in=outline.last_in if outline else 0,
        keeps=facts.keeps,
        adds=facts.adds,
        lines=lines,
    )
    return answer, Grounds(tuple(world.looked), facts.looked)


def lead_on(fiction: Fiction, situation: Situation, answer: Answer) -> Situation:
    """The situation after an answer."""
    places, facts, _ = situation
    places = places.copy()
    for entity, holder in answer.moves:
        move(fiction, places, entity, holder)
    for place, value in answer.written:
        places[place] = value
    if answer.last_in:
        places[_IT] = last_thing(places[len(fiction.kinds) + answer.last_in]) or places[_IT]
    return Situation(places, facts & answer.keeps | answer.adds, answer.lines)


def told(fiction: Fiction, text: Text, situation: Situation) -> str:
    """A text with its lists, as they are in a situation."""
    form, blanks = text
    places, size = situation.places, len(fiction.kinds)
    for letter, blank in blanks.items():
        things = places[size + blank[0]]
        states = tuple([places[2 * size + thing] for thing in things]) if fiction.cooking else ()
        form = form.replace(letter, _listed(fiction, blank, things, states))
    return form


@lru_cache(maxsize=_REMEMBERED)
def _listed(fiction: Fiction, blank: Blank, things: tuple[int, ...], states: tuple[frozenset[str], ...]) -> str:
    return listed_closely(fiction, blank.holder, things, states, articles=blank.articles)


def status(fiction: Fiction, situation: Situation, score: int) -> str:
    """The line at the edge of the screen, which stands behind the text; the number of the turn follows."""
    return f"{' ' * _SCREEN}{fiction.names[situation.places[PLAYER]]}{score}/"


@lru_cache(maxsize=256)
def _can_be_outlined(fiction: Fiction) -> bool:
    """Whether lists can be left blank: no name is cut where a text is made readable."""
    return all(readable(f"a {name} a") == f"a {name} a" for name in fiction.names)


class _Following:
    """The facts while actions succeed, and what that depends on.

    Attributes:
        looked: facts that mattered.
        keeps, adds: as in `Answer`.
    """

    def __init__(self, logic: GameLogic, facts: int) -> None:
        self.looked, self.keeps, self.adds = 0, -1, 0
        self._logic, self._facts = logic, facts

    def follow(self, events: Sequence[str]) -> None:
        """Follow actions that succeeded."""
        for event in events:
            action = self._logic.detect(self._facts, event)
            self.looked |= self._logic.needed(event)
            if action is not None:
                self._change(action)
            changed = self.adds | ~self.keeps
            self.looked |= self._logic.watched(changed)
            before, self._facts = self._facts, self._logic.end_turn(self._facts)
            self.adds |= self._facts & ~before

    def _change(self, action: Action) -> None:
        self._facts = self._facts & ~action.removes | action.adds
        self.keeps &= ~action.removes
        self.adds = self.adds & ~action.removes | action.adds
