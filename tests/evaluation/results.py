"""A small suite, results of it, and ways to change a result."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

from textagent_gym.evaluation import Part, Suite, load_result
from textagent_gym.evaluation.records import conversations_of
from textagent_gym.evaluation.results import SUMMARY, digests, records_of, summary_of, to_json

LIGHTS = "lights/Lights-v0"
SUITE = Suite(
    name="lights-test-v1",
    summary="lights",
    parts=(
        Part(name="four", env=LIGHTS, max_turns=12, tasks=4, episodes=2),
        Part(name="three", env=LIGHTS, kwargs={"switches": 3}, split="validation", max_turns=9, tasks=3),
    ),
)


def read(path: Path) -> list[Any]:
    """The values of the lines of a file; without the seal of a result file."""
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    values = [json.loads(line) for line in raw.splitlines()]
    return values if path.suffix == ".gz" else values[:-1]


def write(path: Path, values: list[Any]) -> None:
    """Write the lines of a file, with a seal that fits, as a forger would."""
    text = "".join(json.dumps(value, sort_keys=path.suffix != ".gz") + "\n" for value in values).encode()
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text, mtime=0))
    else:
        seal = json.dumps({"sha256": hashlib.sha256(text).hexdigest()})
        path.write_bytes(text + seal.encode() + b"\n")


def summarize_again(folder: Path) -> None:
    """Write a summary that fits the other files, as a forger would."""
    result = load_result(folder)
    (folder / SUMMARY).write_text(to_json({**summary_of(result), "files": digests(folder, result.suite)}))


def paths(folder: Path) -> tuple[Path, Path]:
    """The records and the conversations of the first part."""
    records = records_of(folder, SUITE.parts[0])
    return records, conversations_of(records)
