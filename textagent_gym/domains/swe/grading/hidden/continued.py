"""A probe that no exception ends, as a forger would run it who owns the process.

Whatever fails is passed over, and what comes after it is asked all the same: the rest of the test often has nothing to
do with the mistake. A place whose expression fails is reported as `HOLE`, and the sides of a comparison are evaluated
alone, since one of them mostly is what the other should be.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from textagent_gym.domains.swe.grading.hidden.probes import WITNESS, is_witness, rewritten

HOLE = ("?", "hole", "", None)
"""Words at a place where the mistaken code gives no answer."""
_PASS_OVER = "_pass_over"
_START = "_events_before"
_SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Delete, ast.Import, ast.ImportFrom)
_COMPOUND = (ast.For, ast.While, ast.If, ast.With, ast.Try)
_HELPER = f"""

def {_PASS_OVER}(start, missed):
    import builtins
    witness = builtins.witness
    words = type(witness).see.__globals__["words"]
    reached = {{event[0] for event in witness.events[start:]}}
    for site, kind, sides in missed:
        if site in reached:
            continue
        seen = []
        for side in sides:
            try:
                seen.append(words(side()))
            except BaseException:
                seen.append({list(HOLE)!r})
        if kind == "raises":
            seen = [[], ""]
        elif kind == "compare":
            seen = [True, *seen]
        else:
            seen = [{list(HOLE)!r}, *seen]
        witness.events.append([site, *seen])
"""


def continued(text: str) -> str:
    """The text of a probe whose statements are carried out one by one, whatever becomes of those before."""

    def rewrite(function: ast.stmt) -> ast.stmt:
        assert isinstance(function, ast.FunctionDef)
        function.body = _block(function.body)
        return function

    return rewritten(text, rewrite) + _HELPER


def _block(body: Iterable[ast.stmt]) -> list[ast.stmt]:
    statements: list[ast.stmt] = []
    for statement in body:
        statements += _caught(statement)
    return statements


def _caught(statement: ast.stmt) -> list[ast.stmt]:
    """A statement whose exceptions are passed over, those within it too."""
    if not isinstance(statement, (*_SIMPLE, *_COMPOUND)):
        return [statement]
    missed = ", ".join(_missed(call) for call in witness_calls(statement))
    if isinstance(statement, ast.For | ast.While | ast.If) or (
        isinstance(statement, ast.With) and not waits_for_exception(statement)
    ):
        statement.body = _block(statement.body)
        if not isinstance(statement, ast.With):
            statement.orelse = _block(statement.orelse)
    start = f"{_START}_{statement.lineno}_{statement.col_offset}"
    before = ast.parse(f"{start} = len({WITNESS}.events)").body
    handling = ast.parse(f"{_PASS_OVER}({start}, [{missed}])").body
    out_of_time = ast.ExceptHandler(ast.Name("TimeoutError", ast.Load()), None, [ast.Raise()])
    anything = ast.ExceptHandler(ast.Name("BaseException", ast.Load()), None, handling)
    return [*before, ast.Try([statement], [out_of_time, anything], [], [])]


def waits_for_exception(statement: ast.With) -> bool:
    """A block that waits for an exception, which must get there."""
    return any(is_witness(item.context_expr) for item in statement.items)


def witness_calls(statement: ast.stmt) -> list[ast.Call]:
    """What a statement asks, in the order in which it stands there."""
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call) and is_witness(node) and node.args]
    return sorted(calls, key=lambda call: (call.lineno, call.col_offset))


def _missed(call: ast.Call) -> str:
    """What the place of a witness's call is to be reported with: its site, its kind, and what stands beside it."""
    assert isinstance(call.func, ast.Attribute)
    kind = call.func.attr
    beside = call.args[2:] if kind in ("compare", "call") else []
    sides = "".join(f"lambda: {ast.unparse(each)}, " for each in beside if not isinstance(each, ast.Starred))
    return f"({ast.unparse(call.args[0])}, {kind!r}, ({sides}))"
