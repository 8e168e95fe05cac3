"""Suites, and playing them."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from enum import Enum
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import pytest

from tests.cli.program import call, run
from tests.evaluation.results import LIGHTS, SUITE, paths
from textagent_gym.agents import make_agent
from textagent_gym.core import TextEnv
from textagent_gym.errors import AgentError, AgentFailedError, InvalidOptionError, MissingDataError, PlanningBudgetError
from textagent_gym.evaluation import (
    SUITES,
    EpisodeRecord,
    Part,
    Suite,
    check_evaluation,
    evaluate,
    evaluate_suite,
    load,
    load_result,
    suite_of,
    summarize,
    verify_result,
)
from textagent_gym.evaluation.episode import MOST_REPEATS
from textagent_gym.files import write_whole
from textagent_gym.registration import REGISTRATIONS

DIGESTS = {
    "textworld-quick-v1": "b788dd74706ed0fe",
    "textworld-core-v1": "66598c7933db6c5d",
    "textworld-state-size-v1": "12cc17f9fa79c909",
    "textworld-action-size-v1": "70656aea2455a95f",
    "textworld-solution-length-v1": "8c42c0234ac97dfb",
    "textworld-reward-density-v1": "d1892fa6a9a779e1",
    "textworld-harder-v1": "9992fab322caa117",
    "textworld-sizes-v1": "d953f7aeba13429d",
    "textworld-tiny-v1": "19bf6cf86e0ff470",
    "alfworld-quick-v1": "c9e89493909a9049",
    "alfworld-core-v1": "8b01dfd2381273f8",
    "alfworld-official-v1": "1a072e6bb0701fa1",
    "alfworld-official-seen-v1": "af6aedc9c72bd179",
    "alfworld-state-size-v1": "a3342e4174dc6036",
    "alfworld-action-size-v1": "ff1e2636f23cc095",
    "alfworld-solution-length-v1": "2f8b0639ccc17d58",
    "alfworld-reward-density-v1": "e58f3eab724783b5",
    "alfworld-harder-v1": "f07614145e27be07",
    "textcraft-quick-v2": "9bce51f940ec17f4",
    "textcraft-core-v2": "cfbd752f23e51c4a",
    "textcraft-minecraft-v1": "ebb58581808c8329",
    "textcraft-agentgym-v1": "0f46cc2bc371d607",
    "textcraft-agentgym-v2": "d609a4e1975553be",
    "textcraft-state-size-v2": "3ad78ce7b9d9ee04",
    "textcraft-action-size-v2": "803169668e6f1828",
    "textcraft-solution-length-v2": "b43699097c34417b",
    "textcraft-reward-density-v1": "b16483288de1fa7e",
    "textcraft-harder-v2": "f178883e786dcee8",
    "textcraft-tiny-v2": "c84f636878ccaac3",
    "babyai-quick-v1": "81ff91584554ea04",
    "babyai-tiny-v1": "710b6aa5a0b5a76a",
    "babyai-core-v2": "9ea16012e77cff66",
    "babyai-agentgym-v1": "300825cd4ab71d7a",
    "babyai-agentgym-v2": "36a357708b9ea929",
    "babyai-state-size-v1": "98bf51dab2189ba5",
    "babyai-action-size-v1": "b1fa83ce1ff359dd",
    "babyai-solution-length-v2": "4f600988a10324b8",
    "babyai-reward-density-v1": "4abbb252681fba0e",
    "babyai-harder-v1": "ac763ba63683d90a",
    "scienceworld-quick-v1": "b40a6e2a1e998610",
    "scienceworld-core-v1": "3ffe3fed0d51467f",
    "scienceworld-agentgym-v1": "2ec3db98225b1f48",
    "scienceworld-state-size-v1": "1a42ee8634d45546",
    "scienceworld-action-size-v1": "b469d4373e35d70c",
    "scienceworld-solution-length-v1": "0976723acd5afcb2",
    "scienceworld-reward-density-v1": "2715e94f866ce54d",
    "scienceworld-harder-v1": "8f7dc26aaaa381ae",
    "scienceworld-tiny-v1": "78c0effdbb1f9e94",
    "swe-quick-v1": "0c44c241844aa9d0",
    "swe-core-v2": "ad9277aa1e9e4a8f",
    "swe-state-size-v1": "19cd636d43fc6689",
    "swe-action-size-v1": "b8035fc6629a188b",
    "swe-shell-v1": "1196e997e483b42a",
    "swe-solution-length-v1": "c756a111459569ac",
    "swe-reward-density-v1": "d6372fbd4f49ee36",
    "swe-harder-v1": "eb60252458a12c99",
}
"""Whoever changes a published suite sees it here: results of two suites of one name could not be compared."""


@pytest.fixture(autouse=True)
def _suite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SUITES, SUITE.name, SUITE)


def test_a_published_suite_never_changes() -> None:
    assert {name: suite.digest[:16] for name, suite in SUITES.items() if name != SUITE.name} == DIGESTS


@pytest.mark.parametrize("world", ["textcraft", "babyai"])
def test_the_second_protocol_of_agentgym_rl_is_the_first_in_agentgyms_own_text(world: str) -> None:
    first, second = (SUITES[f"{world}-agentgym-v{version}"].parts for version in (1, 2))
    assert [dataclasses.replace(part, kwargs={}) for part in second] == list(first)
    assert all(part.kwargs == {"observation_format": "upstream"} for part in second)
    observation, _ = second[0].make().reset(seed=1)
    assert observation.startswith({"textcraft": "Crafting commands:", "babyai": "Your goal: "}[world])


def test_a_summary_that_is_missing_is_written_anew_and_nothing_is_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate_suite(SUITE, "oracle", tmp_path / "result")
    before = (tmp_path / "result" / "summary.json").read_bytes()
    (tmp_path / "result" / "summary.json").unlink()
    monkeypatch.setattr(TextEnv, "step", None)
    evaluate_suite(SUITE, "oracle", tmp_path / "result")
    assert (tmp_path / "result" / "summary.json").read_bytes() == before


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(Part)])
def test_whatever_decides_what_is_played_is_in_the_digest(field: str) -> None:
    other: dict[str, Any] = {"kwargs": {"switches": 2}, "max_turns": 7, "tasks": 9, "episodes": 9, "seed": 9}
    part = dataclasses.replace(SUITE.parts[0], **{field: other.get(field, "other")})
    assert dataclasses.replace(SUITE, parts=(part, *SUITE.parts[1:])).digest != SUITE.digest
    assert dataclasses.replace(SUITE, name="lights-test-v2").digest != SUITE.digest


def test_a_suite_plays_every_size_of_textworld_that_has_an_id_of_its_own() -> None:
    sizes = {each.id for each in REGISTRATIONS if "/TextWorld-w" in each.id or "/TextWorldSimple-" in each.id}
    assert len(sizes) == 28
    assert {part.env for part in suite_of("textworld-sizes-v1").parts} == sizes


def test_suites_play_worlds_that_exist_for_as_many_turns_as_they_say() -> None:
    ids = {registration.id for registration in REGISTRATIONS} | {LIGHTS}
    for suite in SUITES.values():
        assert len({part.name for part in suite.parts}) == len(suite.parts)
        for part in suite.parts:
            assert part.env in ids
            if "official" not in part.env:  # Its data are not everywhere.
                env = part.make()
                assert env.unwrapped.split == part.split != "train"  # type: ignore[attr-defined]
                size = env.unwrapped.tasks.size(part.split)  # type: ignore[attr-defined]
                assert size is None or size >= part.tasks


def test_an_unknown_suite_names_the_closest() -> None:
    with pytest.raises(InvalidOptionError, match="Did you mean: alfworld-quick-v1"):
        suite_of("alfworld-quick")


def test_the_result_of_a_suite_is_a_folder(tmp_path: Path) -> None:
    result = evaluate_suite(SUITE, "oracle", tmp_path / "r")
    assert {path.name for path in (tmp_path / "r").iterdir()} == {
        *("result.json", "summary.json", "four.jsonl", "four.conversations.jsonl.gz"),
        *("three.jsonl", "three.conversations.jsonl.gz"),
    }
    assert len(result.episodes) == SUITE.episodes == 11
    assert load_result(tmp_path / "r") == result
    numbers = json.loads((tmp_path / "r" / "summary.json").read_text())
    assert numbers["all"]["success"][0] == numbers["parts"]["three"]["success"][0] == 1.0
    assert numbers["all"]["asked"] == 11


class Stop(KeyboardInterrupt):
    pass


def stop_after(count: int) -> Any:
    seen: list[EpisodeRecord] = []

    def ended(episode: EpisodeRecord) -> None:
        seen.append(episode)
        if len(seen) == count:
            raise Stop

    return ended


@pytest.mark.parametrize("count", [1, 5, 8, 9])
def test_a_suite_that_was_stopped_resumes(tmp_path: Path, count: int) -> None:
    whole = evaluate_suite(SUITE, "admissible-random", tmp_path / "whole")
    with pytest.raises(Stop):
        evaluate_suite(SUITE, "admissible-random", tmp_path / "r", ended=stop_after(count))
    with pytest.raises(InvalidOptionError, match="different: agent"):
        evaluate_suite(SUITE, "oracle", tmp_path / "r")
    seen: list[EpisodeRecord] = []
    assert evaluate_suite(SUITE, "admissible-random", tmp_path / "r", ended=seen.append) == whole
    assert len(seen) == 11
    assert verify_result(tmp_path / "r").mismatches == ()
    first, second = paths(tmp_path / "whole")[1], paths(tmp_path / "r")[1]
    assert first.read_bytes() == second.read_bytes()


def test_a_result_is_not_overwritten_and_not_mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate_suite(SUITE, "random", tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    evaluate_suite(SUITE, "random", tmp_path)
    with pytest.raises(InvalidOptionError, match="different: agent"):
        evaluate_suite(SUITE, "oracle", tmp_path)
    monkeypatch.setitem(SUITES, SUITE.name, dataclasses.replace(SUITE, parts=SUITE.parts[:1]))
    with pytest.raises(InvalidOptionError, match="different: digest"):
        evaluate_suite(SUITES[SUITE.name], "random", tmp_path)
    with pytest.raises(InvalidOptionError, match="is of another lights-test-v1"):
        verify_result(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InvalidOptionError, match="something else"):
        evaluate_suite(SUITE, "random", tmp_path)
    with pytest.raises(InvalidOptionError, match="is a file"):
        evaluate_suite(SUITE, "random", tmp_path / "mine.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_two_programs_do_not_write_one_result(tmp_path: Path) -> None:
    def again(episode: EpisodeRecord) -> None:
        with pytest.raises(InvalidOptionError, match="another program"):
            evaluate_suite(SUITE, "random", tmp_path)

    evaluate_suite(SUITE, "random", tmp_path, ended=again)


def test_two_programs_that_begin_at_once_do_not_write_one_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def play() -> None:
        with pytest.raises(InvalidOptionError) as error:
            evaluate_suite(SUITE, "random", tmp_path)
        said.append(str(error.value))

    other = threading.Thread(target=play)

    def write(path: Path, text: str) -> None:
        if not other.ident:
            other.start()
            other.join(1.0)
        write_whole(path, text)

    monkeypatch.setattr("textagent_gym.evaluation.results.write_whole", write)
    evaluate_suite(SUITE, "random", tmp_path, ended=lambda _: other.join())
    assert said == [f"another program is writing {tmp_path}"]
    assert verify_result(tmp_path).mismatches == ()


def test_a_split_that_is_too_small_is_refused_before_anything_is_played(tmp_path: Path) -> None:
    part = Part(name="few", env="textagent/SWE-v0", kwargs={"tools": "edit"}, tasks=500)
    with pytest.raises(MissingDataError, match="part few has 500 tasks"):
        evaluate_suite(Suite(name="s", summary="", parts=(part,)), "oracle", tmp_path / "r")
    assert not (tmp_path / "r").exists()


class Waiting:
    """Plays like `admissible-random`, and waits."""

    name = "waiting"
    waits = True
    threads: set[int] = set()  # noqa: RUF012 (every test clears it)

    def __init__(self, env: gymnasium.Env[str, str]) -> None:
        self._player = make_agent("admissible-random", env)

    def reset(self, seed: int) -> None:
        self._player.reset(seed)

    def act(self, observation: str, info: dict[str, Any]) -> str | None:
        import threading

        self.threads.add(threading.get_ident())
        time.sleep(0.001)
        return self._player.act(observation, info)


def without_seconds(path: Path) -> list[Any]:
    lines = [json.loads(line) for line in path.read_text().splitlines()[:-1]]
    return [{name: value for name, value in line.items() if name != "seconds"} for line in lines]


@pytest.mark.parametrize("agent", ["admissible-random", Waiting], ids=["processes", "threads"])
def test_a_result_is_the_same_for_every_number_of_workers(tmp_path: Path, agent: Any) -> None:
    Waiting.threads.clear()
    evaluate(LIGHTS, agent, tasks=10, episodes=2, path=tmp_path / "1.jsonl", conversations=True)
    evaluate(LIGHTS, agent, tasks=10, episodes=2, path=tmp_path / "3.jsonl", conversations=True, workers=3)
    assert without_seconds(tmp_path / "1.jsonl") == without_seconds(tmp_path / "3.jsonl")
    one, three = (tmp_path / f"{name}.conversations.jsonl.gz" for name in "13")
    assert one.read_bytes() == three.read_bytes()
    assert len(Waiting.threads) in ((0,) if agent == "admissible-random" else (3, 4))
    with pytest.raises(InvalidOptionError, match="workers must be at least 1"):
        evaluate(LIGHTS, agent, tasks=1, workers=0)


class Deadly:
    """Ends its process in the second task, as long as a file is there, which loses a line each time."""

    name = "deadly"

    def __init__(self, env: gymnasium.Env[str, str]) -> None:
        self._env = env
        self._player = make_agent("oracle", env)

    def reset(self, seed: int) -> None:
        lives = Path(os.environ["DEADLY"])
        if self._env.unwrapped.task.index == 1 and lives.stat().st_size:  # type: ignore[attr-defined]
            lives.write_bytes(lives.read_bytes()[1:])
            os._exit(1)
        self._player.reset(seed)

    def act(self, observation: str, info: dict[str, Any]) -> str | None:
        return self._player.act(observation, info)


@pytest.mark.parametrize(("lives", "broken"), [(2, []), (100, [1])], ids=["plays again", "gives up"])
def test_a_process_that_dies_blames_its_own_episode_alone(
    lives: int, broken: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lives").write_bytes(b"x" * lives)
    monkeypatch.setenv("DEADLY", str(tmp_path / "lives"))
    result = evaluate(LIGHTS, Deadly, tasks=4, workers=2)
    assert [number for number, episode in enumerate(result.episodes) if episode.broken] == broken
    assert all(episode.success for episode in result.episodes if not episode.broken)
    assert [episode.task for episode in result.episodes] == [
        episode.task for episode in evaluate(LIGHTS, "oracle", tasks=4).episodes
    ]
    assert lives - (tmp_path / "lives").stat().st_size <= MOST_REPEATS + 2


class Unreachable:
    """Its server answers in no episode of the second task, and elsewhere at the second attempt."""

    name = "unreachable"

    def __init__(self, env: gymnasium.Env[str, str]) -> None:
        self._env = env
        self._player = make_agent("oracle", env)
        self._calls = 0
        self.tokens = 0

    def reset(self, seed: int) -> None:
        self._calls += 1
        self.tokens = 0
        self._player.reset(seed)

    def act(self, observation: str, info: dict[str, Any]) -> str | None:
        if self._calls % 2 or self._env.unwrapped.task.index == 1:  # type: ignore[attr-defined]
            raise AgentError("the server does not answer")
        self.tokens += 5
        return self._player.act(observation, info)


def test_an_agent_that_cannot_answer_neither_loses_nor_acts() -> None:
    result = evaluate(LIGHTS, Unreachable, tasks=3)
    assert [bool(episode.broken) for episode in result.episodes] == [False, True, False]
    assert result.episodes[1].actions == ()
    assert not result.episodes[1].success
    assert [episode.tokens for episode in result.episodes[::2]] == [5 * result.episodes[i].turns for i in (0, 2)]
    summary = summarize(result.episodes)
    assert (summary.success.mean, summary.episodes, summary.broken) == (1.0, 2, 1)


def test_what_is_broken_is_not_hidden_in_the_summary(tmp_path: Path) -> None:
    evaluate_suite(dataclasses.replace(SUITE, parts=SUITE.parts[1:]), Unreachable, tmp_path)
    numbers = json.loads((tmp_path / "summary.json").read_text())["all"]
    assert (numbers["asked"], numbers["broken"], numbers["episodes"], numbers["success"][0]) == (3, 1, 2, 1.0)
    assert numbers["success_if_broken_is_lost"] == pytest.approx(2 / 3, abs=1e-6)


class Told:
    """Acts as somebody else does, and says of itself what it is given."""

    def __init__(self, name: Any, details: Any, env: gymnasium.Env[str, str]) -> None:
        self.name, self.details = name, details() if callable(details) else details
        player = make_agent("admissible-random", env)
        self.reset, self.act = player.reset, player.act


DEEP: list[Any] = []
for _ in range(5_000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("name", "details", "said"),
    [
        (7, {}, "the name of an agent is a text, got 7"),
        ("mine", {"made": Path("x")}, "details of the agent 'mine' must be a dictionary of JSON values: .*PosixPath"),
        ("mine", {"temperature": float("nan")}, "must be a dictionary of JSON values: .* nan, which is none"),
        ("mine", {"seed": 2**200}, "must be a dictionary of JSON values: .* too large"),
        ("mine", {"deep": DEEP}, "must be a dictionary of JSON values"),
        ("mine", {"policy": "heuristics"}, "'policy' is the SHA-256 of a saved policy"),
        ("mine", {"hints": "few-shot"}, "'hints' says by True or False"),
        ("mine", [1, 2], "must be a dictionary of JSON values"),
        ("Oracle", {}, "is called 'Oracle', which reads like 'oracle'.* Give it another name"),
        ("random", {"model": "m"}, "is called 'random', .* Give it another name"),
    ],
)
def test_an_agent_that_cannot_be_recorded_is_refused_before_it_plays(
    tmp_path: Path, name: Any, details: Any, said: str
) -> None:
    agent = partial(Told, name, details)
    with pytest.raises(InvalidOptionError, match=said):
        evaluate_suite(SUITE, agent, tmp_path / "r")
    with pytest.raises(InvalidOptionError, match=said):
        evaluate(LIGHTS, agent, tasks=1)
    assert list(tmp_path.iterdir()) == []


def test_whoever_is_another_one_each_time_is_refused_before_it_plays(tmp_path: Path) -> None:
    numbers = count(1)
    with pytest.raises(InvalidOptionError, match="each time that it is made: started is 1, then 2"):
        evaluate_suite(SUITE, partial(Told, "mine", lambda: {"started": next(numbers)}), tmp_path / "r")
    with pytest.raises(InvalidOptionError, match="'random', which reads like 'random'"):
        evaluate_suite(SUITE, partial(Told, "random", {}), tmp_path / "r")
    with pytest.raises(InvalidOptionError, match="each time that it is made: 'mine' with"):
        check_evaluation(gymnasium.make(LIGHTS), partial(Told, "mine", lambda: {"started": next(numbers)}), **ONE)
    with pytest.raises(InvalidOptionError, match="has 'hints' in its details, and what makes it has not"):
        evaluate_suite(SUITE, partial(Told, "mine", {"hints": True}), tmp_path / "r")
    assert list(tmp_path.iterdir()) == []


ONE: dict[str, Any] = {"tasks": 1, "episodes": 1, "seed": 0, "path": None}


def test_an_agent_is_made_twice_a_part_and_once_more_because_loading_it_may_take_long(tmp_path: Path) -> None:
    made = []

    def agent(env: gymnasium.Env[str, str]) -> Told:
        made.append(env)
        return Told("mine", {}, env)

    evaluate_suite(SUITE, agent, tmp_path / "r")
    assert len(made) == 2 * len(SUITE.parts) + 1


def test_details_that_json_writes_otherwise_resume(tmp_path: Path) -> None:
    agent = partial(Told, "mine", {"stops": ("a", "b")})
    with pytest.raises(Stop):
        evaluate_suite(SUITE, agent, tmp_path / "r", ended=stop_after(2))
    evaluate_suite(SUITE, agent, tmp_path / "r")
    assert verify_result(tmp_path / "r").mismatches == ()


def test_a_result_that_is_not_complete_says_how_it_becomes_so(tmp_path: Path) -> None:
    with pytest.raises(Stop):
        evaluate_suite(SUITE, "random", tmp_path / "r", ended=stop_after(2))
    with pytest.raises(InvalidOptionError, match=r"is not complete: the same .* command resumes it"):
        verify_result(tmp_path / "r")


class Talker:
    """Answers with more and more."""

    name = "talker"

    def __init__(self, env: gymnasium.Env[str, str]) -> None:
        self._length = 0

    def reset(self, seed: int) -> None:
        self._length = 1

    def act(self, observation: str, info: dict[str, Any]) -> str:
        self._length *= 100
        return "\x00" * self._length


def test_whoever_answers_more_than_a_file_holds_is_stopped_and_has_lost(tmp_path: Path) -> None:
    result = evaluate_suite(SUITE, Talker, tmp_path / "r")
    assert {(e.turns, e.stopped, e.success, e.broken) for e in result.episodes} == {(3, "size", False, "")}
    assert verify_result(tmp_path / "r").mismatches == ()


class Look(str, Enum):  # noqa: UP042 (it must not say its value)
    """Actions that are texts and say otherwise what they are."""

    LOOK = "press red"


def odd_player(kind: str, env: gymnasium.Env[str, str]) -> Any:
    """An agent that nobody would write on purpose, and somebody has."""

    def act(observation: str, info: dict[str, Any]) -> Any:
        if kind == "changes info":
            info["success"] = True
            info.pop("complexity", None)
            return "press red" if len(info) % 2 else None
        return Look.LOOK if kind == "enum" else None

    player = SimpleNamespace(name="odd", reset=lambda seed: None, act=act)
    if kind == "tokens":
        player.sampled = {"ids": [1], "log_probs": [0.5]}
    if kind == "stops for a number":
        player.stop_reason = 3
    if kind == "stops for long":
        player.stop_reason = "tired " * 2**20
    if kind == "no details":
        player.details = None
    return player


@pytest.mark.parametrize(
    "kind", ["changes info", "enum", "tokens", "stops for a number", "stops for long", "no details"]
)
def test_what_an_odd_agent_plays_is_right(tmp_path: Path, kind: str) -> None:
    result = evaluate_suite(SUITE, partial(odd_player, kind), tmp_path / "r")
    assert not any(episode.success for episode in result.episodes)
    assert all(type(action) is str for episode in result.episodes for action in episode.actions)
    assert verify_result(tmp_path / "r").mismatches == ()


class Unspeakable:
    """It cannot say its name."""

    @property
    def name(self) -> str:
        raise KeyError("name")

    def __init__(self, env: gymnasium.Env[str, str]) -> None:
        pass

    def reset(self, seed: int) -> None:
        pass

    def act(self, observation: str, info: dict[str, Any]) -> str:
        return ""


class Evasive(Told):
    """Its class has a property where others have their details."""

    details = property(lambda self: {"model": "m"}, lambda self, value: None)  # type: ignore[assignment]

    def __init__(self, env: gymnasium.Env[str, str]) -> None:
        super().__init__("evasive", {}, env)


def test_a_class_with_properties_is_an_agent_or_says_why_not(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="an agent cannot say its name: KeyError"):
        evaluate_suite(SUITE, Unspeakable, tmp_path / "r")
    evaluate_suite(SUITE, Evasive, tmp_path / "r")
    assert verify_result(tmp_path / "r").mismatches == ()


def test_an_agent_that_changes_later_is_stopped_before_its_next_part(tmp_path: Path) -> None:
    details: dict[str, Any] = {"model": "m"}

    def ended(episode: EpisodeRecord) -> None:
        details["revision"] = 1

    with pytest.raises(InvalidOptionError, match="than when it was made first: revision"):
        evaluate_suite(SUITE, partial(Told, "mine", lambda: dict(details)), tmp_path / "r", ended=ended)


def test_what_a_kill_leaves_beside_a_complete_file_is_cleared(tmp_path: Path) -> None:
    evaluate_suite(SUITE, "random", tmp_path / "r")
    (tmp_path / "r" / ".check-1").mkdir()
    for name in ("four.jsonl.part", ".summary.json-1.part"):
        (tmp_path / "r" / name).write_text("{")
    evaluate_suite(SUITE, "random", tmp_path / "r")
    assert verify_result(tmp_path / "r").mismatches == ()
    evaluate(LIGHTS, "random", tasks=1, path=tmp_path / "one.jsonl")
    (tmp_path / "one.jsonl.part").write_text("{")
    evaluate(LIGHTS, "random", tasks=1, path=tmp_path / "one.jsonl")
    assert not (tmp_path / "one.jsonl.part").exists()


class Sleeper:
    """Thinks for an hour in every task but the first."""

    name = "sleeper"

    def __init__(self, env: gymnasium.Env[str, str]) -> None:
        self._env = env

    def reset(self, seed: int) -> None:
        pass

    def act(self, observation: str, info: dict[str, Any]) -> None:
        if self._env.unwrapped.task.index:  # type: ignore[attr-defined]
            time.sleep(3600)


def test_nobody_waits_for_what_is_played_when_an_evaluation_is_stopped(tmp_path: Path) -> None:
    others = set(multiprocessing.active_children())
    with pytest.raises(Stop):
        evaluate(LIGHTS, Sleeper, tasks=2, workers=2, ended=stop_after(1))
    for process in set(multiprocessing.active_children()) - others:
        process.join(60)
        assert not process.is_alive()


class Leaving:
    """Ends its process, as a library does that finds no key."""

    name = "leaving"

    def __init__(self, where: str, env: gymnasium.Env[str, str]) -> None:
        self._where = where
        self._leave("init")

    def _leave(self, here: str) -> None:
        if here == self._where:
            raise SystemExit("no key")

    def reset(self, seed: int) -> None:
        self._leave("reset")

    def act(self, observation: str, info: dict[str, Any]) -> str:
        self._leave("act")
        return ""


@pytest.mark.parametrize("workers", [1, 2])
def test_an_agent_that_ends_its_process_does_not_do_so_without_a_word(tmp_path: Path, workers: int) -> None:
    with pytest.raises(InvalidOptionError, match="makes no agent for an environment: SystemExit: no key"):
        evaluate_suite(SUITE, partial(Leaving, "init"), tmp_path / "r", workers=workers)
    for where in ("reset", "act"):
        with pytest.raises(AgentFailedError, match=f"'leaving' fails in {where}: SystemExit: no key"):
            evaluate_suite(SUITE, partial(Leaving, where), tmp_path / where, workers=workers)


class Unreadable:
    """An agent one of whose attributes cannot be read, or is something else than it says."""

    name = "unreadable"

    def __init__(self, what: str, env: gymnasium.Env[str, str]) -> None:
        self._what = what
        self.details = {"policy": "0" * 64}
        self._turns = 0

    def __getattr__(self, name: str) -> Any:
        if name == self._what:
            raise KeyError(name)
        if name == "tokens":
            return min(2, self._turns)
        raise AttributeError(name)

    @property
    def sampled(self) -> Any:
        odd = {"objects": [object()], "numbers": ["1"], "fractions": [0.5]}.get(self._what, [1])
        return {"ids": odd, "log_probs": [float("nan") if self._what == "nan" else -0.5], "role": "user"}

    def reset(self, seed: int) -> None:
        self._turns = 0

    def act(self, observation: str, info: dict[str, Any]) -> str | None:
        if self._what == "generator":
            raise GeneratorExit
        self._turns += 1
        return "press red" if self._turns < 3 else None


@pytest.mark.parametrize("what", ["tokens", "cost", "stop_reason", "remarks"])
def test_an_attribute_that_cannot_be_read_ends_the_evaluation_in_words(tmp_path: Path, what: str) -> None:
    with pytest.raises(AgentFailedError, match=f"'unreadable' fails in {what}: KeyError"):
        evaluate_suite(SUITE, partial(Unreadable, what), tmp_path / "r")
    with pytest.raises(AgentFailedError, match="'unreadable' fails in act: GeneratorExit"):
        evaluate_suite(SUITE, partial(Unreadable, "generator"), tmp_path / "other")


@pytest.mark.parametrize("what", ["objects", "numbers", "fractions", "nan"])
def test_what_is_no_token_is_refused(tmp_path: Path, what: str) -> None:
    with pytest.raises(InvalidOptionError, match="that is `ids` and as many `log_probs`"):
        evaluate_suite(SUITE, partial(Unreadable, what), tmp_path / "r")


def test_of_what_was_sampled_nothing_else_is_kept(tmp_path: Path) -> None:
    evaluate_suite(SUITE, partial(Unreadable, ""), tmp_path / "r")
    assert verify_result(tmp_path / "r").mismatches == ()


# The command line.


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "say what to play: an ID, or --suite NAME"),
        (("--suite", "alfworld-quick-v1"), "--suite needs --out FOLDER"),
        (("--suite", "nothing-v1", "--out", "r"), "does not exist"),
        (("--suite", "nothing-v1"), "does not exist"),
        (("alfworld-quick-v1", "--agent", "random"), "alfworld-quick-v1 is a suite: --suite alfworld-quick-v1"),
        (
            ("--suite", "alfworld-quick-v1", "--retry-broken", "--out", "r"),
            "--retry-broken is for a result that is there",
        ),
        (("ALFWorld", "--suite", "alfworld-quick-v1", "--out", "r"), "leave out the ID"),
        (("--suite", "alfworld-quick-v1", "--tasks", "3", "--seed", "1", "--out", "r"), "leave out --tasks, --seed"),
        (("--suite", "alfworld-quick-v1", "--agent", "human", "--workers", "2", "--out", "r"), "one episode at a time"),
    ],
)
def test_a_suite_fixes_what_is_played(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = call("eval", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


def kill_when_begun(process: subprocess.Popen[str], part: Path) -> None:
    deadline = time.monotonic() + 120
    while (not part.exists() or part.stat().st_size < 5_000) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)


def test_a_quick_suite_is_played_killed_resumed_and_verified(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    assert "alfworld-quick-v1" in run("suites").stdout
    arguments = ("eval", "--suite", "alfworld-quick-v1", "--agent", "expert", "--out", str(folder))
    program = [sys.executable, "-m", "textagent_gym", *arguments]
    kill_when_begun(
        subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True),
        folder / "rooms.jsonl.part",
    )
    done = run(*arguments, "--workers", "2")
    assert done.returncode == 0, done.stderr
    assert "1.000" in done.stdout
    assert len(load(folder / "rooms.jsonl").episodes) == 20
    verified = run("verify", str(folder))
    assert verified.returncode == 0, verified.stdout
    assert "All 20 episodes happened as recorded" in verified.stdout
    text = (folder / "result.json").read_text()
    (folder / "result.json").write_text(text.replace("expert", "oracle"))
    forged = run("verify", str(folder))
    assert forged.returncode == 1
    assert "is recorded" in forged.stdout
    assert "Traceback" not in forged.stderr


def test_random_agents_draw_otherwise_in_every_task_and_repetition() -> None:
    result = evaluate(LIGHTS, "random", tasks=5, episodes=3, kwargs={"max_turns": 1})
    assert len({episode.seed for episode in result.episodes}) == 15
    assert len({episode.actions for episode in result.episodes}) == 15
    again = evaluate(LIGHTS, "random", tasks=5, episodes=3, kwargs={"max_turns": 1}, seed=1)
    assert not {episode.seed for episode in result.episodes} & {episode.seed for episode in again.episodes}


def test_the_seed_of_an_episode_does_not_depend_on_what_else_is_played() -> None:
    few, many = (evaluate(LIGHTS, "random", tasks=tasks, kwargs={"max_turns": 1}) for tasks in (2, 4))
    assert many.episodes[:2] == few.episodes


def test_an_oracle_without_a_plan_stops_and_its_result_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = TextEnv.oracle

    def spent(env: TextEnv[Any]) -> Any:
        if env.task.index == 1:
            raise PlanningBudgetError("no plan was found")
        return planned(env)

    monkeypatch.setattr(TextEnv, "oracle", spent)
    result = evaluate_suite(SUITE, "oracle", tmp_path / "r")
    stopped = [episode for episode in result.episodes if episode.stopped]
    assert {episode.stopped for episode in stopped} == {"plan"}
    assert all(not episode.success and not episode.broken for episode in stopped)
    assert 0 < len(stopped) < len(result.episodes)
    assert verify_result(tmp_path / "r").mismatches == ()
    monkeypatch.setattr(TextEnv, "oracle", planned)
    assert len(verify_result(tmp_path / "r").mismatches) == len(stopped)
