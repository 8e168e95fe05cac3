"""What holds in every world of the suite."""

from __future__ import annotations

import pickle
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from gymnasium.envs.registration import load_env_creator
from lights import LightsEnv

from textagent_gym.core import Snapshot, TextEnv
from textagent_gym.errors import MissingDataError
from textagent_gym.registration import WORLDS

IDS = [registration.id for world in WORLDS for registration in world.ids]
PLAYED: dict[str, dict[str, Any]] = {
    "textagent/TextWorld-w2-o3-q4-v0": {},
    "textagent/TextWorldCooking-v0": {"recipe": 1, "take": 1, "cook": True, "cut": True, "open": True},
    "textagent/TextWorldCoinCollector-v0": {"level": 3},
    "textagent/TextWorldTreasureHunter-v0": {"level": 3},
    "textagent/ALFWorld-v0": {"receptacles": 6, "objects": 8},
    "textagent/TextCraft-v0": {"depth": 2, "recipes": 4, "branching": (1, 2)},
    "textagent/BabyAI-v0": {"objects": 4},
    "lights/Lights-v0": {},
}


def make(id: str, tmp_path: Path) -> gymnasium.Env[str, str]:
    kwargs: dict[str, Any] = {}
    if id in ("textagent/SWE-bench-v0", "textagent/SWE-Gym-v0"):
        kwargs["rows"] = str(tmp_path)  # A folder is a data set that is read when it is needed.
    try:
        return gymnasium.make(id, **kwargs)
    except MissingDataError as error:
        pytest.skip(str(error))


def test_every_world_that_tells_its_states_apart_is_played() -> None:
    registered: dict[str, Any] = {each.id: load_env_creator(each.entry_point) for world in WORLDS for each in world.ids}
    told = {env.__module__ for env in registered.values() if env._state_key is not TextEnv._state_key}
    assert told == {registered[id].__module__ for id in PLAYED if id in registered}


@pytest.mark.parametrize("id", IDS)
def test_every_world_pickles_before_it_has_begun(id: str, tmp_path: Path) -> None:
    env = make(id, tmp_path)
    other = pickle.loads(pickle.dumps(env))
    assert type(other.unwrapped) is type(env.unwrapped)
    assert other.spec == env.spec
    assert other.unwrapped.tasks.splits == env.unwrapped.tasks.splits
    for each in (env, other):
        each.close()


@pytest.mark.parametrize("id", PLAYED)
def test_a_pickled_episode_goes_on_as_it_would_have(id: str) -> None:
    draw = random.Random(0)
    env = gymnasium.make(id, **PLAYED[id], infos=("admissible_actions",), reward_density="dense", max_turns=30)
    _, info = env.reset(options={"task_index": 0})
    for _ in range(4):
        action = draw.choice(info["admissible_actions"])
        _, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            break
    else:
        other = pickle.loads(pickle.dumps(env))
        for action in ("look", draw.choice(info["admissible_actions"]), "sing"):
            told = env.step(action)
            assert other.step(action) == told
            if told[2] or told[3]:
                break
        other.close()
    env.close()


@pytest.mark.parametrize("id", PLAYED)
def test_the_instructions_name_every_command_that_is_ever_admissible(id: str) -> None:
    draw = random.Random(0)
    env = gymnasium.make(id, **PLAYED[id], infos=("admissible_actions", "oracle_action"), max_turns=40)
    verbs: set[str] = set()
    for index in range(6):
        _, info = env.reset(options={"task_index": index})
        terminated = truncated = False
        while not (terminated or truncated):
            verbs |= {action.split()[0] for action in info["admissible_actions"]}
            action = info["oracle_action"] if draw.random() < 0.5 else None
            action = action or draw.choice(info["admissible_actions"])
            _, _, terminated, truncated, info = env.step(action)
    instructions = set(env.unwrapped.instructions.replace(",", " ").replace(":", " ").replace("`", " ").split())
    assert len(verbs) > (2 if "lights" not in id else 0)
    assert not verbs - instructions
    env.close()


def wander(id: str, density: str, draw: random.Random) -> tuple[TextEnv[Any], dict[str, list[Snapshot]]]:
    """Moments of random episodes of one task, by their state's key, and an environment to take them up in."""
    env = gymnasium.make(id, **PLAYED[id], reward_density=density, max_turns=10_000).unwrapped
    moments: dict[str, list[Snapshot]] = defaultdict(list)
    for _ in range(6):
        env.reset(options={"task_index": 0})
        ended = False
        while not ended and env.snapshot().episode.turn < 30:
            moments[env.state_key()].append(env.snapshot())
            _, _, ended, _, _ = env.step(draw.choice(env.admissible_actions()))
    return env, moments


def future(env: TextEnv[Any], moment: Snapshot, choices: list[float]) -> list[Any]:
    """What follows from a moment: each time all that could be done, what is done, and what comes of it."""
    env.restore(moment)
    told: list[Any] = []
    for choice in choices:
        admissible = env.admissible_actions()
        action = admissible[int(choice * len(admissible))]
        observation, reward, terminated, _, info = env.step(action)
        told.append((admissible, action, observation, round(reward, 9), terminated, info["success"]))
        if terminated:
            break
    return told


@pytest.mark.parametrize("density", ["sparse", "dense"])
@pytest.mark.parametrize("id", PLAYED)
def test_equal_state_keys_mean_equal_futures_and_different_ones_different_futures(id: str, density: str) -> None:
    draw = random.Random(1)
    env, moments = wander(id, density, draw)
    again = [group for group in moments.values() if len(group) > 1]
    assert len(again) >= 3
    for group in draw.sample(again, min(len(again), 15)):
        one, two = draw.sample(group, 2)
        choices = [draw.random() for _ in range(15)]
        assert future(env, one, choices) == future(env, two, choices)
    for _ in range(15):
        one, two = (moments[key][0] for key in draw.sample(sorted(moments), 2))
        for _ in range(30):
            choices = [draw.random() for _ in range(15)]
            if future(env, one, choices) != future(env, two, choices):
                break
        else:
            pytest.fail(f"nothing tells {one.actions} from {two.actions}")
    env.close()


def test_the_key_of_a_state_is_the_same_in_another_process_and_tells_what_was_earned() -> None:
    sparse, dense = (LightsEnv(reward_density=density, max_turns=50) for density in ("sparse", "dense"))
    keys = []
    for env in (sparse, dense):
        env.reset(options={"task_index": 0})
        first = env.state_key()
        for _ in range(2):
            env.step(env.oracle()[0])
            env.step(env.snapshot().actions[-1])  # What was switched on is switched off again.
        keys.append((first, env.state_key()))
    assert keys[0][0] == keys[0][1]  # All that can still be earned is the success.
    assert keys[1][0] != keys[1][1]  # The first milestone will not pay again.
    assert keys[0][0] == keys[1][0] == "224226799ca9b9209ed107420dc2ed77"
