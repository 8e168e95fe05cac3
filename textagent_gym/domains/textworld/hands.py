"""What can be left out of a search in games in which only a few things can be carried.

TextWorld gives such a game slots: what is taken uses one, what is put down frees it. Three reductions, each of which
keeps the length of the shortest solution:

1. *Slots are alike.* Only their number in use matters, so the first ones are used and the others are free.
2. *Some things are only in the way.* Where a thing in hand is of no use but to be put down, it is never taken: without
   that, and without putting it down again, more slots are free all the while.
3. *One way to put something down is enough*, if it asks for no more than the others, and the thing can be taken, and
   used, from there as well: "drop" does for "put on" and "insert into".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

from textagent_gym.domains.textworld.landmarks import bits, union
from textagent_gym.domains.textworld.logic import Action, GameLogic


class Hands:
    """The slots of a game; one without slots has no use for the methods.

    Args:
        logic: logic of the game.

    Attributes:
        facts: facts that say which slots are free and which are used; none in games without slots.
    """

    def __init__(self, logic: GameLogic) -> None:
        self._logic = logic
        self._rooms = logic.rooms
        bit = {fact: 1 << index for index, fact in enumerate(logic.facts)}
        slots = sorted(fact[1] for fact in bit if fact[0] == "free" and ("used", fact[1]) in bit)
        free, used = [bit["free", slot] for slot in slots], [bit["used", slot] for slot in slots]
        self._free = union(free)
        self.facts = self._free | union(used)
        self._in_use = [union(used[:count] + free[count:]) for count in range(len(slots) + 1)]
        self._edges = [union(used[:count][-1:] + free[count:][:1]) for count in range(len(slots) + 1)]

    def sort(self, state: int) -> int:
        """The state in which the first slots are used, as many as there are in this one."""
        return state & ~self.facts | self._in_use[len(self._in_use) - 1 - (state & self._free).bit_count()]

    def sorted_actions(self, actions: Iterable[Action]) -> list[Action]:
        """The actions between sorted states, one for each number of slots in use."""
        kept: dict[tuple[int, int, int, str], Action] = {}
        for action in actions:
            if not (action.needs | action.removes | action.adds) & self.facts:
                kept[action.needs, action.removes, action.adds, action.command] = action
                continue
            for before, edge in zip(self._in_use, self._edges, strict=True):
                after = (before & ~action.removes | action.adds) & self.facts
                if action.needs & self.facts & ~before or after not in self._in_use:
                    continue
                needs = action.needs | edge
                kept.setdefault((needs, action.removes, action.adds, action.command), replace(action, needs=needs))
        return list(kept.values())

    def original(self, action: Action, state: int) -> Action:
        """The game's own action that does in a state what one between sorted states does."""
        same = action.command, action.event, action.removes & ~self.facts, action.adds & ~self.facts
        return next(
            each
            for each in self._logic.applicable(state)
            if (each.command, each.event, each.removes & ~self.facts, each.adds & ~self.facts) == same
        )

    def useful(self, actions: Sequence[Action], goal: int, harm: int) -> list[Action]:
        """The actions without those that take what is only in the way, or put something down in a worse way.

        Args:
            actions: actions between sorted states.
            goal: facts that quests ask for.
            harm: facts that lose a quest.
        """
        wanted = goal | union(action.needs for action in actions)
        needing = _by_fact(actions, lambda action: action.needs)
        left_out = self._in_the_way(actions, needing, wanted, goal, harm)
        serves = cache(partial(self._serves, needing=needing, wanted=wanted, harm=harm))

        def does_for(other: Action, action: Action) -> bool:
            lacking = action.adds & wanted & ~other.adds
            return not lacking & goal and all(
                any(serves(instead, place) for instead in bits(other.adds & ~self.facts)) for place in bits(lacking)
            )

        putting: dict[tuple[int, int], list[Action]] = {}
        for action in actions:
            if action.adds & self._free:
                for held in bits(action.removes & ~self.facts):
                    putting.setdefault((held, action.needs & self.facts), []).append(action)
        for ways in putting.values():
            for action in ways:
                better = [
                    other
                    for other in ways
                    if self._asks_for_less(other, action) and not other.adds & harm and does_for(other, action)
                ]
                rooms = action.needs & self._rooms or self._rooms
                if better and not rooms & ~union(other.needs & self._rooms or self._rooms for other in better):
                    left_out.add(action)
        return [action for action in actions if action not in left_out]

    def _in_the_way(
        self, actions: Sequence[Action], needing: Mapping[int, Sequence[Action]], wanted: int, goal: int, harm: int
    ) -> set[Action]:
        """Actions that take what can only be put down again, where nobody else asks for the places that it comes to."""
        pointless: set[Action] = set()
        for held, takes in _by_fact(actions, lambda action: action.adds).items():
            if held & (goal | harm | self.facts) or not all(take.removes & self._free for take in takes):
                continue
            if any(take.adds & wanted & ~(held | self.facts) or take.removes & harm for take in takes):
                continue
            places = union(take.removes for take in takes) & ~(goal | self.facts)
            allowed = self.facts | union(place for place in bits(places) if set(needing.get(place, ())) <= set(takes))
            if all(put.removes & held and not put.adds & wanted & ~allowed for put in needing.get(held, ())):
                pointless.update(takes)
        return pointless

    def _asks_for_less(self, other: Action, action: Action) -> bool:
        """Whether another action, in its rooms, needs and removes no more; of two equal ones, one does."""
        asked, needed = action.needs & ~self._rooms, other.needs & ~self._rooms
        return (
            not needed & ~asked
            and not other.removes & ~action.removes
            and (needed != asked or (other.command, other.needs) < (action.command, action.needs))
        )

    @staticmethod
    def _serves(instead: int, place: int, *, needing: Mapping[int, Sequence[Action]], wanted: int, harm: int) -> bool:
        """Whether whatever can be done from one place of a thing can be done from another as well."""
        return all(
            any(
                not (other.needs & ~instead) & ~action.needs
                and not (other.removes & ~instead) & ~action.removes
                and not action.adds & wanted & ~other.adds
                and not other.adds & harm & ~action.adds
                for other in needing.get(instead, ())
            )
            for action in needing.get(place, ())
        )


def _by_fact(actions: Iterable[Action], facts: Callable[[Action], int]) -> dict[int, list[Action]]:
    grouped: dict[int, list[Action]] = {}
    for action in actions:
        for fact in bits(facts(action)):
            grouped.setdefault(fact, []).append(action)
    return grouped
