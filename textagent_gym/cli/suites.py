"""`textagent-gym suites`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Suites:
    """List the suites that `textagent-gym eval --suite NAME` plays: fixed tasks, turn budgets and repetitions."""

    def run(self) -> int:
        """Print a table."""
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table

        from textagent_gym.evaluation import SUITES

        table = Table(title="Suites", header_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        table.add_column("suite", no_wrap=True)
        table.add_column("episodes", justify="right", no_wrap=True)
        table.add_column("what it is")
        for suite in SUITES.values():
            table.add_row(suite.name, str(suite.episodes), suite.summary)
        Console().print(table)
        return 0
