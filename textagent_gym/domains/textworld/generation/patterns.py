"""Where the predicates of a rule hold together: facts joined predicate by predicate, in an order chosen beforehand.

A fact is a tuple of names, and so is a predicate, whose arguments are variables. Different variables always stand for
different entities, as in TextWorld's rules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

from textagent_gym.domains.textworld.logic import Fact

Binding = dict[str, str]
"""Entities by the variables that stand for them."""

Index = dict[tuple[str | int, ...], tuple[Fact, ...]]
"""Facts by what is looked up. The sort of a fact is the type of its first argument, so that what lies in a room need
not be gone through for the one container among it.

    (predicate, argument, ...)             the fact itself
    (predicate, 0, argument)               facts with that first argument
    (predicate, sort, place, argument)     facts of a sort with another argument
    (predicate, -1, sort)                  facts of a sort
"""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A rule, or a constraint: what must hold and what holds then.

    Attributes:
        name: name of the rule.
        needs: predicates that must hold.
        gives: predicates that hold in their place.
        removes: predicates that stop holding.
        adds: predicates that begin to hold.
        types: type of each variable.
    """

    name: str
    needs: tuple[Fact, ...]
    gives: tuple[Fact, ...]
    removes: tuple[Fact, ...]
    adds: tuple[Fact, ...]
    types: Mapping[str, str]


@lru_cache(maxsize=1_024)  # Of all knowledge bases in use; each rule of a kind of game is one object.
def pattern(rule: Any) -> Pattern:
    """A rule of TextWorld as a pattern."""
    types = {placeholder.name: placeholder.type for placeholder in rule.placeholders}
    needs, gives = (
        tuple((predicate.name, *(placeholder.name for placeholder in predicate.parameters)) for predicate in some)
        for some in (rule.preconditions, rule.postconditions)
    )
    removes = tuple(predicate for predicate in needs if predicate not in gives)
    adds = tuple(predicate for predicate in gives if predicate not in needs)
    return Pattern(rule.name, needs, gives, removes, adds, types)


@dataclass(frozen=True, slots=True)
class Step:
    """One predicate of a join, with what is known once its turn comes.

    Attributes:
        predicate: predicate.
        place: place of the argument to look for; `None` if none is known.
        known: the other arguments that are known, by their places.
        fresh: arguments that are not, by their places, and the types that they may have.
        sorts: types that the first argument may have.
    """

    predicate: Fact
    place: int | None
    known: tuple[tuple[int, str], ...]
    fresh: tuple[tuple[int, str, frozenset[str]], ...]
    sorts: tuple[str, ...]

    def extend(self, rows: list[Binding], index: Index, types: Mapping[str, str]) -> list[Binding]:
        """What is bound so far, with every way to bind the predicate's variables as well."""
        name, *variables = self.predicate
        if not self.fresh:
            if len(variables) == 2:
                first, second = variables
                return [row for row in rows if (name, row[first], row[second]) in index]
            return [row for row in rows if (name, *[row[variable] for variable in variables]) in index]
        if len(self.fresh) == 1 and not self.known:  # As nearly always.
            place, variable, kinds = self.fresh[0]
            return [
                {**row, variable: entity}
                for row in rows
                for fact in self._facts(row, index)
                if types[entity := fact[place]] in kinds and entity not in row.values()
            ]
        extended = []
        for row in rows:
            for fact in self._facts(row, index):
                longer = dict(row)
                for place, variable, kinds in self.fresh:
                    entity = fact[place]
                    if types[entity] not in kinds or entity in longer.values():
                        break
                    longer[variable] = entity
                else:
                    if all(fact[place] == row[variable] for place, variable in self.known):
                        extended.append(longer)
        return extended

    def _facts(self, row: Binding, index: Index) -> Sequence[Fact]:
        name = self.predicate[0]
        if self.place is None:
            return [fact for sort in self.sorts for fact in index.get((name, -1, sort), ())]
        entity = row[self.predicate[self.place + 1]]
        if self.place == 0:
            return index.get((name, 0, entity), ())
        return [fact for sort in self.sorts for fact in index.get((name, sort, self.place, entity), ())]


@dataclass(frozen=True, slots=True)
class Join:
    """Predicates in the order in which they are looked up."""

    steps: tuple[Step, ...]

    def matches(self, bound: Binding, index: Index, types: Mapping[str, str]) -> list[Binding]:
        """Every way to bind the predicates' variables so that all of them are facts of an index.

        Args:
            bound: what is bound already, with every variable that `join` was told of.
            index: facts that hold.
            types: type of every entity.
        """
        rows = [bound]
        for step in self.steps:
            if not rows:
                break
            rows = step.extend(rows, index, types)
        return rows


def join(
    predicates: Iterable[Fact], bound: Collection[str], kinds: Mapping[str, frozenset[str]], constants: Collection[str]
) -> Join:
    """Predicates in a good order: first the one with the fewest unknown arguments, then the one after it.

    Args:
        predicates: what must hold together.
        bound: variables that are bound beforehand.
        kinds: types that an entity may have, for each variable.
        constants: those that are bound in every game, and of which a fact says little: the player can be anywhere.
    """
    known, waiting, steps = set(bound), list(predicates), []
    while waiting:
        telling = known - set(constants)
        predicate = min(waiting, key=lambda one: (len(set(one[1:]) - known), -len(set(one[1:]) & telling)))
        waiting.remove(predicate)
        # The first known argument is nearly always the rarer one: the thing, not the place where it is.
        places = [place for place, name in enumerate(predicate[1:]) if name in known]
        steps.append(
            Step(
                predicate,
                places[0] if places else None,
                tuple((place + 1, predicate[place + 1]) for place in places[1:]),
                tuple(
                    (place, name, kinds[name]) for place, name in enumerate(predicate) if place and name not in known
                ),
                tuple(sorted(kinds[predicate[1]])) if len(predicate) > 1 else (),
            )
        )
        known |= set(predicate[1:])
    return Join(tuple(steps))


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

    def matches(self, fact: Fact, index: Index, types: Mapping[str, str]) -> list[Binding]:
        """Every way in which a fact of a fitting signature, with others of an index, allows the rule."""
        bound = dict(self.constants)
        for variable, entity in zip(self.predicate[1:], fact[1:], strict=True):
            known = bound.get(variable)
            if known is None and entity not in bound.values():
                bound[variable] = entity
            elif known != entity:
                return []
        return self.rest.matches(bound, index, types)


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
            use = Use(rule, predicate, bound, join(others, {*bound, *predicate[1:]}, kinds, constants))
            for types in product(*(kinds[name] for name in predicate[1:])):
                uses.setdefault((predicate[0], *types), []).append(use)
    return uses


def fill(predicates: Iterable[Fact], bound: Binding) -> list[Fact]:
    """The facts that predicates stand for."""
    return [(predicate[0], *[bound[variable] for variable in predicate[1:]]) for predicate in predicates]


def add_to_index(index: Index, fact: Fact, types: Mapping[str, str]) -> None:
    """Add a fact. The index may share its tuples with others."""
    index[fact] = (fact,)
    for key in _lists(fact, types):
        index[key] = (*index.get(key, ()), fact)


def remove_from_index(index: Index, fact: Fact, types: Mapping[str, str]) -> None:
    """Remove a fact. The index may share its tuples with others."""
    del index[fact]
    for key in _lists(fact, types):
        index[key] = tuple(other for other in index[key] if other != fact)


def _lists(fact: Fact, types: Mapping[str, str]) -> list[tuple[str | int, ...]]:
    """Keys of the lists that a fact is in."""
    name, *arguments = fact
    if not arguments:
        return []
    sort = types[arguments[0]]
    others = [(name, sort, place, entity) for place, entity in enumerate(arguments) if place]
    return [(name, -1, sort), (name, 0, arguments[0]), *others]
