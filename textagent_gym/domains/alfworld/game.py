"""An ALFWorld game, read from its `game.tw-pddl`: what is in the room, what can be done with it, and what is wanted.

The file holds a PDDL domain (the same in every game), a PDDL problem, and a grammar of the text. The rules and the text
are built into the engine (see `engine`); of the file only the problem, the words of the task and the dialect are read.

Things are numbered in the order of their PDDL names, which is the order in which upstream lists them, and a set of
objects is one integer with a bit for each.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Literal

from textagent_gym.errors import TextAgentError

Dialect = Literal["move", "put"]

TASK_TYPES = {
    "pick_and_place_simple": "pick",
    "look_at_obj_in_light": "look",
    "pick_clean_then_place_in_recep": "clean",
    "pick_heat_then_place_in_recep": "heat",
    "pick_cool_then_place_in_recep": "cool",
    "pick_two_obj_and_place": "two",
}
"""ALFWorld's names of the task types, and the short ones used here."""

CONDITIONS = ("clean", "hot", "cool", "sliced")
"""What an object can become."""


class GameFormatError(TextAgentError, ValueError):
    """A file is no ALFWorld game, or asks for something that the native engine does not know."""


@dataclass(frozen=True, slots=True)
class Goal:
    """One thing that must hold in the end; all goals of a game must hold at once.

    Attributes:
        kind: "place": `count` objects are in one of `receptacles`; "hold": one is held; "light": one is switched on
            where the agent is.
        objects: the objects that will do.
        receptacles: the receptacles that will do ("place").
        count: objects needed in one receptacle ("place").
        conditions: conditions that each of the objects must have taken on.
    """

    kind: Literal["place", "hold", "light"]
    objects: int
    receptacles: tuple[int, ...] = ()
    count: int = 1
    conditions: tuple[str, ...] = ()

    @property
    def milestones(self) -> int:
        """Steps of progress: each object is found, taken, given its conditions and placed; a lamp found and lit."""
        if self.kind == "light":
            return 2
        return self.count * (2 + len(self.conditions) + (self.kind == "place"))


@dataclass(frozen=True, eq=False)
class Game:
    """A game. Immutable, so it can be shared between threads and environments.

    Attributes:
        id: id of the task.
        task: words of the task.
        dialect: "move" (`move X to Y`, releases 2.1.2 and later) or "put" (`put X in/on Y`, release 2.1.1).
        receptacles: names of the receptacles.
        objects: names of the objects.
        places: place of each receptacle; several can be at one.
        start: place where the agent begins.
        openable: receptacles that can be opened, as bits.
        opened: receptacles that are open at the beginning, as bits.
        contents: objects in each receptacle at the beginning.
        around: objects at each place at the beginning.
        accepts: objects that each receptacle can hold.
        uses: receptacles to clean, heat and cool with, as bits, by condition.
        able: objects that can be picked up, cleaned, heated, cooled, switched on, sliced, sliced with, or looked into;
            the keys are "pickup", "clean", "hot", "cool", "light", "sliced", "knife", "receptacle".
        inside: objects within an object, by object.
        marked: objects that are clean, hot, cool or sliced at the beginning, by condition.
        goals: goals, all of which must hold.
        walkthrough: upstream's plan, if the file has one.
    """

    id: str
    task: str
    dialect: Dialect
    receptacles: tuple[str, ...]
    objects: tuple[str, ...]
    places: tuple[int, ...]
    start: int
    openable: int
    opened: int
    contents: tuple[int, ...]
    around: tuple[int, ...]
    accepts: tuple[int, ...]
    uses: Mapping[str, int]
    able: Mapping[str, int]
    inside: Mapping[int, int]
    marked: Mapping[str, int]
    goals: tuple[Goal, ...]
    walkthrough: tuple[str, ...] | None = None
    here: tuple[tuple[int, ...], ...] = field(init=False)
    """Receptacles at each place."""
    travels: dict[int, list[str]] = field(init=False, default_factory=dict, repr=False)
    """Commands that are admissible at a place whatever has happened; filled when they are first asked for."""

    def __post_init__(self) -> None:
        here: list[list[int]] = [[] for _ in self.around]
        for receptacle, place in enumerate(self.places):
            here[place].append(receptacle)
        object.__setattr__(self, "here", tuple(map(tuple, here)))

    @cached_property
    def receptacle_of(self) -> dict[str, int]:
        """Numbers of the receptacles, by name."""
        return {name: number for number, name in enumerate(self.receptacles)}

    @cached_property
    def object_of(self) -> dict[str, int]:
        """Numbers of the objects, by name."""
        return {name: number for number, name in enumerate(self.objects)}


def read_game(
    data: Mapping[str, Any], game_id: str, dialect: Dialect | None = None, shuffle: int | None = None
) -> Game:
    """Read a game.

    Args:
        data: the content of a `game.tw-pddl`: "pddl_problem", "grammar" and, if there is one, "walkthrough".
        game_id: id of the task.
        dialect: dialect to speak; by default the file's own.
        shuffle: seed of the order in which the things of a kind are numbered, as `AlfredDemangler(shuffle=True)` does;
            `None` numbers them downward by name.

    Raises:
        GameFormatError: it is no game that the native engine can play.
    """
    try:
        problem, grammar = data["pddl_problem"], data["grammar"]
        facts, goal = _split(problem)
        game = _build(game_id, facts, _parse(goal), grammar, shuffle)
        return replace(game, dialect=dialect or game.dialect, walkthrough=tuple(data.get("walkthrough") or ()) or None)
    except (KeyError, ValueError, IndexError, TypeError, AttributeError) as error:
        if isinstance(error, GameFormatError):
            raise
        raise GameFormatError(f"{game_id} is no ALFWorld game: {error!r}") from error


_FACT = re.compile(r"\((\w+) ([^\s()]+)(?: ([^\s()]+))?\)")
_TASK = re.compile(r"Your task is to: ((?:[^\"\\]|\\.)*)\"")


def _split(problem: str) -> tuple[dict[str, list[tuple[str, str]]], str]:
    """The facts of the beginning by predicate, and the text of the goal; all in lower case, as upstream reads them."""
    begin, end = problem.index("(:init"), problem.rindex("(:goal")
    facts: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for predicate, first, second in _FACT.findall(problem[begin:end].lower()):
        facts[predicate].append((first, second))
    return facts, problem[end:].lower()


def _build(
    game_id: str,
    facts: dict[str, list[tuple[str, str]]],
    goal: list[Any],
    grammar: str,
    shuffle: int | None,
) -> Game:
    dialect: Dialect = "move" if '"move {o} to {r}"' in grammar else "put"
    if dialect == "put" and '"put {o} in/on {r}"' not in grammar:
        raise GameFormatError(f"{game_id} speaks an unknown dialect; engine='reference' may play it")
    task = _TASK.search(grammar)
    if task is None:
        raise GameFormatError(f"{game_id} names no task")
    receptacle_ids = sorted({first for first, _ in facts["receptacleatlocation"]})
    object_ids = sorted(
        {first for predicate in ("objectatlocation", "objecttype", "inreceptacle") for first, _ in facts[predicate]}
    )
    places = sorted(
        {
            second
            for predicate in ("receptacleatlocation", "objectatlocation", "atlocation")
            for _, second in facts[predicate]
        }
    )
    place_of = {name: number for number, name in enumerate(places)}
    receptacle_of = {name: number for number, name in enumerate(receptacle_ids)}
    object_of = {name: number for number, name in enumerate(object_ids)}
    names = _names(facts, shuffle)

    def objects(predicate: str) -> int:
        return _mask(object_of[first] for first, _ in facts[predicate] if first in object_of)

    kinds: dict[str, int] = defaultdict(int)  # Objects by type.
    for first, second in facts["objecttype"]:
        kinds[second] |= 1 << object_of[first]
    holders: dict[str, int] = defaultdict(int)  # Receptacles by type.
    accepts = [0] * len(receptacle_ids)
    fitting: dict[str, int] = defaultdict(int)
    for first, second in facts["cancontain"]:
        fitting[first] |= kinds.get(second, 0)
    for first, second in facts["receptacletype"]:
        holders[second] |= 1 << receptacle_of[first]
        accepts[receptacle_of[first]] |= fitting[second]
    contents = [0] * len(receptacle_ids)
    for first, second in facts["inreceptacle"]:
        contents[receptacle_of[second]] |= 1 << object_of[first]
    around = [0] * len(places)
    for first, second in facts["objectatlocation"]:
        around[place_of[second]] |= 1 << object_of[first]
    inside: dict[int, int] = defaultdict(int)
    for first, second in facts["inreceptacleobject"]:
        if first != second:  # Some files say that a pan is in itself, which upstream does not show.
            inside[object_of[second]] |= 1 << object_of[first]
    where = dict(facts["receptacleatlocation"])
    able = {
        "pickup": objects("pickupable"),
        "clean": objects("cleanable"),
        "hot": objects("heatable"),
        "cool": objects("coolable"),
        "light": objects("toggleable"),
        "sliced": objects("sliceable"),
        "knife": kinds.get("knifetype", 0) | kinds.get("butterknifetype", 0),
        "receptacle": objects("isreceptacleobject"),
    }
    return Game(
        id=game_id,
        task=json.loads(f'"{task[1]}"'),
        dialect=dialect,
        receptacles=tuple(names[name] for name in receptacle_ids),
        objects=tuple(names[name] for name in object_ids),
        places=tuple(place_of[where[name]] for name in receptacle_ids),
        start=place_of[facts["atlocation"][0][1]],
        openable=_mask(receptacle_of[first] for first, _ in facts["openable"] if first in receptacle_of),
        opened=_mask(receptacle_of[first] for first, _ in facts["opened"] if first in receptacle_of),
        contents=tuple(contents),
        around=tuple(around),
        accepts=tuple(accepts),
        uses={
            "clean": holders.get("sinktype", 0) | holders.get("sinkbasintype", 0),
            "hot": holders.get("microwavetype", 0),
            "cool": holders.get("fridgetype", 0),
        },
        able=able,
        inside=dict(inside),
        marked={name: objects(f"is{name}") for name in CONDITIONS},
        goals=tuple(_goal(clause, kinds, holders, able) for clause in _clauses(goal)),
    )


def _mask(numbers: Iterator[int]) -> int:
    mask = 0
    for number in numbers:
        mask |= 1 << number
    return mask


def _names(facts: dict[str, list[tuple[str, str]]], shuffle: int | None) -> dict[str, str]:
    """Names such as "mug 2": numbered downward in the order of the PDDL names, each kind by itself."""
    ids = sorted({name for pairs in facts.values() for pair in pairs for name in pair if "_bar_" in name})
    if shuffle is not None:
        random.Random(shuffle).shuffle(ids)
    kinds = [name.split("_bar_", 1)[0] + ("basin" if "basin" in name else "") for name in ids]
    left = Counter(kinds)
    names = {}
    for name, kind in zip(ids, kinds, strict=True):
        names[name] = f"{kind} {left[kind]}"
        left[kind] -= 1
    return names


@lru_cache(maxsize=1024)
def _parse(text: str) -> list[Any]:
    """Nested lists of a text in parentheses; what is left open at its end is closed."""
    stack: list[list[Any]] = [[]]
    for token in re.findall(r"[()]|[^\s()]+", text):
        if token == "(":
            stack.append([])
        elif token == ")":
            if len(stack) > 1:
                stack[-2].append(stack.pop())
        else:
            stack[-1].append(token)
    return stack[0][0]  # type: ignore[no-any-return]


def _clauses(goal: list[Any]) -> list[list[Any]]:
    """The conjuncts of `(:goal (and ...))`."""
    formula = goal[1]
    return formula[1:] if formula[0] == "and" else [formula]


def _goal(clause: list[Any], kinds: Mapping[str, int], holders: Mapping[str, int], able: Mapping[str, int]) -> Goal:
    """A conjunct `(exists (...) (and ...))`, nested or not, as a `Goal`."""
    literals = list(_literals(clause))
    wanted: dict[str, int] = {}
    conditions: dict[str, set[str]] = defaultdict(set)
    places: int | None = None
    held, inside, lit = "", [], False
    for predicate, *terms in literals:
        if predicate == "objecttype":
            wanted[terms[0]] = wanted.get(terms[0], -1) & kinds.get(terms[1], 0)
        elif predicate == "receptacletype":
            places = holders.get(terms[1], 0) if places is None else places & holders.get(terms[1], 0)
        elif predicate == "inreceptacle":
            inside.append(terms[0])
        elif predicate == "holds":
            held = terms[1]
        elif predicate == "istoggled":
            lit = True
        elif predicate in _STATIC:
            wanted[terms[0]] = wanted.get(terms[0], -1) & able[_STATIC[predicate]]
        elif predicate.removeprefix("is") in CONDITIONS:
            conditions[terms[0]].add(predicate.removeprefix("is"))
        elif predicate not in ("atlocation", "receptacleatlocation", "different"):
            raise GameFormatError(f"the goal asks for {predicate!r}, which the native engine does not know")
    if held and not inside:
        return Goal("hold", wanted[held], conditions=tuple(sorted(conditions[held])))
    if lit and len(inside) == 1:
        return Goal("light", wanted[inside[0]])
    alike = {(wanted[term], tuple(sorted(conditions[term]))) for term in inside}
    if len(alike) != 1 or places is None or held or lit or len(set(inside)) != len(inside):
        raise GameFormatError("the native engine does not know goals of this form")
    objects, needed = alike.pop()
    receptacles = tuple(i for i in range(places.bit_length()) if places >> i & 1)
    return Goal("place", objects, receptacles, len(inside), needed)


_STATIC = {"cleanable": "clean", "heatable": "hot", "coolable": "cool", "toggleable": "light", "sliceable": "sliced"}


def _literals(formula: list[Any]) -> Iterator[list[str]]:
    """The literals of nested `exists` and `and`; an inequality is `different`."""
    if formula[0] == "exists":
        yield from _literals(formula[2])
    elif formula[0] == "and":
        for part in formula[1:]:
            yield from _literals(part)
    elif formula[0] == "not" and formula[1][0] == "=":
        yield ["different", *formula[1][1:]]
    elif formula[0] in ("or", "not", "forall", "imply"):
        raise GameFormatError(f"the goal uses {formula[0]!r}, which the native engine does not know")
    else:
        yield formula
