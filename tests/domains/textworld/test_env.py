"""TextWorld as an environment."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
import threading
import warnings
from dataclasses import replace

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from textagent_gym.domains.textworld import store
from textagent_gym.domains.textworld.commands import admissible_commands
from textagent_gym.domains.textworld.planner import Planner
from textagent_gym.domains.textworld.search import ReducedGame
from textagent_gym.domains.textworld.store import StoredGame
from textagent_gym.errors import PlanningBudgetError
from textagent_gym.planning import Plan
from textagent_gym.registration import REGISTRATIONS

SMALL = "textagent/TextWorld-w2-o3-q4-v0"
DENSITIES = (0.0, 0.25, 0.5, 1.0)


def make(**kwargs: object) -> gymnasium.Env[str, str]:
    return gymnasium.make(SMALL, num_tasks=2, **kwargs).unwrapped


@pytest.mark.slow
@pytest.mark.parametrize("name", [r.id for r in REGISTRATIONS if "TextWorld" in r.id])
def test_gymnasiums_checker_finds_nothing_to_warn_of(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(name, num_tasks=1, disable_env_checker=True)
        check_env(env.unwrapped)


def test_no_import_but_gymnasiums_is_needed() -> None:
    code = (
        f"import gymnasium; env = gymnasium.make({SMALL!r}); print(env.reset(options={{'task_index': 0}})[1]['task'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout.strip() == "TextWorld/v1/custom-w2-o3-q4/train/0"


def test_a_win_returns_one_at_every_density_and_density_changes_no_observation() -> None:
    transcripts = []
    for density in DENSITIES:
        env = make(reward_density=density)
        said = [env.reset(options={"task_index": 0})[0]]
        rewards = []
        for action in ("look", *env.oracle()):
            observation, reward, terminated, _, info = env.step(action)
            said.append(observation)
            rewards.append(reward)
        assert terminated
        assert info["success"]
        assert sum(rewards) == 1.0
        transcripts.append(said)
    assert all(said == transcripts[0] for said in transcripts)
    assert not any("score" in text.lower() for text in transcripts[0])


@pytest.mark.parametrize("density", DENSITIES)
def test_a_time_out_after_all_but_the_last_step_returns_less_than_a_win(density: float) -> None:
    # A released environment returned 7.0 here and 1.0 for the win.
    env = make(reward_density=density, max_turns=8)
    env.reset(options={"task_index": 0})
    total = sum(env.step(action)[1] for action in env.oracle()[:-1])
    truncated = False
    while not truncated:
        _, reward, terminated, truncated, info = env.step("inventory")
        total += reward
    assert not terminated
    assert not info["success"]
    assert total < 1.0


def test_eating_what_the_goal_needs_loses() -> None:
    env = gymnasium.make("textagent/TextWorldSimple-v0", num_tasks=1, reward_density="dense").unwrapped
    env.reset(options={"task_index": 0})
    total, action = 0.0, ""
    while not action.startswith("take") or "key" in action:
        action = env.oracle()[0]
        total += env.step(action)[1]
    eat = next(action for action in env.admissible_actions() if action.startswith("eat "))
    observation, reward, terminated, truncated, info = env.step(eat)
    assert "You lost" in observation
    assert (terminated, truncated, info["success"]) == (True, False, False)
    assert total + reward < 1.0
    assert env.oracle() is None


def test_the_goal_is_told_as_much_as_was_asked_for() -> None:
    told = {goal: make(goal=goal).reset(options={"task_index": 0})[0] for goal in ("detailed", "brief", "none")}
    assert told["none"].startswith("-= ")
    assert told["brief"].startswith("Your goal: ")
    assert told["brief"].endswith(told["none"])
    assert told["detailed"].endswith(told["none"])
    assert len(told["detailed"]) > len(told["brief"])
    env = make(goal="none")
    env.reset(options={"task_index": 0})
    assert told["detailed"].split("\n")[0] not in env.step("goal")[0]


def test_the_oracle_solves_from_wherever_the_agent_has_strayed() -> None:
    env = make(max_turns=60)
    for index in (0, 1):
        env.reset(seed=index, options={"task_index": index})
        env.action_space.seed(index)
        for turn in range(10):
            actions = [a for a in env.admissible_actions() if not a.startswith("eat")]
            env.step(actions[turn % len(actions)])
            if env.oracle() == ():
                break
        plan = env.oracle()
        for number, action in enumerate(plan):
            assert len(env.oracle()) == len(plan) - number
            *_, info = env.step(action)
        assert not plan or info["success"]


def test_a_snapshot_brings_back_the_text_too() -> None:
    env = make(max_turns=60)
    env.reset(options={"task_index": 0})
    first, second, *_ = env.oracle()
    env.step(first)
    token = env.snapshot()
    after = env.step(second)
    env.step("look")
    env.restore(token)
    assert env.step(second) == after
    other = make(max_turns=60)
    other.restore(token)
    assert other.step(second) == after


def test_things_in_another_order_are_another_state_and_a_way_back_leads_to_the_same() -> None:
    env = gymnasium.make(
        "textagent/TextWorldCooking-v0", recipe=1, take=1, cook=True, cut=True, open=True, max_turns=50
    ).unwrapped
    told, keys, facts = [], [], []
    for things in (("banana", "knife"), ("knife", "banana")):
        env.reset(options={"task_index": 0})
        first = env.state_key()
        for command in ("open fridge", "examine knife", "close fridge", "inventory", "sing"):
            env.step(command)
        assert env.state_key() == first
        for thing in things:
            env.step(f"take {thing} from counter")
        told.append(env.step("inventory")[0])
        keys.append(env.state_key())
        facts.append(env._engine.state)
    assert facts[0] == facts[1]
    assert told[0] != told[1]
    assert keys[0] != keys[1]


def test_every_admissible_action_is_understood() -> None:
    env = make(infos=("admissible_actions",), max_turns=10_000)
    tried = 0
    for index in (0, 1):
        _, info = env.reset(options={"task_index": index})
        for _ in range(4):
            actions = info["admissible_actions"]
            token = env.snapshot()
            for action in actions:
                env.restore(token)
                *_, info = env.step(action)
                assert info["valid_action"], action
                tried += 1
            if not info["admissible_actions"]:
                break
    assert tried > 20


def test_shaping_follows_the_optimal_distance() -> None:
    env = make(shaping="potential", max_turns=60)
    env.reset(options={"task_index": 0})
    assert env.step("inventory")[1] == 0.0
    assert [env.step(action)[1] for action in env.oracle()] == pytest.approx([0.25] * 4)


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The states from which the planner has searched."""
    states: list[int] = []
    search = ReducedGame.search

    def counted(self: ReducedGame, start: int, budget: int) -> object:
        states.append(start)
        return search(self, start, budget)

    monkeypatch.setattr(ReducedGame, "search", counted)
    store.forget()
    return states


def wander(game: StoredGame, seed: int) -> tuple[list[str], list[int]]:
    """Commands of a random walk that now and then goes towards the goal, and the distance to the goal after each."""
    logic, state, planner, rng = game.logic, game.logic.initial, Planner(game.logic), random.Random(seed)
    commands, distances = [], []
    while len(commands) < 60 and not logic.won(state):
        likely = [command for command in admissible_commands(logic, state) if not command.startswith("eat")]
        command = planner.plan(state).commands[0] if rng.random() < 0.25 else rng.choice(likely)
        actions = [action for action in logic.applicable(state) if action.command == command]
        state = logic.apply(state, max(actions, key=lambda action: action.terms))
        commands.append(command)
        distances.append(planner.distance(state))
    return commands, distances


WALKED = "textagent/TextWorld-w4-o6-q8-v0"


def test_a_sparse_reward_needs_no_search(searches: list[int]) -> None:
    env = make(max_turns=200)
    env.reset(options={"task_index": 0})
    for action in ("look", "inventory", "dance", *env.tasks.world(env.task).solution):
        *_, info = env.step(action)
    assert info["success"]
    assert searches == []


def test_a_sparse_reward_needs_no_search_wherever_the_agent_strays(searches: list[int]) -> None:
    env = gymnasium.make(WALKED, num_tasks=2, max_turns=300).unwrapped
    turns, reached = 0, 0
    for walk in range(4):
        _, info = env.reset(options={"task_index": walk % 2})
        milestones, most = env.task.milestones, 0
        commands, distances = wander(env.tasks.world(env.task), walk)
        searches.clear()
        for command, distance in zip(commands, distances, strict=True):
            before = info["progress"]
            *_, info = env.step(command)
            most = max(most, milestones - distance)
            assert before <= info["progress"] <= most / milestones
            turns += 1
        assert searches == []
        reached += info["progress"] > 0
    assert turns > 60
    assert reached


@pytest.mark.parametrize(
    "asked", [{"reward_density": "dense"}, {"infos": ("oracle_action",)}, {"shaping": "potential"}]
)
def test_progress_is_right_where_somebody_asks_for_distances(asked: dict[str, object]) -> None:
    env = gymnasium.make(WALKED, num_tasks=2, max_turns=300, **asked).unwrapped
    for walk in range(2):
        env.reset(options={"task_index": walk % 2})
        milestones, most = env.task.milestones, 0
        for command, distance in zip(*wander(env.tasks.world(env.task), walk), strict=True):
            *_, info = env.step(command)
            most = max(most, milestones - distance)
            assert info["progress"] == most / milestones


def test_progress_is_right_though_the_planner_is_seldom_asked(searches: list[int]) -> None:
    env = gymnasium.make(WALKED, num_tasks=2, max_turns=300, reward_density="dense").unwrapped
    turns, asked = 0, 0
    for walk in range(4):
        env.reset(options={"task_index": walk % 2})
        milestones, most = env.task.milestones, 0
        commands, distances = wander(env.tasks.world(env.task), walk)
        searches.clear()
        for command, distance in zip(commands, distances, strict=True):
            *_, info = env.step(command)
            most = max(most, milestones - distance)
            assert info["progress"] == most / milestones
            turns += 1
        asked += len(searches)
    assert turns > 60
    assert 0 < asked < turns / 2


def test_what_has_been_played_is_played_again_without_a_search(searches: list[int]) -> None:
    env = gymnasium.make(WALKED, num_tasks=2, max_turns=300, reward_density="dense").unwrapped
    env.reset(options={"task_index": 0})
    commands, _ = wander(env.tasks.world(env.task), 0)
    told = [env.step(command) for command in commands[:30]]
    store.forget()  # With it go the planner's memories.
    searches.clear()
    again = pickle.loads(pickle.dumps(env))
    assert searches == []
    assert again.observation == told[-1][0]
    assert [again.step(command) for command in commands[30:]] == [env.step(command) for command in commands[30:]]


def test_a_plan_says_whether_it_is_proven_and_a_spent_budget_is_not_out_of_reach(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    env = make(infos=("oracle_action",), shaping="potential", max_turns=60)
    _, info = env.reset(options={"task_index": 0})
    assert env.plan() == Plan(env.oracle(), exact=True)
    assert info["oracle_action"] == env.oracle()[0]
    game = env.tasks.world(env.task)
    monkeypatch.setattr(store, "load", lambda *_, **__: replace(game, planner=Planner(game.logic, budget=0)))
    _, info = env.reset(options={"task_index": 0})
    assert info["oracle_action"] is None
    with pytest.raises(PlanningBudgetError):
        env.oracle()
    _, reward, *_, info = env.step("look")
    assert info["oracle_action"] is None
    assert info["progress"] == 0.0
    assert reward <= 0.75  # The lower bound takes the distance's place.


def test_upstream_format_is_textworlds_text() -> None:
    env = make(observation_format="upstream")
    observation, _ = env.reset(options={"task_index": 0})
    assert "$$$$$$$" in observation
    assert env.step("look")[0].rstrip().endswith("/2")


def test_threads_play_beside_each_other() -> None:
    expected = play_solution(make())
    results: list[list[str]] = []
    threads = [threading.Thread(target=lambda: results.append(play_solution(make()))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 8


def play_solution(env: gymnasium.Env[str, str]) -> list[str]:
    said = [env.reset(options={"task_index": 0})[0]]
    for action in env.oracle():
        said.append(env.step(action)[0])
    env.close()
    return said


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_vectors_of_gymnasium_work(mode: str) -> None:
    envs = gymnasium.make_vec(SMALL, num_envs=2, vectorization_mode=mode, num_tasks=2)
    try:
        observations, _ = envs.reset(seed=[0, 1])
        alone = make()
        assert observations[1] == alone.reset(seed=1)[0]
        assert envs.step(("look", "look"))[0][1] == alone.step("look")[0]
    finally:
        envs.close()


def test_a_missing_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['jericho'] = None\n"
        "import gymnasium\n"
        "from textagent_gym.errors import MissingDependencyError\n"
        f"try: gymnasium.make({SMALL!r}, engine='reference')\n"
        "except MissingDependencyError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert 'pip install "textagent-gym[textworld]"' in done.stdout
