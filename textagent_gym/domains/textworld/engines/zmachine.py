"""The compiled game itself, run by Frotz through `jericho`: commands in, text and facts out.

What an agent types reaches Frotz only after `commands.playable`, for bytes that it cannot take end the whole process.
An action about the program that gets through all the same is recognised by the trace of Inform's actions, and the turn
is taken back. The same trace tells which facts hold.
"""

from __future__ import annotations

import re
import warnings
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Any

from textagent_gym.domains.textworld.commands import UNKNOWN_VERB
from textagent_gym.domains.textworld.engines.engine import Engine, Reply
from textagent_gym.domains.textworld.logic import GameLogic
from textagent_gym.domains.textworld.prose import LOST, WON
from textagent_gym.domains.textworld.store import StoredGame
from textagent_gym.domains.textworld.story import check_story
from textagent_gym.errors import GenerationError, MissingDependencyError

_KEPT_OPENINGS = 512  # Stories whose first moment is remembered (60 KB each), so that a reset need not replay it.

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


@dataclass(frozen=True, slots=True)
class _Opening:
    """The first moment of a story, shared by all who play it."""

    text: str
    machine: Any


@dataclass(frozen=True, slots=True)
class _Moment:
    """A saved moment: the interpreter's whole state (about 60 KB, never written to), and the facts that hold."""

    machine: Any
    state: int | None


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


class ZMachine(Engine):
    """The engine that runs the compiled game; every environment has an interpreter to itself.

    Raises:
        MissingDependencyError: `jericho` is not installed.
    """

    _openings: OrderedDict[str, _Opening] = OrderedDict()  # noqa: RUF012 (shared on purpose, guarded by the lock)
    _openings_lock = Lock()

    def __init__(self) -> None:
        try:
            import jericho
        except ImportError as error:
            raise MissingDependencyError("jericho", "textworld") from error
        self._jericho = jericho
        self._frotz: Any = None
        self._story = ""
        self._logic: GameLogic | None = None
        self._state: int | None = None

    def start(self, game: StoredGame) -> str:
        """See `Engine`; the same path must always hold the same story."""
        story = str(game.story)
        if story != self._story:
            self._load(story)
        self._logic = game.logic
        self._state = None if game.logic is None else game.logic.initial
        with self._openings_lock:
            opening = self._openings.get(story)
        if opening is not None:
            self._frotz.set_state(opening.machine)
            return opening.text
        # Only a story that TextWorld made can report the actions that run.
        opening = self._first_moment(reporting=game.logic is not None)
        with self._openings_lock:
            self._openings[story] = opening
            while len(self._openings) > _KEPT_OPENINGS:
                self._openings.popitem(last=False)
        return opening.text

    def step(self, command: str) -> Reply:
        """See `Engine`."""
        before = self._frotz.get_state()
        answer = self._send(command)
        if answer.meddled:
            self._frotz.set_state(before)
            answer = self._send(UNKNOWN_VERB)
        self._follow(answer.events)
        return Reply(answer.text, len(answer.events), won=WON in answer.text, lost=LOST in answer.text)

    @property
    def state(self) -> int | None:
        """See `Engine`."""
        return self._state

    @property
    def order(self) -> bytes:
        """See `Engine`: parent, sibling and child of every object, from the interpreter's memory."""
        memory = self._frotz.get_state()[0].tobytes()
        return b"".join(memory[at + _ATTRIBUTES : at + _LINKED] for at in _objects(memory))

    def snapshot(self) -> object:
        """See `Engine`."""
        return _Moment(self._frotz.get_state(), self._state)

    def restore(self, moment: object) -> None:
        """See `Engine`."""
        assert isinstance(moment, _Moment)
        self._frotz.set_state(moment.machine)
        self._state = moment.state

    def close(self) -> None:
        """See `Engine`."""
        self._frotz = None
        self._story = ""

    def _load(self, story: str) -> None:
        self._story = ""
        check_story(story)
        with warnings.catch_warnings():
            # Jericho knows the scores of some published games and warns of every other story.
            warnings.simplefilter("ignore")
            try:
                if self._frotz is None:
                    self._frotz = self._jericho.FrotzEnv(story, seed=1)
                else:
                    self._frotz.close()  # Otherwise the memory of the story before is never given back.
                    self._frotz._cache.clear()  # It would keep every story that it has ever read.
                    self._frotz.load(story, seed=1)
            except (OSError, ValueError) as error:
                raise GenerationError(f"{story} cannot be played: {error}") from error
        self._story = story

    def _first_moment(self, *, reporting: bool) -> _Opening:
        raw: str = self._frotz.reset()[0]
        if reporting:
            for request in (*_REPORTING, UNKNOWN_VERB):  # The last one is what "again" repeats.
                self._frotz.step(request)
        return _Opening(_printed(raw), self._frotz.get_state())

    def _send(self, command: str) -> _Answer:
        raw: str = self._frotz.step(command)[0]
        traced = [tag.strip()[1:-1] for tag in _TRACE.findall(raw)]
        # A bracketed number marks an action that runs inside another one; only the outer one is a turn.
        outer = [event for event in traced if "(" not in event and ")" not in event]
        events = tuple(event[: event.index(_SUCCEEDED)] for event in outer if _SUCCEEDED in event)
        meddled = any(_PROGRAM_EVENT.match(event) for event in outer) or bool(_QUESTION.search(raw))
        return _Answer(_printed(raw), events, meddled and WON not in raw and LOST not in raw)

    def _follow(self, events: tuple[str, ...]) -> None:
        """Keep the facts in step with the story."""
        logic = self._logic
        if logic is None or self._state is None:
            return
        for event in events:
            action = logic.detect(self._state, event)
            self._state = logic.end_turn(self._state) if action is None else logic.apply(self._state, action)


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
