"""`textagent-gym data`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro


@dataclass(frozen=True, kw_only=True)
class Data:
    """Download the official games of a world, and check them."""

    world: tyro.conf.Positional[Literal["alfworld"]]
    """Whose games."""
    folder: Path = Path("~/.cache/alfworld")
    """Where to; environments look into this one by themselves, and into the one that ALFWORLD_DATA names."""
    url: str | None = None
    """Another address of the archive."""

    def run(self) -> int:
        """Fetch, unpack, check."""
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        from textagent_gym.domains.alfworld.download import RELEASE, download

        folder = self.folder.expanduser()
        columns = (TextColumn("Downloading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True)) as progress:
            task = progress.add_task("", total=None)

            def show(done: int, total: int) -> None:
                progress.update(task, completed=done, total=total or None)

            lines = download(folder, self.url or RELEASE, show)
        for line in lines:
            Console().print(line)
        Console().print(f"They are in {folder}.", soft_wrap=True)
        return 0
