"""What a game says to a line, worked out once.

A game's answer follows from the game, the situation and the line, so each one is worked out once and remembered for
everybody who plays the game in this process:

    opening   game                      -> Answer
    play      game, situation, line     -> Answer, which leads to another situation

The number of the turn is no part of a situation: it is only printed, by whoever counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from textagent_gym.domains.textworld.inform import (
    FINAL_ANSWER,
    Kept,
    Memory,
    Moment,
    Page,
    World,
    beginning,
    carry_out,
    end_turn,
    look_around,
    understand,
)
from textagent_gym.domains.textworld.logic import GameLogic
from textagent_gym.domains.textworld.store import StoredGame

_REMEMBERED = 8_192  # Turns of all games together, of 1 to 4 KB each.
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


@dataclass(frozen=True, slots=True)
class Situation:
    """All that decides how a game answers.

    Attributes:
        world: state of the world.
        facts: facts that hold, as the game's logic counts them.
        memory: what the parser remembers, as `Memory.kept`.
        lines: lines typed since a question was asked.
    """

    world: Moment
    facts: int
    memory: Kept
    lines: tuple[str, ...]

    def __hash__(self) -> int:
        return hash((self.facts, self.memory))


@dataclass(frozen=True, slots=True)
class Answer:
    """What a game says to a line.

    Attributes:
        text: text, without `last_words` and the line at the edge of the screen.
        status: that line, without the number of the turn.
        actions: number of actions that succeeded.
        turns: number of turns that count; a line may hold several commands.
        ending: "won" or "lost" if the game has ended with this turn, otherwise "".
        typed: line that "again" repeats from now on; "" if it is still the one before.
        after: situation that it leads to.
    """

    text: str
    status: str
    actions: int
    turns: int
    ending: str
    typed: str
    after: Situation


@lru_cache(maxsize=_REMEMBERED)
def opening(game: StoredGame) -> Answer:
    """What a game says before anybody has typed a command."""
    assert game.fiction is not None
    assert game.logic is not None
    world, memory, page = World(game.fiction, beginning(game.fiction)), Memory(), Page()
    page.put("\n\n\n" + _BANNER + "\n")
    page.say_part(game.fiction.objective)
    page.put("\n")
    look_around(world, memory, page)
    page.prompt()
    situation = Situation(world.moment, game.logic.initial, memory.kept, ())
    return Answer(page.text, _status(world, world.score), 0, turns=0, ending="", typed="", after=situation)


@lru_cache(maxsize=_REMEMBERED)
def play(game: StoredGame, situation: Situation, line: str) -> Answer:
    """What a game says to a line.

    Args:
        game: game with its text and its logic.
        situation: situation in which the line is typed.
        line: what is typed, as `commands.playable` passes it; not one that begins with "again".
    """
    assert game.fiction is not None
    assert game.logic is not None
    world, memory, page = World(game.fiction, situation.world), Memory(*situation.memory), Page()
    page.put("\n")
    if world.ending or not line:
        page.complain(FINAL_ANSWER if world.ending else "I beg your pardon?\n")
        if not world.ending:
            page.prompt()
        return Answer(page.text, _status(world, world.score), 0, turns=0, ending="", typed="", after=situation)
    shown = world.score
    actions = turns = 0
    lines: tuple[str, ...] = (*situation.lines, line)
    while lines:
        heard = understand(world, memory, lines)
        page.put(heard.note)
        if heard.command is None:
            lines = lines if heard.asked else ()
            page.divide()
            page.complain(heard.reply)
            break
        memory.blamed = 0
        events = carry_out(heard.command, heard.text, world, memory, page)
        turns += end_turn(world, page)
        actions += len(events)
        situation = Situation(world.moment, _follow(game.logic, situation.facts, events), memory.kept, ())
        if world.ending:
            return Answer(page.text, _status(world, shown), actions, turns, world.ending, heard.typed, situation)
        lines = () if heard.rest is None else (heard.rest,)
    page.prompt()
    after = Situation(situation.world, situation.facts, memory.kept, lines)
    return Answer(page.text, _status(world, world.score), actions, turns, "", heard.typed, after)


def _follow(logic: GameLogic, facts: int, events: list[str]) -> int:
    """The facts after actions that succeeded."""
    for event in events:
        action = logic.detect(facts, event)
        facts = logic.end_turn(facts) if action is None else logic.apply(facts, action)
    return facts


def _status(world: World, score: int) -> str:
    """The line at the edge of the screen, which the interpreter puts behind the text."""
    return f"{' ' * _SCREEN}{world.fiction.names[world.room]}{score}/"
