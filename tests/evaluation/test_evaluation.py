"""Runs, intervals, result files, replays, the page."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation import (
    EpisodeRecord,
    Evaluation,
    evaluate,
    load,
    mean_interval,
    replay,
    save,
    summarize,
    wilson_interval,
)
from textagent_gym.evaluation.report import Row, Transcript, write_report

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


def record(task: str, success: bool) -> EpisodeRecord:
    return EpisodeRecord(task, 0, ("a",), (float(success),), success, success, not success)


def test_a_mean_without_spread_has_no_width() -> None:
    assert mean_interval([2.0] * 5) == mean_interval([2.0] * 9)


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
    "forge",
    [
        lambda r: replace(r, rewards=(*r.rewards[:-1], 1.0)),
        lambda r: replace(r, success=True),
        lambda r: replace(r, actions=(*r.actions, "press red"), rewards=(*r.rewards, 0.0)),
        lambda r: replace(r, actions=r.actions[:-1], rewards=r.rewards[:-1]),
        lambda r: replace(r, actions=(), rewards=()),
        lambda r: replace(r, invalid_actions=3),
    ],
)
def test_a_forged_result_is_found_out(forge: object) -> None:
    honest = evaluate(LIGHTS, "random", tasks=3)
    episodes = (honest.episodes[0], forge(honest.episodes[1]), honest.episodes[2])
    assert [m.episode for m in replay(replace(honest, episodes=episodes))] == [1]


def test_a_stopped_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "result.jsonl"
    seen: list[EpisodeRecord] = []

    def stop(episode: EpisodeRecord) -> None:
        seen.append(episode)
        if len(seen) == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(LIGHTS, "admissible-random", tasks=5, episodes=2, path=path, progress=stop)
    assert not path.exists()
    part = tmp_path / "result.jsonl.part"
    part.write_text(part.read_text() + '{"key": "4/1", "task"')  # A kill can cut a line.
    again = evaluate(LIGHTS, "admissible-random", tasks=5, episodes=2, path=path)
    assert again == evaluate(LIGHTS, "admissible-random", tasks=5, episodes=2)


def test_another_evaluation_does_not_continue_a_stopped_one(tmp_path: Path) -> None:
    path = tmp_path / "result.jsonl"
    part = tmp_path / "result.jsonl.part"
    evaluate(LIGHTS, "random", tasks=2, path=path)
    path.rename(part)
    with pytest.raises(InvalidOptionError, match="another evaluation"):
        evaluate(LIGHTS, "oracle", tasks=2, path=path)


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
    save(Evaluation("a", LIGHTS, {}, "train", (record("t", True),)), tmp_path / "deep" / "r.jsonl")
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["r.jsonl"]
    assert json.loads((tmp_path / "deep" / "r.jsonl").read_text().splitlines()[0])["agent"] == "a"
