"""`textagent-gym list`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class List:
    """List all environments, those of other installed packages included."""

    def run(self) -> int:
        """Print a table."""
        from rich.console import Console
        from rich.table import Table

        import textagent_gym
        from textagent_gym.registration import WORLDS, installed_worlds

        textagent_gym.register_all()
        table = Table(title="Text environments", header_style="bold")
        table.add_column("id", overflow="fold")
        table.add_column("what it is")
        for world in (*WORLDS, *installed_worlds()):
            for registration in world.ids:
                table.add_row(registration.id, registration.summary)
        Console().print(table)
        return 0
