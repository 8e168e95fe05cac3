"""The contract of every environment, shown on the small world of the third-party package."""

from __future__ import annotations

import copy
import pickle
import re
import warnings
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit
from hypothesis import given
from hypothesis import strategies as st
from lights import LightsEnv

from textagent_gym import Complexity, Outcome, Task, TaskSource, TextEnv
from textagent_gym.core import OPTIONAL_INFOS
from textagent_gym.errors import InvalidOptionError, UnknownTaskError, UnsupportedOperationError, WorldBrokenError
from textagent_gym.rewards import MilestoneSchedule

HARD = {"task": "Lights/v1/s6/train/3"}
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)  # Lone surrogates and control characters too.
META = ["", "quit", "restart", "save", "undo", "\x1b[2J", "\x00", "press", "press  red", "\\"]


class Stairs(TaskSource[Task]):
    """One task: climb so many steps."""

    def __init__(self, height: int) -> None:
        self.height = height

    def size(self, split: str) -> int:
        return 1

    def task(self, split: str, index: int) -> Task:
        measured = Complexity(state_size=1, action_size=2.0, solution_length=self.height, exact=True)
        return Task(id="Stairs", split=split, index=index, complexity=measured, milestones=self.height)

    def find(self, task_id: str) -> Task:
        return self.task("train", 0)


class StairsEnv(TextEnv[Task]):
    """As many milestones as one likes."""

    def __init__(self, height: int, **kwargs: Any) -> None:
        super().__init__(Stairs(height), **kwargs)

    def _begin(self, task: Task) -> str:
        self._step = 0
        return "Climb."

    def _act(self, action: str) -> Outcome:
        self._step = max(0, self._step + {"up": 1, "down": -1}.get(action, 0))
        return Outcome(f"Step {self._step}.", self._step, success=self._step == self.task.milestones)


class SlipperyEnv(StairsEnv):
    """A step that was climbed can be lost again."""

    keeps_milestones = False


class BalloonEnv(StairsEnv):
    """Its height is its score."""

    scored = True
    pays = "score"

    def _act(self, action: str) -> Outcome:
        return replace(super()._act(action), milestones=0, score=self._step / self.task.milestones)


class DiceEnv(StairsEnv):
    """Nobody can make it come out the same again."""

    deterministic = False


class FrailEnv(StairsEnv):
    """Breaks when it is told to, and cannot begin as often as it is told."""

    instructions = "Say up or down."

    def __init__(self, broken_beginnings: int = 0, **kwargs: Any) -> None:
        super().__init__(3, **kwargs)
        self.broken_beginnings = broken_beginnings
        self.abandoned = 0

    def _begin(self, task: Task) -> str:
        if self.broken_beginnings:
            self.broken_beginnings -= 1
            raise WorldBrokenError("no stairs")
        return super()._begin(task)

    def _act(self, action: str) -> Outcome:
        if action == "raise":
            raise WorldBrokenError("the stairs have collapsed")
        return replace(super()._act(action), broken="an earthquake" if action == "shake" else "")

    def _abandon(self) -> None:
        self.abandoned += 1


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
    height=st.integers(1, 60),
    density=st.floats(0, 1),
    moves=st.lists(st.sampled_from(["up", "up", "down", "wait"]), max_size=80),
)
def test_only_a_solved_episode_returns_exactly_one_whatever_the_number_of_milestones(
    height: int, density: float, moves: list[str]
) -> None:
    env = StairsEnv(height, reward_density=density, max_turns=200)
    env.reset(seed=0)
    total, solved = 0.0, False
    for move in moves:
        _, reward, solved, _, _ = env.step(move)
        assert reward >= 0.0
        total += reward
        if solved:
            break
        assert total < 1.0
    while not solved:
        _, reward, solved, _, info = env.step("up")
        total += reward
        assert solved == (total == 1.0) == info["success"] == (info["progress"] == 1.0)
    assert total == 1.0


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


def test_density_changes_rewards_and_nothing_else() -> None:
    told = []
    for density in (0.0, 0.3, 1.0):
        env = LightsEnv(6, reward_density=density, infos=("oracle_action", "admissible_actions"))
        steps = [env.reset(options=HARD)]
        for action in ("press red", "press red", *env.oracle()):
            observation, _, terminated, truncated, info = env.step(action)
            steps.append((observation, terminated, truncated, info))
        told.append(steps)
    assert told[0] == told[1] == told[2]


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


@given(actions=st.lists(ANY_TEXT | st.sampled_from(META), max_size=8))
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


def test_what_is_no_string_is_no_action() -> None:
    env = LightsEnv()
    env.reset(seed=0)
    for action in (3, None, ["press red"], b"press red"):
        with pytest.raises(TypeError, match="an action is a string"):
            env.step(action)
    assert env.step(np.str_("press red"))[4]["turn"] == 1


def test_what_a_world_cannot_do_says_so() -> None:
    env = StairsEnv(3)
    env.reset(seed=0)
    for ask in (env.oracle, env.admissible_actions, env.expert, env.state_key):
        with pytest.raises(UnsupportedOperationError, match="StairsEnv"):
            ask()
    assert env.supports == {"snapshot"}  # By replaying.
    assert LightsEnv().supports == {"snapshot", "oracle", "admissible_actions", "state_key"}
    for options in (*({"infos": (name,)} for name in OPTIONAL_INFOS), {"shaping": "potential"}):
        with pytest.raises(InvalidOptionError, match="StairsEnv"):
            StairsEnv(3, **options)


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
        env.reset(options={"task": "Lights/v1/s9/train/1"})
    with pytest.raises(InvalidOptionError):
        env.reset(options={"taks": 1})


def test_after_a_failed_reset_the_env_asks_for_a_reset() -> None:
    env = LightsEnv()
    env.reset(seed=0)
    with pytest.raises(UnknownTaskError):
        env.reset(options={"task_index": -1})
    env.step("press red")  # The episode before goes on: the failed reset has changed nothing.


@pytest.mark.parametrize("action", ["raise", "shake"])
def test_a_world_that_breaks_is_neither_a_loss_nor_an_exception(action: str) -> None:
    env = FrailEnv(reward_density="dense", turn_penalty=0.5)
    env.reset(seed=0)
    env.step("up")
    observation, reward, terminated, truncated, info = env.step(action)
    assert (reward, terminated, truncated, info["success"]) == (0.0, False, True, False)
    assert info["broken"] == {"raise": "the stairs have collapsed", "shake": "an earthquake"}[action]
    assert info["broken"] in observation
    assert info["progress"] == pytest.approx(1 / 3)
    assert env.abandoned == 1
    with pytest.raises(ResetNeeded):
        env.step("up")
    assert "broken" not in env.reset()[1]
    assert "broken" not in env.step("up")[4]


def test_a_world_that_cannot_begin_is_tried_once_more() -> None:
    env = FrailEnv(broken_beginnings=1)
    assert env.reset(seed=0)[0] == "Climb."
    assert env.abandoned == 1
    env.broken_beginnings = 2
    with pytest.raises(WorldBrokenError, match="no stairs"):
        env.reset()
    with pytest.raises(ResetNeeded):
        env.step("up")


def test_how_to_act_stands_apart_from_observations_unless_asked_for() -> None:
    apart, before = FrailEnv(), FrailEnv(instructions="observation")
    observation, info = apart.reset(seed=0)
    assert (observation, info["instructions"]) == ("Climb.", "Say up or down.")
    assert before.reset(seed=0)[0] == "Say up or down.\n\nClimb."
    assert "instructions" not in apart.step("up")[4]
    assert "instructions" not in StairsEnv(3, instructions="observation").reset(seed=0)[1]
    with pytest.raises(InvalidOptionError):
        FrailEnv(instructions="loud")


@given(density=st.floats(0, 1), moves=st.lists(st.sampled_from(["up", "down", "wait"]), max_size=30))
def test_credit_that_can_be_lost_is_taken_back(density: float, moves: list[str]) -> None:
    for env in (SlipperyEnv(5, reward_density=density), BalloonEnv(5, reward_density=density)):
        env.reset(seed=0, options={"max_turns": 100})
        total, ended = 0.0, False
        for move in moves:
            _, reward, ended, _, info = env.step(move)
            total += reward
            if ended:
                break
            height = int(env.observation.removeprefix("Step ").removesuffix("."))
            if isinstance(env, BalloonEnv):
                assert info["score"] == height / 5
                assert total == pytest.approx(density * height / 5)
            else:
                assert info["progress"] == height / 5
                expected = MilestoneSchedule.of(5, density).earned(height, success=False)
                assert total == pytest.approx(expected)
        while not ended:
            _, reward, ended, _, info = env.step("up")
            total += reward
        assert total == 1.0
        assert info["success"]


def test_a_perfect_score_without_success_returns_less_than_a_solved_episode() -> None:
    class HotEnv(BalloonEnv):
        def _act(self, action: str) -> Outcome:
            return Outcome("Higher still.", score=7.0)

    env = HotEnv(3, reward_density="dense", max_turns=1)
    assert env.reset(seed=0)[1]["score"] == 0.0
    _, reward, _, truncated, info = env.step("up")
    assert truncated
    assert info["score"] == 1.0
    assert 0.99 < reward < 1.0
    assert env.supports >= {"score"}


def test_a_budget_and_a_density_can_be_those_of_one_episode() -> None:
    env = LightsEnv(6, max_turns=9)
    env.reset(options={**HARD, "max_turns": "2x", "reward_density": "dense"})
    assert env.max_turns == 2 * env.task.complexity.solution_length
    assert env.step(env.oracle()[0])[1] > 0.0
    env.reset(options=HARD)
    assert env.max_turns == 9
    assert env.step(env.oracle()[0])[1] == 0.0
    for wrong in ({"max_turns": 0}, {"reward_density": 2}, {"task": 5}, {"task": None}, {"task_index": 1.5}):
        with pytest.raises(InvalidOptionError):
            env.reset(options=wrong)
    for wrong in ({"task_index": "3"}, {"task_index": True}, {"task": "x", "task_index": 1}):
        with pytest.raises(InvalidOptionError):
            env.reset(options=wrong)
    assert env.reset(options={"task_index": np.int64(3)})[1]["task"] == "Lights/v1/s6/train/3"


def test_a_multiple_of_an_unknown_length_is_refused_unless_it_is_the_default() -> None:
    class UnmeasuredEnv(StairsEnv):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(3, **kwargs)
            self.tasks.task = lambda split, index: Task(  # type: ignore[method-assign]
                id="Stairs", split=split, index=index, complexity=Complexity(), milestones=3
            )

    env = UnmeasuredEnv()
    env.reset(seed=0)
    assert env.max_turns == 100
    with pytest.raises(InvalidOptionError, match="not known"):
        UnmeasuredEnv(max_turns="2x").reset(seed=0)


@pytest.mark.parametrize("turns", [None, 0, 2, 6])
@pytest.mark.parametrize("copied", [lambda env: pickle.loads(pickle.dumps(env)), copy.deepcopy])
def test_an_environment_pickles_at_every_moment(turns: int | None, copied: Any) -> None:
    env = gymnasium.make("lights/Lights-v0", switches=6, reward_density="dense", max_turns=6)
    if turns is not None:
        env.reset(seed=4)
        for action in ("press red", "press red", "sing", "press green", "press green", "wait")[:turns]:
            env.step(action)
    other = copied(env)
    if turns is not None and turns < 6:
        assert env.step("press blue") == other.step("press blue")
    assert env.reset(seed=1 if turns is None else None) == other.reset(seed=1 if turns is None else None)
    assert env.unwrapped.spec == other.unwrapped.spec


def test_a_world_without_a_snapshot_replays_unless_nobody_can() -> None:
    env = StairsEnv(5, reward_density="dense", max_turns=9)
    env.reset(seed=0)
    env.step("up")
    token = env.snapshot()
    after = env.step("up")
    env.step("down")
    for _ in range(2):
        env.restore(token)
        assert env.step("up") == after
    assert pickle.loads(pickle.dumps(env)).step("down") == env.step("down")
    dice = DiceEnv(5)
    dice.reset(seed=0)
    with pytest.raises(UnsupportedOperationError, match="DiceEnv"):
        dice.snapshot()
    assert "snapshot" not in dice.supports
    with pytest.raises(InvalidOptionError, match="snapshot"):
        env.restore("x")
    lights = LightsEnv()
    lights.reset(seed=0)
    with pytest.raises(UnknownTaskError):
        lights.restore(token)


def test_num_tasks_plays_only_the_first_tasks() -> None:
    env = LightsEnv(num_tasks=2)
    assert {env.reset()[1]["task"] for _ in range(30)} == {"Lights/v1/s4/train/0", "Lights/v1/s4/train/1"}


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
        {"turn_penalty": float("nan")},
        {"invalid_action_penalty": float("nan")},
        {"observation_format": "html"},
        {"render_mode": "rgb_array"},
    ],
)
def test_a_wrong_argument_says_what_exists(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidOptionError):
        LightsEnv(**wrong)


def test_a_message_names_the_bounds_that_there_are() -> None:
    with pytest.raises(InvalidOptionError, match=r"turn_penalty must be a number from 0\.0 up, got -1"):
        LightsEnv(turn_penalty=-1)
    with pytest.raises(InvalidOptionError, match=r"shaping_discount must be a number from 0\.0 to 1\.0, got 2"):
        LightsEnv(shaping_discount=2)


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


@pytest.mark.parametrize(
    ("mode", "kwargs"),
    [("sync", {}), ("async", {"shared_memory": True}), ("async", {"shared_memory": False})],
    ids=["sync", "async", "async without shared memory"],
)
def test_vectors_of_gymnasium_work(mode: str, kwargs: dict[str, bool]) -> None:
    envs = gymnasium.make_vec(
        "lights/Lights-v0", 2, vectorization_mode=mode, vector_kwargs=kwargs, infos=("admissible_actions",)
    )
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


def test_the_oracles_action_in_info_begins_its_plan() -> None:
    env = LightsEnv(6, infos=("oracle_action",))
    _, info = env.reset(options=HARD)
    plan = env.oracle()
    assert len(set(plan)) > 1
    for action in plan:
        assert info["oracle_action"] == action
        info = env.step(action)[4]
    assert info["oracle_action"] is None


def test_a_person_sees_every_observation_also_that_of_a_world_that_broke(capsys: pytest.CaptureFixture[str]) -> None:
    env = FrailEnv(render_mode="human")
    shown = [env.reset(seed=0)[0], env.step("up")[0], env.step("raise")[0]]
    assert capsys.readouterr().out.splitlines() == shown
    text = FrailEnv(render_mode="ansi")
    text.reset(seed=0)
    assert text.render() == "Climb."
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        ("You climb.", TypeError, "StairsEnv._act must return an Outcome, got 'You climb.'"),
        (None, TypeError, "StairsEnv._act must return an Outcome, got None"),
        (Outcome(None), TypeError, "an Outcome whose observation is of type str, got None"),  # type: ignore[arg-type]
        (Outcome("", None), TypeError, "an Outcome whose milestones is of type int, got None"),  # type: ignore[arg-type]
        (Outcome("", broken=3), TypeError, "an Outcome whose broken is of type str, got 3"),  # type: ignore[arg-type]
        (Outcome("", 4), ValueError, "StairsEnv._act counts 4 milestones, and Stairs has 3"),
        (Outcome("", 4, success=True), ValueError, "counts 4 milestones"),
    ],
)
def test_an_author_who_returns_something_else_reads_what_is_expected(
    answer: Any, error: type[Exception], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = StairsEnv(3)
    env.reset()
    monkeypatch.setattr(env, "_act", lambda action: answer)
    with pytest.raises(error, match=re.escape(said)):
        env.step("up")
    monkeypatch.undo()
    assert env.step("up")[0] == "Step 1."


def test_an_author_whose_world_begins_without_a_text_reads_what_is_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    env = StairsEnv(3, instructions="observation")
    monkeypatch.setattr(env, "_begin", lambda task: None)
    with pytest.raises(TypeError, match=re.escape("StairsEnv._begin must return the first observation, a text")):
        env.reset()


def test_an_error_inside_a_world_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    env = StairsEnv(3)
    env.reset()
    monkeypatch.setattr(env, "_advance", lambda before, outcome: [].missing)  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="missing"):
        env.step("up")
