"""From a TextWorld game to its text: what the compiled game would print, and in which order.

Kinds, places and states are read from the game's facts, as `textworld.generator.inform7` writes them into the source of
the compiled game; entities are numbered as the compiler numbers them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from textagent_gym.domains.textworld.inform.fiction import (
    DIRECTIONS,
    FIRST_DIRECTION,
    FIRST_ENTITY,
    PLAYER,
    Entity,
    Fact,
    Fiction,
    Goal,
    Ingredient,
)
from textagent_gym.domains.textworld.inform.templates import literal, read_template
from textagent_gym.domains.textworld.inform.world import COOKED, CUT
from textagent_gym.errors import GenerationError

_KINDS = {"r": "room", "d": "door", "c": "container", "s": "supporter", "f": "food", "o": "thing"}
_IDEAS = frozenset(("P", "I", "RECIPE", "ingredient", "slot", "object"))
_HEAT = {"stove": "fried", "oven": "roasted", "toaster": "grilled"}
_TRAITS = ("sharp", "cookable", "cuttable", "drinkable")
_STATES = frozenset(("open", "locked", "needs_cooking", "cooked", "burned", *COOKED, *CUT))
_CAPACITY = 100  # Of Inform's player, where a game has no slots to carry things in.
_OBJECTIVE_PART = 200  # Characters of a part of the objective; Inform reads each part by itself.
_UNSPOKEN = frozenset(("the", "of"))  # Words of a name by which alone nothing can be called.


def tell(game: Any) -> Fiction:
    """The text of a game.

    Args:
        game: a game of TextWorld, as `draw` returns it.

    Raises:
        GenerationError: the game has rules that only the compiled game knows.
    """
    return _Reader(game).fiction()


def tell_if_known(game: Any) -> Fiction | None:
    """The text of a game, or `None` if it has rules that only the compiled game knows."""
    try:
        return tell(game)
    except GenerationError:
        return None


class _Reader:
    def __init__(self, game: Any) -> None:
        self.game = game
        self.types = {kind.name: kind for kind in game.kb.logic.types}
        self.cooking = "RECIPE" in self.types
        self.facts = [(fact.name, *(variable.name for variable in fact.arguments)) for fact in game.world.facts]
        self.kind_of = {name: info.type for name, info in game.infos.items()}
        code = game.kb.inform7_addons_code.strip()
        if code and not self.cooking:
            raise GenerationError("the game has Inform 7 code of its own, which only the compiled game can run")
        self.numbers: dict[str, int] = {"P": PLAYER, "I": PLAYER}
        for identity in self._order():
            self.numbers[identity] = FIRST_ENTITY + len(self.numbers) - 2

    def _order(self) -> list[str]:
        """Identities in the order in which Inform 7 meets them: rooms, doors where they join them, then the rest."""
        world = self.game.world
        rooms = [room.id for room in world.rooms]
        doors: list[str] = []
        for room in world.rooms:
            for way in room.exits:
                if way in room.doors and room.doors[way].name not in doors:
                    doors.append(room.doors[way].name)
        rest = [
            entity.id
            for kind in self.game.kb.types
            if kind not in ("P", "I", "r", "d")
            for entity in world.get_entities_per_type(kind)
        ]
        return rooms + doors + rest

    def fiction(self) -> Fiction:
        known = [name for name in self.numbers if name not in ("P", "I")]
        return Fiction(
            entities=tuple(self._entity(name) for name in known),
            exits=tuple(self._exits()),
            doors=tuple(self._doors()),
            contents=self._contents(),
            facts=tuple(self._states()),
            keys=tuple(
                sorted((self.numbers[fact[2]], self.numbers[fact[1]]) for fact in self.facts if fact[0] == "match")
            ),
            goals=tuple(self._goal(quest) for quest in self.game.quests),
            objective=_objective(self.game.objective),
            capacity=self._capacity(),
            cooking=self.cooking,
            recipe=tuple(self._recipe()),
            meal=self._partner("out", 0),
            kitchen=self._partner("cooking_location", 0),
        )

    def _is_a(self, kind: str, other: str) -> bool:
        parents = [kind]
        for parent in parents:
            if parent == other:
                return True
            parents.extend(self.types[parent].parents if parent in self.types else ())
        return False

    def _entity(self, name: str) -> Entity:
        info = self.game.infos[name]
        kind = next((_KINDS[base] for base in _KINDS if self._is_a(info.type, base)), "thing")
        if info.type in _IDEAS:
            kind = "idea"
        elif not any(self._is_a(info.type, base) for base in _KINDS):
            raise GenerationError(f"the game has things of the kind {info.type!r}, which only the compiled game knows")
        printed = info.name or ""
        words = printed.split()
        phrases = [*(info.synonyms or ()), *([printed] if printed else [])]
        if len(words) > 1:
            phrases += [word for word in words if word.lower() not in _UNSPOKEN]
        unique = sorted(dict.fromkeys(phrases), key=lambda phrase: -len(phrase.split()))
        description = info.desc or ""
        if kind != "room":
            description = description.replace("\n", "[line break]")
        described = self._numbered(description)
        read_template(described)  # What it cannot read is found now, not while the game is played.
        heat = next((heat for base, heat in _HEAT.items() if self._is_a(info.type, base)), "") if self.cooking else ""
        traits = {fact[0] for fact in self.facts if len(fact) == 2 and fact[1] == name and fact[0] in _TRAITS}
        if self.cooking and kind == "food":
            traits |= {"cookable", "cuttable"}
        return Entity(
            kind,
            printed,
            tuple(unique),
            described,
            info.indefinite or "",
            heat,
            tuple(sorted(traits)),
        )

    def _numbered(self, description: str) -> str:
        """A description in whose brackets entities are named by their numbers."""
        return re.sub(
            r"\[([^\]]*)\]",
            lambda tag: "[" + re.sub(r"\w+", lambda word: str(self.numbers.get(word[0], word[0])), tag[1]) + "]",
            description,
        )

    def _exits(self) -> Iterable[tuple[int, int, int]]:
        for room in self.game.world.rooms:
            for way, there in room.exits.items():
                through = room.doors[way].name if way in room.doors else there.id
                yield self.numbers[room.id], FIRST_DIRECTION + DIRECTIONS.index(way), self.numbers[through]

    def _doors(self) -> Iterable[tuple[int, int, int]]:
        seen = set()
        for room in self.game.world.rooms:
            for way, there in room.exits.items():
                if way in room.doors and room.doors[way].name not in seen:
                    seen.add(room.doors[way].name)
                    yield self.numbers[room.doors[way].name], self.numbers[room.id], self.numbers[there.id]

    def _contents(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        places: dict[int, list[int]] = {}
        for fact in self.facts:
            if fact[0] in ("at", "in", "on") and self.kind_of.get(fact[2]) != "RECIPE":
                places.setdefault(self.numbers[fact[2]], []).append(self.numbers[fact[1]])
        return tuple((holder, tuple(sorted(things))) for holder, things in sorted(places.items()))

    def _states(self) -> Iterable[Fact]:
        foods = {name for name, kind in self.kind_of.items() if self._is_a(kind, "f")}
        inedible = {fact[1] for fact in self.facts if fact[0] == "inedible"}
        for name in sorted(foods - inedible, key=self.numbers.__getitem__):
            yield "edible", self.numbers[name], 0
        for fact in sorted(self.facts):
            if len(fact) == 2 and fact[0] in _STATES and self.kind_of.get(fact[1]) != "ingredient":
                yield fact[0], self.numbers[fact[1]], 0

    def _capacity(self) -> int:
        slots = sum(1 for kind in self.kind_of.values() if kind == "slot")
        return slots if "slot" in self.types else _CAPACITY

    def _recipe(self) -> Iterable[Ingredient]:
        base = {fact[2]: fact[1] for fact in self.facts if fact[0] == "base"}
        included = {fact[1] for fact in self.facts if fact[0] == "in" and self.kind_of.get(fact[2]) == "RECIPE"}
        for thing in self.game.world.objects:
            if thing.id in included:
                states = {fact[0] for fact in self.facts if fact[1:] == (thing.id,)}
                yield Ingredient(
                    self.numbers[base[thing.id]],
                    next((state for state in COOKED if state in states), COOKED[0]),
                    next((state for state in CUT if state in states), CUT[0]),
                )

    def _partner(self, name: str, place: int) -> int:
        return next((self.numbers[fact[1 + place]] for fact in self.facts if fact[0] == name), 0)

    def _goal(self, quest: Any) -> Goal:
        return Goal(
            tuple(self._condition(event) for event in quest.win_events),
            tuple(self._condition(event) for event in quest.fail_events),
            quest.reward,
            bool(not quest.optional and len(quest.win_events)),
            bool(quest.repeatable),
        )

    def _condition(self, event: Any) -> tuple[Fact, ...]:
        """The facts that the compiled game looks at, which are not all that TextWorld names."""
        facts: list[Fact] = []
        for proposition in event.condition.preconditions:
            name, *arguments = (proposition.name, *(variable.name for variable in proposition.arguments))
            numbers = [self.numbers[argument] for argument in arguments if argument in self.numbers]
            if name in ("at", "in", "on"):
                facts.append(("in", numbers[0], numbers[1]))
            elif name == "eaten":
                facts.append(("in", numbers[0], 0))
            elif name == "closed":
                facts += [("closed", numbers[0], 0), ("unlocked", numbers[0], 0)]
            elif name in _STATES or name in ("edible", "inedible", "consumed"):
                facts.append((name, numbers[0], 0))
            elif not self._is_always_true(proposition):
                raise GenerationError(f"a quest depends on {proposition}, which only the compiled game knows")
        return tuple(facts)

    def _is_always_true(self, proposition: Any) -> bool:
        """Whether a fact holds for ever or is left out of the compiled game."""
        template = self.game.kb.inform7_predicates.get(proposition.signature)
        if template is None or not template[1]:
            return True
        return (proposition.name, *(variable.name for variable in proposition.arguments)) in self.facts


def _objective(text: str) -> str:
    """The objective as the compiled game prints it, which reads it in parts."""
    lines = text.split("\n")
    printed = ""
    for number, line in enumerate(lines):
        parts = [line[at : at + _OBJECTIVE_PART] for at in range(0, len(line), _OBJECTIVE_PART)]
        printed += "".join(literal(part) for part in parts)
        if parts and number < len(lines) - 1:  # A line without a part loses its end as well.
            printed += "\n"
    return printed
