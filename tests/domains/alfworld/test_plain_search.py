"""Plans of several goals at once, against a breadth-first search of our own."""

from __future__ import annotations

import json
import random
from bisect import bisect_left
from pathlib import Path

import gymnasium
import pytest

from tests.domains.alfworld.plain_search import shortest
from textagent_gym.domains.alfworld import env as alfworld_env
from textagent_gym.domains.alfworld import planner
from textagent_gym.domains.alfworld.engine import State, bits
from textagent_gym.domains.alfworld.game import Game, read_game
from textagent_gym.domains.alfworld.generator import RoomSpec, generate
from textagent_gym.domains.alfworld.planner import lower_bound, solve
from textagent_gym.errors import InfeasibleDifficultyError, PlanningBudgetError

GAMES = Path(__file__).with_name("games")


def stored(name: str) -> Game:
    return read_game(json.loads((GAMES / f"{name}.json").read_text()), name)


def named(game: Game) -> set[str]:
    return {game.objects[number] for goal in game.goals for number in bits(goal.objects)}


@pytest.mark.parametrize("name", sorted(path.stem for path in GAMES.glob("*.json")))
def test_one_receptacle_that_two_goals_need_open_is_opened_once(name: str) -> None:
    state = State(stored(name))
    plan = solve(state)
    assert plan is not None
    assert plan.exact
    assert len(plan.commands) == 12
    for command in plan.commands:
        assert not state.won
        assert state.step(command) is not None
    assert state.won


def compare(seed: int, games: int) -> None:
    rng = random.Random(seed)
    compared = 0
    while compared < games:
        goals = rng.choice((2, 2, 2, 3))
        spec = RoomSpec(
            receptacles=rng.choice((3, 4, 5) if goals == 2 else (3, 4)),
            objects=rng.choice((3, 4, 5) if goals == 2 else (3, 4)),
            goals=goals,
            candidates=rng.choice((1, 1, 2)) if goals == 2 else 1,
            closed=rng.choice((None, None, 0.4, 0.67)),
        )
        index = rng.randrange(10**6)
        try:
            game, _ = generate(spec, "train", index)
        except InfeasibleDifficultyError:
            continue
        state = State(game)
        for _ in range(rng.choice((0, 0, 3, 8))):
            state.step(rng.choice(state.commands()))
        expected = shortest(state, named(game), most=60_000)
        if expected is None:
            continue
        plan = solve(state)
        assert plan is not None
        assert plan.exact
        assert len(plan.commands) == expected, (spec.slug, index)
        bound = lower_bound(state)
        assert bound is not None
        assert bound <= expected, (spec.slug, index)
        compared += 1


def test_plans_of_several_goals_are_shortest() -> None:
    compare(seed=3, games=12)


@pytest.mark.slow
def test_plans_of_several_goals_are_shortest_in_many_rooms() -> None:
    compare(seed=7, games=40)


def test_a_plan_that_is_not_proven_says_so() -> None:
    state = State(stored("two-goals-12c"))
    needed = 1 + bisect_left(range(1, 5_000), True, key=lambda budget: proven(state, budget))
    plan = solve(state, budget=needed - 1)
    assert plan is not None
    assert not plan.exact
    assert len(plan.commands) >= 12
    for command in plan.commands:
        state.step(command)
    assert state.won


def proven(state: State, budget: int) -> bool:
    try:
        plan = solve(state, budget=budget)
    except PlanningBudgetError:
        return False
    return plan is not None and plan.exact


def test_a_spent_budget_is_not_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PlanningBudgetError, match="states"):
        solve(State(stored("two-goals-12a")), budget=3)
    env = gymnasium.make("textagent/ALFWorld-v0", goals=2, infos=("oracle_action",), shaping="potential").unwrapped
    env.reset(options={"task_index": 0})
    assert env.plan().exact
    monkeypatch.setattr(alfworld_env, "solve", lambda state: planner.solve(state, budget=0))
    with pytest.raises(PlanningBudgetError):
        env.oracle()
    *_, info = env.step("look")
    assert info["oracle_action"] is None


def test_a_room_whose_plan_is_not_proven_is_not_served_as_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    from textagent_gym.domains.alfworld import generator, tasks

    def never_proven(state: State) -> object:
        plan = solve(state)
        return plan and type(plan)(plan.commands, exact=False)

    monkeypatch.setattr(generator, "solve", never_proven)
    monkeypatch.setattr(tasks, "solve", never_proven)
    with pytest.raises(InfeasibleDifficultyError):
        generate(RoomSpec(receptacles=6, objects=8, solution_length=5, task_types=("pick",)), "train", 0)
    game, _ = generate(RoomSpec(receptacles=6, objects=8, task_types=("pick",)), "train", 0)
    assert tasks.measure(game).exact is False
