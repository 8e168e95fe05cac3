"""`textagent-gym eval`."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from textagent_gym.cli.environment import ChosenTasks

if TYPE_CHECKING:
    from rich.table import Table

    from textagent_gym.evaluation import Evaluation, Summary


@dataclass(frozen=True, kw_only=True)
class Eval(ChosenTasks):
    """Play an agent on the tasks of a split, print its success with a 95% interval, and write a result file.

    Without --split, the test split is played, or another held-out one if there is no test split; the table names it.
    """

    agent: str = "admissible-random"
    """Agent that plays.
    random: any text. admissible-random: any action that would do something now.
    oracle: knows everything. expert: knows only what it has read. human: you, at the terminal."""
    episodes: int = 1
    """Number of episodes per task, each with another seed."""
    seed: int = 0
    """Seed of the first episode of each task."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="")] = None
    """Result file to write, which `textagent-gym verify` checks. The same command resumes a run that was stopped."""

    def run(self) -> int:
        """Evaluate."""
        from rich.console import Console

        from textagent_gym.agents import AGENTS
        from textagent_gym.cli.progress import bar
        from textagent_gym.errors import InvalidOptionError
        from textagent_gym.evaluation import check_evaluation, evaluate
        from textagent_gym.files import check_writable, part_of

        if self.agent not in AGENTS:
            raise InvalidOptionError(f"agent {self.agent!r} does not exist; choose one of: {', '.join(AGENTS)}")
        if self.out is not None:
            check_writable(self.out)
        env, count = self.make()
        total, played = count * self.episodes, 0
        asked: dict[str, Any] = {"tasks": count, "episodes": self.episodes, "seed": self.seed, "path": self.out}
        try:
            check_evaluation(env, self.agent, **asked)
            self.prepare(env, count)
            # A bar would redraw over what a person is typing.
            with nullcontext() if self.agent == "human" else bar("Playing", total) as shown:

                def progress(done: int) -> None:
                    nonlocal played
                    played = done
                    if shown is not None:
                        shown(done)

                result = evaluate(env, self.agent, **asked, progress=progress)
        except KeyboardInterrupt:
            if not played:
                raise
            kept = "and not kept, for want of --out" if self.out is None else f"kept in {part_of(self.out)}"
            resumes = "" if self.out is None else "; the same command resumes"
            raise KeyboardInterrupt(f"Stopped after {played} of {total} episodes, {kept}{resumes}.") from None
        finally:
            env.close()
        console = Console()
        console.print(_table(result))
        broken = [episode for episode in result.episodes if episode.broken]
        if broken:
            console.print(
                f"{len(broken)} of {len(result.episodes)} episodes are left out: their world broke again and again "
                f"({broken[0].broken}).",
                style="yellow",
                markup=False,
            )
        if self.out is not None:
            console.print(f"Result file: {self.out}   Check it with: textagent-gym verify {self.out}", soft_wrap=True)
        return 0


def _table(result: Evaluation) -> Table:
    """The result, and that of each type of task."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from textagent_gym.evaluation import summarize, summarize_by_type
    from textagent_gym.terminal import visible

    counted = [episode for episode in result.episodes if not episode.broken]
    table = Table(
        title=f"{result.agent} in {result.env}, split {result.split}",
        header_style="bold",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("tasks", overflow="fold")
    scored = any(episode.score is not None for episode in counted)
    for column in (
        "episodes",
        "success [95%]",
        "return [95%]",
        *(["score [95%]"] if scored else []),
        "turns",
        "invalid",
    ):
        table.add_column(column, no_wrap=True)
    if not counted:
        table.add_row("all", "0")
        return table
    table.add_row("all", *_cells(summarize(counted, unit_returns=result.unit_returns), scored))
    for name, part in summarize_by_type(counted, unit_returns=result.unit_returns).items():
        table.add_row(Text(visible(f" {name}")), *_cells(part, scored), style="dim")
    return table


def _cells(summary: Summary, scored: bool) -> tuple[str, ...]:
    """A row of the table, without its name."""
    scores = [str(summary.score) if summary.score is not None else ""] if scored else []
    rates = (str(summary.success), str(summary.total_reward), *scores, f"{summary.turns.mean:.1f}")
    return (str(summary.episodes), *rates, f"{summary.invalid:.1%}")
