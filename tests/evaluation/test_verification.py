"""Whatever is changed in a result is noticed, also by somebody who writes seals and summaries anew."""

from __future__ import annotations

import copy
import dataclasses
import functools
import gzip
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.cli.program import call, run
from tests.evaluation.results import LIGHTS, SUITE, paths, read, summarize_again, write
from textagent_gym.agents import make_agent
from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation import (
    SUITES,
    Mismatch,
    begin,
    evaluate,
    evaluate_suite,
    load,
    replay,
    verify_result,
)
from textagent_gym.evaluation.records import digest
from textagent_gym.evaluation.results import IDENTITY, SUMMARY, records_of

Edit = Callable[[dict[str, Any], list[Any]], None]
"""Changes the header and the episodes of a file."""


@pytest.fixture(autouse=True)
def _suite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SUITES, SUITE.name, SUITE)


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result with successes and failures."""
    folder = tmp_path_factory.mktemp("honest") / "r"
    SUITES[SUITE.name] = SUITE
    evaluate_suite(SUITE, "admissible-random", folder)
    del SUITES[SUITE.name]
    return folder


def check(folder: Path) -> list[Mismatch | str]:
    """What is wrong with a result."""
    try:
        return list(verify_result(folder).mismatches)
    except InvalidOptionError as error:
        return [str(error)]


def won(episode: dict[str, Any]) -> bool:
    return bool(episode["success"])


def at(name: str, value: Any) -> Edit:
    """Gives a key of the first episode another value, or that of a function of it."""

    def edit(header: dict[str, Any], episodes: list[Any]) -> None:
        episodes[0][name] = value(episodes[0][name]) if callable(value) else value

    return edit


def head(name: str, value: Any) -> Edit:
    def edit(header: dict[str, Any], episodes: list[Any]) -> None:
        header[name] = value

    return edit


def argument(name: str, value: Any) -> Edit:
    def edit(header: dict[str, Any], episodes: list[Any]) -> None:
        header["spec"]["kwargs"][name] = value

    return edit


def both(change: Callable[[list[Any]], None]) -> Edit:
    return lambda header, episodes: change(episodes)


def fewer(header: dict[str, Any], episodes: list[Any]) -> None:
    del episodes[2:]
    header["tasks"] = 1


def cut(header: dict[str, Any], episodes: list[Any]) -> None:
    episode = max(episodes, key=lambda each: len(each["actions"]))
    episode.update(actions=episode["actions"][:1], rewards=episode["rewards"][:1])


def cut_short(header: dict[str, Any], episodes: list[Any]) -> None:
    cut(header, episodes)
    max(episodes, key=lambda each: each["terminated"]).update(terminated=False, truncated=False, stopped="context")


def won_again(header: dict[str, Any], episodes: list[Any]) -> None:
    """A success in place of each failure, with the failure's task and seed."""
    success = next(episode for episode in episodes if won(episode))
    for number, episode in enumerate(episodes):
        if not won(episode):
            episodes[number] = {**copy.deepcopy(success), "task": episode["task"], "seed": episode["seed"]}


def renamed(header: dict[str, Any], episodes: list[Any]) -> None:
    header["agent"] = "oracle"


def paid(episode: dict[str, Any]) -> None:
    """An episode whose first action earned something else."""
    episode["rewards"][0] += 0.25


def lost_is_broken(header: dict[str, Any], episodes: list[Any]) -> None:
    """Failures that are said to have broken, and still to have been won."""
    for episode in episodes:
        if not won(episode):
            episode.update(broken="the server is gone", success=True, truncated=True, terminated=False)


EDITS: dict[str, Edit] = {
    "action exchanged": at("actions", lambda a: ["press black", *a[1:]]),
    "action in other letters": at("actions", lambda a: [a[0].upper(), *a[1:]]),
    "action with a space": at("actions", lambda a: [a[0] + " ", *a[1:]]),
    "action without effect": at("actions", lambda a: ["dance", *a[1:]]),
    "action is missing": at("actions", lambda a: a[1:]),
    "action twice": at("actions", lambda a: [a[0], *a]),
    "action too many": at("actions", lambda a: [*a, "press red"]),
    "action is no text": at("actions", lambda a: [1, *a[1:]]),
    "actions are none": at("actions", []),
    "reward by a hair": at("rewards", lambda r: [r[0] + 1e-12, *r[1:]]),
    "reward of minus zero": at("rewards", lambda r: [-0.0, *r[1:]]),
    "reward is no number": at("rewards", lambda r: [float("nan"), *r[1:]]),
    "reward is a text": at("rewards", lambda r: ["1.0", *r[1:]]),
    "reward is whole": at("rewards", lambda r: [0, *r[1:]]),
    "reward is infinite": at("rewards", lambda r: [float("inf"), *r[1:]]),
    "reward too many": at("rewards", lambda r: [*r, 0.0]),
    "reward is missing": at("rewards", lambda r: r[:-1]),
    "success": at("success", lambda s: not s),
    "success is a number": at("success", 1),
    "terminated": at("terminated", lambda t: not t),
    "truncated": at("truncated", lambda t: not t),
    "invalid actions": at("invalid_actions", lambda n: n + 1),
    "invalid actions are missing": both(lambda e: e[0].pop("invalid_actions")),
    "task": both(lambda e: e[0].update(task=e[2]["task"])),
    "task of no world": at("task", "Lights/v1/s9/test/0"),
    "task type": at("task_type", "easy"),
    "score": at("score", 1.0),
    "complexity": at("complexity", lambda c: {**c, "solution_length": 40}),
    "complexity is missing": at("complexity", None),
    "complexity of more": at("complexity", lambda c: {**c, "beauty": 1}),
    "digest of the observations": at("observations", "0" * 64),
    "digest is missing": at("observations", ""),
    "stopped": at("stopped", "context"),
    "tokens": at("tokens", 7),
    "seconds without end": at("seconds", float("inf")),
    "complexity of texts": at("complexity", lambda c: {**c, "solution_length": "<b>"}),
    "unknown key": at("beauty", 1),
    "seed of an episode": at("seed", 7),
    "episode is missing": both(lambda e: e.pop(3)),
    "last episode is missing": both(lambda e: e.pop()),
    "failures are missing": both(lambda e: e.__setitem__(slice(None), [each for each in e if won(each)])),
    "episode twice": both(lambda e: e.append(copy.deepcopy(e[0]))),
    "episode in place of another": both(lambda e: e.__setitem__(1, copy.deepcopy(e[0]))),
    "order": both(lambda e: e.reverse()),
    "neighbours exchanged": both(lambda e: e.__setitem__(slice(0, 2), [e[1], e[0]])),
    "episodes are none": both(lambda e: e.clear()),
    "a task less, and so in the header": fewer,
    "unfinished": cut,
    "unfinished, as if the agent had stopped": cut_short,
    "successes for failures": won_again,
    "failures broken and won": lost_is_broken,
    "seed": head("seed", 5),
    "split": head("split", "train"),
    "number of tasks": head("tasks", 3),
    "number of repeats": head("repeats", 1),
    "first task": head("first", 1),
    "first task before all": head("first", -1),
    "first task beyond counting": head("first", 10**30),
    "agent": renamed,
    "agent of another sort": head("agent", "my-model"),
    "details": head("details", {"model": "big"}),
    "versions of nothing": head("versions", {"python": "3.11", "numpy": "9"}),
    "versions are no texts": head("versions", {"python": 3}),
    "goal": argument("observation_format", "upstream"),
    "instructions": argument("instructions", "observation"),
    "density": argument("reward_density", 1.0),
    "turn budget": argument("max_turns", 2),
    "size of the world": argument("switches", 2),
    "split of the environment": argument("split", "train"),
    "other environment": head("spec", {"id": "textagent/ALFWorld-v0"}),
    "no environment": head("spec", {}),
    "format": head("format", "textagent-gym evaluation 1"),
    "number of tasks beyond counting": head("tasks", 10**4000),
    "nested deep": at("complexity", functools.reduce(lambda inner, _: {"x": inner}, range(300), {})),
}
UNCHECKED: dict[str, Edit] = {
    "seconds": at("seconds", 0.5),
    "version of Python": head("versions", {"python": "2.7"}),
}
"""What nobody can check: the seal notices that it was changed, unless the seal is written anew."""


def edited(honest: Path, folder: Path, edit: Edit) -> Path:
    """A copy of a result with an edit, and with a seal that fits."""
    shutil.copytree(honest, folder)
    records, _ = paths(folder)
    header, *episodes = read(records)
    before = json.dumps([header, *episodes])
    edit(header, episodes)
    assert json.dumps([header, *episodes]) != before
    write(records, [header, *episodes])
    return folder


def test_an_honest_result_verifies(honest: Path, tmp_path: Path) -> None:
    episodes = read(paths(honest)[0])[1:]
    assert 0 < sum(map(won, episodes)) < len(episodes)
    assert check(honest) == []
    same = shutil.copytree(honest, tmp_path / "r")
    records, conversations = paths(same)
    write(records, read(records))
    write(conversations, read(conversations))
    summarize_again(same)
    assert check(same) == []  # The forgers below fail for what they changed, not for how they write.


def test_a_sample_proves_nothing_of_the_whole(honest: Path, tmp_path: Path) -> None:
    assert verify_result(honest).trust == ("replayed",)
    sample = verify_result(honest, every=3)
    assert (sample.mismatches, sample.trust) == ((), ())
    for number in range(8):
        folder = edited(honest, tmp_path / str(number), both(lambda episodes, at=number: paid(episodes[at])))
        summarize_again(folder)
        assert [each.episode for each in verify_result(folder).mismatches] == [number]
        for offset in range(3):
            seen = {each.episode for each in verify_result(folder, every=3, offset=offset).mismatches}
            assert seen == ({number} if number % 3 == offset else set())
    other = edited(honest, tmp_path / "seed", both(lambda episodes: episodes[1].update(seed=1)))
    assert 1 in {each.episode for each in verify_result(other, every=3).mismatches}
    with pytest.raises(InvalidOptionError, match="every must be at least 1, got 0"):
        verify_result(honest, every=0)


@pytest.mark.parametrize("name", [*EDITS, *UNCHECKED])
def test_every_edit_is_noticed(name: str, honest: Path, tmp_path: Path) -> None:
    folder = edited(honest, tmp_path / "r", {**EDITS, **UNCHECKED}[name])
    assert check(folder)
    if name == "version of Python":
        return
    try:
        summarize_again(folder)
    except (InvalidOptionError, ValueError, AttributeError, OverflowError):
        return  # No summary of that could be written.
    assert bool(check(folder)) == (name in EDITS)


SUITE_ONLY = ("agent of another sort", "details", "goal", "a task less, and so in the header", "no environment")
"""Edits of a single file that leave another evaluation, which may well have happened."""


@pytest.mark.parametrize("name", [name for name in EDITS if name not in SUITE_ONLY])
def test_every_edit_of_a_single_file_is_noticed(name: str, honest: Path, tmp_path: Path) -> None:
    records, _ = paths(edited(honest, tmp_path / "r", EDITS[name]))
    with suppress(InvalidOptionError):
        assert replay(load(records))


class TakesTheFirstHint:
    """Acts by nothing but the list under the observation."""

    name = "takes-the-first-hint"
    details: dict[str, Any] = {"hints": True}  # noqa: RUF012

    def __init__(self, env: gymnasium.Env[str, str]) -> None:
        pass

    def reset(self, seed: int) -> None:
        pass

    def act(self, observation: str, info: dict[str, Any]) -> str:
        return observation.rpartition("Possible actions: ")[2].split(", ")[0]


def test_an_agent_may_be_told_the_admissible_actions_and_its_result_says_so(tmp_path: Path) -> None:
    evaluate_suite(SUITE, TakesTheFirstHint, tmp_path / "r")
    assert not verify_result(tmp_path / "r").mismatches
    conversation = read(paths(tmp_path / "r")[1])[0]
    told = [message["content"] for message in conversation if message["role"] == "user"][:-1]  # It has ended then.
    assert told
    assert all("Possible actions: " in text for text in told)
    replace(tmp_path / "r" / "result.json", "true", "false")
    summarize_again(tmp_path / "r")
    noticed = [mismatch.what for mismatch in verify_result(tmp_path / "r").mismatches]
    assert any(what.startswith("the agent read something else than is recorded") for what in noticed)
    assert any(what.startswith("details is ") for what in noticed)


@pytest.mark.parametrize("name", ["base_url", "price_input"])
def test_an_address_or_a_price_that_no_run_has_recorded_is_noticed(honest: Path, tmp_path: Path, name: str) -> None:
    folder = Path(shutil.copytree(honest, tmp_path / "r"))
    replace(folder / "result.json", "{}", f'{{\n    "{name}": 1\n  }}')
    summarize_again(folder)
    assert {mismatch.what.partition(" is ")[0] for mismatch in verify_result(folder).mismatches} >= {"details"}


def test_an_edit_that_leaves_the_seal_is_noticed(honest: Path, tmp_path: Path) -> None:
    for number, line in enumerate(paths(honest)[0].read_text().splitlines()):
        path = tmp_path / f"{number}.jsonl"
        other = re.sub('"python": "[^"]+"', '"python": "2.7"', re.sub('"seconds": [0-9.e-]+', '"seconds": 9.5', line))
        path.write_text(paths(honest)[0].read_text().replace(line, other))
        if line != other:
            assert "changed or cut" in replay(load(path))[0].what


FOLDER_EDITS: dict[str, Callable[[Path], object]] = {
    "summary is missing": lambda folder: (folder / "summary.json").unlink(),
    "summary is empty": lambda folder: (folder / "summary.json").write_text(""),
    "summary is a list": lambda folder: (folder / "summary.json").write_text("[]\n"),
    "summary of a success": lambda folder: replace(
        folder / "summary.json", '"success": [\n      0', '"success": [\n      1'
    ),
    "summary of more": lambda folder: replace(folder / "summary.json", "{", '{"beauty": 1,'),
    "summary without digests": lambda folder: replace(folder / "summary.json", '"files"', '"flies"'),
    "summary of another agent": lambda folder: replace(folder / "summary.json", "admissible-random", "oracle"),
    "result of another agent": lambda folder: replace(folder / "result.json", "admissible-random", "oracle"),
    "result of another suite": lambda folder: replace(folder / "result.json", SUITE.name, "alfworld-quick-v1"),
    "result of no suite": lambda folder: replace(folder / "result.json", SUITE.name, "nothing"),
    "summary of another trust": lambda folder: replace(folder / "summary.json", '"replayed"', '"recomputed"'),
    "summary of another axis": lambda folder: replace(folder / "summary.json", '"low": 3', '"low": 2'),
    "result of a policy": lambda folder: replace(folder / "result.json", "{}", '{"policy": "0"}'),
    "result of a challenge": lambda folder: replace(
        folder / "result.json", SUITE.name, f"{SUITE.name}@{'0' * 64}:{'0' * 32}"
    ),
    "result of another digest": lambda folder: replace(folder / "result.json", SUITE.digest, "0" * 64),
    "result with details": lambda folder: replace(folder / "result.json", "{}", '{"format": "tag"}'),
    "result with strange details": lambda folder: replace(folder / "result.json", "{}", '{"format": ["tag"]}'),
    "result with hints": lambda folder: replace(folder / "result.json", "{}", '{"hints": true}'),
    "result with strange hints": lambda folder: replace(folder / "result.json", "{}", '{"hints": 1}'),
    "result is deep": lambda folder: (folder / "result.json").write_text("[" * 100_000),
    "part is missing": lambda folder: (folder / "three.jsonl").unlink(),
    "part of another part": lambda folder: shutil.copy(folder / "three.jsonl", folder / "four.jsonl"),
    "conversations are missing": lambda folder: (folder / "four.conversations.jsonl.gz").unlink(),
    "conversations of another part": lambda folder: shutil.copy(
        folder / "three.conversations.jsonl.gz", folder / "four.conversations.jsonl.gz"
    ),
    "conversations are cut": lambda folder: rewrite(paths(folder)[1], lambda raw: raw[:-20]),
    "conversations are no gzip": lambda folder: rewrite(paths(folder)[1], lambda raw: b"x" + raw),
    "something else": lambda folder: (folder / "more.txt").write_text("more"),
    "unfinished": lambda folder: (folder / "four.jsonl.part").write_text(""),
    "a folder": lambda folder: (folder / "more").mkdir(),
}


def replace(path: Path, text: str, other: str) -> None:
    before = path.read_text()
    assert text in before
    path.write_text(before.replace(text, other))


def rewrite(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


@pytest.mark.parametrize("name", FOLDER_EDITS)
def test_every_edit_of_a_folder_is_noticed(name: str, honest: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(honest, tmp_path / "r")
    FOLDER_EDITS[name](folder)
    assert check(folder)


CONVERSATION_EDITS: dict[str, Callable[[list[Any]], object]] = {
    "answer": lambda all_said: all_said[0][2].update(content="press black"),
    "observation": lambda all_said: all_said[0][1].update(content="You have won."),
    "instructions": lambda all_said: all_said[0][0].update(content="Do as you please."),
    "role": lambda all_said: all_said[0][1].update(role="assistant"),
    "message is missing": lambda all_said: all_said[0].pop(),
    "message too many": lambda all_said: all_said[0].append({"role": "user", "content": "Well done."}),
    "remark of an agent that makes none": lambda all_said: all_said[0][2].update(reasoning="hm"),
    "thought": lambda all_said: all_said[0][2].update(thought="hm"),
    "conversation is missing": lambda all_said: all_said.pop(0),
    "conversation too many": lambda all_said: all_said.append([]),
    "order": lambda all_said: all_said.reverse(),
    "none": lambda all_said: all_said.clear(),
    "nothing too many": lambda all_said: all_said.append(None),
    "nothing": lambda all_said: all_said.__setitem__(0, None),
    "no conversation": lambda all_said: all_said.__setitem__(0, "<script>"),
}


@pytest.mark.parametrize("name", CONVERSATION_EDITS)
def test_every_edit_of_a_conversation_is_noticed(name: str, honest: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(honest, tmp_path / "r")
    _, conversations = paths(folder)
    values = read(conversations)
    CONVERSATION_EDITS[name](values)
    write(conversations, values)
    assert check(folder)
    summarize_again(folder)
    assert check(folder)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in JSON values."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in places(item, (*path, key)))]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 10**6) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=8), inner, max_size=2),
    max_leaves=3,
)
QUICK = settings(max_examples=60, suppress_health_check=list(HealthCheck))


@QUICK
@given(st.data())
def test_whatever_a_forger_puts_in_any_place_is_noticed(honest: Path, data: st.DataObject) -> None:
    folder = honest.parent / "forged"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(honest, folder)
    path = paths(folder)[data.draw(st.integers(0, 1))]
    values = read(path)
    before = json.dumps(values)
    place = data.draw(st.sampled_from(places(values)[1:]))
    assume("seconds" not in place and place[:2] != (0, "versions"))
    *outer, last = place
    inner = values
    for key in outer:
        inner = inner[key]
    how = data.draw(st.sampled_from(["replace", "delete", "double", "exchange"]))
    if how == "replace":
        inner[last] = data.draw(VALUES)
    elif how == "delete":
        del inner[last]
    elif isinstance(inner, list):
        other = data.draw(st.integers(0, len(inner) - 1))
        if how == "double":
            inner.insert(other, copy.deepcopy(inner[last]))
        else:
            inner[last], inner[other] = inner[other], inner[last]
    assume(json.dumps(values) != before)
    write(path, values)
    with suppress(InvalidOptionError, ValueError, AttributeError, OverflowError, TypeError):
        summarize_again(folder)
    assert check(folder)


@QUICK
@given(st.data())
def test_whatever_a_forger_puts_beside_the_episodes_is_noticed(honest: Path, data: st.DataObject) -> None:
    folder = honest.parent / "beside"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(honest, folder)
    path = folder / data.draw(st.sampled_from(["result.json", "summary.json"]))
    values = json.loads(path.read_text())
    before = json.dumps(values)
    *outer, last = data.draw(st.sampled_from(places(values)[1:]))
    inner = values
    for key in outer:
        inner = inner[key]
    if data.draw(st.booleans()):
        inner[last] = data.draw(VALUES)
    else:
        del inner[last]
    assume(json.dumps(values) != before)
    path.write_text(json.dumps(values, indent=2, sort_keys=True) + "\n")
    assert check(folder)


@QUICK
@given(st.data())
def test_whatever_byte_is_changed_is_noticed(honest: Path, data: st.DataObject) -> None:
    folder = honest.parent / "changed"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(honest, folder)
    path = data.draw(st.sampled_from(sorted(folder.iterdir())))
    raw = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(raw) - 1))
    how = data.draw(st.sampled_from(["replace", "delete", "insert", "cut"]))
    byte = data.draw(st.integers(0, 255))
    if how == "replace":
        assume(raw[place] != byte)
        raw[place] = byte
    elif how == "delete":
        del raw[place]
    elif how == "insert":
        raw.insert(place, byte)
    else:
        del raw[place:]
    path.write_bytes(raw)
    assert check(folder)


def broken(**values: Any) -> Edit:
    """Says that the first failure broke."""

    def edit(header: dict[str, Any], episodes: list[Any]) -> None:
        lost = next(episode for episode in episodes if not won(episode))
        lost.update(broken="the server is gone", success=False, terminated=False, truncated=True, stopped="")
        lost.update({name: value(lost[name]) if callable(value) else value for name, value in values.items()})

    return edit


FALSELY_BROKEN: dict[str, Edit] = {
    "with other rewards": broken(rewards=lambda r: [0.5, *r[1:]]),
    "with more rewards": broken(rewards=lambda r: [*r, 0.0]),
    "with other actions": broken(actions=lambda a: ["press black", *a[1:]]),
    "after its end": broken(actions=lambda a: [*a, "hm"], rewards=lambda r: [*r, 0.0]),
    "with invalid actions": broken(invalid_actions=lambda n: n + 2),
    "with another complexity": broken(complexity=lambda c: {**c, "solution_length": 40}),
    "with another type": broken(task_type="easy"),
    "and stopped": broken(stopped="context"),
}


@pytest.mark.parametrize("name", FALSELY_BROKEN)
def test_what_happened_before_a_world_broke_is_played_again(name: str, honest: Path, tmp_path: Path) -> None:
    folder = edited(honest, tmp_path / "r", FALSELY_BROKEN[name])
    summarize_again(folder)
    assert check(folder)


def test_a_world_may_break_at_any_action(honest: Path, tmp_path: Path) -> None:
    """Nobody can check that it did; the number of such episodes is shown."""
    for count in (0, 1, 3):
        cut = broken(
            actions=lambda a, n=count: a[:n], rewards=lambda r, n=count: r[:n], invalid_actions=lambda i: min(i, 1)
        )
        folder = edited(honest, tmp_path / str(count), cut)
        header, *episodes = read(paths(folder)[0])
        lost = next(episode for episode in episodes if episode["broken"])
        lost["invalid_actions"] = 0
        write(paths(folder)[0], [header, *episodes])
        summarize_again(folder)
        said = [str(each) for each in check(folder) if "plays it to its end" not in str(each)]
        assert not any("broke" in each or "rewards" in each or "earned" in each for each in said), said


def test_a_loss_of_an_agent_of_ours_is_not_left_out_as_broken() -> None:
    honest = evaluate(LIGHTS, "admissible-random", tasks=3)
    assert not all(episode.success for episode in honest.episodes)
    lie = {"broken": "x", "success": False, "terminated": False, "truncated": True, "stopped": ""}
    for count in (0, 1):
        cut = tuple(
            dataclasses.replace(e, **lie, actions=e.actions[:count], rewards=e.rewards[:count], invalid_actions=0)
            for e in honest.episodes
        )
        said = [mismatch.what for mismatch in replay(dataclasses.replace(honest, episodes=cut))]
        assert len(said) == 3
        assert all("here 'admissible-random' plays it to its end" in each for each in said)
        assert replay(dataclasses.replace(honest, agent="my-model", episodes=cut)) == []


@pytest.mark.parametrize(
    "name",
    [
        *(
            "or@cle",
            "or4cle",
            "orade",
            "0rade",
            "ranclom",
            "exper+",
            "exper7",
            "ora(le",
            "orac/e",
            "rand()m",
            "oracle+",
        ),
        *("admissi6le-random", "admissi8le-random"),
        *("oracle ", "Oracle", "ora\u200bcle", "admissible random", "\uff45xpert", "\u043eracle", "0racle", "orac1e"),
        *(
            "oracIe",
            "or\u00e1cle",
            "\u1d0f\u0280\u1d00\u1d04\u029f\u1d07",
            "randorn",
            "e\u0445\u0440\u0435rt",
            "\U0001d428racle",
            *("expert\u3164", "ex\u115fpert", "expert\uffa0", "exp\u0454rt", "\u0585racle", "ora\u0188le"),
        ),
    ],
)
def test_nobody_is_called_like_an_agent_of_the_suite(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Impostor:
        def __init__(self, env: Any) -> None:
            self.name = name

        def reset(self, seed: int) -> None:
            pass

        def act(self, observation: str, info: dict[str, Any]) -> str:
            return "press red"

    with pytest.raises(InvalidOptionError, match="Give it another name"):  # Before anything is played.
        evaluate_suite(SUITE, Impostor, tmp_path / "r")
    monkeypatch.setattr("textagent_gym.evaluation.players.resembled", lambda name: "")
    evaluate_suite(SUITE, Impostor, tmp_path / "r")
    assert "reads like" in str(check(tmp_path / "r")[0])


@pytest.mark.parametrize(
    "name",
    [
        *("oracles", "my-oracle", "export", "expert-v2", "\u6f22\u5b57\u8a9e\u6c49\u5b57\u8bed", "random-forest"),
        *("\u043c\u043e\u0434\u0435\u043b\u044c", "", "model:0"),
    ],
)
def test_other_names_are_free(name: str, tmp_path: Path) -> None:
    from textagent_gym.evaluation.replay import _gaps

    env = gymnasium.make(LIGHTS)
    recorded = begin(env, name, tasks=1)
    assert _gaps(recorded, env) == ["0 episodes are recorded, and 1 were asked for"]


def test_who_reads_nothing_is_asked_in_every_world(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gymnasium.spec(LIGHTS), "nondeterministic", True)
    for agent, known in (("random", True), ("oracle", True), ("admissible-random", False)):
        assert replay(evaluate(LIGHTS, agent, tasks=2)) == []

        class Impostor:
            name = agent

            def __init__(self, env: Any) -> None:
                self.reset, self.act = (lambda seed: None), (lambda observation, info: "press black")

        assert bool(replay(evaluate(LIGHTS, Impostor, tasks=2))) == known


def test_a_conversation_that_may_differ_is_in_the_order_in_which_it_was_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(gymnasium.spec(LIGHTS), "nondeterministic", True)
    folder = tmp_path / "r"
    evaluate_suite(SUITE, "oracle", folder)
    assert check(folder) == []
    assert not verify_result(folder).exact
    _, conversations = paths(folder)
    values = read(conversations)
    for change in (lambda said: said.reverse(), lambda said: said[0].update(content="The first light is red.")):
        forged = copy.deepcopy(values)
        change(forged[0])
        assert forged[0][0]["role"] == "system" or change
        write(conversations, forged)
        summarize_again(folder)
        assert "its conversation is not what was said" in str(check(folder)[0])


@pytest.mark.parametrize("name", [0, 1])
@pytest.mark.parametrize(
    "change",
    [
        lambda text: b"\xef\xbb\xbf" + text,
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: text.replace(b'": ', b'":  ', 1),
        lambda text: text.replace(b"e", b"\\u0065", 1),
    ],
)
def test_a_result_is_written_as_results_are(
    name: int, change: Callable[[bytes], bytes], honest: Path, tmp_path: Path
) -> None:
    """Programs read a mark at the beginning, or an escape, differently."""
    folder = shutil.copytree(honest, tmp_path / "r")
    path = paths(folder)[name]
    raw = gzip.decompress(path.read_bytes()) if name else path.read_bytes()
    lines = change(raw if name else b"".join(raw.splitlines(keepends=True)[:-1]))
    seal = json.dumps({"sha256": hashlib.sha256(lines).hexdigest()}).encode() + b"\n"
    path.write_bytes(gzip.compress(lines, mtime=0) if name else lines + seal)
    with suppress(InvalidOptionError):
        summarize_again(folder)
    assert check(folder)


def test_a_header_without_a_whole_spec_is_no_crash(honest: Path, tmp_path: Path) -> None:
    from textagent_gym.cli.verify import Verify

    folder = edited(honest, tmp_path / "r", head("spec", {"id": "textagent/ALFWorld-v0"}))
    assert Verify(result=folder).run() == 1


# Harm.


def test_all_files_of_a_result_together_are_bounded(honest: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from textagent_gym.evaluation import verification

    size = sum(path.stat().st_size for path in honest.glob("*.jsonl"))
    monkeypatch.setattr(verification, "LARGEST_FILE", size)
    assert check(honest) == []
    monkeypatch.setattr(verification, "LARGEST_FILE", size - 1)
    assert "is larger than result files are" in str(check(honest)[0])


def test_no_file_of_a_result_leads_elsewhere(honest: Path, tmp_path: Path) -> None:
    for name in sorted(path.name for path in honest.iterdir()):
        folder = shutil.copytree(honest, tmp_path / name)
        (folder / name).rename(tmp_path / f"{name}.elsewhere")
        (folder / name).symlink_to(tmp_path / f"{name}.elsewhere")
        with pytest.raises(InvalidOptionError):
            verify_result(folder)
        (folder / name).unlink()
        os.mkfifo(folder / name)
        with pytest.raises(InvalidOptionError):
            verify_result(folder)


def test_a_file_that_grows_when_it_is_read_is_refused(honest: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(honest, tmp_path / "r")
    with gzip.open(paths(folder)[1], "wb", compresslevel=1) as file:
        for _ in range(20):
            file.write(b" " * 2**20)
    (problem,) = check(folder)
    assert "is larger than result files are" in str(problem)
    with open(paths(folder)[0], "ab") as file:
        file.truncate(2**40)  # Of holes, which take no space.
    (problem,) = check(folder)
    assert "is larger than result files are" in str(problem)


def test_a_result_chooses_no_environment(honest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trap.py").write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')\n")
    monkeypatch.syspath_prepend(tmp_path)
    for number, change in enumerate(
        (
            {"id": "trap:lights/Lights-v0"},
            {"entry_point": "trap:Env"},
            {"additional_wrappers": [{"name": "Trap", "entry_point": "trap:Wrapper", "kwargs": {}}]},
            {"kwargs": {"sandbox": "process", "packages": ["./x"]}},
        )
    ):

        def edit(header: dict[str, Any], episodes: list[Any], change: dict[str, Any] = change) -> None:
            header["spec"].update(change)

        folder = edited(honest, tmp_path / str(number), edit)
        summarize_again(folder)
        assert check(folder)
    assert not (tmp_path / "sprung").exists()


def test_a_name_of_a_known_agent_is_checked() -> None:
    for agent in ("random", "admissible-random", "oracle"):
        result = evaluate(LIGHTS, agent, tasks=3)
        assert replay(result) == []

        class Impostor:
            name = "oracle" if agent == "random" else "random"

            def __init__(self, env: Any, agent: str = agent) -> None:
                player = make_agent(agent, env)
                self.reset, self.act = player.reset, player.act

        problems = replay(evaluate(LIGHTS, Impostor, tasks=3))
        assert len(problems) == 3
        assert f"of the agent {Impostor.name!r} is" in problems[0].what


def test_nothing_in_a_result_commands_the_terminal_and_time_is_bounded(honest: Path, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    evaluate(LIGHTS, "random", tasks=2, path=path)
    header, *episodes = read(path)
    episodes[0]["task"] = "\x1b[2J\x9b31m[red]\u202e"
    episodes[1]["stopped"] = "\x1b]0;mine\x07"
    write(path, [header, *episodes])
    done = run("verify", str(path))
    assert done.returncode == 1
    assert not set(done.stdout + done.stderr) & {"\x1b", "\x9b", "\x07", "\u202e"}
    assert "[red]" in done.stdout
    late = run("verify", str(path), "--seconds", "0.000001")
    assert late.returncode == 1
    assert "Stopped after 1e-06 seconds" in late.stderr
    assert "Traceback" not in late.stderr


def test_a_wrong_number_is_named_by_its_place(honest: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(honest, tmp_path / "r")
    summary = json.loads((folder / SUMMARY).read_text())
    turns = summary["all"]["turns"]
    summary["all"]["turns"], summary["parts"]["four"]["beauty"] = [1, 2, 3], "much"
    (folder / SUMMARY).write_text(json.dumps(summary, indent=2, sort_keys=True) + "\n")
    assert [mismatch.what for mismatch in verify_result(folder).mismatches] == [
        f"all.turns is {turns}, and [1, 2, 3] is recorded",
        "parts.four.beauty is None, and 'much' is recorded",
        "it is not what the episodes give",
    ]


def test_of_episodes_that_all_broke_nothing_is_proven(honest: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(honest, tmp_path / "r")
    (folder / IDENTITY).write_text((folder / IDENTITY).read_text().replace("admissible-random", "mine"))
    for part in SUITE.parts:
        values = read(records_of(folder, part))
        values[0]["agent"] = "mine"
        for episode in values[1:]:
            episode.update(broken="gone", success=False, terminated=False, truncated=True, stopped="")
        write(records_of(folder, part), values)
    summarize_again(folder)
    verification = verify_result(folder)
    assert (verification.mismatches, verification.trust) == ((), ())
    assert "Proven: nothing." in call("verify", str(folder)).stdout


@pytest.mark.parametrize("agreeing", [False, True])
def test_what_was_said_otherwise_is_named_with_its_turn(honest: Path, tmp_path: Path, agreeing: bool) -> None:
    folder = Path(shutil.copytree(honest, tmp_path / "r"))
    records, conversations = paths(folder)
    said, (header, *episodes) = read(conversations), read(records)
    text = said[0][3]["content"]
    said[0][3]["content"] = text.replace(": on", ": off", 1)
    assert said[0][3]["content"] != text
    write(conversations, said)
    if agreeing:
        shown = [message["content"] for message in said[0] if message["role"] == "user"]
        episodes[0]["observations"] = digest(shown)
        write(records, [header, *episodes])
    summarize_again(folder)
    (mismatch,) = verify_result(folder).mismatches
    assert re.search(r": after action 1, '.*: on.*' was said, and '.*: off.*' is recorded", mismatch.what)
    begins = "the agent read something else than is recorded" if agreeing else "its conversation is not what was said"
    assert mismatch.what.startswith(f"{begins}: ")


def test_what_was_said_is_checked_beside_a_result_file(tmp_path: Path) -> None:
    file = tmp_path / "lights.jsonl"
    assert call("eval", LIGHTS, "--agent", "oracle", "--tasks", "3", "--out", str(file)).returncode == 0
    conversations = tmp_path / "lights.conversations.jsonl.gz"
    said = read(conversations)
    assert call("verify", str(file)).returncode == 0
    for wrong in ([*said, said[0]], said[:2], [*said[:2], [{**said[2][0], "content": "Nothing."}, *said[2][1:]]]):
        write(conversations, wrong)
        assert call("verify", str(file)).returncode == 1
    write(conversations, said)
    assert call("verify", str(file)).returncode == 0
