"""Plans reach the goal, in Minigrid too, and none is shorter than one that is said to be shortest."""

from __future__ import annotations

import pytest

from tests.domains.babyai.minigrid_levels import begin
from textagent_gym.domains.babyai import planner
from textagent_gym.domains.babyai.commands import PRIMITIVE, admissible
from textagent_gym.domains.babyai.estimates import bound_of
from textagent_gym.domains.babyai.grid import State
from textagent_gym.domains.babyai.levels import LEVELS, GridSpec, LevelSpec
from textagent_gym.domains.babyai.planner import solve
from textagent_gym.errors import PlanningBudgetError
from textagent_gym.planning import Plan

SMALL = (
    GridSpec(columns=1, room_size=5, objects=3),
    GridSpec(columns=1, room_size=5, objects=2, clauses=2, kinds=("pickup", "goto")),
    GridSpec(columns=2, room_size=4, objects=2, clauses=2),
    GridSpec(columns=2, room_size=4, objects=3, locked_room=True),
    GridSpec(columns=2, room_size=4, objects=2, doors_open=True, kinds=("open",)),
)


@pytest.fixture(autouse=True)
def _no_plan_is_known() -> None:
    """Plans that other tests have found may have been found within other bounds."""
    planner._solve.cache_clear()


def succeeds_in_minigrid(name: str, seed: int) -> Plan:
    """Play the plan for a level: the last of its steps ends the episode, as a success."""
    level, state = begin(LevelSpec(level=name, actions="primitive"), seed)
    plan = solve(state, None)
    assert plan is not None
    for index, command in enumerate(plan.commands):
        _, reward, terminated, _, _ = level.step(PRIMITIVE[command])
        assert terminated == (index == len(plan.commands) - 1)
    assert reward > 0
    return plan


def length_by_breadth(state: State, size: int | None, most: int) -> int | None:
    """Length of the shortest plan, by plain breadth-first search over every action; `None` past a number of states."""
    layer, seen, length = [state], {state.key()}, 0
    while layer:
        if any(each.status == "success" for each in layer):
            return length
        following = []
        for each in layer:
            for actions in admissible(each, size).values():
                after = each.copy()
                for action in actions:
                    after.step(action)
                    if after.status != "continue":
                        break
                if after.status != "failure" and after.key() not in seen:
                    seen.add(after.key())
                    following.append(after)
        layer, length = following, length + 1
        if len(seen) > most:
            return None
    return -1


def compare(spec: GridSpec, seeds: range, most: int) -> int:
    """Compare plans with breadth-first search; number of levels that were compared."""
    compared = 0
    for seed in seeds:
        _, state = begin(spec, seed)
        for size in (None, 7):
            length = length_by_breadth(state, size, most)
            if length is not None:
                plan = solve(state, size)
                assert (len(plan.commands) if plan is not None and plan.exact else -1) == length, (spec.slug, seed)
                compared += 1
    return compared


@pytest.mark.parametrize("spec", SMALL, ids=lambda spec: spec.slug)
def test_plans_are_as_short_as_breadth_first_search_finds(spec: GridSpec) -> None:
    assert compare(spec, range(3), most=3_000) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("spec", SMALL, ids=lambda spec: spec.slug)
def test_many_plans_are_as_short_as_breadth_first_search_finds(spec: GridSpec) -> None:
    assert compare(spec, range(3, 30), most=20_000) >= 20


@pytest.mark.parametrize("name", [name for name in LEVELS if name != "OpenDoorsOrderN4Debug"])
def test_plans_succeed_in_minigrid_at_their_last_step_alone(name: str) -> None:
    succeeds_in_minigrid(name, 5)


@pytest.mark.parametrize("name", ["BossLevel", "BossLevelNoUnlock", "KeyCorridorS6R3", "MoveTwoAcrossS8N9", "SynthSeq"])
def test_plans_in_stages_succeed_in_minigrid_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "PRIMITIVE_STATES", 3)
    monkeypatch.setattr(planner, "WEIGHTED_STATES", 3)
    for seed in range(6):
        assert not succeeds_in_minigrid(name, seed).exact


@pytest.mark.parametrize("name", ["GoToObjS6", "KeyInBox", "PutNextLocalS6N4", "PickupLoc", "BlockedUnlockPickup"])
def test_no_moment_of_a_shortest_plan_seems_farther_from_the_goal_than_it_is(name: str) -> None:
    for seed in range(4):
        _, state = begin(LevelSpec(level=name, actions="primitive"), seed)
        bound, plan = bound_of(state.world), solve(state, None)
        assert plan is not None
        assert plan.exact
        for left in range(len(plan.commands), -1, -1):
            assert bound(state) <= left
            if left:
                state.step(PRIMITIVE[plan.commands[-left]])


def test_walks_shorten_plans() -> None:
    for seed in range(5):
        _, state = begin(GridSpec(columns=1, room_size=8, objects=4), seed)
        steps, walks = solve(state, None), solve(state, 7)
        assert steps is not None
        assert walks is not None
        assert len(walks.commands) <= len(steps.commands)


def test_without_the_time_for_a_shortest_plan_one_is_found_that_is_not_called_shortest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(planner, "MACRO_STATES", 3)
    _, state = begin(LevelSpec(level="KeyCorridorS6R3"), 0)
    plan = solve(state, 7)
    assert plan is not None
    assert not plan.exact
    for command in plan.commands:
        for action in admissible(state, 7)[command]:
            state.step(action)
    assert state.status == "success"


def test_out_of_time_is_not_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PRIMITIVE_STATES", "WEIGHTED_STATES", "STAGE_STATES"):
        monkeypatch.setattr(planner, name, 3)
    _, state = begin(LevelSpec(level="KeyCorridorS6R3"), 0)
    with pytest.raises(PlanningBudgetError, match="within 6 states"):
        solve(state, None)


def test_a_goal_that_contradicts_itself_is_out_of_reach() -> None:
    """Both clauses of the level's pairs are strict: opening the first door fails the second clause at once."""
    pairs = [begin(LevelSpec(level="OpenDoorsOrderN4Debug"), seed)[1] for seed in range(8)]
    plans = {len(state.world.clauses): solve(state, None) is None for state in pairs}
    assert plans == {1: False, 2: True}
