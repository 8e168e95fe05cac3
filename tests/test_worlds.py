"""What holds in every world of the suite."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from textagent_gym.domains.alfworld.data import MissingDataError
from textagent_gym.registration import WORLDS

IDS = [registration.id for world in WORLDS for registration in world.ids]
PLAYED: dict[str, dict[str, Any]] = {
    "textagent/TextWorld-w2-o3-q4-v0": {},
    "textagent/TextWorldCooking-v0": {"recipe": 1, "take": 1, "cook": True, "cut": True, "open": True},
    "textagent/TextWorldCoinCollector-v0": {"level": 3},
    "textagent/TextWorldTreasureHunter-v0": {"level": 3},
    "textagent/ALFWorld-v0": {"receptacles": 6, "objects": 8},
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
