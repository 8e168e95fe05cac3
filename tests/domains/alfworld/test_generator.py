"""Generated rooms are what was asked for, the same everywhere, and games to upstream too."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import warnings

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from textagent_gym.domains.alfworld.engine import State
from textagent_gym.domains.alfworld.game import TASK_TYPES
from textagent_gym.domains.alfworld.generator import ROOMS, RoomSpec, exploration_cost, generate
from textagent_gym.domains.alfworld.reference import ReferenceState
from textagent_gym.domains.alfworld.tasks import RoomTasks
from textagent_gym.errors import InfeasibleDifficultyError, InvalidOptionError, UnknownTaskError

ID = "textagent/ALFWorld-v0"

DIGEST = """
import hashlib
from textagent_gym.domains.alfworld.generator import RoomSpec, generate
text = "".join(generate(RoomSpec(goals=2), "train", i)[1]["pddl_problem"] for i in range(5))
print(hashlib.sha256(text.encode()).hexdigest())
"""


def test_gymnasiums_checker_finds_nothing_to_warn_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(ID, num_tasks=3, disable_env_checker=True).unwrapped)


@pytest.mark.parametrize("name", TASK_TYPES.values())
def test_every_type_is_solved_by_its_plan(name: str) -> None:
    for index in range(20):
        game, content = generate(RoomSpec(task_types=(name,)), "train", index)
        state = State(game)
        for command in content["walkthrough"]:
            assert not state.won
            assert state.step(command) is not None
        assert state.won
        assert content["task"] == game.task


@pytest.mark.parametrize(
    ("knobs", "lengths"),
    [
        ({"place": 1, "task_types": ("pick",)}, {4, 5, 6}),
        ({"place": 2, "task_types": ("pick",)}, {8, 9, 10, 11}),
        ({"place": 3, "candidates": 4, "task_types": ("pick",)}, set(range(12, 17))),
        ({"place": 4, "candidates": 5, "task_types": ("pick",)}, set(range(16, 22))),
        ({"solution_length": 7}, {7}),
        ({"task_types": ("look",)}, {3, 4, 5}),
        ({"closed": 0.0, "task_types": ("pick",)}, {4}),
    ],
)
def test_the_knobs_set_the_length_of_the_solution(knobs: dict[str, object], lengths: set[int]) -> None:
    found = {len(generate(RoomSpec(**knobs), "train", index)[1]["walkthrough"]) for index in range(15)}
    assert found <= lengths


@pytest.mark.parametrize("receptacles", [5, 20, 80])
def test_rooms_have_the_size_asked_for(receptacles: int) -> None:
    for index in range(5):
        spec = RoomSpec(receptacles=receptacles, objects=2 * receptacles, closed=0.4)
        game, _ = generate(spec, "test", index)
        assert len(game.receptacles) == receptacles
        assert len(game.objects) == 2 * receptacles
        assert (game.openable & ~game.opened).bit_count() == round(0.4 * receptacles)


def test_the_number_of_candidates_is_the_one_asked_for() -> None:
    for index in range(10):
        game, _ = generate(RoomSpec(candidates=5, objects=30, goals=2), "train", index)
        assert all(goal.objects.bit_count() == 5 for goal in game.goals if goal.kind != "light")


def test_the_cost_of_exploration_is_measured_and_can_be_asked_for() -> None:
    game, _ = generate(RoomSpec(receptacles=30, objects=40, candidates=1, closed=0.0, task_types=("pick",)), "train", 0)
    # One object in one of 30 open receptacles, looked through in a random order: (30 + 1) / 2 on average.
    assert exploration_cost(game) == pytest.approx(15.5, rel=0.15)
    spec = RoomSpec(receptacles=30, objects=40, exploration=(25, 30))
    for index in range(5):
        assert 25 <= exploration_cost(generate(spec, "train", index)[0]) <= 30
        assert RoomTasks(spec).task("train", index).complexity.exploration_cost >= 25


def test_games_are_equal_whatever_the_hash_seed() -> None:
    outputs = [
        subprocess.run(
            [sys.executable, "-c", DIGEST], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) == 65


def what_is_seen(state: State) -> str:
    """All that can be read by going everywhere and opening everything."""
    text = [state.introduction()]
    for name in sorted(state.game.receptacles):
        text += [str(state.step(f"{verb}{name}")) for verb in ("go to ", "open ", "examine ")]
        text += state.commands()
    return "\n".join(text)


def test_no_room_that_plays_alike_is_in_two_splits() -> None:
    spec = RoomSpec(receptacles=3, objects=2, candidates=1, room="bathroom", task_types=("pick",))
    splits: dict[str, set[str]] = {}
    for split in ("train", "validation", "test"):
        for index in range(250):
            splits.setdefault(what_is_seen(State(generate(spec, split, index)[0])), set()).add(split)
    assert len(splits) > 300
    assert all(len(names) == 1 for names in splits.values())


@pytest.mark.parametrize(
    ("receptacles", "objects", "closed", "types"),
    [(10, 20, 1.0, None), (6, 12, 0.9, None), (4, 12, 0.8, ("pick", "look", "clean")), (10, 20, 0.0, None)],
)
def test_the_share_of_closed_receptacles_is_the_one_asked_for(
    receptacles: int, objects: int, closed: float, types: tuple[str, ...] | None
) -> None:
    types = types or tuple(TASK_TYPES.values())
    for index in range(30):
        spec = RoomSpec(receptacles=receptacles, objects=objects, closed=closed, task_types=types)
        game, _ = generate(spec, "train", index)
        assert (game.openable & ~game.opened).bit_count() == round(closed * receptacles)


@pytest.mark.parametrize(
    ("knobs", "error"),
    [
        ({"receptacles": 2}, InvalidOptionError),
        ({"receptacles": 2.5}, InvalidOptionError),
        ({"place": 3}, InfeasibleDifficultyError),
        ({"room": "garage"}, InvalidOptionError),
        ({"task_types": "fly"}, InvalidOptionError),
        ({"closed": 2.0}, InvalidOptionError),
        ({"recepticles": 4}, InvalidOptionError),
        ({"state_size": 4}, InvalidOptionError),
        ({"dialect": "throw"}, InvalidOptionError),
    ],
)
def test_a_wrong_request_says_what_exists(knobs: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        gymnasium.make(ID, **knobs)


def test_what_cannot_be_made_is_said() -> None:
    env = gymnasium.make(ID, solution_length=40)
    with pytest.raises(InfeasibleDifficultyError, match="Shortest plans had"):
        env.reset(seed=0)
    env = gymnasium.make(ID, room="bathroom", task_types=("heat",))
    with pytest.raises(InfeasibleDifficultyError, match="no room"):
        env.reset(seed=0)


def test_ids_lead_back_to_their_task() -> None:
    tasks = gymnasium.make(ID, receptacles=6, objects=9, room=ROOMS[0]).unwrapped.tasks
    task = tasks.task("validation", 3)
    assert task.id == "ALFWorld/v2/r6-o9-room=kitchen/validation/3"
    assert tasks.find(task.id) == task
    for wrong in ("ALFWorld/v2/r5-o9/validation/3", "ALFWorld/v2/r6-o9-room=kitchen/validation/03", ""):
        with pytest.raises(UnknownTaskError):
            tasks.find(wrong)


@pytest.mark.slow
@pytest.mark.parametrize(
    "knobs",
    [
        *({"task_types": (name,)} for name in TASK_TYPES.values()),
        {"goals": 3, "receptacles": 14, "objects": 24},
        {"place": 2, "candidates": 3},
        {"place": 3, "candidates": 4},
    ],
    ids=str,
)
def test_upstream_plays_generated_games_and_its_planner_wins_them(knobs: dict[str, object]) -> None:
    pytest.importorskip("alfworld", reason='needs: pip install "textagent-gym[reference]"')
    from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
    from textworld import EnvInfos
    from textworld.envs.pddl import PddlEnv

    tasks = RoomTasks(RoomSpec(**{"receptacles": 8, "objects": 14, **knobs}))
    task = tasks.task("train", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here, there = State(tasks.world(task)), ReferenceState(tasks.original(task))
        assert here.introduction() == there.introduction()
        draw = random.Random(0)
        plan = list(tasks.original(task)["walkthrough"])
        for step in range(len(plan) + 15):
            command = plan[step] if step < len(plan) else draw.choice(here.commands())
            assert here.step(command) == there.step(command)
            assert here.commands() == there.commands()
            assert here.won == there.won
            assert here.won or step != len(plan) - 1
        if 3 in (knobs.get("goals"), knobs.get("place")):
            return  # Three goals or three things at once take upstream's planner minutes at every step.
        upstream = AlfredDemangler(PddlEnv(EnvInfos(policy_commands=True, won=True)))
        upstream.load(tasks.original(task))
        state = upstream.reset()
        steps = 0
        while not state["won"]:
            state, _, _ = upstream.step(state["policy_commands"][0])
            steps += 1
            assert steps < 60
        # Its planner counts other costs, so it may take more actions, never fewer.
        assert steps >= len(plan)
