"""Numbers of papers, which nobody can play again: the site shows them in a table of their own, with their protocol."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class PublishedResult:
    """What a paper says of one agent.

    Attributes:
        agent: name of the agent, with its model.
        value: success or score, 0 to 100.
        spread: standard deviation or error, such as "± 1.3"; the protocol says which. Empty if none is given.
    """

    agent: str
    value: float
    spread: str = ""


@dataclass(frozen=True, slots=True)
class Publication:
    """Results that were measured alike, from one table.

    Attributes:
        world: name of the world.
        measure: "success", the share of tasks that are solved, or "score", the mean of points for parts of a task.
        protocol: split, number of tasks, turns, and what counts as a success, in sentences.
        source: authors, year, title and table.
        link: address of the source.
        results: its agents.
    """

    world: str
    measure: str
    protocol: str
    source: str
    link: str
    results: tuple[PublishedResult, ...]


def literature() -> list[Publication]:
    """All publications of `literature.json`, those of a world one after another."""
    values = json.loads((files(__package__) / "literature.json").read_text(encoding="utf-8"))
    return [
        Publication(**{**each, "results": tuple(PublishedResult(**result) for result in each["results"])})
        for each in values
    ]
