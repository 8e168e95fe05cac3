"""Worlds that break while they are played."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from lights import LightsEnv

from tests.evaluation.results import read
from textagent_gym.errors import WorldBrokenError
from textagent_gym.evaluation import demonstrate, evaluate, load, replay, summarize
from textagent_gym.evaluation.episode import MOST_REPEATS
from textagent_gym.evaluation.records import conversations_of

FRAGILE = "tests/Fragile-v0"


class FragileEnv(LightsEnv):
    """The lights, whose world breaks in the first episodes of chosen tasks.

    Attributes:
        breaks: number of times that the world of a task's index still breaks.
        at_reset: whether it breaks before the first turn.
        episodes: number of episodes begun.
    """

    breaks: dict[int, int] = {}  # noqa: RUF012 (every test sets its own)
    at_reset = False
    episodes = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        type(self).episodes += 1
        observation, info = super().reset(seed=seed, options=options)
        if self.at_reset and self._breaks():
            raise WorldBrokenError("the server does not answer")
        return observation, info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = super().step(action)
        if not self.at_reset and self._breaks():
            return observation, 0.0, False, True, {**info, "success": False, "broken": "the browser has crashed"}
        return observation, reward, terminated, truncated, info

    def _breaks(self) -> bool:
        left = self.breaks.get(self.task.index, 0)
        self.breaks[self.task.index] = left - 1
        return left > 0


@pytest.fixture(params=[False, True], ids=["in a turn", "at reset"])
def fragile(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[FragileEnv]]:
    monkeypatch.setattr(FragileEnv, "at_reset", request.param)
    monkeypatch.setattr(FragileEnv, "breaks", {})
    monkeypatch.setattr(FragileEnv, "episodes", 0)
    gymnasium.register(FRAGILE, entry_point=f"{__name__}:FragileEnv", disable_env_checker=True)
    yield FragileEnv
    del gymnasium.registry[FRAGILE]


def test_a_broken_episode_is_played_again(fragile: type[FragileEnv]) -> None:
    fragile.breaks = {1: MOST_REPEATS}
    result = evaluate(FRAGILE, "oracle", tasks=3)
    assert [episode.success for episode in result.episodes] == [True] * 3
    assert not any(episode.broken for episode in result.episodes)
    assert fragile.episodes == 3 + MOST_REPEATS


def test_what_breaks_again_and_again_is_reported_apart(fragile: type[FragileEnv], tmp_path: Path) -> None:
    fragile.breaks = {1: 100}
    result = evaluate(FRAGILE, "oracle", tasks=3, path=tmp_path / "r.jsonl")
    assert [bool(episode.broken) for episode in result.episodes] == [False, True, False]
    summary = summarize(result.episodes)
    assert (summary.success.mean, summary.episodes, summary.broken) == (1.0, 2, 1)
    assert fragile.episodes == 3 + MOST_REPEATS
    assert load(tmp_path / "r.jsonl") == result
    assert replay(result) == []  # It breaks here, too.
    fragile.breaks = {}
    assert "here 'oracle' plays it to its end" in replay(result)[0].what
    assert replay(replace(result, agent="my-model")) == []


def test_a_run_that_resumes_tries_what_broke_again(fragile: type[FragileEnv], tmp_path: Path) -> None:
    def stop(done: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    fragile.breaks = {1: 100}
    with pytest.raises(KeyboardInterrupt):
        evaluate(FRAGILE, "oracle", tasks=3, path=tmp_path / "r.jsonl", progress=stop)
    fragile.breaks = {}
    result = evaluate(FRAGILE, "oracle", tasks=3, path=tmp_path / "r.jsonl")
    assert [episode.success for episode in result.episodes] == [True] * 3


def test_what_breaks_in_a_replay_could_not_be_checked(fragile: type[FragileEnv]) -> None:
    result = evaluate(FRAGILE, "oracle", tasks=2)
    fragile.breaks = {0: 100}
    (mismatch,) = replay(result)
    assert mismatch.episode == 0
    assert "could not be checked" in mismatch.what


def test_a_demonstration_in_a_broken_world_says_so(fragile: type[FragileEnv]) -> None:
    fragile.breaks = {0: 100}
    env = gymnasium.make(FRAGILE)
    demonstration = demonstrate(env, {"task_index": 0})
    assert demonstration["broken"] in ("the server does not answer", "the browser has crashed")
    assert not demonstration["success"]
    fragile.breaks = {}
    assert "broken" not in demonstrate(env, {"task_index": 0})


def test_broken_episodes_of_a_complete_file_are_played_again_if_asked_and_no_other(
    fragile: type[FragileEnv], tmp_path: Path
) -> None:
    path = tmp_path / "r.jsonl"
    asked: dict[str, Any] = {"tasks": 3, "path": path, "conversations": True}
    fragile.breaks = {1: MOST_REPEATS + 1}
    first = evaluate(FRAGILE, "oracle", **asked)
    assert [bool(episode.broken) for episode in first.episodes] == [False, True, False]
    assert evaluate(FRAGILE, "oracle", **asked) == first
    begun = fragile.episodes
    again = evaluate(FRAGILE, "oracle", **asked, retry_broken=True)
    assert fragile.episodes == begun + 1
    assert again.episodes[::2] == first.episodes[::2]
    assert again.episodes[1].success
    assert replay(load(path), conversations=iter(read(conversations_of(path)))) == []
    assert evaluate(FRAGILE, "oracle", **asked, retry_broken=True) == again
    assert fragile.episodes == begun + 4  # The replay's three.
