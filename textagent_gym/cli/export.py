"""`textagent-gym export`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from textagent_gym.cli.environment import ChosenTasks


@dataclass(frozen=True, kw_only=True)
class Export(ChosenTasks):
    """Write generated tasks as files for the reference implementation, such as ALFWorld's game.tw-pddl.

    The split is train unless --split names another one.
    """

    out: Annotated[Path, tyro.conf.arg(metavar="FOLDER")]
    """Folder to write into."""

    def run(self) -> int:
        """Write the files."""
        from rich.console import Console

        from textagent_gym.cli.progress import bar
        from textagent_gym.errors import UnsupportedOperationError
        from textagent_gym.files import check_writable
        from textagent_gym.tasks import TaskSource

        check_writable(self.out, folder=True)
        env, count = self.make(default="train")
        base = env.unwrapped
        if type(base.tasks).export is TaskSource.export:
            raise UnsupportedOperationError(f"{env.spec.id} writes no files: it is played from its own tasks alone")
        self.prepare(env, count)
        with bar("Writing", count) as done:
            for index in range(count):
                base.tasks.export(base.tasks.task(base.split, index), self.out)
                done(index + 1)
        env.close()
        Console(stderr=True).print(f"{count} games below {self.out}", soft_wrap=True)
        return 0
