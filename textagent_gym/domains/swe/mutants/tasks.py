"""The software-engineering tasks that come with the suite: recipes, made into trees on disk when they are played."""

from __future__ import annotations

import difflib
import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path

from textagent_gym.domains.swe.grading.hidden.exam import Exam
from textagent_gym.domains.swe.grading.hidden.judge import MOST_CHANCE
from textagent_gym.domains.swe.mutants import packages
from textagent_gym.domains.swe.mutants.assembly import Recipes, copies_elsewhere, hunks_of, name_of, write_task
from textagent_gym.domains.swe.mutants.layers import rest
from textagent_gym.domains.swe.mutants.packages import Package, Repository, find, prepare
from textagent_gym.domains.swe.mutants.recipe import Recipe, read_recipe, statement
from textagent_gym.domains.swe.options import RepairOptions
from textagent_gym.domains.swe.tasks import Hunk, RepairComplexity, RepairTask
from textagent_gym.domains.swe.toolbox import TOOLBOX
from textagent_gym.errors import InvalidOptionError, UnknownTaskError
from textagent_gym.files import cache_folder
from textagent_gym.sandbox import make_sandbox
from textagent_gym.sources import ListedTasks
from textagent_gym.tasks import in_split


@dataclass(frozen=True, kw_only=True)
class SWETask(RepairTask):
    """A repository with mistakes in it.

    Attributes:
        repository: the package.
        layers: layers of the agent's tree: `.git`, code and tests, and everything else.
        graded_layers: layers of the tree that is graded.
        exam: what is asked of a repair.
        hunks: what to repair, first file and line first.
    """

    repository: Repository
    layers: tuple[Path, ...]
    graded_layers: tuple[Path, ...]
    exam: Exam
    hunks: tuple[Hunk, ...]


def _changed_lines(hunk: Hunk) -> int:
    """Lines that a hunk takes out or puts in."""
    found = difflib.ndiff(hunk.wrong.splitlines(), hunk.right.splitlines())
    return sum(line.startswith(("- ", "+ ")) for line in found)


class BuiltTasks(ListedTasks[SWETask]):
    """Tasks made of packages by recipes.

    Args:
        names: names of the packages, or paths of folders; see `packages.find`.
        mutants: independent mistakes in each task, each noticed by tests of its own.
        recipes: file of recipes; the suite's own by default.
        sandbox: kind of sandbox that a package's tests run in when it is prepared.

    Raises:
        InvalidOptionError: there is no such package, or number of mistakes.
    """

    def __init__(
        self, names: Sequence[str] = ("measures",), mutants: int = 1, recipes: Path | None = None, sandbox: str = "auto"
    ) -> None:
        RepairOptions(mutants=mutants)  # Checked for those too who make no environment.
        self.packages = tuple(find(name) for name in dict.fromkeys(names))
        if not self.packages:
            raise InvalidOptionError("packages is empty; name at least one")
        self.mutants = mutants
        self.sandbox = sandbox
        self._recipes = _read_recipes(recipes)
        self._split: dict[str, list[Recipes]] = {
            split: [
                chosen
                for package in self.packages
                for chosen in _choose(self._recipes.get(package.slug, ()), mutants, split)
            ]
            for split in self.splits
        }

    def _ids(self, split: str) -> tuple[str, ...]:
        return tuple(name_of(recipes) for recipes in self._split[split])

    def _load(self, task_id: str, split: str, index: int) -> SWETask:
        """A task, built when it is first asked for.

        Raises:
            PackageError: the package's code cannot be fetched.
            SandboxError: its tests cannot be run.
        """
        chosen = self._split[split][index]
        package = next(package for package in self.packages if package.slug == chosen[0].package)
        together = self._recipes[package.slug]
        return _make(package, chosen, together, split=split, index=index, sandbox=self.sandbox)

    def _advice(self) -> str:
        names = ", ".join(package.name for package in self.packages)
        return f"These are tasks of {names} with {self.mutants} mistakes each."


@cache
def _read_recipes(path: Path | None) -> dict[str, Recipes]:
    """Recipes by package, in the order of their keys."""
    source = path or files("textagent_gym.domains.swe.mutants").joinpath("recipes.jsonl")
    found: dict[str, list[Recipe]] = defaultdict(list)
    try:
        for line in source.read_text(encoding="utf-8").splitlines():
            recipe = read_recipe(line)
            found[recipe.package].append(recipe)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidOptionError(f"{source} is no file of recipes: {error}") from error
    return {name: tuple(sorted(recipes, key=lambda recipe: recipe.id)) for name, recipes in found.items()}


def _choose(recipes: Sequence[Recipe], mutants: int, split: str) -> list[Recipes]:
    """Recipes that go together: in different places, and noticed by different tests."""
    own = [recipe for recipe in recipes if in_split(recipe.id, split)]
    if mutants == 1:
        return [(recipe,) for recipe in own]
    found = []
    for first in own:
        chosen = [first]
        for other in sorted(own, key=lambda recipe: hashlib.sha256(f"{first.id}{recipe.id}".encode()).digest()):
            if len(chosen) < mutants and all(_independent(other, one) for one in chosen):
                chosen.append(other)
        if len(chosen) == mutants:
            found.append(tuple(chosen))
    return found


def _independent(a: Recipe, b: Recipe) -> bool:
    apart = a.file != b.file or a.mutation.end + 200 < b.mutation.start or b.mutation.end + 200 < a.mutation.start
    return apart and not set(a.fail_to_pass) & set(b.fail_to_pass)


def _make(package: Package, recipes: Recipes, together: Recipes, *, split: str, index: int, sandbox: str) -> SWETask:
    """The task of some recipes, with its trees on disk; all those of the package are searched for copies together."""
    name = "+".join(recipe.id for recipe in recipes)
    repository = _repository(package, sandbox)
    built = cache_folder() / "swe" / f"v{packages.VERSION}" / "tasks"
    folder = built / f"{repository.root.name}-{repository.platform}" / name
    if not folder.is_dir():
        if copies_elsewhere(sandbox, repository, together) and copies_elsewhere(sandbox, repository, recipes):
            raise UnknownTaskError(f"the repair of {name_of(recipes)} lies in files that are seen in the sandbox")
        write_task(recipes, repository, folder, sandbox)
    exam = _read_exam(folder / "exam.json")
    if exam.chance > MOST_CHANCE:
        raise UnknownTaskError(
            f"the answers to the hidden tests of {name_of(recipes)} could be guessed: the chance is {exam.chance:.2g} "
            f"here ({repository.platform}), and should be below {MOST_CHANCE:.2g}"
        )
    hunks = tuple(sorted(hunks_of(recipes, repository), key=lambda hunk: (hunk.path, hunk.line)))
    shared = (folder / "tree", rest(repository))
    return SWETask(
        id=name_of(recipes),
        split=split,
        index=index,
        complexity=RepairComplexity(
            state_size=package.lines,
            solution_length=len(hunks) + 1,  # A command for each place, and to submit.
            files=len({hunk.path for hunk in hunks}),
            hunks=len(hunks),
            lines=sum(_changed_lines(hunk) for hunk in hunks),
            chance=exam.chance,
        ),
        milestones=len(exam.tests),
        task_type=package.name,
        problem=statement(package.name, [recipe.symptoms for recipe in recipes]),
        repository=repository,
        layers=(folder / "git", *shared),
        graded_layers=(folder / "compiled", *shared),
        fail_to_pass=exam.tests,
        pass_to_pass=(*exam.visible, *(version.test for kept in exam.kept for version in kept.versions)),
        exam=exam,
        hunks=hunks,
    )


@lru_cache(maxsize=256)
def _read_exam(path: Path) -> Exam:
    return Exam.from_json(path.read_text(encoding="utf-8"))


@cache
def _repository(package: Package, sandbox: str) -> Repository:
    box = make_sandbox(sandbox, toolbox=TOOLBOX)
    try:
        return prepare(package, box)
    finally:
        box.close()
