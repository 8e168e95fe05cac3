"""Rollouts with environments that are slow, broken, hanging or killed."""

from __future__ import annotations

import itertools
import math
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import gymnasium
import pytest

from baselines.envs.pool import InProcessPool, make_pool
from baselines.policy.chat import ChatFormat
from baselines.policy.models import load_policy, make_tokenizer
from baselines.rollout import Collection, Collector, Completion, EpisodeRequest, Prompt, Start, TransformersGenerator
from baselines.rollout.trajectory import Trajectory
from textagent_gym import UnicodeText
from textagent_gym.errors import WorldBrokenError
from textagent_gym.vector import env_maker

WAIT = 60  # Seconds after which a test that waits for something gives up.


class World(gymnasium.Env[str, str]):
    """Two turns per episode; `happens` is called with the task at every reset and step, and may do anything."""

    observation_space = action_space = UnicodeText()

    def __init__(self, happens: Callable[[int, int], dict[str, Any] | None] = lambda task, turn: None) -> None:
        self._happens = happens

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        self._number = (options or {})["task"]
        self._turn = 0
        return f"task {self._number}", self._happens(self._number, 0) or {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self._turn += 1
        info = {"task": str(self._number), **(self._happens(self._number, self._turn) or {})}
        return f"turn {self._turn}", info.pop("reward", 0.5), self._turn == 2, "broken" in info, info


class Silent:
    """A generator that says nothing but the end token, and remembers which slots it was asked for."""

    def __init__(self, end_id: int, slots: int) -> None:
        self.slots = slots
        self.context_length = 1_000
        self.max_action_tokens = 4
        self.calls: list[list[int]] = []
        self._end_id = end_id

    def generate(self, prompts: Sequence[Prompt]) -> list[Completion]:
        self.calls.append([prompt.slot for prompt in prompts])
        return [Completion((self._end_id,), (0.0,)) for _ in prompts]

    def take_weights(self, model: Any) -> None: ...

    def forget(self) -> None: ...

    def close(self) -> None: ...


class Streaming(Silent):
    """The same, continuously: `ends` is asked at each step for each slot that speaks, and says whether it has ended."""

    def __init__(self, end_id: int, slots: int, ends: Callable[[int], bool] = lambda slot: True) -> None:
        super().__init__(end_id, slots)
        self.speaking: list[int] = []
        self._ends = ends

    def submit(self, prompts: Sequence[Prompt]) -> None:
        asked = [prompt.slot for prompt in prompts]
        assert not set(asked) & set(self.speaking)
        self.speaking += asked
        if asked:
            self.calls.append(asked)

    def advance(self) -> list[tuple[int, Completion]]:
        assert self.speaking
        ended = [slot for slot in sorted(self.speaking) if self._ends(slot)]
        self.speaking = [slot for slot in self.speaking if slot not in ended]
        return [(slot, Completion((self._end_id,), (0.0,))) for slot in ended]

    def abandon(self) -> None:
        self.speaking = []


def collector(
    make: Callable[[], World],
    slots: int,
    kind: Any = "in-process",
    generator: Callable[[int, int], Silent] = Silent,
    **kwargs: float,
) -> Collector:
    chat = ChatFormat(make_tokenizer(["task turn 0 1 2"]))
    return Collector(make_pool(make, slots, kind), generator(chat.end_id, slots), chat, **kwargs)


either = pytest.mark.parametrize("generator", [Silent, Streaming])


def requests(count: int, groups: int | None = None) -> list[EpisodeRequest]:
    return [EpisodeRequest(i if groups is None else i % groups, options={"task": i}) for i in range(count)]


def tasks(collection: Collection) -> list[str | None]:
    return [trajectory.task for trajectory in collection.trajectories]


@either
def test_a_slow_environment_stalls_nobody(generator: type[Silent]) -> None:
    others_done = threading.Event()
    waited: list[bool] = []
    played: list[str | None] = []

    def slow(task: int, turn: int) -> None:
        if task == 0 and turn == 1:
            waited.append(others_done.wait(WAIT))

    def progress(trajectory: Trajectory) -> None:
        played.append(trajectory.task)
        if len(played) == 9:
            others_done.set()

    runner = collector(lambda: World(slow), 3, "thread", generator, patience=0.01)
    collection = runner.collect(requests(10), progress)
    runner.close()
    assert waited == [True]
    assert played[-1] == "0"
    assert tasks(collection) == [str(i) for i in range(10)]


def test_batches_do_not_wait_again_for_an_environment_that_was_late() -> None:
    others_done = threading.Event()
    played: list[str | None] = []

    def slow(task: int, turn: int) -> None:
        if task == 0 and turn == 1:
            others_done.wait(WAIT)

    def progress(trajectory: Trajectory) -> None:
        played.append(trajectory.task)
        if len(played) == 29:
            others_done.set()

    patience = 0.5
    runner = collector(lambda: World(slow), 3, "thread", patience=patience)
    started = time.monotonic()
    runner.collect(requests(30), progress)
    seconds = time.monotonic() - started
    runner.close()
    assert played[-1] == "0"
    batches = sum(0 not in slots for slots in runner.generator.calls)
    assert batches >= 20
    assert seconds < 0.5 * batches * patience


class Failing(World):
    """Four turns per episode; some environments take their time for three steps and then do not answer.

    Args:
        ended: event at which they answer after all.
        numbers: numbers of the environments.
        name: function that makes what the observations of an environment begin with, from its number.
        slow: numbers of the environments that are slow.
        pause: seconds of their first three steps.
    """

    def __init__(
        self,
        ended: threading.Event,
        numbers: Iterator[int],
        name: Callable[[int], str],
        *,
        slow: Container[int] = (0,),
        pause: float = 1.0,
    ) -> None:
        super().__init__()
        self._ended = ended
        self._env = next(numbers)
        self._name = name(self._env)
        self._slow = slow
        self._pause = pause
        self._steps = 0

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        if self._env in self._slow:
            if self._steps <= 3:
                time.sleep(self._pause)
            else:
                self._ended.wait(WAIT)
        _, reward, _, _, info = super().step(action)
        return f"{self._name} turn {self._turn}", reward * self._turn, self._turn == 4, False, info


@either
def test_the_last_episode_of_a_slow_environment_goes_on_in_an_idle_one(generator: type[Silent]) -> None:
    played = {}
    for kind in ("thread", "in-process"):
        ended, numbers = threading.Event(), itertools.count(kind == "in-process")
        make = partial(Failing, ended, numbers, lambda _: "task")
        runner = collector(make, 3, kind, generator, patience=0.02)
        began = time.monotonic()
        collection = runner.collect(requests(12))
        assert time.monotonic() - began < WAIT / 2
        ended.set()
        assert tasks(runner.collect(requests(3))) == ["0", "1", "2"]  # In all three environments.
        runner.close()
        assert collection.breaks == []
        played[kind] = collection.trajectories
    assert played["thread"] == played["in-process"]
    assert [turn.reward for turn in played["thread"][0].turns] == [0.5, 1.0, 1.5, 2.0]


def test_an_episode_that_another_environment_plays_otherwise_begins_anew() -> None:
    ended = threading.Event()
    runner = collector(partial(Failing, ended, itertools.count(), str), 3, "thread", patience=0.02)
    collection = runner.collect(requests(12))
    ended.set()
    runner.close()
    assert tasks(collection) == [str(i) for i in range(12)]
    assert [broken.reason for broken in collection.breaks] == [
        "an environment has not answered in time, and another one answers otherwise"
    ]
    assert [[turn.observation for turn in trajectory.turns[1:]] for trajectory in collection.trajectories[:1]] in (
        [[f"{env} turn {turn}" for turn in (1, 2, 3)]] for env in (1, 2)
    )


def test_episodes_that_other_environments_play_otherwise_are_all_played_in_one_group() -> None:
    ended, numbers = threading.Event(), itertools.count()
    make = partial(Failing, ended, numbers, str, slow=range(5))
    runner = collector(make, 10, "thread", patience=0.02)
    threading.Timer(6.0, ended.set).start()
    for _ in range(2):
        collection = runner.collect(requests(20, groups=1))
        assert collection.broken == []
        assert len(collection.trajectories) == 20
    runner.close()


@pytest.mark.parametrize("error", [ZeroDivisionError, TimeoutError, WorldBrokenError])
def test_an_error_of_an_environment_that_nobody_waits_for_is_nobodys(error: type[Exception]) -> None:
    ended, numbers = threading.Event(), itertools.count()

    class Raising(Failing):
        def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
            answer = super().step(action)
            if self._env == 0 and self._steps == 4:
                raise error("too late")
            return answer

    runner = collector(partial(Raising, ended, numbers, lambda _: "task"), 3, "thread", patience=0.02)
    assert len(runner.collect(requests(12)).trajectories) == 12
    ended.set()
    for _ in range(2):
        collection = runner.collect(requests(6))
        assert tasks(collection) == [str(i) for i in range(6)]
        assert collection.breaks == []
    runner.close()


@either
@pytest.mark.parametrize("kind", ["in-process", "thread"])
def test_what_an_error_has_left_behind_is_not_taken_for_a_later_episode(kind: str, generator: type[Silent]) -> None:
    def happens(task: int, turn: int) -> None:
        if task == 1 and turn == 1:
            raise ZeroDivisionError

    runner = collector(lambda: World(happens), 3, kind, generator)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            runner.collect(requests(6))
        later = [EpisodeRequest(i, options={"task": 100 + i}) for i in range(5)]
        assert tasks(runner.collect(later)) == [str(100 + i) for i in range(5)]
    runner.close()


def test_an_environment_whose_resets_are_slow_does_not_help() -> None:
    ended, numbers = threading.Event(), itertools.count()
    resets = Counter[int]()

    class Costly(Failing):
        def reset(self, **kwargs: Any) -> tuple[str, dict[str, Any]]:
            resets[self._env] += 1
            time.sleep(1.5)
            return super().reset(**kwargs)

    ended.set()  # The slow environment answers at once from its fourth step on.
    runner = collector(partial(Costly, ended, numbers, lambda _: "task", pause=0.3), 2, "thread", patience=0.02)
    runner.collect(requests(4))
    runner.close()
    assert sum(resets.values()) == 4


def test_infinite_patience_composes_equal_batches() -> None:
    others_done = threading.Barrier(3)

    def late(task: int, turn: int) -> None:
        if task < 3 and turn == 2 and threading.current_thread() is not threading.main_thread():
            others_done.wait(WAIT)
            time.sleep(0.0 if task else 0.2)  # The first slot is the last to be free.

    calls = []
    for kind in ("in-process", "thread"):
        runner = collector(lambda: World(late), 3, kind, patience=math.inf)
        runner.collect(requests(5))
        runner.close()
        calls.append(runner.generator.calls)
    assert calls[0] == calls[1] == [[0, 1, 2]] * 2 + [[0, 1]] * 2


def test_a_short_action_does_not_wait_for_a_long_one() -> None:
    played: list[str | None] = []
    for kind in ("in-process", "thread"):
        played.clear()
        make = partial(Streaming, ends=lambda slot: slot > 0 or len(played) == 4)
        runner = collector(World, 3, kind, make)
        runner.collect(requests(5), lambda trajectory: played.append(trajectory.task))
        runner.close()
        assert played[-1] == "0"
        if kind == "in-process":
            assert runner.generator.calls == [[0, 1, 2], *[[1, 2]] * 3, [0]]


def test_an_environment_that_hangs_is_given_up_while_an_action_is_sampled() -> None:
    release, hanging, given_up = threading.Event(), threading.Event(), threading.Event()

    def hang(task: int, turn: int) -> None:
        if task == 0 and turn == 1 and not hanging.is_set():
            hanging.set()
            release.wait(WAIT)

    make = partial(Streaming, ends=lambda slot: slot == 0 or given_up.wait(0.01))
    runner = collector(lambda: World(hang), 2, "thread", make, answer_seconds=0.5)
    restart = runner._pool.restart

    def notice(slot: int) -> None:
        given_up.set()
        restart(slot)

    try:
        with patch.object(runner._pool, "restart", notice):
            collection = runner.collect(requests(3))
    finally:
        release.set()
    runner.close()
    assert tasks(collection) == ["0", "1", "2"]
    assert [broken.reason for broken in collection.breaks] == ["no answer within 0.5 seconds"]


def test_an_error_leaves_no_action_that_is_being_sampled() -> None:
    def happens(task: int, turn: int) -> None:
        if task == 1 and turn == 1:
            raise ZeroDivisionError

    steps = itertools.count()
    make = partial(Streaming, ends=lambda slot: slot == 1 or next(steps) > 20)
    runner = collector(lambda: World(happens), 3, "in-process", make)
    with pytest.raises(ZeroDivisionError):
        runner.collect(requests(3))
    assert runner.generator.calls == [[0, 1, 2]]
    assert runner.generator.speaking == []
    later = [EpisodeRequest(i, options={"task": 100 + i}) for i in range(5)]
    assert tasks(runner.collect(later)) == [str(100 + i) for i in range(5)]
    runner.close()


def test_infinite_patience_waits_for_all_actions() -> None:
    runner = collector(World, 3, "in-process", Streaming, patience=math.inf)
    runner.collect(requests(5))
    runner.close()
    assert runner.generator.speaking == []
    assert runner.generator.calls == [[0, 1, 2]] * 2 + [[0, 1]] * 2


@pytest.mark.parametrize("kind", ["in-process", "thread"])
@pytest.mark.parametrize("turn", [1, 2])
@either
def test_a_broken_episode_is_played_again(kind: str, turn: int, generator: type[Silent]) -> None:
    plays: Counter[int] = Counter()

    def twice(task: int, now: int) -> dict[str, Any] | None:
        plays[task] += now == 0
        return {"broken": "the sandbox is gone"} if task == 1 and now == turn and plays[task] < 3 else None

    runner = collector(lambda: World(twice), 2, kind, generator)
    collection = runner.collect(requests(4))
    runner.close()
    assert tasks(collection) == ["0", "1", "2", "3"]
    assert collection.broken == []
    assert plays == {0: 1, 1: 3, 2: 1, 3: 1}


@pytest.mark.parametrize(("cpus", "workers"), [(1, 1), (2, 1), (9, 4), (100, 16)])
def test_training_leaves_half_of_a_ray_cluster_to_the_evaluations(
    monkeypatch: pytest.MonkeyPatch, cpus: int, workers: int
) -> None:
    asked: list[int | None] = []
    monkeypatch.setattr("baselines.envs.pool.cluster_cpus", lambda: cpus)
    monkeypatch.setattr("baselines.envs.pool.ReadyFirstPool", lambda envs, kind, workers: asked.append(workers))
    make_pool(World, 16, "ray")
    make_pool(World, 16, "ray", workers=7)
    assert asked == [workers, 7]


@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("turn", [1, 2])
def test_an_episode_with_a_reward_that_is_not_finite_is_a_broken_one(reward: float, turn: int) -> None:
    plays: Counter[int] = Counter()

    def poison(task: int, now: int) -> dict[str, Any] | None:
        plays[task] += now == 0
        poisoned = task == 2 or (task == 1 and plays[1] == 1)
        return {"reward": reward} if poisoned and now == turn else None

    runner = collector(lambda: World(poison), 1)
    collection = runner.collect(requests(3))
    runner.close()
    assert tasks(collection) == ["0", "1"]
    assert [[turn.reward for turn in each.turns] for each in collection.trajectories] == [[0.5, 0.5]] * 2
    assert [one.reason for one in collection.broken] == [f"the reward is {reward}"]
    assert [one.request.group for one in collection.breaks] == [1, 2, 2, 2, 2]


@pytest.mark.parametrize("kind", ["in-process", "thread"])
def test_a_world_whose_reset_breaks_is_played_again(kind: str) -> None:
    plays: Counter[int] = Counter()

    def once(task: int, turn: int) -> None:
        plays[task] += turn == 0
        if task == 1 and plays[task] == 1:
            raise WorldBrokenError("the server does not answer")

    runner = collector(lambda: World(once), 2, kind)
    assert tasks(runner.collect(requests(3))) == ["0", "1", "2"]
    runner.close()
    assert plays[1] == 2


def test_a_group_that_breaks_again_and_again_is_reported_and_the_others_are_played() -> None:
    plays: Counter[int] = Counter()

    def always(task: int, turn: int) -> dict[str, Any] | None:
        plays[task % 2] += turn == 0
        return {"broken": "no browser"} if task % 2 else None

    runner = collector(lambda: World(always), 2)
    collection = runner.collect(requests(8, groups=2))
    runner.close()
    assert tasks(collection) == ["0", "2", "4", "6"]
    assert [(one.request.options, one.reason) for one in collection.broken] == [
        ({"task": i}, "no browser") for i in (1, 3, 5, 7)
    ]
    assert plays[1] == 4 + 3


@either
def test_the_episode_of_an_environment_that_hangs_is_played_elsewhere(generator: type[Silent]) -> None:
    release, hanging = threading.Event(), threading.Event()

    def hang(task: int, turn: int) -> None:
        if task == 0 and turn == 1 and not hanging.is_set():
            hanging.set()
            release.wait(WAIT)

    runner = collector(lambda: World(hang), 2, "thread", generator, answer_seconds=0.5)
    try:
        assert tasks(runner.collect(requests(3))) == ["0", "1", "2"]
    finally:
        release.set()
    assert tasks(runner.collect(requests(5))) == [str(i) for i in range(5)]
    runner.close()


@pytest.mark.parametrize("method", ["snapshot", "restore"])
def test_the_episode_of_an_environment_that_hangs_in_a_call_is_played_elsewhere(method: str) -> None:
    release, hanging = threading.Event(), threading.Event()

    class Saving(World):
        def snapshot(self) -> int:
            return self._call("snapshot")

        def restore(self, moment: int) -> None:
            self._call("restore")

        def _call(self, name: str) -> int:
            if name == method and self._number == 1 and not hanging.is_set():
                hanging.set()
                release.wait(WAIT)
            return self._turn

    runner = collector(Saving, 2, "thread", answer_seconds=0.5)
    start = Start(0, tuple(runner._chat.opening("task 0")), "task 0")
    asked = [EpisodeRequest(i, options={"task": i}, start=start, saves=True) for i in range(4)]
    began = time.monotonic()
    try:
        collection = runner.collect(asked)
    finally:
        release.set()
    runner.close()
    assert hanging.is_set()
    assert time.monotonic() - began < WAIT / 2
    assert tasks(collection) == ["0", "1", "2", "3"]
    assert [[turn.moment for turn in trajectory.turns] for trajectory in collection.trajectories] == [[0, 1]] * 4


def test_a_killed_worker_costs_nothing_but_its_episode(tmp_path: Path) -> None:
    marker = tmp_path / "died"

    def die(task: int, turn: int) -> None:
        if task == 1 and turn == 1 and not marker.exists():
            marker.touch()
            os._exit(1)

    runner = collector(lambda: World(die), 2, "process")
    collection = runner.collect(requests(4))
    runner.close()
    assert marker.exists()
    assert tasks(collection) == ["0", "1", "2", "3"]
    assert all(len(trajectory.turns) == 2 for trajectory in collection.trajectories)


def test_an_error_that_is_no_broken_world_is_raised() -> None:
    def fault(task: int, turn: int) -> None:
        raise ZeroDivisionError("a fault of the world's author")

    runner = collector(lambda: World(fault), 2, "thread")
    with pytest.raises(ZeroDivisionError, match="author"):
        runner.collect(requests(2))
    runner.close()


@pytest.mark.parametrize("shown", [True, False])
def test_instructions_stand_in_the_system_message_unless_the_observation_holds_them(shown: bool) -> None:
    text = "task 0" if shown else "Say one command."
    runner = collector(lambda: World(lambda task, turn: {"instructions": text}), 1)
    [trajectory] = runner.collect(requests(1)).trajectories
    opening = runner._chat.tokenizer.decode(trajectory.turns[0].prompt)
    assert opening.startswith("<|user|>" if shown else "<|system|>Say one command.<|end|><|user|>")


def test_a_pool_of_processes_plays_the_same_episodes(tiny: Path) -> None:
    model, tokenizer = load_policy(str(tiny))
    chat = ChatFormat(tokenizer)
    make = env_maker("lights/Lights-v0", switches=3, max_turns=4, reward_density="dense")
    asked = [EpisodeRequest(i, seed=i, sampling_seed=i) for i in range(9)]
    played = []
    for pool, patience in (
        (InProcessPool(make, 4), math.inf),
        (make_pool(make, 4, "process", 2), math.inf),
        (make_pool(make, 4, "process", 2), 0.0),
    ):
        generator = TransformersGenerator(model.eval(), chat.end_id, slots=4, max_action_tokens=5)
        runner = Collector(pool, generator, chat, patience=patience)
        played.append(runner.collect(asked).trajectories)
        runner.close()
    assert played[0] == played[1]
    assert [t.ids for t in played[0]] == [t.ids for t in played[2]]


@pytest.mark.parametrize(("turns", "ends"), [(1, "cut"), (2, "terminated"), (2, "truncated")])
def test_an_episode_overflows_only_where_its_environment_has_not_ended_it(turns: int, ends: str) -> None:
    class Ending(World):
        def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
            observation, reward, _, _, info = super().step(action)
            over = self._turn == turns
            return observation, reward, over and ends == "terminated", over and ends == "truncated", info

    runner = collector(Ending, 1)
    [whole] = runner.collect([EpisodeRequest(0, options={"task": 0})]).trajectories
    generator = runner.generator
    assert isinstance(generator, Silent)
    # The context is full as soon as the answer to the last turn has been read.
    read = whole.turns[0].prompt if ends == "cut" else whole.ids
    generator.context_length = generator.max_action_tokens + len(read)
    [trajectory] = runner.collect([EpisodeRequest(0, options={"task": 0})]).trajectories
    runner.close()
    assert len(trajectory.turns) == turns
    assert (trajectory.terminated, trajectory.truncated) == (ends == "terminated", ends == "truncated")
    assert trajectory.overflow == (ends == "cut")
