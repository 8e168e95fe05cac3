"""What is asked of a repair: all questions of a task, with the right answers, and how they are put to a sandbox."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Self

from textagent_gym.domains.swe.grading import pytest_runs
from textagent_gym.domains.swe.grading.hidden import witness
from textagent_gym.domains.swe.grading.hidden.answers import Seen, read_seen
from textagent_gym.domains.swe.grading.hidden.probes import NAME
from textagent_gym.domains.swe.grading.hidden.versions import Version
from textagent_gym.sandbox.base import Changes, Question


@dataclass(frozen=True)
class Group:
    """The versions of one mistake's hidden tests.

    Attributes:
        versions: the tests that notice the mistake first, then the same with other input.
        chance: chance in 0..1 of a forger to be paid for this mistake; see `judge`.
    """

    versions: tuple[Version, ...]
    chance: float


@dataclass(frozen=True)
class Kept:
    """Rows of a hidden test with parameters that have always passed. They are asked together.

    Attributes:
        versions: versions of one function, one per row.
    """

    versions: tuple[Version, ...]

    def broken(self, seen: Sequence[Seen | None]) -> list[str]:
        """Ids of the rows that do not pass any more."""
        pairs = zip(self.versions, [*seen, *[None] * len(self.versions)], strict=False)
        return [version.test for version, one in pairs if not version.is_right(one)]


@dataclass(frozen=True)
class Exam:
    """What is asked of a repair.

    Attributes:
        groups: hidden tests, by mistake.
        kept: rows of hidden tests that have always passed.
        visible: ids of the tests that the agent can see, and that pass.
        visible_files: files of the visible tests.
        paths: folders that are importable, below the root of the tree.
        seconds: seconds for each question.
        total: seconds for all questions of a grading together.
    """

    groups: tuple[Group, ...]
    kept: tuple[Kept, ...]
    visible: tuple[str, ...]
    visible_files: tuple[str, ...]
    paths: tuple[str, ...]
    seconds: float
    total: float

    @property
    def tests(self) -> tuple[str, ...]:
        """Ids of the hidden tests that fail as long as nothing is repaired."""
        return tuple(v.test for group in self.groups for v in group.versions if v.is_original)

    @property
    def chance(self) -> float:
        """Chance of a forger to be paid anything: each group may pay, so at most the sum of their chances."""
        return min(1.0, math.fsum(group.chance for group in self.groups))

    def without(self, tests: Collection[str]) -> Exam:
        """The same less some tests that the agent can see, or rows that are kept."""
        kept = [Kept(tuple(v for v in kept.versions if v.test not in tests)) for kept in self.kept]
        visible = tuple(test for test in self.visible if test not in tests)
        return replace(self, visible=visible, kept=tuple(each for each in kept if each.versions))

    def to_json(self) -> str:
        """What `from_json` reads."""
        groups = [{"chance": g.chance, "versions": [v.to_dict() for v in g.versions]} for g in self.groups]
        kept = [[version.to_dict() for version in kept.versions] for kept in self.kept]
        plain = {name: getattr(self, name) for name in ("visible", "visible_files", "paths", "seconds", "total")}
        return json.dumps({**plain, "groups": groups, "kept": kept})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What `to_json` wrote."""
        data: dict[str, Any] = json.loads(text)
        groups = tuple(
            Group(tuple(map(Version.from_dict, group["versions"])), group["chance"]) for group in data["groups"]
        )
        kept = tuple(Kept(tuple(map(Version.from_dict, versions))) for versions in data["kept"])
        lists = {name: tuple(data[name]) for name in ("visible", "visible_files", "paths")}
        return cls(groups=groups, kept=kept, seconds=data["seconds"], total=data["total"], **lists)


@cache
def _witness() -> str:
    return Path(witness.__file__).read_text(encoding="utf-8")


def ask_probes(
    like: Version, texts: Sequence[str], paths: Sequence[str], seconds: float, *, each: float = 0.0
) -> Question:
    """Texts of probes of one kind, for one process.

    Args:
        like: a version of their kind. Where it has fixtures, there is one text.
        texts: texts of the probes.
        paths: folders that are importable, below the root.
        seconds: seconds for all probes together.
        each: seconds per probe; 0 for no limit of its own.
    """
    request = {
        "kind": "probes",
        "witness": _witness(),
        "texts": list(texts),
        "file": like.file,
        "owner": like.owner,
        "function": NAME,
        "suffix": like.suffix,
        "fixtures": like.fixtures,
        "paths": list(paths),
        "each": each,
        "seconds": seconds,
    }
    files: Changes = {like.file: texts[0].encode()} if like.fixtures else {}
    return pytest_runs.question(request, files)


def version_question(version: Version, paths: Sequence[str], seconds: float) -> Question:
    """One version, for a process of its own."""
    return ask_probes(version, [version.text], paths, seconds)


def kept_question(kept: Kept, paths: Sequence[str], seconds: float) -> Question:
    """The rows of a test that have always passed, for one process."""
    return ask_probes(kept.versions[0], [version.text for version in kept.versions], paths, seconds)


def read_answer(answer: bytes | None) -> list[Seen | None]:
    """What probes saw, as a sandbox says it; empty where it says nothing of that form."""
    try:
        reports = json.loads(answer or b"")
    except (ValueError, RecursionError):
        return []
    return [read_seen(one) for one in reports] if isinstance(reports, list) else []
