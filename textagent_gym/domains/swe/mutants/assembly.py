"""Makes a task on disk out of recipes: the trees that agents and graders see, and the exam."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from textagent_gym.domains.swe.grading.grader import grade
from textagent_gym.domains.swe.grading.hidden.asking import Trees
from textagent_gym.domains.swe.grading.hidden.exam import Exam
from textagent_gym.domains.swe.grading.hidden.exam_maker import Maker, Mistake, make_exam, time_of_gradings
from textagent_gym.domains.swe.grading.hidden.judge import MOST_CHANCE
from textagent_gym.domains.swe.grading.pytest_runs import run_tests
from textagent_gym.domains.swe.mutants.hiding import hide, hide_with_tables
from textagent_gym.domains.swe.mutants.layers import rest, write_compiled_tests, write_tree
from textagent_gym.domains.swe.mutants.packages import Repository, run_all
from textagent_gym.domains.swe.mutants.recipe import MOST_FAILURES, Recipe, statement
from textagent_gym.domains.swe.tasks import Hunk
from textagent_gym.domains.swe.toolbox import TOOLBOX
from textagent_gym.errors import UnknownTaskError
from textagent_gym.files import whole_folder
from textagent_gym.sandbox import Changes, Sandbox, SandboxError, is_safe, make_sandbox

Recipes = tuple[Recipe, ...]
"""Those of one task, in the order of their ids."""
_PREFIX = "SWE"


def name_of(recipes: Recipes) -> str:
    """Id of the task."""
    return f"{_PREFIX}/{recipes[0].package}/{'+'.join(recipe.id for recipe in recipes)}"


def copies_elsewhere(sandbox: str, repository: Repository, recipes: Recipes) -> tuple[str, ...]:
    """Files that are seen in a sandbox beside the tree, and that hold the right lines of a recipe as they are.

    A sandbox that keeps nothing in is not searched: in there, the whole machine is seen, and the right code with it.
    """
    if not is_safe(sandbox):
        return ()
    texts = []
    for recipe in recipes:
        source = (repository.root / recipe.file).read_text(encoding="utf-8")
        start = source.rfind("\n", 0, max(0, source.rfind("\n", 0, recipe.mutation.start))) + 1
        end = source.find("\n", source.find("\n", recipe.mutation.end) + 1)  # With the lines before and after.
        texts.append(source[start : end if end >= 0 else len(source)].encode())
    return _search(sandbox, tuple(texts))


@lru_cache(maxsize=256)
def _search(sandbox: str, texts: tuple[bytes, ...]) -> tuple[str, ...]:
    box = make_sandbox(sandbox, toolbox=TOOLBOX)
    try:
        return tuple(box.search(texts))
    finally:
        box.close()


def write_task(recipes: Recipes, repository: Repository, folder: Path, sandbox: str) -> None:
    """Write the layers of a task that are graded, and its exam.

    Raises:
        SandboxError: tests do not end in time.
        UnknownTaskError: the mistakes hide each other, or the right code does not give the right answers each time.
    """
    changed = _with_mistakes(recipes, repository)
    with contextlib.ExitStack() as stack:
        boxes = make_sandbox(sandbox, toolbox=TOOLBOX), make_sandbox(sandbox, toolbox=TOOLBOX)
        for box in boxes:
            stack.callback(box.close)
        failing = _failing(recipes, repository, changed, boxes[0])
        shown = _shown(repository, changed, failing, boxes)
        with whole_folder(folder) as part:
            write_tree(repository, changed, shown, part / "tree")
            write_compiled_tests(repository, shown, part / "compiled")
            layers = (part / "compiled", part / "tree", rest(repository))
            exam = _exam(recipes, repository, changed, failing, shown=shown, layers=layers, boxes=boxes)
            (part / "exam.json").write_text(exam.to_json(), encoding="utf-8")
            for path in part.iterdir():
                path.chmod(0o755 if path.is_dir() else 0o644)


def _shown(
    repository: Repository, changed: dict[str, str], failing: Sequence[str], boxes: tuple[Sandbox, Sandbox]
) -> dict[str, str]:
    """The files of the hidden tests as the agent sees them: of what is expected, only what other tests need.

    What the hidden tests alone read goes, and so do rows of theirs from tables that others read too, if the others then
    pass with the right code.
    """
    functions = _by_file(failing)
    described = Maker(boxes, _trees(repository, changed), repository.test_sources).describe(failing)
    rows = {
        file: [description["parameters"] for test, description in described.items() if test.startswith(f"{file}::")]
        for file in functions
    }
    texts = repository.test_texts
    shown = {file: hide(texts[file], names) for file, names in functions.items()}
    others = {test for test in repository.tests if test.partition("[")[0] not in _functions(failing)}
    for cut in (
        {file: hide_with_tables(texts[file], names, rows[file]) for file, names in functions.items()},
        {file: hide_with_tables(texts[file], names, ()) for file, names in functions.items()},
    ):
        if cut == shown:
            break
        files: Changes = {file: text.encode() for file, text in cut.items()}
        run = run_tests(
            boxes[0], [repository.root], files, test_files=repository.test_files, paths=repository.package.paths
        )
        if run.timed_out:
            raise SandboxError(f"the tests of {repository.package.slug} do not end in time: the machine may be busy")
        if not run.failed & others and _functions(others) <= _functions(run.passed):
            return cut
    return shown


def _functions(tests: Iterable[str]) -> set[str]:
    """Tests without their parameters."""
    return {test.partition("[")[0] for test in tests}


def _trees(repository: Repository, changed: dict[str, str]) -> Trees:
    mistakes: Changes = {name: text.encode() for name, text in changed.items()}
    return Trees((repository.compiled, repository.root), mistakes, repository.package.paths)


def is_servable(recipe: Recipe, repository: Repository, sandbox: str) -> bool:
    """A task of this recipe is served: its hidden tests can be told in words, and nobody can guess the answers."""
    with tempfile.TemporaryDirectory(prefix="textagent-") as temporary:
        folder = Path(temporary) / "task"
        try:
            write_task((recipe,), repository, folder, sandbox)
        except UnknownTaskError:
            return False
        exam = Exam.from_json((folder / "exam.json").read_text(encoding="utf-8"))
    return exam.chance <= MOST_CHANCE and not copies_elsewhere(sandbox, repository, (recipe,))


def _exam(
    recipes: Recipes,
    repository: Repository,
    changed: dict[str, str],
    failing: Sequence[str],
    *,
    shown: dict[str, str],
    layers: tuple[Path, ...],
    boxes: tuple[Sandbox, Sandbox],
) -> Exam:
    """What is asked of a repair of these mistakes.

    Raises:
        UnknownTaskError: the right code does not give the right answers.
    """
    right: Changes = {name: (repository.root / name).read_bytes() for name in changed}
    exam = make_exam(
        boxes,
        layers,
        _trees(repository, changed),
        [
            Mistake(
                tuple(sorted(set(recipe.fail_to_pass) & set(failing))),
                statement(repository.package.name, [recipe.symptoms]),
            )
            for recipe in recipes
        ],
        tests=repository.tests - set(failing),
        texts=repository.test_sources,
        shown={**repository.test_texts, **shown},
    )
    if exam.chance > MOST_CHANCE:
        return exam
    began = time.monotonic()
    result = grade(boxes[1], layers, right, exam)
    exam = replace(exam, total=time_of_gradings(time.monotonic() - began))
    if result.broken:  # What the mistakes alone let pass says nothing of a repair.
        exam = exam.without(result.broken)
        result = grade(boxes[1], layers, right, exam)
    if not result.resolved:
        raise UnknownTaskError(f"the hidden tests of {name_of(recipes)} do not pass with the right code")
    return exam


def _with_mistakes(recipes: Recipes, repository: Repository) -> dict[str, str]:
    """The files that the recipes change, changed."""
    changed: dict[str, str] = {}
    for recipe in sorted(recipes, key=lambda recipe: -recipe.mutation.start):
        source = changed.get(recipe.file) or (repository.root / recipe.file).read_text(encoding="utf-8")
        changed[recipe.file] = recipe.mutation.apply(source)
    return changed


def _failing(recipes: Recipes, repository: Repository, changed: dict[str, str], box: Sandbox) -> list[str]:
    """The tests that notice the mistakes: known for one, found out for several together."""
    if len(recipes) == 1:
        failing = sorted(set(recipes[0].fail_to_pass) & repository.tests)
        if not failing:
            raise UnknownTaskError(f"the tests of {name_of(recipes)} do not run with this version of Python")
        return failing
    run = run_all(repository, box, {name: text.encode() for name, text in changed.items()})
    failing = sorted(repository.tests - run.passed)
    if len(failing) > MOST_FAILURES * len(recipes) or not all(set(failing) & set(r.fail_to_pass) for r in recipes):
        raise UnknownTaskError(f"the mistakes of {name_of(recipes)} hide each other")
    return failing


def _by_file(tests: Sequence[str]) -> dict[str, set[str]]:
    """Test functions by file, without parameters."""
    functions: dict[str, set[str]] = defaultdict(set)
    for test in tests:
        file, _, name = test.partition("::")
        functions[file].add(name.partition("[")[0])
    return functions


def hunks_of(recipes: Recipes, repository: Repository) -> list[Hunk]:
    """The lines that the recipes change, as they are in the task and as they should be."""
    changed = _with_mistakes(recipes, repository)
    hunks = []
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
        hunks.append(Hunk(recipe.file, wrong, right[start:end], right.count("\n", 0, start) + 1 + lines_before))
    return hunks
