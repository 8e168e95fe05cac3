"""`textagent-gym compare`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import tyro

from textagent_gym.errors import InvalidOptionError
from textagent_gym.terminal import one_line, visible

if TYPE_CHECKING:
    from textagent_gym.evaluation import Comparison, EpisodeRecord, Interval

_LONGEST_VALUE = 40  # Characters of a setting in which two agents differ.
_SMALLEST_P = 0.0001  # Of those that are shown as they are.


@dataclass(frozen=True, kw_only=True)
class Compare:
    """Compare two results on the same tasks: the difference with its 95% interval, and an exact test.

    Both are results of one suite, or result files of the same tasks. What they say is taken as it is; `textagent-gym
    verify` checks each.
    """

    first: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FIRST")]
    """Folder or result file of the first agent."""
    second: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="SECOND")]
    """Folder or result file of the second agent."""

    def run(self) -> int:
        """Print the comparison."""
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        from textagent_gym.evaluation import compare, summarize
        from textagent_gym.leaderboard.entries import shown_name

        one, name, details, first = read_played(self.first)
        other, other_name, other_details, second = read_played(self.second)
        if one != other:
            raise InvalidOptionError(f"{self.first} is of {one}, and {self.second} of {other}: nothing to compare")
        differences = _differences(details, other_details) if name == other_name else ""
        title = f"{shown_name(other_name)} (second) against {shown_name(name)} (first) in {one}{differences}"
        table = Table(
            title=Text(visible(title)),
            header_style="bold",
            box=SIMPLE_HEAD,
            padding=0,  # At 80 columns, nothing is cut.
            show_edge=False,
        )
        table.add_column("part", overflow="fold")
        for column in ("tasks", "first\n[95%]", "second\n[95%]", "difference\n[95%]", "better", "worse", "p\n(exact)"):
            table.add_column(column, no_wrap=True)
        whole = compare(first, second)
        table.add_row("all", *_cells(whole))
        for part in first if len(first) > 1 else ():
            try:
                cells = _cells(compare({part: first[part]}, {part: second[part]}))
            except InvalidOptionError:  # All of its episodes broke in a result.
                cells = ("0",)
            table.add_row(Text(visible(f" {part}")), *cells, style="dim")
        console = Console()
        console.print(table)
        for which, parts in (("first", first), ("second", second)):
            played = [episode for records in parts.values() for episode in records]
            summary = summarize(played)
            console.print(
                f"{which}: turns {summary.turns}, share of invalid actions {summary.invalid_share}",
                soft_wrap=True,
                markup=False,
            )
        if whole.left_out:
            console.print(
                f"{whole.left_out} tasks are left out: all of their episodes broke in a result.", style="yellow"
            )
        for which, parts in (("first", first), ("second", second)):
            broken = sum(bool(episode.broken) for records in parts.values() for episode in records)
            if broken:
                console.print(f"Broken episodes of the {which} result, which do not count: {broken}.", style="yellow")
        return 0


class Played(NamedTuple):
    """What a result holds: name of what was played, the agent's name and details, and the episodes of each part."""

    what: str
    agent: str
    details: dict[str, Any]
    parts: Mapping[str, Sequence[EpisodeRecord]]


def read_played(path: Path) -> Played:
    """What a folder or a result file holds."""
    from textagent_gym.evaluation import load, load_result

    if path.is_dir():
        result = load_result(path)
        parts = {name: evaluation.episodes for name, evaluation in result.evaluations.items()}
        return Played(result.suite.name, result.agent, result.details, parts)
    evaluation = load(path)
    what = f"{evaluation.env}, split {evaluation.split}"
    return Played(what, evaluation.agent, evaluation.details, {"": evaluation.episodes})


def _cells(comparison: Comparison) -> tuple[str, ...]:
    """A row of the table, without its name."""
    return (
        str(comparison.tasks),
        _stacked(comparison.first, 2),
        _stacked(comparison.second, 2),
        _stacked(comparison.difference, 3),
        str(comparison.better),
        str(comparison.worse),
        f"{comparison.p_value:.4f}" if comparison.p_value >= _SMALLEST_P else f"< {_SMALLEST_P:.4f}",
    )


def _differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    """In what two agents of one name differ, the second against the first; "" if in nothing that is known."""
    from textagent_gym.agents import differing

    settings = [
        f"{name} ({' against '.join(str(each.get(name, 'not told'))[:_LONGEST_VALUE] for each in (second, first))})"
        for name in differing([first, second])
    ]
    return f"; they differ in {one_line(', '.join(settings))}" if settings else ""


def _stacked(value: Interval, digits: int) -> str:
    """A mean above its bounds, so that three of them fit beside one another."""
    return f"{value.mean:.{digits}f}\n[{value.low:.{digits}f}, {value.high:.{digits}f}]"
