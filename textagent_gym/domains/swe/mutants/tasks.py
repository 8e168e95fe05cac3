"""The software-engineering tasks that come with the suite: recipes, built on disk when they are first asked for."""

from __future__ import annotations

import difflib
import hashlib
import threading
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
from textagent_gym.domains.swe.mutants.layers import commit, rest
from textagent_gym.domains.swe.mutants.packages import Package, Repository, find, prepare
from textagent_gym.domains.swe.mutants.recipe import Recipe, read_recipe, statement
from textagent_gym.domains.swe.options import RepairOptions
from textagent_gym.domains.swe.tasks import Hunk, RepairComplexity, RepairTasks, RepairWorld
from textagent_gym.domains.swe.toolbox import TOOLBOX
from textagent_gym.errors import InvalidOptionError, UnknownTaskError
from textagent_gym.files import cache_folder
from textagent_gym.sandbox import make_sandbox
from textagent_gym.tasks import Task, in_split


@dataclass(frozen=True, kw_only=True)
class MutantWorld(RepairWorld):
    """A package with mistakes in it.

    Attributes:
        repository: the package as it should be.
        layers: layers of the agent's tree: `.git`, code and tests, and everything else.
        graded_layers: layers of the tree that is graded.
        exam: questions that a repair is asked, with the right answers.
        hunks: places to repair, first file and line first.
    """

    repository: Repository
    layers: tuple[Path, ...]
    graded_layers: tuple[Path, ...]
    exam: Exam
    hunks: tuple[Hunk, ...]


def _changed_lines(hunk: Hunk) -> int:
    """Lines that a hunk takes out or puts in."""
    lines = difflib.ndiff(hunk.wrong.splitlines(), hunk.right.splitlines())
    return sum(line.startswith(("- ", "+ ")) for line in lines)


class BuiltTasks(RepairTasks[MutantWorld]):
    """Tasks made of packages by recipes.

    Args:
        names: names of the packages, or paths of folders; see `packages.find`.
        mutants: number of independent mistakes in each task, each noticed by tests of its own.
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
        self._split: dict[str, dict[str, Recipes]] = {
            split: {
                name_of(chosen): chosen
                for package in self.packages
                for chosen in _choose(self._recipes.get(package.slug, ()), mutants, split)
            }
            for split in self.splits
        }

    def _ids(self, split: str) -> tuple[str, ...]:
        return tuple(self._split[split])

    def _load(self, task_id: str, split: str, index: int) -> Task:
        """A task, measured when it is first asked for: its trees and its exam are then on disk.

        Raises:
            PackageError: the package's code cannot be fetched.
            SandboxError: its tests cannot be run.
            UnknownTaskError: the task is not served here.
        """
        built = self._build(self._split[split][task_id])
        return Task(
            id=task_id,
            split=split,
            index=index,
            complexity=RepairComplexity(
                state_size=built.repository.package.lines,
                solution_length=len(built.hunks) + 1,  # A command for each place, and to submit.
                files=len({hunk.path for hunk in built.hunks}),
                hunks=len(built.hunks),
                lines=sum(_changed_lines(hunk) for hunk in built.hunks),
                chance=built.exam.chance,
            ),
            milestones=len(built.exam.tests),
            task_type=built.repository.package.name,
        )

    def world(self, task: Task) -> MutantWorld:
        """The trees of a task, with what is asked of a repair.

        Raises:
            PackageError: the package's code cannot be fetched.
            SandboxError: its tests cannot be run.
            UnknownTaskError: this source holds no such task, or it is not served here.
        """
        recipes = self._split.get(task.split, {}).get(task.id)
        if recipes is None:
            raise UnknownTaskError(f"task {task.id!r:.200} does not exist here. {self._advice()}")
        built = self._build(recipes)
        exam = built.exam
        shared = (built.folder / "tree", rest(built.repository))
        return MutantWorld(
            problem=statement(built.repository.package.name, [recipe.symptoms for recipe in recipes]),
            fail_to_pass=exam.tests,
            pass_to_pass=(*exam.visible, *(version.test for kept in exam.kept for version in kept.versions)),
            repository=built.repository,
            layers=(commit(built.folder, built.repository), *shared),
            graded_layers=(built.folder / "compiled", *shared),
            exam=exam,
            hunks=built.hunks,
        )

    def _prepare_one(self, split: str, index: int) -> None:
        self.world(self.task(split, index))

    def _build(self, recipes: Recipes) -> _Built:
        package = next(package for package in self.packages if package.slug == recipes[0].package)
        return _build(package, recipes, self._recipes[package.slug], self.sandbox)

    def _advice(self) -> str:
        names = ", ".join(package.name for package in self.packages)
        return f"These are tasks of {names} with {self.mutants} mistakes each."


@cache
def _read_recipes(path: Path | None) -> dict[str, Recipes]:
    """Recipes by package, in the order of their keys."""
    source = path or files("textagent_gym.domains.swe.mutants").joinpath("recipes.jsonl")
    by_package: dict[str, list[Recipe]] = defaultdict(list)
    try:
        for line in source.read_text(encoding="utf-8").splitlines():
            recipe = read_recipe(line)
            by_package[recipe.package].append(recipe)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidOptionError(f"{source} is no file of recipes: {error}") from error
    return {name: tuple(sorted(recipes, key=lambda recipe: recipe.id)) for name, recipes in by_package.items()}


def _choose(recipes: Sequence[Recipe], mutants: int, split: str) -> list[Recipes]:
    """Sets of recipes that go together: in different places, and noticed by different tests; each set once."""
    candidates = [recipe for recipe in recipes if in_split(recipe.id, split)]
    if mutants == 1:
        return [(recipe,) for recipe in candidates]
    combinations: dict[frozenset[str], Recipes] = {}
    for first in candidates:
        chosen = [first]
        for other in sorted(candidates, key=lambda recipe: hashlib.sha256(f"{first.id}{recipe.id}".encode()).digest()):
            if len(chosen) < mutants and all(_independent(other, one) for one in chosen):
                chosen.append(other)
        if len(chosen) == mutants:
            combinations.setdefault(frozenset(recipe.id for recipe in chosen), tuple(chosen))
    return list(combinations.values())


def _independent(a: Recipe, b: Recipe) -> bool:
    apart = a.file != b.file or a.mutation.end + 200 < b.mutation.start or b.mutation.end + 200 < a.mutation.start
    return apart and not set(a.fail_to_pass) & set(b.fail_to_pass)


@dataclass(frozen=True)
class _Built:
    """A task on disk.

    Attributes:
        repository: the package as it should be.
        folder: folder of the trees that are the task's own, and of its exam.
        exam: questions that a repair is asked, with the right answers.
        hunks: places to repair, first file and line first.
    """

    repository: Repository
    folder: Path
    exam: Exam
    hunks: tuple[Hunk, ...]


# Threads that want the same task wait for the one that writes it, and `ast.parse` of Python 3.11 can fail where several
# threads call it ("AST constructor recursion depth mismatch").
_writing = threading.Lock()


def _build(package: Package, recipes: Recipes, together: Recipes, sandbox: str) -> _Built:
    """The task of some recipes, written to disk if need be.

    Args:
        package: package of the recipes.
        recipes: recipes of the task.
        together: all recipes of the package, which are searched for copies together.
        sandbox: kind of sandbox that the tests run in.
    """
    repository = _repository(package, sandbox)
    every_task = cache_folder() / "swe" / f"v{packages.VERSION}" / "tasks"
    folder = every_task / f"{repository.root.name}-{repository.platform}" / "+".join(recipe.id for recipe in recipes)
    if not folder.is_dir():
        with _writing:
            if not folder.is_dir():
                _write(recipes, together, repository, folder, sandbox)
    exam = _read_exam(folder / "exam.json")
    if exam.chance > MOST_CHANCE:
        raise UnknownTaskError(
            f"the answers to the hidden tests of {name_of(recipes)} could be guessed: the chance is {exam.chance:.2g} "
            f"here ({repository.platform}), and should be below {MOST_CHANCE:.2g}"
        )
    hunks = sorted(hunks_of(recipes, repository), key=lambda hunk: (hunk.path, hunk.line))
    return _Built(repository, folder, exam, tuple(hunks))


def _write(recipes: Recipes, together: Recipes, repository: Repository, folder: Path, sandbox: str) -> None:
    if copies_elsewhere(sandbox, repository, together) and copies_elsewhere(sandbox, repository, recipes):
        raise UnknownTaskError(f"the repair of {name_of(recipes)} lies in files that are seen in the sandbox")
    write_task(recipes, repository, folder, sandbox)


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
