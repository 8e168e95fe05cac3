"""The software-engineering tasks that come with the suite: recipes, made into trees on disk when they are played."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path

from textagent_gym.cache import cache_folder, made_whole
from textagent_gym.difficulty import Complexity
from textagent_gym.domains.swe import packages
from textagent_gym.domains.swe.builder import MOST_FAILURES, Recipe, read_recipe, run_all, statement
from textagent_gym.domains.swe.grader import grade
from textagent_gym.domains.swe.hidden.exam import Exam
from textagent_gym.domains.swe.hidden.making import Mistake, Trees, make_exam
from textagent_gym.domains.swe.layers import rest, write_commit, write_compiled_tests, write_tree
from textagent_gym.domains.swe.packages import Package, Repository, find, hide, prepare
from textagent_gym.domains.swe.sandbox import Changes, Sandbox, make_sandbox
from textagent_gym.errors import InfeasibleDifficultyError, InvalidOptionError, UnknownTaskError
from textagent_gym.tasks import Task, TaskSource, in_split

_PREFIX = "SWE"
MOST_GRADINGS = 50
"""Of an episode: a forger gets no more guesses than that."""
MOST_CHANCE = 0.01 / MOST_GRADINGS
"""A task is served only where the chance of a forger (see `hidden.judge`) is below this in each grading, and so below
one in a hundred in an episode."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """One place to repair.

    Attributes:
        path: of the file.
        wrong, right: whole lines, as they are and as they should be.
        line: number of the first of them, from 1.
    """

    path: str
    wrong: str
    right: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairComplexity(Complexity):
    """What was measured in a repository and its repair.

    Attributes:
        files: that the repair changes.
        hunks: places that it changes.
        lines: that it takes out or puts in.
        chance: in 0..1 that somebody is paid, in one grading, who forges the answers to the hidden tests and knows
            everything but the right ones; see `hidden.judge`.
    """

    files: int
    hunks: int
    lines: int
    chance: float | None = None


@dataclass(frozen=True, kw_only=True)
class RepairTask(Task):
    """A repository to repair.

    Attributes:
        problem: what the agent is told.
        fail_to_pass, pass_to_pass: ids of tests.
    """

    problem: str
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SWETask(RepairTask):
    """A repository with mistakes in it.

    Attributes:
        repository: the package.
        layers: of the agent's tree: `.git`, code and tests, and everything else.
        graded_layers: of the tree that is graded.
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


class BuiltTasks(TaskSource[SWETask]):
    """Tasks made of packages by recipes.

    Args:
        names: of the packages, or paths of folders; see `packages.find`.
        mutants: independent mistakes in each task, each noticed by tests of its own.
        recipes: file of recipes; the suite's own by default.
        sandbox: kind of sandbox that a package's tests run in when it is prepared.

    Raises:
        InvalidOptionError: there is no such package.
    """

    def __init__(
        self, names: Sequence[str] = ("measures",), mutants: int = 1, recipes: Path | None = None, sandbox: str = "auto"
    ) -> None:
        if not 1 <= mutants <= 5:
            raise InfeasibleDifficultyError(f"mutants={mutants} is not possible: it goes from 1 to 5")
        self.packages = tuple(find(name) for name in dict.fromkeys(names))
        if not self.packages:
            raise InvalidOptionError("packages is empty; name at least one")
        self.mutants = mutants
        self.sandbox = sandbox
        by_package = _read_recipes(recipes)
        self._split: dict[str, list[tuple[Recipe, ...]]] = {
            split: [
                chosen
                for package in self.packages
                for chosen in _choose(by_package.get(package.slug, ()), mutants, split)
            ]
            for split in self.splits
        }

    def size(self, split: str) -> int:
        """Number of tasks in a split."""
        return len(self._split[self.check_split(split)])

    def task(self, split: str, index: int) -> SWETask:
        """The `index`-th task of a split, built when it is first asked for; see `TaskSource.task`.

        Raises:
            PackageError: the package's code cannot be fetched.
            SandboxError: its tests cannot be run.
        """
        chosen = self._split[self.check_split(split)]
        if not 0 <= index < len(chosen):
            raise UnknownTaskError(
                f"task_index={index} does not exist in split {split!r}, which has {len(chosen)} tasks of "
                f"{', '.join(package.name for package in self.packages)} with {self.mutants} mistakes"
            )
        package = next(package for package in self.packages if package.slug == chosen[index][0].package)
        return _make(package, chosen[index], split, index, self.sandbox)

    def find(self, task_id: str) -> SWETask:
        """The task with this id; see `TaskSource.find`."""
        for split, tasks in self._split.items():
            for index, recipes in enumerate(tasks):
                if _name(recipes) == task_id:
                    return self.task(split, index)
        raise UnknownTaskError(f"task {task_id!r} is none of this environment's")


def _name(recipes: tuple[Recipe, ...]) -> str:
    return f"{_PREFIX}/{recipes[0].package}/{'+'.join(recipe.id for recipe in recipes)}"


@cache
def _read_recipes(path: Path | None) -> dict[str, tuple[Recipe, ...]]:
    """Recipes by package, in the order of their keys."""
    source = path or files("textagent_gym.domains.swe").joinpath("recipes.jsonl")
    found: dict[str, list[Recipe]] = defaultdict(list)
    try:
        for line in source.read_text(encoding="utf-8").splitlines():
            recipe = read_recipe(line)
            found[recipe.package].append(recipe)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidOptionError(f"{source} is no file of recipes: {error}") from error
    return {name: tuple(sorted(recipes, key=lambda recipe: recipe.id)) for name, recipes in found.items()}


def _choose(recipes: Sequence[Recipe], mutants: int, split: str) -> list[tuple[Recipe, ...]]:
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


def _make(package: Package, recipes: tuple[Recipe, ...], split: str, index: int, sandbox: str) -> SWETask:
    """The task of some recipes, with its trees on disk."""
    name = "+".join(recipe.id for recipe in recipes)
    repository = _repository(package, sandbox)
    built = cache_folder() / "swe" / f"v{packages.VERSION}" / "tasks"
    folder = built / f"{repository.root.name}-{repository.platform}" / name
    if not folder.is_dir():
        _write(recipes, repository, folder, sandbox)
    exam = _read_exam(folder / "exam.json")
    if exam.chance > MOST_CHANCE:
        raise UnknownTaskError(
            f"the answers to the hidden tests of {_name(recipes)} could be guessed: the chance is {exam.chance:.2g} here, "
            f"and should be below {MOST_CHANCE:.2g} ({repository.platform})"
        )
    hunks = tuple(sorted(_hunks(recipes, repository), key=lambda hunk: (hunk.path, hunk.line)))
    shared = (folder / "tree", rest(repository))
    return SWETask(
        id=_name(recipes),
        split=split,
        index=index,
        complexity=RepairComplexity(
            state_size=package.lines,
            action_size=0.0,
            solution_length=len(hunks) + 1,  # A command for each place, and to submit.
            exact=False,
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
    box = make_sandbox(sandbox)
    try:
        return prepare(package, box)
    finally:
        box.close()


def _write(recipes: tuple[Recipe, ...], repository: Repository, folder: Path, sandbox: str) -> None:
    """Write a task's layers and its exam."""
    changed = _with_mistakes(recipes, repository)
    with contextlib.ExitStack() as stack:
        boxes = make_sandbox(sandbox), make_sandbox(sandbox)
        for box in boxes:
            stack.callback(box.close)
        failing = _failing(recipes, repository, changed, boxes[0])
        shown = {name: hide(repository.test_texts[name], names) for name, names in _by_file(failing).items()}
        with made_whole(folder) as part:
            write_tree(repository, changed, shown, part / "tree")
            write_compiled_tests(repository, shown, part / "compiled")
            write_commit([part / "tree", rest(repository)], part / "git")
            exam = _exam(recipes, repository, changed, failing, shown, part, boxes)
            (part / "exam.json").write_text(exam.to_json(), encoding="utf-8")
            for path in part.iterdir():
                path.chmod(0o755 if path.is_dir() else 0o644)


def _exam(
    recipes: tuple[Recipe, ...],
    repository: Repository,
    changed: dict[str, str],
    failing: Sequence[str],
    shown: dict[str, str],
    folder: Path,
    boxes: tuple[Sandbox, Sandbox],
) -> Exam:
    """What is asked of a repair of these mistakes.

    Raises:
        UnknownTaskError: the right code gives other answers than it should, or can be found in the sandbox.
    """
    right: Changes = {name: (repository.root / name).read_bytes() for name in changed}
    mistakes: Changes = {name: text.encode() for name, text in changed.items()}
    layers = (folder / "compiled", folder / "tree", rest(repository))
    exam = make_exam(
        boxes,
        layers,
        Trees((repository.compiled, repository.root), mistakes, right, repository.package.paths),
        [
            Mistake(
                tuple(sorted(set(recipe.fail_to_pass) & set(failing))),
                statement(repository.package.name, [recipe.symptoms]),
            )
            for recipe in recipes
        ],
        tests=repository.tests - set(failing),
        hidden=failing,
        texts=repository.test_sources,
        shown={**repository.test_texts, **shown},
    )
    if exam.chance > MOST_CHANCE:
        return exam
    found = grade(boxes[1], layers, right, exam)
    if found.broken:  # What the mistakes alone let pass says nothing of a repair.
        exam = exam.without(found.broken)
        found = grade(boxes[1], layers, right, exam)
    if not found.resolved:
        raise UnknownTaskError(f"the hidden tests of {_name(recipes)} do not pass with the right code")
    return exam


def _with_mistakes(recipes: tuple[Recipe, ...], repository: Repository) -> dict[str, str]:
    """The files that the recipes change, changed."""
    changed: dict[str, str] = {}
    for recipe in sorted(recipes, key=lambda recipe: -recipe.mutation.start):
        source = changed.get(recipe.file) or (repository.root / recipe.file).read_text(encoding="utf-8")
        changed[recipe.file] = recipe.mutation.apply(source)
    return changed


def _failing(recipes: tuple[Recipe, ...], repository: Repository, changed: dict[str, str], box: Sandbox) -> list[str]:
    """The tests that notice the mistakes: known for one, found out for several together."""
    if len(recipes) == 1:
        failing = sorted(set(recipes[0].fail_to_pass) & repository.tests)
        if not failing:
            raise UnknownTaskError(f"the tests of {_name(recipes)} do not run with this version of Python")
        return failing
    run = run_all(repository, box, {name: text.encode() for name, text in changed.items()})
    failing = sorted(repository.tests - run.passed)
    if len(failing) > MOST_FAILURES * len(recipes) or not all(set(failing) & set(r.fail_to_pass) for r in recipes):
        raise UnknownTaskError(f"the mistakes of {_name(recipes)} hide each other")
    return failing


def _by_file(tests: Sequence[str]) -> dict[str, set[str]]:
    """Test functions by file, without parameters."""
    found: dict[str, set[str]] = defaultdict(set)
    for test in tests:
        file, _, name = test.partition("::")
        found[file].add(name.partition("[")[0])
    return found


def _hunks(recipes: tuple[Recipe, ...], repository: Repository) -> list[Hunk]:
    """The lines that the recipes change, as they are in the task and as they should be."""
    changed = _with_mistakes(recipes, repository)
    found = []
    for recipe in recipes:
        right = (repository.root / recipe.file).read_text(encoding="utf-8")
        mutation = recipe.mutation
        start = right.rfind("\n", 0, mutation.start) + 1
        end = right.find("\n", mutation.end)
        end = len(right) if end < 0 else end + 1
        wrong = right[start : mutation.start] + mutation.text + right[mutation.end : end]
        lines_before = sum(
            other.mutation.text.count("\n") - right[other.mutation.start : other.mutation.end].count("\n")
            for other in recipes
            if other.file == recipe.file and other.mutation.start < mutation.start
        )
        assert wrong in changed[recipe.file]
        found.append(Hunk(recipe.file, wrong, right[start:end], right.count("\n", 0, start) + 1 + lines_before))
    return found
