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

from textagent_gym.domains.textworld.generation.grounding import ground
from textagent_gym.domains.textworld.planner import Planner
from textagent_gym.errors import PlanningBudgetError

# Searches for a shortest solution per action of the quest, before another world is tried: most need 1 to 3.
_PLANS = 4
_STATES = 20_000  # States looked at in each search.
_WALK = 3  # Actions before the first thing is taken for which room is left.

# Neither a goal nor a step of a plan in TextWorld's own quests; walking is a step but no goal.
_NO_GOALS = ["go.*", "examine.*", "look.*", "inventory.*"]


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
    search = _Search(kb, rng, shape)
    for remaining in range(shape.parallel, 0, -1):
        if not search.add_chain(world.state, (shape.length - search.length) // remaining):
            return None
        world.state = search.state
    return _quests(search.chains)


class _Search:
    """Chains drawn so far, the last of them first in time, and the state in which it begins."""

    def __init__(self, kb: Any, rng: Any, shape: QuestShape) -> None:
        self.chains: list[Any] = []
        self.state: Any = None
        self._kb, self._rng, self._shape = kb, rng, shape
        self._plans = shape.length * _PLANS

    @property
    def length(self) -> int:
        """Actions of all chains."""
        return sum(len(chain.actions) for chain in self.chains)

    def add_chain(self, state: Any, length: int) -> bool:
        """Draw one more chain, which ends where the one before it begins."""
        from textworld.generator import chaining

        options = chaining.ChainingOptions()
        options.kb, options.rng = self._kb, self._rng
        options.backward = options.create_variables = True
        options.restricted_types = {"r", "d"}
        options.rules_per_depth = [self._kb.rules.get_matching(".*", exclude=_NO_GOALS)]
        options.max_length, options.max_breadth = length, self._shape.breadth
        options.max_depth = self._shape.depth or length
        chainer = chaining._Chainer(state, options)
        levels = [self._steps(chainer, chainer.root(), length)]  # Depth first, one open level a step.
        while levels:
            node = next(levels[-1], None)
            if node is None:
                levels.pop()
            elif node.length < length:
                levels.append(self._steps(chainer, node, length))
            elif node.breadth == self._shape.breadth:
                self.chains.append(chainer.make_chain(node))
                self.state = node.state
                return True
        return False

    def _steps(self, chainer: Any, node: Any, length: int) -> Iterator[Any]:
        """The steps back from a node that make the shortest solution longer."""
        due = 1 + node.length * self._shape.breadth // length  # Sub-quests of equal lengths.
        steps = chainer.chain(node)
        if node.length and (node.breadth < due or node.depth >= chainer.max_depth):
            steps = joined(chainer.backtrack(node), steps)
        for child in _promising(steps, length):
            if self._shape.objects is not None and _objects(child.state) > self._shape.objects:
                continue
            if self._plans <= 0:
                return
            self._plans -= 1
            if self._measured(chainer, child) == self.length + child.length:
                yield child

    def _measured(self, chainer: Any, node: Any) -> int | None:
        """Length of the shortest solution of a game that begins at a node; `None` where it is not known."""
        quests = _quests([*self.chains, chainer.make_chain(node)])
        world = SimpleNamespace(facts=list(node.state.facts))
        game = SimpleNamespace(world=world, infos={}, kb=self._kb, quests=quests)
        try:
            solution = Planner(ground(game), budget=_STATES).solve_initial()
        except PlanningBudgetError:
            return None
        return len(solution.actions) if solution is not None and solution.exact else None


def _promising(steps: Iterable[Any], length: int) -> Iterator[Any]:
    """The steps, with those last that most often end nowhere: before a thing is taken from where it lies in the open,
    there is nothing to do but to walk to it."""
    waiting = []
    for child in steps:
        if length - child.length > _WALK and child.action.inverse().name in ("take", "take/s"):
            waiting.append(child)
        else:
            yield child
    yield from waiting


def _objects(state: Any) -> int:
    return sum(1 for variable in state.variables if variable.type not in ("r", "d", "I", "P"))


def _quests(chains: list[Any]) -> list[Any]:
    """The quests that chains stand for, read off as TextWorld does: one ends where a branch does."""
    from textworld.generator import Event, Quest

    quests: list[Any] = []
    actions: list[Any] = []
    for chain in reversed(chains):
        for number, node in enumerate(chain.nodes, start=1):
            actions.append(node.action)
            if number == len(chain.nodes) or chain.nodes[number].breadth != node.breadth:
                quests.append(Quest(win_events=[Event(actions)]))
    return quests
