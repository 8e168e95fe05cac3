"""Makes the problem of a statement happen.

A statement shows an expression that should hold, seldom what its names stand for. So it is put where its names mean
something: into test files beside their fixtures, after statements of tests that can be seen, and with values that occur
in those files. What then fails in the very words of the statement is the problem.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .runs import TEST_FILE, TREE, below, copy_tree, remember, run, seen_tests, written

PREFIX = "test_zz_"
"""Beginning of the names of planted tests."""

UNSEEN = "unseen"
"""Stands for an argument that a statement does not show."""

_MOST_PLANTED = 900  # Tests of a statement: they must all run in half of the time.
_MOST_CHOSEN = 8  # Failing tests that every repair is tried on.
_MOST_PLACES = 12  # Places in one test after which a statement is put.
_MOST_ALIKE = 3  # Chosen tests of one expectation.
_MOST_OTHERS = 8  # Tests of the same expectation with other values, of those that pass and of those that fail.
_FITS = 2
"""A failure fits a statement from here on; see `_fit`."""
_FIXTURE = re.compile(r"fixture[^\n]*\n(?:@[^\n]*\n)*def (\w+)")
_FIXTURES = {"tmp_path", "tmpdir", "capsys", "monkeypatch", "recwarn", "caplog", "request"}


def understood(line: str, outcome: list[str]) -> ast.stmt | None:
    """What a line of a statement says, as far as it can be told.

    Where it continues elsewhere, what is compared is taken from the outcome, and what is passed is left open
    (`UNSEEN`); if neither can be told, the line only has to run.
    """
    with contextlib.suppress(SyntaxError, ValueError):
        return ast.parse(line).body[0]
    if not line.startswith("assert "):
        return None
    cut = re.sub(r"[\[({\s]+$", "", line)
    call = f"{cut}({UNSEEN})" if re.search(r"\w\s*\([\[({\s]*$", line) else None
    left, operator, _ = (call or cut).removeprefix("assert ").partition(" ==")
    for opening in (left, left.lstrip("( ")):
        for closing in ("", ")", "))"):
            with contextlib.suppress(SyntaxError, ValueError):
                value = ast.parse(opening.strip() + closing, mode="eval").body
                right = _sides(outcome)[1]
                if right is not None:
                    return ast.Assert(ast.Compare(value, [ast.Eq()], [right]))
                is_other = bool(outcome) and "assert" not in outcome[0].lower()
                return ast.Expr(value) if is_other and (operator or call) else None
    return None


def _sides(outcome: list[str]) -> tuple[ast.expr | None, ast.expr | None]:
    """The two values of a comparison that did not hold, each if it is shown whole."""
    text = re.sub(r"^(AssertionError: )?assert ", "", outcome[0] if outcome else "")
    with contextlib.suppress(SyntaxError, ValueError):
        tree = ast.parse(text, mode="eval").body
        if isinstance(tree, ast.Compare) and len(tree.ops) == 1:
            return _shown(tree.left), _shown(tree.comparators[0])
    return None, None


def _shown(value: ast.expr) -> ast.expr | None:
    """A value, if it is shown whole."""
    try:
        return None if "..." in repr(ast.literal_eval(value)) else value
    except (ValueError, TypeError):
        return None


def free_names(node: ast.AST) -> set[str]:
    """Names that a statement takes from outside."""
    names = [inner for inner in ast.walk(node) if isinstance(inner, ast.Name)]
    inside = {name.id for name in names if not isinstance(name.ctx, ast.Load)}
    inside |= {inner.arg for inner in ast.walk(node) if isinstance(inner, ast.arg)}
    return {name.id for name in names} - inside - set(dir(builtins))


def bound_names(nodes: list[ast.stmt]) -> set[str]:
    """Names that statements give a meaning to."""
    bound = set()
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
            continue
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load):
                bound.add(inner.id)
            elif isinstance(inner, ast.alias):
                bound.add((inner.asname or inner.name).partition(".")[0])
            elif isinstance(inner, ast.FunctionDef | ast.ClassDef):
                bound.add(inner.name)
    return bound


Spot = tuple[str, int, int]
"""Where a test is put: file, after which line, how far to the right."""


class PlantedTests:
    """Tests made of a statement, and where they are put."""

    def __init__(self) -> None:
        self.texts: dict[str, list[tuple[int, str]]] = defaultdict(list)
        """By file: after which line, and what."""
        self.about: dict[str, tuple[int, str]] = {}
        """By name: number of the expectation, and how it was made."""

    def add(self, spot: Spot, function: ast.FunctionDef, number: int, how: str) -> None:
        """Another test."""
        file, line, indent = spot
        name = function.name = f"{PREFIX}{len(self.about)}"
        text = ast.unparse(ast.fix_missing_locations(function))
        self.texts[file].append((line, "\n" + "".join(f"{' ' * indent}{row}\n" for row in text.splitlines())))
        self.about[name] = (number, how)

    def files(self, names: set[str] | None = None) -> dict[str, str]:
        """The test files with these tests of ours in them."""
        texts = {}
        for file, parts in self.texts.items():
            lines = (TREE / file).read_text(encoding="utf-8").splitlines(keepends=True)
            if lines and not lines[-1].endswith("\n"):
                lines[-1] += "\n"
            kept = [(line, text) for line, text in parts if names is None or _name(text) in names]
            for line, text in sorted(kept, key=lambda part: -part[0]):
                lines.insert(line, text)
            if kept:
                texts[file] = "".join(lines)
        return texts


def _name(text: str) -> str:
    match = re.search(rf"def ({PREFIX}\d+)", text)
    return match[1] if match else ""


def _function(arguments: list[str], body: list[ast.stmt]) -> ast.FunctionDef:
    names = ast.arguments([], [ast.arg(name) for name in arguments], None, [], [], None, [])
    return ast.FunctionDef("", names, body, [])


def make_tests(expected: list[tuple[str, list[str]]], *, values: bool) -> PlantedTests:
    """Put the expectations of a statement wherever their names mean something; with `values`, give them a meaning."""
    planted = PlantedTests()
    trees = {}
    for path in sorted(TREE.rglob("*.py")):
        text = path.read_text(encoding="utf-8", errors="replace")
        if "def test" in text and ".git" not in path.parts:
            with contextlib.suppress(SyntaxError, ValueError):
                trees[below(str(path))] = (text, ast.parse(text))
    fixtures = set(_FIXTURES)
    for text in [text for text, _ in trees.values()] + [path.read_text() for path in TREE.rglob("conftest.py")]:
        fixtures |= set(_FIXTURE.findall(text))
    for number, (line, outcome) in enumerate(expected):
        statement = understood(line, outcome)
        if statement is None or isinstance(statement, ast.With):
            continue
        names = free_names(statement)
        words = {node.attr for node in ast.walk(statement) if isinstance(node, ast.Attribute)} | names
        relevant = [(len(words & set(re.findall(r"\w+", text))), file) for file, (text, _) in trees.items()]
        for _, file in sorted(relevant, key=lambda item: (-item[0], item[1]))[:6]:
            text, tree = trees[file]
            rest = names - bound_names(tree.body)
            if values and TEST_FILE.fullmatch(Path(file).name):
                _with_values(
                    planted, file, tree, statement, rest=rest, fixtures=fixtures, outcome=outcome, number=number
                )
            elif not values and (TEST_FILE.fullmatch(Path(file).name) or "self" in rest):
                _in_place(planted, file, tree, statement, rest=rest, fixtures=fixtures, number=number)
    return planted


def _in_place(
    planted: PlantedTests,
    file: str,
    tree: ast.Module,
    statement: ast.stmt,
    *,
    rest: set[str],
    fixtures: set[str],
    number: int,
) -> None:
    """Beside fixtures, and after the statements of tests."""
    end = len((TREE / file).read_text(encoding="utf-8").splitlines())
    if rest <= fixtures:
        planted.add((file, end, 0), _function(sorted(rest), [statement]), number, "alone")
    owners: list[ast.Module | ast.ClassDef] = [tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))]
    for owner in owners:
        tests = [node for node in owner.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test")]
        spot = (file, end, 0)
        if isinstance(owner, ast.ClassDef):
            spot = (file, owner.end_lineno or end, owner.body[0].col_offset)
        if tests and isinstance(owner, ast.ClassDef) and rest - {"self"} <= fixtures and "self" in rest:
            planted.add(spot, _function(["self", *sorted(rest - {"self"})], [statement]), number, "alone")
        for test in tests:
            arguments = {argument.arg for argument in test.args.args}
            if not rest - fixtures - {"self"} or len(planted.about) >= _MOST_PLANTED:
                continue
            places = [
                place
                for place in range(len(test.body) + 1)
                if rest <= arguments | bound_names(test.body[:place]) | bound_names(tree.body)
            ]
            for place in places[:_MOST_PLACES]:
                copy = ast.FunctionDef("", test.args, [*test.body[:place], statement], test.decorator_list)
                planted.add(spot, copy, number, f"after {test.name}")


def _with_values(
    planted: PlantedTests,
    file: str,
    tree: ast.Module,
    statement: ast.stmt,
    *,
    rest: set[str],
    fixtures: set[str],
    outcome: list[str],
    number: int,
) -> None:
    """With the values that the statement shows, and where one is missing, with those of the file."""
    given = sorted(rest & fixtures)
    rest = rest - fixtures - {"self"}
    known: dict[str, ast.expr] = {}
    is_whole = isinstance(statement, ast.Assert)
    if isinstance(statement, ast.Assert) and isinstance(statement.test, ast.Compare):
        shown = _sides(outcome)
        sides = (statement.test.left, statement.test.comparators[-1])
        for side, other, value in zip(sides, sides[::-1], shown, strict=True):
            if isinstance(side, ast.Name) and side.id in rest:
                if value is not None:
                    known[side.id] = value
                elif "assert" not in " ".join(outcome[:1]).lower() and not isinstance(other, ast.Name):
                    statement = ast.Expr(other)  # It was never compared.
                    is_whole = False
                    rest = rest & free_names(other)
    known |= _passed(statement, rest, outcome)
    unknown = sorted(rest - set(known))
    if not rest or len(unknown) > 1:
        return
    body: list[ast.stmt] = [ast.Assign([ast.Name(name)], value) for name, value in known.items()]
    test = _function([*given, *unknown], [*body, statement])
    if unknown:
        pool = _values(*(_literal(text) for line in outcome for text in _BRACKETS.findall(line)))
        pool |= _values(tree)
        pool |= {str(value): ast.Constant(value) for value in range(30)}
        values = ast.List(list(pool.values())[:_MOST_PLANTED])
        mark = ast.parse("__import__('pytest').mark.parametrize", mode="eval").body
        test.decorator_list = [ast.Call(mark, [ast.Constant(unknown[0]), values], [])]
    end = len((TREE / file).read_text(encoding="utf-8").splitlines())
    planted.add((file, end, 0), test, number, "any value" if unknown and not known and is_whole else "these values")


def _passed(statement: ast.stmt, rest: set[str], outcome: list[str]) -> dict[str, ast.expr]:
    """What names stand for that are passed to functions, where the outcome shows the calls."""
    known: dict[str, ast.expr] = {}
    for call in [node for node in ast.walk(statement) if isinstance(node, ast.Call)]:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        for text in outcome:
            match = re.search(rf"(?:function {name} at 0x\.\.\.>|= {name})(\(.*\))$", text)
            shown = _literal(f"f{match[1]}") if match else None
            if isinstance(shown, ast.Expression) and isinstance(shown.body, ast.Call):
                for argument, value in zip(call.args, shown.body.args, strict=False):
                    if isinstance(argument, ast.Name) and argument.id in rest and _shown(value):
                        known[argument.id] = value
    return known


_BRACKETS = re.compile(r"\{.*\}|\[.*\]|\(.*\)|'[^']*'")


def _literal(text: str) -> ast.AST:
    try:
        return ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return ast.Module([], [])


def _values(*trees: ast.AST) -> dict[str, ast.expr]:
    """Short values that are written in some code."""
    values: dict[str, ast.expr] = {}
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant | ast.Tuple | ast.List | ast.Dict) and len(ast.dump(node)) < 400:
                with contextlib.suppress(ValueError, TypeError):
                    values.setdefault(repr(ast.literal_eval(node)), node)
    return values


def _fit(messages: list[str], outcome: list[str]) -> int:
    """How well a failure fits the statement: 3 in all words, 2 in the first line, 1 in the kind of error, 0 not."""
    ours = [re.sub(r"0x[0-9a-f]{6,}", "0x...", line) for line in messages]
    if not ours or not outcome:
        return 0
    if ours == outcome:
        return 3
    if ours[0] == outcome[0]:
        return 2
    kinds = [re.match(r"(?:assert\b|[\w.]+)", line) for line in (ours[0], outcome[0])]
    return int(bool(kinds[0] and kinds[1] and kinds[0][0] == kinds[1][0]))


def reproduce(request: dict[str, Any]) -> dict[str, Any]:
    """Make the problem happen, if that is possible, and remember how."""
    copy_tree()
    expected = [(str(line), [str(text) for text in outcome]) for line, outcome in request["expected"]]
    chosen: list[Failure] = []
    best = 0
    for values in (False, True):
        failures = _failures(make_tests(expected, values=values), expected, request["seconds"] / 2)
        fit = max((failure.fit for failure in failures), default=0)
        if fit > best:
            best, chosen = fit, failures
        if best >= _FITS:
            break
    kept: list[Failure] = []
    for failure in chosen:  # As many expectations as there are, each in several places.
        same = sum(failure.number == other.number for other in kept)
        if failure.fit == best and same < _MOST_ALIKE and len(kept) < _MOST_CHOSEN:
            kept.append(failure)
    texts = kept[0].planted.files({_function_name(failure.test) for failure in kept}) if kept else {}
    tests = {failure.test: failure.number for failure in kept}
    for failure in kept:  # What should hold for one value should hold for the others.
        tests |= {test: -1 - failure.number for test in failure.others if test not in tests}
    collected = [file for file in texts if TEST_FILE.fullmatch(Path(file).name)]
    if len(collected) < len(texts):
        collected = sorted({test.partition("::")[0] for test in tests} | set(collected))
    remember({"texts": texts, "tests": tests, "files": collected})
    return {"fit": best, "tests": len(tests), "expectations": len({failure.number for failure in kept})}


def _function_name(test: str) -> str:
    return test.rpartition("::")[2].partition("[")[0]


@dataclass(frozen=True, slots=True)
class Failure:
    """A test of ours that fails as a statement says.

    Attributes:
        fit: rank of how well it fits the statement; see `_fit`.
        test: id of the test.
        number: number of the expectation.
        planted: tests among which it is.
        others: tests of the same expectation with other values, which should hold too.
    """

    fit: int
    test: str
    number: int
    planted: PlantedTests
    others: tuple[str, ...] = ()


def _failures(planted: PlantedTests, expected: list[tuple[str, list[str]]], seconds: float) -> list[Failure]:
    """Tests of ours that fail as the statement says."""
    texts = planted.files()
    if not texts:
        return []
    files = sorted(file for file in texts if TEST_FILE.fullmatch(Path(file).name))
    if len(files) < len(texts):
        files = seen_tests()  # What is inherited shows in other files.
    with written(texts):
        report = run(files, seconds, PREFIX, trace="calls", explain=True)
    if report is None:
        return []
    failures = []
    for test, messages in report["messages"].items():
        name = _function_name(test)
        if name not in planted.about or test not in report["entered"]:
            continue  # It says nothing of the code.
        number, how = planted.about[name]
        fit = _fit(messages, expected[number][1])
        is_vague = how != "alone" and (fit < _FITS or (fit == _FITS and len(messages[0]) < 25))
        others: tuple[str, ...] = ()
        if how != "these values":
            outcomes = {other: ok for other, ok in report["outcomes"].items() if _function_name(other) == name}
            holds = [other for other, ok in outcomes.items() if ok]
            fails = [
                other
                for other, ok in outcomes.items()
                if not ok and other in report["entered"] and _fit(report["messages"][other], messages) == 1
            ]
            others = (*holds[:_MOST_OTHERS], *fails[:_MOST_OTHERS])
        if fit and not is_vague:
            failures.append(Failure(fit, test, number, planted, others))
    return failures
