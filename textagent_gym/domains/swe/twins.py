"""Tests that must fail: copies of hidden tests with another expected result, among which the real ones are hidden.

Code that is tested runs in the process that tests it, and could forge its report. A forger has to say which tests
passed and which failed, and be right about tests that fail on working code. So a hidden test stands among its *twins*,
copies in each of which something else is expected; all get new names and stand in a new order every time. Whoever can
tell a hidden test from its twins knows the right result, and needs no forgery.
"""

from __future__ import annotations

import ast
import copy
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

_EXCEPTIONS = ("ValueError", "TypeError", "KeyError", "IndexError", "AttributeError", "RuntimeError", "OSError")
_OPPOSITES = {
    "assertTrue": "assertFalse", "assertFalse": "assertTrue", "assertIn": "assertNotIn", "assertNotIn": "assertIn",
    "assertIs": "assertIsNot", "assertIsNot": "assertIs", "assertIsNone": "assertIsNotNone",
    "assertIsNotNone": "assertIsNone",
}  # fmt: skip
_WORDS = (
    "again", "as_well", "before", "both", "by_default", "empty", "first", "in_order", "last", "later", "longer", "many",
    "mixed", "more", "nested", "none", "once", "one", "only", "other", "shorter", "simple", "single", "twice", "two",
)  # fmt: skip
_MOST_TWINS = 40  # Of a function, that are tried.
_MOST_TESTS = 100  # Of the twins of a function, in one run.
_FEW_PLACES = 4
_VARIANTS = 8  # Other results that are tried for each value.

_ORIGINAL = -1
_NAMELESS = "def test_without_a_name("

Twins = Mapping[str, Mapping[int, Sequence[str]]]
"""By test function (`file::name` or `file::class::name`), the numbers of twins that are known to fail; for each, which
of its tests do: "" for a plain one, "[...]" for one with parameters."""

_Change = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Rewritten:
    """Test files with twins in them.

    Attributes:
        files: texts by path.
        names: by id of each test that is run, its id now.
        twins: ids of the twins' tests, which are run too.
        must_fail: those of them that fail on working code.
        chance: of whoever guesses which tests are hidden, knowing of each group of twins that it is one.
    """

    files: Mapping[str, str]
    names: Mapping[str, str]
    twins: tuple[str, ...]
    must_fail: tuple[str, ...]
    chance: float


def rewrite(
    tests: Mapping[str, str],
    run: Iterable[str],
    hidden: Iterable[str],
    *,
    twins: Twins,
    count: int,
    draw: random.Random,
) -> Rewritten:
    """Put hidden tests among their twins, each with as many tests as the hidden one.

    Args:
        tests: texts of the test files by path.
        run: ids of the tests that are to run.
        hidden: test functions that are hidden.
        twins: which twins there are.
        count: twins in all, shared out among the functions; fewer where each has many tests.
        draw: decides on names, order, and which twins are taken.
    """
    suffixes: dict[str, list[str]] = {function: [] for function in hidden}
    names: dict[str, str] = {}
    for test in run:
        function = test.partition("[")[0]
        names[test] = test
        if function in suffixes:
            suffixes[function].append(test[len(function) :])
    share = -(-count // max(1, len(suffixes)))
    also: list[str] = []
    must_fail: list[str] = []
    chance = 1.0
    fresh = {file: _fresh_names(tests[file], draw) for file in {function.partition("::")[0] for function in suffixes}}
    spans: dict[str, list[tuple[int, int, str]]] = {}
    for function, own in suffixes.items():
        file, *path = function.split("::")
        known = {number: failing for number, failing in twins.get(function, {}).items() if set(failing) & set(own)}
        place = _place(tests[file], tuple(path))
        if not known or place is None:
            continue
        chosen = draw.sample(sorted(known), min(share, max(1, _MOST_TESTS // len(own)), len(known)))
        versions = []
        for number in (_ORIGINAL, *chosen):
            name = next(fresh[file])
            versions.append(_version(tests[file], tuple(path), number).replace(_NAMELESS, f"def {name}(", 1))
            ids = [(suffix, "::".join([file, *path[:-1], f"{name}{suffix}"])) for suffix in own]
            if number == _ORIGINAL:
                names.update((function + suffix, test) for suffix, test in ids)
            else:
                also += [test for _, test in ids]
                must_fail += [test for suffix, test in ids if suffix in known[number]]
        chance /= len(versions)
        draw.shuffle(versions)
        spans.setdefault(file, []).append((*_span(place), "\n\n".join(versions) + "\n"))
    files = {**tests, **{file: _replace(tests[file], found) for file, found in spans.items()}}
    if not must_fail:  # No test can be copied: one that fails by its own words has to do.
        file = next(iter(suffixes)).partition("::")[0]
        name = next(fresh[file])
        number = draw.randrange(10**6)
        files[file] += (
            f"\n\ndef {name}():\n    value = {number}\n    assert value == {number + draw.randrange(1, 99)}\n"
        )
        also.append(f"{file}::{name}")
        must_fail.append(f"{file}::{name}")
        chance = 0.0  # It can be told by its looks, however often it runs.
    return Rewritten(files, names, tuple(also), tuple(must_fail), chance)


def all_twins(tests: Mapping[str, str], functions: Iterable[str]) -> tuple[dict[str, str], dict[str, tuple[str, int]]]:
    """Every twin of some test functions, to find out which of them fail.

    Returns:
        the test files with the twins, and for the id of each twin's function, whose twin it is and its number.
    """
    spans: dict[str, list[tuple[int, int, str]]] = {}
    found: dict[str, tuple[str, int]] = {}
    for function in functions:
        file, *names = function.split("::")
        path = tuple(names)
        place = _place(tests[file], path)
        if place is None:
            continue
        original = _version(tests[file], path, _ORIGINAL)
        versions = {original: original.replace(_NAMELESS, f"def {path[-1]}(", 1)}
        for number in range(min(_MOST_TWINS, len(_places(copy.deepcopy(place), random.Random(0))) * _VARIANTS)):
            text = _version(tests[file], path, number)
            if text not in versions:  # Two of a kind would be known for twins.
                name = f"{path[-1]}_twin_{number}"
                versions[text] = text.replace(_NAMELESS, f"def {name}(", 1)
                found["::".join([file, *path[:-1], name])] = (function, number)
        spans.setdefault(file, []).append((*_span(place), "\n\n".join(versions.values()) + "\n"))
    return {**tests, **{file: _replace(tests[file], these) for file, these in spans.items()}}, found


def twin(function: ast.FunctionDef, number: int) -> ast.FunctionDef:
    """The `number`-th twin of a test function; the same number gives the same twin."""
    other = copy.deepcopy(function)
    places = _places(other, random.Random(f"{function.name}/{number}"))
    places[number % len(places)]()
    return ast.fix_missing_locations(other)


def _places(function: ast.FunctionDef, draw: random.Random) -> list[_Change]:
    """What can be changed in a test function so that it expects something else."""
    changes: list[_Change] = []

    def constants(node: ast.expr) -> None:
        for constant in _constants(node):
            changes.append(lambda constant=constant: setattr(constant, "value", _other(constant.value, draw)))  # type: ignore[misc]

    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("parametrize"):
            rows = decorator.args[1] if len(decorator.args) > 1 else None
            for row in rows.elts if isinstance(rows, ast.List | ast.Tuple) else ():
                if isinstance(row, ast.Tuple | ast.List) and row.elts:
                    constants(row.elts[-1])
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            test = node.test
            before = len(changes)
            if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
                constants(test.comparators[0])
                constants(test.left)
            if len(changes) == before:
                changes.append(lambda node=node, test=test: setattr(node, "test", _negated(test)))  # type: ignore[misc]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name in _OPPOSITES:
                changes.append(lambda node=node, name=name: setattr(node.func, "attr", _OPPOSITES[name]))  # type: ignore[misc]
            elif name.startswith("assert") and len(node.args) > 1:
                constants(node.args[0])
                constants(node.args[1])
            elif name in ("raises", "assertRaises") and node.args and isinstance(node.args[0], ast.Name):
                raised = node.args[0]
                others = [other for other in _EXCEPTIONS if other != raised.id]
                changes.append(lambda raised=raised, others=others: setattr(raised, "id", draw.choice(others)))  # type: ignore[misc]
    if len(changes) < _FEW_PLACES:  # What is expected may stand anywhere, and another question has another answer.
        for statement in function.body:
            if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
                for node in ast.walk(statement):
                    if isinstance(node, ast.Constant):
                        constants(node)
    return changes


def _negated(test: ast.expr) -> ast.expr:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    opposite: dict[type[ast.cmpop], type[ast.cmpop]] = {
        ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot,
        ast.IsNot: ast.Is, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
    }  # fmt: skip
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return ast.Compare(test.left, [opposite[type(test.ops[0])]()], test.comparators)
    return ast.UnaryOp(ast.Not(), test)


def _constants(node: ast.expr) -> Iterator[ast.Constant]:
    """The values that a literal consists of."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float):
        yield node
    elif isinstance(node, ast.List | ast.Tuple | ast.Set):
        for element in node.elts:
            yield from _constants(element)
    elif isinstance(node, ast.Dict):
        for value in node.values:
            yield from _constants(value)


def _other(value: object, draw: random.Random) -> str | int | float | bool:
    """A value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + draw.choice((-2, -1, 1, 2))
    text = str(value)
    place = draw.randrange(len(text) + 1)
    letters = [letter for letter in "aeinrst" if letter != text[place : place + 1]]
    return text[:place] + draw.choice(letters) + text[place + draw.randrange(2) :]


@lru_cache(maxsize=1024)
def _place(source: str, path: tuple[str, ...]) -> ast.FunctionDef | None:
    """A test function by the names of its classes and its own; `None` for one that is inherited or called by others."""
    module = ast.parse(source)
    body: list[ast.stmt] = module.body
    bases = {ast.unparse(b) for node in ast.walk(module) if isinstance(node, ast.ClassDef) for b in node.bases}
    if bases & set(path[:-1]) or re.search(rf"(?<!def )\b{re.escape(path[-1])}\b", source):
        return None
    for name in path:
        matching = [node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name]
        if not matching:
            return None
        node = matching[-1]
        if isinstance(node, ast.FunctionDef):
            return node
        body = node.body
    return None


@lru_cache(maxsize=8192)
def _version(source: str, path: tuple[str, ...], number: int) -> str:
    """The text of a test function's twin, or of itself, indented as it is there, under a name that can be replaced."""
    place = _place(source, path)
    assert place is not None
    version = copy.copy(place) if number == _ORIGINAL else twin(place, number)
    version.name = _NAMELESS.removeprefix("def ").removesuffix("(")
    indent = " " * place.col_offset
    if not indent:
        return ast.unparse(version)
    # Lines within strings are not moved.
    text = ast.unparse(ast.Module([ast.If(ast.Constant(1), [version], [])], []))
    lines = text.splitlines()[1:]
    return "\n".join(lines if len(indent) == 4 else [f"{indent}{line[4:]}" for line in lines])


def _span(function: ast.FunctionDef) -> tuple[int, int]:
    """The lines of a function, decorators included, as they are counted in a list."""
    first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
    assert function.end_lineno is not None
    return first - 1, function.end_lineno


def _replace(source: str, spans: Iterable[tuple[int, int, str]]) -> str:
    """A source with other texts in the place of some of its lines."""
    lines = source.splitlines(keepends=True)
    for first, last, text in sorted(spans, reverse=True):
        lines[first:last] = [text]
    return "".join(lines)


def _fresh_names(source: str, draw: random.Random) -> Iterator[str]:
    """Names of tests that the file does not have, made of words that it has."""
    words = re.findall(r"def test_?([a-z0-9_]+)", source) or ["case"]
    used = set(words)
    while True:
        word = f"{draw.choice(words)}_{draw.choice(_WORDS)}"
        if word in used:
            word += f"_{draw.randrange(2, 100)}"
        if word not in used:
            used.add(word)
            yield f"test_{word}"
