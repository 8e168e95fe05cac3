"""`textagent-gym demos`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from textagent_gym.cli.environment import ChosenTasks
from textagent_gym.errors import InvalidOptionError


@dataclass(frozen=True, kw_only=True)
class Demos(ChosenTasks):
    """Record an agent's solved episodes as conversations: chat-format JSONL, which TRL's SFTTrainer reads as it is.

    The split is train unless --split names another one.
    """

    out: Annotated[Path, tyro.conf.arg(metavar="FILE")]
    """File to write, one conversation per line. A file that was begun with the same settings is completed."""
    agent: str = "oracle"
    """Agent to record.
    oracle: knows everything. expert: knows only what it has read, and in ScienceWorld a path to the goal."""
    hints: bool = False
    """Whether every observation lists the admissible actions."""
    instructions: bool = True
    """Whether every conversation begins with the environment's instructions, as its system message.
    Policies that are trained on the file are then also played with the instructions."""

    def run(self) -> int:
        """Write the file."""
        from rich.console import Console

        from textagent_gym.agents import make_agent
        from textagent_gym.cli.progress import bar
        from textagent_gym.evaluation.demonstrations import demonstrate, settings
        from textagent_gym.files import check_writable, part_of, write_whole
        from textagent_gym.wrappers import AdmissibleActionHints

        if self.agent not in ("oracle", "expert"):
            raise InvalidOptionError(f"agent {self.agent!r} gives no demonstrations; choose oracle or expert")
        check_writable(self.out)
        env, count = self.make(default="train")
        player = AdmissibleActionHints(env) if self.hints else env
        make_agent(self.agent, player)  # Which refuses a world that has no such agent.
        wanted = settings(player, self.agent, self.instructions)
        part = part_of(self.out)
        recorded = {**_recorded(self.out, wanted), **_recorded(part, wanted, damaged=True)}
        self.prepare(env, count)
        write_whole(part, "".join(json.dumps(demo) + "\n" for demo in recorded.values()))
        base = env.unwrapped
        lines = []
        try:
            with bar("Playing", count) as done, open(part, "a", encoding="utf-8") as file:
                for index in range(count):
                    task = base.tasks.task(base.split, index)
                    demo = recorded.get(task.id)
                    if demo is None:
                        demo = demonstrate(player, {"task_index": index}, self.agent, instructions=self.instructions)
                        file.write(json.dumps(demo) + "\n")
                        file.flush()
                    if demo["success"]:
                        lines.append(json.dumps(demo) + "\n")
                    done(index + 1)
        except KeyboardInterrupt:
            kept = part.read_text(encoding="utf-8").count("\n")
            message = f"Stopped: {kept} of {count} demonstrations are kept; the same command resumes."
            raise KeyboardInterrupt(message) from None
        finally:
            env.close()
            if not part.stat().st_size:  # Nothing was played before the first error.
                part.unlink()
        write_whole(self.out, "".join(lines))
        part.unlink()
        failed = f"; {count - len(lines)} tasks were not solved" if len(lines) < count else ""
        Console(stderr=True).print(f"{len(lines)} demonstrations in {self.out}{failed}", soft_wrap=True)
        return 0


def _recorded(path: Path, wanted: dict[str, Any], *, damaged: bool = False) -> dict[str, dict[str, Any]]:
    """Demonstrations that a file holds already, by task.

    Args:
        path: file of demonstrations, which may be absent.
        wanted: settings that they must have been made with.
        damaged: whether lines that are not demonstrations are passed over; a run that was killed may leave half a line.

    Raises:
        InvalidOptionError: the file holds something else.
    """
    if not path.is_file():
        return {}
    recorded = {}
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
        try:
            demo = json.loads(line)
            different = [name for name, value in wanted.items() if demo[name] != value]
            task, _ = demo["task"], demo["success"]
        except (ValueError, KeyError, TypeError) as error:
            if damaged:
                continue
            raise InvalidOptionError(f"{path}, line {number}, is no demonstration; choose another file") from error
        if different:
            what = f"{demo['agent']} in {demo['env']}"
            same_play = not {"env", "agent"} & set(different)
            settings = " with other settings, hints or instructions" if same_play else ""
            raise InvalidOptionError(f"{path} holds demonstrations of {what}{settings}; choose another file")
        recorded[task] = demo
    return recorded
