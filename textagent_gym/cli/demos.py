"""`textagent-gym demos`."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textagent_gym.cli.environment import Chosen, full_id, make
from textagent_gym.errors import InvalidOptionError


@dataclass(frozen=True, kw_only=True)
class Demos(Chosen):
    """Write demonstrations as chat-format JSONL, which TRL's SFTTrainer reads as it is.

    Episodes that do not reach the goal are left out.
    """

    out: Path
    """File to write, a conversation a line. A file that another run began is completed."""
    agent: str = "oracle"
    """oracle (knows where everything is) or expert (searches, and knows only what it has read)."""
    tasks: int = 100
    """Number of tasks, from the first of the split on."""
    split: str = "train"
    """Split of the tasks."""
    workers: int | None = None
    """Processes that make the tasks; all processor cores by default."""
    hints: bool = False
    """List the admissible actions in every observation."""

    def run(self) -> int:
        """Write the file."""
        from rich.console import Console

        from textagent_gym.cli.progress import bar
        from textagent_gym.evaluation.demonstrations import demonstrate
        from textagent_gym.wrappers import AdmissibleActionHints

        if self.agent not in ("oracle", "expert"):
            raise InvalidOptionError(f"agent {self.agent!r} gives no demonstrations; choose oracle or expert")
        env = make(self, split=self.split)
        tasks = env.unwrapped.tasks
        size = tasks.size(self.split)
        count = self.tasks if size is None else min(self.tasks, size)
        if count < 1:
            raise InvalidOptionError(f"--tasks must be at least 1, got {self.tasks}")
        with bar("Making tasks", count) as done:
            tasks.prepare(self.split, range(count), workers=self.workers, progress=done)
        player = AdmissibleActionHints(env) if self.hints else env
        name = full_id(self.env)
        recorded = _recorded(self.out, name, self.agent)
        self.out.parent.mkdir(parents=True, exist_ok=True)
        part = self.out.with_name(self.out.name + ".part")
        written = 0
        with bar("Playing", count) as done, open(part, "w", encoding="utf-8") as file:
            for index in range(count):
                task = tasks.task(self.split, index)
                demo = recorded.get(task.id) or demonstrate(player, {"task_index": index}, name, self.agent)
                if demo["success"]:
                    file.write(json.dumps(demo) + "\n")
                    written += 1
                done(index + 1)
        os.replace(part, self.out)
        env.close()
        failed = f"; {count - written} tasks were not solved" if written < count else ""
        Console(stderr=True).print(f"{written} demonstrations in {self.out}{failed}", soft_wrap=True)
        return 0


def _recorded(path: Path, env: str, agent: str) -> dict[str, dict[str, Any]]:
    """Demonstrations that the file holds already, by task."""
    if not path.is_file():
        return {}
    recorded = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            demo = json.loads(line)
            if (demo["env"], demo["agent"]) != (env, agent):
                other = f"{demo['agent']} in {demo['env']}"
                raise InvalidOptionError(f"{path} holds demonstrations of {other}; choose another file")
            recorded[demo["task"]] = demo
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, InvalidOptionError):
                raise
            raise InvalidOptionError(f"{path}, line {number}, is no demonstration; choose another file") from error
    return recorded
