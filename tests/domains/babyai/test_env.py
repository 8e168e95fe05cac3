"""BabyAI as an environment."""

from __future__ import annotations

import contextlib
import io
import warnings
from typing import Any

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from tests.domains.babyai.minigrid_levels import begin
from tests.domains.oracle_episode import solve
from textagent_gym.agents import make_agent
from textagent_gym.calls import parse_function
from textagent_gym.core import TextEnv
from textagent_gym.domains.babyai import GridSpec, LevelSpec, construction, tasks
from textagent_gym.errors import InfeasibleDifficultyError, InvalidOptionError
from textagent_gym.evaluation import demonstrate, play

SEQUENCE: dict[str, Any] = {"objects": 6, "clauses": 2, "kinds": ("goto", "pickup", "open")}


def make(id: str = "BabyAI-v0", **kwargs: Any) -> TextEnv[Any]:
    return gymnasium.make(f"textagent/{id}", **kwargs).unwrapped  # type: ignore[return-value]


@pytest.mark.parametrize("action_format", ["commands", "functions"])
@pytest.mark.parametrize("actions", ["macro", "primitive"])
def test_the_actions_of_a_plan_are_admissible(actions: str, action_format: str) -> None:
    env = make(**SEQUENCE, actions=actions, action_format=action_format)
    for index in range(4):
        env.reset(options={"task_index": index})
        for action in env.oracle() or ():
            assert action in env.admissible_actions()
            env.step(action)


def test_gymnasium_finds_nothing_to_warn_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make(), skip_render_check=True)


@pytest.mark.parametrize("actions", ["macro", "primitive"])
@pytest.mark.parametrize("density", ["sparse", 0.5, "dense"])
def test_a_solved_episode_returns_one_and_each_clause_pays_once(density: Any, actions: str) -> None:
    env = make(**SEQUENCE, actions=actions, reward_density=density)
    for index in range(4):
        rewards = [reward for _, reward in solve(env, index)]
        assert sum(rewards) == pytest.approx(1.0)
        assert env.task.milestones == 2
        if density == "sparse":
            assert rewards[:-1] == [0.0] * (len(rewards) - 1)
        if density == "dense" and actions == "primitive":
            assert sum(reward > 0 for reward in rewards) in (1, 2)


def test_the_goal_keeps_the_order_of_its_clauses() -> None:
    env = make(**{**SEQUENCE, "kinds": ("goto",)}, text_format="agentgym")
    goals = [env.reset(options={"task_index": index})[0].splitlines()[0] for index in range(20)]
    assert any(", then go to" in goal for goal in goals)
    assert any(" after you go to" in goal for goal in goals)


def test_functions_do_what_commands_do() -> None:
    for actions in ("macro", "primitive"):
        commands, functions = (make(actions=actions, action_format=each) for each in ("commands", "functions"))
        assert commands.tools == ()
        names = {tool.name for tool in functions.tools}
        assert ("go_to" in names) == (actions == "macro")
        for index in range(3):
            assert solve(commands, index) == solve(functions, index)
            functions.reset(options={"task_index": index})
            calls = [parse_function(action, functions.tools).tool for action in functions.admissible_actions()]
            assert set(calls) <= names
    observation, _, _, _, info = functions.step("turn left")
    assert "There is no JSON object" in observation
    assert not info["valid_action"]


def test_what_would_change_nothing_says_why() -> None:
    env = make("BabyAI-UnlockLocalDist-v0", max_turns=500)
    env.reset(options={"task_index": 0})
    refusals = {
        "drop": "You carry nothing.",
        "dance": "That is not an action.",
        "": "That is not an action.",
        "go to": "That is not an action.",
        "go to red ball 99": "You do not see red ball 99.",
        "pick up " + "x" * 1000: "You do not see " + "x" * 100,
    }
    for action, answer in refusals.items():
        key = env.state_key()
        observation, _, _, _, info = env.step(action)
        assert answer in observation
        assert len(observation) < 300
        assert not info["valid_action"]
        assert env.state_key() == key


def test_a_name_without_its_number_is_answered_with_the_numbers() -> None:
    env = make("BabyAI-GoToLocalS8N7-v0", max_turns=500)
    env.reset(options={"task_index": 0})
    named = [action for action in env.admissible_actions() if action.startswith("go to ")]
    name = next(action[6:-2] for action in named if action.endswith(" 1"))
    observation, _, _, _, info = env.step(f"Go to {name}")
    assert observation.startswith(f"Names end with a number: go to {name} 1")
    assert not info["valid_action"]


def test_upstreams_observations_refuse_as_agentgym_does() -> None:
    env = make("BabyAI-GoToLocalS8N7-v0", max_turns=500, observation_format="upstream")
    env.reset(options={"task_index": 0})
    name = next(action[6:] for action in env.admissible_actions() if action.startswith("go to "))
    env.step(f"go to {name}")
    refusals = {
        "": "No change in state.",
        f"go to {name}": "No change in state.",
        f"go to {name[:-2]}": "The action is not recognized. Please check valid actions.",
        "go to red ball 99": "The action is not recognized. Please check valid actions.",
        "dance": "The action is not recognized. Please check valid actions.",
        "drop": "You cannot drop the object, as you are not carrying anything.",
    }
    for action, answer in refusals.items():
        observation, _, _, _, info = env.step(action)
        assert (observation, info["valid_action"]) == (answer, False)
    observation, _, _, _, info = env.step("check available actions")
    assert observation.startswith("You can take the following actions: turn left, turn right, ")
    assert f"pickup {name}, " in observation
    assert observation.endswith(", check available actions")
    assert info["valid_action"]


def test_a_locked_door_needs_its_key() -> None:
    env = make("BabyAI-UnlockLocalDist-v0", max_turns=500)
    for index in range(20):
        observation, _ = env.reset(options={"task_index": index})
        if "locked door 1" in observation:
            break
    name = next(part.split(",")[0] for part in observation.replace("You see: ", "; ").split("; ") if "locked" in part)
    answer, _, _, _, info = env.step(f"toggle and go through {name}")
    assert answer == f"The door is locked: you need to carry a {name.split()[0]} key."
    assert not info["valid_action"]
    assert f"toggle and go through {name}" not in env.admissible_actions()


def test_the_wrong_thing_loses_a_strict_level() -> None:
    env = make("BabyAI-PickupDistDebug-v0", max_turns=500)
    lost = 0
    for index in range(12):
        env.reset(options={"task_index": index})
        for action in env.admissible_actions():
            if action.startswith("pick up "):
                observation, reward, terminated, truncated, info = env.step(action)
                assert terminated
                assert info["success"] == (reward == 1.0)
                if not info["success"]:
                    lost += 1
                    assert observation.endswith("That was wrong, and the goal is out of reach.")
                    assert env.oracle() is None
                    assert not truncated
                break
    assert lost


def test_upstreams_spellings_are_understood() -> None:
    env = make(max_turns=500)
    env.reset(options={"task_index": 3})
    name = next(action for action in env.admissible_actions() if action.startswith("pick up "))[8:]
    assert env.step(f" PickUp  {name}\n")[4]["valid_action"]
    assert env.step("turn   Left")[4]["valid_action"]


def test_a_moment_comes_back() -> None:
    env = make(**SEQUENCE, max_turns=50)
    env.reset(options={"task_index": 1})
    env.step((env.oracle() or ("",))[0])
    token, key, plan = env.snapshot(), env.state_key(), env.oracle() or ()
    for action in plan:
        env.step(action)
    env.restore(token)
    assert (env.state_key(), env.oracle()) == (key, plan)


def test_the_oracle_demonstrates_and_the_random_agent_wins_less() -> None:
    env = gymnasium.make("textagent/BabyAI-v0", **SEQUENCE)
    demo = demonstrate(env, {"task_index": 0})
    assert demo["success"]
    assert demo["messages"][0]["content"] == env.unwrapped.instructions
    agent = make_agent("admissible-random", env)
    wins = sum(play(env, agent, options={"task_index": i}, seed=i).success for i in range(10))
    assert wins <= 6


def test_what_is_asked_for_is_what_is_measured() -> None:
    env = make(state_size=9, solution_length=4, rows=2, locked_room=True)
    for split in env.tasks.splits:
        complexity = env.tasks.task(split, 0).complexity
        assert (complexity.state_size, complexity.solution_length, complexity.exact) == (9, 4, True)
        assert (complexity.rooms, complexity.clauses) == (4, 1)


def test_open_doors_and_locked_rooms_are_as_asked_for() -> None:
    source = make(rows=2, columns=2, doors_open=True).tasks
    world = source.world(source.task("train", 0))
    assert not any(world.doors)
    source = make(rows=2, columns=2, locked_room=True).tasks
    for index in range(5):
        world = source.world(source.task("train", index))
        assert world.doors.count(2) == 1
        locked = world.things[world.doors.index(2)]
        assert any(thing.kind == "key" and thing.color == locked.color for thing in world.things)


def test_every_clause_kind_is_drawn_and_no_other() -> None:
    for kind in ("goto", "pickup", "open", "putnext"):
        source = make(kinds=(kind,)).tasks
        assert {source.task("train", index).task_type for index in range(4)} == {kind}


def test_no_task_is_in_two_splits() -> None:
    source = make(objects=4).tasks
    worlds = {split: {source.world(source.task(split, i)) for i in range(12)} for split in source.splits}
    assert not worlds["train"] & worlds["test"]
    assert not worlds["train"] & worlds["validation"]


def test_making_a_level_says_nothing_on_standard_output() -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        for seed in range(30):
            begin(LevelSpec(level="GoToSeqS5R2"), seed)
    assert out.getvalue() == ""


def test_a_level_that_cannot_be_drawn_is_said_to_be_infeasible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(construction, "MOST_DRAWS", 1)
    env = make(columns=1, room_size=4, objects=1)
    with pytest.raises(InfeasibleDifficultyError, match="larger room_size or fewer objects"):
        env.reset(options={"task_index": 0})


def test_a_task_is_made_whose_first_seeds_are_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    """One in twelve is, where sixteen rooms of four cells hold 32 objects."""
    drawn = iter(range(100))

    def draw(spec: GridSpec, seed: bytes) -> Any:
        if next(drawn) in (0, 1, 3, 4, 5):
            raise construction.TooManyDrawsError
        return real(spec, seed)

    real = construction.draw
    monkeypatch.setattr(construction, "draw", draw)
    for index in range(3, 6):  # Whichever split the third level belongs to, one of these comes after the last.
        assert make(objects=5, columns=1, room_size=7).tasks.task("train", index)
    assert next(drawn) > 6


def test_a_length_that_is_nowhere_near_is_given_up_with_the_nearest_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "DRAWS_TO_COME_NEAR", 20)
    before = tasks.solve_within
    lengths = []

    def solve_within(*given: Any) -> Any:
        plan = before(*given)
        lengths.append(len(plan.commands))
        return plan

    monkeypatch.setattr(tasks, "solve_within", solve_within)
    env = make(columns=1, objects=2, kinds=("goto",), solution_length=60)
    with pytest.raises(InfeasibleDifficultyError) as raised:
        env.reset(options={"task_index": 0})
    said = f"{len(lengths)} have shorter plans, the longest of {max(lengths)} actions, and 0 have longer ones"
    assert said in str(raised.value)
    assert len(lengths) <= 20
    env = make(rows=2, kinds=("putnext",), clauses=2, solution_length=1)
    monkeypatch.setattr(tasks, "solve_within", lambda *given: None)
    monkeypatch.setattr(tasks, "DRAWS_FOR_A_LENGTH", 9)
    with pytest.raises(InfeasibleDifficultyError, match=r"have longer plans, .* fewer clauses make plans shorter"):
        env.reset(options={"task_index": 0})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"view_size": 6}, "view_size must be odd, got 6"),
        ({"columns": 1, "locked_room": True}, "needs two rooms"),
        ({"columns": 1, "kinds": ("open",)}, "needs a door"),
        ({"columns": 1, "kinds": "putnext", "objects": 1}, "needs a second object or a door: set objects, rows or"),
        ({"columns": 1, "room_size": 4, "objects": 2}, "at most 1 of the 4 cells"),
        ({"columns": 1, "room_size": 5, "objects": 5}, "at most 4, half of the 9 cells"),
        ({"kinds": ("fly",)}, "kinds must be"),
        ({"kinds": ("goto", "goto")}, "each may be named once"),
        ({"room": 3}, "Did you mean 'rooms'|'room' is not an option"),
        ({"text_format": "balrog", "observation_format": "upstream"}, "means text_format"),
        ({"state_size": 3, "objects": 3}, "are the same knob"),
    ],
)
def test_a_wrong_value_is_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        make(**given)


def test_a_wrong_level_is_named() -> None:
    with pytest.raises(InvalidOptionError, match="Did you mean 'GoToRedBall'"):
        make("BabyAI-GoToRedBall-v0", level="GoToRedBal")


def test_the_slug_of_every_spec_is_its_own() -> None:
    specs = [GridSpec(actions=a, objects=o, clauses=c) for a in ("macro", "primitive") for o in (5, 6) for c in (1, 2)]
    assert len({spec.slug for spec in specs}) == len(specs)
