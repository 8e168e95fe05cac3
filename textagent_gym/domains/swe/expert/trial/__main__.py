"""The commands."""

from __future__ import annotations

import ast
import json
import os
import sys
import time
from typing import Any

from .places import locate
from .problem import reproduce
from .runs import HOME, ROOT, TREE, recall, run, seen_tests, write, written

_UNUSED = 0.1
"""What a repair of a line is worth that the problem does not run through."""


def attempt(request: dict[str, Any]) -> dict[str, Any]:
    """Try repairs, one after the other, as long as there is time: the problem goes away and the visible tests pass."""
    state = recall()
    deadline = time.monotonic() + request["seconds"]
    lines = {file: set(numbers) for file, numbers in state["lines"].items()}
    limit = max(3.0, 5 * state["seconds"])
    limit_seen = max(10.0, 3 * state["seconds_seen"])
    queue = [(_value(repair, lines), number, repair) for number, repair in enumerate(request["repairs"])]
    queue.sort(key=lambda item: (-item[0], item[1]))
    improvements: list[tuple[int, float, float]] = []
    done = 0
    for value, number, repair in queue[request["skip"] :]:
        left = deadline - time.monotonic()
        if left < 0:
            break
        longest = left + request["seconds"] / 3  # The shell would be ended with us in the midst of a repair.
        done += 1
        text = _repaired(repair)
        if text is None:
            continue
        with written({repair[0]: text}):
            share = 1.0
            if state["tests"] and not request["blind"]:
                with written(state["texts"]):
                    report = run(state["files"], min(limit, longest), set(state["tests"]))
                share = _share(state["tests"], (report or {"outcomes": {}})["outcomes"])
            if share <= max((one[1] for one in improvements), default=0.0):
                continue
            passing = set(state["passing"])
            report = run(seen_tests(), min(limit_seen, longest), passing, maxfail=1) if passing else {"outcomes": {}}
            if report is not None and all(report["outcomes"].get(test) for test in passing):
                improvements.append((number, share, value))
                if share == 1:  # Those that follow are less likely.
                    break
    return {"improvements": improvements, "done": done, "left": len(queue) - request["skip"] - done}


def _value(repair: list[Any], lines: dict[str, set[int]]) -> float:
    """The weight of a repair, less where the problem does not run through its line."""
    file, first, _, start, _, _, weight = repair
    rows = (TREE / file).read_text(encoding="utf-8").splitlines(keepends=True)[first - 1 :]
    line = first + "".join(rows)[:start].count("\n")
    ran = lines.get(file, set())
    return float(weight) * (1.0 if not lines or line in ran or line - 1 in ran else _UNUSED)


def _repaired(repair: list[Any]) -> str | None:
    """The text of a file with a repair; `None` if that is no Python."""
    file, first, last, start, end, text, _ = repair
    rows = (TREE / file).read_text(encoding="utf-8").splitlines(keepends=True)
    code = "".join(rows[first - 1 : last])
    repaired: str = "".join(rows[: first - 1]) + code[:start] + text + code[end:] + "".join(rows[last:])
    try:
        ast.parse(repaired)
    except (SyntaxError, ValueError):
        return None
    return repaired


def _share(tests: dict[str, int], outcomes: dict[str, bool]) -> float:
    """How much of the problem is gone: each expectation counts alike, however many tests are made for it.

    Numbers below 0 are of tests that only show whether a repair goes too far.
    """
    shares = {}
    for number in set(tests.values()):
        passed = [outcomes.get(test, False) for test, other in tests.items() if other == number]
        shares[number] = sum(passed) / len(passed)
    is_gone = any(share for number, share in shares.items() if number >= 0)
    return sum(shares.values()) / len(shares) if is_gone else 0.0


def keep(request: dict[str, Any]) -> dict[str, Any]:
    """Put a repair into the repository itself."""
    text = _repaired(request["repair"])
    if text is None:
        return {"kept": False}
    write(request["repair"][0], text)
    (ROOT / request["repair"][0]).write_text(text, encoding="utf-8")
    return {"kept": True}


def main() -> None:
    """Answer one request."""
    root = os.path.realpath(ROOT)
    paths = [path.replace(str(ROOT), str(TREE), 1) if path.startswith(str(ROOT)) else path for path in sys.path]
    sys.path[:] = [path for path in paths if os.path.realpath(path or ".") not in (root, str(HOME))]
    os.environ["PYTHONPATH"] = os.environ.get("PYTHONPATH", "").replace(str(ROOT), str(TREE))
    commands = {"reproduce": reproduce, "locate": locate, "attempt": attempt, "keep": keep}
    print("ANSWER " + json.dumps(commands[sys.argv[1]](json.load(sys.stdin))))


if __name__ == "__main__":
    main()
