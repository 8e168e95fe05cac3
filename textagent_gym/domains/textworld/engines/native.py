"""The engine that tells a game without compiling it."""

from __future__ import annotations

from dataclasses import dataclass

from textagent_gym.domains.textworld.engines.engine import Engine, Reply
from textagent_gym.domains.textworld.inform import (
    Fiction,
    Memory,
    Moment,
    Page,
    Parser,
    UnansweredError,
    World,
    carry_out,
    look_around,
)
from textagent_gym.domains.textworld.logic import GameLogic
from textagent_gym.domains.textworld.prose import LOST, WON
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
        self._fiction: Fiction | None = None
        self._logic: GameLogic
        self._world: World
        self._memory = Memory()
        self._lines: tuple[str, ...] = ()
        self._state = 0

    def start(self, game: StoredGame) -> str:
        """See `Engine`."""
        if game.fiction is None or game.logic is None:
            raise GenerationError(f"{game.story} has no .json file that describes it; play it with engine='reference'")
        self._fiction, self._logic = game.fiction, game.logic
        self._world = World(self._fiction)
        self._memory = Memory()
        self._lines = ()
        self._state = game.logic.initial
        return self._opening()

    def _opening(self) -> str:
        assert self._fiction is not None
        page = Page()
        page.put("\n\n\n")
        page.put(_BANNER)
        page.put("\n")
        page.say_part(self._fiction.objective)
        page.put("\n")
        look_around(self._world, self._memory, page)
        page.prompt()
        return page.text + self._status()

    def step(self, command: str) -> Reply:
        """See `Engine`."""
        assert self._fiction is not None
        world, page = self._world, Page()
        page.put("\n")
        if world.ending:
            page.put("Please give one of the answers above.\n\n" + _FINAL_QUESTION)
            return Reply(page.text + self._status(), 0, won=False, lost=False)
        memory = Memory(self._memory.it, self._memory.understood)
        parser = Parser(world, memory, (*self._lines, command))
        score, turns = world.score, world.turns
        try:
            understood = parser.parse()
        except UnansweredError:
            self._lines = (*self._lines, command)
            page.put(parser.reply)
            page.said = True
            page.prompt()
            return Reply(page.text + self._status(), 0, won=False, lost=False)
        self._lines = ()
        self._memory = memory
        if understood is None:
            page.put(parser.reply)
            page.said = True
            page.prompt()
            return Reply(page.text + self._status(), 0, won=False, lost=False)
        page.put(parser.note)
        events = carry_out(understood, parser.text, world, memory, page)
        if page.said:
            page.divide()
        self._end_turn(page)
        self._follow(events)
        if not world.ending:
            page.prompt()
            status = self._status()
        else:
            self._obituary(page)
            status = self._status(score, turns)
        return Reply(page.text + status, len(events), won=world.ending == "won", lost=world.ending == "lost")

    def _end_turn(self, page: Page) -> None:
        """Follow the quests, count the turn, and tell of points, as every turn of the compiled game ends."""
        world = self._world
        assert self._fiction is not None
        for index, goal in enumerate(self._fiction.goals):
            if world.completed >> index & 1:
                continue
            if any(all(map(world.holds, condition)) for condition in goal.fails):
                world.ending = "lost"
                return
            for condition in goal.wins:
                if all(map(world.holds, condition)):
                    world.score += goal.reward
                    if not goal.repeatable:
                        world.completed |= 1 << index
                    break
        page.said = True  # The compiled game reports its points and turns here, for TextWorld to read.
        page.divide()
        world.turns += 1
        if world.score != world.notified:
            change = world.score - world.notified
            points = "point" if -1 <= change <= 1 else "points"
            if change > 0:
                page.say(f"Your score has just gone up by {_in_words(change)} {points}.")
            else:
                page.say(f"Your score changed by {_in_words(change)} {points}.")
            world.notified = world.score
        required = [index for index, goal in enumerate(self._fiction.goals) if goal.required]
        if required and all(world.completed >> index & 1 for index in required):
            world.ending = "won"

    def _obituary(self, page: Page) -> None:
        world = self._world
        assert self._fiction is not None
        words = WON if world.ending == "won" else LOST
        if page.said:
            page.divide()
        page.put("\n")
        page.put(" " * ((_SCREEN - len(words)) // 2 - 1) + words)
        page.put("\n\n")
        points = f"{world.score} out of a possible {self._fiction.highest_score}"
        if self._fiction.highest_score == float("inf"):
            points = f"a total of {world.score} point{'' if world.score == 1 else 's'}"
        page.put(f"You scored {points}, in {world.turns} turn{'' if world.turns == 1 else 's'}.\n")
        page.put("\n\n" + _FINAL_QUESTION)

    def _follow(self, events: list[str]) -> None:
        """Keep the facts in step with the story."""
        logic = self._logic
        for event in events:
            action = logic.detect(self._state, event)
            self._state = logic.end_turn(self._state) if action is None else logic.apply(self._state, action)

    def _status(self, score: int | None = None, turns: int | None = None) -> str:
        world = self._world
        assert self._fiction is not None
        shown = f"{world.score if score is None else score}/{world.turns if turns is None else turns}"
        return f"{' ' * _SCREEN}{self._fiction.names[world.room]}{shown}"

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
        """See `Engine`."""
        self._fiction = None


_FINAL_QUESTION = "Would you like to RESTART, RESTORE a saved game, QUIT or UNDO the last command?\n> "


def _in_words(number: int) -> str:
    words = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    return words[number] if 0 <= number < len(words) else str(number)
