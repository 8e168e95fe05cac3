"""How a task is made, as it is written down, and how its problem is put to an agent."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

from textagent_gym.domains.swe.mutants.mutations import Mutation

MOST_FAILURES = 10
"""Tests that a mistake may fail."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a task is made.

    Attributes:
        id: digits drawn by chance, which tell nothing of the change.
        package: name and version of the package.
        file: path of the file that is changed.
        mutation: change of the file.
        fail_to_pass: ids of the tests that notice the change.
        symptoms: description of what goes wrong, without a word of the tests.
    """

    id: str
    package: str
    file: str
    mutation: Mutation
    fail_to_pass: tuple[str, ...]
    symptoms: str

    @property
    def key(self) -> str:
        """What the change is, in short: nobody who plays may see it."""
        mutation = self.mutation
        text = f"{self.package}/{self.file}/{mutation.start}/{mutation.end}/{mutation.text}"
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    def to_json(self) -> str:
        """A line of a file of recipes."""
        return json.dumps(asdict(self), sort_keys=True)


def read_recipe(line: str) -> Recipe:
    """The recipe of a line that `Recipe.to_json` wrote."""
    data = json.loads(line)
    data["mutation"] = Mutation(**data["mutation"])
    data["fail_to_pass"] = tuple(data["fail_to_pass"])
    return Recipe(**data)


def statement(package: str, symptoms: list[str]) -> str:
    """The problem as it is put to the agent."""
    several = len(symptoms) > 1
    what = f"{len(symptoms)} things are" if several else "Something is"
    shown = []
    for number, text in enumerate(symptoms, start=1):
        shown.append(f"{number}.\n{text}" if several else text)
    body = "\n\n".join(shown)
    return (
        f"{what} wrong in `{package}`. This should hold, and does not; what happens instead is in the comments:\n\n"
        f"{body}\n\n"
        "Find the cause in the code of the package and repair it. Tests that you cannot see decide whether it works; "
        "everything that worked before must go on working. Changes to tests and to settings are not looked at."
    )
