"""Makes tasks out of working packages: a mistake is put into the code, and the tests that notice it are hidden.

A mutation is kept when one to ten tests fail and all others pass, three times in a row, and when the repaired code
passes everything three times in a row. What is written down is a recipe: the package, the place and kind of the change,
the tests that fail, and what a user would see go wrong. The code itself stays where it is.
"""

from __future__ import annotations

import ast
import hashlib
import re
import secrets
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from textagent_gym.domains.swe.mutants.mutations import Mutation, mutations
from textagent_gym.domains.swe.mutants.packages import Repository, run_all
from textagent_gym.domains.swe.mutants.recipe import MOST_FAILURES, Recipe
from textagent_gym.sandbox.base import Changes, Sandbox

_REPEATS = 3  # Runs that must agree before a mutation is kept: tests that fail by chance are noticed.


@dataclass(slots=True)
class Tally:
    """What became of the mutations that were tried."""

    tried: int = 0
    unnoticed: int = 0
    too_many: int = 0
    flaky: int = 0
    guessable: int = 0
    kept: int = 0


def build(
    repository: Repository,
    sandbox: Sandbox,
    count: int,
    *,
    known: frozenset[str] = frozenset(),
    accept: Callable[[Recipe], bool] | None = None,
    progress: Callable[[Recipe, Tally], None] | None = None,
) -> tuple[list[Recipe], Tally]:
    """Recipes for a package.

    The same package gives the same recipes in the same order. Kinds of mutations take turns, and no function of the
    package is used more often than needed.

    Args:
        repository: the package.
        sandbox: sandbox that the tests run in.
        count: largest number of recipes to make.
        known: keys of recipes that exist already; they are passed over without running anything.
        accept: function that says whether a recipe makes a task that is served; see `assembly.is_servable`.
        progress: function that is called with each new recipe.
    """
    recipes: list[Recipe] = []
    tally = Tally()
    for file, mutation in _candidates(repository):
        if len(recipes) >= count:
            break
        recipe = Recipe(secrets.token_hex(5), repository.package.slug, file, mutation, (), "")
        if recipe.key in known:
            continue
        tally.tried += 1
        complete = _try(repository, sandbox, recipe, tally)
        if complete is not None and accept is not None and not accept(complete):
            tally.guessable += 1
        elif complete is not None:
            tally.kept += 1
            recipes.append(complete)
            if progress is not None:
                progress(complete, tally)
    return recipes, tally


def _candidates(repository: Repository) -> Iterator[tuple[str, Mutation]]:
    """All mutations of a package: kinds take turns, and within a kind functions do, in orders drawn by hashing."""
    groups: dict[str, dict[str, list[tuple[str, str, Mutation]]]] = defaultdict(lambda: defaultdict(list))
    sources: dict[str, str] = {}
    for file in repository.source_files:
        source = sources[file] = (repository.root / file).read_text(encoding="utf-8")
        owners = _owners(source)
        for mutation in mutations(source):
            owner = f"{file}:{owners(mutation.start)}"
            drawn = _drawn(f"{file}/{mutation.start}/{mutation.end}/{mutation.text}")
            groups[mutation.kind][owner].append((drawn, file, mutation))
    used: Counter[str] = Counter()
    while groups:
        for kind in sorted(groups):
            owners_left = groups[kind]
            # The owner that has been used least, of these the first by its own draw.
            owner = min((used[name], _drawn(f"{kind}{name}"), name) for name in owners_left)[2]
            choice = min(owners_left[owner])
            owners_left[owner].remove(choice)
            if not owners_left[owner]:
                del owners_left[owner]
            if not owners_left:
                del groups[kind]
            _, file, mutation = choice
            used[owner] += 1
            if mutation.parses(sources[file]):
                yield file, mutation


def _drawn(text: str) -> str:
    """A place in an order that looks random and is always the same."""
    return hashlib.sha256(text.encode()).hexdigest()


def _owners(source: str) -> Callable[[int], str]:
    """Finds the function or class that a character belongs to."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    spans = [
        (starts[node.lineno - 1], starts[node.end_lineno or node.lineno], node.name)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]

    def owner(place: int) -> str:
        around = [(end - start, name) for start, end, name in spans if start <= place < end]
        return min(around)[1] if around else ""

    return owner


def _try(repository: Repository, sandbox: Sandbox, recipe: Recipe, tally: Tally) -> Recipe | None:
    """Run the tests; a recipe if they fail in the right way."""
    source = (repository.root / recipe.file).read_text(encoding="utf-8")
    changed: Changes = {recipe.file: recipe.mutation.apply(source).encode()}
    failures: set[frozenset[str]] = set()
    messages: dict[str, str] = {}
    for repeat in range(_REPEATS):
        run = run_all(repository, sandbox, changed, maxfail=MOST_FAILURES + 1)
        failed = repository.tests - run.passed
        if run.timed_out or run.forged or len(failed) > MOST_FAILURES:
            tally.too_many += 1
            return None
        if not failed:
            tally.unnoticed += 1
            return None
        if failed - run.failed:  # The tests cannot even be collected.
            tally.too_many += 1
            return None
        if repeat == 0:
            messages = dict(run.messages)
        failures.add(failed)
        if len(failures) > 1:
            tally.flaky += 1
            return None
    for _ in range(_REPEATS):
        run = run_all(repository, sandbox, {})
        if repository.tests - run.passed:
            tally.flaky += 1
            return None
    (failed,) = failures
    symptoms = describe(failed, messages)
    return Recipe(recipe.id, recipe.package, recipe.file, recipe.mutation, tuple(sorted(failed)), symptoms)


_ASSERTION = re.compile(r"^    (assert .*|with pytest\.raises.*|self\.assert\w+\(.*|pytest\.raises\(.*)$", re.MULTILINE)
_OUTCOME = re.compile(r"^E +(.*)$", re.MULTILINE)


def describe(failed: frozenset[str], messages: dict[str, str]) -> str:
    """What goes wrong, in the words of the interpreter: what was expected to hold, and what happened instead."""
    parts: list[str] = []
    for test in sorted(failed):
        text = messages.get(test, "")
        expected = [line.strip() for line in _ASSERTION.findall(text)]
        happened = [line.strip() for line in _OUTCOME.findall(text) if line.strip() and "Use -v to get" not in line][:4]
        lines = [*(f"    {line}" for line in expected[-1:]), *(f"    # {line}" for line in happened)]
        part = "\n".join(lines)
        if part and part not in parts:
            parts.append(part)
    return _without_names("\n\n".join(parts[:3]), failed)


def _without_names(text: str, tests: frozenset[str]) -> str:
    """A text without the names of tests, of their files and of the folder in which they ran."""
    words = set()
    for test in tests:
        file, *names = test.split("::")
        words |= {file, Path(file).stem, *(name.partition("[")[0] for name in names)}
    for word in sorted(words, key=len, reverse=True):
        text = text.replace(word, "...")
    return re.sub(r"0x[0-9a-f]{6,}", "0x...", text)
