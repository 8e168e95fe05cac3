"""How many actions are certainly needed: counted landmarks, facts that must become true on every way to the goal.

A fact that a goal asks for is a landmark, and so is what all actions need that can make a landmark true. Of landmarks
that one action can make true together, one counts, so no action is counted twice.

Which actions are possible depends on the state: a key that lies in another room than before is taken there. What can
become true from a state, if nothing stopped being true, decides it; and of that only what concerns the landmarks. So
most states of a game share a few tables of landmarks, and in each of these the count depends on few facts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

_TABLES = 256  # Tables of landmarks of a game that are kept, and origins of a fact, of about a KB each.
_COUNTS = 4_096  # Counts that are kept of each table.
_UNKNOWN = -1

Effect = tuple[int, int]
"""What an action needs and adds, of the facts that can matter."""

Goal = tuple[int, tuple[int, ...]]
"""The bit that says that a required quest is completed, with the sets of facts that complete it."""


class _Origin(NamedTuple):
    """How a fact can become true.

    Attributes:
        needs: facts that every possible action needs that adds it; none if no action does.
        company: facts that any of these actions adds, and the fact itself.
    """

    needs: int
    company: int


class LandmarkFinder:
    """The landmarks of one game from any state. Safe to share between threads.

    Args:
        goals: required quests.
        effects: actions that can matter.
    """

    def __init__(self, goals: Sequence[Goal], effects: Sequence[Effect]) -> None:
        self._goals = goals
        self._won_facts = union(win for _, wins in goals for win in wins)
        self._reach = _Reach(effects)
        self._adders: dict[int, _Adders] = {}
        for effect in effects:
            for fact in bits(effect[1]):
                self._adders.setdefault(fact, _Adders(fact)).include(effect)
        self._by_origins: dict[tuple[object, ...], Landmarks] = {}
        self._last: tuple[int, Landmarks] | None = None

    def landmarks(self, start: int) -> Landmarks:
        """The landmarks from a state, which are right for every state that can follow it."""
        last = self._last
        if last is None or last[0] != start:
            self._last = last = start, self._within(self._reach(start))
        return last[1]

    def _within(self, reach: int) -> Landmarks:
        """The landmarks where no other facts can become true."""
        origins: dict[int, _Origin] = {}
        wanted = watched = self._won_facts & reach
        while wanted:
            fact = wanted & -wanted
            adders = self._adders.get(fact)
            origins[fact] = origin = _Origin(0, fact) if adders is None else adders.within(reach)
            fresh = origin.needs & ~watched
            watched |= fresh
            wanted = wanted ^ fact | fresh
        impossible = self._won_facts & ~reach
        key = (impossible, *[(fact, needs, company & watched) for fact, (needs, company) in origins.items()])
        known = self._by_origins.get(key)
        if known is None:
            if len(self._by_origins) >= _TABLES:
                self._by_origins.clear()
            known = self._by_origins[key] = Landmarks(self._goals, impossible, origins)
        return known


class Landmarks:
    """Landmarks of the states that can follow one of several that are alike.

    Args:
        goals: required quests.
        impossible: facts of the goals that can never become true.
        origins: origins of the facts of the goals, and of the landmarks.
    """

    def __init__(self, goals: Sequence[Goal], impossible: int, origins: dict[int, _Origin]) -> None:
        self._goals = goals
        self._impossible = impossible
        self._origins = origins
        self._watched = impossible | union(origins) | union(completed for completed, _ in goals)
        self._counts: dict[int, int | None] = {}

    def remaining(self, state: int) -> int | None:
        """A number of actions that is certainly still needed; `None` where the goal is certainly out of reach."""
        watched = state & self._watched
        count = self._counts.get(watched, _UNKNOWN)
        if count == _UNKNOWN:
            needed = self._needed(watched)
            count = None if needed is None else self._count(self._close(needed, watched))
            if len(self._counts) >= _COUNTS:
                self._counts.clear()
            self._counts[watched] = count
        return count

    def _needed(self, state: int) -> int | None:
        """The facts that all ways to complete the quests ask for; `None` where a quest cannot be completed."""
        needed = 0
        for completed, wins in self._goals:
            if state & completed:
                continue
            possible = [win & ~state for win in wins if not win & ~state & self._impossible]
            if not possible:
                return None
            common = possible[0]
            for win in possible[1:]:
                common &= win
            needed |= common
        return needed

    def _close(self, needed: int, state: int) -> int:
        """The needed facts and everything that all their adders need, as far as it does not hold yet."""
        landmarks = fresh = needed
        while fresh:
            fact = fresh & -fresh
            new = self._origins[fact].needs & ~state & ~landmarks
            landmarks |= new
            fresh = fresh ^ fact | new
        return landmarks

    def _count(self, landmarks: int) -> int:
        """The number of landmarks without those that an action can add together with one that is counted."""
        count, covered = 0, 0
        for fact in bits(landmarks):
            if not fact & covered:
                count += 1
                covered |= self._origins[fact].company
        return count


class _Adders:
    """The actions that add a fact.

    Args:
        fact: the fact.
    """

    def __init__(self, fact: int) -> None:
        self._fact = fact
        self._effects: list[Effect] = []
        self._needs = 0
        self._known: dict[int, _Origin] = {}

    def include(self, effect: Effect) -> None:
        """Include an action."""
        self._effects.append(effect)
        self._needs |= effect[0]

    def within(self, reach: int) -> _Origin:
        """How the fact can become true where no others can than those in reach."""
        within = reach & self._needs
        origin = self._known.get(within)
        if origin is None:
            possible = [effect for effect in self._effects if not effect[0] & ~within]
            needs, company = -1 if possible else 0, self._fact
            for needed, added in possible:
                needs &= needed
                company |= added
            if len(self._known) >= _TABLES:
                self._known.clear()
            origin = self._known[within] = _Origin(needs, company)
        return origin


class _Reach:
    """What can ever become true from a state if nothing stopped being true.

    Every effect waits for one fact that it needs, the one that the fewest others need. When that becomes true, the
    effect takes place, or waits for another fact; what is far from possible is never looked at.

    Args:
        effects: actions that can matter.
    """

    def __init__(self, effects: Sequence[Effect]) -> None:
        needing = Counter(fact for needs, _ in effects for fact in bits(needs))
        self._free = 0  # Facts that need nothing.
        self._waiting: dict[int, list[Effect]] = {}
        for effect in effects:
            needs, adds = effect
            if needs:
                self._waiting.setdefault(min(bits(needs), key=needing.__getitem__), []).append(effect)
            else:
                self._free |= adds
        self._awaited = sum(self._waiting)

    def __call__(self, start: int) -> int:
        """The facts that can become true from a state, and those of the state."""
        reached = start | self._free
        waiting, late = self._waiting, dict[int, list[Effect]]()
        fresh = reached & self._awaited
        while fresh:
            fact = fresh & -fresh
            fresh ^= fact
            for effect in chain(waiting.get(fact, ()), late.pop(fact, ())):
                needs, adds = effect
                missing = needs & ~reached
                if missing:
                    late.setdefault(missing & -missing, []).append(effect)
                else:
                    fresh |= adds & ~reached
                    reached |= adds
        return reached


def bits(mask: int) -> Iterator[int]:
    """The bits of a set of facts, lowest first."""
    while mask:
        low = mask & -mask
        yield low
        mask ^= low


def union(masks: Iterable[int]) -> int:
    """The facts of several sets."""
    united = 0
    for mask in masks:
        united |= mask
    return united
