"""Finds the code that a problem runs through: functions that few tests without the problem run through come first."""

from __future__ import annotations

import ast
import contextlib
import json
import re
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .runs import TREE, below, is_source, recall, remember, run, seen_tests, written

_MOST_PLACES = 120  # More are never read in an episode.
_LONG = 5_000  # Characters of a function beyond which its parts are places of their own.
_ANSWER = 7_500  # Characters; an observation that is too long is cut in the middle.
_PARTS = ("body", "handlers", "orelse", "finalbody")


@dataclass(frozen=True, slots=True)
class Place:
    """A function, or other whole statements.

    Attributes:
        file: path of its file.
        first, last: numbers of its first and last line.
        name: name of the function, or "".
        texts: texts of the strings in it.
    """

    file: str
    first: int
    last: int
    name: str
    texts: tuple[str, ...]


def places(file: str) -> list[Place]:
    """The functions of a file, and what stands between them."""
    listed: list[Place] = []
    try:
        text = (TREE / file).read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (SyntaxError, ValueError, OSError):
        return []
    rows = text.splitlines()

    def add(node: ast.stmt, name: str) -> None:
        first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])
        parts = [one for name_ in _PARTS for one in getattr(node, name_, [])]
        if parts and sum(map(len, rows[first - 1 : node.end_lineno])) > _LONG:
            for part in parts:  # Too long to be read at once.
                for one in part.body if isinstance(part, ast.ExceptHandler) else [part]:
                    add(one, node.name if isinstance(node, ast.FunctionDef) else name)
            return
        inner = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        listed.append(Place(file, first, node.end_lineno or first, name, tuple(inner)))

    def visit(body: list[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                add(node, node.name)
            elif isinstance(node, ast.ClassDef):
                visit(node.body)
            elif isinstance(node, ast.If | ast.Try):
                inside = [*node.body, *node.orelse, *getattr(node, "finalbody", [])]
                for handler in getattr(node, "handlers", []):
                    inside += handler.body
                if any(isinstance(one, ast.FunctionDef | ast.ClassDef) for one in inside):
                    visit(inside)
                else:
                    add(node, "")
            elif not isinstance(node, ast.Import | ast.ImportFrom | ast.Pass):
                add(node, "")

    visit(tree.body)
    return listed


def sources() -> Iterator[str]:
    """The code of the repository, without tests."""
    for path in sorted(TREE.rglob("*.py")):
        if is_source(below(str(path))):
            yield below(str(path))


def locate(request: dict[str, Any]) -> dict[str, Any]:
    """Rank the code by what the problem and the visible tests run through, and by the words of the statement."""
    state = recall()
    started = time.monotonic()
    seconds = request["seconds"]
    ran = None
    if state["tests"]:
        with written(state["texts"]):
            ran = run(state["files"], seconds / 2, set(state["tests"]), trace="lines")
    state["seconds"] = time.monotonic() - started
    middle = time.monotonic()
    seen = run(seen_tests(), seconds - state["seconds"], trace="calls")
    if seen is None and time.monotonic() - started < seconds:
        seen = run(seen_tests(), seconds - (time.monotonic() - started))
    state["seconds_seen"] = time.monotonic() - middle
    state["passing"] = sorted(test for test, passed in (seen or {"outcomes": {}})["outcomes"].items() if passed)
    lines: dict[str, set[int]] = defaultdict(set)
    for file, line in (ran or {"lines": []})["lines"]:
        lines[file].add(line)
    called: dict[str, dict[int, int]] = defaultdict(dict)
    for file, line, count in (seen or {"called": []})["called"]:
        called[file][line] = count
    state["lines"] = {file: sorted(numbers) for file, numbers in lines.items()}
    remember(state)
    words = set(re.findall(r"[A-Za-z_]\w+", request["text"]))
    ranked = []
    for file in sources():
        if state["tests"] and file not in lines:
            continue
        for place in places(file):
            worth = _worth(place, lines.get(file), called.get(file, {}), words, request["text"])
            ranked.append((worth, place))
    ranked.sort(key=lambda item: (-item[0], item[1].file, item[1].first))
    listed: list[list[Any]] = []
    room = _ANSWER
    for worth, place in ranked[:_MOST_PLACES]:
        with contextlib.suppress(OSError):
            rows = (TREE / place.file).read_text(encoding="utf-8").splitlines()[place.first - 1 : place.last]
            listed.append([place.file, place.first, place.last, sum(map(len, rows)) + len(rows), round(worth, 3)])
            room -= len(json.dumps(listed[-1])) + 2
        if room < 0:
            break
    return {"places": listed, "seen": len(state["passing"])}


def _worth(place: Place, ran: set[int] | None, called: dict[int, int], words: set[str], text: str) -> float:
    """How likely the mistake is here."""
    numbers = range(place.first, place.last + 1)
    tests = max((called.get(line, 0) for line in numbers), default=0)
    mentioned = bool(place.name) and place.name in words
    is_quoted = any(len(part) > 7 and part.strip() in text for part in place.texts)
    worth: float = 1 / (1 + tests) ** 0.5 + 0.5 * mentioned + 0.5 * is_quoted
    if not place.name:
        worth /= 3
    has_run = any(line in ran for line in numbers[1:] or numbers) if ran is not None else mentioned or is_quoted
    return worth if has_run else worth / 10  # It may still be a default or a constant that matters.
