"""Vector environments, beside Gymnasium's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics

from textagent_gym.errors import InvalidOptionError
from textagent_gym.vector import InProcessVectorEnv, ProcessVectorEnv, env_maker, make_vec
from textagent_gym.wrappers import ActionParser, ChatMessages

LIGHTS = "lights/Lights-v0"
KINDS = ("in-process", "process")
ACTIONS = ("press red", "press green", "press blue", "press white", "sing", "press black")


def same(left: Any, right: Any) -> bool:
    """Equality of nested batches, arrays in them included."""
    if isinstance(left, dict):
        return isinstance(right, dict) and left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, np.ndarray):
        return left.dtype == right.dtype and left.shape == right.shape and left.tolist() == right.tolist()
    if isinstance(left, tuple):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    return bool(left == right)


@pytest.fixture(params=KINDS)
def envs(request: pytest.FixtureRequest) -> Iterator[InProcessVectorEnv | ProcessVectorEnv]:
    made = make_vec(LIGHTS, 3, kind=request.param, **({"workers": 2} if request.param == "process" else {}))
    yield made
    made.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_every_batch_is_the_one_that_gymnasium_makes(kind: str, mode: AutoresetMode) -> None:
    kwargs = {"infos": ("admissible_actions", "oracle_action"), "max_turns": 5, "reward_density": "dense"}
    ours = make_vec(LIGHTS, 3, kind=kind, autoreset_mode=mode, **kwargs)
    theirs = SyncVectorEnv([env_maker(LIGHTS, **kwargs)] * 3, autoreset_mode=mode)
    random = np.random.default_rng(0)
    try:
        assert same(ours.reset(seed=4), theirs.reset(seed=4))
        assert ours.observation_space == theirs.observation_space
        assert ours.metadata == theirs.metadata
        ends = 0
        for _ in range(40):
            actions = tuple(str(random.choice(ACTIONS)) for _ in range(3))
            batch = ours.step(actions)
            assert same(batch, theirs.step(actions))
            assert batch[0] in ours.observation_space
            over = batch[2] | batch[3]
            ends += int(over.sum())
            if mode is AutoresetMode.DISABLED and over.any():
                assert same(ours.reset(options={"reset_mask": over}), theirs.reset(options={"reset_mask": over.copy()}))
        assert ends > 5
    finally:
        ours.close()
        theirs.close()


def test_each_environment_may_play_a_task_of_its_own(envs: InProcessVectorEnv | ProcessVectorEnv) -> None:
    _, infos = envs.reset(seed=[5, None, 7], options=[{"task_index": 3}, {"task_index": 1}, None])
    assert list(infos["task"][:2]) == ["Lights/v1/s4/train/3", "Lights/v1/s4/train/1"]
    alone = gymnasium.make(LIGHTS).reset(seed=7)[1]["task"]
    assert infos["task"][2] == alone


def test_a_mask_resets_some_and_leaves_the_callers_options_alone(envs: InProcessVectorEnv | ProcessVectorEnv) -> None:
    envs.reset(seed=0)
    before = envs.step(["sing", "press red", "sing"])[0]
    options = {"reset_mask": np.array([True, False, False]), "task_index": 9}
    after, infos = envs.reset(options=options)
    assert after[1:] == before[1:]
    assert infos["task"][0] == "Lights/v1/s4/train/9"
    assert infos["_task"].tolist() == [True, False, False]
    assert set(options) == {"reset_mask", "task_index"}


@pytest.mark.parametrize("actions", [["press red"] * 2, "abc", ["press red"] * 4])
def test_a_wrong_number_of_actions_is_refused(envs: InProcessVectorEnv | ProcessVectorEnv, actions: Any) -> None:
    envs.reset(seed=0)
    with pytest.raises(InvalidOptionError, match="3"):
        envs.step(actions)


@pytest.mark.parametrize(
    "wrong",
    [
        {"seed": [1, 2]},
        {"options": [None]},
        {"options": {"reset_mask": np.zeros(3, dtype=bool)}},
        {"options": {"reset_mask": np.ones(2, dtype=bool)}},
        {"options": {"taks": 3}},
    ],
)
def test_a_wrong_reset_is_refused(envs: InProcessVectorEnv | ProcessVectorEnv, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidOptionError):
        envs.reset(**wrong)
    assert len(envs.reset(seed=0)[0]) == 3  # And nothing is broken by it.


def test_actions_may_be_an_array(envs: InProcessVectorEnv | ProcessVectorEnv) -> None:
    envs.reset(seed=0)
    assert not envs.step(np.array(["sing", "dance", "laugh"], dtype=object))[4]["valid_action"].any()
    assert not envs.step(np.array(["sing", "dance", "laugh"]))[4]["valid_action"].any()


def test_methods_and_attributes_of_the_environments_are_reached(envs: InProcessVectorEnv | ProcessVectorEnv) -> None:
    envs.reset(seed=0)
    tokens = envs.call("snapshot")
    plans = envs.call("oracle")
    first = envs.step([plan[0] for plan in plans])
    for slot, token in enumerate(tokens):
        assert envs.call("oracle")[slot] == plans[slot][1:]
        assert token.task.id == envs.get_attr("task")[slot].id
    envs.set_attr("turn_penalty", [0.5, 0.25, 0.0])
    assert envs.step(["sing"] * 3)[1].tolist() == [-0.5, -0.25, 0.0]
    assert first[4]["turn"].tolist() == [1, 1, 1]
    envs.set_attr("turn_penalty", 0.125)
    assert envs.step(["sing"] * 3)[1].tolist() == [-0.125] * 3


def test_an_ended_episode_must_be_reset_where_nothing_resets_it() -> None:
    envs = make_vec(LIGHTS, 2, autoreset_mode="Disabled")
    envs.reset(seed=0)
    envs.step(["press black", "sing"])
    with pytest.raises(ResetNeeded, match=r"\[0\].*reset_mask"):
        envs.step(["press red", "press red"])
    envs.reset(options={"reset_mask": np.array([True, False])})
    assert envs.step(["sing", "sing"])[4]["turn"].tolist() == [1, 2]


def test_after_closing_every_call_says_so(envs: InProcessVectorEnv | ProcessVectorEnv) -> None:
    envs.close()
    envs.close()
    with pytest.raises(ClosedEnvironmentError):
        envs.step(["sing"] * 3)


def test_gymnasiums_vector_wrappers_work(envs: InProcessVectorEnv | ProcessVectorEnv) -> None:
    wrapped = DictInfoToList(RecordEpisodeStatistics(envs))
    wrapped.reset(seed=0)
    *_, infos = wrapped.step(["press black"] * 3)
    assert [info["episode"]["l"] for info in infos] == [1, 1, 1]


@pytest.mark.parametrize("kind", KINDS)
def test_wrappers_travel_to_the_environments(kind: str) -> None:
    envs = make_vec(LIGHTS, 2, kind=kind, wrappers=(ActionParser, ChatMessages), switches=2)
    try:
        envs.reset(seed=0)
        observations, *_ = envs.step(["<action>press black</action>"] * 2)
        assert observations in envs.observation_space
        assert [message["content"] for message in observations[0]][1:] == [
            "<action>press black</action>",
            "The fuse blows. It stays dark.",
        ]
    finally:
        envs.close()


def test_any_environment_of_gymnasium_works() -> None:
    ours = make_vec("CartPole-v1", 2)
    theirs = gymnasium.make_vec("CartPole-v1", 2, vectorization_mode="sync")
    assert same(ours.reset(seed=1), theirs.reset(seed=1))
    for _ in range(30):
        assert same(ours.step(np.array([0, 1])), theirs.step(np.array([0, 1])))


@pytest.mark.parametrize(
    "wrong",
    [
        {"num_envs": 0},
        {"kind": "thread"},
        {"workers": 1},
        {"kind": "process", "workers": 3},
        {"kind": "process", "workers": 0},
        {"time_limit": 1.0},
        {"switches": 3, "split": "dev"},
    ],
)
def test_a_wrong_argument_says_what_exists(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidOptionError):
        make_vec(LIGHTS, **{"num_envs": 2, **wrong})


@pytest.mark.parametrize("kind", KINDS)
def test_an_id_may_name_the_module_that_registers_it(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import gymnasium\ngymnasium.register('Elsewhere-v0', 'lights:LightsEnv')\n"
    (tmp_path / f"elsewhere_{kind[:2]}.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(gymnasium.envs.registration, "registry", dict(gymnasium.registry))
    envs = make_vec(f"elsewhere_{kind[:2]}:Elsewhere-v0", 2, kind=kind, switches=2)
    try:
        assert envs.reset(seed=0)[0][0].startswith("Turn on all 2 lights.")
    finally:
        envs.close()
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        make_vec("no_such_module:Elsewhere-v0", 2, kind=kind)


def test_environments_with_different_spaces_are_refused() -> None:
    with pytest.raises(InvalidOptionError, match="equal spaces"):
        InProcessVectorEnv([env_maker(LIGHTS), env_maker("CartPole-v1")])
    with pytest.raises(InvalidOptionError, match="at least one"):
        InProcessVectorEnv([])
