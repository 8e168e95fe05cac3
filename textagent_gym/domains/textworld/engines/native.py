"""The engine that tells a game without compiling it."""

from __future__ import annotations

from dataclasses import dataclass

from textagent_gym.domains.textworld.engines.engine import Engine, Reply
from textagent_gym.domains.textworld.inform import (
    FINAL_ANSWER,
    Memory,
    Moment,
    Page,
    Parser,
    UnansweredError,
    World,
    carry_out,
    end_turn,
    look_around,
)
from textagent_gym.domains.textworld.logic import GameLogic
from textagent_gym.domains.textworld.store import StoredGame
from textagent_gym.errors import GenerationError

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
class _Snapshot:
    """A saved moment.

    Attributes:
        world: state of the world.
        state: facts that hold.
        memory: what the parser remembers: what "it" stands for, and what was understood last.
        lines: lines typed since a question was asked.
    """

    world: Moment
    state: int
    memory: tuple[int, tuple[str | int | None, ...]]
    lines: tuple[str, ...]


class Native(Engine):
    """The engine that tells a game from its text; it needs no compiled game."""

    def __init__(self) -> None:
        self._logic: GameLogic
        self._world: World
        self._memory = Memory()
        self._lines: tuple[str, ...] = ()
        self._state = 0

    def start(self, game: StoredGame) -> str:
        """See `Engine`."""
        if game.fiction is None or game.logic is None:
            raise GenerationError(f"{game.story} has no .json file that describes it; play it with engine='reference'")
        self._logic = game.logic
        self._world = World(game.fiction)
        self._memory = Memory()
        self._lines = ()
        self._state = game.logic.initial
        return self._opening()

    def _opening(self) -> str:
        page = Page()
        page.put("\n\n\n" + _BANNER + "\n")
        page.say_part(self._world.fiction.objective)
        page.put("\n")
        look_around(self._world, self._memory, page)
        page.prompt()
        return page.text + self._status(self._world.score, self._world.turns)

    def step(self, command: str) -> Reply:
        """See `Engine`."""
        world, page = self._world, Page()
        page.put("\n")
        if world.ending:
            page.put(FINAL_ANSWER)
            return Reply(page.text + self._status(world.score, world.turns), 0, won=False, lost=False)
        score, turns = world.score, world.turns
        events = self._turn(command, page)
        if events is None:
            page.prompt()
            return Reply(page.text + self._status(score, turns), 0, won=False, lost=False)
        ending = end_turn(world, page)
        self._follow(events)
        if not ending:
            page.prompt()
            score, turns = world.score, world.turns
        return Reply(page.text + self._status(score, turns), len(events), won=ending == "won", lost=ending == "lost")

    def _turn(self, command: str, page: Page) -> list[str] | None:
        """Do what a command asks for: the actions that succeeded; `None` if it means nothing, or asks for more."""
        memory = Memory(self._memory.it, self._memory.understood)
        lines = (*self._lines, command)
        parser = Parser(self._world, memory, lines)
        try:
            understood = parser.parse()
        except UnansweredError:
            self._lines = lines
            page.complain(parser.reply)
            return None
        self._lines, self._memory = (), memory
        if understood is None:
            page.complain(parser.reply)
            return None
        page.put(parser.note)
        return carry_out(understood, parser.text, self._world, memory, page)

    def _follow(self, events: list[str]) -> None:
        """Keep the facts in step with the story."""
        logic = self._logic
        for event in events:
            action = logic.detect(self._state, event)
            self._state = logic.end_turn(self._state) if action is None else logic.apply(self._state, action)

    def _status(self, score: int, turns: int) -> str:
        """The line at the edge of the screen, which the interpreter puts behind the text."""
        return f"{' ' * _SCREEN}{self._world.fiction.names[self._world.room]}{score}/{turns}"

    @property
    def state(self) -> int | None:
        """See `Engine`."""
        return self._state

    @property
    def order(self) -> bytes:
        """See `Engine`."""
        return repr(self._world.contents).encode()

    def snapshot(self) -> object:
        """See `Engine`."""
        memory = (self._memory.it, self._memory.understood)
        return _Snapshot(self._world.moment(), self._state, memory, self._lines)

    def restore(self, moment: object) -> None:
        """See `Engine`."""
        assert isinstance(moment, _Snapshot)
        self._world.restore(moment.world)
        self._state = moment.state
        self._memory = Memory(*moment.memory)
        self._lines = moment.lines

    def close(self) -> None:
        """See `Engine`; there is nothing to give back."""
