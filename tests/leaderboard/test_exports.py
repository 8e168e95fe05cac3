"""Trajectories in other tools' formats, read by these tools' own readers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from tests.cli.program import call, run
from tests.evaluation.results import SUITE, paths, read, write
from tests.leaderboard.results import ATTACK
from textagent_gym.errors import AgentError, InvalidOptionError
from textagent_gym.evaluation import SUITES, evaluate_suite, load, load_result, verify_result
from textagent_gym.leaderboard.atif import atif
from textagent_gym.leaderboard.conversations import read_conversations
from textagent_gym.leaderboard.inspect_logs import write_inspect_log

NAMES = ("oracle", "admissible-random", "attacking")


@pytest.mark.parametrize("name", NAMES)
def test_atif_documents_are_read_by_the_formats_own_package(results: Path, name: str) -> None:
    reader = pytest.importorskip("atif", reason="needs: pip install atif")
    folder = results / SUITE.name / name
    episodes = load_result(folder).episodes
    documents = [atif(conversation) for conversation in read_conversations(folder)]
    assert len(documents) == len(episodes)
    for document, record in zip(documents, episodes, strict=True):
        trajectory = reader.Trajectory.model_validate_json(json.dumps(document))
        assert trajectory.schema_version == "ATIF-v1.7"
        acted = [step for step in trajectory.steps if step.source == "agent"]
        assert [step.message for step in acted] == [text.replace("\ud800", "\ufffd") for text in record.actions]
        assert tuple(step.extra["reward"] for step in acted) == record.rewards
        written = ATTACK.replace("\ud800", "\ufffd") if name == "attacking" else None
        assert {(step.reasoning_content, step.extra.get("text")) for step in acted} == {(written, written)}
        assert trajectory.final_metrics.extra["return"] == record.total_reward
        assert trajectory.final_metrics.extra["success"] is record.success
        assert acted[-1].observation.results[0].content == last_words(folder, document["trajectory_id"])
    assert len({document["trajectory_id"] for document in documents}) == len(documents)


def last_words(folder: Path, name: str) -> str:
    return next(conversation.observations[-1] for conversation in read_conversations(folder) if conversation.id == name)


@pytest.mark.parametrize("name", NAMES)
def test_inspect_reads_its_logs(results: Path, name: str, tmp_path: Path) -> None:
    log = pytest.importorskip("inspect_ai.log", reason='needs: pip install "textagent-gym[inspect]"')
    folder = results / SUITE.name / name
    part = SUITE.parts[0]
    episodes = [conversation for conversation in read_conversations(folder) if conversation.part == part.name]
    episodes = [replace(each, details={**each.details, "\ud800": "\ud800"}) for each in episodes]
    write_inspect_log(tmp_path / "part.eval", episodes)
    there = log.read_eval_log(str(tmp_path / "part.eval"))
    records = load_result(folder).evaluations[part.name].episodes
    assert there.status == "success"
    assert there.eval.config.epochs == part.episodes
    found = {(sample.id, sample.epoch): sample for sample in there.samples}
    assert len(found) == len(records)
    for number, record in enumerate(records):
        sample = found[record.task, number % part.episodes + 1]
        answers = [message.text for message in sample.messages if message.role == "assistant"]
        assert answers == [text.replace("\ud800", "\ufffd") for text in record.actions]
        if name == "attacking":
            (asked,) = {message.content[0].reasoning for message in sample.messages if message.role == "assistant"}
            assert asked == ATTACK.replace("\ud800", "\ufffd")
        rewards = [m.metadata["reward"] for m in sample.messages if m.role == "user" and m.metadata]
        assert tuple(rewards) == record.rewards
        assert sample.scores["textagent_gym"].value == int(record.success)
    share = sum(record.success for record in records) / len(records)
    assert there.results.scores[0].metrics["accuracy"].value == pytest.approx(share)


class Calling:
    """Calls a function, and counts."""

    name = "calling"
    details: dict[str, Any] = {"model": "m", "temperature": 0.5, "max_tokens": "many"}  # noqa: RUF012

    def __init__(self, env: gymnasium.Env[str, str]) -> None:
        self.tokens, self.tokens_read, self.cost, self.cut, self.served = 7, 40, 0.25, 0, ["m-1"]
        self.remarks = {"call": json.dumps({"name": "act", "arguments": '{"action": "press red"}'}), "ended": "length"}

    def reset(self, seed: int) -> None:
        pass

    def act(self, observation: str, info: dict[str, Any]) -> str:
        return "press red"


def test_calls_tokens_and_sampling_are_where_others_look_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SUITES, SUITE.name, SUITE)
    reader = pytest.importorskip("atif", reason="needs: pip install atif")
    log = pytest.importorskip("inspect_ai.log", reason='needs: pip install "textagent-gym[inspect]"')
    evaluate_suite(SUITE, Calling, tmp_path / "r")
    assert verify_result(tmp_path / "r").mismatches == ()
    episodes = [each for each in read_conversations(tmp_path / "r") if each.part == SUITE.parts[0].name]
    for conversation in episodes:
        trajectory = reader.Trajectory.model_validate_json(json.dumps(atif(conversation)))
        for step in trajectory.steps:
            if step.source == "agent":
                (call,) = step.tool_calls
                assert (call.function_name, call.arguments) == ("act", {"action": "press red"})
                assert step.observation.results[0].source_call_id == call.tool_call_id
                assert step.extra["ended"] == "length"
        metrics = trajectory.final_metrics
        assert (metrics.total_prompt_tokens, metrics.total_completion_tokens) == (40, 7)
        assert (metrics.extra["cost"], metrics.extra["served"], metrics.extra["cut"]) == (0.25, ["m-1"], 0)
    write_inspect_log(tmp_path / "part.eval", episodes)
    there = log.read_eval_log(str(tmp_path / "part.eval"))
    assert there.eval.model_generate_config.temperature == 0.5
    assert there.eval.model_generate_config.max_tokens is None
    (usage,) = there.stats.model_usage.values()
    assert (usage.input_tokens, usage.output_tokens) == (40 * len(episodes), 7 * len(episodes))
    for sample, conversation in zip(there.samples, episodes, strict=True):
        (usage,) = sample.model_usage.values()
        assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (40, 7, 47)
        called = [call for message in sample.messages if message.role == "assistant" for call in message.tool_calls]
        assert {(call.function, call.arguments["action"]) for call in called} == {("act", "press red")}
        answers = [message for message in sample.messages if message.role == "tool"]
        assert [message.tool_call_id for message in answers] == [call.id for call in called]
        assert tuple(message.metadata["reward"] for message in answers) == conversation.record.rewards
        assert sample.metadata["cost"] == 0.25


def test_a_result_file_of_an_id_is_exported_too(tmp_path: Path) -> None:
    reader = pytest.importorskip("atif", reason="needs: pip install atif")
    file = tmp_path / "lights.jsonl"
    asked = ("--agent", "admissible-random", "--tasks", "3", "--episodes", "2")
    assert call("eval", "lights/Lights-v0", *asked, "--out", str(file)).returncode == 0
    done = call("trajectories", str(file), "--format", "atif", "--out", str(tmp_path / "out"))
    assert done.returncode == 0
    records = load(file).episodes
    for number, record in enumerate(records):
        document = (tmp_path / "out" / "lights" / f"{number}.json").read_text()
        trajectory = reader.Trajectory.model_validate_json(document)
        assert tuple(step.message for step in trajectory.steps if step.source == "agent") == record.actions
        assert trajectory.extra["task"] == record.task
    assert len(records) == 6


def test_a_conversation_of_something_else_is_refused(results: Path, tmp_path: Path) -> None:
    import shutil

    folder = Path(shutil.copytree(results / SUITE.name / "oracle", tmp_path / "oracle"))
    _, conversations = paths(folder)
    write(conversations, read(conversations)[::-1])
    with pytest.raises(InvalidOptionError, match="line 1 does not say what was played"):
        list(read_conversations(folder))
    write(conversations, [7])
    with pytest.raises(InvalidOptionError, match="line 1 is no conversation"):
        list(read_conversations(folder))


def test_the_command_never_overwrites(results: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("years of work")
    oracle = str(results / SUITE.name / "oracle")
    done = run("trajectories", oracle, "--format", "atif", "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert "is not overwritten" in " ".join(done.stderr.split())


class Silent:
    """Its server never answers."""

    name = "silent"

    def __init__(self, env: gymnasium.Env[str, str]) -> None:
        pass

    def reset(self, seed: int) -> None:
        pass

    def act(self, observation: str, info: dict[str, Any]) -> str:
        raise AgentError("the server does not answer")


@pytest.mark.parametrize("format", ["atif", "inspect"])
def test_nothing_to_write_is_said(tmp_path: Path, format: str) -> None:
    evaluate_suite(SUITE, Silent, tmp_path / "r")
    done = call("trajectories", str(tmp_path / "r"), "--format", format, "--out", str(tmp_path / "out"))
    assert done.returncode == 1
    assert "Every episode broke: there is nothing to write." in done.stderr
