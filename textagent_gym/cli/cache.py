"""`textagent-gym cache`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Cache:
    """Show what the cache of generated games holds, or clear it."""

    clear: bool = False
    """Delete every generated game; they are made again when they are needed."""

    def run(self) -> int:
        """Print, and delete if asked to."""
        from rich.console import Console

        from textagent_gym.domains.textworld import store
        from textagent_gym.files import cache_folder

        games, size = store.size()
        Console().print(f"{cache_folder()}: {games} games, {size / 1e6:.1f} MB", soft_wrap=True)
        if self.clear:
            Console().print(f"Deleted {store.clear()} games.")
        return 0
