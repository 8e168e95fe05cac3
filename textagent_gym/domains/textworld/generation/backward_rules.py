"""TextWorld's rules, prepared for the search backwards from a goal: see `backchaining`."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any

from textagent_gym.domains.textworld.generation.patterns import Join, Pattern, Uses, join, pattern, signature, uses_of

RESTRICTED = frozenset(("r", "d"))
"""Types of which a quest brings no new entities into the world."""

GOALS = (".*", ("go.*", "examine.*", "look.*", "inventory.*"))
"""Rules that a quest may end with, and those that it may not."""

STEPS = (".*", ("examine.*", "look.*", "inventory.*"))
"""Rules that a quest may use before, and those that it may not."""

_WALKING = "go/"


@dataclass(frozen=True, slots=True)
class Choice:
    """The assignments of a rule in which certain variables stand for new entities.

    Attributes:
        new: variables that stand for new entities.
        old: the other free variables and their types, in the order in which TextWorld compares assignments.
        loose: those of them that no known fact mentions.
        join: finds the entities that the others stand for.
    """

    new: tuple[str, ...]
    old: tuple[tuple[str, str], ...]
    loose: tuple[str, ...]
    join: Join


@dataclass(frozen=True, slots=True)
class BackwardRule:
    """A rule that is applied backwards.

    Attributes:
        pattern: what holds after the step, and what holds before it.
        rule: the inverse rule of TextWorld.
        forward: name of the rule that leads forward.
        room: variable that stands for the player's room.
        choices: assignments of the other variables, in TextWorld's order.
        kinds: types that an entity may have, for each variable.
        walks: whether the player only walks.
    """

    pattern: Pattern
    rule: Any
    forward: str
    room: str | None
    choices: tuple[Choice, ...]
    kinds: dict[str, frozenset[str]]
    walks: bool


class Rules:
    """The rules of a knowledge base, prepared for searching.

    Args:
        kb: TextWorld's knowledge base.
    """

    def __init__(self, kb: Any) -> None:
        self.kb = kb
        self.subtypes = {kind.name: frozenset(sub.name for sub in kind.subtypes) for kind in kb.logic.types}
        self.constants = {one.name: other.name for one, other in kb.types.constants_mapping.items()}
        self.goals = self._backward(GOALS)
        self.steps = self._backward(STEPS)
        self.free_types = {
            kind for rule in (*self.goals, *self.steps) for choice in rule.choices for _, kind in choice.old
        }
        self.forward = tuple(pattern(rule) for rule in kb.rules.get_matching(STEPS[0], exclude=list(STEPS[1])))
        changing = {one[0] for rule in self.forward for one in set(rule.needs) ^ set(rule.gives)}
        types_of: dict[str, set[str]] = defaultdict(set)
        for rule in self.forward:
            for predicate in rule.needs:
                types_of[predicate[0]] |= {rule.types[variable] for variable in predicate[1:]}
        self.fixed = frozenset(name for name, types in types_of.items() if name not in changing and types <= RESTRICTED)

    def _backward(self, which: tuple[str, tuple[str, ...]]) -> tuple[BackwardRule, ...]:
        rules = self.kb.rules.get_matching(which[0], exclude=list(which[1]))
        return tuple(sorted(map(self._prepare, rules), key=lambda rule: rule.pattern.name))

    def _prepare(self, forward: Any) -> BackwardRule:
        rule = forward.inverse()
        turned = pattern(rule)
        kinds = self.kinds(turned)
        here = ("at", "P", "r")
        place = next((one for one in turned.needs if signature(one, turned.types) == here), None)
        room = None if place is None else place[2]
        free = sorted(
            (name, kind) for name, kind in turned.types.items() if name not in self.constants and name != room
        )
        makeable = [name for name, kind in free if kind not in RESTRICTED]
        choices = []
        for new in sorted(some for size in range(len(makeable) + 1) for some in combinations(makeable, size)):
            # That the player is in the player's room need not be looked up.
            known = [one for one in turned.needs if one != place and not {*one[1:]} & {*new}]
            mentioned = {name for predicate in known for name in predicate[1:]}
            old = tuple((name, kind) for name, kind in free if name not in new)
            bound = [*self.constants, *([room] if room else [])]
            loose = tuple(name for name, _ in old if name not in mentioned)
            choices.append(Choice(new, old, loose, join(known, bound, kinds, self.constants)))
        return BackwardRule(turned, rule, forward.name, room, tuple(choices), kinds, turned.name.startswith(_WALKING))

    def kinds(self, rule: Pattern) -> dict[str, frozenset[str]]:
        """Types that an entity may have to be meant by each variable of a rule."""
        return {name: self.subtypes[kind] for name, kind in rule.types.items()}

    @cached_property
    def constraints(self) -> Uses:
        """Constraints that a new fact may break, by the signature of the fact."""
        return uses_of(map(pattern, self.kb.logic.constraints.values()), self.subtypes, {})


@lru_cache(maxsize=8)
def rules_of(kb: Any) -> Rules:
    """The rules of a knowledge base; prepared once."""
    return Rules(kb)
