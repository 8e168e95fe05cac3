"""`textagent-gym aggregate`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated

import tyro

from textagent_gym.cli.compare import Played, read_played
from textagent_gym.errors import InvalidOptionError
from textagent_gym.terminal import one_line, visible

if TYPE_CHECKING:
    from textagent_gym.evaluation import EpisodeRecord, Summary


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """Interquartile mean over several runs of one method, such as seeds of its training, with its 95% interval.

    All are results of one suite, or result files of one evaluation. A value is what one run reaches in one part of the
    suite. A quarter of the values is left out at each end, and the interval draws runs again within each part
    (stratified bootstrap: Agarwal et al., 2021). What results say is taken as it is; `textagent-gym verify` checks
    each.
    """

    results: Annotated[
        tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="PATH PATH ...", help_behavior_hint="")
    ]
    """Folder or result file of each run; two at least."""

    def run(self) -> int:
        """Print the table."""
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        from textagent_gym.evaluation import interquartile_mean

        what, parts, doubt = self._summaries()
        runs = len(self.results)
        table = Table(
            title=Text(visible(f"{runs} runs in {what}")), header_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0)
        )
        table.add_column("tasks", overflow="fold")
        for column in ("", "mean", "lowest to\nhighest run", "interquartile mean\n[95%]"):
            table.add_column(column, no_wrap=True)
        rows = {"all": parts, **({f" {name}": {name: parts[name]} for name in parts} if len(parts) > 1 else {})}
        for row, chosen in rows.items():
            for measure, value_of in _MEASURES.items():
                values = [[value_of(summary) for summary in summaries] for summaries in chosen.values()]
                of_runs = [fmean(run) for run in zip(*values, strict=True)]
                table.add_row(
                    Text(visible(row) if measure == "success" else ""),
                    measure,
                    f"{fmean(of_runs):.3f}",
                    f"{min(of_runs):.3f} to {max(of_runs):.3f}",
                    Text(str(interquartile_mean(values))),
                    style="dim" if row != "all" else "",
                )
        console = Console()
        console.print(table)
        broken = sum(summary.broken for summaries in parts.values() for summary in summaries)
        if broken:
            console.print(f"Broken episodes, which do not count: {broken}.", style="yellow")
        if doubt:
            console.print(visible(doubt), style="yellow", markup=False, highlight=False, soft_wrap=True)
        return 0

    def _summaries(self) -> tuple[str, Mapping[str, Sequence[Summary]], str]:
        """What the results are of, the summary of each run in each part, and in what their agents differ.

        Raises:
            InvalidOptionError: there is a single result, one is named twice, they are not of the same tasks, or all
                episodes of a part broke.
        """
        if len(self.results) < 2:
            raise InvalidOptionError("one run says nothing of others: name the results of two runs at least")
        if len({path.resolve() for path in self.results}) < len(self.results):
            raise InvalidOptionError("a result is named twice: each run counts once")
        first, *others = [read_played(path) for path in self.results]
        for path, other in zip(self.results[1:], others, strict=True):
            if other.what != first.what or _tasks(other.parts) != _tasks(first.parts):
                raise InvalidOptionError(
                    f"{path} is of {other.what}, and {self.results[0]} of {first.what}, or their tasks differ"
                )
        runs = [first, *others]
        return first.what, {name: [_summary(run.parts[name]) for run in runs] for name in first.parts}, _doubt(runs)


def _doubt(runs: Sequence[Played]) -> str:
    """In what the agents of runs differ, in a sentence; "" if they are the same."""
    from textagent_gym.agents import differing
    from textagent_gym.leaderboard.entries import shown_name

    names = list(dict.fromkeys(run.agent for run in runs))
    settings = differing([run.details for run in runs])
    if len(names) > 1:
        who = f"{len(names)} agents ({', '.join(map(shown_name, names))})"
    elif settings:
        who = f"agents that differ in {one_line(', '.join(settings))}"
    else:
        return ""
    return f"Runs of {who}: only you know that they are of one method."


_MEASURES: dict[str, Callable[[Summary], float]] = {
    "success": lambda summary: summary.success.mean,
    "return": lambda summary: summary.total_reward.mean,
    "turns": lambda summary: summary.turns.mean,
}
"""What is aggregated."""


def _tasks(parts: Mapping[str, Sequence[EpisodeRecord]]) -> dict[str, list[str]]:
    """Ids of the tasks of each part, in order."""
    return {name: [episode.task for episode in episodes] for name, episodes in parts.items()}


def _summary(episodes: Sequence[EpisodeRecord]) -> Summary:
    """Summary of some episodes.

    Raises:
        InvalidOptionError: all of them broke.
    """
    from textagent_gym.evaluation import summarize

    try:
        return summarize(episodes)
    except ValueError as error:
        raise InvalidOptionError(f"a run has {error}") from error
