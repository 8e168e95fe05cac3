"""`textagent-gym list`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class List:
    """List the environments, those of other installed packages included."""

    def run(self) -> int:
        """Print a table."""
        import gymnasium
        from rich.console import Console
        from rich.table import Table

        import textagent_gym
        from textagent_gym.registration import REGISTRATIONS

        textagent_gym.register_all()
        table = Table(title="Text environments", header_style="bold")
        table.add_column("id", overflow="fold")
        table.add_column("what it is")
        for registration in REGISTRATIONS:
            table.add_row(registration.id, registration.summary)
        ours = {registration.id for registration in REGISTRATIONS}
        for name, spec in sorted(gymnasium.registry.items()):
            if name not in ours and spec.namespace in textagent_gym.registration.plugin_namespaces():
                table.add_row(name, f"from {spec.entry_point}")
        Console().print(table)
        return 0
