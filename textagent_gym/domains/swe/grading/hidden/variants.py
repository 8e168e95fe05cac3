"""The same question with other input: literals of a probe are changed, mostly in the same way wherever they stand."""

from __future__ import annotations

import ast
import copy
import pickle
import random
import re
from collections.abc import Callable, Iterator, Sequence

from textagent_gym.domains.swe.grading.hidden.literals import PREPARATIONS
from textagent_gym.domains.swe.grading.hidden.probes import NAME, WITNESS, Probe, bodies

_TOKEN = re.compile(r"[A-Za-z]{2,}|\d+")
_WORDS = (
    "amber", "basket", "cedar", "delta", "ember", "falcon", "garden", "harbor", "island", "jungle", "kettle",
    "lantern", "meadow", "nectar", "orchid", "pepper", "quartz", "river", "saddle", "timber", "umbrella", "velvet",
    "willow", "zephyr",
)  # fmt: skip
_LARGEST_TABLE = 4000  # Characters of a literal at the top of a module that is taken into the function.
_TRIES = 6

_Change = Callable[[list[ast.Constant], ast.FunctionDef, random.Random, Sequence[str]], None]


def variants(probe: Probe, words: Sequence[str], count: int, draw: random.Random) -> Iterator[Probe]:
    """Probes with other input, no two of the same text; fewer than `count` where there is little to change.

    Args:
        probe: the original.
        words: words that may be put in for others.
        count: largest number of probes.
        draw: random generator that decides on everything.
    """
    texts = {probe.text}
    pool = sorted({word for word in words if len(word) > 1}) or list(_WORDS)
    base, literals = _changeable(probe)
    if not literals:
        return
    packed = pickle.dumps(base)  # Copies many times as fast as `copy.deepcopy`.
    for _ in range(count * _TRIES):
        other = pickle.loads(packed)
        constants = _inputs(other)
        for _ in range(draw.choice((1, 1, 1, 2, 3))):
            change = draw.choices(_CHANGES, _WEIGHTS)[0]
            change(constants, other.function, draw, pool if draw.random() < 0.5 else _WORDS)
        text = other.text
        if text not in texts:
            texts.add(text)
            yield other
            if len(texts) > count:
                return


def merged(probes: Sequence[Probe]) -> Probe:
    """One probe that asks what several of the same module ask, in functions of their own."""
    first = probes[0]
    module, function = copy.deepcopy((first.module, first.function))
    body = next(body for body in bodies(module) if function in body)
    for number, probe in enumerate(probes[1:], start=1):
        other = copy.deepcopy(probe.function)
        other.name = f"{NAME}_{number}"
        body.append(other)
    return Probe(module, function, first.owner, first.sites)


def _changeable(probe: Probe) -> tuple[Probe, list[ast.Constant]]:
    """A copy of a probe, with tables of its module in the function, and the literals that are input."""
    module, function = copy.deepcopy((probe.module, probe.function))
    read = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    bound = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    tables = [
        copy.deepcopy(node)
        for node in module.body
        if isinstance(node, ast.Assign)
        and all(isinstance(target, ast.Name) and target.id in read - bound for target in node.targets)
        and _is_table(node.value)
    ]
    function.body[:0] = tables
    changeable = Probe(module, function, probe.owner, probe.sites)
    return changeable, _inputs(changeable)


def _inputs(probe: Probe) -> list[ast.Constant]:
    """The literals of a probe that are input: its function's, and those that are prepared for it."""
    prepared = [probe.function]
    for node in probe.module.body:
        if isinstance(node, ast.ClassDef) and node.name == probe.owner:
            prepared += [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name in PREPARATIONS]
    return [constant for each in prepared for constant in _literals(each)]


def _is_table(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return len(ast.unparse(node)) <= _LARGEST_TABLE


def _literals(node: ast.AST) -> Iterator[ast.Constant]:
    """Literals that are input: not what belongs to a witness, no docstrings, no formats."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str | int | float | bytes):
            yield node
        return
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner = node.func.value
        if isinstance(owner, ast.Name) and owner.id == WITNESS:
            left_out = 2 if node.func.attr in ("compare", "call") else 1
            for given in (*node.args[left_out:], *(keyword.value for keyword in node.keywords)):
                yield from _literals(given)
            return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    if isinstance(node, ast.FormattedValue):
        yield from _literals(node.value)
        return
    if isinstance(node, ast.arguments):
        return
    for child in ast.iter_child_nodes(node):
        yield from _literals(child)


def _rename(constants: list[ast.Constant], _: ast.FunctionDef, draw: random.Random, words: Sequence[str]) -> None:
    """Put another word or number for one, wherever it stands."""
    tokens = sorted({t for c in constants for t in _tokens(c.value)})
    if not tokens:
        return
    old = draw.choice(tokens)
    new = _other_token(old, draw, words)
    for constant in constants:
        constant.value = _replaced(constant.value, old, new)


def _rename_all(constants: list[ast.Constant], _: ast.FunctionDef, draw: random.Random, words: Sequence[str]) -> None:
    """Put other words and numbers for most of them."""
    for old in sorted({t for c in constants for t in _tokens(c.value)}):
        if draw.random() < 0.6:
            new = _other_token(old, draw, words)
            for constant in constants:
                constant.value = _replaced(constant.value, old, new)


def _change_one(constants: list[ast.Constant], _: ast.FunctionDef, draw: random.Random, words: Sequence[str]) -> None:
    """Change one literal alone."""
    constant = draw.choice(constants)
    constant.value = _other_value(constant.value, draw, words)


def _change_elements(_: list[ast.Constant], function: ast.FunctionDef, draw: random.Random, __: Sequence[str]) -> None:
    """Take an element out, put one in twice, or swap two."""
    displays = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.List | ast.Tuple) and isinstance(node.ctx, ast.Load) and len(node.elts) > 1
    ]
    if displays:
        elements = draw.choice(displays).elts
        place = draw.randrange(len(elements))
        match draw.randrange(3):
            case 0:
                elements[0], elements[place] = elements[place], elements[0]
            case 1:
                elements.insert(draw.randrange(len(elements)), copy.deepcopy(elements[place]))
            case 2:
                del elements[place]


_CHANGES: tuple[_Change, ...] = (_rename, _rename_all, _change_one, _change_elements)
_WEIGHTS = (4, 3, 4, 1)


def _tokens(value: object) -> list[str]:
    if isinstance(value, bool):
        return []
    if isinstance(value, int):
        return [str(abs(value))]
    return _TOKEN.findall(value) if isinstance(value, str) else []


def _other_token(old: str, draw: random.Random, words: Sequence[str]) -> str:
    if old.isdigit():
        return str(_other_number(int(old), draw))
    new = draw.choice([word for word in words if word.isalpha() and word.lower() != old.lower()] or list(_WORDS))
    return new.upper() if old.isupper() else new.capitalize() if old[0].isupper() else new.lower()


def _other_number(value: int, draw: random.Random) -> int:
    near = [value + 1, value + 2, value + 3, value * 2, value + 10, max(value - 1, 0), max(value - 2, 0), value * 3 + 1]
    if value > 20:
        near += [value + draw.randrange(1, value), value // 2, value * 10, value - draw.randrange(1, value)]
    return draw.choice([number for number in near if number != value])


def _replaced(value: object, old: str, new: str) -> str | int | float | bytes:
    """A value with another token for one."""
    if isinstance(value, str):
        return _TOKEN.sub(lambda match: new if match[0] == old else match[0], value)
    if isinstance(value, int) and not isinstance(value, bool) and str(abs(value)) == old:
        return int(new) if value >= 0 else -int(new)
    return value  # type: ignore[return-value]


def _other_value(value: object, draw: random.Random, words: Sequence[str]) -> str | int | float | bytes:
    """A value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return draw.choice((_other_number(abs(value), draw), -value, 0, value + 1, value - 1))
    if isinstance(value, float):
        return draw.choice((value * 2, value + 1, value + 0.5, value / 4, round(value * 1.37, 3), -value))
    if isinstance(value, bytes):
        return value + draw.choice((b"x", b"0", value))
    text = str(value)
    place = draw.randrange(len(text) + 1)
    word = draw.choice(list(words))
    return draw.choice((
        word, text + word, f"{word} {text}", text + text, text[:place] + draw.choice("aexZ07-_ ") + text[place:],
        text[:place] + text[place + 1 :], text[::-1], text.upper(), text.lower(), text.title(), text[:place],
        text[place:],
    ))  # fmt: skip
