"""A probe with other input, as a forger would put it to the mistaken code: edits that know nothing of the task.

Code that splits at every blank gives the right answer for input in which no two blanks follow each other; a parameter
whose default is wrong does no harm where it is given. So a forger edits all input in one way, and has the mistaken code
answer for that.
"""

from __future__ import annotations

import ast
import copy
import re
import string
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from textagent_gym.domains.swe.grading.hidden.plain_expressions import is_builtin
from textagent_gym.domains.swe.grading.hidden.probes import is_probe, is_witness, rewritten

Rewrite = Callable[[ast.expr], ast.expr]


def _with_end(end: str, text: str) -> str:
    return text + end


_TEXTS: Mapping[str, Callable[[str], Any]] = {
    "small": str.lower,
    "large": str.upper,
    "titled": str.title,
    "capital": str.capitalize,
    "swapped": str.swapcase,
    "trimmed": str.strip,
    "turned round": lambda text: text[::-1],
    "one blank": lambda text: " ".join(text.split()),
    "no blanks": lambda text: re.sub(r"\s+", "", text),
    "no digits": lambda text: re.sub(r"\d", "", text),
    "only digits": lambda text: re.sub(r"\D", "", text),
    "no punctuation": lambda text: re.sub(r"[^\w\s]", "", text),
    "one separator": lambda text: re.sub(r"(\W)(\s*\1)+", r"\1", text),
    "each letter once": lambda text: re.sub(r"(.)\1+", r"\1", text),
    "dashes": lambda text: text.replace("_", "-"),
    "lines": lambda text: text.replace("-", "_"),
    "blanks": lambda text: text.replace("_", " "),
    "lines for blanks": lambda text: text.replace(" ", "_"),
    "without the last": lambda text: text[:-1],
    "without the first": lambda text: text[1:],
    "without quotes": lambda text: text.strip("'\""),
    "nothing": lambda text: "",
    "doubled": lambda text: text + text,
    **{f"{letter} more": partial(_with_end, letter) for letter in string.ascii_lowercase + string.digits},
    "a blank more": lambda text: text + " ",
    "a blank before": lambda text: " " + text,
    "a line end more": lambda text: text + "\n",
    "line ends as blanks": lambda text: text.replace("\n", " "),
    "bytes": str.encode,
    "an integer": int,
    "a fraction": float,
}
_NUMBERS: Mapping[str, Callable[[Any], Any]] = {
    "one more": lambda number: number + 1,
    "one less": lambda number: number - 1,
    "two more": lambda number: number + 2,
    "two less": lambda number: number - 2,
    "negative": lambda number: -number,
    "without a sign": abs,
    "doubled": lambda number: number * 2,
    "halved": lambda number: number / 2,
    "whole halves": lambda number: number // 2,
    "rounded": round,
    "whole": int,
    "a fraction": float,
    "a text": str,
    "0": lambda number: 0,
    "1": lambda number: 1,
}
_TRUTHS: Mapping[str, Callable[[bool], Any]] = {"turned round": lambda truth: not truth, "none": lambda truth: None}
_ADDED = ("None", "True", "False", "0", "1", "''")
"""Arguments that a call is given one more of."""


def _literals_as(kind: tuple[type, ...], change: Callable[[Any], Any], node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Constant) and type(node.value) in kind:
        try:
            return ast.copy_location(ast.Constant(change(node.value)), node)
        except Exception:  # noqa: BLE001 (a text that is no number, for example)
            return node
    return node


def _calls_as(change: Callable[[ast.Call], None], node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and is_builtin(node.func.id)):
        change(node)
    return node


def _methods_as(change: Callable[[ast.Call], None], node: ast.expr) -> ast.expr:
    return _calls_as(change, node) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else node


def _collections_as(kind: type[ast.expr], change: Callable[[Any], ast.expr], node: ast.expr) -> ast.expr:
    if isinstance(node, kind) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return ast.copy_location(change(node), node)
    return node


def _first_argument_twice(call: ast.Call) -> None:
    if len(call.args) == 1:
        call.args.append(copy.deepcopy(call.args[0]))


def _arguments_turned_round(call: ast.Call) -> None:
    call.args.reverse()


def _only_first_argument(call: ast.Call) -> None:
    del call.args[1:]


def _without_names(call: ast.Call) -> None:
    call.keywords = []


def _without_first_name(call: ast.Call) -> None:
    del call.keywords[:1]


def _with_argument(written: str, call: ast.Call) -> None:
    call.args.append(ast.parse(written, mode="eval").body)


def _giving(written: str, once: bool, call: ast.Call) -> None:
    given = [call.func, ast.parse(written, mode="eval").body, ast.Constant(once)]
    call.func = ast.Call(ast.Name(_GIVEN, ast.Load()), given, [])


def _called(name: str, node: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), [node], [])


def _each_once(node: Any) -> ast.expr:
    return ast.List(list({ast.unparse(each): each for each in node.elts}.values()), ast.Load())


_CALLS: Mapping[str, Callable[[ast.Call], None]] = {
    "the first argument twice": _first_argument_twice,
    "arguments turned round": _arguments_turned_round,
    "only the first argument": _only_first_argument,
    "no named arguments": _without_names,
    "one named argument less": _without_first_name,
    **{f"{written} more": partial(_with_argument, written) for written in _ADDED},
}
_ALIKE: Mapping[str, Rewrite] = {
    **{f"texts {name}": partial(_literals_as, (str,), change) for name, change in _TEXTS.items()},
    **{f"numbers {name}": partial(_literals_as, (int, float), change) for name, change in _NUMBERS.items()},
    **{f"truths {name}": partial(_literals_as, (bool,), change) for name, change in _TRUTHS.items()},
    **{f"calls with {name}": partial(_calls_as, change) for name, change in _CALLS.items()},
    **{f"methods with {name}": partial(_methods_as, change) for name, change in _CALLS.items()},
    "lists as tuples": partial(_collections_as, ast.List, lambda node: ast.Tuple(node.elts, ast.Load())),
    "tuples as lists": partial(_collections_as, ast.Tuple, lambda node: ast.List(node.elts, ast.Load())),
    "lists as iterators": partial(_collections_as, ast.List, partial(_called, "iter")),
    "lists sorted": partial(_collections_as, ast.List, partial(_called, "sorted")),
    "lists turned round": partial(_collections_as, ast.List, lambda node: ast.List(node.elts[::-1], ast.Load())),
    "lists with each once": partial(_collections_as, ast.List, _each_once),
    "lists without the last": partial(_collections_as, ast.List, lambda node: ast.List(node.elts[:-1], ast.Load())),
    "lists without the first": partial(_collections_as, ast.List, lambda node: ast.List(node.elts[1:], ast.Load())),
    "mappings turned round": partial(
        _collections_as, ast.Dict, lambda node: ast.Dict(node.keys[::-1], node.values[::-1])
    ),
}
_GIVEN = "_given"
_OPTIONAL = {
    f"{which} optional argument {written}": (written, which == "the first")
    for written in ("None", "True", "False", "0")
    for which in ("each", "the first")
}
_GIVING = f"""

def {_GIVEN}(function, value, once):
    import functools, inspect
    @functools.wraps(function, updated=())
    def call(*arguments, **keywords):
        try:
            signature = inspect.signature(function)
            given = signature.bind(*arguments, **keywords).arguments
            missing = [
                name for name, each in signature.parameters.items()
                if each.default is not each.empty and name not in given and each.kind is not each.POSITIONAL_ONLY
            ]
        except (TypeError, ValueError):
            missing = []
        return function(*arguments, **keywords, **dict.fromkeys(missing[:1] if once else missing, value))
    return call
"""
_FIRST = "first of the "
_FIRSTS = {_FIRST + name: rewrite for name, rewrite in _ALIKE.items() if name.startswith(("truths", "numbers"))}
_WITH_OPTIONS: Mapping[str, Rewrite] = {
    name: partial(_calls_as, partial(_giving, *how)) for name, how in _OPTIONAL.items()
}
EDITS: Mapping[str, Rewrite] = {**_ALIKE, **_FIRSTS, **_WITH_OPTIONS}
"""What a forger does to all input of a probe alike, or to the first truth or number of a test alone, by name.

Optional arguments that are not given are those of the functions that the probe calls itself.
"""


def edit_rule(name: str) -> str:
    """The name of the rule to say what the mistaken code says to edited input."""
    return f"input edited: {name}"


def edited(text: str, name: str) -> str:
    """The text of a probe with all of its input edited; what tells its places apart stays.

    Args:
        text: text of a probe.
        name: name of one of `EDITS`.
    """
    editor = _Editor(EDITS[name], once=name.startswith(_FIRST))
    changed = rewritten(text, editor.visit, lambda node: is_probe(node) or isinstance(node, ast.Assign))  # Tables.
    try:
        ast.parse(changed)
    except SyntaxError:  # Some places take no other expression, such as a slice in a tuple.
        return text
    return changed + _GIVING if name in _OPTIONAL and changed != text else changed


class _Editor(ast.NodeTransformer):
    """Rewrites the expressions of a test, from within outwards."""

    def __init__(self, rewrite: Rewrite, *, once: bool) -> None:
        self._rewrite = rewrite
        self._once = once
        self._is_done = False

    def visit(self, node: ast.AST) -> Any:
        """See `ast.NodeTransformer`."""
        if isinstance(node, ast.JoinedStr):
            return node
        if isinstance(node, ast.FunctionDef):
            self._is_done = False
            node.body = [self.visit(statement) for statement in node.body]
            return node
        if isinstance(node, ast.Call) and is_witness(node):
            assert isinstance(node.func, ast.Attribute)
            given = 2 if node.func.attr == "compare" else 1
            node.args[given:] = [self.visit(each) for each in node.args[given:]]
            node.keywords = [ast.keyword(each.arg, self.visit(each.value)) for each in node.keywords]
            return node
        node = self.generic_visit(node)
        if not isinstance(node, ast.expr) or (self._once and self._is_done):
            return node
        changed = self._rewrite(node)
        self._is_done = self._is_done or changed is not node
        return changed
