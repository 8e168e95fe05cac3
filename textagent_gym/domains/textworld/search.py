"""A* for the shortest solution of a game, on a state reduced to what can matter.

Three reductions, each of which keeps the length of the shortest solution. All rest on one property of TextWorld's
rules: no condition asks that a fact be *false*, so facts that hold in addition never forbid anything.

1. *Undoing is pointless.* An action `a` (drop, put, insert, close, lock) may be left out of every plan if what it adds
   is wanted by nothing but the actions that take it back (`b` with `b.removes == a.adds` and `b.adds == a.removes`)
   and by no quest, and if keeping what it removes loses no quest. Take a plan with `a`: without `a`, and without the
   next `b` if there is one, each other action still has its conditions. Where hands are limited (cooking games with
   `drop`), putting down also frees a hand, which other actions want, so there it is kept.
2. *Only what is wanted.* Actions that add nothing that a quest, or a condition of a wanted action, asks for never help.
3. *Projection.* Facts that no wanted action and no quest mentions are forgotten, so states that differ only in them
   are one.

The heuristic counts landmarks: facts that must become true on every way to the goal, taken so that no action makes two
of them true at once. It never overestimates, so the first solution that A* takes from its queue is a shortest one.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from textagent_gym.domains.textworld.logic import Action, GameLogic, actions_by_room

_CLOSE_ENOUGH = 5  # Weight of the heuristic in a search for a plan that need not be a shortest one.


class ReducedGame:
    """The game after the three reductions.

    Args:
        logic: logic of the whole game.

    Attributes:
        actions: actions that can matter.
        mask: facts that can matter; `state & mask` is the projection of a state.
    """

    def __init__(self, logic: GameLogic) -> None:
        self.logic = logic
        wins = [win for quest in logic.quests if quest.required for win in quest.wins]
        fails = [fail for quest in logic.quests for fail in quest.fails]
        won_facts, fail_facts = _union(wins), _union(fails)
        changing = [action for action in logic.actions if action.adds or action.removes]
        useful = _without_undoing(changing, won_facts, fail_facts)
        wanted, self.actions = _wanted(useful, won_facts)
        quest_bits = ((1 << (len(logic.quests) + 1)) - 1) << len(logic.facts)
        self.mask = wanted | won_facts | fail_facts | quest_bits
        self._rooms = logic.rooms
        self._by_room = actions_by_room(self.actions, logic.rooms)
        self._last: _Landmarks | None = None
        self._anything = next((a for a in logic.actions if a.command == "look"), None) or logic.actions[0]

    def lower_bound(self, state: int) -> int | None:
        """Number of actions that are certainly needed from a projected state; `None` where no number is enough."""
        return self._landmarks(state).remaining(state)

    def _landmarks(self, start: int) -> _Landmarks:
        """Landmarks from a state; a search often begins where a bound was asked for just before."""
        last = self._last
        if last is None or last.start != start:
            last = self._last = _Landmarks(self, start)
        return last

    def search(self, start: int, budget: int) -> tuple[list[tuple[int, Action]] | None, bool]:
        """A* from a projected state: the way as (state, action) pairs or `None`, and whether the answer is proven.

        Args:
            start: projected state.
            budget: number of states that each of the two searches may expand: first for a shortest way, then for any.
        """
        landmarks = self._landmarks(start)
        path, finished = self._astar(start, budget, 1, landmarks)
        if finished:
            return path, True
        path, finished = self._astar(start, budget, _CLOSE_ENOUGH, landmarks)
        return path, finished and path is None

    def _successors(self, state: int) -> Iterable[tuple[Action, int]]:
        logic, mask = self.logic, self.mask
        ended = logic.end_turn(state)
        if ended != state:  # A quest whose condition holds from the start is completed by any turn.
            noop = next((a for a in logic.applicable(state) if not a.adds and not a.removes), self._anything)
            yield noop, ended
        for action in self._by_room.get(state & self._rooms, self.actions):
            if state & action.needs == action.needs:
                yield action, logic.end_turn((state & ~action.removes) | action.adds) & mask

    def _astar(
        self, start: int, budget: int, weight: int, landmarks: _Landmarks
    ) -> tuple[list[tuple[int, Action]] | None, bool]:
        logic = self.logic
        came: dict[int, tuple[int, Action] | None] = {start: None}
        cost = {start: 0}
        first = landmarks.remaining(start)
        if first is None:
            return None, True
        # Ties: the deeper state first, then the older one, so that equal searches give equal plans everywhere.
        queue = [(weight * first, 0, 0, start)]
        closed: set[int] = set()
        order = 0
        while queue:
            _, _, _, state = heapq.heappop(queue)
            if state in closed:
                continue
            closed.add(state)
            if logic.won(state):
                return _path(came, state), True
            if len(closed) > budget:
                return None, False
            steps = cost[state] + 1
            for action, after in self._successors(state):
                if logic.lost(after) or cost.get(after, steps + 1) <= steps:
                    continue
                ahead = landmarks.remaining(after)
                if ahead is None:
                    continue
                cost[after] = steps
                closed.discard(after)  # The heuristic is admissible but not consistent: a cheaper way may come late.
                came[after] = (state, action)
                order += 1
                heapq.heappush(queue, (steps + weight * ahead, -steps, order, after))
        return None, True


def _path(came: dict[int, tuple[int, Action] | None], state: int) -> list[tuple[int, Action]]:
    path = []
    step = came[state]
    while step is not None:
        path.append(step)
        step = came[step[0]]
    return path[::-1]


def _union(masks: Iterable[int]) -> int:
    union = 0
    for mask in masks:
        union |= mask
    return union


def _without_undoing(actions: list[Action], won_facts: int, fail_facts: int) -> list[Action]:
    """Leave out actions that only undo others, until none is left (see the module's docstring, 1)."""
    kept = list(actions)
    while True:
        changes = {(action.removes, action.adds) for action in kept}
        undoing = [
            (removes, adds)
            for removes, adds in changes
            if removes and (adds, removes) in changes and not adds & won_facts and not removes & fail_facts
        ]
        undone = _union(adds for _, adds in undoing)
        wanted_by: dict[int, tuple[int, int] | None] = {}  # What is wanted by several has no one change.
        for action in kept:
            change = action.removes, action.adds
            for fact in _bits(action.needs & undone):
                if wanted_by.setdefault(fact, change) != change:
                    wanted_by[fact] = None
        pointless = {
            (removes, adds)
            for removes, adds in undoing
            if all(wanted_by.get(fact, (adds, removes)) == (adds, removes) for fact in _bits(adds))
        }
        if not pointless:
            return kept
        kept = [action for action in kept if (action.removes, action.adds) not in pointless]


def _wanted(actions: list[Action], goal: int) -> tuple[int, list[Action]]:
    """The facts that lead to the goal and the actions that add one of them (2)."""
    wanted, chosen = goal, [False] * len(actions)
    growing = True
    while growing:
        growing = False
        for index, action in enumerate(actions):
            if not chosen[index] and action.adds & wanted:
                chosen[index] = growing = True
                wanted |= action.needs
    return wanted, [action for index, action in enumerate(actions) if chosen[index]]


class _Landmarks:
    """Facts that must become true on every way to the goal from a state reachable from `start`.

    Args:
        reduced: game after the reductions.
        start: projected state.
    """

    def __init__(self, reduced: ReducedGame, start: int) -> None:
        self.start = start
        self._logic = reduced.logic
        reachable, actions = _relaxed(reduced.actions, start, reduced.mask)
        self._reachable = reachable
        adders: dict[int, list[Action]] = {}
        for action in actions:
            for fact in _bits(action.adds & reduced.mask):
                adders.setdefault(fact, []).append(action)
        self._common: dict[int, int] = {}
        for fact, some in adders.items():
            common = some[0].needs
            for action in some[1:]:
                common &= action.needs
            self._common[fact] = common & reduced.mask
        # Facts that one action can add together count once: each is represented by the lowest of its company.
        self._company: dict[int, int] = {
            fact: _union(action.adds & reduced.mask for action in some) for fact, some in adders.items()
        }
        self._counted: dict[int, int] = {}

    def remaining(self, state: int) -> int | None:
        """A number of actions that is certainly still needed; `None` where the goal is certainly out of reach."""
        logic = self._logic
        needed = 0
        for index, quest in enumerate(logic.quests):
            if not quest.required or state & logic.completed_bit(index):
                continue
            possible = [win & ~state for win in quest.wins if not (win & ~state) & ~self._reachable]
            if not possible:
                return None
            common = possible[0]
            for win in possible[1:]:
                common &= win
            needed |= common
        count = self._counted.get(needed_key := self._close(needed, state))
        if count is None:
            count = self._counted[needed_key] = self._count(needed_key)
        return count

    def _close(self, needed: int, state: int) -> int:
        """The needed facts and everything that all their adders need, as far as it does not hold yet."""
        landmarks = fresh = needed & ~state
        while fresh:
            low = fresh & -fresh
            fresh ^= low
            new = self._common.get(low, 0) & ~state & ~landmarks
            landmarks |= new
            fresh |= new
        return landmarks

    def _count(self, landmarks: int) -> int:
        count, covered = 0, 0
        for fact in _bits(landmarks):
            if not fact & covered:
                count += 1
                covered |= self._company.get(fact, fact)
        return count


def _bits(mask: int) -> Iterable[int]:
    while mask:
        low = mask & -mask
        yield low
        mask ^= low


def _relaxed(actions: list[Action], start: int, mask: int) -> tuple[int, list[Action]]:
    """What can ever become true from a state if nothing stopped being true, and the actions that can then be done."""
    reachable, waiting = start, actions
    done: list[Action] = []
    while True:
        left = []
        for action in waiting:
            if action.needs & mask & ~reachable:
                left.append(action)
            else:
                done.append(action)
                reachable |= action.adds
        if len(left) == len(waiting):
            return reachable, done
        waiting = left
