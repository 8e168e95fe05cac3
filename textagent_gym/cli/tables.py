"""Tables of results."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.table import Table

    from textagent_gym.evaluation import EpisodeRecord, Evaluation, Result, Summary

_OPTIONAL = ("episodes", "score [95%]", "turns [95%]", "return [95%]", "invalid [95%]")
"""Columns that are shown where a terminal has room for them, the first one first: the caption has a word on invalid
actions, and `summary.json` has all numbers."""
_LONGEST_WHOLE = 24
"""Characters of a name that stay in one line, before which columns are left out: longer ones fold."""
_DIGITS = 12  # Of a commitment.
_WIDTH_OF_A_FILE = 160
_ANY_WIDTH = 10_000
"""Columns of a terminal on which every table fits."""


def table_console() -> Console:
    """Where tables are printed: a terminal of its own width, or a file or another program, for which nothing is left
    out unless COLUMNS says how wide it is."""
    from rich.console import Console

    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console() if known else Console(width=_WIDTH_OF_A_FILE)


def evaluation_table(result: Evaluation) -> FittingTable:
    """The result of one environment, and that of each type of task."""
    from textagent_gym.evaluation import summarize_by_type

    rows = [("all", [result.episodes], result.unit_returns)]
    by_type = summarize_by_type(result.episodes, unit_returns=result.unit_returns)
    types = [(f" {name}", summary) for name, summary in by_type.items()]
    return _table(f"{result.agent} in {result.env}, split {result.split}", rows, types)


def suite_table(result: Result) -> FittingTable:
    """The result of a suite, and that of each of its parts."""
    evaluations = result.evaluations
    unit_returns = all(evaluation.unit_returns for evaluation in evaluations.values())
    parts = [(f" {name}", [each.episodes], each.unit_returns) for name, each in evaluations.items()]
    whole = [evaluation.episodes for evaluation in evaluations.values()]
    rows = [("all", whole, unit_returns), *(parts if len(parts) > 1 else [])]
    suite, challenge, commitment = result.suite.name.partition("@")  # Of a challenge, a hundred digits would follow.
    title = f"{result.agent:.100} in {suite}{challenge}{commitment[:_DIGITS]}"
    return _table(title, rows, [])


@dataclass(frozen=True)
class FittingTable:
    """A table that leaves out columns where a terminal is narrow, and says so: no number is ever cut.

    Attributes:
        title: words above it.
        rows: name of each row, and its cells by column.
        caption: words below it.
    """

    title: str
    rows: tuple[tuple[str, dict[str, str]], ...]
    caption: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        """The table with as many columns as fit."""
        columns = list(dict.fromkeys(column for _, cells in self.rows for column in cells))
        left_out = {column for column in _OPTIONAL if column in columns}
        table = self._table(columns, left_out)
        for column in (column for column in _OPTIONAL if column in columns):
            wider = self._table(columns, left_out - {column})
            if console.measure(wider, options=options.update(width=_ANY_WIDTH)).minimum <= options.max_width:
                table = wider
                left_out.remove(column)
        yield table

    def _table(self, columns: Sequence[str], left_out: AbstractSet[str]) -> Table:
        """The table without some of its columns."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        from textagent_gym.terminal import visible

        names_of_these = ", ".join(column.split()[0] for column in columns if column in left_out)
        remark = f"left out for want of width: {names_of_these}" if left_out else ""
        table = Table(title=Text(visible(self.title)), header_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        table.caption = Text("; ".join(text for text in (self.caption, remark) if text))  # "[n/a]" is no markup.
        names = [visible(name) for name, _ in self.rows]
        table.add_column("tasks", overflow="fold", min_width=min(_LONGEST_WHOLE, max(map(len, names))))
        shown = [column for column in columns if column not in left_out]
        for column in shown:
            widest = max(len(column), *(len(cells.get(column, "")) for _, cells in self.rows))
            table.add_column(column, no_wrap=True, min_width=widest)
        for number, (name, (_, cells)) in enumerate(zip(names, self.rows, strict=True)):
            texts = [Text(cells.get(column, "")) for column in shown]
            table.add_row(Text(name), *texts, style="dim" if number else "")
        return table


def _table(
    title: str,
    rows: Sequence[tuple[str, Sequence[Sequence[EpisodeRecord]], bool]],
    summaries: Sequence[tuple[str, Summary]],
) -> FittingTable:
    """A table of names, episodes of each part and whether returns stay in 0 to 1; then of names and summaries."""
    from textagent_gym.evaluation import summarize
    from textagent_gym.evaluation.results import total

    scored = any(episode.score is not None for _, parts, _ in rows for episodes in parts for episode in episodes)
    shown: list[tuple[str, dict[str, str]]] = []
    caption = ""
    for number, (name, parts, unit_returns) in enumerate(rows):
        episodes = [episode for records in parts for episode in records]
        counted = [episode for episode in episodes if not episode.broken]
        summary = summarize(counted, unit_returns=unit_returns) if counted else None
        shown.append((name, _cells(summary, scored) if summary else {"episodes": "0"}))
        if summary and not number:
            exact = all((episode.complexity or {}).get("exact") for episode in counted if episode.success)
            shortest = "the shortest solution" if exact else "the shortest solution known"
            caption = f"share of invalid actions {summary.invalid_share}" + (
                f", turns over {shortest} {summary.efficiency}" if summary.efficiency else ""
            )
            cost = total([episode.cost for episode in episodes])
            caption += "" if cost is None else f", cost {cost:.4g}"
            caption += _of_repeats(summary.tasks, parts)
    shown += [(name, _cells(summary, scored)) for name, summary in summaries]
    return FittingTable(title, tuple(shown), caption)


def _of_repeats(tasks: int, parts: Sequence[Sequence[EpisodeRecord]]) -> str:
    """Words on tasks that were played several times; "" where none was."""
    from textagent_gym.evaluation import repeated

    shares = repeated(*parts)
    if not shares:
        return ""
    most = list(shares["any"])[-1]
    return f"; {tasks} tasks, pass@{most} {shares['any'][most]}, pass^{most} {shares['all'][most]}"


def _cells(summary: Summary, scored: bool) -> dict[str, str]:
    """A row of the table by column, without its name."""
    scores = {"score [95%]": "" if summary.score is None else str(summary.score)} if scored else {}
    return {
        "episodes": str(summary.episodes),
        "success [95%]": str(summary.success),
        "return [95%]": str(summary.total_reward),
        **scores,
        "turns [95%]": summary.turns.rounded(2),
        "invalid [95%]": "" if summary.invalid_share is None else summary.invalid_share.rounded(2),
    }


class Tally:
    """Counts episodes as they end, for the note beside a bar."""

    def __init__(self) -> None:
        self.played = 0
        self._successes = 0
        self._broken = 0
        self._tokens = 0
        self._cost = 0.0

    def add(self, episode: EpisodeRecord) -> str:
        """Count an episode; returns the note."""
        self.played += 1
        self._successes += episode.success
        self._broken += bool(episode.broken)
        self._tokens += episode.tokens or 0
        self._cost += episode.cost or 0.0
        counted = self.played - self._broken
        notes = (
            f"success {self._successes / counted:.3f}" if counted else "",
            f"{self._tokens} tokens" if self._tokens else "",
            f"cost {self._cost:.4g}" if self._cost else "",
            f"{self._broken} broken" if self._broken else "",
        )
        return ", ".join(note for note in notes if note)
