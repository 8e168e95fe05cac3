"""The logic and the planner, against TextWorld's own state tracking and plain search."""

from __future__ import annotations

import pickle
import random
import warnings
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from textagent_gym.domains.textworld import generator
from textagent_gym.domains.textworld.logic import GameLogic
from textagent_gym.domains.textworld.planner import Planner, solve
from textagent_gym.domains.textworld.specs import Spec, make_spec
from textagent_gym.domains.textworld.zmachine import ZMachine, upstream_feedback
from textagent_gym.errors import PlanningBudgetError
from textagent_gym.planning import Plan

Make = Callable[[Spec, int], tuple[Any, str]]

KINDS = [
    make_spec("custom", rooms=2, objects=3, quest_length=4),
    make_spec("custom", rooms=4, objects=8, quest_length=8),
    make_spec("simple", rewards="dense"),
    make_spec("cooking", recipe=2, take=2, rooms=6, open=True, cook=True, cut=True),
    make_spec("cooking", recipe=1, take=1, rooms=1, drop=True),
    make_spec("coin_collector", level=105),
    make_spec("treasure_hunter", level=15),
]
SYNONYMS = ("n", "south", "look", "inventory", "x me", "wait", "take all", "close fridge", "eat apple", "dance")


@pytest.mark.parametrize("spec", KINDS, ids=lambda spec: spec.slug)
def test_text_commands_and_endings_are_textworlds_on_random_walks(spec: Spec, upstream_game: Make) -> None:
    import textworld

    game, story = upstream_game(spec, 1)
    logic = GameLogic.from_game(game)
    machine = ZMachine()
    compared = 0
    for walk in range(3):
        draw = random.Random(walk)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            upstream = textworld.start(story, textworld.EnvInfos(admissible_commands=True, won=True, lost=True))
            there = upstream.reset()
        assert there.feedback == upstream_feedback(machine.start(story))
        state = logic.initial
        for _ in range(40):
            assert list(logic.listed(state)) == there.admissible_commands
            command = draw.choice(SYNONYMS) if draw.random() < 0.2 else draw.choice(logic.listed(state))
            there, _, done = upstream.step(command)
            reply = machine.send(command)
            for event in reply.events:
                action = logic.detect(state, event)
                state = logic.end_turn(state) if action is None else logic.apply(state, action)
            assert there.feedback == upstream_feedback(reply.raw)
            assert (there.won, there.lost) == (reply.won, reply.lost) == (logic.won(state), logic.lost(state))
            compared += 1
            if done:
                break
    assert compared > 20


@pytest.mark.parametrize("spec", KINDS, ids=lambda spec: spec.slug)
def test_the_shortest_solution_wins_in_the_compiled_game(spec: Spec, upstream_game: Make) -> None:
    game, story = upstream_game(spec, 1)
    logic = GameLogic.from_game(game)
    plan = solve(logic)
    assert plan is not None
    assert plan.exact
    machine = ZMachine()
    machine.start(story)
    replies = [machine.send(command) for command in plan.commands]
    assert [reply.won for reply in replies] == [False] * (len(replies) - 1) + [True]
    walkthrough = game.metadata.get("walkthrough") or game.walkthrough
    assert walkthrough is None or len(plan.actions) <= len(walkthrough)


@pytest.mark.parametrize(("spec", "states"), [*zip(KINDS, (6, 70, 14, 16, 5, 10, 9), strict=True)], ids=str)
def test_few_states_prove_a_solution_to_be_shortest(spec: Spec, states: int, upstream_game: Make) -> None:
    solution = solve(GameLogic.from_game(upstream_game(spec, 1)[0]), budget=states)
    assert solution is not None
    assert solution.exact


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
    with warnings.catch_warnings(), generator.quick_upstream():
        warnings.simplefilter("ignore")
        games = [generator._guide_game(KINDS[0], seed) for seed in range(1, 21)]
        games += [
            generator._guide_game(make_spec("custom", rooms=3, objects=4, quest_length=6), s) for s in range(1, 9)
        ]
        games += [generator._challenge(make_spec("treasure_hunter", level=12), seed) for seed in range(3)]
    for game in games:
        logic = GameLogic.from_game(game)
        expected = shortest_by_plain_search(logic)
        if expected is not None:
            plan = solve(logic)
            assert plan is not None
            assert plan.exact
            assert len(plan.actions) == expected
            compared += 1
    assert compared >= 20


def test_distances_are_right_after_any_detour(upstream_game: Make) -> None:
    game, _ = upstream_game(KINDS[0], 1)
    logic = GameLogic.from_game(game)
    planner = Planner(logic)
    draw = random.Random(0)
    state, compared = logic.initial, 0
    for _ in range(60):
        fresh = Planner(logic).solve(state)
        assert planner.distance(state) == (None if fresh is None else len(fresh.actions))
        compared += 1
        actions = [a for a in logic.applicable(state) if not logic.won(logic.apply(state, a))]
        if not actions:
            break
        state = logic.apply(state, draw.choice(actions))
    assert compared > 30


def test_a_lost_cause_has_no_distance(upstream_game: Make) -> None:
    game, _ = upstream_game(KINDS[2], 1)
    logic = GameLogic.from_game(game)
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
    assert logic.commands(state) == ()


def test_a_spent_budget_is_not_out_of_reach_and_a_plan_that_is_not_proven_says_so() -> None:
    # Limited hands and two ingredients in a house: no search of a bearable size proves a plan to be shortest.
    spec = make_spec("cooking", recipe=2, take=2, rooms=9, open=True, cook=True, cut=True, drop=True)
    with generator.quick_upstream():
        logic = GameLogic.from_game(generator._challenge_game(spec, "train", 1))
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


def test_the_lower_bound_is_one(upstream_game: Make) -> None:
    for spec in (KINDS[0], KINDS[2], KINDS[6]):
        logic = GameLogic.from_game(upstream_game(spec, 1)[0])
        planner = Planner(logic)
        draw = random.Random(0)
        state = logic.initial
        for _ in range(15):
            bound, distance = planner.lower_bound(state), planner.distance(state)
            if distance is None:
                break
            assert bound is not None
            assert bound <= distance
            state = logic.apply(state, draw.choice(list(logic.applicable(state))))


def test_a_pickled_planner_answers_the_same(upstream_game: Make) -> None:
    logic = GameLogic.from_game(upstream_game(KINDS[0], 1)[0])
    planner = Planner(logic, solution=solve(logic))
    assert pickle.loads(pickle.dumps(planner)).plan(logic.initial) == planner.plan(logic.initial)


def test_preparing_a_meal_is_offered_when_it_can_be_prepared(upstream_game: Make) -> None:
    spec = make_spec("cooking", recipe=1, take=1, rooms=1, open=True, cook=True, cut=True)
    game, story = upstream_game(spec, 1)
    logic = GameLogic.from_game(game)
    machine = ZMachine()
    machine.start(story)
    state, refused, prepared = logic.initial, 0, 0
    for action in solve(logic).actions:  # type: ignore[union-attr]
        before = machine.save()
        for command in logic.listed(state):
            if command == "prepare meal":
                understood = bool(machine.send(command).events)
                machine.restore(before)
                assert understood == (command in logic.commands(state))
                refused += not understood
                prepared += understood
        machine.send(action.command)
        state = logic.apply(state, action)
    assert refused
    assert prepared


@pytest.mark.parametrize("spec", KINDS, ids=lambda spec: spec.slug)
def test_the_logic_survives_json(spec: Spec, upstream_game: Make) -> None:
    import json

    logic = GameLogic.from_game(upstream_game(spec, 1)[0])
    assert GameLogic.from_dict(json.loads(json.dumps(logic.to_dict()))) == logic
    with pytest.raises(ValueError, match="format"):
        GameLogic.from_dict({"format": 0})
