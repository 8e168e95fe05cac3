"""What a game says to a command, worked out once.

A game's answer follows from the game, the situation and the command, so each one is worked out once and remembered for
everybody who plays the game in this process:

    opening   game                      -> Answer
    play      game, situation, command  -> Answer, which leads to another situation

The number of the turn is no part of a situation: it is only printed, by whoever counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from textagent_gym.domains.textworld.inform import (
    FINAL_ANSWER,
    Memory,
    Moment,
    Page,
    Parser,
    UnansweredError,
    World,
    beginning,
    carry_out,
    end_turn,
    look_around,
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
        memory: what the parser remembers: what "it" stands for, and what was understood last.
        lines: lines typed since a question was asked.
    """

    world: Moment
    facts: int
    memory: tuple[int, tuple[str | int | None, ...]]
    lines: tuple[str, ...]

    def __hash__(self) -> int:
        return hash((self.facts, self.memory))


@dataclass(frozen=True, slots=True)
class Answer:
    """What a game says to a command.

    Attributes:
        text: text, without `last_words` and the line at the edge of the screen.
        status: that line, without the number of the turn.
        actions: number of actions that succeeded.
        counts: whether the turn counts.
        ending: "won" or "lost" if the game has ended with this turn, otherwise "".
        after: situation that it leads to.
    """

    text: str
    status: str
    actions: int
    counts: bool
    ending: str
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
    situation = Situation(world.moment, game.logic.initial, (memory.it, memory.understood), ())
    return Answer(page.text, _status(world, world.score), 0, counts=False, ending="", after=situation)


@lru_cache(maxsize=_REMEMBERED)
def play(game: StoredGame, situation: Situation, command: str) -> Answer:
    """What a game says to a command.

    Args:
        game: game with its text and its logic.
        situation: situation in which the command is typed.
        command: what is typed, as `commands.playable` passes it.
    """
    assert game.fiction is not None
    assert game.logic is not None
    world, page = World(game.fiction, situation.world), Page()
    page.put("\n")
    if world.ending:
        page.put(FINAL_ANSWER)
        return Answer(page.text, _status(world, world.score), 0, counts=False, ending="", after=situation)
    memory, lines = Memory(*situation.memory), (*situation.lines, command)
    parser = Parser(world, memory, lines)
    try:
        understood = parser.parse()
    except UnansweredError:
        understood, memory = None, Memory(*situation.memory)
    else:
        lines = ()
    if understood is None:
        page.complain(parser.reply)
        page.prompt()
        after = Situation(situation.world, situation.facts, (memory.it, memory.understood), lines)
        return Answer(page.text, _status(world, world.score), 0, counts=False, ending="", after=after)
    page.put(parser.note)
    events = carry_out(understood, parser.text, world, memory, page)
    shown = world.score
    counts = end_turn(world, page)
    if not world.ending:
        page.prompt()
        shown = world.score
    after = Situation(world.moment, _follow(game.logic, situation.facts, events), (memory.it, memory.understood), ())
    return Answer(page.text, _status(world, shown), len(events), counts, world.ending, after)


def _follow(logic: GameLogic, facts: int, events: list[str]) -> int:
    """The facts after actions that succeeded."""
    for event in events:
        action = logic.detect(facts, event)
        facts = logic.end_turn(facts) if action is None else logic.apply(facts, action)
    return facts


def _status(world: World, score: int) -> str:
    """The line at the edge of the screen, which the interpreter puts behind the text."""
    return f"{' ' * _SCREEN}{world.fiction.names[world.room]}{score}/"
