"""The interpreter of compiled games."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.domains.textworld.kinds import KINDS, UpstreamGame
from textagent_gym.domains.textworld.commands import UNKNOWN_VERB, listed_commands
from textagent_gym.domains.textworld.engines import ZMachine, zmachine
from textagent_gym.domains.textworld.engines.engine import Reply
from textagent_gym.domains.textworld.engines.interpreters import Interpreters
from textagent_gym.domains.textworld.store import StoredGame, load_file
from textagent_gym.errors import WorldBrokenError


@pytest.fixture
def interpreters(monkeypatch: pytest.MonkeyPatch) -> Interpreters:
    """The interpreters of this test alone; nothing has been played with them."""
    mine = Interpreters()
    monkeypatch.setattr(zmachine, "_interpreters", mine)
    forget()
    return mine


def forget() -> None:
    zmachine.begin.cache_clear()
    zmachine.play.cache_clear()


def walk(game: StoredGame, seed: int, steps: int = 12) -> list[tuple[Reply, int | None]]:
    """Replies and facts of a random walk."""
    engine, rng, seen = ZMachine(), random.Random(seed), []
    engine.start(game)
    assert game.logic is not None
    for _ in range(steps):
        assert engine.state is not None
        reply = engine.step(rng.choice((*listed_commands(game.logic, engine.state), "again", "wait")))
        seen.append((reply, engine.state))
        if reply.won or reply.lost:
            engine.start(game)
    engine.close()
    return seen


@pytest.mark.parametrize(
    "command", ["restart", "quit", "pronouns", "notify off", "superbrief", "verify", "restrict commands"]
)
def test_a_turn_that_meddles_with_the_program_is_taken_back(command: str, upstream_game: UpstreamGame) -> None:
    game = load_file(Path(upstream_game(KINDS[0], 1)[1]))
    expected, machine = ZMachine(), ZMachine()
    for player in (expected, machine):
        player.start(game)
        player.step(game.solution[0])
    assert machine.step(command) == expected.step(UNKNOWN_VERB)
    assert machine.state == expected.state
    assert [machine.step(each) for each in game.solution[1:]] == [expected.step(each) for each in game.solution[1:]]


def test_playing_many_games_takes_no_more_memory_than_playing_a_few() -> None:
    for name, options in (("textagent/TextWorld-w2-o3-q4-v0", {}), ("textagent/ALFWorld-v0", {})):
        code = (
            "import gymnasium\n"
            "def resident():\n"
            "    return int(open('/proc/self/statm').read().split()[1]) * 4096 / 2**20\n"
            f"env = gymnasium.make({name!r}, **{options!r}).unwrapped\n"
            "for episode in range(300):\n"
            "    env.reset(options={'task_index': episode % 5})\n"
            "    env.step('look')\n"
            "    if episode == 99:\n"
            "        before = resident()\n"
            "print(resident() - before)\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
        assert float(done.stdout) < 10.0, name  # Without giving memory back: 80 MB.


def test_what_was_played_before_is_not_run_again(interpreters: Interpreters, upstream_game: UpstreamGame) -> None:
    game = load_file(Path(upstream_game(KINDS[0], 1)[1]))
    played = walk(game, seed=0)
    runs = zmachine.play.cache_info().misses
    assert walk(game, seed=0) == played
    assert zmachine.play.cache_info().misses == runs
    engine = ZMachine()
    engine.start(game)
    engine.step("dance")
    assert zmachine.play.cache_info().misses == runs + 1


@pytest.mark.parametrize("number", [1, 3])
def test_games_that_share_an_interpreter_are_played_as_if_each_were_alone(
    number: int, interpreters: Interpreters, upstream_game: UpstreamGame
) -> None:
    games = [load_file(Path(upstream_game(KINDS[kind], 1)[1])) for kind in (0, 1)]
    expected = []
    for game in games:
        for _ in range(number):
            forget()
            engine = ZMachine()
            expected.append((engine.start(game), *(engine.step(command) for command in game.solution[:4])))
            engine.close()
    forget()
    engines = [ZMachine() for _ in expected]
    there = [game for game in games for _ in range(number)]
    seen = [[engine.start(game)] for engine, game in zip(engines, there, strict=True)]
    for engine in engines[1:]:
        engine.close()  # Only one interpreter is kept: it reads the other story for each command that is new.
    for turn in range(4):
        for engine, game, replies in zip(engines, there, seen, strict=True):
            replies.append(engine.step(game.solution[turn]))
    assert [tuple(replies) for replies in seen] == expected


def test_engines_of_one_story_share_an_interpreter_and_closed_ones_leave_none(
    interpreters: Interpreters, upstream_game: UpstreamGame
) -> None:
    games = [load_file(Path(upstream_game(KINDS[kind], 1)[1])) for kind in (0, 1)]
    engines = [ZMachine() for _ in range(6)]
    for number, engine in enumerate(engines):
        engine.start(games[number % 2])
        engine.step("look")
        engine.step(f"take {number}")
    assert len(interpreters) == 2
    for engine in engines[1:]:
        engine.close()
    assert len(interpreters) == 1
    del engine, engines  # The last one is never closed.
    with interpreters.borrow(str(games[0].story)):
        assert len(interpreters) == 1
    assert len(interpreters) == 0


def test_threads_play_as_one_does(interpreters: Interpreters, upstream_game: UpstreamGame) -> None:
    games = [load_file(Path(upstream_game(KINDS[kind], 1)[1])) for kind in (0, 1)]
    plans = [(game, seed) for seed in range(6) for game in games]
    expected = [walk(*plan) for plan in plans]
    forget()
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda plan: walk(*plan), plans)) == expected
    assert len(interpreters) == 0


def test_a_story_that_is_deleted_in_the_middle_of_a_game_breaks_the_world(
    interpreters: Interpreters, upstream_game: UpstreamGame, tmp_path: Path
) -> None:
    story = Path(upstream_game(KINDS[0], 1)[1])
    mine = Path(shutil.copy(story, tmp_path))
    shutil.copy(story.with_suffix(".json"), tmp_path)
    engine, game = ZMachine(), load_file(mine)
    engine.start(game)
    known = engine.step("look")
    engine.close()  # So that the story has to be read again.
    mine.unlink()
    with pytest.raises(WorldBrokenError, match="cannot be read"):
        engine.step("inventory")
    engine.start(game)
    assert engine.step("look") == known
