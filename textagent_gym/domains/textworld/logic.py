"""The logic of a TextWorld game as bits: which facts hold, which commands would do something, what has been won.

A fact is one bit of a Python integer and an action is three masks, so a state is one hashable number:

    state   = facts that can change | one bit per quest (completed) | one bit (lost)
    applies = state & needs == needs
    next    = (state & ~removes) | adds, then the quests are looked at

Where it comes from is told in `generation.grounding`; here nothing is known of TextWorld's own objects. The order of
preference among actions of the same event is that of `textworld.envs.wrappers.tw_inform7.StateTracking`; quests end a
game as the Inform 7 source of TextWorld says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_
from typing import Any

FORMAT = 2  # Of `to_dict`; raised whenever old entries could not be read any more.

Fact = tuple[str, ...]  # The predicate's name, then the names of its arguments.


@dataclass(frozen=True, slots=True)
class Action:
    """A rule with every variable filled in.

    Attributes:
        needs: facts that must hold.
        removes: facts that stop holding.
        adds: facts that begin to hold.
        command: text that a player types.
        event: name that Inform gives it in a trace, in lower case.
        terms: number of preconditions of the rule, by which TextWorld tells apart actions of the same event.
        also: facts that the compiled game wants in addition, though TextWorld's rule does not: without them it only
            says what is missing.
    """

    needs: int
    removes: int
    adds: int
    command: str
    event: str
    terms: int
    also: int = 0


@dataclass(frozen=True, slots=True)
class Quest:
    """A part of the goal: completed once the facts of one of `wins` hold after a turn, lost once one of `fails` does.

    `required` quests are those that must be completed to win.
    """

    wins: tuple[int, ...]
    fails: tuple[int, ...]
    required: bool
    repeatable: bool


def actions_by_room(actions: Iterable[Action], rooms: int) -> dict[int, tuple[Action, ...]]:
    """The actions that can be done in each room, in their order.

    Args:
        actions: actions.
        rooms: the facts that say where the player is.
    """
    by_room: dict[int, list[Action]] = {1 << i: [] for i in range(rooms.bit_length()) if rooms >> i & 1} or {0: []}
    for action in actions:
        here = action.needs & rooms
        for there in by_room.values() if not here else [by_room[here]] if here in by_room else []:
            there.append(action)
    return {room: tuple(some) for room, some in by_room.items()}


@dataclass(frozen=True, eq=False)
class GameLogic:
    """The logic of one game. Immutable, so it can be shared between threads and environments; equal to itself alone.

    Attributes:
        facts: names of the facts that can change; fact `i` is bit `1 << i` of a state.
        actions: everything that can ever be done.
        quests: the goal; quest `i` is completed when bit `1 << (len(facts) + i)` is set.
        start: state at the beginning.
        entities: number of things in the world: rooms, doors and objects.
    """

    facts: tuple[Fact, ...]
    actions: tuple[Action, ...]
    quests: tuple[Quest, ...]
    start: int
    entities: int

    @property
    def initial(self) -> int:
        """State at the beginning."""
        return self.start

    def applicable(self, state: int) -> Iterator[Action]:
        """Every action that could be done now, in the fixed order of `actions`."""
        here = self.in_room(state & self.rooms)
        return (action for action in here if state & action.needs == action.needs)

    def in_room(self, room: int) -> tuple[Action, ...]:
        """Every action that can be done where this fact says that the player is, in the order of `actions`."""
        return self._by_room.get(room, ())

    def detect(self, state: int, event: str) -> Action | None:
        """The action that Inform reported, or `None` if it changes and means nothing to the game's logic."""
        for action in self._by_event.get(event.lower(), ()):
            if state & action.needs == action.needs:
                return action
        return None

    def apply(self, state: int, action: Action) -> int:
        """State after an action and the end of its turn."""
        return self.end_turn((state & ~action.removes) | action.adds)

    def end_turn(self, state: int) -> int:
        """Complete or lose quests, as the compiled game does at the end of every turn."""
        facts = state
        for completed, wins, fails in self._tests:
            if facts & completed:
                continue
            for fail in fails:
                if facts & fail == fail:
                    state |= self.lost_bit
                    break
            else:
                for win in wins:
                    if facts & win == win:
                        state |= completed
                        break
        return state

    def needed(self, event: str) -> int:
        """The facts on which it depends what an event changes."""
        return self._needed.get(event.lower(), 0)

    def watched(self, changed: int) -> int:
        """The facts that `end_turn` looks at after some have changed: what was not the case comes about by a change."""
        watched = 0
        for facts in self._watched:
            if facts & changed or self._holds_at_start:
                watched |= facts
        return watched

    def won(self, state: int) -> bool:
        """The story has ended well."""
        return bool(self.required) and state & self.required == self.required and not self.lost(state)

    def lost(self, state: int) -> bool:
        """The story has ended badly."""
        return bool(state & self.lost_bit)

    def ended(self, state: int) -> bool:
        """The story has ended, well or badly."""
        return self.won(state) or self.lost(state)

    def completed_bit(self, quest: int) -> int:
        """The bit that says that a quest has been completed."""
        return 1 << (len(self.facts) + quest)

    @cached_property
    def lost_bit(self) -> int:
        """The bit that says that the game is lost."""
        return 1 << (len(self.facts) + len(self.quests))

    @cached_property
    def required(self) -> int:
        """The bits of all quests that must be completed to win."""
        return sum(self.completed_bit(index) for index, quest in enumerate(self.quests) if quest.required)

    @cached_property
    def rooms(self) -> int:
        """The facts that say where the player is: exactly one of them holds."""
        return sum(1 << i for i, fact in enumerate(self.facts) if fact[:2] == ("at", "P"))

    @cached_property
    def _by_room(self) -> dict[int, tuple[Action, ...]]:
        return actions_by_room(self.actions, self.rooms)

    @cached_property
    def _tests(self) -> tuple[tuple[int, tuple[int, ...], tuple[int, ...]], ...]:
        """Of each quest: its bit, the facts that complete it, and those that lose the game."""
        return tuple(
            (self.completed_bit(index), () if quest.repeatable else quest.wins, quest.fails)
            for index, quest in enumerate(self.quests)
        )

    @cached_property
    def _by_event(self) -> dict[str, tuple[Action, ...]]:
        by_event: dict[str, list[Action]] = defaultdict(list)
        for action in self.actions:
            by_event[action.event].append(action)
        return {event: tuple(sorted(same, key=lambda a: -a.terms)) for event, same in by_event.items()}

    @cached_property
    def _needed(self) -> dict[str, int]:
        return {
            event: reduce(or_, (a.needs for a in same), 0)
            for event, same in self._by_event.items()
            if any(a.adds or a.removes for a in same)
        }

    @cached_property
    def _watched(self) -> tuple[int, ...]:
        """Of each quest: its bit, and the facts that complete it or lose the game."""
        return tuple(reduce(or_, (*wins, *fails), completed) for completed, wins, fails in self._tests)

    @cached_property
    def _holds_at_start(self) -> bool:
        """Whether a quest is completed or lost without a change."""
        return self.end_turn(self.start) != self.start

    def to_dict(self) -> dict[str, Any]:
        """The logic as JSON values; masks are written in base 16."""
        return {
            "format": FORMAT,
            "facts": [" ".join(fact) for fact in self.facts],
            "actions": [
                [f"{a.needs:x}", f"{a.removes:x}", f"{a.adds:x}", a.command, a.event, a.terms, f"{a.also:x}"]
                for a in self.actions
            ],
            "quests": [
                [[f"{w:x}" for w in q.wins], [f"{f:x}" for f in q.fails], q.required, q.repeatable] for q in self.quests
            ],
            "start": f"{self.start:x}",
            "entities": self.entities,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> GameLogic:
        """What `to_dict` wrote.

        Raises:
            ValueError: it was written in another format.
        """
        if data.get("format") != FORMAT:
            raise ValueError(f"logic of format {data.get('format')!r}, expected {FORMAT}")
        return cls(
            tuple(tuple(fact.split(" ")) for fact in data["facts"]),
            tuple(
                Action(int(needs, 16), int(removes, 16), int(adds, 16), command, event, terms, int(also, 16))
                for needs, removes, adds, command, event, terms, also in data["actions"]
            ),
            tuple(
                Quest(tuple(int(w, 16) for w in wins), tuple(int(f, 16) for f in fails), required, repeatable)
                for wins, fails, required, repeatable in data["quests"]
            ),
            int(data["start"], 16),
            data["entities"],
        )
