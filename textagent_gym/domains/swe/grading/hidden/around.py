"""A probe as a forger would run it who looks around: each question put twice, and all that can be read beside it.

A forger owns the frames of the test. So it knows the values of the test's own variables, those of the parts of an
expression, the message of an exception, what the same expression gives when it is evaluated once more, and what other
functions of the same module, or methods of the same object, give for the same arguments.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from textagent_gym.domains.swe.grading.hidden.answers import OddWordsError, Told, value
from textagent_gym.domains.swe.grading.hidden.continued import HOLE, waits_for_exception, witness_calls
from textagent_gym.domains.swe.grading.hidden.probes import WITNESS, rewritten

AGAIN, AROUND, NEIGHBOURS = "again", "around", "neighbours"
"""Names of the ways in which the mistaken code is run."""
_MOST_PARTS = 12
"""Parts of an expression that are evaluated alone; the larger ones come first."""
_KNOWN = (ast.Constant, ast.Starred, ast.Lambda)
"""Expressions that are not evaluated alone: they are known, or of no use."""
_MOST_NEIGHBOURS = 40
"""Functions of a module, or methods of an object, that are called in the place of the one that is asked."""
_BEFORE, _LOOK, _ASK, _ERROR = "_events_until_here", "_look_around", "_ask_neighbours", "_last_error"
_ASKING = f"""

def {_ASK}(start, site, call):
    import builtins, copy, sys, types
    witness = builtins.witness
    words = type(witness).see.__globals__["words"]
    del witness.events[start:]
    names, values = [], []
    try:
        function, arguments, keywords = call()
        owner = getattr(function, "__self__", None)
        if owner is None or isinstance(owner, types.ModuleType):
            owner = sys.modules[function.__module__]
        holder = owner if isinstance(owner, (types.ModuleType, type)) else type(owner)
        near = [name for name in dir(holder) if name[0] != "_" and name != function.__name__]
        functions = {{name: getattr(holder, name) for name in near if owner is not builtins}}
        near = [name for name, each in functions.items() if callable(each) and not isinstance(each, type)]
    except TimeoutError:
        raise
    except BaseException:
        near = []
    for name in near[:{_MOST_NEIGHBOURS}]:
        try:
            given, named = copy.deepcopy((arguments, keywords))
            place = owner if owner is holder else copy.deepcopy(owner)
            values.append(words(getattr(place, name)(*given, **named)))
            names.append("neighbour " + name)
        except TimeoutError:
            raise
        except BaseException:
            pass
    witness.events.append([site, names, *values])
"""
_LOOKING = f"""

def {_LOOK}(start, site, error, parts):
    import builtins, sys, types
    frame = sys._getframe(1)
    witness = builtins.witness
    words = type(witness).see.__globals__["words"]
    del witness.events[start:]
    names, values = [], []
    def keep(name, value):
        if not isinstance(value, (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type)):
            names.append(name)
            values.append(words(value))
    variables = dict(frame.f_locals)
    fields = getattr(variables.pop("self", None), "__dict__", {{}})
    own = [each for name, each in variables.items() if name[0] != "_"]
    for number, each in enumerate(reversed(own)):
        keep(f"variable {{number}} from the last", each)
    for number, each in enumerate(own):
        keep(f"variable {{number}}", each)
    for number, each in enumerate(fields.values()):
        keep(f"attribute {{number}}", each)
    for number, name in enumerate(name for name in frame.f_code.co_names if name in frame.f_globals):
        keep(f"global {{number}}", frame.f_globals[name])
    last = own[-1] if own else None
    for number, each in enumerate(getattr(last, "__dict__", {{}}).values()):
        keep(f"attribute {{number}} of the last variable", each)
    if error is not None:
        keep("message", str(error))
        for number, each in enumerate(getattr(error, "args", ())):
            keep(f"argument {{number}} of the exception", each)
    for number, part in enumerate(parts):
        try:
            keep(f"part {{number}}", part())
        except TimeoutError:
            raise
        except BaseException:
            pass
    witness.events.append([site, names, *values])
"""


def asked_again(text: str) -> str:
    """The text of a probe that puts each question twice and keeps the second answer."""
    return _rewritten(text, _twice)


def looked_around(text: str) -> str:
    """The text of a probe that sees, at each question, what can be read beside it; `values_around` reads that."""
    return _rewritten(text, _looking) + _LOOKING


def neighbours_asked(text: str) -> str:
    """The text of a probe that sees, at each question, what a function's neighbours give for the same arguments.

    `values_around` reads that.
    """
    return _rewritten(text, _asking) + _ASKING


def values_around(words: Sequence[Any]) -> Mapping[str, Any]:
    """What could be read beside one question, by names that are the same in all versions of a test.

    Args:
        words: words of an event of `looked_around` or `neighbours_asked`, without the number of its site.
    """
    names = words[0] if words and isinstance(words[0], list) else []
    if len(names) != len(words) - 1 or not all(isinstance(name, str) for name in names):
        return {}
    values: dict[str, Any] = {}
    for name, each in zip(names, words[1:], strict=True):
        try:
            read = value(each)
        except OddWordsError:
            continue
        if each != list(HOLE) and not (isinstance(read, Told) and not read.shown):
            values[name] = read
    return values


def _rewritten(text: str, rewrite: Callable[[ast.stmt], list[ast.stmt]]) -> str:
    """A probe with each statement that asks something, and nothing else, in another form."""

    def changed(function: ast.stmt) -> ast.stmt:
        assert isinstance(function, ast.FunctionDef)
        function.body = _block(function.body, rewrite)
        return function

    return rewritten(text, changed)


def _block(body: Sequence[ast.stmt], rewrite: Callable[[ast.stmt], list[ast.stmt]]) -> list[ast.stmt]:
    statements: list[ast.stmt] = []
    for statement in body:
        if (isinstance(statement, ast.Expr) and witness_calls(statement)) or (
            isinstance(statement, ast.With) and waits_for_exception(statement)
        ):
            statements += rewrite(statement)
            continue
        for name in ("body", "orelse", "finalbody"):
            inner = getattr(statement, name, None)
            if inner and not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                setattr(statement, name, _block(inner, rewrite))
        for handler in getattr(statement, "handlers", ()):
            handler.body = _block(handler.body, rewrite)
        statements.append(statement)
    return statements


def _tried(statement: ast.stmt) -> list[ast.stmt]:
    """A statement whose exception is kept and passed over."""
    tried = ast.parse(
        f"{_BEFORE} = len({WITNESS}.events)\n"
        f"{_ERROR} = None\n"
        "try:\n    pass\n"
        "except TimeoutError:\n    raise\n"
        f"except BaseException as _error:\n    {_ERROR} = _error\n"
    ).body
    attempt = tried[-1]
    assert isinstance(attempt, ast.Try)
    attempt.body = [copy.deepcopy(statement)]
    return tried


def _twice(statement: ast.stmt) -> list[ast.stmt]:
    return [*_tried(statement), *ast.parse(f"del {WITNESS}.events[{_BEFORE}:]").body, statement]


def _looking(statement: ast.stmt) -> list[ast.stmt]:
    if isinstance(statement, ast.With):  # What is raised is asked, not what something is.
        return [statement]
    site, expressions = _asked(statement)
    parts = "".join(f"lambda: ({ast.unparse(part)}), " for part in _parts(expressions))
    look = f"{_LOOK}({_BEFORE}, {site}, {_ERROR}, ({parts}))"
    return [*_tried(statement), *ast.parse(look).body]


def _asking(statement: ast.stmt) -> list[ast.stmt]:
    if isinstance(statement, ast.With):
        return [statement]
    site, expressions = _asked(statement)
    calls = [part for part in _parts(expressions) if isinstance(part, ast.Call)]
    if not calls:
        return [statement]
    given = ast.unparse(ast.Tuple(calls[0].args, ast.Load()))
    named = ", ".join(f"{each.arg!r}: {ast.unparse(each.value)}" for each in calls[0].keywords if each.arg)
    ask = f"{_ASK}({_BEFORE}, {site}, lambda: ({ast.unparse(calls[0].func)}, {given}, {{{named}}}))"
    return [*_tried(statement), *ast.parse(ask).body]


def _asked(statement: ast.stmt) -> tuple[str, list[ast.expr]]:
    """The site of a question as text, and the expressions that are seen there."""
    call = witness_calls(statement)[0]
    assert isinstance(call.func, ast.Attribute)
    seen = call.args[2:] if call.func.attr in ("compare", "call") else call.args[1:]
    whole: list[ast.expr] = []
    if call.func.attr == "call":
        whole = [ast.Call(call.args[1], call.args[2:], call.keywords)]
    return ast.unparse(call.args[0]), [*whole, *seen]


def _parts(expressions: Sequence[ast.expr]) -> list[ast.expr]:
    """Expressions and what they consist of, the larger ones first; literals are known anyway."""
    level: list[ast.AST] = list(expressions)
    parts: list[ast.expr] = []
    while level:
        parts += [node for node in level if isinstance(node, ast.expr) and not isinstance(node, _KNOWN)]
        below: list[ast.AST] = []
        for node in level:
            for child in ast.iter_child_nodes(node):
                is_called = isinstance(node, ast.Call) and child is node.func
                if is_called and isinstance(child, ast.Attribute):
                    below.append(child.value)
                elif not is_called and not isinstance(child, ast.comprehension | ast.expr_context):
                    below.append(child)
        level = below
    return list(islice(filter(_stands_alone, parts), _MOST_PARTS))


def _stands_alone(part: ast.expr) -> bool:
    """A part is an expression by itself, as a slice and the braces of a formatted text are not."""
    try:
        ast.parse(f"({ast.unparse(part)})", mode="eval")
    except SyntaxError:
        return False
    return True
