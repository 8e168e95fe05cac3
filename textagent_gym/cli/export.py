"""`textagent-gym export`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from textagent_gym.cli.environment import Chosen, make
from textagent_gym.errors import InvalidOptionError


@dataclass(frozen=True, kw_only=True)
class Export(Chosen):
    """Write generated tasks as files that the reference implementation plays, such as ALFWorld's game.tw-pddl."""

    out: Path
    """Folder to write into."""
    tasks: int = 100
    """Number of tasks, from the first of the split on."""
    split: str = "train"
    """Split of the tasks."""

    def run(self) -> int:
        """Write the files."""
        from rich.console import Console

        from textagent_gym.cli.progress import bar

        if self.tasks < 1:
            raise InvalidOptionError(f"--tasks must be at least 1, got {self.tasks}")
        env = make(self, split=self.split)
        tasks = env.unwrapped.tasks
        size = tasks.size(self.split)
        count = self.tasks if size is None else min(self.tasks, size)
        with bar("Writing", count) as done:
            for index in range(count):
                tasks.export(tasks.task(self.split, index), self.out)
                done(index + 1)
        env.close()
        Console(stderr=True).print(f"{count} games below {self.out}", soft_wrap=True)
        return 0
