"""Repairs that are worth trying on code with a mistake of one token in it: what would undo such a mistake.

Most mistakes are undone by another mistake of the same kind (see `mutations`); for the others there is a rule here.
What a mistake has deleted (a statement, a branch, a function) cannot be guessed and is left alone.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from textagent_gym.domains.swe.mutants.mutations import mutations

_WRAPPER = "if True:\n"  # Methods are indented; in a block of their own they can be read as they stand.
_UNDONE_BY_ITSELF = {
    "comparison": 1.0,
    "arithmetic": 1.0,
    "assignment operator": 1.0,
    "boolean": 1.0,
    "negation": 1.0,
    "number": 0.7,
    "truth": 1.0,
    "loop": 1.2,
    "arguments": 0.8,
    "method": 1.2,
    "slice": 0.7,
    "default": 0.5,
}
_OPERATORS: dict[type[ast.operator], tuple[str, ...]] = {
    ast.FloorDiv: ("*", "%"),
    ast.Mult: ("/", "**"),
    ast.BitAnd: ("^",),
}
_ASSIGNMENTS = {"+=": 0.9, "-=": 0.5, "|=": 0.3, "*=": 0.3, "//=": 0.2, "/=": 0.2, "%=": 0.1, "&=": 0.1}
_EXCEPTIONS = (
    "ValueError", "KeyError", "TypeError", "AttributeError", "IndexError", "StopIteration", "ImportError",
    "NotImplementedError", "OSError", "Exception", "RecursionError", "UnicodeDecodeError", "OverflowError",
    "FileNotFoundError", "RuntimeError", "LookupError",
)  # fmt: skip
_SEPARATORS = ("_", "-", " ", ",", ".", ":", "\n")
_LIKELY = 3.0  # Code that nobody writes: it looks like a mistake where it stands.


@dataclass(frozen=True, slots=True)
class Repair:
    """A change of one place in a piece of code.

    Attributes:
        start, end: range of the characters that are replaced.
        text: text that is put in.
        weight: likelihood that it undoes a mistake, beside other repairs of the same function.
    """

    start: int
    end: int
    text: str
    weight: float


def repairs(code: str) -> list[Repair]:
    """Repairs of a function, or of other whole lines, most likely first; none where the code cannot be read.

    >>> code = "def double(n):\\n    return n - n\\n"
    >>> best = repairs(code)[0]
    >>> print(code[: best.start] + best.text + code[best.end :])
    def double(n):
        return n + n
    <BLANKLINE>
    """
    shift = len(_WRAPPER) if code[:1].isspace() else 0
    source = _WRAPPER + code if shift else code
    try:
        tree = ast.parse(source)
        undone = mutations(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    by_change: dict[tuple[int, int, str], Repair] = {}

    def add(start: int, end: int, text: str, weight: float) -> None:
        key = (start - shift, end - shift, text)
        if start >= shift and source[start:end] != text and (key not in by_change or by_change[key].weight < weight):
            by_change[key] = Repair(*key, weight)

    for mutation in undone:
        is_deletion = (
            mutation.kind in ("arguments", "boolean") and len(mutation.text) < mutation.end - mutation.start - 3
        )
        is_plain = mutation.kind == "assignment operator" and mutation.text == "="
        if mutation.kind in _UNDONE_BY_ITSELF and not is_deletion and not is_plain:
            is_odd = mutation.kind == "negation" and source[mutation.start : mutation.end].startswith("not (")
            weight = _LIKELY if is_odd else _UNDONE_BY_ITSELF[mutation.kind]
            add(mutation.start, mutation.end, mutation.text, weight)
    place = _places(source)
    for node in ast.walk(tree):
        for rule in _RULES:
            for changed, text, weight in rule(node, source, place):
                add(*changed, text, weight)
    return sorted(by_change.values(), key=lambda repair: (-repair.weight, repair.start, repair.text))


_Span = tuple[int, int]
_Place = Callable[[ast.AST], _Span]
_Found = Iterator[tuple[_Span, str, float]]


def _places(source: str) -> _Place:
    """Finds the characters of a node."""
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def offset(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode(errors="ignore"))

    def place(node: ast.AST) -> _Span:
        start = offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]
        return start, offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    return place


def _arithmetic(node: ast.AST, source: str, place: _Place) -> _Found:
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        start, end = place(node.left)[1], place(node.right)[0]
        token = {ast.FloorDiv: "//", ast.Mult: "*", ast.BitAnd: "&"}[type(node.op)]
        spot = source.find(token, start, end)
        for text in _OPERATORS[type(node.op)]:
            if spot >= 0:
                yield (spot, spot + len(token)), text, 1.0


def _assignment(node: ast.AST, source: str, place: _Place) -> _Found:
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and not isinstance(node.targets[0], ast.Tuple):
        start, end = place(node.targets[0])[1], place(node.value)[0]
        spot = source.find("=", start, end)
        for text, weight in _ASSIGNMENTS.items():
            if spot >= 0:
                yield (spot, spot + 1), text, weight


def _sign(node: ast.AST, source: str, place: _Place) -> _Found:
    """A sign or a negation that has been lost."""
    if isinstance(node, ast.Constant) and type(node.value) is int and node.value > 0:
        yield place(node), f"-{node.value}", 0.3
    elif isinstance(node, ast.Return) and isinstance(node.value, ast.Call | ast.Name | ast.Compare | ast.Attribute):
        start, end = place(node.value)
        yield (start, end), f"not ({source[start:end]})", 0.3
        yield (start, end), f"-({source[start:end]})", 0.1
    elif isinstance(node, ast.BoolOp):
        for value in node.values:
            start, end = place(value)
            yield (start, end), f"not ({source[start:end]})", 0.7


def _bound(node: ast.AST, source: str, place: _Place) -> _Found:
    if isinstance(node, ast.Slice):
        for bound in (node.lower, node.upper):
            if isinstance(bound, ast.BinOp) and isinstance(bound.op, ast.Add) and _is_one(bound.right):
                start, end = place(bound.left)
                yield place(bound), source[start:end], _LIKELY if isinstance(bound.left, ast.Constant) else 1.5


def _is_one(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1


def _default(node: ast.AST, source: str, place: _Place) -> _Found:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        compared = {
            inner.left.id
            for inner in ast.walk(node)
            if isinstance(inner, ast.Compare)
            and isinstance(inner.left, ast.Name)
            and isinstance(inner.ops[0], ast.Is | ast.IsNot)
        }
        arguments = node.args.args[len(node.args.args) - len(node.args.defaults) :]
        pairs = [
            *zip(arguments, node.args.defaults, strict=False),
            *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True),
        ]
        for argument, value in pairs:
            if isinstance(value, ast.Constant) and value.value is None:
                for text in ("True", "False", "0", "1", '""', "-1"):
                    yield place(value), text, 0.4
            elif isinstance(value, ast.Constant) and argument.arg in compared:
                yield place(value), "None", _LIKELY


def _handler(node: ast.AST, source: str, place: _Place) -> _Found:
    if isinstance(node, ast.ExceptHandler) and isinstance(node.type, ast.Name):
        is_odd = node.type.id == "ZeroDivisionError"
        for rank, name in enumerate(_EXCEPTIONS):
            if is_odd:
                yield place(node.type), name, _LIKELY - rank / 100
            elif rank < 6:
                yield place(node.type), f"({node.type.id}, {name})", 0.5
        if node.type.id == "ValueError":
            yield place(node.type), "ZeroDivisionError", 0.3


def _returned(node: ast.AST, source: str, place: _Place) -> _Found:
    """`return None` is rarely written; it may have been a name of the function."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        names = [argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)]
        names += [name.id for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)]
        for inner in ast.walk(node):
            if isinstance(inner, ast.Return) and isinstance(inner.value, ast.Constant) and inner.value.value is None:
                for rank, name in enumerate(dict.fromkeys(reversed(names))):
                    yield place(inner.value), name, 2.0 - rank / 100


def _string(node: ast.AST, source: str, place: _Place) -> _Found:
    """An empty string may have been one that occurs elsewhere, the name of a parameter, or a separator."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        inner = [constant for constant in ast.walk(node) if isinstance(constant, ast.Constant)]
        empty = [place(constant) for constant in inner if constant.value == ""]
        texts = [constant.value for constant in inner if isinstance(constant.value, str) and len(constant.value) < 20]
        texts += [argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)]
        for start, end in empty:
            if source[start:end] in ('""', "''"):
                for text in dict.fromkeys((*_SEPARATORS, *texts)):
                    yield (start, end), repr(text), 0.5


def _method(node: ast.AST, source: str, place: _Place) -> _Found:
    if isinstance(node, ast.Attribute) and node.attr == "setdefault":
        end = place(node)[1]
        yield (end - len(node.attr), end), "update", 1.2


def _keyword(node: ast.AST, source: str, place: _Place) -> _Found:
    """A parameter that is not used may have been passed on."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        used = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
        parameters = [
            argument.arg for argument in (*node.args.args[-len(node.args.defaults) or 99 :], *node.args.kwonlyargs)
        ]
        unused = [name for name in parameters if name not in used]
        calls = [call for call in ast.walk(node) if isinstance(call, ast.Call)] if unused else []
        for call in calls:
            end = place(call)[1] - 1
            start = max([place(call.func)[1] + 1, *(place(value)[1] for value in call.args)])
            start = max([start, *(place(keyword.value)[1] for keyword in call.keywords)])
            comma = ", " if call.args or call.keywords else ""
            for name in unused:
                yield (start, end), f"{comma}{name}={name}", 2.0


_RULES = (_arithmetic, _assignment, _sign, _bound, _default, _handler, _returned, _string, _method, _keyword)
