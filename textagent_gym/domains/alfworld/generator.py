"""Rooms that nobody has seen: solvable games of all task types in upstream's own format.

A room is drawn from the table `rooms.json` (see `fit_rooms`): which receptacles stand there, which objects lie where,
what fits into what. Then the goals are drawn out of those that the official games ask for in such rooms, and what they
need is put into the room. The game is written as a PDDL problem and read again like an official one, so the engine, the
planner and upstream itself see the same thing.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from textagent_gym.domains.alfworld.engine import State, bits
from textagent_gym.domains.alfworld.game import TASK_TYPES, Game, read_game
from textagent_gym.domains.alfworld.planner import solve
from textagent_gym.domains.alfworld.rooms import PROCESSORS, room_table
from textagent_gym.errors import InfeasibleDifficultyError, PlanningBudgetError
from textagent_gym.knobs import Options, knob
from textagent_gym.sources import seed_bytes
from textagent_gym.tasks import in_split

VERSION = 2
"""Raised whenever the same task id would give another game."""

RoomKind = Literal["kitchen", "living room", "bedroom", "bathroom"]
ROOMS: tuple[str, ...] = get_args(RoomKind)

_ATTEMPTS = 1_000  # Draws before a request counts as infeasible.
_ORDERS = 200
_LAMPS = ("desklamp", "floorlamp")
_NUMBERS = {2: "two", 3: "three", 4: "four"}
# Of the grammar, the native engine reads the dialect and the words of the task.
_GRAMMAR = 'template :: "move {{o}} to {{r}}"; "rhs": "Your task is to: {task}"'


@dataclass(frozen=True, kw_only=True)
class RoomSpec(Options):
    """What is asked of a generated room."""

    receptacles: int = knob(15, "number of receptacles", low=3, high=100, short="r", always=True)
    objects: int = knob(25, "number of objects", low=1, high=300, short="o", always=True)
    closed: float | None = knob(
        None, "share of the receptacles that are closed in the beginning; `None` as in official games",
        low=0.0, high=1.0, short="closed=",
    )  # fmt: skip
    candidates: int = knob(
        2, "number of objects that will do for each goal, at least `place`", low=1, high=10, short="candidates="
    )
    place: int = knob(1, "number of objects to bring for each goal", low=1, high=4, short="place=")
    goals: int = knob(1, "number of goals that must hold at once", low=1, high=3, short="goals=")
    task_types: tuple[str, ...] = knob(
        tuple(TASK_TYPES.values()), "types that the goals are drawn from", choices=TASK_TYPES.values(), short="types="
    )
    room: str | None = knob(None, "kind of room; `None` for any", choices=ROOMS, short="room=")
    solution_length: int | None = knob(
        None, "actions of the shortest plan, exactly; `None` for any",
        low=1, high=200, short="length=", axis="solution_length",
    )  # fmt: skip
    exploration: tuple[float, float] | None = knob(
        None, "turns that a systematic searcher is expected to need; `None` for any", low=0.0, short="exploration="
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.candidates < self.place:
            raise InfeasibleDifficultyError(f"candidates={self.candidates} are fewer than place={self.place} objects")


@dataclass(slots=True)
class _Room:
    """A room being furnished."""

    receptacles: list[str] = field(default_factory=list)  # Kinds.
    places: list[int] = field(default_factory=list)
    things: list[tuple[str, int]] = field(default_factory=list)  # Kinds, and where they are.

    def where(self, kinds: Sequence[str]) -> list[int]:
        return [number for number, kind in enumerate(self.receptacles) if kind in kinds]


@dataclass(frozen=True, slots=True)
class _Wish:
    """A goal: of which type, which kind of object, and into which kind of receptacle or under which lamp."""

    type: str
    thing: str
    where: str
    count: int


def generate(spec: RoomSpec, split: str, index: int) -> tuple[Game, dict[str, Any]]:
    """The `index`-th game of a split, and its content in upstream's format (without domain and grammar).

    Raises:
        InfeasibleDifficultyError: no such game was found.
    """
    lengths: set[int] = set()
    costs: list[float] = []
    for attempt in range(_ATTEMPTS):
        draw = random.Random(seed_bytes(VERSION, spec.slug, split, index, attempt))
        drawn = _draw(spec, draw)
        if drawn is None:
            continue
        room, wishes = drawn
        problem = _problem(room, wishes, f"{spec.slug}-{split}-{index}")
        task = " and ".join(map(_words, wishes)) + "."
        content = {"pddl_problem": problem, "grammar": _GRAMMAR.format(task=task), "task": task}
        game = read_game(content, f"{spec.slug}/{split}/{index}")
        if not in_split(visible_content(game), split):
            continue
        state = State(game)
        if state.won:
            continue
        try:
            plan = solve(state)
        except PlanningBudgetError:
            continue
        if plan is None:
            continue
        lengths.add(len(plan.commands))
        if spec.solution_length is not None and (spec.solution_length, True) != (len(plan.commands), plan.exact):
            continue
        cost = exploration_cost(game)
        costs.append(cost)
        if spec.exploration is not None and not spec.exploration[0] <= cost <= spec.exploration[1]:
            continue
        return game, {**content, "walkthrough": list(plan.commands), "solvable": True}
    seen = f" Shortest plans had {sorted(lengths)} actions." if lengths else " No room could be furnished so."
    if costs:
        seen += f" Exploration costs were {min(costs):.1f} to {max(costs):.1f}."
    raise InfeasibleDifficultyError(f"no room {spec.slug} was found in {_ATTEMPTS:,} draws.{seen}")


def visible_content(game: Game) -> str:
    """What decides which split a room belongs to: all that can be told from playing it, and nothing else.

    Two rooms whose files differ only in the numbers of their locations, or in the order of their declarations, are one.
    """
    lines = [game.task]
    for receptacle in sorted(range(len(game.receptacles)), key=lambda number: game.receptacles[number]):
        bit = 1 << receptacle
        beside = sorted(game.receptacles[other] for other in game.here[game.places[receptacle]] if other != receptacle)
        state = "-" if not game.openable & bit else "open" if game.opened & bit else "closed"
        contents = sorted(game.objects[number] for number in bits(game.contents[receptacle]))
        lines.append(f"{game.receptacles[receptacle]} beside {beside} {state}: {contents}")
    return "\n".join(lines)


def exploration_cost(game: Game) -> float:
    """Turns that a systematic searcher is expected to need until it has seen what the goals need.

    The searcher goes to the receptacles in a random order, opens each that is closed, and stops when it has seen enough
    objects for every goal. The mean over 200 orders, drawn with a fixed seed; its standard error is about 3%.
    """
    draw = random.Random(0)
    closed = game.openable & ~game.opened
    order = list(range(len(game.receptacles)))
    turns = 0
    for _ in range(_ORDERS):
        draw.shuffle(order)
        seen = 0
        for receptacle in order:
            if all((seen & goal.objects).bit_count() >= goal.count for goal in game.goals):
                break
            turns += 2 if closed >> receptacle & 1 else 1
            seen |= game.contents[receptacle]
    return turns / _ORDERS


def _draw(spec: RoomSpec, draw: random.Random) -> tuple[_Room, list[_Wish]] | None:
    """A furnished room and its goals, or `None` if they do not go together."""
    table = room_table()
    types = [name for name in spec.task_types if spec.room is None or _goals(spec.room, name)]
    if not types:
        return None
    first = draw.choice(types)
    kind = spec.room or draw.choice([name for name in ROOMS if _goals(name, first)])
    wishes: list[_Wish] = []
    for number in range(spec.goals):
        of = first if not number else draw.choice([name for name in types if _goals(kind, name)])
        thing, where, _ = draw.choices(_goals(kind, of), [count for *_, count in _goals(kind, of)])[0]
        lamp = draw.choice(_LAMPS) if of == "look" else where
        wishes.append(_Wish(of, thing, lamp, max(spec.place, 2) if of == "two" else spec.place))
    if len({wish.thing for wish in wishes}) < len(wishes) or sum(wish.type == "look" for wish in wishes) > 1:
        return None
    if any(wish.type == "look" and wish.count > 1 for wish in wishes) or (
        spec.candidates < max(w.count for w in wishes)
    ):
        return None
    room = _furnish(spec, draw, table["rooms"][kind], wishes)
    if room is None:
        return None
    return (room, wishes) if _fill(spec, draw, table["rooms"][kind], room, wishes) else None


def _goals(room: str, task: str) -> list[list[Any]]:
    """The goals that official games ask for: kind of object, kind of receptacle, number of games."""
    return room_table()["rooms"][room]["goals"].get(task, [])  # type: ignore[no-any-return]


def _furnish(spec: RoomSpec, draw: random.Random, table: dict[str, Any], wishes: list[_Wish]) -> _Room | None:
    """Receptacles: what the goals need, then as many as asked for in the proportions of such rooms."""
    kinds = room_table()["receptacles"]
    needed = {wish.where for wish in wishes if wish.type != "look"}
    needed |= {PROCESSORS[wish.type] for wish in wishes if wish.type in PROCESSORS}
    room = _Room(sorted(needed))
    closed = sum(kinds[kind]["openable"] for kind in needed)
    weights = table["receptacles"]
    while len(room.receptacles) < spec.receptacles:
        choices = [kind for kind in weights if kind not in PROCESSORS.values() or kind not in room.receptacles]
        if spec.closed is not None:
            wanted = closed < round(spec.closed * spec.receptacles)
            choices = [kind for kind in choices if kinds[kind]["openable"] == wanted]
        if not choices:
            return None
        kind = draw.choices(choices, [weights[name] for name in choices])[0]
        closed += kinds[kind]["openable"]
        room.receptacles.append(kind)
    if len(room.receptacles) > spec.receptacles:
        return None
    if spec.closed is not None and closed != round(spec.closed * spec.receptacles):
        return None  # What the goals need was of the other sort, or too few can be closed in such rooms.
    draw.shuffle(room.receptacles)
    places: dict[str, list[int]] = {}
    for kind in room.receptacles:
        # Some of a kind, such as drawers, are reached from one place.
        alike = places.setdefault(kind, [])
        place = (
            draw.choice(alike)
            if alike and draw.random() < kinds[kind]["shared"] / 2
            else max(room.places, default=-1) + 1
        )
        alike.append(place)
        room.places.append(place)
    return room


def _fill(spec: RoomSpec, draw: random.Random, table: dict[str, Any], room: _Room, wishes: list[_Wish]) -> bool:
    """Objects: what the goals need, then as many as asked for where they lie in such rooms."""
    holds = {kind: set(entry["holds"]) for kind, entry in room_table()["receptacles"].items()}

    def put(thing: str, avoid: str = "") -> bool:
        shares = table["placements"].get(thing, {})
        spots = [r for r, kind in enumerate(room.receptacles) if thing in holds[kind] and kind != avoid]
        if not spots:
            return False
        # A receptacle where it never lies, but fits, will do if there is no other.
        weights = [shares.get(room.receptacles[r], 0.0) for r in spots]
        room.things.append((thing, draw.choices(spots, weights if any(weights) else None)[0]))
        return True

    for wish in wishes:
        for _ in range(spec.candidates):
            if not put(wish.thing, avoid="" if wish.type == "look" else wish.where):
                return False
        if wish.type == "look":
            spots = room.where([kind for kind in room_table()["receptacles"] if kind not in ("fridge", "microwave")])
            room.things.append((wish.where, draw.choice(spots)))
    wanted = {wish.thing for wish in wishes} | set(_LAMPS)
    others = {thing: weight for thing, weight in table["objects"].items() if thing not in wanted}
    tries = 0
    while len(room.things) < spec.objects and others:
        tries += not put(draw.choices(list(others), list(others.values()))[0])
        if tries > 50:
            return False
    return len(room.things) <= spec.objects


def _words(wish: _Wish) -> str:
    """A goal in words, as ALFWorld puts it."""
    if wish.type == "look":
        return f"look at {wish.thing} under the {wish.where}"
    things = f"{_NUMBERS[wish.count]} {wish.thing}" if wish.count > 1 else f"some {wish.thing}"
    them = "them" if wish.count > 1 else "it"
    if wish.type in PROCESSORS:
        return f"{wish.type} {things} and put {them} in {wish.where}"
    return f"find {things} and put {them} in {wish.where}" if wish.count > 1 else f"put {things} in {wish.where}"


def _problem(room: _Room, wishes: list[_Wish], name: str) -> str:
    """The PDDL problem, in the form of the official ones."""
    table = room_table()
    seen: Counter[str] = Counter()

    def identify(kind: str) -> str:
        seen[kind] += 1
        stem = kind.removesuffix("basin")  # Upstream names basins after what they are in.
        return f"{stem}_bar_{seen[kind]:03d}" + (f"_bar_{kind}" if stem != kind else "")

    receptacles = [identify(kind) for kind in room.receptacles]
    objects = [identify(kind) for kind, _ in room.things]
    kinds = sorted({kind for kind, _ in room.things} | {wish.thing for wish in wishes})
    holders = sorted(set(room.receptacles) | set(PROCESSORS.values()))
    start = max(room.places) + 1
    facts = [f"(receptacleType {r} {kind}Type)" for r, kind in zip(receptacles, room.receptacles, strict=True)]
    facts += [f"(objectType {o} {kind}Type)" for o, (kind, _) in zip(objects, room.things, strict=True)]
    for kind in sorted(set(room.receptacles)):
        facts += [
            f"(canContain {kind}Type {thing}Type)" for thing in table["receptacles"][kind]["holds"] if thing in kinds
        ]
    for receptacle, kind in zip(receptacles, room.receptacles, strict=True):
        if table["receptacles"][kind]["openable"]:
            facts.append(f"(openable {receptacle})")
    facts.append(f"(atLocation agent1 loc_bar_{start:03d})")
    predicates = {
        "pickup": "pickupable", "receptacle": "isReceptacleObject", "clean": "cleanable", "hot": "heatable",
        "cool": "coolable", "light": "toggleable", "sliced": "sliceable",
    }  # fmt: skip
    for thing, (kind, where) in zip(objects, room.things, strict=True):
        facts += [f"({predicates[ability]} {thing})" for ability in table["objects"][kind] if ability in predicates]
        facts.append(f"(inReceptacle {thing} {receptacles[where]})")
        facts.append(f"(objectAtLocation {thing} loc_bar_{room.places[where]:03d})")
        if room.receptacles[where] == "fridge" and "cool" in table["objects"][kind]:
            facts.append(f"(isCool {thing})")
    facts += [
        f"(receptacleAtLocation {r} loc_bar_{place:03d})" for r, place in zip(receptacles, room.places, strict=True)
    ]
    declared = ["agent1 - agent"]
    declared += [f"{kind}Type - otype" for kind in sorted({*kinds, "knife", "butterknife"})]
    declared += [f"{kind}Type - rtype" for kind in holders]
    declared += [f"{thing} - object" for thing in objects] + [
        f"{receptacle} - receptacle" for receptacle in receptacles
    ]
    declared += [f"loc_bar_{place:03d} - location" for place in range(start + 1)]
    lines = [f"(define (problem {name.replace('=', '_').replace('+', '_').replace('.', '_')})", "(:domain alfred)"]
    lines += [
        "(:objects",
        *(f"    {line}" for line in declared),
        ")",
        "(:init",
        *(f"    {line}" for line in facts),
        ")",
    ]
    lines += [
        "(:goal (and",
        *(f"    {line}" for number, wish in enumerate(wishes) for line in _clauses(wish, number)),
        "))",
        ")",
    ]
    return "\n".join(lines) + "\n"


def _clauses(wish: _Wish, number: int) -> list[str]:
    """A goal as conjuncts; its number keeps the names of its variables apart from those of other goals."""
    r = f"?r{number}"
    if wish.type == "look":
        return [
            f"(exists (?ot - object {r} - receptacle ?a - agent ?l - location) (and "
            f"(objectType ?ot {wish.where}Type) (toggleable ?ot) (isToggled ?ot) (receptacleAtLocation {r} ?l) "
            f"(atLocation ?a ?l) (inReceptacle ?ot {r})))",
            f"(exists (?o - object ?b - agent) (and (objectType ?o {wish.thing}Type) (holds ?b ?o)))",
        ]
    able = {
        "clean": "(cleanable {0}) (isClean {0}) ",
        "heat": "(heatable {0}) (isHot {0}) ",
        "cool": "(coolable {0}) (isCool {0}) ",
    }.get(wish.type, "")
    terms = [f"?o{number}_{i}" for i in range(wish.count)]
    each = "".join(
        f"{able.format(term)}(objectType {term} {wish.thing}Type) (inReceptacle {term} {r}) " for term in terms
    )
    apart = "".join(f"(not (= {a} {b})) " for i, a in enumerate(terms) for b in terms[i + 1 :])
    variables = " ".join(f"{term} - object" for term in terms)
    return [f"(exists ({r} - receptacle {variables}) (and {each}{apart}(receptacleType {r} {wish.where}Type)))"]
