"""Mistakes that programmers make, put into working code: one small change to a syntax tree, as text.

The source keeps its layout: only the characters of the changed node are replaced.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "//", ast.Div: "*", ast.FloorDiv: "/", ast.Mod: "//", ast.Pow: "*",
    ast.LShift: ">>", ast.RShift: "<<", ast.BitAnd: "|", ast.BitOr: "&", ast.BitXor: "&",
}  # fmt: skip
_SIBLINGS = {
    "append": "extend", "extend": "append", "startswith": "endswith", "endswith": "startswith", "lower": "upper",
    "upper": "lower", "lstrip": "rstrip", "rstrip": "lstrip", "find": "rfind", "rfind": "find", "split": "rsplit",
    "rsplit": "split", "keys": "values", "values": "keys", "min": "max", "max": "min", "any": "all", "all": "any",
    "partition": "rpartition", "rpartition": "partition", "update": "setdefault", "ljust": "rjust", "rjust": "ljust",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutation:
    """A change of one place in a file.

    Attributes:
        kind: kind of the change; a key of `KINDS`.
        start, end: range of the source's characters that are replaced.
        text: text that is put in.
    """

    kind: str
    start: int
    end: int
    text: str

    def apply(self, source: str) -> str:
        """The source with the mistake in it."""
        return source[: self.start] + self.text + source[self.end :]

    def parses(self, source: str) -> bool:
        """The changed source is still Python."""
        try:
            ast.parse(self.apply(source))
        except (SyntaxError, ValueError):
            return False
        return True


def mutations(source: str) -> list[Mutation]:
    """Every mutation of a source text, in the order of their places; see `Mutation.parses`.

    Raises:
        SyntaxError: the source is no Python.
    """
    tree = ast.parse(source)
    text = _Source(source)
    by_change = {}
    for node in _code(tree):
        for kind, mutate in KINDS.items():
            for changed, replacement in mutate(node, text):
                start, end = text.span(changed)
                mutation = Mutation(kind, start, end, replacement)
                if source[start:end] != replacement:
                    by_change[(start, end, replacement)] = mutation
    return sorted(by_change.values(), key=lambda m: (m.start, m.end, m.kind, m.text))


class _Source:
    """Positions of syntax trees in a text."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._lines = source.splitlines(keepends=True)

    def offset(self, line: int, column: int) -> int:
        """Character of a line and of a column in bytes, as `ast` counts."""
        text = self._lines[line - 1]
        return self._starts[line - 1] + (
            column if text.isascii() else len(text.encode()[:column].decode(errors="ignore"))
        )

    def span(self, node: ast.AST | tuple[int, int]) -> tuple[int, int]:
        """Characters of a node."""
        if isinstance(node, tuple):
            return node
        start = self.offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]
        return start, self.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def text(self, node: ast.AST) -> str:
        """What a node says."""
        start, end = self.span(node)
        return self.source[start:end]

    def between(self, left: ast.AST, right: ast.AST, token: str) -> tuple[int, int] | None:
        """Characters of an operator that stands between two nodes."""
        start, end = self.span(left)[1], self.span(right)[0]
        place = self.source[start:end].find(token)
        return None if place < 0 else (start + place, start + place + len(token))


_Changes = Iterator[tuple["ast.AST | tuple[int, int]", str]]


def _comparison(node: ast.AST, text: _Source) -> _Changes:
    if isinstance(node, ast.Compare):
        left: ast.expr = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            token = {ast.NotIn: "not in", ast.IsNot: "is not", ast.In: "in", ast.Is: "is"}.get(type(op)) or _token(op)
            if spot := text.between(left, right, token):
                yield spot, _COMPARISONS[type(op)]
            left = right


def _arithmetic(node: ast.AST, text: _Source) -> _Changes:
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        is_format = isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant | ast.JoinedStr)
        spot = text.between(node.left, node.right, _token(node.op))
        if spot and not is_format:
            yield spot, _OPERATORS[type(node.op)]


def _assignment_operator(node: ast.AST, text: _Source) -> _Changes:
    if isinstance(node, ast.AugAssign) and type(node.op) in _OPERATORS:
        spot = text.between(node.target, node.value, _token(node.op) + "=")
        if spot is not None:
            yield spot, "="
            yield spot, _OPERATORS[type(node.op)] + "="


def _boolean(node: ast.AST, text: _Source) -> _Changes:
    if isinstance(node, ast.BoolOp):
        token, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            if spot := text.between(left, right, token):
                yield spot, other
        for value in node.values:  # One condition is forgotten.
            rest = [text.text(v) for v in node.values if v is not value]
            yield node, f" {token} ".join(f"({part})" for part in rest) if len(rest) > 1 else rest[0]


def _negation(node: ast.AST, text: _Source) -> _Changes:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.Invert):
        yield node, text.text(node.operand)
    elif isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(node.test, ast.Constant):
        yield node.test, f"not ({text.text(node.test)})"


def _number(node: ast.AST, text: _Source) -> _Changes:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield node, str(node.value + 1)
        if node.value > 0:
            yield node, str(node.value - 1)


def _truth(node: ast.AST, text: _Source) -> _Changes:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield node, str(not node.value)


def _string(node: ast.AST, text: _Source) -> _Changes:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        is_plain = text.text(node)[:1] in ("'", '"') and "\n" not in node.value
        if is_plain and node.value:
            yield node, '""'


def _returned(node: ast.AST, text: _Source) -> _Changes:
    if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        yield node.value, "None"


def _statement(node: ast.AST, text: _Source) -> _Changes:
    if isinstance(node, ast.Assign | ast.AugAssign | ast.Raise | ast.Delete) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ):
        yield node, "pass"


def _branch(node: ast.AST, text: _Source) -> _Changes:
    if isinstance(node, ast.If):
        for body in (node.body, node.orelse):
            if body and not isinstance(body[0], ast.If):
                start, end = text.span(body[0])[0], text.span(body[-1])[1]
                if text.source[start:end] != "pass":
                    yield (start, end), "pass"


def _loop(node: ast.AST, text: _Source) -> _Changes:
    if isinstance(node, ast.Break):
        yield node, "continue"
    elif isinstance(node, ast.Continue):
        yield node, "break"


def _arguments(node: ast.AST, text: _Source) -> _Changes:
    if isinstance(node, ast.Call):
        for left, right in zip(node.args, node.args[1:], strict=False):
            if not isinstance(left, ast.Starred) and not isinstance(right, ast.Starred):
                start, end = text.span(left)[0], text.span(right)[1]
                middle = text.source[text.span(left)[1] : text.span(right)[0]]
                yield (start, end), text.text(right) + middle + text.text(left)
        if node.keywords and node.keywords[-1].arg:  # The last keyword is forgotten.
            last = node.keywords[-1]
            before = [*node.args, *(keyword.value for keyword in node.keywords[:-1])]
            start = text.span(before[-1])[1] if before else text.span(last)[0]
            yield (start, text.span(last)[1]), ""


def _method(node: ast.AST, text: _Source) -> _Changes:
    if isinstance(node, ast.Call):
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr in _SIBLINGS:
            end = text.span(function)[1]
            yield (end - len(function.attr), end), _SIBLINGS[function.attr]
        elif isinstance(function, ast.Name) and function.id in _SIBLINGS:
            yield function, _SIBLINGS[function.id]


def _slice(node: ast.AST, text: _Source) -> _Changes:
    if isinstance(node, ast.Slice):
        for bound in (node.lower, node.upper):
            if bound is not None:
                yield bound, f"{text.text(bound)} + 1"
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.UnaryOp | ast.Constant):
        index = text.text(node.slice)
        if index in ("0", "-1"):
            yield node.slice, "-1" if index == "0" else "0"


def _default(node: ast.AST, text: _Source) -> _Changes:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        for value in [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]:
            if isinstance(value, ast.Constant) and value.value is None:
                yield value, "True"
            elif isinstance(value, ast.Constant) and isinstance(value.value, str | bool | int):
                yield value, "None"


_HANDLED = re.compile(r"except (\w+)")
_WIDE = ("Exception", "BaseException")
_OTHERS = ("ValueError", "TypeError")
"""Exceptions that a handler is given where the module handles no other."""


def _handler(node: ast.AST, text: _Source) -> _Changes:
    if isinstance(node, ast.ExceptHandler) and isinstance(node.type, ast.Name):
        # One that stands elsewhere too: an exception that nobody else uses would tell the place.
        others = [name for name in _HANDLED.findall(text.source) if name not in (node.type.id, *_WIDE)]
        yield node.type, Counter(others).most_common(1)[0][0] if others else _OTHERS[node.type.id == _OTHERS[0]]
    elif isinstance(node, ast.ExceptHandler) and isinstance(node.type, ast.Tuple) and len(node.type.elts) > 1:
        yield node.type, text.text(node.type.elts[0])


def _conditional(node: ast.AST, text: _Source) -> _Changes:
    if isinstance(node, ast.IfExp):
        yield node, text.text(node.body)
        yield node, text.text(node.orelse)
    elif isinstance(node, ast.comprehension):
        for condition in node.ifs:
            start = text.source.rfind("if", 0, text.span(condition)[0])
            yield (start, text.span(condition)[1]), ""


def _function(node: ast.AST, text: _Source) -> _Changes:
    """A function that was never written: its signature and its docstring stand, its body is gone."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("__"):
        body = node.body
        if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body = body[1:]
        if body and body[0].lineno > node.lineno and not isinstance(body[0], ast.Pass | ast.Raise):
            yield (text.span(body[0])[0], text.span(body[-1])[1]), f'raise NotImplementedError("{node.name}")'


KINDS: dict[str, Callable[[ast.AST, _Source], _Changes]] = {
    "comparison": _comparison,
    "arithmetic": _arithmetic,
    "assignment operator": _assignment_operator,
    "boolean": _boolean,
    "negation": _negation,
    "number": _number,
    "truth": _truth,
    "string": _string,
    "return": _returned,
    "statement": _statement,
    "branch": _branch,
    "loop": _loop,
    "arguments": _arguments,
    "method": _method,
    "slice": _slice,
    "default": _default,
    "handler": _handler,
    "conditional": _conditional,
    "function": _function,
}
"""What can be done to a program, by name."""


def _token(op: ast.AST) -> str:
    """How an operator is written."""
    if isinstance(op, ast.cmpop):
        return ast.unparse(ast.Compare(ast.Name("a"), [op], [ast.Name("b")]))[1:-1].strip()
    assert isinstance(op, ast.operator)
    return ast.unparse(ast.BinOp(ast.Name("a"), op, ast.Name("b")))[1:-1].strip()


def _code(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a program, without docstrings, annotations and the text of f-strings."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.JoinedStr):  # Before Python 3.12 their parts have no place of their own.
            continue
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue
        if isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef) and child is tree.returns:
            continue
        if isinstance(tree, ast.AnnAssign | ast.arg) and child is tree.annotation:
            continue
        if isinstance(tree, ast.If) and "TYPE_CHECKING" in ast.dump(tree.test):
            continue
        yield child
        yield from _code(child)
