"""Runs, intervals, result files, replays, the page."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from textagent_gym.agents import make_agent
from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation import (
    EpisodeRecord,
    Evaluation,
    Interval,
    Row,
    Transcript,
    begin,
    digest,
    evaluate,
    load,
    mean_interval,
    play,
    replay,
    save,
    share_interval,
    summarize,
    wilson_interval,
    write_report,
)
from textagent_gym.evaluation.episode import count_tasks
from textagent_gym.wrappers import ActionParser, AdmissibleActionHints, InvalidActionPenalty

LIGHTS = "lights/Lights-v0"


def test_wilsons_interval_is_the_published_one() -> None:
    # Newcombe, 1998, "Two-sided confidence intervals for the single proportion", table I, method 3.
    for successes, trials, low, high in ((81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611)):
        interval = wilson_interval(successes, trials)
        assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)


def test_the_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    draw = random.Random(0)
    covered = 0
    for _ in range(400):
        records = []
        for task in range(60):
            chance = draw.random()  # Tasks differ, so their episodes are not independent.
            records += [record(f"t{task}", draw.random() < chance) for _ in range(4)]
        interval = summarize(records).success
        covered += interval.low <= 0.5 <= interval.high
    assert 0.90 <= covered / 400 <= 0.99


class Counting:
    """Plays as `admissible-random` does, and counts its episodes."""

    name = "admissible-random"

    def __init__(self, env: gymnasium.Env[str, str]) -> None:
        self._player = make_agent(self.name, env)
        self.episodes = 0

    def reset(self, seed: int) -> None:
        self.episodes += 1
        self._player.reset(seed)

    def act(self, observation: str, info: dict[str, Any]) -> str | None:
        return self._player.act(observation, info)


def record(task: str, success: bool, **fields: Any) -> EpisodeRecord:
    return EpisodeRecord(task, 0, ("a",), (float(success),), success, success, not success, **fields)


def test_the_interval_of_tasks_that_all_went_alike_is_as_wide_as_that_of_so_many_trials() -> None:
    for success in (True, False):
        clustered = summarize([record(f"t{task}", success) for task in range(3) for _ in range(4)]).success
        once = summarize([record(f"t{task}", success) for task in range(3)]).success
        assert clustered == once
        assert clustered.high - clustered.low > 0.3


def test_the_interval_of_a_single_value_is_not_a_number() -> None:
    assert str(mean_interval([0.5])) == "0.500 [n/a]"


def test_an_episode_whose_world_broke_is_neither_won_nor_lost() -> None:
    episodes = [record("t0", True), record("t1", False, broken="the server is gone")]
    summary = summarize(episodes)
    assert (summary.success.mean, summary.episodes, summary.broken) == (1.0, 1, 1)
    with pytest.raises(ValueError, match="1 whose world broke"):
        summarize(episodes[1:])


def test_the_score_of_worlds_that_have_one_is_summarized() -> None:
    assert summarize([record("t0", True)]).score is None
    score = summarize([record("t0", False, score=0.2), record("t1", True, score=0.8)]).score
    assert score is not None
    assert score.mean == pytest.approx(0.5)


def test_intervals_overlap_if_they_have_a_value_in_common() -> None:
    low, middle, high = Interval(0.1, 0.0, 0.2), Interval(0.3, 0.2, 0.5), Interval(0.7, 0.6, 0.8)
    assert low.overlaps(middle)
    assert middle.overlaps(low)
    assert not low.overlaps(high)
    assert not high.overlaps(low)
    assert Interval(0.5, 0.0, 1.0).overlaps(middle)
    assert middle.overlaps(Interval(0.5, 0.0, 1.0))


def test_a_mean_without_spread_has_no_interval() -> None:
    assert str(mean_interval([2.0] * 5)) == "2.000 [n/a]"


def test_the_interval_of_values_from_0_to_1_stays_there() -> None:
    few = [0.0] * 3 + [1.0] * 2
    assert 0.0 <= share_interval(few).low < share_interval(few).high <= 1.0
    assert share_interval([1.0] * 10) == wilson_interval(10, 10)
    half = share_interval([0.5] * 10)  # Each could be the mean of a 0 and a 1.
    assert half == wilson_interval(5, 10)


def test_the_interval_of_a_return_stays_where_returns_can_be() -> None:
    def interval(success: bool, env: gymnasium.Env[str, str]) -> Interval:
        evaluation = begin(env, "a", tasks=10)
        episodes = [record(f"t{task}", success or task < 6) for task in range(10)]
        return summarize(episodes, unit_returns=evaluation.unit_returns).total_reward

    plain = gymnasium.make(LIGHTS, reward_density=0.5)
    assert interval(True, plain) == wilson_interval(10, 10)
    assert interval(False, plain).high < 1.0
    assert interval(True, AdmissibleActionHints(ActionParser(plain, "react"))) == wilson_interval(10, 10)
    for other in (
        gymnasium.make(LIGHTS, turn_penalty=0.1),
        gymnasium.make(LIGHTS, invalid_action_penalty=0.1),
        gymnasium.make(LIGHTS, shaping="potential"),
        InvalidActionPenalty(plain, 0.1),
        ActionParser(InvalidActionPenalty(plain, 0.1), "react"),
    ):
        assert str(interval(True, other)) == "1.000 [n/a]"


def test_the_oracle_solves_everything_and_random_text_nothing() -> None:
    oracle = evaluate(LIGHTS, "oracle", tasks=20)
    floor = evaluate(LIGHTS, "random", tasks=20)
    assert summarize(oracle.episodes).success.mean == 1.0
    assert summarize(floor.episodes).success.mean == 0.0
    assert summarize(floor.episodes).invalid == 1.0


def test_equal_seeds_give_equal_evaluations() -> None:
    first = evaluate(LIGHTS, "admissible-random", tasks=10, episodes=3, seed=4)
    assert first == evaluate(LIGHTS, "admissible-random", tasks=10, episodes=3, seed=4)
    assert first != evaluate(LIGHTS, "admissible-random", tasks=10, episodes=3, seed=5)


def test_a_result_file_replays(tmp_path: Path) -> None:
    path = tmp_path / "result.jsonl"
    made = evaluate(LIGHTS, "admissible-random", tasks=10, kwargs={"switches": 5, "reward_density": 0.5}, path=path)
    assert load(path) == made
    assert replay(load(path)) == []


@pytest.mark.parametrize(
    ("forge", "said"),
    [
        (lambda r: replace(r, rewards=(*r.rewards[:-1], 1.0)), "earned"),
        (lambda r: replace(r, rewards=(*r.rewards[:-1], float("nan"))), "earned"),
        (lambda r: replace(r, success=True), "success"),
        (lambda r: replace(r, terminated=True, truncated=False), "terminated"),
        (lambda r: replace(r, actions=(*r.actions, "press red"), rewards=(*r.rewards, 0.0)), "ended after"),
        (lambda r: replace(r, actions=r.actions[:-1], rewards=r.rewards[:-1]), "had not ended"),
        (lambda r: replace(r, actions=(), rewards=()), "0 actions"),
        (lambda r: replace(r, invalid_actions=3), "invalid_actions"),
        (lambda r: replace(r, task="Lights/v1/s4/train/2"), "task is"),
        (lambda r: replace(r, task_type="easy"), "task_type"),
        (lambda r: replace(r, score=1.0), "score"),
        (
            lambda r: replace(r, complexity={**r.complexity, "solution_length": 9}),
            "solution_length of the complexity is 2, and 9 is recorded",
        ),
        (lambda r: replace(r, complexity={**r.complexity, "width": None}), "width of the complexity is nothing"),
        (lambda r: replace(r, complexity=None), "of the complexity is 4, and nothing is recorded"),
        (lambda r: replace(r, stopped="context"), "had ended"),
        (lambda r: replace(r, observations=digest(["You have won."])), "read something else"),
        (lambda r: replace(r, observations=""), "read something else"),
        (lambda r: replace(r, seed=7), "seed"),
    ],
)
def test_a_forged_episode_is_found_out(forge: Callable[[EpisodeRecord], EpisodeRecord], said: str) -> None:
    honest = evaluate(LIGHTS, "random", tasks=3)
    episodes = (honest.episodes[0], forge(honest.episodes[1]), honest.episodes[2])
    (mismatch,) = replay(replace(honest, episodes=episodes))
    assert mismatch.episode == 1
    assert said in mismatch.what


@pytest.mark.parametrize(
    "forge",
    [
        lambda e: replace(e, episodes=tuple(r for r in e.episodes if r.success)),  # Without the lost ones.
        lambda e: replace(e, episodes=(*e.episodes, e.episodes[0])),  # One of them twice.
        lambda e: replace(e, episodes=e.episodes[::-1]),
        lambda e: replace(e, episodes=(), tasks=0),
        lambda e: replace(e, split="test"),
        lambda e: replace(e, seed=5),
        lambda e: replace(e, repeats=1),
        lambda e: replace(e, spec={**e.spec, "kwargs": {"switches": 3}}),
        lambda e: replace(e, spec={**e.spec, "kwargs": {"reward_density": 1.0}}),
        lambda e: replace(e, spec={**e.spec, "kwargs": {"max_turns": 2}}),
    ],
)
def test_a_file_from_which_something_is_missing_is_found_out(forge: Callable[[Evaluation], Evaluation]) -> None:
    honest = evaluate(LIGHTS, "admissible-random", tasks=8, episodes=2)
    assert 0 < sum(episode.success for episode in honest.episodes) < 16
    assert replay(forge(honest)) != []


def test_an_episode_that_the_agent_stopped_verifies(tmp_path: Path) -> None:
    class Tired:
        name = "tired"

        def __init__(self, env: object) -> None:
            self.turn = 0

        def reset(self, seed: int) -> None:
            self.turn = 0

        def act(self, observation: str, info: dict[str, Any]) -> str | None:
            self.turn += 1
            return "sing" if self.turn <= 2 else None

    result = evaluate(LIGHTS, Tired, tasks=2, path=tmp_path / "r.jsonl")
    assert [(r.turns, r.stopped, r.terminated, r.truncated) for r in result.episodes] == [
        (2, "gave up", False, False)
    ] * 2
    assert replay(load(tmp_path / "r.jsonl")) == []
    assert summarize(result.episodes).stopped == 2


def test_wrappers_are_in_the_file_and_in_the_replay(tmp_path: Path) -> None:
    env = AdmissibleActionHints(gymnasium.make(LIGHTS, switches=3, split="test"), separator=" | ")
    result = evaluate(env, "oracle", tasks=3, path=tmp_path / "r.jsonl")
    assert result.split == "test"
    assert replay(load(tmp_path / "r.jsonl")) == []
    plain = evaluate(gymnasium.make(LIGHTS, switches=3, split="test"), "oracle", tasks=3)
    assert [r.actions for r in plain.episodes] == [r.actions for r in result.episodes]
    swapped = replace(result, spec=plain.spec)
    assert len(replay(swapped)) == 3  # Nobody read what is said to have been read.


def test_a_wrapper_that_does_not_say_how_it_was_made_is_refused() -> None:
    class Silent(gymnasium.Wrapper[str, str, str, str]):
        pass

    with pytest.raises(InvalidOptionError, match="Silent does not record"):
        evaluate(Silent(gymnasium.make(LIGHTS)), "oracle", tasks=1)


def test_a_file_says_what_is_needed_to_play_it_again() -> None:
    result = evaluate("textagent/ALFWorld-v0", "oracle", tasks=1)
    assert {"python", "textagent-gym", "gymnasium", "textworld"} <= set(result.versions)
    assert ("alfworld" in result.versions) == bool(find_spec("alfworld"))  # Not needed for rooms of one's own.
    assert result.spec["entry_point"].endswith("ALFWorldRoomEnv")
    (episode,) = result.episodes
    assert episode.complexity is not None
    assert episode.complexity["solution_length"] == episode.turns


def test_num_tasks_and_the_tasks_asked_for_are_both_kept_to() -> None:
    assert len(evaluate(LIGHTS, "oracle", tasks=5, kwargs={"num_tasks": 2}).episodes) == 2
    assert len(evaluate(LIGHTS, "oracle", tasks=2, kwargs={"num_tasks": 5}).episodes) == 2


def test_what_is_no_text_environment_says_so() -> None:
    with pytest.raises(InvalidOptionError, match="CartPole-v1 is not a text environment"):
        evaluate("CartPole-v1", "random", tasks=1)


def test_a_stopped_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "result.jsonl"

    def stop(done: int) -> None:
        if done == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(LIGHTS, "admissible-random", tasks=5, episodes=2, path=path, progress=stop)
    assert not path.exists()
    part = tmp_path / "result.jsonl.part"
    part.write_text(part.read_text() + '{"key": "4/1", "task"')  # A kill can cut a line.
    told: list[int] = []
    agents: list[Counting] = []

    def make(env: gymnasium.Env[str, str]) -> Counting:
        agents.append(Counting(env))
        return agents[0]

    again = evaluate(LIGHTS, make, tasks=5, episodes=2, path=path, progress=told.append)
    assert again == evaluate(LIGHTS, "admissible-random", tasks=5, episodes=2)
    assert agents[0].episodes == 3  # What was played before is not played again.
    assert told == list(range(1, 11))
    assert not part.exists()


def test_a_stopped_run_resumes_in_whatever_order_its_settings_are_written(tmp_path: Path) -> None:
    path, kwargs = tmp_path / "result.jsonl", {"max_turns": 4, "switches": 3}

    def stop(done: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(LIGHTS, "oracle", tasks=2, kwargs=kwargs, path=path, progress=stop)
    assert len(evaluate(LIGHTS, "oracle", tasks=2, kwargs=dict(reversed(kwargs.items())), path=path).episodes) == 2


@pytest.mark.parametrize(
    "other",
    [{"seed": 7}, {"episodes": 3}, {"tasks": 6}, {"kwargs": {"switches": 5}}, {"agent": "oracle"}],
    ids=lambda other: next(iter(other)),
)
def test_a_run_with_other_settings_does_not_continue_a_stopped_one(tmp_path: Path, other: dict[str, Any]) -> None:
    settings: dict[str, Any] = {"agent": "admissible-random", "tasks": 5, "episodes": 2, "path": tmp_path / "r.jsonl"}

    def stop(done: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(LIGHTS, **settings, progress=stop)
    with pytest.raises(InvalidOptionError, match="another evaluation"):
        evaluate(LIGHTS, **{**settings, **other})
    assert len(evaluate(LIGHTS, **settings).episodes) == 10


def test_a_complete_file_is_not_made_again_and_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    first = evaluate(LIGHTS, "random", tasks=2, path=str(path))
    written = path.stat().st_mtime_ns
    assert evaluate(LIGHTS, "random", tasks=2, path=path) == first
    assert path.stat().st_mtime_ns == written
    with pytest.raises(InvalidOptionError, match="different: agent"):
        evaluate(LIGHTS, "oracle", tasks=2, path=path)
    path.write_text("something of mine")
    with pytest.raises(InvalidOptionError, match="not overwritten"):
        evaluate(LIGHTS, "random", tasks=2, path=path)
    assert path.read_text() == "something of mine"


@pytest.mark.parametrize(
    ("line", "change", "said"),
    [
        (2, lambda text: "", "line 2 is cut off or damaged"),
        (3, lambda text: text[:-40], "line 3 is cut off or damaged"),
        (2, lambda text: "[]", "line 2 holds no episode"),
        (1, lambda text: "[]", "line 1 does not name this format"),
        (1, lambda text: text.replace("evaluation 4", "evaluation 1"), "line 1 does not name this format"),
        (1, lambda text: text.replace('"seed"', '"sead"'), "line 1 has no 'seed'"),
        (1, lambda text: text.replace('"id": "lights/Lights-v0"', '"id": 3'), "line 1 holds a spec without an id"),
        (3, lambda text: text.replace("{", '{"foo": 1, ', 1), "line 3 has the unknown key 'foo'"),
        (3, lambda text: re.sub(r'"seed": \d+', '"seed": "x"', text), "line 3 holds 'x' as 'seed'"),
        (3, lambda text: re.sub(r'"seed": \d+', '"seed": true', text), "line 3 holds True as 'seed'"),
        (3, lambda text: text.replace('"actions": [', '"actions": [1, '), "an action that is not a text"),
        (3, lambda text: text.replace('"rewards": [', '"rewards": [1, '), "a reward that is not a number"),
        (3, lambda text: text.replace('"rewards": [', '"rewards": [-1.7e308, '), "a reward or a score beyond"),
        (3, lambda text: text.replace('"score": null', '"score": 1e300'), "a reward or a score beyond"),
        (3, lambda text: re.sub('"seconds": [0-9.e-]+', '"seconds": -1.0', text), "line 3 holds -1.0 seconds"),
        (3, lambda text: re.sub('"seconds": [0-9.e-]+', '"seconds": NaN', text), "line 3 holds the number nan"),
        (3, lambda text: text.replace('"tokens": null', '"tokens": -5'), "line 3 holds -5 tokens"),
        (3, lambda text: text.replace('"tokens": null', f'"tokens": {2**53 + 1}'), "tokens: it is from 0 to"),
    ],
)
def test_what_is_wrong_in_a_result_file_is_said_in_words(
    tmp_path: Path, line: int, change: Callable[[str], str], said: str
) -> None:
    path = tmp_path / "r.jsonl"
    evaluate(LIGHTS, "oracle", tasks=3, path=path)
    lines = path.read_text().splitlines()
    lines[line - 1] = change(lines[line - 1])
    path.write_text("\n".join(lines))
    with pytest.raises(InvalidOptionError, match=re.escape(said)):
        load(path)


@pytest.mark.parametrize(
    ("tokens", "cost"), [(-5, -1.0), (2.5, float("inf")), (float("nan"), float("nan")), (10**60, 10**400), ("7", "7")]
)
def test_tokens_and_cost_that_an_agent_cannot_have_are_unknown(tmp_path: Path, tokens: Any, cost: Any) -> None:
    def agent(env: gymnasium.Env[str, str]) -> Any:
        player = make_agent("oracle", env)
        player.tokens, player.cost = tokens, cost  # type: ignore[attr-defined]
        return player

    path = tmp_path / "r.jsonl"
    (episode,) = evaluate(LIGHTS, agent, tasks=1, path=path).episodes
    assert (episode.tokens, episode.cost) == (None, None)
    assert load(path).episodes == (episode,)


@pytest.mark.parametrize("text", ["", "{}", '{"format": "other"}', "\x00\xff"])
def test_a_file_that_is_no_result_says_so(tmp_path: Path, text: str) -> None:
    path = tmp_path / "result.jsonl"
    path.write_text(text)
    with pytest.raises(InvalidOptionError, match="no result file"):
        load(path)


def test_the_page_is_whole_and_escapes_what_agents_say(tmp_path: Path) -> None:
    import struct
    import zlib

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    png = tmp_path / "c.png"
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    png.write_bytes(b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b""))
    rows = [Row("a <b>", summarize([record("t", True), record("u", False)]))]
    attack = "<script>alert(1)</script>"
    page = tmp_path / "page.html"
    write_report(
        page, "T", rows, images=[("Curves", png)], transcripts=[Transcript(attack, "x", ((attack, attack),), attack)]
    )
    text = page.read_text()
    assert "<script" not in text
    assert text.count("&lt;script&gt;") == 4
    assert "data:image/png;base64," in text
    assert "http" not in text
    assert "50.0%" in text


def test_a_result_file_appears_as_a_whole(tmp_path: Path) -> None:
    save(
        replace(begin(gymnasium.make(LIGHTS), "a", tasks=1), episodes=(record("t", True),)),
        tmp_path / "deep" / "r.jsonl",
    )
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["r.jsonl"]
    assert json.loads((tmp_path / "deep" / "r.jsonl").read_text().splitlines()[0])["agent"] == "a"


def test_the_smallest_evaluation_verifies(tmp_path: Path) -> None:
    result = evaluate(LIGHTS, "oracle", tasks=1, path=tmp_path / "r.jsonl")
    assert (result.tasks, result.repeats, len(result.episodes)) == (1, 1, 1)
    assert replay(load(tmp_path / "r.jsonl")) == []


@pytest.mark.parametrize("wrong", [{"tasks": 0}, {"episodes": 0}, {"tasks": -1}])
def test_an_evaluation_of_nothing_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidOptionError, match="at least 1"):
        evaluate(LIGHTS, "oracle", **wrong)


def test_a_turn_is_valid_where_the_environment_does_not_say() -> None:
    class Silent(gymnasium.Wrapper[str, str, str, str]):
        def step(self, action: str) -> Any:
            *rest, info = self.env.step(action)
            return *rest, {key: value for key, value in info.items() if key != "valid_action"}

    env = gymnasium.make(LIGHTS)
    nonsense = make_agent("random", env)
    assert not any(turn.valid for turn in play(env, nonsense).turns)
    assert all(turn.valid for turn in play(Silent(env), nonsense).turns)


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ({"train": 0, "test": 3}, "split 'train' holds no tasks here; choose of: test$"),
        ({"train": 0, "test": None}, "split 'train' holds no tasks here; choose of: test$"),
        ({"train": 0, "test": 0}, "split 'train' holds no tasks here; neither do the others$"),
    ],
)
def test_an_empty_split_names_those_that_are_not(
    sizes: dict[str, int | None], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = gymnasium.make(LIGHTS, split="train")
    monkeypatch.setattr(env.unwrapped.tasks, "splits", tuple(sizes))
    monkeypatch.setattr(env.unwrapped.tasks, "size", sizes.__getitem__)
    with pytest.raises(InvalidOptionError, match=said):
        count_tasks(env, 5)


def test_an_episode_is_played_with_seed_0_unless_another_is_given() -> None:
    env = gymnasium.make(LIGHTS)
    first, second, third = (
        [turn.action for turn in play(env, make_agent("admissible-random", env), **seed).turns]
        for seed in ({}, {"seed": 0}, {"seed": 1})
    )
    assert first == second != third


def test_a_package_that_is_not_installed_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:
        if package == "textagent-gym":
            raise PackageNotFoundError(package)
        return "1.2.3"

    monkeypatch.setattr("textagent_gym.evaluation.records.version", version)
    versions = begin(gymnasium.make(LIGHTS), "a", tasks=1).versions
    assert "textagent-gym" not in versions
    assert versions["gymnasium"] == "1.2.3"
