"""The compiled game itself, run by Frotz through `jericho`: commands in, text and facts out.

What an agent types reaches Frotz only after `commands.playable`, for bytes that it cannot take end the whole process.
An action about the program that gets through all the same is recognised by the trace of Inform's actions, and the turn
is taken back. The same trace tells which facts hold.

A compiled game draws from one stream of random numbers, which is a part of its state. So its reply follows from the
moment and the command, and Frotz runs each command once for everybody who comes to the same moment in this process:

    begin   game                     -> Moment
    play    game, moment, command    -> Moment
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textagent_gym.domains.textworld.commands import UNKNOWN_VERB
from textagent_gym.domains.textworld.engines.engine import Engine, Reply
from textagent_gym.domains.textworld.engines.interpreters import Interpreters, import_jericho
from textagent_gym.domains.textworld.prose import LOST, WON
from textagent_gym.domains.textworld.prose import plain as as_plain
from textagent_gym.domains.textworld.store import StoredGame
from textagent_gym.errors import GenerationError, WorldBrokenError

_REMEMBERED_OPENINGS = 512  # Games whose first moment is remembered, with the whole state of Frotz (40 to 70 KB each).
_REMEMBERED = 8_192  # Later moments of all games together, of 2 to 5 KB each.
# What Inform calls its actions about the program; the trace tells which action really ran.
_PROGRAM_EVENT = re.compile(
    r"^((saving|restoring|restarting|quitting) the game|verifying the story|preferring |requesting the |reporting "
    r"|switching (the story transcript|score notification)|tracing the actions"
    r"|turning o(n|ff) the (print|extra|restrict)|printing the (id|entire))"
)
_QUESTION = re.compile(r"Are you sure you want to|Please answer yes or no|Please give one of the answers")
# In the order of TextWorld's own environment: the very first texts depend on it.
_REPORTING = ("tw-extra-infos moves", "tw-extra-infos score", "tw-trace-actions")
_TRACE = re.compile(r"\[[^]]+\]\n?")
_EXTRA_INFO = re.compile(r"<(moves|score)>\n(.*)</\1>", re.DOTALL)
_SUCCEEDED = " - succeeded"

# The table of objects in the memory of a story, by the Z-Machine Standards Document 1.1, section 12 (versions 4 to 8).
_TABLE_AT = 0x0A  # Where the header says where the table begins.
_DEFAULTS = 63 * 2  # Length of the default properties, which come first.
_ATTRIBUTES, _LINKED, _ENTRY = 6, 12, 14  # An object: attributes, then parent, sibling and child, then its properties.

_interpreters = Interpreters()


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """A moment of a game, shared by all who come to it. Immutable; equal to itself alone.

    Attributes:
        reply: what the game said when it came to this moment.
        facts: facts that hold, as the game's logic counts them; `None` without a logic.
        first: state of Frotz at the game's first moment, as `jericho` gives it: memory and stack, then registers.
        places: (changes,) places in memory and stack, one after the other, that differ from the first moment's.
        values: (changes,) bytes there.
        registers: registers of Frotz and of its random numbers.
    """

    reply: Reply
    facts: int | None
    first: tuple[Any, ...]
    places: NDArray[np.uint32]
    values: NDArray[np.uint8]
    registers: tuple[Any, ...]

    @property
    def machine(self) -> tuple[Any, ...]:
        """State of Frotz, as `jericho` takes it."""
        memory = np.concatenate(self.first[:2])
        memory[self.places] = self.values
        return (*np.split(memory, [len(self.first[0])]), *self.registers)


@dataclass(frozen=True, slots=True)
class _Answer:
    """The interpreter's output, and what its trace tells.

    Attributes:
        text: output without the trace.
        events: Inform's actions that succeeded, in order, such as "opening the chest".
        meddled: whether an action about the program ran, or the game asks a question about the program before its end.
    """

    text: str
    events: tuple[str, ...]
    meddled: bool


@lru_cache(maxsize=_REMEMBERED_OPENINGS)
def begin(game: StoredGame) -> Moment:
    """The first moment of a game.

    Raises:
        GenerationError: its story cannot be read.
    """
    with _interpreters.borrow(str(game.story)) as frotz:
        raw: str = frotz.reset()[0]
        if game.logic is not None:  # Only a story that TextWorld made can report the actions that run.
            for request in (*_REPORTING, UNKNOWN_VERB):  # The last one is what "again" repeats.
                frotz.step(request)
        first = frotz.get_state()
    facts = None if game.logic is None else game.logic.initial
    return _moment(Reply(_printed(raw), 0, won=False, lost=False), facts, first, first)


@lru_cache(maxsize=_REMEMBERED)
def play(game: StoredGame, before: Moment, command: str) -> Moment:
    """The moment after a command.

    Args:
        game: game that is played.
        before: moment at which the command is typed.
        command: command, as `commands.playable` returns it.

    Raises:
        GenerationError: its story cannot be read any more.
    """
    with _interpreters.borrow(str(game.story)) as frotz:
        frotz.set_state(before.machine)
        answer = _send(frotz, command)
        if answer.meddled:
            frotz.set_state(before.machine)
            answer = _send(frotz, UNKNOWN_VERB)
        machine = frotz.get_state()
    reply = Reply(answer.text, len(answer.events), won=WON in answer.text, lost=LOST in answer.text)
    return _moment(reply, _follow(game, before.facts, answer.events), before.first, machine)


class ZMachine(Engine):
    """The engine that runs the compiled game.

    Raises:
        MissingDependencyError: `jericho` is not installed.
    """

    def __init__(self) -> None:
        import_jericho()
        self._game: StoredGame
        self._moment: Moment

    def start(self, game: StoredGame) -> str:
        """See `Engine`; the same path must always hold the same story."""
        _interpreters.admit(self)
        self._game, self._moment = game, begin(game)
        return self._moment.reply.text

    def step(self, command: str, *, plain: bool = False) -> Reply:
        """See `Engine`.

        Raises:
            WorldBrokenError: the story was deleted or damaged in the middle of the game.
        """
        try:
            self._moment = play(self._game, self._moment, command)
        except GenerationError as error:
            raise WorldBrokenError(str(error)) from error
        reply = self._moment.reply
        return reply._replace(text=as_plain(reply.text)) if plain else reply

    @property
    def state(self) -> int | None:
        """See `Engine`."""
        return self._moment.facts

    @property
    def order(self) -> bytes:
        """See `Engine`: parent, sibling and child of every object, from the interpreter's memory."""
        memory = self._moment.machine[0].tobytes()
        return b"".join(memory[at + _ATTRIBUTES : at + _LINKED] for at in _objects(memory))

    def snapshot(self) -> object:
        """See `Engine`."""
        return self._moment

    def restore(self, moment: object) -> None:
        """See `Engine`."""
        assert isinstance(moment, Moment)
        self._moment = moment

    def close(self) -> None:
        """See `Engine`."""
        _interpreters.dismiss(self)


def _moment(reply: Reply, facts: int | None, first: tuple[Any, ...], machine: tuple[Any, ...]) -> Moment:
    """A moment that holds of the state of Frotz what differs from the first moment's."""
    memory = np.concatenate(machine[:2])
    places = np.flatnonzero(memory != np.concatenate(first[:2])).astype(np.uint32)
    return Moment(reply, facts, first, places, memory[places], machine[2:])


def _send(frotz: Any, command: str) -> _Answer:
    raw: str = frotz.step(command)[0]
    traced = [tag.strip()[1:-1] for tag in _TRACE.findall(raw)]
    # A bracketed number marks an action that runs inside another one; only the outer one is a turn.
    outer = [event for event in traced if "(" not in event and ")" not in event]
    events = tuple(event[: event.index(_SUCCEEDED)] for event in outer if _SUCCEEDED in event)
    meddled = any(_PROGRAM_EVENT.match(event) for event in outer) or bool(_QUESTION.search(raw))
    return _Answer(_printed(raw), events, meddled and WON not in raw and LOST not in raw)


def _follow(game: StoredGame, facts: int | None, events: tuple[str, ...]) -> int | None:
    """The facts after actions that succeeded."""
    if game.logic is None or facts is None:
        return None
    for event in events:
        action = game.logic.detect(facts, event)
        facts = game.logic.end_turn(facts) if action is None else game.logic.apply(facts, action)
    return facts


def _objects(memory: bytes) -> Iterator[int]:
    """Address of every object. The table has no length: it ends where the first properties begin."""
    at, end = int.from_bytes(memory[_TABLE_AT : _TABLE_AT + 2]) + _DEFAULTS, len(memory)
    while at + _ENTRY <= end:
        yield at
        end = min(end, int.from_bytes(memory[at + _LINKED : at + _ENTRY]))
        at += _ENTRY


def _printed(raw: str) -> str:
    """The text that TextWorld's own environment returns: traces and extra infos cut out, everything else as it is."""
    return _TRACE.sub("", _EXTRA_INFO.sub("", raw))
