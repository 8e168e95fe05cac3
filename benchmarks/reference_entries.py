"""The leaderboard's first entries: what the suite's own agents reach. Anybody gets the same files.

    python -m benchmarks.reference_entries

Each entry is verified by replay before it is kept. `expert` and `oracle` play where a world has them. A run that was
stopped resumes from OUT.part.
"""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console
from rich.progress import Progress

from textagent_gym.evaluation import Suite, evaluate_suite, suite_of
from textagent_gym.evaluation.episode import base_of
from textagent_gym.files import part_of
from textagent_gym.leaderboard import check_entry

ENTRIES = Path(__file__).parent / "results"
AGENTS = {"random": None, "admissible-random": "admissible_actions", "expert": "expert", "oracle": "oracle"}
"""Agents, and what a world must support so that they can play it."""
SUITES = (
    "textworld-quick-v1",
    "alfworld-quick-v1",
    "alfworld-state-size-v1",
    "alfworld-action-size-v1",
    "textcraft-quick-v1",
    "textcraft-solution-length-v1",
    "babyai-quick-v1",
    "swe-quick-v1",
)
"""Suites that are played within minutes, and whose results are small enough for a repository."""


@dataclass(frozen=True)
class Settings:
    """Play the reference agents, and keep their results as OUT/SUITE/AGENT."""

    out: Path = ENTRIES
    """Folder of the entries; what is there is replaced once all are complete."""
    suites: tuple[str, ...] = SUITES
    """Suites to play; `textagent-gym suites` shows all."""


def main(settings: Settings) -> None:
    """Play, check and keep."""
    console = Console()
    jobs = [(suite, agent) for suite in map(suite_of, settings.suites) for agent in players(suite)]
    folder = part_of(settings.out)
    with Progress(console=console) as progress:
        bar = progress.add_task("Playing", total=len(jobs))
        for suite, agent in jobs:
            progress.update(bar, description=f"{agent} in {suite.name}")
            place = folder / suite.name / agent
            evaluate_suite(suite, agent, place)
            check_entry(place)
            progress.advance(bar)
    if settings.out.exists():
        shutil.rmtree(settings.out)
    folder.rename(settings.out)
    console.print(f"{len(jobs)} entries below {settings.out}", soft_wrap=True)


def players(suite: Suite) -> list[str]:
    """Agents that can play every part of a suite."""
    supported = []
    for part in suite.parts:
        with closing(part.make()) as env:
            supported.append(base_of(env).supports)
    return [agent for agent, need in AGENTS.items() if need is None or all(need in each for each in supported)]


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__, config=(tyro.conf.FlagCreatePairsOff,)))
