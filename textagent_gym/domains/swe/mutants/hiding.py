"""Cuts hidden tests out of a test file, and what it holds for them alone: expected results stand in tables, too."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

Lines = tuple[int, int]
"""First and last of some lines, from 1."""


def hide(source: str, functions: Collection[str]) -> str:
    """A test file without some of its tests.

    Args:
        source: source of the file.
        functions: names of the tests that are cut out: "test_a", or "TestB::test_c" for a method; where it is
            inherited, by its name.
    """
    lines = source.splitlines(keepends=True)
    for node, is_last in sorted(_cut(source, functions), key=lambda item: -item[0].lineno):
        first, last = _lines(node)
        lines[first - 1 : last] = [" " * node.col_offset + "pass\n"] if is_last else []
    return "".join(lines)


def hide_with_tables(source: str, functions: Collection[str], rows: Sequence[Mapping[str, str]]) -> str:
    """The same, without what only these tests read, and without some rows of the tables that others read as well.

    Args:
        source: source of the file.
        functions: names of the tests that are cut out, as in `hide`.
        rows: parameters of tests that fail, as texts of literals.
    """
    read = {name for node, _ in _cut(source, functions) for name in _names(node)}
    text = _without_rows(source, read, rows)
    text = hide(text, functions)
    while True:
        unread = _unread(text, read)
        if not unread:
            return text
        lines = text.splitlines(keepends=True)
        for node in sorted(unread, key=lambda node: -node.lineno):
            read |= set(_names(node))
            first, last = _lines(node)
            lines[first - 1 : last] = []
        text = "".join(lines)


def _cut(source: str, functions: Collection[str]) -> Iterator[tuple[ast.FunctionDef, bool]]:
    """Functions that are cut out, and whether each is alone in a class."""
    tests = list(_tests(source))
    inherited = {name.rpartition("::")[2] for name in set(functions) - {name for _, name, _ in tests}}
    for node, name, is_last in tests:
        if name in functions or (is_last and name.rpartition("::")[2] in inherited):
            yield node, is_last


def _tests(source: str) -> Iterator[tuple[ast.FunctionDef, str, bool]]:
    """Test functions with their names, and whether one is in a class."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            yield node, node.name, False
        elif isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, ast.FunctionDef):
                    yield member, f"{node.name}::{member.name}", True


def _lines(node: ast.stmt) -> Lines:
    """The lines of a statement, decorators included."""
    assert node.end_lineno is not None
    return min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))]), node.end_lineno


def _names(node: ast.AST) -> Iterator[str]:
    """Names that are read somewhere in a node: also those of fixtures, which are arguments or stand in strings."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Store):
            yield each.id
        elif isinstance(each, ast.arg):
            yield each.arg
        elif isinstance(each, ast.Global | ast.Nonlocal):
            yield from each.names
        elif isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield from each.value.replace(",", " ").split()[:20]


def _unread(source: str, names: Collection[str]) -> list[ast.stmt]:
    """Statements at the top of a file that bind some of these names, and nothing else that anybody reads."""
    module = ast.parse(source)
    bound = {node: targets for node in module.body if (targets := _bound(node))}
    read = Counter(name for node in module.body for name in set(_names(node)))
    reads = {node: set(_names(node)) for node in bound}
    taken = Counter(line for node in module.body for line in set(_lines(node)))
    return [
        node
        for node, targets in bound.items()
        if targets & set(names)
        and all(read[name] == (name in reads[node]) for name in targets)
        and all(taken[line] == 1 for line in set(_lines(node)))
    ]


def _bound(node: ast.stmt) -> set[str]:
    """Names that a statement binds, if that is all that it does, as far as can be seen."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return set() if node.name.lower().startswith("test") else {node.name}
    if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return set()
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    elements = [name for target in targets for name in (target.elts if isinstance(target, ast.Tuple) else [target])]
    names = {name.id for name in elements if isinstance(name, ast.Name)}
    return names if len(names) == len(elements) else set()


_EMPTY: dict[type[ast.expr], bytes] = {ast.Dict: b"{}", ast.List: b"[]", ast.Tuple: b"()", ast.Set: b"set()"}


def _without_rows(source: str, tables: Collection[str], rows: Sequence[Mapping[str, str]]) -> str:
    """A file whose tables of these names lack some rows."""
    data = source.encode()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))

    def place(line: int | None, column: int | None) -> int:
        return starts[(line or 1) - 1] + (column or 0)

    for node in reversed(ast.parse(source).body):
        if not (isinstance(node, ast.Assign | ast.AnnAssign) and _bound(node) & set(tables) and node.value is not None):
            continue
        cuts: list[tuple[int, int, bytes]] = []
        for display in ast.walk(node.value):
            entries = _entries(display)
            gone = {number for number, entry in enumerate(entries) if any(_is_row(entry, row) for row in rows)}
            if not gone or not isinstance(display, ast.expr):
                continue
            spans = [
                (place(e[0].lineno, e[0].col_offset), place(e[-1].end_lineno, e[-1].end_col_offset)) for e in entries
            ]
            end = place(display.end_lineno, display.end_col_offset)
            if len(gone) == len(entries):
                cuts.append((place(display.lineno, display.col_offset), end, _EMPTY[type(display)]))
                continue
            last = max(set(range(len(entries))) - gone)
            cuts += [(spans[number][0], spans[number + 1][0], b"") for number in gone if number < last]
            if last + 1 < len(entries):
                needs_comma = isinstance(display, ast.Tuple) and b"," not in data[spans[-1][1] : end]
                cuts.append((spans[last][1], spans[-1][1], b"," * needs_comma))
        for first, after, filling in sorted(cuts, reverse=True):
            data = data[:first] + filling + data[after:]
    text = data.decode()
    try:
        ast.parse(text)
    except SyntaxError:  # Parentheses around a row do not belong to the row.
        return source
    return text


def _entries(display: ast.AST) -> list[tuple[ast.expr, ...]]:
    """What is listed in a display: elements, or keys with their values."""
    if isinstance(display, ast.List | ast.Tuple | ast.Set):
        return [(element,) for element in display.elts]
    if isinstance(display, ast.Dict) and all(key is not None for key in display.keys):
        return [(key, value) for key, value in zip(display.keys, display.values, strict=True) if key is not None]
    return []


def _is_row(entry: tuple[ast.expr, ...], row: Mapping[str, str]) -> bool:
    """An entry of a table holds parameters of a test: two at least, or the only one as a key."""
    if len(entry) == 1:
        (element,) = entry
        if isinstance(element, ast.Call) and ast.unparse(element.func).endswith("param"):
            entry = tuple(element.args)
        elif isinstance(element, ast.Tuple | ast.List):
            entry = tuple(element.elts)
        if len(entry) < 2:
            return False
    try:
        values = [repr(ast.literal_eval(part)) for part in entry]
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    given = Counter(row.values())
    return not Counter(values) - given or (len(row) == 1 and values[0] in given)
