"""What reaches a game, and what an agent reads where nothing does."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from textagent_gym.domains.textworld.commands import LONGEST_COMMAND, playable

META = (
    *("restart", "quit", "q", "save", "restore", "undo", "script", "transcript on", "noscript", "verify", "version"),
    *("me, save", "look. save", "look then save", "saves nothing. restart", "transcripts", "tw-print max_score"),
    *("tw-trace-actions", "restrict commands", "superbrief", "notify off", "pronouns", "oops", "score"),
    *("print_state", "enable print state option", "player, quit", '"save"', "look\nsave", "l\x00ook", "\\", "\x1b[31m"),
    *("look. score", "me, verbose", "look then version", ", score", "me, q", 'q"and"', "look. q"),
)


@pytest.fixture(scope="module")
def env() -> gymnasium.Env[str, str]:
    return gymnasium.make("textagent/TextWorld-w2-o3-q4-v0", num_tasks=1, max_turns=10_000).unwrapped


@pytest.mark.parametrize("command", META)
def test_commands_about_the_program_are_ordinary_invalid_actions(
    env: gymnasium.Env[str, str], command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    env.reset(seed=0)
    look = env.step("look")[0]
    observation, _, terminated, truncated, info = env.step(command)
    assert info["valid_action"] is False
    assert not terminated
    assert not truncated
    assert "Are you sure" not in observation
    assert env.step("look")[0] == look
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(command=st.one_of(st.text(max_size=300), st.text(st.sampled_from("savequitrscp.,;\"' nlok"), max_size=30)))
def test_no_string_upsets_the_world(env: gymnasium.Env[str, str], command: str, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        env.reset(seed=0)
        observation, _, _, _, info = env.step(command)
        assert observation in env.observation_space
        assert info["turn"] == 1
        env.step("look")
        assert "-=" in env.step("look")[0]
        assert list(tmp_path.iterdir()) == []


def test_a_letter_that_ends_the_game_as_a_verb_may_stand_in_a_name() -> None:
    assert playable("take type Q latchkey") == "take type q latchkey"


def test_a_megabyte_costs_a_turn(env: gymnasium.Env[str, str]) -> None:
    env.reset(seed=0)
    assert env.step("go north " * 2**17)[4]["valid_action"] is False
    assert "-=" in env.step("look")[0]


def test_what_a_person_would_type_passes() -> None:
    assert playable("  Take the  Type-J keycard from the dish-pit. ") == "take the type-j keycard from the dish-pit."
    assert playable("take chef's knife") == "take chef's knife"
    assert playable("take long knife") == "take long knife"
    assert playable("Go north, then look.") == "go north, then look."
    assert playable("take caf\xe9 \u212a") == "take caf? ?"
    assert len(playable("take " + "x" * 1_000)) == LONGEST_COMMAND


def test_an_empty_command_is_answered(env: gymnasium.Env[str, str]) -> None:
    env.reset(seed=0)
    assert env.step("  ")[0] == "I beg your pardon?"


@pytest.mark.parametrize("command", ["look!", "look?", "i!"])
def test_only_a_full_stop_ends_a_sentence(env: gymnasium.Env[str, str], command: str) -> None:
    env.reset(seed=0)
    observation, *_, info = env.step(command)
    assert observation == "That's not a verb I recognise."
    assert info["valid_action"] is False
    assert env.step("look.")[4]["valid_action"] is True
