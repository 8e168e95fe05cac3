"""The leaderboard's first entries: what the suite's own agents and tiny policies reach. Anybody gets the same files.

    python -m benchmarks.reference_entries
    python -m benchmarks.reference_entries --summaries   # numbers of the episodes that are there; nothing is played

Each entry is verified by replay before it is kept, and what a tiny policy has sampled is computed again. `expert` and
`oracle` play where a world has them. A run that was stopped resumes from OUT.part.
"""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console
from rich.progress import Progress

from textagent_gym.agents import PolicySettings, policy_agents
from textagent_gym.evaluation import Suite, evaluate_suite, load_result, suite_of
from textagent_gym.evaluation.episode import base_of
from textagent_gym.evaluation.results import write_summary
from textagent_gym.files import part_of
from textagent_gym.leaderboard import check_entry, find_results
from textagent_gym.leaderboard.entries import digest_of
from textagent_gym.leaderboard.trust import forget_trust, note_trust, read_ledger

ENTRIES = Path(__file__).parent / "results"
POLICIES = Path(__file__).parent / "policies"
AGENTS = {"random": None, "admissible-random": "admissible_actions", "expert": "expert", "oracle": "oracle"}
"""Agents, and what a world must support so that they can play it."""
SUITES = (
    *(f"textworld-{name}-v1" for name in ("quick", "core", "state-size", "action-size", "solution-length", "harder")),
    *(f"alfworld-{name}-v1" for name in ("quick", "core", "state-size", "action-size", "solution-length", "harder")),
    *(f"textcraft-{name}-v2" for name in ("quick", "core", "state-size", "action-size", "solution-length", "harder")),
    *(f"{world}-reward-density-v1" for world in ("textworld", "alfworld", "textcraft", "babyai")),
    *("textworld-sizes-v1", "alfworld-official-seen-v1"),
    *("textcraft-minecraft-v1", "textcraft-agentgym-v1", "textcraft-agentgym-v2"),
    *("babyai-quick-v1", "babyai-core-v2", "babyai-state-size-v1", "babyai-action-size-v1"),
    *("babyai-solution-length-v2", "babyai-harder-v1", "babyai-agentgym-v1", "babyai-agentgym-v2"),
    *("scienceworld-quick-v1", "scienceworld-core-v1", "scienceworld-agentgym-v1", "scienceworld-harder-v1"),
    *(f"scienceworld-{name}-v1" for name in ("state-size", "action-size", "solution-length", "reward-density")),
    *("swe-quick-v1", "swe-core-v2", "swe-state-size-v1", "swe-action-size-v1"),
    *("swe-shell-v1", "swe-solution-length-v1", "swe-reward-density-v1", "swe-harder-v1"),
)
"""Suites that a small machine plays within minutes; ScienceWorld's core and AgentGym's, which take half an hour or
more; and SWE's, about a quarter of an hour each where their tasks are new, which are made by running tests."""
TINY = {
    "babyai-tiny-v1": (POLICIES / "babyai", PolicySettings(max_action_tokens=8)),
    "textworld-tiny-v1": (POLICIES / "textworld", PolicySettings(max_action_tokens=8, hints=True)),
    "textcraft-tiny-v2": (POLICIES / "textcraft", PolicySettings(max_action_tokens=24)),
    "scienceworld-tiny-v1": (POLICIES / "scienceworld", PolicySettings(max_action_tokens=16)),
}
"""Suites of tiny policies: folder of each, as `benchmarks.tiny_policies` keeps it, and its sampling."""


@dataclass(frozen=True)
class Settings:
    """Play the reference agents, and keep their results as OUT/SUITE/AGENT."""

    out: Path = ENTRIES
    """Folder of the entries; what is there of these suites is replaced once all are complete."""
    suites: tuple[str, ...] = (*SUITES, *TINY)
    """Suites to play; `textagent-gym suites` shows all."""
    summaries: bool = False
    """Compute the summaries of these suites' entries anew, from the episodes that are there."""


def main(settings: Settings) -> None:
    """Play, check and keep."""
    console = Console()
    if settings.summaries:
        for name in settings.suites:
            for place in find_results(settings.out / name):
                summarize_anew(place, settings.out)
        return
    jobs = [(suite, player) for suite in map(suite_of, settings.suites) for player in players(suite)]
    folder = part_of(settings.out)
    with Progress(console=console) as progress:
        bar = progress.add_task("Playing", total=len(jobs))
        for suite, player in jobs:
            progress.update(bar, description=f"{player} in {suite.name}")
            add(suite, player, folder)
            progress.advance(bar)
    settings.out.mkdir(parents=True, exist_ok=True)
    for name in settings.suites:
        shutil.rmtree(settings.out / name, ignore_errors=True)
        (folder / name).rename(settings.out / name)
    for digest, levels in read_ledger(folder).items():
        note_trust(settings.out, digest, levels)
    shutil.rmtree(folder)
    console.print(f"{len(jobs)} entries below {settings.out}", soft_wrap=True)


def add(suite: Suite, player: str, results: Path) -> None:
    """Play a suite, check the result, and note beside it what was proven."""
    place = results / suite.name / player
    if player in AGENTS:
        evaluate_suite(suite, player, place)
        check_entry(place)
    else:
        run, sampling = TINY[suite.name]
        evaluate_suite(suite, policy_agents(str(run / "policy"), sampling, 1), place, run=run)
        entry = check_entry(place, model=run / "policy")
        note_trust(results, entry.digest, entry.trust)


def summarize_anew(place: Path, results: Path) -> None:
    """Write the summary of an entry once more; what was proven of its episodes stays proven."""
    before = digest_of(place)
    write_summary(place, load_result(place))
    after = digest_of(place)
    ledger = read_ledger(results)
    if before in ledger and after != before:
        note_trust(results, after, ledger[before])
        forget_trust(results, before)


def players(suite: Suite) -> list[str]:
    """Agents that can play every part of a suite, and "tiny" for the tiny policy that was trained on such tasks."""
    supported = []
    for part in suite.parts:
        with closing(part.make()) as env:
            supported.append(base_of(env).supports)
    agents = [agent for agent, need in AGENTS.items() if need is None or all(need in each for each in supported)]
    return [*agents, "tiny"] if suite.name in TINY else agents


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__, config=(tyro.conf.FlagCreatePairsOff,)))
