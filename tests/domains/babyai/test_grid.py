"""The grid's rules, view and verifier are Minigrid's."""

from __future__ import annotations

import random

import pytest

from tests.domains.babyai.minigrid_levels import begin, play_beside, seen_by_minigrid, seen_here
from textagent_gym.domains.babyai.grid import DROP, PICK_UP, State
from textagent_gym.domains.babyai.levels import LEVELS, GridSpec, LevelSpec


def compare(spec: LevelSpec | GridSpec, seed: int, steps: int) -> str:
    """Play a level at random in both, and compare everything after each step."""
    level, state = begin(spec, seed)
    assert seen_here(state, spec.view_size) == seen_by_minigrid(level)
    status = "continue"
    for number, (_, status) in enumerate(play_beside(level, state, random.Random(seed), steps)):
        assert state.status == status, (spec.slug, seed, number, state.world.mission)
        assert divmod(state.agent, state.world.width)[::-1] == tuple(level.agent_pos)
        assert seen_here(state, spec.view_size) == seen_by_minigrid(level), (spec.slug, seed, number)
    return status


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_plays_as_in_minigrid(level: str) -> None:
    compare(LevelSpec(level=level, actions="primitive"), seed=0, steps=60)


def test_levels_of_any_size_and_view_play_as_in_minigrid() -> None:
    for clauses in range(1, 5):
        spec = GridSpec(
            rows=2, columns=2, room_size=5, objects=9, clauses=clauses, locked_room=True, locations=True, view_size=5
        )
        compare(spec, seed=clauses, steps=60)


def test_things_that_are_carried_about_are_judged_as_in_minigrid() -> None:
    for seed in range(20):
        compare(GridSpec(columns=1, room_size=5, objects=4, clauses=3, kinds=("goto", "putnext")), seed, steps=100)


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_long_walks_play_as_in_minigrid(level: str) -> None:
    ends = [compare(LevelSpec(level=level, actions="primitive"), seed, steps=300) for seed in range(1, 4)]
    assert len(ends) == 3


def test_what_is_carried_when_a_level_begins_counts_only_after_the_first_action() -> None:
    """Minigrid's verifier learns what is carried from the actions that it sees."""
    level, state = begin(LevelSpec(level="PutNextS7N4Carrying", actions="primitive"), 0)
    assert state.carrying >= 0
    clause = state.world.clauses[0]
    assert clause.kind == "putnext"
    assert not state.watched
    level.step(DROP)
    state.step(DROP)
    assert state.watched == {clause.number}
    assert state.status == "continue"


def test_a_copy_changes_on_its_own() -> None:
    _, state = begin(LevelSpec(level="BossLevel"), 3)
    before, other = state.key(), state.copy()
    for _ in play_beside(begin(LevelSpec(level="BossLevel"), 3)[0], other, random.Random(1), 80):
        pass
    assert other.key() != before
    assert state.key() == before == State(state.world).key()


def test_hands_hold_one_thing() -> None:
    for seed in range(20):
        level, state = begin(GridSpec(columns=1, objects=8, kinds=("goto",)), seed)
        held = []
        for action, _ in play_beside(level, state, random.Random(seed), 60):
            if action == PICK_UP and state.carrying >= 0:
                held.append(state.carrying)
                assert state.places[state.carrying] == -1
            assert (state.carrying >= 0) == (level.carrying is not None)
