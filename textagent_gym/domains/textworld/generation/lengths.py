"""Whether every step back from the goal makes the shortest solution longer.

From one step back to the next the goal stays and the start changes a little, so what was found out is kept: which
actions can be done, and which of them are wanted. `planner` finds the shortest solution of a whole game, with the same
search; here the steps taken so far are a solution, so only shorter ones are looked for.

Left out from the beginning are actions that only undo others (see `search`, 1): `drop`, `put`, `insert`, `close` and
`lock`, except with a thing that a goal mentions.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from textagent_gym.domains.textworld.generation.backchaining import Facts, Step
from textagent_gym.domains.textworld.generation.backward_rules import Rules
from textagent_gym.domains.textworld.generation.patterns import Index, Pattern, add_to_index, fill, signature, uses_of
from textagent_gym.domains.textworld.logic import Fact

_STATES = 2_000  # Expanded before the search gives up. The most seen in 1,600 searches was 107.


class Move(NamedTuple):
    """An action, as bits."""

    needs: int
    removes: int
    adds: int


class ForwardRules:
    """The rules that change anything, prepared.

    Args:
        rules: prepared rules.

    Attributes:
        undoing: names of the rules whose actions only undo others.
        uses: what a new fact may be wanted for.
    """

    def __init__(self, rules: Rules) -> None:
        changing = [rule for rule in rules.forward if set(rule.needs) != set(rule.gives)]
        self.undoing = _undoing(changing, rules)
        self.uses = uses_of(changing, rules.subtypes, rules.constants)


@lru_cache(maxsize=8)
def forward_rules(rules: Rules) -> ForwardRules:
    """The rules of a game; prepared once."""
    return ForwardRules(rules)


def _undoing(changing: list[Pattern], rules: Rules) -> frozenset[str]:
    """Names of the rules of which what they add is wanted by nothing but the rules that take it back."""

    def can_be(one: Fact, of: Pattern, other: Fact, than: Pattern) -> bool:
        return (one[0], len(one)) == (other[0], len(other)) and all(
            rules.subtypes[of.types[a]] & rules.subtypes[than.types[b]] for a, b in zip(one[1:], other[1:], strict=True)
        )

    def only_undoes(rule: Pattern, kept: list[Pattern]) -> bool:
        opposite = set(rule.gives), set(rule.needs)
        return any((set(other.needs), set(other.gives)) == opposite for other in kept) and not any(
            can_be(wanted, other, added, rule)
            for other in kept
            if (set(other.needs), set(other.gives)) != opposite
            for wanted in other.needs
            for added in set(rule.gives) - set(rule.needs)
        )

    kept = changing
    while True:
        pointless = [rule for rule in kept if only_undoes(rule, kept)]
        if not pointless:
            return frozenset(rule.name for rule in changing) - {rule.name for rule in kept}
        kept = [rule for rule in kept if rule not in pointless]


@dataclass(slots=True)
class _Reach:
    """What can ever become true from a step on, and how. A step shares the mappings' values with the one after it.

    Attributes:
        goals: facts that complete each quest.
        things: entities that goals mention, without rooms.
        wanted: facts that lead to a goal.
        index: facts that can become true, and those that never change.
        mask: those of them that can change.
        adders: actions by each fact that they add.
        here: actions that add one of those, by the room that they need the player to be in.
        shared: what all actions that add a fact need, and what they add, for facts that were asked for.
        counts: numbers of actions that sets of facts take at least, for sets that were asked for.
        least: numbers of actions that certainly lie between states and the goal, as earlier searches have shown.
        most: numbers of actions in which the goal was reached from states.
    """

    goals: tuple[int, ...]
    things: frozenset[str]
    wanted: int
    index: Index
    mask: int = 0
    adders: dict[int, tuple[Move, ...]] = field(default_factory=dict)
    here: dict[int, tuple[Move, ...]] = field(default_factory=dict)
    shared: dict[int, tuple[int, int]] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    least: dict[int, int] = field(default_factory=dict)
    most: dict[int, int] = field(default_factory=dict)


class Lengths:
    """What is known of the solutions that begin before each step.

    Args:
        rules: prepared rules.
        facts: bits of the facts.
    """

    def __init__(self, rules: Rules, facts: Facts) -> None:
        self._forward, self._facts = forward_rules(rules), facts
        self._reached: dict[Step, _Reach] = {}
        self._rooms = facts.mask(("at", "P", room) for room in facts.rooms)

    def can_be_shortened(self, step: Step, goals: tuple[int, ...], length: int) -> bool | None:
        """Whether a solution that begins before a step takes fewer than `length` actions; `None` if that takes long.

        Args:
            step: step back, all of whose parents were asked for before, or none.
            goals: facts that complete each quest.
            length: number of actions of the steps so far, which are a solution.
        """
        reach = self._reached[step] = self._reach(step, goals)
        return self._search(reach, step.state, length)

    def _reach(self, step: Step, goals: tuple[int, ...]) -> _Reach:
        known = self._reached.get(step.parent) if step.parent is not None else None
        if known is None or known.goals != goals:
            union = 0
            for goal in goals:
                union |= goal
            types = self._facts.types
            things = frozenset(
                entity for fact in self._facts.of(union) for entity in fact[1:] if types[entity] not in ("r", entity)
            )
            known = _Reach(goals, things, union, self._facts.fixed)
        elif not step.state & ~known.mask:
            return known
        reach = _Reach(
            goals, known.things, known.wanted, dict(known.index), known.mask, dict(known.adders), dict(known.here)
        )
        self._grow(reach, self._facts.of(step.state & ~known.mask))
        return reach

    def _grow(self, reach: _Reach, waiting: list[Fact]) -> None:
        facts, forward = self._facts, self._forward
        for fact in waiting:  # It grows while it is read.
            bit = facts.bit(fact)
            if not bit & ~reach.mask:
                continue
            reach.mask |= bit
            add_to_index(reach.index, fact, facts.types)
            for use in forward.uses.get(signature(fact, facts.types), ()):
                for entities in use.matches(fact, reach.index, facts.types):
                    before, after = fill(use.rule.needs, entities), fill(use.rule.gives, entities)
                    changed = {*before} ^ {*after}
                    if use.rule.name not in forward.undoing or any(one[1] in reach.things for one in changed):
                        needs, gives = facts.mask(before), facts.mask(after)
                        self._add(reach, Move(needs, needs & ~gives, gives & ~needs))
                        waiting += after

    def _add(self, reach: _Reach, move: Move) -> None:
        for bit in _bits(move.adds):
            reach.adders[bit] = (*reach.adders.get(bit, ()), move)
        if not move.adds & reach.wanted:
            return
        useful = [move]
        for one in useful:  # It grows while it is read.
            room = one.needs & self._rooms
            reach.here[room] = (*reach.here.get(room, ()), one)
            for bit in _bits(one.needs & ~reach.wanted):
                useful += [other for other in reach.adders.get(bit, ()) if not other.adds & reach.wanted]
                reach.wanted |= bit

    def _search(self, reach: _Reach, start: int, length: int) -> bool | None:
        """A*, as in `search`, of solutions shorter than a length.

        From one step back to the next, most states come again, so that what a search shows is noted for the next one.
        """
        goals, wanted, here, least, most = reach.goals, reach.wanted, reach.here, reach.least, reach.most
        everywhere = here.get(0, ())
        won = (1 << len(goals)) - 1
        start &= wanted
        cost, came = {start: 0}, {start: start}
        ahead = max(self._remaining(reach, start), least.get(start, 0))
        queue = [(ahead, 0, 0, start)] if ahead < length else []
        closed: set[int] = set()
        order = 0
        while queue:
            bound, _, _, state = heapq.heappop(queue)
            if state in closed:
                continue
            closed.add(state)
            total = cost[state] + (0 if state & won == won else most.get(state, length))
            if total < length:
                _note_least(least, cost, bound)
                for reached_by in _way(came, state):
                    most[reached_by] = min(most.get(reached_by, length), total - cost[reached_by])
                return True
            if len(closed) > _STATES:
                return None
            steps = cost[state] + 1
            reached = [
                (state & ~removes | adds) & wanted | state & won
                for moves in (here.get(state & self._rooms, ()), everywhere)
                for needs, removes, adds in moves
                if state & needs == needs
            ]
            if state == start:  # A quest whose condition holds from the start is completed by any turn.
                reached.append(state)
            for facts in reached:
                after = facts
                for number, goal in enumerate(goals):
                    if facts & goal == goal:
                        after |= 1 << number
                if cost.get(after, steps + 1) > steps:
                    cost[after], came[after] = steps, state
                    closed.discard(after)  # The heuristic is not consistent: a cheaper way may come late.
                    ahead = least.get(after, 0)
                    if steps + ahead < length:
                        ahead = max(self._remaining(reach, after), ahead)
                    if steps + ahead < length:
                        order += 1
                        heapq.heappush(queue, (steps + ahead, -steps, order, after))
        _note_least(least, cost, length)
        most[start] = length  # In that many actions, the steps so far are a solution.
        return False

    def _remaining(self, reach: _Reach, state: int) -> int:
        """Number of actions that are certainly still needed: see `search`."""
        landmarks = 0
        for number, goal in enumerate(reach.goals):
            if not state >> number & 1:
                landmarks |= goal
        fresh = landmarks = landmarks & ~state
        while fresh:
            low = fresh & -fresh
            new = (reach.shared.get(low) or self._share(reach, low))[0] & ~state & ~landmarks
            landmarks |= new
            fresh = fresh ^ low | new
        count = reach.counts.get(landmarks)
        if count is None:
            count = reach.counts[landmarks] = self._count(reach, landmarks)
        return count

    def _count(self, reach: _Reach, landmarks: int) -> int:
        """Number of landmarks of which no action adds two."""
        count, covered = 0, 0
        for fact in _bits(landmarks):
            if not fact & covered:
                count += 1
                covered |= reach.shared[fact][1]
        return count

    def _share(self, reach: _Reach, fact: int) -> tuple[int, int]:
        needs, adds = -1, fact
        for move in reach.adders.get(fact, ()):
            needs &= move.needs
            adds |= move.adds
        known = reach.shared[fact] = (needs if needs >= 0 else 0), adds
        return known


def _way(came: dict[int, int], state: int) -> Iterator[int]:
    """A state, and those on the way to it."""
    yield state
    while came[state] != state:
        state = came[state]
        yield state


def _note_least(least: dict[int, int], cost: dict[int, int], length: int) -> None:
    """Note that what lies near a start is far from the goal as well, if the start is `length` actions from it."""
    for state, steps in cost.items():
        if length - steps > least.get(state, 0):
            least[state] = length - steps


def _bits(mask: int) -> Iterable[int]:
    while mask:
        low = mask & -mask
        yield low
        mask ^= low
