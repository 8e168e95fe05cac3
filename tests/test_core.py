"""The contract of every environment, shown on the small world of the third-party package."""

from __future__ import annotations

import pickle
import warnings

import gymnasium
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit
from hypothesis import given, settings
from hypothesis import strategies as st
from lights import LightsEnv

from textagent_gym.errors import InvalidOptionError, UnknownTaskError

HARD = {"task": "Lights/6/train/3"}


def solve(env: LightsEnv) -> list[float]:
    rewards = []
    for action in env.oracle() or ():
        rewards.append(env.step(action)[1])
    return rewards


def test_gymnasium_finds_nothing_to_warn_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make("lights/Lights-v0", disable_env_checker=True).unwrapped)


@given(density=st.floats(0, 1), switches=st.integers(1, 6), index=st.integers(0, 50))
def test_a_solved_episode_returns_exactly_one_at_every_density(density: float, switches: int, index: int) -> None:
    env = LightsEnv(switches, reward_density=density)
    env.reset(options={"task_index": index})
    assert sum(solve(env)) == 1.0


@given(
    density=st.floats(0, 1),
    index=st.integers(0, 20),
    presses=st.lists(st.sampled_from(["red", "green", "blue", "white", "black", "?"]), min_size=12, max_size=12),
)
def test_an_unsolved_episode_returns_less_than_a_solved_one(density: float, index: int, presses: list[str]) -> None:
    env = LightsEnv(4, reward_density=density, max_turns=12)
    env.reset(options={"task_index": index})
    total = 0.0
    for colour in presses:
        _, reward, terminated, truncated, info = env.step(f"press {colour}")
        total += reward
        if terminated or truncated:
            break
    assert info["success"] == (total == 1.0)
    assert total <= 1.0


def test_a_lost_episode_is_terminated_and_no_success() -> None:
    env = LightsEnv(6, reward_density="dense")
    env.reset(options=HARD)
    rewards = [env.step(action)[1] for action in env.oracle()[:-1]]
    _, reward, terminated, truncated, info = env.step("press black")
    assert (terminated, truncated, info["success"]) == (True, False, False)
    assert sum(rewards) + reward < 1.0
    assert info["progress"] < 1.0
    assert env.oracle() is None


def test_a_truncated_episode_is_never_a_success() -> None:
    env = LightsEnv(6, reward_density="dense", max_turns=1)
    env.reset(options=HARD)
    _, _, terminated, truncated, info = env.step("press red")
    assert (terminated, truncated, info["success"]) == (False, True, False)
    assert env.oracle() is not None


def test_solving_on_the_last_turn_is_a_success_and_not_truncated() -> None:
    env = LightsEnv(6, max_turns="1x")
    _, info = env.reset(options=HARD)
    assert env.max_turns == info["complexity"].solution_length
    for action in env.oracle():
        _, _, terminated, truncated, info = env.step(action)
    assert (terminated, truncated, info["success"]) == (True, False, True)


@settings(deadline=None)
@given(actions=st.lists(st.text(max_size=200), max_size=8))
def test_any_string_is_an_action(actions: list[str]) -> None:
    env = LightsEnv(6, max_turns=100)
    env.reset(options=HARD)
    for action in actions:
        observation, _, _, _, info = env.step(action)
        assert observation in env.observation_space
        assert info["valid_action"] is False


def test_a_megabyte_is_an_action() -> None:
    env = LightsEnv()
    env.reset(seed=0)
    assert env.step("x" * 2**20)[0] == "Nothing happens."


def test_steps_out_of_order_say_so() -> None:
    env = LightsEnv(6)
    with pytest.raises(ResetNeeded, match="before the first"):
        env.step("press red")
    env.reset(options=HARD)
    solve(env)
    with pytest.raises(ResetNeeded, match="has ended"):
        env.step("press red")


def test_equal_seeds_give_equal_episodes() -> None:
    first, second = LightsEnv(), LightsEnv()
    for seed in (0, None, None, 7, None):
        assert first.reset(seed=seed) == second.reset(seed=seed)


def test_a_task_is_chosen_by_its_id_or_index() -> None:
    env = LightsEnv(split="test")
    by_index = env.reset(options={"task_index": 4})
    assert env.reset(options={"task": by_index[1]["task"]}) == by_index
    with pytest.raises(UnknownTaskError):
        env.reset(options={"task": "Lights/9/train/1"})
    with pytest.raises(InvalidOptionError):
        env.reset(options={"taks": 1})


def test_after_a_failed_reset_the_env_asks_for_a_reset() -> None:
    env = LightsEnv()
    env.reset(seed=0)
    with pytest.raises(UnknownTaskError):
        env.reset(options={"task_index": -1})
    env.step("press red")  # The episode before goes on: the failed reset has changed nothing.


def test_num_tasks_plays_only_the_first_tasks() -> None:
    env = LightsEnv(num_tasks=2)
    assert {env.reset()[1]["task"] for _ in range(30)} == {"Lights/4/train/0", "Lights/4/train/1"}


def test_a_snapshot_brings_back_everything() -> None:
    env = LightsEnv(6, reward_density="dense", infos=("oracle_action", "admissible_actions"))
    env.reset(options=HARD)
    first = env.oracle()[0]
    env.step(first)
    token = pickle.loads(pickle.dumps(env.snapshot()))
    after = env.step(env.oracle()[0])
    env.step("press black")
    env.restore(token)
    assert env.step(env.oracle()[0]) == after
    other = LightsEnv(6, reward_density="dense", infos=("oracle_action", "admissible_actions"))
    other.restore(token)
    assert other.step(other.oracle()[0]) == after


def test_shaping_changes_no_return_of_a_solved_episode() -> None:
    plain, shaped = LightsEnv(6), LightsEnv(6, shaping="potential")
    for env in (plain, shaped):
        env.reset(options=HARD)
    assert sum(solve(plain)) == pytest.approx(1.0)
    rewards = solve(shaped)
    assert sum(rewards) == pytest.approx(1.0)
    assert rewards == pytest.approx([1 / len(rewards)] * len(rewards))


def test_shaping_pays_for_going_nearer_and_takes_it_back() -> None:
    env = LightsEnv(6, shaping="potential", max_turns=50)
    env.reset(options=HARD)
    action = env.oracle()[0]
    assert env.step(action)[1] > 0
    assert env.step(action)[1] < 0


def test_penalties_are_taken_from_the_turn() -> None:
    env = LightsEnv(6, invalid_action_penalty=0.25, turn_penalty=0.125)
    env.reset(options=HARD)
    assert env.step("sing")[1] == -0.375
    assert env.step("press red")[1] == -0.125


@pytest.mark.parametrize(
    "wrong",
    [
        {"split": "dev"},
        {"num_tasks": 0},
        {"max_turns": "two"},
        {"max_turns": 0},
        {"max_turns": "0.5x"},
        {"max_turns": "nanx"},
        {"reward_density": "thick"},
        {"reward_density": 1.5},
        {"reward_density": float("nan")},
        {"shaping": "yes"},
        {"infos": ("everything",)},
        {"infos": "oracle_action"},
        {"invalid_action_penalty": -1},
        {"turn_penalty": float("inf")},
        {"observation_format": "html"},
        {"render_mode": "rgb_array"},
    ],
)
def test_a_wrong_argument_says_what_exists(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidOptionError):
        LightsEnv(**wrong)


def test_a_spec_survives_json_and_pickling() -> None:
    env = gymnasium.make("lights/Lights-v0", switches=5, reward_density=0.5, infos=["oracle_action"])
    for spec in (EnvSpec.from_json(env.spec.to_json()), pickle.loads(pickle.dumps(env.spec))):
        assert gymnasium.make(spec).reset(seed=3) == env.reset(seed=3)


def test_gymnasiums_wrappers_work() -> None:
    env = RecordEpisodeStatistics(TimeLimit(gymnasium.make("lights/Lights-v0", max_turns=50), 3))
    env.reset(seed=0)
    for _ in range(2):
        env.step("look")
    _, _, _, truncated, info = env.step("look")
    assert truncated
    assert info["episode"]["l"] == 3


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_vectors_of_gymnasium_work(mode: str) -> None:
    envs = gymnasium.make_vec("lights/Lights-v0", num_envs=2, vectorization_mode=mode, infos=("admissible_actions",))
    try:
        observations, _ = envs.reset(seed=5)
        assert len(observations) == 2
        assert observations[0].startswith("Turn on all 4 lights.")
        alone = LightsEnv(infos=("admissible_actions",))
        assert alone.reset(seed=5)[0] == observations[0]
        observations, rewards, *_ = envs.step(("press red", "zürich 🙂"))
        assert observations[0] == alone.step("press red")[0]
        assert observations[1] == "Nothing happens."
        assert rewards.shape == (2,)
    finally:
        envs.close()


def test_an_observation_too_long_for_the_space_is_cut_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    env = LightsEnv()
    env.reset(seed=0)
    monkeypatch.setattr(env, "_describe", lambda: "a" * 50_000 + "b" * 50_000)
    observation = env.step("press red")[0]
    assert observation in env.observation_space
    assert observation[0] == "a"
    assert observation[-1] == "b"
    assert "characters left out" in observation
