"""Record gold paths into a file: `python -m textagent_gym.domains.scienceworld.record FILE --per-task 1`.

It resumes: what the file holds is not computed again.
"""

from __future__ import annotations

import json
from pathlib import Path

import tyro
from rich.progress import track

from textagent_gym.domains.scienceworld.gold import compute
from textagent_gym.domains.scienceworld.server import give, take
from textagent_gym.domains.scienceworld.tasks import TASKS
from textagent_gym.errors import GenerationError


def record(file: Path, per_task: int = 1) -> None:
    """Record gold paths of the first variations of every task.

    Args:
        file: file of JSON lines, which is appended to.
        per_task: number of variations of each task.
    """
    done = set()
    if file.exists():
        entries = map(json.loads, file.read_text(encoding="utf-8").splitlines())
        done = {(each["task"], each["variation"]) for each in entries}
    wanted = [
        (task, variation)
        for variation in range(per_task)
        for task, counts in TASKS.items()
        if variation < sum(counts) and (task, variation) not in done
    ]
    server = take()
    try:
        with open(file, "a", encoding="utf-8") as lines:
            for task, variation in track(wanted, description=f"Gold paths into {file}"):
                try:
                    path = compute(server, task, variation)
                except GenerationError as error:
                    print(error)
                    continue
                entry = {"task": task, "variation": variation, "objects": path.objects, "actions": path.actions}
                lines.write(json.dumps(entry) + "\n")
                lines.flush()
    finally:
        give(server)


if __name__ == "__main__":
    tyro.cli(record)
