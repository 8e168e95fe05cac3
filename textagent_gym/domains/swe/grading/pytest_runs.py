"""Runs tests of a tree in a sandbox with pytest, and reads what is reported.

The report is made in the process that is tested: it is true of code that nobody has tampered with, and no more than a
claim of code that an agent has changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from textagent_gym.sandbox.base import Changes, Question, Sandbox

RUNNER = Path(__file__).with_name("runner.py")
"""The program that runs in the sandbox; never imported here, because it needs pytest."""
TIMED_OUT = b"timed out"
"""What the runner answers when the time is up."""
_SPARE = 10.0  # Seconds for the sandbox, beyond those of the request.
_PASSED = {"setup": "passed", "call": "passed", "teardown": "passed"}


@dataclass(frozen=True, slots=True)
class TestRun:
    """What a run of tests reported.

    Attributes:
        passed: tests that passed in all phases.
        failed: tests that ran and did not.
        messages: messages of the failed tests.
        forged: reason why the report cannot be a report of pytest's, or "".
        timed_out: whether the run did not end in time.
    """

    __test__ = False  # It is not a test, whatever pytest thinks of its name.

    passed: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()
    messages: Mapping[str, str] = field(default_factory=dict)
    forged: str = ""
    timed_out: bool = False


def question(request: Mapping[str, Any], files: Changes | None = None) -> Question:
    """A request to the runner, which names its `seconds`.

    Args:
        request: request of one of the kinds in `runner.KINDS`.
        files: files written over the tree for this request alone.
    """
    return Question(json.dumps(request).encode(), request["seconds"] + _SPARE, files or {})


def ask_for_tests(
    tests: Sequence[str] | None,
    *,
    test_files: Sequence[str],
    paths: Sequence[str],
    maxfail: int = 0,
    explain: bool = False,
    seconds: float = 300.0,
) -> Question:
    """The question what becomes of some tests.

    Args:
        tests: ids of the tests; `None` for all in `test_files`.
        test_files: files of the tests.
        paths: folders that are importable, below the root.
        maxfail: number of failures after which the run stops; 0 for no limit. Only with `explain`.
        explain: whether messages say what an assertion was about, which takes longer.
        seconds: seconds for all tests together.
    """
    request = {
        "kind": "tests",
        "tests": None if tests is None else sorted(tests),
        "files": list(test_files),
        "paths": list(paths),
        "maxfail": maxfail,
        "explain": explain,
        "seconds": seconds,
    }
    return question(request)


def read_run(answer: bytes | None, asked: Sequence[str] | None = None) -> TestRun:
    """The answer to `ask_for_tests`.

    Args:
        answer: answer of the sandbox.
        asked: ids of the tests that were asked for; `None` if all were.
    """
    if answer is None or answer == TIMED_OUT:
        return TestRun(timed_out=True)
    if not answer:
        return TestRun()  # The process has ended without a word, as one does that cannot even import the code.
    try:
        report = json.loads(answer)
        phases = {str(test): dict(outcome) for test, outcome in report["phases"].items()}
        messages = {str(test): str(text) for test, text in report["messages"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return TestRun(forged="this is no report of tests")
    if asked is not None and not set(phases) <= set(asked):
        return TestRun(forged="there is a report of tests that were not asked for")
    passed = frozenset(test for test, outcome in phases.items() if outcome == _PASSED)
    return TestRun(passed, frozenset(phases) - passed, messages)


def run_tests(
    sandbox: Sandbox,
    layers: Sequence[Path],
    files: Changes,
    *,
    test_files: Sequence[str],
    paths: Sequence[str],
    maxfail: int = 0,
    explain: bool = False,
    seconds: float = 300.0,
) -> TestRun:
    """Run all tests in some files of a tree, in a fresh sandbox; see `ask_for_tests`.

    Args:
        sandbox: sandbox whose kind is used.
        layers: layers of the tree.
        files: files written over the tree.
        test_files, paths, maxfail, explain, seconds: arguments of `ask_for_tests`.
    """
    asked = ask_for_tests(None, test_files=test_files, paths=paths, maxfail=maxfail, explain=explain, seconds=seconds)
    (answer,) = sandbox.ask(layers, files, program=RUNNER, questions=[asked])
    return read_run(answer)
