"""`textagent-gym data`."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from textagent_gym.errors import InvalidOptionError


@dataclass(frozen=True, kw_only=True)
class Data:
    """Download the official data of a world, and check that it is complete."""

    world: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="WORLD")]
    """Name of the world: alfworld."""
    folder: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER", help_behavior_hint="")] = None
    """Folder to write into; by default the one where environments look for their data."""
    url: Annotated[str | None, tyro.conf.arg(metavar="URL", help_behavior_hint="")] = None
    """Address of the archive to download; by default the official one."""

    def run(self) -> int:
        """Fetch, unpack, check."""
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        from textagent_gym.registration import WORLDS, installed_worlds

        hooks = {world.name.lower(): world.data for world in (*WORLDS, *installed_worlds()) if world.data}
        if self.world.lower() not in hooks:
            raise InvalidOptionError(f"{self.world!r} has no data to download; choose of: {', '.join(hooks)}")
        module, _, function = hooks[self.world.lower()].partition(":")
        download = getattr(importlib.import_module(module), function)
        columns = (TextColumn("Downloading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True)) as progress:
            task = progress.add_task("", total=None)

            def show(done: int, total: int) -> None:
                progress.update(task, completed=done, total=total or None)

            lines = download(None if self.folder is None else self.folder.expanduser(), self.url, show)
        for line in lines:
            Console().print(line, soft_wrap=True)
        return 0
