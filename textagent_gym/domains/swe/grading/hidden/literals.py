"""The literals of texts: of statements, of test files, and of the functions of a probe."""

from __future__ import annotations

import ast
import contextlib
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from textagent_gym.domains.swe.grading.hidden.probes import NAME, is_witness

Row = tuple[Any, ...]
"""Literals that stand together."""
PREPARATIONS = ("setUp", "setUpClass", "setup_method", "setup_class")
"""Names of the functions that prepare a test; their literals are input, too."""
NO_LITERAL = object()
"""Stands for the value of what is not a literal."""
_LITERALS = (ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.UnaryOp)
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|-?\d+\.?\d*")
_LONGEST_ROW = 8
"""Elements of a row, and literals of a call, that are taken for a row of a table; longer ones are data."""


@dataclass(frozen=True)
class Inputs:
    """The literals of one probe function.

    Attributes:
        of_site: literals of the expression that each site sees, in the order in which they stand.
        of_function: literals of the whole function.
        of_preparation: literals of what is carried out before the function.
        tables: lists and tuples of the function, with the literals of each of their elements.
    """

    of_site: dict[int, Row]
    of_function: Row
    of_preparation: Row
    tables: tuple[tuple[Row, ...], ...]


@lru_cache(maxsize=512)
def inputs(text: str) -> Inputs:
    """The inputs of the test function in a probe's text; of all that stands there, if there is no such function."""
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError):
        return Inputs({}, (), (), ())
    functions = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef) and node.name.startswith(NAME)]
    body: list[ast.AST] = [statement for function in functions for statement in function.body] or [*module.body]
    of_site: dict[int, Row] = {}
    tables = []
    for node in (node for statement in body for node in ast.walk(statement)):
        if isinstance(node, ast.Call) and is_witness(node) and node.args and isinstance(node.args[0], ast.Constant):
            site = node.args[0].value
            of_site[site] = (*of_site.get(site, ()), *literals_below(*_seen(node)))  # type: ignore[index, arg-type]
        elif isinstance(node, ast.List | ast.Tuple) and len(node.elts) > 1:
            tables.append(tuple(literals_below(element) for element in node.elts))
    prepared = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef) and node.name in PREPARATIONS]
    return Inputs(of_site, literals_below(*body), literals_below(*prepared), tuple(tables))


def _seen(node: ast.Call) -> list[ast.AST]:
    """The expressions that a call of the witness sees."""
    assert isinstance(node.func, ast.Attribute)
    first = 2 if node.func.attr in ("compare", "call") else 1
    return [*node.args[first:], *(keyword.value for keyword in node.keywords)]


def literals_below(*nodes: ast.AST) -> Row:
    """Literals in the order in which they stand: first those that are part of no other, then the parts."""
    outer: list[Any] = []
    inner: list[Any] = []

    def collect(node: ast.AST, kept: list[Any]) -> None:
        if isinstance(node, ast.Call) and is_witness(node):
            for part in _seen(node):
                collect(part, kept)
            return
        value = literal(node) if isinstance(node, _LITERALS) else NO_LITERAL
        if value is not NO_LITERAL:
            kept.append(value)
            kept = inner
        if not (isinstance(node, ast.UnaryOp) and value is not NO_LITERAL):
            for child in ast.iter_child_nodes(node):
                collect(child, kept)

    for node in nodes:
        collect(node, outer)
    return (*outer, *inner)


@lru_cache(maxsize=256)
def literals(text: str) -> Row:
    """The different literals of a text: as code where it parses, and by their looks."""
    values = [literal(node) for piece in _pieces(text) for node in ast.walk(piece) if isinstance(node, _LITERALS)]
    for quoted in _QUOTED.findall(text):
        with contextlib.suppress(ValueError, SyntaxError):
            values.append(ast.literal_eval(quoted))
    return tuple({repr(each): each for each in values if each is not NO_LITERAL}.values())


def literal(node: ast.AST) -> Any:
    """The value of a node; `NO_LITERAL` for none."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError):
        return NO_LITERAL


@lru_cache(maxsize=256)
def rows(text: str) -> dict[str, tuple[Row, ...]]:
    """The rows of the tables of a text, by how each of their elements is written."""
    collected: list[list[Any]] = []
    for piece in _pieces(text):
        for node in ast.walk(piece):
            if isinstance(node, ast.Tuple | ast.List) and 1 < len(node.elts) < _LONGEST_ROW:
                collected.append([literal(element) for element in node.elts])
            elif isinstance(node, ast.Dict):
                pairs = zip(node.keys, node.values, strict=True)
                collected += [[literal(key), literal(item)] for key, item in pairs if key is not None]
            elif isinstance(node, ast.Compare | ast.Call):
                parts = [literal(part) for part in ast.walk(node) if isinstance(part, _LITERALS)]
                collected.append(parts[:_LONGEST_ROW])
    by_element: dict[str, list[Row]] = {}
    for row in collected:
        values = tuple(each for each in row if each is not NO_LITERAL)
        for element in dict.fromkeys(map(repr, values)) if len(values) > 1 else ():
            by_element.setdefault(element, []).append(values)
    return {element: tuple(those_with_it) for element, those_with_it in by_element.items()}


def _pieces(text: str) -> Iterator[ast.AST]:
    """A text, or those of its lines that are code."""
    try:
        yield ast.parse(text)
        return
    except (SyntaxError, ValueError):
        pass
    for line in text.splitlines():
        with contextlib.suppress(SyntaxError, ValueError), warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            yield ast.parse(line.strip().removeprefix("#").strip())
