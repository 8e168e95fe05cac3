"""ScienceWorld as an environment, with a simulator that is a script."""

from __future__ import annotations

from typing import Any

import gymnasium
import pytest

from textagent_gym.agents import make_agent
from textagent_gym.calls import Call, parse_function, render_function
from textagent_gym.core import TextEnv
from textagent_gym.domains.scienceworld import ScienceWorldEnv, env, gold
from textagent_gym.domains.scienceworld.functions import call_of, command_of
from textagent_gym.domains.scienceworld.gold import GoldPath
from textagent_gym.domains.scienceworld.server import NOT_UNDERSTOOD
from textagent_gym.errors import WorldBrokenError
from textagent_gym.evaluation import play

CALLS = {
    "use thermometer on water": ("use", {"object": "thermometer", "target": "water"}),
    "use lighter": ("use", {"object": "lighter"}),
    "go to kitchen": ("go", {"location": "kitchen"}),
    "move orange on table to blue box": ("move", {"object": "orange on table", "target": "blue box"}),
    "connect door to hallway to agent": ("connect", {"object": "door", "target": "hallway to agent"}),
    "look around": ("look_around", {}),
    "wait1": ("wait1", {}),
    "0": ("choose", {"number": 0}),
}
PATH = ("focus on water", "heat water", "wait")
SCORES = {"focus on water": 30, "heat water": 60, "wait": 100, "focus on door": -100, "stumble": 20}


class Script:
    """A simulator in which each action has a score of its own; `die` breaks it."""

    alive = True

    def load(self, task: str, variation: int, simplifications: str, *, gold: bool = False) -> None:
        self.now, self.ended = 0, False

    def description(self) -> str:
        return "Your task is to boil water."

    def step(self, action: str) -> str:
        if action == "die":
            raise WorldBrokenError("gone")
        self.now = SCORES.get(action, self.now)
        self.ended = abs(self.now) == 100 or action == "give up"
        return "You do it." if action in (*SCORES, "look around", "give up") else NOT_UNDERSTOOD[0]

    def score(self) -> int:
        return self.now

    def completed(self) -> bool:
        return self.ended

    def valid_actions(self) -> list[str]:
        return ["wait", "heat water", "wait"]


@pytest.fixture(autouse=True)
def script(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    given: list[Any] = []
    monkeypatch.setattr(env, "take", Script)
    monkeypatch.setattr(env, "give", given.append)
    monkeypatch.setattr(env, "require", lambda world: None)
    monkeypatch.setattr(env, "gold_path", lambda *task: GoldPath(PATH, 300))
    monkeypatch.setattr(gold, "_recorded", dict)
    return given


def make(**kwargs: Any) -> TextEnv[Any]:
    return gymnasium.make("textagent/ScienceWorld-boil-v0", **kwargs).unwrapped  # type: ignore[return-value]


def returned(world: TextEnv[Any], *actions: str) -> tuple[list[float], dict[str, Any], bool]:
    """Rewards of an episode, its last info and whether the world has ended it."""
    world.reset(options={"task_index": 0})
    rewards, info, terminated = [], {}, False
    for action in actions:
        _, reward, terminated, _, info = world.step(action)
        rewards.append(reward)
    return rewards, info, terminated


@pytest.mark.parametrize(
    ("density", "rewards"), [("sparse", [0, 0, 1]), (0.5, [0.15, 0.15, 0.7]), ("dense", [0.3, 0.3, 0.4])]
)
def test_density_pays_the_changes_of_the_score(density: Any, rewards: list[float]) -> None:
    paid, info, terminated = returned(make(reward_density=density), *PATH)
    assert paid == pytest.approx(rewards)
    assert sum(paid) == 1.0
    assert (info["success"], info["score"], info["progress"], terminated) == (True, 1.0, 1.0, True)


def test_the_wrong_focus_is_a_failure_that_takes_back_what_was_paid() -> None:
    paid, info, terminated = returned(make(reward_density="dense"), "focus on water", "heat water", "focus on door")
    assert paid == pytest.approx([0.3, 0.3, -0.6])
    assert (info["success"], info["score"], terminated) == (False, 0.0, True)


@pytest.mark.parametrize("actions", [("heat water", "give up"), ("give up",)])
def test_only_a_score_of_100_is_success(actions: tuple[str, ...]) -> None:
    paid, info, terminated = returned(make(reward_density="dense"), *actions)
    assert terminated
    assert not info["success"]
    assert sum(paid) == pytest.approx(info["score"])
    assert sum(paid) < 1.0


def test_a_score_that_falls_takes_its_reward_back() -> None:
    paid, info, _ = returned(make(reward_density="dense"), "heat water", "stumble", "look around")
    assert paid == pytest.approx([0.6, -0.4, 0.0])
    assert info["score"] == 0.2


def test_the_first_observation_states_the_goal_and_what_is_no_command_is_not_valid() -> None:
    world = make(infos=("admissible_actions",))
    observation, info = world.reset(options={"task_index": 0})
    assert observation == "Your task is to boil water.\n\nYou do it."
    assert info["admissible_actions"] == ("heat water", "wait")
    assert not world.step("sing")[4]["valid_action"]
    assert world.step("wait")[4]["valid_action"]


def test_a_simulator_that_is_gone_breaks_the_episode_and_the_next_one_has_another(script: list[Any]) -> None:
    world = make()
    world.reset(options={"task_index": 0})
    before = world.server  # type: ignore[attr-defined]
    _, reward, terminated, truncated, info = world.step("die")
    assert (reward, terminated, truncated, info["broken"]) == (0.0, False, True, "gone")
    assert script == [before]
    world.reset(options={"task_index": 1})
    assert world.server is not before  # type: ignore[attr-defined]
    assert not world.step("wait")[4].get("broken")


def test_nothing_starts_before_the_first_reset_and_a_closed_env_gives_its_simulator_back(script: list[Any]) -> None:
    world = ScienceWorldEnv()
    world.close()
    assert script == []
    world.reset(seed=0)
    server = world.server
    world.close()
    world.close()
    assert script == [server]
    world.reset(seed=0)
    del world
    assert len(script) == 2


def test_the_expert_follows_the_gold_path_and_goes_on_with_it_after_other_actions() -> None:
    world = gymnasium.make("textagent/ScienceWorld-boil-v0", reward_density="dense")
    episode = play(world, make_agent("expert", world), options={"task_index": 0})
    assert episode.success
    assert [turn.action for turn in episode.turns] == list(PATH)
    world.reset(options={"task_index": 0})
    expert = world.unwrapped.expert()  # type: ignore[attr-defined]
    expert.observe(None, "")
    expert.observe("look around", "")
    assert expert.action() == PATH[0]
    for action in PATH:
        expert.observe(action, "")
    assert expert.action() == "look around"


def test_a_moment_comes_back_by_replay() -> None:
    world = make(reward_density="dense")
    returned(world, *PATH[:1])
    token = world.snapshot()
    first = world.step("heat water")
    world.step("stumble")
    world.restore(token)
    assert world.step("heat water") == first


def test_a_task_can_be_solved_within_the_default_budget() -> None:
    world = make()
    world.reset(options={"task_index": 0})
    assert world.max_turns == 200


@pytest.mark.parametrize("command", CALLS)
def test_a_call_stands_for_its_command(command: str) -> None:
    name, arguments = CALLS[command]
    assert call_of(command) == Call(name, arguments)
    assert command_of(Call(name, arguments)) == command


def test_what_is_no_command_stands_for_no_call() -> None:
    with pytest.raises(ValueError, match="'dance' is not a command of ScienceWorld"):
        call_of("dance")


def test_functions_do_what_commands_do(monkeypatch: pytest.MonkeyPatch) -> None:
    path = ("focus on water", "look around", "wait")
    monkeypatch.setattr(env, "gold_path", lambda *task: GoldPath(path, 300))
    monkeypatch.setattr(Script, "valid_actions", lambda self: ["wait", "go to kitchen", "wait"])
    functions = make(action_format="functions", reward_density="dense")
    names = {tool.name for tool in functions.tools}
    assert make().tools == ()
    assert all(f'"name": "{name}"' in functions.instructions for name in names)
    functions.reset(options={"task_index": 0})
    assert [parse_function(each, functions.tools).tool for each in functions.admissible_actions()] == ["go", "wait"]
    expert, rewards = functions.expert(), []
    for _ in path:
        action = expert.action()
        expert.observe(action, "")
        rewards.append(functions.step(action)[1])
    assert rewards == pytest.approx([0.3, 0.0, 0.7])
    functions.reset(options={"task_index": 0})
    observation, _, _, _, info = functions.step("wait")
    assert observation.startswith("There is no JSON object")
    assert not info["valid_action"]
    assert functions.step(render_function(Call("wait")))[4]["success"]
