"""From a TextWorld game to its logic: the rules of its knowledge base, grounded over all that can ever become true.

Facts that never change are left out. Commands and event names are those of
`textworld.envs.wrappers.tw_inform7.StateTracking`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from textagent_gym.domains.textworld.generation.patterns import (
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
    hierarchy = game.kb.types
    is_a = {kind.name: frozenset(sub.name for sub in kind.subtypes) for kind in game.kb.logic.types}
    constants = {placeholder.name: variable.name for placeholder, variable in hierarchy.constants_mapping.items()}
    types.update((variable.name, variable.type) for variable in hierarchy.constants_mapping.values())

    reachable = _Reachable([pattern(rule) for rule in game.kb.rules.values()], types, is_a, constants)
    start = sorted(_fact(proposition) for proposition in game.world.facts)
    reachable.grow(start)

    instances = list(reachable.instances.values())
    changing = {fact for instance in instances for fact in instance.pre ^ instance.post}
    facts = tuple(sorted(changing))
    bit = {fact: 1 << i for i, fact in enumerate(facts)}
    always = set(start) - changing

    def mask(some: Iterable[Fact]) -> int:
        return sum(bit[fact] for fact in some if fact in bit)

    names = {name: info.name or name for name, info in game.infos.items()}
    # TextWorld lists "prepare meal" as admissible for any part of a recipe, however it was cut and cooked; the compiled
    # game wants the whole recipe, and as the cookbook says.
    prepared = mask(_prepared(start))
    ingredients = sum(1 for fact in start if fact[0].startswith("ingredient_"))
    idle = {f"make/recipe/{some}" for some in range(1, ingredients)}

    def action(instance: _Instance) -> Action:
        needs, gives = mask(instance.pre), mask(instance.post)
        changes = instance.rule.name not in idle
        return Action(
            needs,
            needs & ~gives if changes else 0,
            gives & ~needs if changes else 0,
            *_said(instance, names, game.kb),
            len(instance.rule.needs),
            prepared if instance.rule.name.startswith("make/recipe/") else 0,
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
    pre: frozenset[Fact]
    post: frozenset[Fact]
    entities: dict[str, str]


class _Reachable:
    """Everything that can become true if nothing ever stopped being true, found fact by fact.

    Each new fact is joined with the facts before it in every rule that mentions its predicate (semi-naive evaluation),
    so each instance of a rule is met once.
    """

    def __init__(
        self,
        rules: Sequence[Pattern],
        types: dict[str, str],
        is_a: dict[str, frozenset[str]],
        constants: dict[str, str],
    ) -> None:
        self.facts: dict[Fact, None] = {}
        self.instances: dict[tuple[str, tuple[str, ...]], _Instance] = {}
        self._types = types
        self._is_a = is_a
        self._index: Index = {}
        self._uses = uses_of(rules, is_a, constants)

    def grow(self, facts: Iterable[Fact]) -> None:
        waiting = list(facts)
        for fact in waiting:  # It grows while it is read.
            if fact not in self.facts:
                self.facts[fact] = None
                add_to_index(self._index, fact)
                for use in self._uses.get(signature(fact, self._types), ()):
                    for assignment in use.matches(fact, self._index, self._types):
                        for instance in self._instantiate(use.rule, assignment):
                            waiting.extend(instance.post)

    def _instantiate(self, rule: Pattern, assignment: dict[str, str]) -> Iterator[_Instance]:
        free = [variable for variable in rule.types if variable not in assignment]
        fitting = [
            [entity for entity, kind in self._types.items() if kind in self._is_a[rule.types[variable]]]
            for variable in free
        ]
        for chosen in product(*fitting):
            entities = {**assignment, **dict(zip(free, chosen, strict=True))}
            key = (rule.name, tuple(entities[variable] for variable in rule.types))
            if len(set(key[1])) == len(key[1]) and key not in self.instances:
                instance = _Instance(
                    rule, frozenset(fill(rule.needs, entities)), frozenset(fill(rule.gives, entities)), entities
                )
                self.instances[key] = instance
                yield instance


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


def _said(instance: _Instance, names: dict[str, str], kb: Any) -> tuple[str, str]:
    """What a player types, and what Inform calls it."""
    shown = {variable: names.get(entity, entity) for variable, entity in instance.entities.items()}
    template: str = kb.rules[instance.rule.name].command_template or kb.inform7_commands[instance.rule.name]
    event: str = kb.inform7_events[instance.rule.name]
    return template.format(**shown), event.format(**shown).lower()
