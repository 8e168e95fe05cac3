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

The heuristic counts landmarks (see `landmarks`). It never overestimates, so the first solution that A* takes from its
queue is a shortest one.

Searches in one game learn from each other. A state whose distance is known ends a search as the goal does. And where a
search has found that the goal is `n` actions from its start, a state `k` actions from the start is at least `n - k`
actions from the goal, which is more than landmarks say of most states that were expanded.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence

from textagent_gym.domains.textworld.hands import Hands
from textagent_gym.domains.textworld.landmarks import LandmarkFinder, Landmarks, bits, union
from textagent_gym.domains.textworld.logic import Action, GameLogic, actions_by_room

_CLOSE_ENOUGH = 5  # Weight of the heuristic in a search for a plan that need not be a shortest one.
_BOUNDS = 50_000  # States of a game of which a lower bound is kept that a search has shown, of about 100 bytes each.

Distances = dict[int, tuple[Action | None, int | None, bool]]
"""First action of a shortest way, its length, and whether that is proven, by projected state."""

Found = tuple[list[tuple[int, Action]] | None, int, bool]
"""A way as (state, action) pairs or `None`, the known distance from its end, and whether the search was finished."""


class ReducedGame:
    """The game after the three reductions.

    Args:
        logic: logic of the whole game.
        known: what is known of projected states; whoever searches adds to it.

    Attributes:
        actions: actions that can matter.
    """

    def __init__(self, logic: GameLogic, known: Distances) -> None:
        self.logic = logic
        self._known = known
        wins = [win for quest in logic.quests if quest.required for win in quest.wins]
        fails = [fail for quest in logic.quests for fail in quest.fails]
        won_facts, fail_facts = union(wins), union(fails)
        changing = [action for action in logic.actions if action.adds or action.removes]
        useful = _without_undoing(changing, won_facts, fail_facts)
        hands = Hands(logic)
        self._hands = hands if hands.facts else None
        wanted, self.actions = _wanted(hands.sorted_actions(useful) if self._hands else useful, won_facts)
        while self._hands:
            fewer = hands.useful(self.actions, won_facts, fail_facts)
            if len(fewer) == len(self.actions):
                break
            wanted, self.actions = _wanted(fewer, won_facts)
        quest_bits = ((1 << (len(logic.quests) + 1)) - 1) << len(logic.facts)
        self._mask = wanted | won_facts | fail_facts | quest_bits
        goals = [(logic.completed_bit(index), quest.wins) for index, quest in enumerate(logic.quests) if quest.required]
        self._finder = LandmarkFinder(goals, [(action.needs, action.adds & self._mask) for action in self.actions])
        self._ending = won_facts | fail_facts
        self._bounds: dict[int, int | None] = {}
        self._rooms = logic.rooms
        self._by_room = {
            room: [(action.needs, action.removes, action.adds & self._mask, action) for action in actions]
            for room, actions in {0: self.actions, **actions_by_room(self.actions, logic.rooms)}.items()
        }
        self._anything = next((a for a in logic.actions if a.command == "look"), None) or logic.actions[0]

    def project(self, state: int) -> int:
        """What can matter of a state; the same for states that differ in nothing that can."""
        return (self._hands.sort(state) if self._hands else state) & self._mask

    def original(self, action: Action, state: int) -> Action:
        """The game's own action that a way through projected states has, in one of the states that it stands for."""
        return self._hands.original(action, state) if self._hands else action

    def lower_bound(self, state: int) -> int | None:
        """Number of actions that are certainly needed from a projected state; `None` where no number is enough."""
        return self._at_least(state, self._finder.landmarks(state))

    def _at_least(self, state: int, landmarks: Landmarks) -> int | None:
        """What searches have shown of a state, or else what the landmarks say; see `lower_bound`."""
        return self._bounds[state] if state in self._bounds else landmarks.remaining(state)

    def _learn(self, expanded: Iterable[int], cost: Mapping[int, int], total: int | None) -> None:
        """Keep what a finished search has shown of the states that it expanded.

        Args:
            expanded: the states.
            cost: number of actions from the search's start to each.
            total: number of actions from there to the goal; `None` where it is out of reach.
        """
        if len(self._bounds) > _BOUNDS:
            self._bounds.clear()
        for state in expanded:
            self._bounds[state] = None if total is None else total - cost[state]

    def search(self, start: int, budget: int) -> Found:
        """A* from a projected state to a state that is known, or won.

        Args:
            start: projected state.
            budget: number of states that each of the two searches may expand: first for a shortest way, then for any.
        """
        landmarks = self._finder.landmarks(start)
        shortest = self._astar(start, budget, 1, landmarks)
        if shortest[2]:
            return shortest
        path, left, finished = self._astar(start, budget, _CLOSE_ENOUGH, landmarks)
        return path, left, finished and path is None

    def _astar(self, start: int, budget: int, weight: int, landmarks: Landmarks) -> Found:
        logic, known = self.logic, self._known
        came: dict[int, tuple[int, Action] | None] = {start: None}
        cost = {start: 0}
        first = self._at_least(start, landmarks)
        if first is None:
            return None, 0, True
        # Ties: the deeper state first, then the older one, so that equal searches give equal plans everywhere.
        queue = [(weight * first, 0, 0, start)]
        closed: set[int] = set()
        order = 0
        while queue:
            _, _, _, state = heapq.heappop(queue)
            if state in closed:
                continue
            left = 0 if logic.won(state) else _left(known, state, proven=weight == 1)
            if left is not None:
                if weight == 1:
                    self._learn(closed, cost, cost[state] + left)
                return _path(came, state), left, True
            closed.add(state)
            if len(closed) > budget:
                return None, 0, False
            steps = cost[state] + 1
            for action, after in self._successors(state):
                if cost.get(after, steps + 1) <= steps or logic.lost(after):
                    continue
                ahead = _left(known, after, proven=weight == 1)
                if ahead is None:
                    ahead = self._at_least(after, landmarks)
                    if ahead is None:
                        continue
                cost[after] = steps
                closed.discard(after)  # The heuristic is admissible but not consistent: a cheaper way may come late.
                came[after] = (state, action)
                order += 1
                heapq.heappush(queue, (steps + weight * ahead, -steps, order, after))
        self._learn(closed, cost, None)
        return None, 0, True

    def _successors(self, state: int) -> Sequence[tuple[Action, int]]:
        """The actions to look at in a projected state, and where they lead."""
        logic, successors = self.logic, list[tuple[Action, int]]()
        ended = logic.end_turn(state)
        if ended != state:  # A quest whose condition holds from the start is completed by any turn.
            noop = next((a for a in logic.applicable(state) if not a.adds and not a.removes), self._anything)
            successors.append((noop, ended))
        for needs, removes, adds, action in self._by_room[state & self._rooms]:
            if state & needs == needs:
                after = state & ~removes | adds
                if adds & self._ending or ended != state:
                    after = logic.end_turn(after)
                successors.append((action, after))
        return successors


def _left(known: Distances, state: int, *, proven: bool) -> int | None:
    """Length of the way from a state that is known, if it is; one that is proven to be shortest, if that is asked."""
    entry = known.get(state)
    return None if entry is None or (proven and not entry[2]) else entry[1]


def _path(came: dict[int, tuple[int, Action] | None], state: int) -> list[tuple[int, Action]]:
    path = []
    step = came[state]
    while step is not None:
        path.append(step)
        step = came[step[0]]
    return path[::-1]


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
        undone = union(adds for _, adds in undoing)
        wanted_by: dict[int, tuple[int, int] | None] = {}  # What is wanted by several has no one change.
        for action in kept:
            change = action.removes, action.adds
            for fact in bits(action.needs & undone):
                if wanted_by.setdefault(fact, change) != change:
                    wanted_by[fact] = None
        pointless = {
            (removes, adds)
            for removes, adds in undoing
            if all(wanted_by.get(fact, (adds, removes)) == (adds, removes) for fact in bits(adds))
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
