"""Shortest plans of TextCraft, exactly.

`get` takes any number of units in one action, and `craft` applies a recipe once. A plan is therefore as long as the
number of different items that it gets, plus the number of times that it crafts; how both are ordered does not matter,
as long as what is used comes first. That leaves four choices: recipes of an item, how often each is applied, items that
stand for a tag, and what is left over from one use for the next.

The ingredients of a recipe never need its output. Items are therefore decided one after the other, each after all that
consume it: by then all units that are needed are known, and what the rest of the plan costs depends on the units of
later items alone. It is computed once for each such moment:

    cost(demands) = min over the ways to meet the first demand of (their actions + cost(later demands + ingredients))
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement, product

from textagent_gym.domains.textcraft.book import Game, Recipe, RecipeBook, craft_command
from textagent_gym.errors import InvalidOptionError, PlanningBudgetError
from textagent_gym.planning import Plan

MOST_CHOICES = 200_000
"""Choices that are looked at before the planner gives up: about two seconds."""

_ANY_NUMBER = 10**9  # One `get` yields as much as any recipe needs.


@dataclass(frozen=True, slots=True)
class _Node:
    """An item or a tag that may be needed.

    Attributes:
        name: name of the item or the tag.
        most: units of the item that one action yields at most.
        recipes: ways to craft the item.
        needs: nodes of each recipe's ingredients, with the units of each.
        members: nodes of a tag's items.
    """

    name: str
    most: int = _ANY_NUMBER
    recipes: tuple[Recipe, ...] = ()
    needs: tuple[tuple[tuple[int, int], ...], ...] = ()
    members: tuple[int, ...] = ()


class Planner:
    """Plans for one goal from any inventory.

    Args:
        book: recipes.
        goal: item to craft.

    Raises:
        InvalidOptionError: an item is needed to craft itself.
    """

    def __init__(self, book: RecipeBook, goal: str) -> None:
        self.book = book
        self.goal = goal
        self.nodes = _in_order(book, goal)

    def solve(self, inventory: Mapping[str, int]) -> Plan:
        """A shortest plan.

        Args:
            inventory: units of each item that is carried.

        Raises:
            PlanningBudgetError: there are too many choices.
        """
        return Plan(tuple(_Search(self, inventory).commands()))

    @cached_property
    def alike(self) -> dict[int, tuple[frozenset[str], object]]:
        """Members of tags that nothing else needs, nor anything below them: the items there, and what they look like.

        Two such members that look alike, with nothing of them carried, are interchangeable, and two of them never serve
        better than one: crafting all units from one of them takes no more crafting and no more getting.
        """
        consumers: dict[int, set[int]] = {}
        for index, node in enumerate(self.nodes):
            for below in {*node.members, *(item for needs in node.needs for item, _ in needs)}:
                consumers.setdefault(below, set()).add(index)
        alike = {}
        for member in {index for node in self.nodes for index in node.members}:
            numbers: dict[int, int] = {}
            shape = self._shape(member, numbers)
            outside = {c for below in numbers if below != member for c in consumers[below]} - set(numbers)
            if not outside and len(consumers[member]) == 1:
                alike[member] = (frozenset(self.nodes[index].name for index in numbers), shape)
        return alike

    def _shape(self, index: int, numbers: dict[int, int]) -> object:
        """What is below a node, without names: equal for nodes whose ingredients are equal but for their names."""
        if index in numbers:
            return numbers[index]
        numbers[index] = len(numbers)
        node = self.nodes[index]
        ways = [
            (recipe.count, tuple((count, self._shape(item, numbers)) for item, count in needs))
            for recipe, needs in zip(node.recipes, node.needs, strict=True)
        ]
        return tuple(ways), tuple(self._shape(member, numbers) for member in node.members)


_Units = tuple[tuple[int, int], ...]
"""What is needed of a tag: units, and how many times as many of one item, sorted."""
_Demand = int | _Units
_Choice = tuple[tuple[int, ...], tuple[tuple[int, tuple[int, ...]], ...]]
"""How often each recipe is applied; for a tag, the members that stand for each number of units."""


class _Search:
    """One search; see the module."""

    def __init__(self, planner: Planner, inventory: Mapping[str, int]) -> None:
        self._planner = planner
        self._nodes = planner.nodes
        self._inventory = inventory
        self._best: dict[tuple[int, tuple[_Demand, ...]], tuple[int, _Choice]] = {}
        self._looked_at = 0

    def demands(self) -> list[_Demand]:
        """What is needed at first: the goal, once."""
        demands: list[_Demand] = [0] * len(self._nodes)
        demands[0] = 1
        return demands

    def cost(self, start: int, demands: list[_Demand]) -> int:
        """Actions that it takes to meet the demands from a node on; `demands` is used up."""
        spent = 0
        for index in range(start, len(self._nodes)):
            demand = demands[index]
            if not demand:
                continue
            if isinstance(demand, int):
                short = demand - self._inventory.get(self._nodes[index].name, 0)
                node = self._nodes[index]
                if short <= 0:
                    continue
                if not node.recipes:
                    spent += 1
                    continue
                if len(node.recipes) == 1:
                    times = -(-short // node.recipes[0].count)
                    spent += times
                    self._apply(index, ((times,), ()), demands)
                    continue
            return spent + self._branch(index, demands)[0]
        return spent

    def _branch(self, index: int, demands: list[_Demand]) -> tuple[int, _Choice]:
        key = (index, tuple(demands[index:]))
        known = self._best.get(key)
        if known is None:
            ways = []
            for choice in self._choices(index, demands):
                self._looked_at += 1
                if self._looked_at > MOST_CHOICES:
                    raise PlanningBudgetError(f"no plan was found within {MOST_CHOICES:,} choices")
                later = list(demands)
                self._apply(index, choice, later)
                here = sum(choice[0])
                ways.append((here + self._at_least(index + 1, later), here, choice, later))
            ways.sort(key=lambda way: way[0])
            for at_least, here, choice, later in ways:
                if known is not None and at_least >= known[0]:
                    break
                cost = here + self.cost(index + 1, later)
                if known is None or cost < known[0]:
                    known = cost, choice
            assert known is not None  # A recipe or a member is there, or nothing would be demanded.
            self._best[key] = known
        return known

    def _at_least(self, start: int, demands: list[_Demand]) -> int:
        """Lower bound on the actions that it takes to meet the demands from a node on."""
        bound = 0
        for index in range(start, len(demands)):
            demand = demands[index]
            if demand and isinstance(demand, int):
                short = demand - self._inventory.get(self._nodes[index].name, 0)
                if short > 0:
                    bound += -(-short // self._nodes[index].most)
        return bound

    def _choices(self, index: int, demands: list[_Demand]) -> Iterator[_Choice]:
        node, demand = self._nodes[index], demands[index]
        if isinstance(demand, int):
            short = demand - self._inventory.get(node.name, 0)
            for times in _covers(short, [recipe.count for recipe in node.recipes]):
                yield times, ()
            return
        members = self._candidates(index)
        ways = [combinations_with_replacement(members, times) for _, times in demand]
        for chosen in product(*ways):
            yield (), tuple((units, items) for (units, _), items in zip(demand, chosen, strict=True))

    def _candidates(self, index: int) -> list[int]:
        """Members of a tag, without those that are as good as another one."""
        shapes: set[object] = set()
        candidates = []
        for member in self._nodes[index].members:
            if member in self._planner.alike:
                items, shape = self._planner.alike[member]
                if items.isdisjoint(self._inventory):
                    if shape in shapes:
                        continue
                    shapes.add(shape)
            candidates.append(member)
        return candidates

    def _apply(self, index: int, choice: _Choice, demands: list[_Demand]) -> None:
        """Add what a choice needs to the demands."""
        node = self._nodes[index]
        times, stand_ins = choice
        for applied, needs in zip(times, node.needs, strict=False):
            if applied:
                for item, count in needs:
                    demands[item] = _more(demands[item], count, applied, is_tag=bool(self._nodes[item].members))
        for units, items in stand_ins:
            for item in items:
                demands[item] = _more(demands[item], units, 1, is_tag=False)

    def commands(self) -> Iterator[str]:
        """A shortest plan: gets first, then what is crafted, from the bottom up."""
        demands = self.demands()
        gets: list[str] = []
        crafts: list[tuple[int, tuple[int, ...]]] = []
        stand_ins: dict[tuple[int, int], list[int]] = {}
        for index, node in enumerate(self._nodes):
            demand = demands[index]
            if not demand:
                continue
            short = demand - self._inventory.get(node.name, 0) if isinstance(demand, int) else 0
            if isinstance(demand, int) and short <= 0:
                continue
            if isinstance(demand, int) and not node.recipes:
                gets.append(f"get {short} {node.name}")
                continue
            if len(node.recipes) == 1:
                choice: _Choice = ((-(-short // node.recipes[0].count),), ())
            else:
                _, choice = self._branch(index, demands)
            self._apply(index, choice, demands)
            crafts.append((index, choice[0]))
            for units, items in choice[1]:
                stand_ins[index, units] = list(items)
        # From the top down, as what stands for a tag is taken in that order; played from the bottom up.
        order = [command for index, times in crafts for command in self._craftings(index, times, stand_ins)]
        yield from gets
        yield from reversed(order)

    def _craftings(self, index: int, times: tuple[int, ...], stand_ins: dict[tuple[int, int], list[int]]) -> list[str]:
        node = self._nodes[index]
        commands = []
        for applied, recipe, needs in zip(times, node.recipes, node.needs, strict=False):
            for _ in range(applied):
                items = [
                    self._nodes[stand_ins[item, count].pop() if (item, count) in stand_ins else item].name
                    for item, count in needs
                ]
                commands.append(craft_command(recipe, items))
        return commands


def _more(demand: _Demand, count: int, times: int, *, is_tag: bool) -> _Demand:
    """A demand, and `times` times `count` units more."""
    if not is_tag:
        assert isinstance(demand, int)
        return demand + count * times
    units = dict(demand) if isinstance(demand, tuple) else {}
    units[count] = units.get(count, 0) + times
    return tuple(sorted(units.items()))


def _covers(short: int, yields: list[int]) -> Iterator[tuple[int, ...]]:
    """How often recipes with these yields can be applied to make up what is short, none of them in vain.

    >>> list(_covers(3, [2, 1]))
    [(0, 3), (1, 1), (2, 0)]
    """
    first, *others = yields
    most = max(0, -(-short // first))
    if not others:
        yield (most,)
        return
    for times in range(most + 1):
        for rest in _covers(short - times * first, others):
            yield times, *rest


_Key = tuple[str, bool]
"""Name of an item or a tag, and whether it is a tag."""


def _in_order(book: RecipeBook, goal: str) -> tuple[_Node, ...]:
    """What may be needed for a goal, each after all that consume it; the goal is the first.

    Raises:
        InvalidOptionError: an item is needed to craft itself.
    """
    order: dict[_Key, None] = {}  # From the bottom up.

    def visit(node: _Key, above: tuple[_Key, ...]) -> None:
        if node in order:
            return
        if node in above:
            raise InvalidOptionError(f"recipes must not go in circles, got one through {node[0]!r}")
        for each in _below(book, node):
            visit(each, (*above, node))
        order[node] = None

    visit((goal, False), ())
    index = {node: number for number, node in enumerate(reversed(order))}
    nodes = []
    for name, is_tag in reversed(order):
        if is_tag:
            nodes.append(_Node(name, members=tuple(index[member, False] for member in book.tags[name])))
        else:
            recipes = book.recipes.get(name, ())
            needs = tuple(tuple((index[i.name, i.is_tag], i.count) for i in r.ingredients) for r in recipes)
            most = max((recipe.count for recipe in recipes), default=_ANY_NUMBER)
            nodes.append(_Node(name, most, recipes, needs))
    return tuple(nodes)


def _below(book: RecipeBook, node: _Key) -> list[_Key]:
    name, is_tag = node
    if is_tag:
        return [(member, False) for member in book.tags[name]]
    return [(each.name, each.is_tag) for recipe in book.recipes.get(name, ()) for each in recipe.ingredients]


@lru_cache(maxsize=4096)
def planner_of(book: RecipeBook, goal: str) -> Planner:
    """The planner for a goal, shared by everybody who plays for it."""
    return Planner(book, goal)


def solve(game: Game, inventory: Mapping[str, int]) -> Plan:
    """A shortest plan for a game; see `Planner.solve`."""
    return planner_of(game.book, game.goal).solve(inventory)
