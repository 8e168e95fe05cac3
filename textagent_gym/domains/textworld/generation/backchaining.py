"""TextWorld's search for the steps that lead back from a goal, with TextWorld's own random draws.

`textworld.generator.chaining._Chainer` lists every assignment of entities to the variables of every rule, sorts the
list, shuffles it, and tries one after the other; in a world of 20 rooms that is 750 assignments a step, of which ten or
so lead anywhere. Here those ten are found by looking up facts, and their places in the sorted list are counted, not
listed, so the same shuffle gives the same order.

A state is an integer with one bit per fact, as in `logic`; facts between rooms and doors alone never change, and have
none. The lowest bits are left for quests that are completed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from textagent_gym.domains.textworld.generation.backward_rules import BackwardRule, Choice, Rules
from textagent_gym.domains.textworld.generation.patterns import (
    Binding,
    Index,
    add_to_index,
    fill,
    remove_from_index,
    signature,
)
from textagent_gym.domains.textworld.logic import Fact

QUESTS = 32
"""Bits that no fact has: more than there can be quests, which is 5 parallel ones of 5 branches."""

_CLOSING = "close/d"

Key = tuple[str, tuple[str, ...]]
"""What tells actions apart: a rule's name, and what its variables stand for."""


class Assignment(NamedTuple):
    """A rule, and what its variables stand for."""

    rule: BackwardRule
    choice: Choice
    entities: Binding

    @property
    def key(self) -> Key:
        """What tells it apart from the others."""
        return self.rule.pattern.name, tuple(self.entities[name] for name in self.rule.pattern.types)


class Facts:
    """The bits of facts, given out as facts are met.

    Attributes:
        types: type of every entity.
        always: facts that never change, which have no bits.
        fixed: index of them.
        start: the other facts that hold in the beginning.
    """

    def __init__(self, rules: Rules, facts: Iterable[Any]) -> None:
        self.types = {entity: entity for entity in rules.constants.values()}
        self.fixed: Index = {}
        self._rules = rules
        self._bits: dict[Fact, int] = {}
        self._facts: dict[int, Fact] = {}
        self.always: list[Fact] = []
        self.start: list[Fact] = []
        for proposition in sorted(facts):
            self.types.update((variable.name, variable.type) for variable in proposition.arguments)
            fact = (proposition.name, *(variable.name for variable in proposition.arguments))
            if fact[0] in rules.fixed:
                self.always.append(fact)
                add_to_index(self.fixed, fact, self.types)
            else:
                self.start.append(fact)

    @property
    def rooms(self) -> list[str]:
        """All rooms."""
        return sorted(entity for entity, kind in self.types.items() if kind == "r")

    def bit(self, fact: Fact) -> int:
        """The bit of a fact; 0 if the fact never changes."""
        known = self._bits.get(fact)
        if known is None:
            known = 0 if fact[0] in self._rules.fixed else 1 << (QUESTS + len(self._facts))
            self._bits[fact] = known
            if known:
                self._facts[known] = fact
        return known

    def mask(self, facts: Iterable[Fact]) -> int:
        """The bits of some facts."""
        mask = 0
        for fact in facts:
            mask |= self.bit(fact)
        return mask

    def of(self, mask: int) -> list[Fact]:
        """The facts that a mask stands for."""
        facts = []
        while mask:
            low = mask & -mask
            facts.append(self._facts[low])
            mask ^= low
        return facts

    def propositions(self, mask: int) -> list[Any]:
        """The facts that a mask stands for, and those that never change, as TextWorld writes them."""
        from textworld.logic import Proposition

        facts = [*self.always, *self.of(mask)]
        return [Proposition(fact[0], [self._variable(entity) for entity in fact[1:]]) for fact in facts]

    def action(self, step: Step) -> Any:
        """A step, as TextWorld's action."""
        assert step.rule is not None
        rule = step.rule.rule
        return rule.instantiate({one: self._variable(step.entities[one.name]) for one in rule.placeholders}).inverse()

    def _variable(self, entity: str) -> Any:
        from textworld.logic import Variable

        return Variable(entity, self.types[entity])


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A step back, and the state that it leads back to. The names are those of `chaining._Node`.

    Attributes:
        parent: the step taken before, later in the game; `None` for the goal.
        dep_parent: the step that this one prepares.
        rule: rule that is applied backwards; `None` for the goal.
        entities: what its variables stand for.
        needs: facts that hold after the action, as far as they can change.
        gives: facts that hold before it.
        state: facts that hold before it and are known of.
        index: the same facts, and those that never change.
        entities_of: entities of each type that are known of, sorted.
        used: steps that were tried in this one's place.
        breadth: number of the branch.
        depth: number of steps to the goal of the branch.
        length: number of steps to the goal.
    """

    parent: Step | None
    dep_parent: Step | None
    rule: BackwardRule | None
    entities: Binding
    needs: int
    gives: int
    state: int
    index: Index
    entities_of: dict[str, tuple[str, ...]]
    used: frozenset[Key]
    breadth: int
    depth: int
    length: int

    @property
    def name(self) -> str:
        """Name of the rule as it is applied backwards."""
        assert self.rule is not None
        return self.rule.pattern.name

    @property
    def forward(self) -> str:
        """Name of the rule as it is played."""
        assert self.rule is not None
        return self.rule.forward

    @property
    def objects(self) -> int:
        """Number of things in the world, without doors."""
        return sum(len(some) for kind, some in self.entities_of.items() if kind not in ("r", "d", "I", "P"))

    @property
    def walks(self) -> bool:
        """Whether the player only walks."""
        assert self.rule is not None
        return self.rule.walks


class Chainer:
    """Steps back from a state.

    Args:
        rules: prepared rules.
        facts: bits of the facts.
        rng: a `numpy.random.RandomState`.
        max_length: number of steps.
        max_depth: number of steps of a branch.
        max_breadth: number of branches.
    """

    def __init__(
        self, rules: Rules, facts: Facts, rng: Any, *, max_length: int, max_depth: int, max_breadth: int
    ) -> None:
        self.max_depth = max_depth
        self._rules, self._facts, self._rng = rules, facts, rng
        self._max_length, self._max_breadth = max_length, max_breadth

    def root(self, state: int) -> Step:
        """The goal, which every step leads back from."""
        index = dict(self._facts.fixed)
        holding = self._facts.of(state)
        for fact in holding:
            add_to_index(index, fact, self._facts.types)
        entities: dict[str, set[str]] = defaultdict(set)
        for fact in (*self._facts.always, *holding):
            for entity in fact[1:]:
                entities[self._facts.types[entity]].add(entity)
        entities_of = {kind: tuple(sorted(some)) for kind, some in entities.items()}
        return Step(None, None, None, {}, 0, 0, state, index, entities_of, frozenset(), 1, 0, 0)

    def chain(self, node: Step) -> Iterator[Step]:
        """Steps that prepare a step."""
        if node.depth >= self.max_depth or node.length >= self._max_length:
            return
        used: frozenset[Key] = frozenset()
        for assigned in self._assignments(node, node):
            step = self._step(node, node, assigned, used, node.breadth)
            if step is not None:
                used = step.used
                yield step

    def backtrack(self, node: Step) -> Iterator[Step]:
        """Steps of a new branch, which prepare what an earlier step of this branch prepares."""
        if node.breadth >= self._max_breadth or node.length >= self._max_length:
            return
        parents = []
        parent = node
        while parent.dep_parent is not None and parent.depth != 1:
            parents.append(parent)
            parent = parent.dep_parent
        for sibling in reversed(parents):
            branch = sibling.dep_parent
            assert branch is not None
            for assigned in self._assignments(node, branch):
                if assigned.key not in sibling.used:
                    step = self._step(node, branch, assigned, sibling.used, node.breadth + 1)
                    if step is not None:
                        yield step

    def _assignments(self, node: Step, prepared: Step) -> Iterator[Assignment]:
        """What could be the step before a node, in an order drawn at random."""
        rules = self._rules
        awaited = {closes: self._awaited(prepared, closes) for closes in (False, True)}
        (here,) = node.index["at", 0, "P"]
        bound = {**rules.constants}
        sizes: dict[str, int] = {}
        places: dict[str, dict[str, int]] = {}
        for kind in rules.free_types:
            others = sorted(
                one for sub in rules.subtypes[kind] for one in node.entities_of.get(sub, ()) if one != here[2]
            )
            sizes[kind] = len(others)
            places[kind] = {entity: place for place, entity in enumerate(others)}
        ranked: list[tuple[int, BackwardRule, Choice, Binding]] = []
        total = 0
        for rule in rules.goals if prepared.depth == 0 else rules.steps:
            if rule.room is not None:
                bound = {**rules.constants, rule.room: here[2]}
            names = awaited[rule.pattern.name == _CLOSING]
            fits = names is None or rule.walks or any(one[0] in names for one in rule.pattern.removes)
            for choice in rule.choices:
                for match in self._matches(node, rule, choice, bound) if fits else ():
                    rank = 0
                    for name, kind in choice.old:
                        rank = rank * sizes[kind] + places[kind][match[name]]
                    ranked.append((total + rank, rule, choice, match))
                total += prod([sizes[kind] for _, kind in choice.old])
        order = np.arange(total)
        self._rng.shuffle(order)
        turn = np.empty_like(order)
        turn[order] = np.arange(total)
        ranked.sort(key=lambda one: turn[one[0]])
        for _, rule, choice, match in ranked:
            yield Assignment(rule, choice, self._with_new_entities(node, rule, choice, match))

    def _awaited(self, prepared: Step, closes: bool) -> set[str] | None:
        """Names of the facts of which an action must bring about one to prepare a step; `None` where any action may."""
        step = _prepared_first(prepared, closes)
        return None if step.rule is None else {fact[0] for fact in self._facts.of(step.gives)}

    def _matches(self, node: Step, rule: BackwardRule, choice: Choice, bound: Binding) -> Iterator[Binding]:
        """Assignments after which every fact that a rule needs holds, as far as it is about known entities only."""
        for match in choice.join.matches(bound, node.index, self._facts.types):
            if not choice.loose:
                yield match
                continue
            fitting = [
                [one for sub in rule.kinds[name] for one in node.entities_of.get(sub, ())] for name in choice.loose
            ]
            for chosen in product(*fitting):
                extended = {**match, **dict(zip(choice.loose, chosen, strict=True))}
                if len(set(extended.values())) == len(extended):
                    yield extended

    def _with_new_entities(self, node: Step, rule: BackwardRule, choice: Choice, match: Binding) -> Binding:
        if not choice.new:
            return match
        entities = dict(match)
        counts: dict[str, int] = {}
        for name, kind in rule.pattern.types.items():
            if name in choice.new:
                count = counts.get(kind, len(node.entities_of.get(kind, ())))
                counts[kind] = count + 1
                entities[name] = f"{kind}_{count}"
                self._facts.types[entities[name]] = kind
        return entities

    def _step(
        self, node: Step, prepared: Step, assigned: Assignment, used: frozenset[Key], breadth: int
    ) -> Step | None:
        """The step, or `None` if it does not prepare another one, breaks a constraint, or goes round in a circle."""
        facts, (rule, choice, entities) = self._facts, assigned
        if not _prepares(rule, facts.mask(fill(rule.pattern.removes, entities)), prepared):
            return None
        needs = facts.mask(fill(rule.pattern.needs, entities))
        gives = facts.mask(fill(rule.pattern.gives, entities))
        after = node.state | needs
        index = dict(node.index)
        missing = facts.of(after & ~node.state)
        for fact in missing:
            add_to_index(index, fact, facts.types)
        if not self._is_allowed(missing, index):
            return None
        state = (after & ~(needs & ~gives)) | gives
        for fact in facts.of(after & ~state):
            remove_from_index(index, fact, facts.types)
        for fact in facts.of(state & ~after):
            add_to_index(index, fact, facts.types)
        if not self._is_allowed(facts.of(state & ~node.state), index) or _is_circle(state, needs, gives, node):
            return None
        entities_of = dict(node.entities_of)
        for name in choice.new:
            kind = rule.pattern.types[name]
            entities_of[kind] = (*entities_of.get(kind, ()), entities[name])
        return Step(
            parent=node,
            dep_parent=prepared,
            rule=rule,
            entities=entities,
            needs=needs,
            gives=gives,
            state=state,
            index=index,
            entities_of=entities_of,
            used=used | {assigned.key},
            breadth=breadth,
            depth=prepared.depth + 1,
            length=node.length + 1,
        )

    def _is_allowed(self, new: Iterable[Fact], index: Index) -> bool:
        """Whether no new fact breaks a constraint."""
        types, constraints = self._facts.types, self._rules.constraints
        return not any(
            use.matches(fact, index, types) for fact in new for use in constraints.get(signature(fact, types), ())
        )


def _prepares(rule: BackwardRule, removed: int, prepared: Step) -> bool:
    """Whether the facts that an action brings about are wanted by the action that it shall prepare.

    Args:
        rule: rule that is applied backwards.
        removed: facts that it takes away backwards, so those that the action brings about.
        prepared: the next step, or a walk that leads to it.
    """
    first = _prepared_first(prepared, rule.pattern.name == _CLOSING)
    return first.rule is None or rule.walks or bool(removed & first.gives)


def _prepared_first(prepared: Step, closes: bool) -> Step:
    """The step that an action must prepare: the next one that is more than a walk.

    Args:
        prepared: the next step, or a walk that leads to it.
        closes: whether the action is to open a door, so backwards to close it.
    """
    step = prepared
    while step.rule is not None and step.walks:
        parent = step.parent
        assert parent is not None
        # TextWorld: going through a door is walking unless the action before was to open that door.
        if closes or (parent.rule is not None and parent.name == "open/d"):
            break
        step = parent
    return step


def _is_circle(state: int, needs: int, gives: int, node: Step) -> bool:
    """Whether a state before a step is one that follows later."""
    after = (state & ~(gives & ~needs)) | needs
    step: Step | None = node
    while step is not None and step.rule is not None:
        if after & step.gives == step.gives:
            after = (after & ~(step.gives & ~step.needs)) | step.needs
        if after == state:
            return True
        step = step.parent
    return False
