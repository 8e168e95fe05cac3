"""Measure action sizes along the gold paths that come with the package, into a file:
`python -m textagent_gym.domains.scienceworld.measure --file FILE --longest 20`.

It resumes: what the file holds is not measured again.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

import tyro
from rich.progress import track

from textagent_gym.domains.scienceworld.gold import GoldPath, shipped_paths
from textagent_gym.domains.scienceworld.server import Server, give, take

SIMPLIFIED = ("", "noElectricalAction")
"""Simplifications with which paths are played: none, and the one that takes most actions away and nothing else."""


def measure(file: Path, longest: int = 20) -> None:
    """Measure the paths, the shortest ones first.

    Args:
        file: file of JSON lines, which is appended to.
        longest: number of actions of the longest path that is measured; listing all valid actions takes 0.1 s or more.
    """
    done = set()
    if file.exists():
        entries = map(json.loads, file.read_text(encoding="utf-8").splitlines())
        done = {(each["task"], each["variation"], each["simplifications"]) for each in entries}
    paths = sorted(shipped_paths().items(), key=lambda each: (len(each[1].actions), each[0]))
    wanted = [
        (path, address)
        for (task, variation), path in paths
        for simplifications in SIMPLIFIED
        if len(path.actions) <= longest and (address := (task, variation, simplifications)) not in done
    ]
    server = take()
    try:
        with open(file, "a", encoding="utf-8") as lines:
            for path, (task, variation, simplifications) in track(wanted, description=f"Action sizes into {file}"):
                size = action_size(server, task, variation, simplifications, path)
                if size is None:
                    continue
                entry = {"task": task, "variation": variation, "simplifications": simplifications, "action_size": size}
                lines.write(json.dumps(entry) + "\n")
                lines.flush()
    finally:
        give(server)


def action_size(server: Server, task: str, variation: int, simplifications: str, path: GoldPath) -> float | None:
    """Mean number of valid actions before each action of a path; `None` where the path does not solve the task,
    or the world has other objects."""
    server.load(task, variation, simplifications)
    same = server.objects() == path.objects
    server.step("look around")
    sizes = []
    for action in path.actions:
        sizes.append(len(set(server.valid_actions())))
        server.step(action)
    return round(fmean(sizes), 2) if same and server.score() == 100 else None


if __name__ == "__main__":
    tyro.cli(measure)
