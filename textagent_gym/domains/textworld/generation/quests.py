"""Quests that are as long as they look, grown backwards from their goal.

TextWorld draws a chain of actions backwards at random. In a large world most of these are walking about, and the way
from the beginning of the chain to its end is short. Here a step back is only taken if it makes the shortest solution
longer. It never makes that longer by more than one action (the one that leads back to where the step came from), so a
chain of `n` such steps has a shortest solution of exactly `n` actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain as joined
from types import SimpleNamespace
from typing import Any

from textagent_gym.domains.textworld.generation.backchaining import Chainer, Facts, Step
from textagent_gym.domains.textworld.generation.backward_rules import rules_of
from textagent_gym.domains.textworld.generation.grounding import ground
from textagent_gym.domains.textworld.generation.lengths import Lengths
from textagent_gym.domains.textworld.planner import Planner
from textagent_gym.errors import PlanningBudgetError

# Searches for a shortest solution per action of the quest, before another world is tried: most need 1 to 3.
_PLANS = 4
_STATES = 20_000  # States looked at in each search.
_WALK = 3  # Actions before the first thing is taken for which room is left.


@dataclass(frozen=True, kw_only=True, slots=True)
class QuestShape:
    """What quests shall look like.

    Attributes:
        length: actions of the shortest solution of all quests together.
        breadth: sub-quests of each quest.
        depth: actions of a sub-quest at most; 0 for any number.
        parallel: quests that are drawn one after the other.
        objects: objects that they may bring into the world; `None` for any number.
    """

    length: int
    breadth: int = 1
    depth: int = 0
    parallel: int = 1
    objects: int | None = None


def grow_quests(world: Any, kb: Any, rng: Any, shape: QuestShape) -> list[Any] | None:
    """Quests of a shape, or `None` if none were found.

    Args:
        world: a `textworld` world without objects; those that the quests need are put into it.
        kb: TextWorld's knowledge base.
        rng: a `numpy.random.RandomState`.
        shape: shape of the quests.
    """
    search = _Search(world, kb, rng, shape)
    for remaining in range(shape.parallel, 0, -1):
        if not search.add_chain((shape.length - search.length) // remaining):
            return None
    world.state = SimpleNamespace(facts=search.facts.propositions(search.state))
    return _quests(search.ends, search.facts)


class _Search:
    """Chains drawn so far, each by its last step back, and the state in which the last of them begins."""

    def __init__(self, world: Any, kb: Any, rng: Any, shape: QuestShape) -> None:
        self.ends: list[Step] = []
        self._kb, self._rng, self._shape = kb, rng, shape
        self._rules = rules_of(kb)
        self.facts = Facts(self._rules, world.state.facts)
        self.state = self.facts.mask(self.facts.start)
        self._lengths = Lengths(self._rules, self.facts)
        self._plans = shape.length * _PLANS

    @property
    def length(self) -> int:
        """Actions of all chains."""
        return sum(end.length for end in self.ends)

    def add_chain(self, length: int) -> bool:
        """Draw one more chain, which ends where the one before it begins."""
        chainer = Chainer(
            self._rules,
            self.facts,
            self._rng,
            max_length=length,
            max_depth=self._shape.depth or length,
            max_breadth=self._shape.breadth,
        )
        levels = [self._steps(chainer, chainer.root(self.state), length)]  # Depth first, one open level a step.
        while levels:
            node = next(levels[-1], None)
            if node is None:
                levels.pop()
            elif node.length < length:
                levels.append(self._steps(chainer, node, length))
            elif node.breadth == self._shape.breadth:
                self.ends.append(node)
                self.state = node.state
                return True
        return False

    def _steps(self, chainer: Chainer, node: Step, length: int) -> Iterator[Step]:
        """The steps back from a node that make the shortest solution longer."""
        due = 1 + node.length * self._shape.breadth // length  # Sub-quests of equal lengths.
        steps = chainer.chain(node)
        if node.length and (node.breadth < due or node.depth >= chainer.max_depth):
            steps = joined(chainer.backtrack(node), steps)
        for child in _promising(steps, length):
            if self._shape.objects is not None and child.objects > self._shape.objects:
                continue
            if self._plans <= 0:
                return
            self._plans -= 1
            if self._is_longer(child):
                yield child

    def _is_longer(self, step: Step) -> bool:
        """Whether the actions so far are a shortest solution of a game that begins before a step."""
        goals = tuple(goal for end in (*self.ends, step) for goal in _goals(end))
        length = self.length + step.length
        shortened = self._lengths.can_be_shortened(step, goals, length)
        return self._planned(step) == length if shortened is None else not shortened

    def _planned(self, step: Step) -> int | None:
        """Length of the shortest solution of such a game, by the planner; `None` where it is not known."""
        facts = self.facts.propositions(step.state)
        quests = _quests([*self.ends, step], self.facts)
        game = SimpleNamespace(world=SimpleNamespace(facts=facts), infos={}, kb=self._kb, quests=quests)
        try:
            solution = Planner(ground(game), budget=_STATES).solve_initial()
        except PlanningBudgetError:
            return None
        return len(solution.actions) if solution is not None and solution.exact else None


def _promising(steps: Iterable[Step], length: int) -> Iterator[Step]:
    """The steps, with those last that most often end nowhere: before a thing is taken from where it lies in the open,
    there is nothing to do but to walk to it."""
    waiting = []
    for child in steps:
        if length - child.length > _WALK and child.forward in ("take", "take/s"):
            waiting.append(child)
        else:
            yield child
    yield from waiting


def _chain(end: Step) -> list[Step]:
    """The steps of a chain, in the order in which they are played."""
    steps = []
    step: Step | None = end
    while step is not None and step.rule is not None:
        steps.append(step)
        step = step.parent
    return steps


def _ends_a_quest(step: Step) -> bool:
    """Whether a quest of a chain is completed by a step: one ends where a branch does."""
    return step.parent is None or step.parent.rule is None or step.parent.breadth != step.breadth


def _goals(end: Step) -> list[int]:
    """Facts that complete each quest of a chain."""
    return [step.needs for step in _chain(end) if _ends_a_quest(step)]


def _quests(ends: Iterable[Step], facts: Facts) -> list[Any]:
    """The quests that chains stand for, in the order in which they are played, read off as TextWorld does."""
    from textworld.generator import Event, Quest

    quests: list[Any] = []
    actions: list[Any] = []
    for step in joined.from_iterable(map(_chain, reversed([*ends]))):
        actions.append(facts.action(step))
        if _ends_a_quest(step):
            quests.append(Quest(win_events=[Event(actions)]))
    return quests
