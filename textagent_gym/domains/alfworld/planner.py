"""Shortest plans, by A* on what can matter for the goals.

Three things keep the search small, and none of them loses a shortest plan:

1. *What can matter.* Only objects that a goal could use are ever taken, nothing is closed, and a receptacle is opened
   only to take a useful object out, or to put in what is held.
2. *Places that look alike are alike.* One can go from anywhere to anywhere in one action, so two places whose
   receptacles are equal in everything that matters can be exchanged. Only one of them is visited, and two states that
   differ by such an exchange are one.
3. *Trips.* The hand holds one object, so each object costs a trip of its own: go to it, (open,) take it, go to what
   cleans, heats or cools it, use that, go to where it is wanted, (open,) put it there. The heuristic adds up the trips
   that are still needed and leaves out what one trip might save another. A receptacle is opened once for all trips, so
   each goal that needs it open is charged its share of that one action. The sum never overestimates.

A search expands at most `BUDGET` states: some ten seconds, and less than 100 MB, where three goals ask for four objects
each among 70 objects and 20 receptacles. When they are spent, a second
search of the same size looks for a plan that need not be a shortest one (`Plan.exact` is then false); when that finds
none either, `PlanningBudgetError` says so. Only a goal that is proven to be out of reach has the answer `None`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import count
from typing import TypeAlias

from textagent_gym.domains.alfworld.engine import PROCESSES, PUT, State, bits
from textagent_gym.domains.alfworld.game import Game, Goal
from textagent_gym.errors import PlanningBudgetError
from textagent_gym.planning import Plan

BUDGET = 8_000
"""States that a search expands before it gives up proving that a plan is a shortest one."""

_CLOSE_ENOUGH = (
    3  # Weight of the heuristic in the second search: most plans are then at most an action or two too long.
)
_PROCESSED = tuple(PROCESSES.values())
_FAR = 10**6  # Cost of what cannot be done.
_UNIT = 72  # Parts of an action in the heuristic: divisible by every product of 1 to 3 goals and 1 to 4 objects.

_Path: TypeAlias = "tuple[_Path, str] | None"  # The last command, and the path before it.


def lower_bound(state: State) -> int | None:
    """Number of actions that are certainly needed to win; `None` where the goal is certainly out of reach."""
    estimate = _Search(state.game).estimate(state)
    return None if estimate >= _FAR else estimate


def solve(state: State, *, budget: int = BUDGET) -> Plan | None:
    """A shortest way to win from a state, or `None` where the goal is out of reach.

    Args:
        state: state to begin in.
        budget: number of states to expand before the proof of shortness is given up.

    Raises:
        PlanningBudgetError: no plan was found within twice the budget.
    """
    search = _Search(state.game)
    for weight in (1, _CLOSE_ENOUGH):
        path, finished = search.run(state, budget, weight)
        if finished:
            return None if path is None else Plan(_commands(path[0]), exact=weight == 1)
    raise PlanningBudgetError(
        f"no plan for {state.game.id} was found in {2 * budget} states; ask for fewer goals or objects to bring"
    )


class _Search:
    """A* for one game."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.useful = 0
        for goal in game.goals:
            if goal.kind != "light":
                self.useful |= goal.objects
        self.lamps = 0
        for goal in game.goals:
            if goal.kind == "light":
                self.lamps |= goal.objects
        self.processors = {
            condition: tuple(bits(game.uses[condition]))
            for condition in _PROCESSED
            if any(condition in goal.conditions for goal in game.goals)
        }
        self.at_processor = {c: {game.places[r] for r in rs} for c, rs in self.processors.items()}
        self.places_things = any(goal.kind == "place" for goal in game.goals)
        targets = [set(goal.receptacles) for goal in game.goals]
        self.target_places = [{game.places[r] for r in receptacles} for receptacles in targets]
        # Objects that every goal treats alike have the same class.
        self.classes: dict[int, tuple[object, ...]] = {}
        for number in bits(self.useful | self.lamps):
            able = tuple(game.able[c] >> number & 1 for c in self.processors)
            self.classes[number] = (*(goal.objects >> number & 1 for goal in game.goals), *able)
        self.roles = [
            (
                tuple(r in receptacles for receptacles in targets),
                tuple(game.uses[c] >> r & 1 for c in self.processors),
            )
            for r in range(len(game.receptacles))
        ]
        # In some games an object is in two receptacles at once, so taking it changes what another place looks like.
        self.doubled = False
        union = 0
        for contents in game.contents:
            self.doubled = self.doubled or bool(union & contents & (self.useful | self.lamps))
            union |= contents
        self.numbers: dict[tuple[object, ...], int] = {}  # Of looks, so that they are quick to compare.

    def run(self, start: State, budget: int, weight: int) -> tuple[tuple[_Path] | None, bool]:
        """Search from a state: the way or `None`, and whether the answer holds (the budget was not spent)."""
        order = count()
        estimate = self.estimate(start)
        if estimate >= _FAR:
            return None, True
        looks = self.looks(start)
        # Of equally promising states, the one nearer to the goal first, and then the newest. A state is kept as the
        # one before it and a command, because most of those that are met are never expanded.
        queue: list[tuple[int, int, int, int, tuple[object, ...] | None, State, list[int], _Path]]
        queue = [(weight * estimate, estimate, -next(order), 0, None, start, looks, None)]
        best = {self.key(start, looks): 0}
        while queue:
            _, _, _, length, key, before, looks, path = heapq.heappop(queue)
            if key is not None:
                if best[key] < length:
                    continue
                assert path is not None
                state = before.copy()
                state.step(path[1])
                looks = self.looks(state, before, looks)
            else:
                state = before
            if state.won:
                return (path,), True
            if not budget:
                return None, False
            budget -= 1
            for command in self.moves(state, looks):
                after = state.copy()
                reply = after.step(command)
                assert reply is not None, command
                key = self.key(after, self.looks(after, state, looks))
                if best.get(key, _FAR) <= length + 1:
                    continue
                best[key] = length + 1
                estimate = self.estimate(after)
                if estimate < _FAR:
                    priority = length + 1 + weight * estimate
                    item = (priority, estimate, -next(order), length + 1, key, state, looks, (path, command))
                    heapq.heappush(queue, item)
        return None, True

    def looks(self, state: State, before: State | None = None, known: list[int] | None = None) -> list[int]:
        """A number for each place, equal for places that are alike; worked out again only where they may differ."""
        if before is None or known is None or self.doubled or self.drops(state) or self.drops(before):
            return [self.look(state, place) for place in range(len(self.game.here))]
        if state.place != before.place:
            return known
        looks = known.copy()
        looks[state.place] = self.look(state, state.place)
        return looks

    def drops(self, state: State) -> bool:
        """What is held is of no use and must be put down somewhere."""
        return state.held >= 0 and not self.useful >> state.held & 1

    def moves(self, state: State, looks: list[int]) -> Iterator[str]:
        """The commands that can matter."""
        game, held = state.game, state.held
        seen = set()
        for place, receptacles in enumerate(game.here):
            if place == state.place or not receptacles or looks[place] in seen:
                continue
            seen.add(looks[place])
            if any(self.matters(state, receptacle) for receptacle in receptacles):
                yield f"go to {game.receptacles[receptacles[0]]}"
        for receptacle in game.here[state.place]:
            name, bit = game.receptacles[receptacle], 1 << receptacle
            contents = state.contents[receptacle]
            if held >= 0:
                accepts = game.accepts[receptacle] >> held & 1
            else:
                accepts = 0
            if game.openable & bit & ~state.opened:
                if accepts or contents & self.useful:
                    yield f"open {name}"
            else:
                if held < 0:
                    done = set()
                    for number in bits(contents & self.useful & game.able["pickup"]):
                        kind = self.kind(state, number)
                        if kind not in done:
                            done.add(kind)
                            yield f"take {game.objects[number]} from {name}"
                if accepts:
                    put, to = PUT[game.dialect]
                    yield f"{put} {game.objects[held]}{to}{name}"
            if held >= 0:
                for verb, condition in PROCESSES.items():
                    if condition in self.processors and game.uses[condition] & bit:
                        wanted = self.useful & game.able[condition] & ~state.marked[condition]
                        if wanted >> held & 1:
                            yield f"{verb} {game.objects[held]} with {name}"
            for number in bits(contents & self.lamps & ~state.on):
                yield f"use {game.objects[number]}"

    def kind(self, state: State, number: int) -> tuple[object, ...]:
        """What an object is as far as it matters: its class, and what it has become."""
        marks = tuple(state.marked[c] >> number & 1 for c in self.processors)
        # In some games an object is in two receptacles at once; then it is itself and like no other.
        places = sum(contents >> number & 1 for contents in state.contents) + (state.held == number)
        return (self.classes[number], marks, state.on >> number & 1, number if places > 1 else -1)

    def matters(self, state: State, receptacle: int) -> bool:
        """There is something to do at a receptacle, now or with what is brought later."""
        targets, processors = self.roles[receptacle]
        if state.contents[receptacle] & (self.useful | self.lamps) or any(targets) or any(processors):
            return True
        return state.held >= 0 and bool(self.game.accepts[receptacle] >> state.held & 1)

    def look(self, state: State, place: int) -> int:
        """What a place is as far as it matters, as a number."""
        game = state.game
        drops = self.drops(state)
        traits = []
        for receptacle in game.here[place]:
            bit = 1 << receptacle
            inside = state.contents[receptacle] & (self.useful | self.lamps)
            # What could be put here, now or later.
            fits = game.accepts[receptacle] & self.useful
            accepts = drops and bool(game.accepts[receptacle] >> state.held & 1)
            targets, processors = self.roles[receptacle]
            if inside or fits or accepts or any(targets) or any(processors):
                closed = bool(game.openable & bit & ~state.opened)
                things = tuple(sorted(self.kind(state, number) for number in bits(inside))) if inside else ()
                traits.append((closed, accepts, targets, processors, fits, things))
        traits.sort()
        return self.numbers.setdefault(tuple(traits), len(self.numbers))

    def key(self, state: State, looks: list[int]) -> tuple[object, ...]:
        """Equal for states that differ only by an exchange of places or objects that are alike."""
        held = state.held
        if held < 0:
            hand: object = None
        elif self.useful >> held & 1:
            hand = self.kind(state, held)
        else:
            hand = held
        others = looks.copy()
        here = others.pop(state.place)
        others.sort()
        return (hand, here, tuple(others))

    def estimate(self, state: State) -> int:
        """Actions that are needed at least."""
        game = state.game
        open_goals = [goal for goal in game.goals if not state.holds(goal)]
        if not open_goals:
            return 0
        users = self.users(state)
        costs = [(goal, self.cost(state, goal, index, users)) for index, goal in enumerate(game.goals)]
        total, counted = 0, 0
        for goal, cost in sorted(costs, key=lambda item: -item[1]):
            if goal.objects & counted:  # One object may serve both.
                continue
            counted |= goal.objects
            total += cost
        held = state.held
        if held >= 0 and not self.useful >> held & 1 and any(goal.kind != "light" for goal in open_goals):
            total += _UNIT  # It must be put down.
        return max(1, -(-total // _UNIT))

    def users(self, state: State) -> dict[int, int]:
        """For each closed receptacle, the number of goals that may need it open: one opening serves them all."""
        game, users = self.game, {}
        for receptacle in bits(game.openable & ~state.opened):
            contents = state.contents[receptacle]
            users[receptacle] = sum(
                1 for goal in game.goals if contents & goal.objects or receptacle in goal.receptacles
            )
        return users

    def cost(self, state: State, goal: Goal, index: int, users: dict[int, int]) -> int:
        """At least so many parts of an action reach one goal."""
        if goal.kind == "place":
            return self.trips(state, goal, index, users)
        return self.fetch(state, goal, users) if goal.kind == "hold" else self.switch(state, goal)

    def trips(self, state: State, goal: Goal, index: int, users: dict[int, int]) -> int:
        """At least so many parts of an action bring the objects of a goal to one of its receptacles."""
        game = state.game
        held = state.held
        sources = [
            (number, receptacle, game.places[receptacle])
            for receptacle, contents in enumerate(state.contents)
            if contents & goal.objects
            for number in bits(contents & goal.objects)
        ]
        elsewhere: set[int] = set()
        for other, places in enumerate(self.target_places):
            if other != index:
                elsewhere |= places
        best = _FAR * _UNIT
        for target in goal.receptacles:
            there = game.places[target]
            costs: list[int] = []
            near = False
            for number, receptacle, place in sources:
                missing = [c for c in goal.conditions if not state.marked[c] >> number & 1]
                if receptacle == target and not missing:
                    costs.append(0)
                    continue
                if not game.able["pickup"] >> number & 1 or not game.accepts[target] >> number & 1:
                    continue
                if receptacle != target and state.contents[target] >> number & 1:  # It lies in both of them.
                    actions = 1 + len(missing) + any(place not in self.at_processor[c] for c in missing)
                else:
                    actions = 2 + len(missing) + self.way(place, missing, there)
                if place != there and place not in elsewhere:
                    actions += 1
                    near = near or place == state.place
                cost = actions * _UNIT
                if receptacle in users and receptacle != target:
                    rivals = (state.contents[receptacle] & goal.objects).bit_count()
                    cost += _UNIT // (users[receptacle] * min(rivals, goal.count))
                costs.append(cost)
            if held >= 0 and goal.objects >> held & 1 and game.accepts[target] >> held & 1:
                missing = [c for c in goal.conditions if not state.marked[c] >> held & 1]
                if state.contents[target] >> held & 1:
                    actions = len(missing) + any(state.place not in self.at_processor[c] for c in missing)
                else:
                    actions = 1 + len(missing) + self.way(state.place, missing, there)
                costs.append(actions * _UNIT)
            if len(costs) < goal.count:
                continue
            costs.sort()
            needed = sum(costs[: goal.count])
            if needed and target in users:
                needed += _UNIT // users[target]
            if needed and near and not (held >= 0 and goal.objects >> held & 1):
                needed -= _UNIT  # The first of the trips begins here.
            best = min(best, needed)
        return best

    def way(self, place: int, missing: list[str], there: int) -> int:
        """Moves at least from a place, past what gives the missing conditions, to another place."""
        moves = int(place != there)
        for condition in missing:
            places = self.at_processor[condition]
            if not places:
                return _FAR
            if place in places or there in places:
                continue
            moves = max(moves, 2)
        if missing and place == there and not all(place in self.at_processor[c] for c in missing):
            moves = 2
        return moves

    def fetch(self, state: State, goal: Goal, users: dict[int, int]) -> int:
        """At least so many parts of an action bring an object into the hand."""
        if state.holds(goal):
            return 0
        game = state.game
        best = _FAR * _UNIT
        for receptacle, contents in enumerate(state.contents):
            for number in bits(contents & goal.objects & game.able["pickup"]):
                actions = 1 + (not self.places_things and game.places[receptacle] != state.place)
                actions += sum(1 for c in goal.conditions if not state.marked[c] >> number & 1)
                opening = _UNIT // users[receptacle] if receptacle in users else 0
                best = min(best, actions * _UNIT + opening)
        if state.held >= 0 and goal.objects >> state.held & 1:
            best = min(best, _UNIT * sum(1 for c in goal.conditions if not state.marked[c] >> state.held & 1))
        return best

    def switch(self, state: State, goal: Goal) -> int:
        """At least so many parts of an action switch a lamp on and bring the agent to it."""
        game = state.game
        lamps = [r for r, contents in enumerate(state.contents) if contents & goal.objects]
        if not lamps:
            return _FAR * _UNIT
        places = {game.places[r] for r in lamps}
        cost = int(not any(state.contents[r] & goal.objects & state.on for r in lamps))
        if self.places_things:  # What is carried somewhere may bring the agent to the lamp.
            return cost * _UNIT
        wanted = [other for other in game.goals if other.kind == "hold" and not state.holds(other)]
        if wanted:
            # Something must be fetched first: then the way to the lamp is one more move, unless it lies there.
            return _UNIT * cost + _UNIT * all(
                not (state.contents[r] & other.objects)
                for other in wanted
                for r in range(len(game.places))
                if game.places[r] in places
            )
        return _UNIT * (cost + (state.place not in places))


def _commands(path: _Path) -> tuple[str, ...]:
    """A path, in order."""
    commands = []
    while path is not None:
        path, command = path
        commands.append(command)
    return tuple(reversed(commands))
