"""Models behind a chat server: a real process that speaks the protocol, and misbehaves."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import jsonschema
import pytest

from tests.agents.chat_server import NO_ANSWERS, NO_COUNTS, TOO_LONG
from tests.cli.program import run
from tests.evaluation.results import SUITE, paths, read, summarize_again, write
from textagent_gym.errors import AgentFailedError, InvalidOptionError, MissingDependencyError
from textagent_gym.evaluation import (
    SUITES,
    Evaluation,
    evaluate,
    evaluate_suite,
    load,
    replay,
    save,
    verify_result,
)
from textagent_gym.evaluation.records import line
from textagent_gym.evaluation.remarks import LONGEST_REMARK, MOST_REMARKS
from textagent_gym.leaderboard.entries import check_entry
from textagent_gym.leaderboard.schema import schemas
from textagent_gym.processes import start
from textagent_gym.wrappers import ActionParser

pytest.importorskip("openai", reason='needs: pip install "textagent-gym[chat]"')
pytest.importorskip("tenacity", reason='needs: pip install "textagent-gym[chat]"')

from textagent_gym.agents import ChatAgents, ChatSettings

LIGHTS = "lights/Lights-v0"
PRICES = {"price_input": 2.0, "price_output": 20.0}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Address of the server, without the way it behaves."""
    program = [sys.executable, str(Path(__file__).with_name("chat_server.py"))]
    with start(program, stdout=subprocess.PIPE) as process:  # It ends with the tests, also where they are killed.
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        process.kill()


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textagent_gym.agents.chat_client._LONGEST_PAUSE", 0.05)


def agents(server: str, mood: str, **settings: Any) -> ChatAgents:
    return ChatAgents("m", ChatSettings(**{"base_url": f"{server}/{mood}/v1", "call_seconds": 1.0, **settings}))


def play(server: str, mood: str, *, tasks: int = 3, workers: int = 1, **settings: Any) -> Evaluation:
    env = gymnasium.make(LIGHTS)
    if settings.get("format"):
        env = ActionParser(env, settings["format"])
    result = evaluate(env, agents(server, mood, **settings), tasks=tasks, workers=workers)
    assert replay(result) == []
    return result


@pytest.mark.parametrize("settings", [{}, {"format": "tag"}, {"tools": True}], ids=["plain", "tag", "tools"])
def test_a_model_plays(server: str, settings: dict[str, Any]) -> None:
    result = play(server, "good", tasks=5, **settings)
    oracle = evaluate(LIGHTS, "oracle", tasks=5)
    assert [episode.turns for episode in result.episodes] == [episode.turns for episode in oracle.episodes]
    assert all(episode.success for episode in result.episodes)
    assert [episode.tokens for episode in result.episodes] == [3 * episode.turns for episode in result.episodes]
    assert result.agent == "openai:m"
    assert result.details["format"] == settings.get("format")
    if not settings.get("format"):
        assert {action.split()[0] for episode in result.episodes for action in episode.actions} == {"press"}


@pytest.mark.parametrize("tools", [False, True])
def test_reasoning_and_text_beside_a_call_are_kept_as_the_agents_own_word(
    server: str, tools: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SUITES, SUITE.name, SUITE)
    folder = tmp_path / "r"
    result = evaluate_suite(SUITE, agents(server, "thinking", tools=tools), folder)
    assert all(episode.success for episode in result.episodes)
    _, conversations = paths(folder)
    said = read(conversations)
    answers = [message for message in said[0] if message["role"] == "assistant"]
    for number, answer in enumerate(answers):
        assert answer["reasoning"] == f"<b>{2 * number + 2}</b> messages, \U0001f600\ud800 \x1b[2J"
        assert answer.get("text") == ("I press it." if tools else None)
        assert answer["content"].startswith("press ")
    jsonschema.validate(said[0], schemas()["PART.conversations.jsonl.gz"])
    assert verify_result(folder).mismatches == ()
    for wrong in ("", "x" * (LONGEST_REMARK + 1), 7, None):
        answers[0]["reasoning"] = wrong
        write(conversations, said)
        summarize_again(folder)
        assert [mismatch.episode for mismatch in verify_result(folder).mismatches] == [0]
    answers[0]["reasoning"] = "Another word of the agent's own."
    for message in said[1]:
        message.pop("reasoning", None)
    write(conversations, said)
    summarize_again(folder)
    assert verify_result(folder).mismatches == ()
    said[0][1]["reasoning"] = "What the world thinks."
    write(conversations, said)
    summarize_again(folder)
    assert [mismatch.episode for mismatch in verify_result(folder).mismatches] == [0]


@pytest.mark.parametrize(
    ("mood", "counts"),
    [
        ("good", (0, 0)),
        ("ended-length", (1, 0)),
        ("ended-content_filter", (0, 1)),
        ("refused", (0, 1)),
        ("ended-eos", (0, 0)),
    ],
)
def test_how_many_answers_were_cut_or_refused_is_recorded(
    server: str, mood: str, counts: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut, refused = counts
    monkeypatch.setitem(SUITES, SUITE.name, SUITE)
    folder = tmp_path / "r"
    result = evaluate_suite(SUITE, agents(server, mood), folder)
    for episode in result.episodes:
        assert (episode.cut, episode.refused) == (cut * episode.turns, refused * episode.turns)
        assert episode.tokens_read == 10 * episode.turns
        assert episode.served == ("m",)
    numbers = json.loads((folder / "summary.json").read_text())["all"]
    turns = sum(episode.turns for episode in result.episodes)
    assert (numbers["cut"], numbers["refused"], numbers["tokens_read"]) == (cut * turns, refused * turns, 10 * turns)
    _, conversations = paths(folder)
    answers = [message for said in read(conversations) for message in said if message["role"] == "assistant"]
    reason = mood.removeprefix("ended-") if mood != "refused" else "refusal"
    assert {answer.get("ended") for answer in answers} == {reason if cut or refused else None}
    records, _ = paths(folder)
    jsonschema.validate(read(records)[1], schemas()["PART.jsonl"])
    assert verify_result(folder).mismatches == ()


@pytest.mark.parametrize("reason", ["error", "abort", "network_error", "insufficient_system_resource"])
def test_an_answer_that_the_server_could_not_finish_is_no_action(server: str, reason: str) -> None:
    result = play(server, f"failing-{reason}", tasks=2)
    assert all(episode.success and episode.served == ("m",) for episode in result.episodes)
    (episode,) = play(server, f"ended-{reason}", tasks=1, retries=1).episodes
    assert reason in episode.broken
    assert episode.actions == ()


def test_what_has_answered_is_recorded_as_the_server_calls_it(server: str) -> None:
    for episode in play(server, "versioned").episodes:
        names = (f"m-{(turn + 1) // 2} fp_1" for turn in range(episode.turns))
        assert episode.served == tuple(dict.fromkeys(names))


def test_a_call_is_kept_as_it_was_written(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SUITES, SUITE.name, SUITE)
    evaluate_suite(SUITE, agents(server, "good", tools=True), tmp_path / "r")
    _, conversations = paths(tmp_path / "r")
    for message in read(conversations)[0]:
        if message["role"] == "assistant":
            call = json.loads(message["call"])
            assert call["name"] == "act"
            assert json.loads(call["arguments"]) == {"action": message["content"]}
    assert verify_result(tmp_path / "r").mismatches == ()


class Talkative:
    """Says more beside its actions than is kept."""

    name = "talkative"

    def __init__(self, env: gymnasium.Env[str, str]) -> None:
        self.remarks: Any = None

    def reset(self, seed: int) -> None:
        self.remarks = None

    def act(self, observation: str, info: dict[str, Any]) -> str:
        self.remarks = {"reasoning": "\U0001f600" * 10 * LONGEST_REMARK, "text": 7, "mood": "x"}
        return "press red"


def test_remarks_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SUITES, SUITE.name, SUITE)
    evaluate_suite(SUITE, Talkative, tmp_path / "r")
    answers = [message for message in read(paths(tmp_path / "r")[1])[0] if message["role"] == "assistant"]
    assert len(answers) > 3
    kept = [answer["reasoning"] for answer in answers if "reasoning" in answer]
    assert 0 < len(kept) < len(answers)
    assert all(len(text) == LONGEST_REMARK and text.endswith("[of 200000 characters]") for text in kept)
    assert sum(len(json.dumps(text)) for text in kept) <= MOST_REMARKS
    assert not any({"text", "mood"} & set(answer) for answer in answers)
    assert verify_result(tmp_path / "r").mismatches == ()


def test_a_server_that_misbehaves_costs_neither_turns_nor_episodes(server: str) -> None:
    result = play(server, "moody", tasks=3, retries=30)
    assert [episode.actions for episode in result.episodes] == [
        episode.actions for episode in play(server, "good").episodes
    ]
    assert not any(episode.broken for episode in result.episodes)


def test_64_conversations_are_in_flight(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one = play(server, "good", tasks=96)
    flying = set[int]()
    most = 0
    answer = ChatAgents.answer

    def counted(self: ChatAgents, *arguments: Any, **options: Any) -> Any:
        nonlocal most
        flying.add(threading.get_ident())
        most = max(most, len(flying))
        try:
            return answer(self, *arguments, **options)
        finally:
            flying.discard(threading.get_ident())

    monkeypatch.setattr(ChatAgents, "answer", counted)
    many = play(server, "slow", tasks=96, workers=64, call_seconds=60.0)
    assert [line(replace(episode, seconds=0.0)) for episode in one.episodes] == [
        line(replace(episode, seconds=0.0)) for episode in many.episodes
    ]
    assert 48 <= most <= 64  # Not all of them ask at the same moment.


def test_a_server_that_never_answers_breaks_episodes_and_loses_none(server: str) -> None:
    result = play(server, "dead", tasks=2, retries=0)
    assert all("out of order" in episode.broken and not episode.actions for episode in result.episodes)
    assert all(
        (episode.truncated, episode.terminated, episode.success) == (True, False, False) for episode in result.episodes
    )


def test_calls_that_are_made_again_are_told_once_a_minute(server: str, caplog: pytest.LogCaptureFixture) -> None:
    play(server, "dead", tasks=2, retries=1)
    (message,) = caplog.messages
    assert f"A call of the server at {server}/dead/v1 has failed, and is made again: " in message
    assert "out of order" in message


def test_what_broke_is_played_again_with_more_patience(server: str, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    hasty = evaluate(LIGHTS, agents(server, "moody", retries=0), tasks=3, path=path)
    assert any(episode.broken for episode in hasty.episodes)
    patient = agents(server, "moody", retries=20, call_seconds=0.9)
    assert not any(
        episode.broken for episode in evaluate(LIGHTS, patient, tasks=3, path=path, retry_broken=True).episodes
    )


def test_a_limit_of_tokens_is_told_by_the_name_that_the_model_takes(server: str) -> None:
    assert all(episode.success for episode in play(server, "newer", max_tokens=7).episodes)
    with pytest.raises(AgentFailedError, match="max_completion_tokens"):
        play(server, "newer")


@pytest.mark.parametrize("name", NO_ANSWERS)
def test_what_is_no_answer_is_a_failed_call(server: str, name: str) -> None:
    (episode,) = play(server, f"broken-{name}", tasks=1, retries=0, tools="call" in name).episodes
    assert "gives no answer: " in episode.broken
    assert not episode.actions


@pytest.mark.parametrize("name", NO_COUNTS)
def test_numbers_of_tokens_that_are_none_are_unknown(server: str, name: str) -> None:
    (episode,) = play(server, f"counting-{name}", tasks=1, price_input=1.0, price_output=1.0).episodes
    assert (episode.success, episode.tokens, episode.cost) == (True, None, None)


def test_text_in_parts_is_joined(server: str) -> None:
    assert play(server, "parts").episodes == play(server, "good").episodes


def test_half_of_a_pair_of_surrogates_is_the_agents_own_action(server: str) -> None:
    (episode,) = play(server, "half", tasks=1).episodes
    assert episode.actions[0] == "press \ud800"
    assert episode.success


def test_a_server_that_drips_is_cut_off(server: str) -> None:
    started = time.monotonic()
    (episode,) = play(server, "drip", tasks=1, retries=1, call_seconds=0.2).episodes
    assert "no whole answer within 0.2 seconds" in episode.broken
    (episode,) = play(server, "drip", tasks=1, retries=0, call_seconds=60.0, episode_seconds=0.3).episodes
    assert (episode.stopped, episode.broken) == ("time", "")
    assert time.monotonic() - started < 20


def test_a_server_that_refuses_every_call_ends_the_run_and_what_is_done_is_kept(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {"tasks": 3, "path": tmp_path / "r.jsonl"}
    for address, said in (
        (f"{server}/refusing/v1", "wrong key"),
        (f"{server}/spent/v1", "exceeded your current quota"),
        ("http://127.0.0.1:9/v1", "Connection error"),
    ):
        settings = ChatSettings(base_url=address, retries=1)
        with pytest.raises(
            AgentFailedError, match=said
        ):  # Each time anew: of a run without an episode nothing is kept.
            evaluate(LIGHTS, ChatAgents("m", settings), **asked)
    assert not (tmp_path / "r.jsonl").exists()
    good = agents(server, "good")
    answer, left = good.answer, [7]

    def revoked(*arguments: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise AgentFailedError("revoked")
        return answer(*arguments, **options)

    monkeypatch.setattr(good, "answer", revoked)
    with pytest.raises(AgentFailedError):
        evaluate(LIGHTS, good, **asked)
    assert len((tmp_path / "r.jsonl.part").read_text().splitlines()) == 3
    assert evaluate(LIGHTS, good, **asked).episodes == play(server, "good").episodes


def test_one_conversation_that_is_refused_breaks_its_episode_alone(server: str) -> None:
    result = play(server, "moderated", tasks=2)
    assert all("flagged" in episode.broken for episode in result.episodes)


def test_an_answer_without_a_word_is_the_agents_own(server: str) -> None:
    result = play(server, "empty", tasks=1)
    (episode,) = result.episodes
    assert set(episode.actions) == {""}
    assert episode.truncated
    assert not episode.broken


def test_a_damaged_call_costs_a_turn_and_of_several_the_first_counts(server: str) -> None:
    (episode,) = play(server, "odd", tasks=1, tools=True).episodes
    assert json.loads(episode.actions[0]) == {"name": "act", "arguments": "{"}
    assert episode.success
    assert "press black" not in episode.actions


@pytest.mark.parametrize("name", ["act", "view"])
def test_a_call_that_is_nested_too_deeply_is_damaged(name: str) -> None:
    agent = agents("http://localhost", "good", tools=True)(gymnasium.make(LIGHTS))
    for depth in range(800, 1000):  # Some can be read and not be written.
        value = "[" * depth + "]" * depth
        arguments = f'{{"action": {value}}}'
        whole = value if name == "act" else f'{{"name": "view", "arguments": {arguments}}}'
        assert agent._action(name, arguments) in (whole, json.dumps({"name": name, "arguments": arguments}))


@pytest.mark.parametrize(
    ("mood", "settings", "reason", "turns"),
    [
        ("short", {}, "context", 1),
        ("good", {"episode_turns": 2}, "turns", 2),
        ("good", {"episode_tokens": 4}, "tokens", 2),
        ("good", {"episode_seconds": 1e-9}, "time", 0),
        ("good", {"episode_cost": 100e-6, **PRICES}, "cost", 2),
    ],
)
def test_an_agent_stops_at_its_limits(
    server: str, mood: str, settings: dict[str, Any], reason: str, turns: int
) -> None:
    result = play(server, mood, tasks=1, **settings)
    (episode,) = result.episodes
    assert (episode.stopped, episode.turns, episode.success, episode.broken) == (reason, turns, False, "")


@pytest.mark.parametrize(
    ("number", "status"), [*((number, 400) for number in range(len(TOO_LONG))), (0, 500), (8, 500), (9, 422)]
)
def test_a_conversation_that_is_too_long_is_lost_in_whatever_words_a_server_says_so(
    server: str, number: int, status: int
) -> None:
    (episode,) = play(server, f"said-{number}-{status}", tasks=1).episodes
    assert (episode.stopped, episode.turns, episode.success, episode.broken) == ("context", 1, False, "")


def test_what_is_refused_for_another_reason_is_not_lost(server: str) -> None:
    (episode,) = play(server, "small", tasks=1).episodes
    assert "must be 1 in this context" in episode.broken
    assert not episode.stopped


def test_the_cost_is_that_of_the_tokens_which_the_server_counts(server: str, tmp_path: Path) -> None:
    result = play(server, "good", **PRICES)  # A call reads 10 tokens and writes 3.
    assert [episode.cost for episode in result.episodes] == [pytest.approx(80e-6 * e.turns) for e in result.episodes]
    save(result, tmp_path / "r.jsonl")
    assert load(tmp_path / "r.jsonl") == result
    assert [episode.cost for episode in play(server, "good").episodes] == [None] * 3
    assert "cost" not in line(play(server, "good").episodes[0])
    assert [episode.cost for episode in play(server, "uncounted", **PRICES).episodes] == [None] * 3


def test_the_cost_of_a_suite_is_in_its_summary(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SUITES, SUITE.name, SUITE)
    result = evaluate_suite(SUITE, agents(server, "good", **PRICES), tmp_path / "r")
    summary = json.loads((tmp_path / "r" / "summary.json").read_text())
    assert summary["all"]["cost"] == pytest.approx(80e-6 * sum(episode.turns for episode in result.episodes))
    assert verify_result(tmp_path / "r").mismatches == ()
    lines = (tmp_path / "r" / "four.jsonl").read_text().splitlines()
    jsonschema.validate(json.loads(lines[1]), schemas()["PART.jsonl"])


def test_a_result_continues_at_another_address_and_says_so_and_not_for_other_prices(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SUITES, SUITE.name, SUITE)
    folder, first, second = tmp_path / "r", agents(server, "good", **PRICES), agents(server, "parts", **PRICES)
    answer, left = first.answer, [7]

    def spent(*arguments: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise AgentFailedError("nothing left")
        return answer(*arguments, **options)

    monkeypatch.setattr(first, "answer", spent)
    with pytest.raises(AgentFailedError):
        evaluate_suite(SUITE, first, folder)
    others = agents(server, "good", price_input=1.0, price_output=20.0)
    with pytest.raises(InvalidOptionError, match=r"another result \(different: details.price_input\)"):
        evaluate_suite(SUITE, others, folder)
    evaluate_suite(SUITE, second, folder)
    kept = {path: path.read_bytes() for path in folder.iterdir()}
    evaluate_suite(SUITE, agents(server, "good", **PRICES), folder)  # It is complete.
    assert {path: path.read_bytes() for path in folder.iterdir()} == kept
    assert json.loads((folder / "result.json").read_text())["details"] == first.details
    assert [load(folder / f"{part.name}.jsonl").details for part in SUITE.parts] == [second.details] * 2
    evaluate_suite(SUITE, second, tmp_path / "other")
    one, other = check_entry(folder), check_entry(tmp_path / "other")
    assert one.agent_slug == other.agent_slug


@pytest.mark.parametrize("changed", [{"temperature": 0.5}, {"hints": True}, {"price_input": 1.0}])
def test_what_decides_what_an_agent_does_must_stay(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any]
) -> None:
    monkeypatch.setitem(SUITES, SUITE.name, SUITE)
    settings = {**PRICES, "episode_cost": 1.0}  # By which prices end episodes.
    play_again = agents(server, "good", **{**settings, **changed})
    evaluate_suite(SUITE, agents(server, "good", **settings), tmp_path / "r")
    (name,) = changed
    with pytest.raises(InvalidOptionError, match=rf"another result \(different: details.{name}\)"):
        evaluate_suite(SUITE, play_again, tmp_path / "r")
    evaluate(LIGHTS, agents(server, "good", **settings), tasks=1, path=tmp_path / "r.jsonl")
    with pytest.raises(InvalidOptionError, match=rf"another evaluation \(different: details.{name}\)"):
        evaluate(LIGHTS, play_again, tasks=1, path=tmp_path / "r.jsonl")


def test_a_limit_of_cost_that_cannot_be_kept_ends_the_episode_without_a_loss(server: str) -> None:
    settings = {**PRICES, "episode_cost": 1.0}
    (episode,) = play(server, "uncounted", tasks=1, **settings).episodes
    assert "episode_cost cannot be kept" in episode.broken


def test_neither_the_key_nor_a_password_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "secret-1")
    settings = ChatSettings(
        base_url="http://me:secret-2@host:80/v1?key=secret-3", key_variable="MY_KEY", temperature=0.5
    )
    details = ChatAgents("m", settings).details
    assert "secret" not in json.dumps(details)
    assert (details["base_url"], details["temperature"], details["model"]) == ("http://host:80/v1", 0.5, "m")


@pytest.mark.parametrize(
    "wrong",
    [
        {"format": "xml"},
        {"base_url": "localhost:8000/v1"},
        {"base_url": "http://[host/v1"},
        {"format": "tag", "tools": True},
        {"retries": -1},
        {"max_tokens": 0},
        {"temperature": float("nan")},
        {"temperature": -1.0},
        {"top_p": 7.0},
        {"top_p": 0.0},
        {"episode_turns": 0},
        {"call_seconds": 0.0},
        {"episode_seconds": float("nan")},
        {"price_input": -1.0, "price_output": 1.0},
        {"price_output": float("inf"), "price_input": 1.0},
        {"price_input": 1.0},
        {"episode_cost": 1.0},
        {"episode_cost": 0.0, "price_input": 1.0, "price_output": 1.0},
    ],
)
def test_a_wrong_setting_is_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidOptionError, match=next(iter(wrong))):
        ChatSettings(**wrong)


def test_the_format_plain_is_what_is_played_without_one() -> None:
    assert ChatSettings(format="plain", tools=True) == ChatSettings(tools=True)


def test_a_missing_client_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingDependencyError, match=r"textagent-gym\[chat\]"):
        ChatAgents("m", ChatSettings())


def test_a_model_is_evaluated_from_the_command_line(server: str, tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    prices = ("--price-input", "2", "--price-output", "20")
    arguments = ("--agent", "openai:m", "--base-url", f"{server}/good/v1", "--format", "tag", "--workers", "4", *prices)
    done = run("eval", LIGHTS, "--tasks", "6", "--out", str(out), *arguments)
    assert done.returncode == 0, done.stderr
    assert f"cost {80e-6 * sum(episode.turns for episode in load(out).episodes):.4g}" in " ".join(done.stdout.split())
    result = load(out)
    assert (result.details["format"], len(result.episodes)) == ("tag", 6)
    assert all("<action>" in action for episode in result.episodes for action in episode.actions)
    verified = run("verify", str(out))
    assert verified.returncode == 0, verified.stdout
    assert "that 'openai:m' acted" in verified.stdout
    assert "tokens, cost, and the versions" in verified.stdout
    done = run("eval", LIGHTS, "--tasks", "1", *(each.replace("/good/", "/uncounted/") for each in arguments))
    assert "The server does not count tokens, so cost is not known." in done.stdout
    done = run("eval", LIGHTS, "--tasks", "1", *(each.replace("/good/", "/empty/") for each in arguments))
    assert "answers were empty: they count as the agent's own." in done.stdout
    refused = run("eval", LIGHTS, "--agent", "oracle", "--temperature", "1")
    assert refused.returncode == 2
    assert "asks no server" in refused.stderr
