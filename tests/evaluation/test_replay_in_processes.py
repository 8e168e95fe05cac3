"""A replay that several processes share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import gymnasium
import pytest
from gymnasium.envs.registration import EnvSpec

from tests.cli.program import call
from tests.evaluation.results import LIGHTS
from tests.evaluation.test_untrusted import PARSER, wrapped
from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation import Evaluation, evaluate, replay, save


def test_several_processes_find_what_one_finds() -> None:
    honest = evaluate(LIGHTS, "random", tasks=6, episodes=2)
    seen: list[int] = []
    assert replay(honest, seen.append, workers=2) == []
    assert seen == list(range(1, 13))
    episodes = list(honest.episodes)
    for number in (9, 2):
        episodes[number] = replace(episodes[number], rewards=(*episodes[number].rewards[:-1], 0.5))
    episodes[4] = replace(episodes[4], task=episodes[2].task)
    forged = replace(honest, episodes=tuple(episodes), tasks=7)
    expected = replay(forged)
    assert [mismatch.episode for mismatch in expected] == [None, 2, 4, 9]
    assert replay(forged, workers=2) == replay(forged, workers=5) == expected


def played(world: str, *, quits: int) -> tuple[Evaluation, EnvSpec]:
    """The oracle's result in a world of the tests, with an episode that ends the process."""
    spec = EnvSpec(id=f"tests/{world}-v0", entry_point=f"tests.evaluation.worlds:{world}")
    honest = evaluate(gymnasium.make(spec), "oracle", tasks=8)
    episodes = list(honest.episodes)
    episodes[quits] = replace(episodes[quits], actions=("quit",), rewards=(0.0,))
    return replace(honest, episodes=tuple(episodes)), spec


def test_an_episode_whose_process_dies_is_never_right() -> None:
    result, spec = played("Vanishing", quits=3)
    seen: list[int] = []
    mismatches = replay(result, seen.append, spec=spec, workers=2)
    assert 3 in {mismatch.episode for mismatch in mismatches}
    assert {mismatch.what for mismatch in mismatches} == {"it cannot be played: a process that played died"}
    assert seen == list(range(1, 9))


def test_what_has_no_end_ends_with_the_time(tmp_path: Path) -> None:
    honest = evaluate(LIGHTS, "oracle", tasks=1)
    endless = replace(honest.episodes[0], actions=("a" * 60 + "b",), rewards=(0.0,))
    save(replace(honest, spec=wrapped((PARSER, {"parser": "((?:a+)+)$"})), episodes=(endless,)), tmp_path / "r.jsonl")
    done = call("verify", str(tmp_path / "r.jsonl"), "--seconds", "8", "--workers", "2")
    assert done.returncode == 1
    assert "Stopped after 8 seconds" in done.stderr


def test_there_is_somebody_who_plays() -> None:
    with pytest.raises(InvalidOptionError, match="workers must be at least 1"):
        replay(evaluate(LIGHTS, "oracle", tasks=1), workers=0)
