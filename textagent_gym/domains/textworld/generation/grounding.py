"""From a TextWorld game to its logic: the rules of its knowledge base, grounded over all that can ever become true.

Facts that never change are left out. Commands and event names are those of
`textworld.envs.wrappers.tw_inform7.StateTracking`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

from textagent_gym.domains.textworld.generation.patterns import (
    Binding,
    Index,
    Pattern,
    add_to_index,
    fill,
    pattern,
    signature,
    uses_of,
)
from textagent_gym.domains.textworld.logic import Action, Fact, GameLogic, Quest


def ground(game: Any) -> GameLogic:
    """The logic of a game.

    Args:
        game: a `textworld.generator.game.Game`, or what has its `infos`, `world`, `kb` and `quests`.
    """
    types = {name: info.type for name, info in game.infos.items()}
    for proposition in game.world.facts:
        types.update((variable.name, variable.type) for variable in proposition.arguments)
    types.update((variable.name, variable.type) for variable in game.kb.types.constants_mapping.values())

    reachable = _Reachable(_rules(game.kb), types)
    start = sorted(_fact(proposition) for proposition in game.world.facts)
    reachable.grow(start)

    instances = list(reachable.instances.values())
    changing = {fact for instance in instances for some in (instance.removes, instance.adds) for fact in some}
    facts = tuple(sorted(changing))
    bit = {fact: 1 << i for i, fact in enumerate(facts)}
    always = set(start) - changing

    def mask(some: Iterable[Fact]) -> int:
        bits = 0
        for fact in some:
            bits |= bit.get(fact, 0)
        return bits

    names = {name: name for name in types} | {name: info.name or name for name, info in game.infos.items()}
    sayings = {instance.rule.name: _saying(instance.rule.name, game.kb) for instance in instances}
    # TextWorld lists "prepare meal" as admissible for any part of a recipe, however it was cut and cooked; the compiled
    # game wants the whole recipe, and as the cookbook says.
    prepared = mask(_prepared(start))
    ingredients = sum(1 for fact in start if fact[0].startswith("ingredient_"))
    idle = {f"make/recipe/{some}" for some in range(1, ingredients)}

    def action(instance: _Instance) -> Action:
        rule = instance.rule
        changes = rule.name not in idle
        command, event = sayings[rule.name]
        shown = {variable: names[entity] for variable, entity in instance.entities.items()}
        return Action(
            mask(fill(rule.needs, instance.entities)),
            mask(instance.removes) if changes else 0,
            mask(instance.adds) if changes else 0,
            command.format(**shown),
            event.format(**shown).lower(),
            len(rule.needs),
            prepared if rule.name.startswith("make/recipe/") else 0,
        )

    actions = sorted(map(action, instances), key=lambda a: (a.command, a.event, a.terms, a.needs))
    possible = set(bit) | always

    def events(some: Iterable[Any]) -> tuple[int, ...]:
        conditions = ({_fact(p) for p in event.condition.preconditions} for event in some)
        return tuple(mask(condition) for condition in conditions if condition <= possible)

    quests = tuple(
        Quest(
            events(quest.win_events),
            events(quest.fail_events),
            bool(not quest.optional and len(quest.win_events)),
            bool(quest.repeatable),
        )
        for quest in game.quests
    )
    entities = sum(1 for info in game.infos.values() if info.type not in ("P", "I", "RECIPE", "slot"))
    return GameLogic(facts, tuple(actions), quests, mask(set(start)), entities)


@dataclass(frozen=True, slots=True)
class _Instance:
    """A rule under an assignment of entities to its variables."""

    rule: Pattern
    removes: list[Fact]
    adds: list[Fact]
    entities: Binding


class _Rules:
    """The rules of a knowledge base, prepared.

    Attributes:
        is_a: each type and those below it.
        uses: what a new fact may be wanted for.
    """

    def __init__(self, kb: Any) -> None:
        constants = {placeholder.name: variable.name for placeholder, variable in kb.types.constants_mapping.items()}
        self.is_a = {kind.name: frozenset(sub.name for sub in kind.subtypes) for kind in kb.logic.types}
        self.uses = uses_of(map(pattern, kb.rules.values()), self.is_a, constants)


@lru_cache(maxsize=8)
def _rules(kb: Any) -> _Rules:
    """The rules of a knowledge base; prepared once."""
    return _Rules(kb)


class _Reachable:
    """Everything that can become true if nothing ever stopped being true, found fact by fact.

    Each new fact is joined with the facts before it in every rule that mentions its predicate (semi-naive evaluation),
    so each instance of a rule is met once.
    """

    def __init__(self, rules: _Rules, types: dict[str, str]) -> None:
        self.facts: dict[Fact, None] = {}
        self.instances: dict[tuple[str, ...], _Instance] = {}
        self._rules, self._types = rules, types
        self._index: Index = {}

    def grow(self, facts: Iterable[Fact]) -> None:
        waiting = list(facts)
        for fact in waiting:  # It grows while it is read.
            if fact not in self.facts:
                self.facts[fact] = None
                add_to_index(self._index, fact, self._types)
                for use in self._rules.uses.get(signature(fact, self._types), ()):
                    for bound in use.matches(fact, self._index, self._types):
                        whole = len(bound) == len(use.rule.types)
                        for entities in [bound] if whole else self._complete(use.rule, bound):
                            waiting += self._instantiate(use.rule, entities)

    def _complete(self, rule: Pattern, bound: Binding) -> Iterator[Binding]:
        """Every way to bind the variables that no condition mentions as well."""
        free = [variable for variable in rule.types if variable not in bound]
        fitting = [
            [entity for entity, kind in self._types.items() if kind in self._rules.is_a[rule.types[variable]]]
            for variable in free
        ]
        for chosen in product(*fitting):
            entities = {**bound, **dict(zip(free, chosen, strict=True))}
            if len(set(entities.values())) == len(entities):
                yield entities

    def _instantiate(self, rule: Pattern, entities: Binding) -> Sequence[Fact]:
        """Note an instance of a rule; what it adds, if it was not noted before."""
        key = (rule.name, *[entities[variable] for variable in rule.types])
        if key in self.instances:
            return ()
        adds = fill(rule.adds, entities)
        self.instances[key] = _Instance(rule, fill(rule.removes, entities), adds, entities)
        return adds


def _prepared(start: Iterable[Fact]) -> Iterator[Fact]:
    """The facts that hold when every food of the recipe is in the player's hands, cut and cooked as it says."""
    facts = set(start)
    for name, *rest in sorted(facts):
        if name == "base":
            food, ingredient = rest
            yield ("in", food, "I")
            for state, *things in sorted(facts):
                if things == [ingredient]:
                    yield (state, food)


def _fact(proposition: Any) -> Fact:
    return (proposition.name, *(variable.name for variable in proposition.arguments))


def _saying(rule: str, kb: Any) -> tuple[str, str]:
    """What a player types to apply a rule, and what Inform calls it."""
    return kb.rules[rule].command_template or kb.inform7_commands[rule], kb.inform7_events[rule]
