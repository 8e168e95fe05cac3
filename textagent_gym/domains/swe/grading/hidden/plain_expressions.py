"""Which expressions of a test say what is expected: those that the tested code has no part in.

A name is *plain* where everything that is ever assigned to it is, and where nobody can have changed it: it is
immutable, or it is used in plain expressions only.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator

_BUILTINS = frozenset({
    "abs", "bool", "bytes", "chr", "complex", "dict", "divmod", "enumerate", "float", "frozenset", "hex", "int", "len",
    "list", "max", "min", "oct", "ord", "range", "repr", "reversed", "round", "set", "sorted", "str", "sum", "tuple",
    "zip",
})  # fmt: skip
_METHODS = frozenset({
    "capitalize", "copy", "count", "decode", "encode", "endswith", "format", "get", "index", "items", "join", "keys",
    "lower", "lstrip", "replace", "rstrip", "split", "splitlines", "startswith", "strip", "title", "upper", "values",
    "zfill",
})  # fmt: skip
_MODULES = frozenset({"collections", "datetime", "decimal", "fractions", "math", "string", "textwrap", "uuid"})
_MUTABLE = frozenset({"dict", "list", "set", "sorted", "copy", "split", "splitlines", "reversed", "zip", "enumerate"})
PRINT = "print"


class _Imported(ast.Name):
    """What an import binds; `id` is the module at the top."""


class Plain:
    """Tells plain expressions of a function from others.

    Args:
        module: module in which the function stands.
        function: function whose expressions are asked about.
        asserted: the expressions of the function's assertions, where mutable values do no harm.
    """

    def __init__(self, module: ast.Module, function: ast.FunctionDef, asserted: Iterable[ast.expr] = ()) -> None:
        self._asserted = {id(node) for node in asserted}
        inner = dict(_bindings(function.body))
        arguments = {argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)}
        outer = dict(_bindings(module.body))
        self._values: dict[str, list[ast.expr | None]] = {**outer, **inner, **{name: [None] for name in arguments}}
        self._names = set(self._values)
        while True:
            left = {name for name in self._names if all(v is not None and self(v) for v in self._values[name])}
            left -= self._changeable(function, left)
            if left == self._names:
                break
            self._names = left

    def __call__(self, node: ast.expr, local: frozenset[str] = frozenset()) -> bool:
        """The tested code has no part in this expression."""
        match node:
            case ast.Constant():
                return True
            case _Imported():
                return False
            case ast.Name(id=name):
                return name in local or name in self._names
            case ast.Attribute(value=value):
                return self._is_library(value)
            case ast.Call(func=func, args=args, keywords=keywords):
                given = [*args, *(keyword.value for keyword in keywords)]
                return self._is_pure(func, local) and all(self(argument, local) for argument in given)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                for generator in node.generators:
                    if generator.is_async or not self(generator.iter, local):
                        return False
                    local |= {name.id for name in ast.walk(generator.target) if isinstance(name, ast.Name)}
                    if not all(self(condition, local) for condition in generator.ifs):
                        return False
                parts = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
                return all(self(part, local) for part in parts)
            case (
                ast.Tuple()
                | ast.List()
                | ast.Set()
                | ast.Dict()
                | ast.JoinedStr()
                | ast.FormattedValue()
                | ast.BinOp()
                | ast.UnaryOp()
                | ast.BoolOp()
                | ast.IfExp()
                | ast.Compare()
                | ast.Subscript()
                | ast.Slice()
                | ast.Starred()
            ):
                return all(self(child, local) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))
        return False

    def _is_pure(self, func: ast.expr, local: frozenset[str]) -> bool:
        if (func.id if isinstance(func, ast.Name) else getattr(func, "attr", "")) == "approx":
            return True
        if isinstance(func, ast.Name):
            return (func.id in _BUILTINS and func.id not in self._values) or self._is_library(func)
        if isinstance(func, ast.Attribute):
            return (func.attr in _METHODS and self(func.value, local)) or self._is_library(func.value)
        return False

    def _is_library(self, node: ast.expr) -> bool:
        """Something imported from a module of the standard library that only computes."""
        while isinstance(node, ast.Attribute):
            node = node.value
        if not isinstance(node, ast.Name):
            return False
        values = self._values.get(node.id, [])
        return bool(values) and all(isinstance(value, _Imported) and value.id in _MODULES for value in values)

    def is_mutable(self, node: ast.expr, seen: frozenset[str] = frozenset()) -> bool:
        """What a plain expression stands for may be changed by whoever gets hold of that value."""
        match node:
            case ast.Name(id=name):
                values = self._values.get(name, [])
                return name not in seen and any(v is None or self.is_mutable(v, seen | {name}) for v in values)
            case (
                ast.List()
                | ast.Set()
                | ast.Dict()
                | ast.ListComp()
                | ast.SetComp()
                | ast.DictComp()
                | ast.GeneratorExp()
            ):
                return True
            case ast.Call(func=func):
                name = func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""
                return name in _MUTABLE or self._is_library(func)
            case ast.Tuple() | ast.BinOp() | ast.IfExp() | ast.BoolOp() | ast.Subscript() | ast.Starred():
                return any(self.is_mutable(n, seen) for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr))
        return False

    def _changeable(self, function: ast.FunctionDef, names: set[str]) -> set[str]:
        """Plain names whose mutable values others get hold of."""
        mutable = {name for name in names if any(v is not None and self.is_mutable(v) for v in self._values[name])}
        changeable: set[str] = set()

        def visit(node: ast.AST) -> None:
            if isinstance(node, ast.expr):
                if id(node) in self._asserted or (isinstance(node, ast.Call) and _is_print(node)):
                    if self(node):
                        return
                elif isinstance(node, ast.Name) and node.id in mutable:
                    changeable.add(node.id)
            if isinstance(node, ast.Assign) and self(node.value):
                targets = [name for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)]
                if all(isinstance(t, ast.Name | ast.Tuple) for t in node.targets) and {t.id for t in targets} <= names:
                    return
            if isinstance(node, ast.For) and self(node.iter) and not self._holds_mutable(node.iter):
                for statement in (*node.body, *node.orelse):
                    visit(statement)
                return
            for child in ast.iter_child_nodes(node):
                visit(child)

        for statement in function.body:
            visit(statement)
        return changeable

    def _holds_mutable(self, node: ast.expr) -> bool:
        """The elements of a plain expression may be changed."""
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return any(self.is_mutable(element) for element in node.elts)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
            return False
        return self.is_mutable(node)


def _is_print(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == PRINT


def is_print(statement: ast.stmt) -> bool:
    """A statement that prints."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and _is_print(statement.value)


def _bindings(body: Iterable[ast.stmt]) -> Iterator[tuple[str, list[ast.expr | None]]]:
    """What is assigned to each name in these statements; `None` for what is no value, such as a function.

    An import counts as an assignment of a name, that of the module at the top.
    """
    bindings: dict[str, list[ast.expr | None]] = {}
    conditions: list[ast.expr | None] = []  # What decides whether the statement runs that is looked at.

    def bind(target: ast.AST, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            bindings.setdefault(target.id, []).extend((value, *conditions))
        elif isinstance(target, ast.Tuple | ast.List):
            pairs = value.elts if isinstance(value, ast.Tuple | ast.List) else None
            same = pairs is not None and len(pairs) == len(target.elts)
            for place, element in enumerate(target.elts):
                bind(element, pairs[place] if same and pairs is not None else value)
        elif isinstance(target, ast.Starred):
            bind(target.value, value)
        elif isinstance(target, ast.Subscript | ast.Attribute):
            for name in ast.walk(target):  # Somebody changes what it holds.
                if isinstance(name, ast.Name):
                    bindings.setdefault(name.id, []).append(None)

    def visit(node: ast.AST) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                bind(ast.Name(node.name), None)
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Nonlocal | ast.Global):
                        for name in inner.names:
                            bind(ast.Name(name), None)
                return
            case ast.Lambda():
                return
            case ast.Import() | ast.ImportFrom():
                for alias in node.names:
                    module = node.module or "" if isinstance(node, ast.ImportFrom) else alias.name
                    name = alias.asname or alias.name.partition(".")[0]
                    level = node.level if isinstance(node, ast.ImportFrom) else 0
                    bind(ast.Name(name), None if level else _Imported(module.partition(".")[0]))
                return
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    bind(target, value)
            case ast.AnnAssign(target=target, value=value):
                bind(target, value)
            case ast.AugAssign(target=target, value=value):
                bind(target, value)
                if not isinstance(target, ast.Name):
                    bind(target, None)
            case ast.NamedExpr(target=target, value=value):
                bind(target, value)
            case ast.For(target=target, iter=iterable):
                bind(target, _elements(iterable))
            case ast.withitem(optional_vars=target) if target is not None:
                bind(target, None)
            case ast.ExceptHandler(name=name) if name:
                bind(ast.Name(name), None)
            case ast.Delete(targets=targets):
                for target in targets:
                    bind(target, None)
        decides = (
            [node.test]
            if isinstance(node, ast.If | ast.While)
            else [node.iter]
            if isinstance(node, ast.For)
            else [None]
            if isinstance(node, ast.Try | ast.Match | ast.AsyncFor)
            else []
        )
        conditions.extend(decides)
        for child in ast.iter_child_nodes(node):
            visit(child)
        del conditions[len(conditions) - len(decides) :]

    for statement in body:
        visit(statement)
    yield from bindings.items()


def _elements(iterable: ast.expr) -> ast.expr:
    """An expression as plain, and as mutable, as what it yields."""
    if isinstance(iterable, ast.Tuple | ast.List | ast.Set) and iterable.elts:
        return ast.Tuple(iterable.elts)
    if isinstance(iterable, ast.Call) and isinstance(iterable.func, ast.Name) and iterable.func.id == "range":
        return ast.BinOp(ast.Tuple(iterable.args), ast.Add(), ast.Constant(0))
    return iterable


def is_builtin(name: str) -> bool:
    """A name that Python itself has."""
    return hasattr(builtins, name)
