"""What Gymnasium's own tests ask of `SyncVectorEnv`, asked of ours, with environments that are not text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from textagent_gym.vector import InProcessVectorEnv, ProcessVectorEnv, env_maker

Vectorise = Callable[..., Any]
SPACES: list[spaces.Space[Any]] = [
    spaces.Discrete(3),
    spaces.Box(-1.0, 1.0, (2, 3), np.float32),
    spaces.MultiBinary(4),
    spaces.MultiDiscrete([2, 3]),
    spaces.Text(5),
    spaces.Dict(text=spaces.Text(3), number=spaces.Discrete(2)),
    spaces.Tuple((spaces.Discrete(2), spaces.Box(0.0, 1.0, (1,), np.float64))),
    spaces.Sequence(spaces.Discrete(4)),
    spaces.OneOf((spaces.Discrete(2), spaces.Text(3))),
]


class SampleEnv(gymnasium.Env[Any, Any]):
    """Shows samples of a space, counts its steps from the seed, and ends after so many."""

    def __init__(self, space: spaces.Space[Any], last: int = 3) -> None:
        self.observation_space = self.action_space = space
        self.last = last
        self.count = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.count = 0
        return self.observation_space.sample(), {"begun": True, **(options or {})}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert action in self.action_space
        self.count += 1
        return self.observation_space.sample(), float(self.count), self.count == self.last, False, {"at": self.count}


def cart_pole() -> gymnasium.Env[Any, Any]:
    return gymnasium.make("CartPole-v1")


def in_two_processes(env_fns: list[Any], **kwargs: Any) -> ProcessVectorEnv:
    return ProcessVectorEnv(env_fns, workers=min(2, len(env_fns)), **kwargs)


@pytest.fixture(params=[InProcessVectorEnv, in_two_processes], ids=["in-process", "process"])
def vectorise(request: pytest.FixtureRequest) -> Iterator[Vectorise]:
    opened: list[Any] = []

    def make(*args: Any, **kwargs: Any) -> Any:
        opened.append(request.param(*args, **kwargs))
        return opened[-1]

    yield make
    for envs in opened:
        envs.close()


def test_the_seeds_are_those_of_the_environments(vectorise: Vectorise) -> None:
    envs = vectorise([cart_pole] * 3)
    assert len(set(envs.np_random_seed)) == 3  # Drawn when first asked for.
    envs.reset(seed=5)
    assert envs.np_random_seed == (5, 6, 7)
    envs.reset()
    assert envs.np_random_seed == (5, 6, 7)
    envs.reset(seed=[9, None, 11])
    assert envs.np_random_seed == (9, 6, 11)


def test_the_random_generators_are_those_of_the_environments(vectorise: Vectorise) -> None:
    envs = vectorise([cart_pole] * 2)
    envs.reset(seed=5)
    theirs = SyncVectorEnv([cart_pole] * 2)
    theirs.reset(seed=5)
    drawn = [generator.random() for generator in envs.np_random]
    assert drawn == [generator.random() for generator in theirs.np_random]


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_numbers_are_batched_as_theirs_in_every_mode(vectorise: Vectorise, mode: AutoresetMode) -> None:
    ours = vectorise([cart_pole] * 3, autoreset_mode=mode)
    theirs = SyncVectorEnv([cart_pole] * 3, autoreset_mode=mode)
    assert ours.metadata["autoreset_mode"] == mode
    assert data_equivalence(ours.reset(seed=1), theirs.reset(seed=1))
    ours.action_space.seed(3)
    ends = 0
    for _ in range(60):
        actions = ours.action_space.sample()
        batch = ours.step(actions)
        assert data_equivalence(batch, theirs.step(actions))
        over = batch[2] | batch[3]
        ends += over.sum()
        if mode is AutoresetMode.DISABLED and over.any():
            again = [envs.reset(seed=2, options={"reset_mask": over.copy()}) for envs in (ours, theirs)]
            assert data_equivalence(*again)
    assert ends > 0


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_observations_and_actions_of_every_space_are_batched(space: spaces.Space[Any]) -> None:
    envs = InProcessVectorEnv([lambda: SampleEnv(space)] * 3, autoreset_mode="SameStep")
    assert envs.observation_space == SyncVectorEnv([lambda: SampleEnv(space)] * 3).observation_space
    assert envs.reset(seed=0)[0] in envs.observation_space
    for _ in range(3):
        observations, *_, infos = envs.step(envs.action_space.sample())
        assert observations in envs.observation_space
    assert all(last in envs.single_observation_space for last in infos["final_obs"])


def test_a_batch_that_was_returned_is_never_changed_afterwards(vectorise: Vectorise) -> None:
    envs = vectorise([cart_pole] * 2)
    observations, _ = envs.reset(seed=0)
    first = observations.copy()
    _, rewards, *_ = envs.step(np.array([0, 1]))
    envs.step(np.array([1, 0]))
    assert np.array_equal(observations, first)
    assert rewards.tolist() == [1.0, 1.0]


def test_a_mask_resets_some_with_seeds_of_their_own(vectorise: Vectorise) -> None:
    envs = vectorise([cart_pole] * 3, autoreset_mode="Disabled")
    begun, _ = envs.reset(seed=[0, 1, 2])
    stepped, *_ = envs.step(np.array([0, 1, 0]))
    again, _ = envs.reset(seed=[0, 1, 0], options={"reset_mask": np.array([True, True, False])})
    assert np.array_equal(again[:2], begun[:2])
    assert np.array_equal(again[2], stepped[2])


@pytest.mark.parametrize(
    ("mask", "error", "why"),
    [
        (np.array([True]), ValueError, r"must have shape `\(2,\)`, got \(1,\)"),
        (np.array([[True, True]]), ValueError, r"must have shape `\(2,\)`, got \(1, 2\)"),
        (np.array([False, False]), ValueError, "at least one True value"),
        (np.array([1, 0]), TypeError, "must have `dtype=np.bool_`, got int64"),
        (np.array([1.0, 0.0]), TypeError, "must have `dtype=np.bool_`, got float64"),
        ([True, False], TypeError, "must be a numpy array"),
    ],
)
def test_a_wrong_mask_is_refused_as_theirs(vectorise: Vectorise, mask: Any, error: type[Exception], why: str) -> None:
    for envs in (vectorise([cart_pole] * 2), SyncVectorEnv([cart_pole] * 2)):
        with pytest.raises(error, match=why):
            envs.reset(options={"reset_mask": mask})


def test_a_wrong_number_of_actions_is_an_error_as_theirs(vectorise: Vectorise) -> None:
    for envs in (vectorise([cart_pole] * 2), SyncVectorEnv([cart_pole] * 2)):
        envs.reset(seed=0)
        for actions in (np.array([0]), np.array([0, 1, 0])):
            with pytest.raises(ValueError):
                envs.step(actions)
        with pytest.raises(TypeError):
            envs.step(0)


def test_the_metadata_of_the_environments_is_left_alone(vectorise: Vectorise) -> None:
    first = vectorise([cart_pole], autoreset_mode="SameStep")
    second = vectorise([cart_pole], autoreset_mode=AutoresetMode.DISABLED)
    assert first.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert second.metadata["autoreset_mode"] is AutoresetMode.DISABLED
    assert all("autoreset_mode" not in metadata for metadata in first.get_attr("metadata"))


def test_attributes_are_set_one_each_or_for_all(vectorise: Vectorise) -> None:
    envs = vectorise([cart_pole] * 3)
    envs.set_attr("gravity", [9.81, 3.72, 1.62])
    assert envs.get_attr("gravity") == (9.81, 3.72, 1.62)
    envs.set_attr("gravity", 8.87)
    assert envs.call("gravity") == (8.87,) * 3
    with pytest.raises(ValueError):
        envs.set_attr("gravity", [9.81, 3.72])


def test_what_is_rendered_comes_one_each(vectorise: Vectorise) -> None:
    envs = vectorise([env_maker("lights/Lights-v0", switches=1, render_mode="ansi")] * 2)
    assert envs.render_mode == "ansi"
    envs.reset(seed=0)
    envs.step(["press red", "sing"])
    assert envs.render() == ("red: on", "Nothing happens.")
