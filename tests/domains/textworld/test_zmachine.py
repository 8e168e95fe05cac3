"""The interpreter of compiled games."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.domains.textworld.kinds import KINDS, UpstreamGame
from textagent_gym.domains.textworld.commands import UNKNOWN_VERB
from textagent_gym.domains.textworld.engines import ZMachine
from textagent_gym.domains.textworld.store import load_file


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
