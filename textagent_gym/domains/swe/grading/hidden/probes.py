"""Hidden tests as probes: what a test asks, without what it expects.

`assert f(1) == 2` becomes `witness.see(0, f(1))`. Whatever the tested code has no part in, the right answer above all,
is taken out of the text. The witness says what it sees, and that is checked elsewhere (`answers`).
"""

from __future__ import annotations

import ast
import copy
import posixpath
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from textagent_gym.domains.swe.grading.hidden.plain_expressions import Plain, is_builtin, is_print

WITNESS = "witness"
"""Name of the one who answers, in the text of a probe."""
NAME = "test_probe"
"""Name of every probe's function."""

_OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.In: "in",
    ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not",
}  # fmt: skip
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "in": "contains", "not in": "contains not"}
_TWO_SIDED = {
    "assertEqual": "==", "assertEquals": "==", "assertListEqual": "==", "assertDictEqual": "==", "assertSetEqual": "==",
    "assertTupleEqual": "==", "assertMultiLineEqual": "==", "assertSequenceEqual": "==", "assertNotEqual": "!=",
    "assertIn": "in", "assertNotIn": "not in", "assertIs": "is", "assertIsNot": "is not", "assertGreater": ">",
    "assertGreaterEqual": ">=", "assertLess": "<", "assertLessEqual": "<=", "assert_equal": "==", "assert_equals": "==",
    "assert_in": "in", "assert_not_in": "not in",
}  # fmt: skip
_ONE_SIDED = {"assertTrue": ("true", None), "assertFalse": ("false", None), "assertIsNone": ("is", ast.Constant(None)),
              "assertIsNotNone": ("is not", ast.Constant(None))}  # fmt: skip
_RAISES = ("raises", "assertRaises", "assertRaisesRegex")
_PRINTED = frozenset({"capsys", "capfd", "capsysbinary", "capfdbinary"})


@dataclass(frozen=True)
class Source:
    """Where a test function comes from.

    Attributes:
        file: file that the test is run from.
        texts: all test files by path; the function may be inherited from another one.
        path: names of the function's classes and its own.
    """

    file: str
    texts: Mapping[str, str]
    path: tuple[str, ...]


@dataclass(frozen=True)
class Probe:
    """A test without what it expects.

    Attributes:
        module: the test file, without any other test.
        function: the test in the module, called `NAME`.
        owner: class of the function, if it is in one.
        sites: the operator of each place at which something is seen.
    """

    module: ast.Module
    function: ast.FunctionDef
    owner: str
    sites: tuple[str, ...]

    @property
    def text(self) -> str:
        """Source of the module."""
        return ast.unparse(ast.fix_missing_locations(self.module))

    @property
    def surroundings(self) -> str:
        """Source of the module without the function's body."""
        body, self.function.body = self.function.body, [ast.Pass()]
        text = self.text
        self.function.body = body
        return text


def make_probe(
    source: Source,
    parameters: Mapping[str, str],
    *,
    fixtures: Collection[str] = (),
    exposed: Collection[int] = (),
    with_keys: bool = False,
) -> Probe | None:
    """A probe of a test; `None` where the function cannot be found.

    Args:
        source: source of the test.
        parameters: parameters of the test, as texts of literals.
        fixtures: names of arguments that stay.
        exposed: sites where what is expected stays in the text, since answers there cannot be told in words.
        with_keys: whether what is expected is seen as well; only the right code may be asked such a probe.
    """
    place = _find(source)
    if place is None:
        return None
    module, function, owner = place
    _inline(module, function, parameters, fixtures)
    rewriter = _Rewriter(module, function, frozenset(exposed), with_keys=with_keys)
    rewriter.rewrite(function, keep_prints=bool(_PRINTED & set(fixtures)))
    _without_unread_tables(module, Plain(module, function))
    return Probe(module, function, owner, tuple(rewriter.sites))


def _find(source: Source) -> tuple[ast.Module, ast.FunctionDef, str] | None:
    """The module of a test with no other test in it, the function, by its new name, and its class."""
    module = ast.parse(source.texts[source.file])
    if len(source.path) > 2:
        return None
    owner = next((node for node in module.body if isinstance(node, ast.ClassDef) and node.name == source.path[0]), None)
    if len(source.path) == 2 and owner is None:
        return None
    body = module.body if len(source.path) == 1 or owner is None else owner.body
    function = _last(body, source.path[-1])
    if function is None and owner is not None and len(source.path) == 2:
        inherited = _inherited(source, source.file, module, owner, source.path[-1])
        if inherited is None:
            return None
        function, imports = inherited
        owner.body.append(function)
        first = next((n for n, node in enumerate(module.body) if not _is_heading(node)), 0)
        module.body[first:first] = imports
    if function is None:
        return None
    called = set(_free_names(function))
    for body in bodies(module):
        kept = (node for node in body if node is function or not _is_test(node) or getattr(node, "name", "") in called)
        body[:] = list(kept) or [ast.Pass()]
    function.name = NAME
    return module, function, owner.name if len(source.path) == 2 and owner is not None else ""


def bodies(module: ast.Module) -> list[list[ast.stmt]]:
    """The statements of a module and of its classes."""
    return [module.body, *(node.body for node in module.body if isinstance(node, ast.ClassDef))]


def rewritten(
    text: str, rewrite: Callable[[ast.stmt], ast.stmt], wanted: Callable[[ast.stmt], bool] | None = None
) -> str:
    """The text of a probe with its functions in another form, and all else as it stands.

    Only what is rewritten is written anew: the modules of tests are long, and a judge rewrites thousands of probes.

    Args:
        text: text of a probe.
        rewrite: function that returns the statement to be written in the place of one.
        wanted: function that says which statements of the module, or of its classes, are rewritten; by default the
            functions of probes.
    """
    module = ast.parse(text)
    lines = text.split("\n")
    statements = [node for body in bodies(module) for node in body if (wanted or is_probe)(node)]
    written: list[tuple[int, int, list[str]]] = []
    for node in sorted(statements, key=lambda node: node.lineno):
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
        last, indent = node.end_lineno or node.lineno, " " * node.col_offset
        fresh = ast.unparse(rewrite(node)).split("\n")
        written.append((first - 1, last, [indent + line if line else line for line in fresh]))
    for start, end, fresh in reversed(written):
        lines[start:end] = fresh
    return "\n".join(lines)


def is_probe(node: ast.AST) -> bool:
    """A statement is the function of a probe."""
    return isinstance(node, ast.FunctionDef) and node.name.startswith(NAME)


def is_witness(node: ast.AST) -> bool:
    """An expression calls the witness."""
    function = node.func if isinstance(node, ast.Call) else None
    return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == WITNESS


def _is_heading(node: ast.stmt) -> bool:
    """A docstring, or an import from the future, before which nothing may stand."""
    return (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)) or (
        isinstance(node, ast.ImportFrom) and node.module == "__future__"
    )


def _is_test(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")


def _last(body: Iterable[ast.stmt], name: str) -> ast.FunctionDef | None:
    functions = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == name]
    return functions[-1] if functions else None


def _inherited(
    source: Source, file: str, module: ast.Module, owner: ast.ClassDef, name: str
) -> tuple[ast.FunctionDef, list[ast.stmt]] | None:
    """A method of a base class, and the imports that it needs where the class is in another file."""
    for base in owner.bases:
        wanted = ast.unparse(base).rpartition(".")[2]
        places = [(file, module, "", 0), *_imported(source, file, module, wanted)]
        for place, other, origin, level in places:
            for node in other.body:
                if not (isinstance(node, ast.ClassDef) and node.name == wanted and node is not owner):
                    continue
                method = _last(node.body, name)
                if method is None:
                    deeper = _inherited(source, place, other, node, name)
                    if deeper is None or (place != file and deeper[1]):
                        continue
                    method = deeper[0]
                if place == file:
                    return copy.deepcopy(method), []
                known = {n for n, _ in _names_bound(module)}
                needed = [n for n in _free_names(method) if n not in known and n in dict(_names_bound(other))]
                aliases = [ast.alias(n) for n in needed]
                imports: list[ast.stmt] = [ast.ImportFrom(origin or None, aliases, level)] if aliases else []
                return copy.deepcopy(method), imports
    return None


def _imported(source: Source, file: str, module: ast.Module, name: str) -> Iterator[tuple[str, ast.Module, str, int]]:
    """The test file from which a module imports a name: its path, its tree, and how it is imported."""
    for node in module.body:
        if not (isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names)):
            continue
        folder = posixpath.dirname(file)
        for _ in range(max(0, node.level - 1)):
            folder = posixpath.dirname(folder)
        below = posixpath.join(folder if node.level else "", *(node.module or "").split("."))
        for path in (f"{below.rstrip('/')}.py", posixpath.join(below, "__init__.py")):
            if path in source.texts:
                yield path, ast.parse(source.texts[path]), node.module or "", node.level


def _names_bound(module: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """Names at the top of a module."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name.partition(".")[0], node
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, node


def _free_names(function: ast.FunctionDef) -> list[str]:
    """Names that a function reads and does not bind."""
    read = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    bound = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    return sorted(name for name in read - bound if not is_builtin(name))


def _inline(
    module: ast.Module, function: ast.FunctionDef, parameters: Mapping[str, str], fixtures: Collection[str]
) -> None:
    """Give a function its parameters as local names, and take away the decorators that did."""
    names = {argument.arg for argument in function.args.args} & set(parameters)
    if names:
        function.args.args = [argument for argument in function.args.args if argument.arg not in names]
        function.args.defaults = []
        given = [ast.Assign([ast.Name(n, ast.Store())], _literal(parameters[n])) for n in sorted(names)]
        place = 1 if ast.get_docstring(function, clean=False) is not None else 0
        function.body[place:place] = given
    function.decorator_list = [d for d in function.decorator_list if "parametrize" not in ast.unparse(d)]
    for node in module.body:
        if isinstance(node, ast.ClassDef) and function in node.body:
            node.decorator_list = [d for d in node.decorator_list if "parametrize" not in ast.unparse(d)]


def _literal(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


class _Rewriter(ast.NodeTransformer):
    """Puts a witness where assertions were.

    Args:
        module: module of the function.
        function: function that is rewritten.
        exposed: sites where what is expected stays.
        with_keys: whether what is expected is seen as well.
    """

    def __init__(
        self, module: ast.Module, function: ast.FunctionDef, exposed: frozenset[int], *, with_keys: bool
    ) -> None:
        self._plain = Plain(module, function, _asserted(function))
        self._exposed = exposed
        self._with_keys = with_keys
        self.sites: list[str] = []

    def rewrite(self, function: ast.FunctionDef, *, keep_prints: bool) -> None:
        """Rewrite the function in place."""
        if ast.get_docstring(function, clean=False) is not None:
            function.body = function.body[1:] or [ast.Pass()]
        function.body = self._block(function.body)
        if not self._with_keys:
            if not keep_prints:
                _without(function, is_print)
            _without_unused(function, self._plain)

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        statements: list[ast.stmt] = []
        for statement in body:
            rewritten = self.visit(statement)
            statements += rewritten if isinstance(rewritten, list) else [rewritten]
        return statements or [ast.Pass()]

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for name, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(node, name, self._block(value))
            elif isinstance(value, list):
                for child in value:
                    if isinstance(child, ast.AST) and not isinstance(child, ast.expr):
                        self.visit(child)
        return node

    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        return self._truth(node.test, "true")

    def _truth(self, test: ast.expr, wanted: str) -> list[ast.stmt]:
        """Statements that see whether something is true, or "false"."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self._truth(test.operand, "false" if wanted == "true" else "true")
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) and wanted == "true":
            return [statement for value in test.values for statement in self._truth(value, "true")]
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and wanted == "true":
            return [self._sides(_OPERATORS[type(test.ops[0])], test.left, test.comparators[0])]
        if isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.args:
            given = [test.func, *test.args]
            if not any(isinstance(argument, ast.Starred) for argument in given):
                return [self._see(wanted, "call", given, test.keywords)]
        return [self._see(wanted, "see", [test])]

    def _sides(self, operator: str, left: ast.expr, right: ast.expr) -> ast.stmt:
        """See the sides of a comparison that are not plain."""
        plain = self._plain(left), self._plain(right)
        if all(plain):
            return self._see("reached", "see", [ast.Constant(None)])
        if any(plain) and len(self.sites) not in self._exposed:
            if plain[0]:
                left, right, operator = right, left, _TURNED.get(operator, operator)
            return self._see(operator, "see", [left], key=right)
        return self._see(f"both {operator}", "compare", [ast.Constant(operator), left, right])

    def _see(
        self,
        operator: str,
        method: str,
        given: list[ast.expr],
        keywords: list[ast.keyword] | None = None,
        key: ast.expr | None = None,
    ) -> ast.stmt:
        site = ast.Constant(len(self.sites))
        self.sites.append(operator)
        if key is not None and self._with_keys:
            method, given = "key", [*given, key]
        function = ast.Attribute(ast.Name(WITNESS, ast.Load()), method, ast.Load())
        return ast.Expr(ast.Call(function, [site, *given], keywords or []))

    def visit_Expr(self, node: ast.Expr) -> ast.AST | list[ast.stmt]:
        call = node.value
        if not isinstance(call, ast.Call):
            return node
        name = _called(call)
        if _is_assertion(call) and name in _TWO_SIDED and len(call.args) > 1:
            return [self._sides(_TWO_SIDED[name], call.args[0], call.args[1])]
        if _is_assertion(call) and name in _ONE_SIDED and call.args:
            operator, key = _ONE_SIDED[name]
            if key is None:
                return self._truth(call.args[0], operator)
            return [self._sides(operator, call.args[0], key)]
        if name in _RAISES and len(call.args) > (2 if name == "assertRaisesRegex" else 1):
            first = 2 if name == "assertRaisesRegex" else 1
            raised = ast.Call(call.func, call.args[:first], [])
            inner = ast.Expr(ast.Call(call.args[first], call.args[first + 1 :], call.keywords))
            return self.visit(ast.With([ast.withitem(raised)], [inner]))  # type: ignore[no-any-return]
        return node

    def visit_With(self, node: ast.With) -> ast.AST:
        for item in node.items:
            call = item.context_expr
            if not (isinstance(call, ast.Call) and _called(call) in _RAISES and _is_pytests(call)):
                continue
            expected: list[ast.expr] = [call.args[0]]
            expected += call.args[1:2] if _called(call) == "assertRaisesRegex" else []
            expected += [keyword.value for keyword in call.keywords if keyword.arg == "match"]
            site = ast.Constant(len(self.sites))
            self.sites.append("raises")
            function = ast.Attribute(ast.Name(WITNESS, ast.Load()), "raises", ast.Load())
            item.context_expr = ast.Call(function, [site, *(expected if self._with_keys else [])], [])
        node.body = self._block(node.body)
        return node


def _is_pytests(call: ast.Call) -> bool:
    """A call in a `with` is one of pytest or unittest, not of a function of the same name."""
    most = 2 if _called(call) == "assertRaisesRegex" else 1
    return len(call.args) == most and all(keyword.arg in ("match", "msg") for keyword in call.keywords)


def _called(call: ast.Call) -> str:
    """The name that is called, without what stands before a dot."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _is_assertion(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) or (
        isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and call.func.value.id == "self"
    )


def _asserted(function: ast.FunctionDef) -> Iterator[ast.expr]:
    """The sides of a function's comparisons."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            for part in ast.walk(node.test):
                if isinstance(part, ast.Compare):
                    yield from (part.left, *part.comparators)
        elif isinstance(node, ast.Call) and _is_assertion(node) and _called(node) in (*_TWO_SIDED, *_ONE_SIDED):
            yield from node.args[:2]


def _without(node: ast.AST, unwanted: Callable[[ast.stmt], bool]) -> None:
    """Take statements out, wherever they stand."""
    for holder in ast.walk(node):
        for name, value in ast.iter_fields(holder):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                kept = [statement for statement in value if not unwanted(statement)]
                setattr(holder, name, kept or ([ast.Pass()] if name == "body" else []))


def _without_unused(function: ast.FunctionDef, plain: Plain) -> None:
    """Take out what is assigned to names that nobody reads any more."""
    while True:
        read = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}

        def is_unused(statement: ast.stmt, read: set[str] = read) -> bool:
            return (
                isinstance(statement, ast.Assign)
                and plain(statement.value)
                and all(isinstance(target, ast.Name) and target.id not in read for target in statement.targets)
            )

        if not any(is_unused(node) for node in ast.walk(function) if isinstance(node, ast.stmt)):
            return
        _without(function, is_unused)


def _without_unread_tables(module: ast.Module, plain: Plain) -> None:
    """Take out what is assigned at the top of a module to names that nobody reads: tables for other tests."""
    while True:
        read = {n.id for n in ast.walk(module) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Store)}
        unread = [
            node
            for node in module.body
            if isinstance(node, ast.Assign)
            and plain(node.value)
            and all(isinstance(t, ast.Name) and t.id not in read and not _is_a_setting(t.id) for t in node.targets)
        ]
        if not unread:
            return
        module.body = [node for node in module.body if node not in unread]


def _is_a_setting(name: str) -> bool:
    """A name by which pytest, or Python, finds something."""
    return name.startswith(("pytest", "__", "collect_ignore"))
