"""TextWorld through this suite beside plain TextWorld: the same compiled games, the same commands, one process.

python -m benchmarks.textworld_env

Times are of the processor. Each engine is measured twice: on turns that it has played before, and on turns that it has
to play ("anew").
"""

from __future__ import annotations

import resource
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
from rich.console import Console
from rich.table import Table

from textagent_gym.domains.textworld.engines import turns, zmachine
from textagent_gym.domains.textworld.generation import draw_as_made, textworld_generator
from textagent_gym.domains.textworld.specs import make_spec

SIZES = ((2, 3, 4), (4, 6, 8), (8, 12, 12))
COMMANDS = ("look", "inventory", "go north", "go south", "go east", "go west", "examine me", "dance")
STEPS, RESETS = 400, 40
ENVS = 50
"""Environments of the measurement of memory."""
PLAYERS: dict[str, Callable[[], object]] = {
    "reference": zmachine.play.cache_info,
    "reference, anew": zmachine.play.cache_clear,
    "native": lambda: None,
    "native, anew": turns.forget,
}
"""What plays, and what is done before each step: all turns are forgotten, or none."""

SETTINGS: dict[str, tuple[dict[str, bool], tuple[str, ...]]] = {
    "text only": ({}, ()),
    "and admissible actions": ({"admissible_commands": True}, ("admissible_actions",)),
    "and the next best one": (
        {"admissible_commands": True, "policy_commands": True},
        ("admissible_actions", "oracle_action"),
    ),
}


def processor_seconds() -> float:
    """Seconds of the processor that this process and those that it has waited for have used."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def per_second(work: Callable[[], Any], times: int) -> float:
    """How often a piece of work is done in a second of the processor."""
    started = time.process_time()
    for _ in range(times):
        work()
    return times / (time.process_time() - started)


def main() -> None:
    """Print steps/s, resets/s and their ratios."""
    import textworld

    table = Table(title="TextWorld, this suite beside plain TextWorld", header_style="bold")
    for column in ("game", "information", "engine", "steps/s", "upstream", "ratio", "resets/s", "upstream", "ratio"):
        table.add_column(column)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for rooms, objects, length in SIZES:
            home = Path(folder, f"w{rooms}-o{objects}-q{length}")
            home.mkdir()
            with textworld_generator():
                game = draw_as_made(make_spec(rooms=rooms, objects=objects, quest_length=length), 1)
                options = textworld.GameOptions()
                options.path = str(home / "game.z8")
                story = textworld.generator.compile_game(game, options)
            for name, (requested, infos) in SETTINGS.items():
                commands = [COMMANDS[i % len(COMMANDS)] for i in range(STEPS)]
                upstream = textworld.start(story, textworld.EnvInfos(**requested))
                upstream.reset()
                there = iter(commands)
                theirs = per_second(lambda u=upstream, c=there: u.step(next(c)), STEPS)
                their_resets = per_second(upstream.reset, RESETS)
                upstream.close()
                for player, forget in PLAYERS.items():
                    ours = gymnasium.make(
                        "textagent/TextWorld-v0",
                        game="files",
                        path=str(home),
                        infos=infos,
                        max_turns=10**9,
                        engine=player.partition(",")[0],
                    ).unwrapped
                    for _ in range(2):  # The second walk counts: its turns were played before, unless forgotten.
                        ours.reset(options={"task_index": 0})
                        here = iter(commands)
                        own = per_second(lambda o=ours, c=here, f=forget: (f(), o.step(next(c))), STEPS)
                    own_resets = per_second(lambda o=ours: o.reset(options={"task_index": 0}), RESETS)
                    ours.close()
                    table.add_row(
                        home.name,
                        name,
                        player,
                        f"{own:,.0f}",
                        f"{theirs:,.0f}",
                        f"{own / theirs:.2f}",
                        f"{own_resets:,.0f}",
                        f"{their_resets:,.0f}",
                        f"{own_resets / their_resets:.1f}",
                    )
        Console().print(table)
        for engine in ("native", "reference"):
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            envs = [
                gymnasium.make("textagent/TextWorld-v0", game="files", path=str(home), engine=engine).unwrapped
                for _ in range(ENVS)
            ]
            for env in envs:
                env.reset(options={"task_index": 0})
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / ENVS
            Console().print(f"Memory of an extra environment, {engine}: {grown:.0f} KiB (growth of the peak).")
            for env in envs:
                env.close()


if __name__ == "__main__":
    main()
