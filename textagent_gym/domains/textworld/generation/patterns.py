"""Where the predicates of a rule hold together: facts joined predicate by predicate, in an order chosen beforehand.

A fact is a tuple of names, and so is a predicate, whose arguments are variables. Different variables always stand for
different entities, as in TextWorld's rules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

from textagent_gym.domains.textworld.logic import Fact

Binding = dict[str, str]
"""Entities by the variables that stand for them."""

Index = dict[tuple[str, int, str] | str, tuple[Fact, ...]]
"""Facts by their predicate, and by their predicate, the place of an argument, and the argument."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A rule, or a constraint: what must hold and what holds then.

    Attributes:
        name: name of the rule.
        needs: predicates that must hold.
        gives: predicates that hold in their place.
        types: type of each variable.
    """

    name: str
    needs: tuple[Fact, ...]
    gives: tuple[Fact, ...]
    types: Mapping[str, str]


@lru_cache(maxsize=1_024)  # Of all knowledge bases in use; each rule of a kind of game is one object.
def pattern(rule: Any) -> Pattern:
    """A rule of TextWorld as a pattern."""
    types = {placeholder.name: placeholder.type for placeholder in rule.placeholders}
    needs, gives = (
        tuple((predicate.name, *(placeholder.name for placeholder in predicate.parameters)) for predicate in some)
        for some in (rule.preconditions, rule.postconditions)
    )
    return Pattern(rule.name, needs, gives, types)


@dataclass(frozen=True, slots=True)
class Join:
    """Predicates in the order in which they are looked up, each with the argument to look for."""

    steps: tuple[tuple[Fact, tuple[str, int, str] | None], ...]
    kinds: Mapping[str, frozenset[str]]

    def matches(self, bound: Binding, index: Index, types: Mapping[str, str]) -> Iterator[Binding]:
        """Every way to bind the predicates' variables so that all of them are facts of an index.

        Args:
            bound: what is bound already, with every variable that `join` was told of.
            index: facts that hold.
            types: type of every entity.
        """
        return self._from(0, bound, index, types)

    def _from(self, step: int, bound: Binding, index: Index, types: Mapping[str, str]) -> Iterator[Binding]:
        if step == len(self.steps):
            yield bound
            return
        predicate, place = self.steps[step]
        facts = index.get(predicate[0] if place is None else (place[0], place[1], bound[place[2]]), ())
        for fact in facts:
            extended = bind(predicate, fact, bound, self.kinds, types)
            if extended is not None:
                yield from self._from(step + 1, extended, index, types)


def join(predicates: Iterable[Fact], bound: Collection[str], kinds: Mapping[str, frozenset[str]]) -> Join:
    """Predicates in a good order: first the one with the fewest unknown arguments, then the one after it.

    Args:
        predicates: what must hold together.
        bound: variables that are bound beforehand.
        kinds: types that an entity may have, for each variable.
    """
    known, waiting, steps = set(bound), list(predicates), []
    while waiting:
        predicate = min(waiting, key=lambda one: (len(set(one[1:]) - known), -len(set(one[1:]) & known)))
        waiting.remove(predicate)
        # The first known argument is nearly always the rarer one: the thing, not the place where it is.
        places = [(predicate[0], place, name) for place, name in enumerate(predicate[1:]) if name in known]
        steps.append((predicate, places[0] if places else None))
        known |= set(predicate[1:])
    return Join(tuple(steps), kinds)


@dataclass(frozen=True, slots=True)
class Use:
    """A predicate of a rule that a new fact may fill.

    Attributes:
        rule: rule that needs it.
        predicate: predicate.
        constants: what is bound in every game.
        rest: the rule's other predicates.
    """

    rule: Pattern
    predicate: Fact
    constants: Binding
    rest: Join

    def matches(self, fact: Fact, index: Index, types: Mapping[str, str]) -> Iterator[Binding]:
        """Every way in which a fact, with others of an index, allows the rule."""
        bound = bind(self.predicate, fact, self.constants, self.rest.kinds, types)
        if bound is not None:
            yield from self.rest.matches(bound, index, types)


Uses = dict[tuple[str, ...], list[Use]]
"""What new facts may be wanted for, by their signatures."""


def signature(fact: Fact, types: Mapping[str, str]) -> tuple[str, ...]:
    """A fact's predicate and the types of its arguments."""
    return (fact[0], *[types[entity] for entity in fact[1:]])


def uses_of(rules: Iterable[Pattern], subtypes: Mapping[str, frozenset[str]], constants: Binding) -> Uses:
    """What new facts may be wanted for.

    Args:
        rules: rules or constraints.
        subtypes: each type and those below it.
        constants: entities that a variable of their name always stands for.
    """
    uses: Uses = {}
    for rule in rules:
        kinds = {name: subtypes[kind] for name, kind in rule.types.items()}
        bound = {name: constants[name] for name in rule.types if name in constants}
        for position, predicate in enumerate(rule.needs):
            others = rule.needs[:position] + rule.needs[position + 1 :]
            use = Use(rule, predicate, bound, join(others, {*bound, *predicate[1:]}, kinds))
            for types in product(*(kinds[name] for name in predicate[1:])):
                uses.setdefault((predicate[0], *types), []).append(use)
    return uses


def bind(
    predicate: Fact, fact: Fact, bound: Binding, kinds: Mapping[str, frozenset[str]], types: Mapping[str, str]
) -> Binding | None:
    """`bound` with the predicate's variables set to the fact's arguments, or `None` if they do not fit."""
    if len(fact) != len(predicate):
        return None
    extended = bound
    for position in range(1, len(predicate)):
        variable, entity = predicate[position], fact[position]
        known = extended.get(variable)
        if known == entity:
            continue
        if known is not None or entity in extended.values() or types[entity] not in kinds[variable]:
            return None
        if extended is bound:
            extended = dict(bound)
        extended[variable] = entity
    return extended


def fill(predicates: Iterable[Fact], bound: Binding) -> list[Fact]:
    """The facts that predicates stand for."""
    return [(predicate[0], *[bound[variable] for variable in predicate[1:]]) for predicate in predicates]


def add_to_index(index: Index, fact: Fact) -> None:
    """Add a fact. The index may share its tuples with others."""
    index[fact[0]] = (*index.get(fact[0], ()), fact)
    for place, entity in enumerate(fact[1:]):
        key = (fact[0], place, entity)
        index[key] = (*index.get(key, ()), fact)


def remove_from_index(index: Index, fact: Fact) -> None:
    """Remove a fact. The index may share its tuples with others."""
    index[fact[0]] = tuple(other for other in index[fact[0]] if other != fact)
    for place, entity in enumerate(fact[1:]):
        key = (fact[0], place, entity)
        index[key] = tuple(other for other in index[key] if other != fact)
