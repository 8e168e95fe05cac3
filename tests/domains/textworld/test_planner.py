"""The planner, against plain search."""

from __future__ import annotations

import pickle
import random
from collections import deque

import pytest

from tests.domains.textworld.kinds import KINDS, UpstreamGame
from textagent_gym.domains.textworld.commands import admissible_commands
from textagent_gym.domains.textworld.generation import draw, draw_as_made, ground
from textagent_gym.domains.textworld.hands import Hands
from textagent_gym.domains.textworld.logic import GameLogic
from textagent_gym.domains.textworld.planner import Planner, solve
from textagent_gym.domains.textworld.specs import Spec, make_spec
from textagent_gym.errors import PlanningBudgetError
from textagent_gym.planning import Plan


def shortest_by_plain_search(logic: GameLogic, most: int = 60_000) -> int | None:
    """Length of the shortest solution over all actions, nothing left out."""
    queue, seen = deque([(logic.initial, 0)]), {logic.initial}
    while queue and len(seen) < most:
        state, length = queue.popleft()
        if logic.won(state):
            return length
        for action in logic.applicable(state):
            after = logic.apply(state, action)
            if after not in seen and not logic.lost(after):
                seen.add(after)
                queue.append((after, length + 1))
    return None


def test_no_solution_of_plain_search_is_shorter_than_the_planners() -> None:
    compared = 0
    games = [draw_as_made(KINDS[0], seed) for seed in range(1, 21)]
    games += [draw_as_made(make_spec("custom", rooms=3, objects=4, quest_length=6), seed) for seed in range(1, 9)]
    games += [draw_as_made(make_spec("treasure_hunter", level=12), seed) for seed in range(3)]
    for game in games:
        logic = ground(game)
        expected = shortest_by_plain_search(logic)
        if expected is not None:
            plan = solve(logic)
            assert plan is not None
            assert plan.exact
            assert len(plan.actions) == expected
            compared += 1
    assert compared >= 20


@pytest.mark.parametrize(("spec", "states"), [*zip(KINDS, (6, 70, 14, 16, 5, 10, 9), strict=True)], ids=str)
def test_few_states_prove_a_solution_to_be_shortest(spec: Spec, states: int, upstream_game: UpstreamGame) -> None:
    solution = solve(ground(upstream_game(spec, 1)[0]), budget=states)
    assert solution is not None
    assert solution.exact


def test_distances_are_right_after_any_detour(upstream_game: UpstreamGame) -> None:
    game, _ = upstream_game(KINDS[0], 1)
    logic = ground(game)
    planner = Planner(logic)
    rng = random.Random(0)
    state, compared = logic.initial, 0
    for _ in range(60):
        fresh = Planner(logic).solve(state)
        assert planner.distance(state) == (None if fresh is None else len(fresh.actions))
        compared += 1
        actions = [a for a in logic.applicable(state) if not logic.won(logic.apply(state, a))]
        if not actions:
            break
        state = logic.apply(state, rng.choice(actions))
    assert compared > 30


@pytest.mark.parametrize(
    "spec",
    [
        make_spec("cooking", recipe=1, take=1, drop=True, cook=True),
        make_spec("cooking", recipe=2, take=1, drop=True, rooms=6),
        make_spec("cooking", recipe=2, take=2, drop=True, cook=True, cut=True),
    ],
    ids=lambda spec: spec.slug,
)
def test_nothing_that_limited_hands_leave_out_makes_a_solution_longer(
    spec: Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = 0
    for index in range(3):
        logic = ground(draw(spec, "train", index))
        planner = Planner(logic)
        with monkeypatch.context() as patches:
            patches.setattr(Hands, "__init__", lambda hands, _: setattr(hands, "facts", 0))
            patches.setattr(Hands, "sorted_actions", lambda _, actions: list(actions))
            whole = Planner(logic, budget=1_500)
        rng, state = random.Random(index), logic.initial
        for _ in range(40):
            length, proven = planner.proven_distance(state)
            assert proven
            solution, end = planner.solve(state), state
            for action in solution.actions if solution else ():
                assert end & action.needs == action.needs
                end = logic.apply(end, action)
            assert logic.won(end) == (solution is not None)
            try:
                expected = whole.proven_distance(state)
            except PlanningBudgetError:
                expected = None, False
            if expected[1]:
                assert length == expected[0]
                compared += 1
            state = logic.apply(state, rng.choice(list(logic.applicable(state))))
            if logic.ended(state):
                state = logic.initial
    assert compared > 40


def test_a_lost_cause_has_no_distance(upstream_game: UpstreamGame) -> None:
    game, _ = upstream_game(KINDS[2], 1)
    logic = ground(game)
    state = logic.initial
    planner = Planner(logic)
    food = next(
        command for command in planner.plan(state).commands if command.startswith("take") and "key" not in command
    )
    for command in planner.plan(state).commands:
        state = logic.apply(state, next(a for a in logic.applicable(state) if a.command == command))
        if command == food:
            break
    eat = [a for a in logic.applicable(state) if a.command.startswith("eat ")]
    assert len(eat) == 1
    state = logic.apply(state, eat[0])
    assert logic.lost(state)
    assert planner.distance(state) is None
    assert planner.plan(state) is None
    assert admissible_commands(logic, state) == ()


def test_a_spent_budget_is_not_out_of_reach_and_a_plan_that_is_not_proven_says_so() -> None:
    # Limited hands and two ingredients in a house: no search of a bearable size proves a plan to be shortest.
    spec = make_spec("cooking", recipe=2, take=2, rooms=9, open=True, cook=True, cut=True, drop=True)
    logic = ground(draw(spec, "train", 1))
    with pytest.raises(PlanningBudgetError, match="states"):
        solve(logic, budget=1)
    solution = solve(logic, budget=1_000)
    assert solution is not None
    assert not solution.exact
    state = logic.initial
    for action in solution.actions:
        assert state & action.needs == action.needs
        state = logic.apply(state, action)
    assert logic.won(state)
    plan = Planner(logic, budget=1_000).plan(logic.initial)
    assert plan == Plan(solution.commands, exact=False)


def test_the_lower_bound_is_one(upstream_game: UpstreamGame) -> None:
    for spec in (KINDS[0], KINDS[2], KINDS[6]):
        logic = ground(upstream_game(spec, 1)[0])
        planner = Planner(logic)
        rng = random.Random(0)
        state = logic.initial
        for _ in range(15):
            bound, distance = planner.lower_bound(state), planner.distance(state)
            if distance is None:
                break
            assert bound is not None
            assert bound <= distance
            state = logic.apply(state, rng.choice(list(logic.applicable(state))))


def test_a_pickled_planner_answers_the_same(upstream_game: UpstreamGame) -> None:
    logic = ground(upstream_game(KINDS[0], 1)[0])
    planner = Planner(logic, solution=solve(logic))
    assert pickle.loads(pickle.dumps(planner)).plan(logic.initial) == planner.plan(logic.initial)


def test_what_is_left_of_the_known_solution_is_known_along_its_way_alone(upstream_game: UpstreamGame) -> None:
    logic = ground(upstream_game(KINDS[1], 1)[0])
    solution = solve(logic)
    assert solution is not None
    planner, state = Planner(logic, solution=solution), logic.initial
    for done, action in enumerate(solution.actions):
        assert planner.left_of_solution(state) == len(solution.actions) - done
        state = logic.apply(state, action)
    rng, state, elsewhere = random.Random(0), logic.initial, 0
    for _ in range(30):
        state = logic.apply(state, rng.choice(list(logic.applicable(state))))
        left = planner.left_of_solution(state)
        assert left in (None, planner.distance(state))
        elsewhere += left is None
        if logic.ended(state):
            break
    assert elsewhere
    assert Planner(logic).left_of_solution(logic.initial) is None
