"""Shortest plans, by A* on what can matter for the goals.

Three things keep the search small, and none of them loses a shortest plan:

1. *What can matter.* Only objects that a goal could use are ever taken, nothing is closed, and a receptacle is opened
   only to take a useful object out of it, or to put into it what is held.
2. *Places that look alike are alike.* One can go from anywhere to anywhere in one action, so two places whose
   receptacles are equal in everything that matters can be exchanged. Only one of them is visited, and two states that
   differ by such an exchange are one.
3. *Trips.* The hand holds one object, so each object costs a trip of its own: go to it, (open,) take it, go to what
   cleans, heats or cools it, use that, go to where it is wanted, (open,) put it there. The heuristic adds up the trips
   that are still needed and leaves out what one trip might save another; it never overestimates.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias

from textagent_gym.domains.alfworld.engine import PROCESSES, PUT, State, bits
from textagent_gym.domains.alfworld.game import Game, Goal

BUDGET = 20_000
"""States that a search expands before it gives up."""

_PROCESSED = tuple(PROCESSES.values())
_FAR = 10**6  # Cost of what cannot be done.

_Path: TypeAlias = "tuple[_Path, str] | None"  # The last command, and the path before it.


@dataclass(frozen=True, slots=True)
class Plan:
    """A way to win.

    Attributes:
        commands: in order.
        exact: no shorter way exists.
    """

    commands: tuple[str, ...]
    exact: bool = True


def solve(state: State, *, budget: int = BUDGET) -> Plan | None:
    """A shortest way to win from a state, or `None` where there is none or the budget is spent."""
    return _Search(state.game).run(state, budget)


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

    def run(self, start: State, budget: int) -> Plan | None:
        """Search from a state."""
        order = count()
        estimate = self.estimate(start)
        if estimate >= _FAR:
            return None
        # Of equally promising states, the one nearer to the goal first, and then the newest.
        queue: list[tuple[int, int, int, int, State, _Path]] = [(estimate, estimate, -next(order), 0, start, None)]
        best = {self.key(start): 0}
        while queue and budget:
            _, _, _, length, state, path = heapq.heappop(queue)
            if state.won:
                return Plan(_commands(path))
            if best.get(self.key(state), length) < length:
                continue
            budget -= 1
            for command in self.moves(state):
                after = state.copy()
                said = after.step(command)
                assert said is not None, command
                key = self.key(after)
                if best.get(key, _FAR) <= length + 1:
                    continue
                best[key] = length + 1
                estimate = self.estimate(after)
                if estimate < _FAR:
                    heapq.heappush(
                        queue, (length + 1 + estimate, estimate, -next(order), length + 1, after, (path, command))
                    )
        return None

    def moves(self, state: State) -> Iterator[str]:
        """The commands that can matter."""
        game, held = state.game, state.held
        seen = set()
        for place, receptacles in enumerate(game.here):
            if place == state.place or not receptacles:
                continue
            look = self.look(state, place)
            if look not in seen:
                seen.add(look)
                if any(look):
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

    def look(self, state: State, place: int) -> tuple[object, ...]:
        """What a place is as far as it matters."""
        game, held = state.game, state.held
        found = []
        for receptacle in game.here[place]:
            bit = 1 << receptacle
            inside = state.contents[receptacle] & (self.useful | self.lamps)
            accepts = held >= 0 and game.accepts[receptacle] >> held & 1
            targets, processors = self.roles[receptacle]
            if inside or accepts or any(targets) or any(processors):
                closed = bool(game.openable & bit & ~state.opened)
                things = tuple(sorted(self.kind(state, number) for number in bits(inside))) if inside else ()
                # What could be put here later matters too.
                fits = game.accepts[receptacle] & self.useful
                found.append((closed, bool(accepts), targets, processors, fits, things))
        found.sort()
        return tuple(found)

    def key(self, state: State) -> tuple[object, ...]:
        """Equal for states that differ only by an exchange of places or objects that are alike."""
        held = state.held
        if held < 0:
            hand: object = None
        elif self.useful >> held & 1:
            hand = self.kind(state, held)
        else:
            hand = held
        others = sorted(self.look(state, place) for place in range(len(self.game.here)) if place != state.place)
        return (hand, self.look(state, state.place), tuple(others))

    def estimate(self, state: State) -> int:
        """Actions that are needed at least."""
        game = state.game
        open_goals = [goal for goal in game.goals if not state.holds(goal)]
        if not open_goals:
            return 0
        costs = []
        for index, goal in enumerate(game.goals):
            if goal.kind == "place":
                costs.append((goal, self.trips(state, goal, index)))
            elif goal.kind == "hold":
                costs.append((goal, self.fetch(state, goal)))
            else:
                costs.append((goal, self.switch(state, goal)))
        total, counted = 0.0, 0
        for goal, cost in sorted(costs, key=lambda item: -item[1]):
            if goal.objects & counted:  # One object may serve both.
                continue
            counted |= goal.objects
            total += cost
        held = state.held
        if held >= 0 and not self.useful >> held & 1 and any(goal.kind != "light" for goal in open_goals):
            total += 1  # It must be put down.
        return max(1, -int(-total // 1))

    def trips(self, state: State, goal: Goal, index: int) -> float:
        """At least so many actions bring the objects of a goal to one of its receptacles."""
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
        best = float(_FAR)
        for target in goal.receptacles:
            there = game.places[target]
            target_closed = bool(game.openable >> target & 1 and not state.opened >> target & 1)
            costs: list[float] = []
            near = False
            for number, receptacle, place in sources:
                missing = [c for c in goal.conditions if not state.marked[c] >> number & 1]
                if receptacle == target and not missing:
                    costs.append(0.0)
                    continue
                if not game.able["pickup"] >> number & 1 or not game.accepts[target] >> number & 1:
                    continue
                if receptacle != target and state.contents[target] >> number & 1:  # It is in both.
                    cost = 1.0 + len(missing) + any(place not in self.at_processor[c] for c in missing)
                else:
                    cost = 2.0 + len(missing) + self.way(place, missing, there)
                if place != there and place not in elsewhere:
                    cost += 1
                    near = near or place == state.place
                if game.openable >> receptacle & 1 and not state.opened >> receptacle & 1 and receptacle != target:
                    rivals = (state.contents[receptacle] & goal.objects).bit_count()
                    cost += 1 / min(rivals, goal.count)
                costs.append(cost)
            if held >= 0 and goal.objects >> held & 1 and game.accepts[target] >> held & 1:
                missing = [c for c in goal.conditions if not state.marked[c] >> held & 1]
                if state.contents[target] >> held & 1:
                    costs.append(float(len(missing) + any(state.place not in self.at_processor[c] for c in missing)))
                else:
                    costs.append(1.0 + len(missing) + self.way(state.place, missing, there))
            if len(costs) < goal.count:
                continue
            costs.sort()
            needed = sum(costs[: goal.count])
            if needed and target_closed:
                needed += 1
            if needed and near and not (held >= 0 and goal.objects >> held & 1):
                needed -= 1  # The first of the trips begins here.
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

    def fetch(self, state: State, goal: Goal) -> float:
        """At least so many actions bring an object into the hand."""
        if state.holds(goal):
            return 0
        game = state.game
        best = _FAR
        for receptacle, contents in enumerate(state.contents):
            for number in bits(contents & goal.objects & game.able["pickup"]):
                cost = 1 + (not self.places_things and game.places[receptacle] != state.place)
                cost += bool(game.openable >> receptacle & 1 and not state.opened >> receptacle & 1)
                cost += sum(1 for c in goal.conditions if not state.marked[c] >> number & 1)
                best = min(best, cost)
        if state.held >= 0 and goal.objects >> state.held & 1:
            best = min(best, sum(1 for c in goal.conditions if not state.marked[c] >> state.held & 1))
        return best

    def switch(self, state: State, goal: Goal) -> float:
        """At least so many actions switch a lamp on and bring the agent to it."""
        game = state.game
        lamps = [r for r, contents in enumerate(state.contents) if contents & goal.objects]
        if not lamps:
            return _FAR
        places = {game.places[r] for r in lamps}
        cost = int(not any(state.contents[r] & goal.objects & state.on for r in lamps))
        if self.places_things:  # What is carried somewhere may bring the agent to the lamp.
            return cost
        wanted = [other for other in game.goals if other.kind == "hold" and not state.holds(other)]
        if wanted:
            # Something must be fetched first: then the way to the lamp is one more move, unless it lies there.
            return cost + all(
                not (state.contents[r] & other.objects)
                for other in wanted
                for r in range(len(game.places))
                if game.places[r] in places
            )
        return cost + (state.place not in places)


def _commands(path: _Path) -> tuple[str, ...]:
    """A path, in order."""
    commands = []
    while path is not None:
        path, command = path
        commands.append(command)
    return tuple(reversed(commands))
