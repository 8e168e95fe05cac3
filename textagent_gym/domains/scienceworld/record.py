"""Record gold paths into a file: `python -m textagent_gym.domains.scienceworld.record --file FILE --tasks 30`.

It resumes: what the file holds is not computed again.
"""

from __future__ import annotations

import json
from pathlib import Path

import tyro
from rich.progress import track

from textagent_gym.domains.scienceworld.gold import compute
from textagent_gym.domains.scienceworld.server import give, take
from textagent_gym.domains.scienceworld.tasks import SPLITS, ScienceWorldTasks
from textagent_gym.errors import GenerationError


def record(file: Path, tasks: int = 30) -> None:
    """Record gold paths of the first tasks of every split.

    Args:
        file: file of JSON lines, which is appended to.
        tasks: number of tasks per split; the first 30 are one of each sort.
    """
    done = set()
    if file.exists():
        entries = map(json.loads, file.read_text(encoding="utf-8").splitlines())
        done = {(each["task"], each["variation"]) for each in entries}
    source = ScienceWorldTasks()
    wanted = [
        address
        for index in range(tasks)
        for split in SPLITS
        if index < source.size(split) and (address := source.world(source.task(split, index))) not in done
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
