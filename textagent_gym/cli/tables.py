"""Tables of results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from textagent_gym.evaluation import EpisodeRecord, Evaluation, Result, Summary


def evaluation_table(result: Evaluation) -> Table:
    """The result of one environment, and that of each type of task."""
    from textagent_gym.evaluation import summarize_by_type

    rows = [("all", result.episodes, result.unit_returns)]
    by_type = summarize_by_type(result.episodes, unit_returns=result.unit_returns)
    types = [(f" {name}", summary) for name, summary in by_type.items()]
    return _table(f"{result.agent} in {result.env}, split {result.split}", rows, types)


def suite_table(result: Result) -> Table:
    """The result of a suite, and that of each of its parts."""
    evaluations = result.evaluations
    unit_returns = all(evaluation.unit_returns for evaluation in evaluations.values())
    parts = [(f" {name}", each.episodes, each.unit_returns) for name, each in evaluations.items()]
    rows = [("all", result.episodes, unit_returns), *(parts if len(parts) > 1 else [])]
    return _table(f"{result.agent:.100} in {result.suite.name}", rows, [])


def _table(
    title: str,
    rows: Sequence[tuple[str, Sequence[EpisodeRecord], bool]],
    summaries: Sequence[tuple[str, Summary]],
) -> Table:
    """A table of names, episodes and whether returns stay in 0 to 1; then of names and summaries."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from textagent_gym.evaluation import summarize
    from textagent_gym.evaluation.results import total
    from textagent_gym.terminal import visible

    table = Table(title=Text(visible(title)), header_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("tasks", overflow="fold")
    scored = any(episode.score is not None for _, episodes, _ in rows for episode in episodes)
    scores = ["score [95%]"] if scored else []
    for column in ("episodes", "success [95%]", "return [95%]", *scores, "turns", "invalid"):
        table.add_column(column, no_wrap=True)
    for number, (name, episodes, unit_returns) in enumerate(rows):
        counted = [episode for episode in episodes if not episode.broken]
        summary = summarize(counted, unit_returns=unit_returns) if counted else None
        cells = _cells(summary, scored) if summary else ("0",)
        table.add_row(Text(visible(name)), *cells, style="dim" if number else "")
        if summary and not number:
            table.caption = f"invalid actions per episode {summary.invalid_share}" + (
                f", turns over the shortest solution {summary.efficiency}" if summary.efficiency else ""
            )
            cost = total([episode.cost for episode in episodes])
            table.caption += "" if cost is None else f", cost {cost:.4g}"
    for name, summary in summaries:
        table.add_row(Text(visible(name)), *_cells(summary, scored), style="dim")
    return table


def _cells(summary: Summary, scored: bool) -> tuple[str, ...]:
    """A row of the table, without its name."""
    scores = [str(summary.score) if summary.score is not None else ""] if scored else []
    rates = (str(summary.success), str(summary.total_reward), *scores, f"{summary.turns.mean:.1f}")
    return (str(summary.episodes), *rates, f"{summary.invalid:.1%}")


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
        note = f"success {self._successes / counted:.3f}" if counted else ""
        note += f", {self._tokens} tokens" if self._tokens else ""
        note += f", cost {self._cost:.4g}" if self._cost else ""
        return note + (f", {self._broken} broken" if self._broken else "")
