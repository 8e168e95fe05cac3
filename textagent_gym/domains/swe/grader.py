"""Decides whether an agent has repaired a repository, in a tree that the agent has never touched.

The tree is the task's own, with the hidden tests, and with what the agent has changed in *source files*: tests,
settings of pytest, `conftest.py`, start-up files, links and `.git` never come from the agent. The tests run in a
sandbox of the same kind, by `runner`.

Tested code runs in the process that tests it, and could try to report what it likes. So the hidden tests stand among
`twins` that *must fail*; a report in which one of them did anything else is a forgery and is worth nothing. What does
not report, is skipped or is expected to fail has not passed.
"""

from __future__ import annotations

import json
import random
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from textagent_gym.domains.swe import runner
from textagent_gym.domains.swe.sandbox.base import Changes, Sandbox
from textagent_gym.domains.swe.sources import source_changes
from textagent_gym.domains.swe.twins import Twins, rewrite

TWINS = 24
"""Tests that must fail, in each run."""
_LEAST_CHANCE = 0.1
PASSED = {"setup": "passed", "call": "passed", "teardown": "passed"}


@dataclass(frozen=True, slots=True)
class TestRun:
    """What a run of tests reported.

    Attributes:
        passed: tests that passed in all phases.
        failed: tests that ran and did not.
        messages: of the failed ones.
        forged: why the report cannot be believed, or "".
        timed_out: it did not end in time.
    """

    __test__ = False  # It is none, whatever pytest thinks of its name.

    passed: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()
    messages: Mapping[str, str] = field(default_factory=dict)
    forged: str = ""
    timed_out: bool = False


@dataclass(frozen=True, slots=True)
class Grade:
    """What a repair is worth.

    Attributes:
        repaired: hidden failing tests that pass now.
        missing: those that do not.
        broken: tests that passed before and do not now; empty where they were not run because nothing was repaired.
        forged: why the report cannot be believed, or "".
        timed_out: the tests did not end in time.
    """

    repaired: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    forged: str = ""
    timed_out: bool = False

    @property
    def resolved(self) -> bool:
        """Everything that failed passes, and nothing else was broken."""
        return not (self.missing or self.broken or self.forged or self.timed_out) and bool(self.repaired)

    @property
    def credit(self) -> int:
        """Number of repaired tests that count: none while a test that passed is broken."""
        return 0 if self.broken or self.forged or self.timed_out else len(self.repaired)


def run_tests(
    sandbox: Sandbox,
    layers: Sequence[Path],
    files: Changes,
    tests: Sequence[str] | None,
    *,
    test_files: Sequence[str],
    paths: Sequence[str],
    first: Sequence[str] = (),
    must_fail: Sequence[str] = (),
    maxfail: int = 0,
    explain: bool = False,
    seconds: float = 300.0,
) -> TestRun:
    """Run tests of a tree in a fresh sandbox.

    Args:
        sandbox: whose kind of sandbox is used.
        layers: of the tree.
        files: written over it.
        tests: their ids; `None` for all in `test_files`.
        test_files: where they are.
        paths: folders that are importable, below the root.
        first: ids of tests that run first; if none of them passes, the others do not run.
        must_fail: ids of tests that fail unless the report is forged.
        maxfail: stop after so many failures; 0 for never. Only with `explain`.
        explain: say in messages what an assertion was about, which takes longer.
        seconds: for everything.
    """
    request = {
        "tests": None if tests is None else list(tests),
        "files": list(test_files),
        "paths": list(paths),
        "first": list(first),
        "maxfail": maxfail,
        "explain": explain,
        "seconds": seconds,
    }
    answer = sandbox.execute(
        layers,
        files,
        program=Path(runner.__file__),
        message=json.dumps(request).encode(),
        timeout=seconds + 10,
    )
    if answer is None:
        return TestRun(timed_out=True)
    try:
        report = json.loads(answer)
        return _believe(report, set(must_fail))
    except (ValueError, KeyError, TypeError, AttributeError):
        return TestRun(forged="there is no report")


def _believe(report: dict[str, Any], expected: set[str]) -> TestRun:
    """What a report says, once it has been doubted."""
    if report.get("timed_out"):
        return TestRun(timed_out=True)
    if report["status"] != report["exit"]:
        return TestRun(forged=f"pytest ended with {report['status']} and its process with {report['exit']}")
    if report["tampered"]:
        return TestRun(forged="pytest has been tampered with")
    phases: dict[str, dict[str, str]] = report["phases"]
    passed = {test for test, outcome in phases.items() if outcome == PASSED}
    for test in sorted(expected):
        if phases.get(test, {}).get("call") != "failed":
            return TestRun(forged="a test that must fail did not")
    if expected and report["exit"] != 1:
        return TestRun(forged="tests failed, but pytest's exit status says otherwise")
    failed = frozenset(phases) - passed - expected
    messages = {test: text for test, text in report["messages"].items() if test in failed}
    return TestRun(frozenset(passed) - expected, failed, messages)


def new_draw() -> random.Random:
    """Randomness that nobody can foresee."""
    return random.Random(secrets.randbits(128))


def grade(
    sandbox: Sandbox,
    layers: Sequence[Path],
    changes: Changes,
    *,
    fail_to_pass: Sequence[str],
    pass_to_pass: Sequence[str],
    tests: Mapping[str, str],
    twins: Twins,
    paths: Sequence[str],
    seconds: float = 300.0,
) -> Grade:
    """Grade what an agent has made of a tree.

    The hidden tests run first, and the others only if some of them pass, since nothing is paid otherwise. Where there
    are few twins, and a report could be forged by guessing which tests are hidden, those run up to three times.

    Args:
        sandbox: whose kind of sandbox is used; the agent's own tree is not.
        layers: of the task's tree, with the mistakes and with all tests.
        changes: of the agent; see `source_changes` for what counts of them.
        fail_to_pass, pass_to_pass: ids of tests.
        tests: the test files, by path, hidden tests included.
        twins: of the hidden tests.
        paths: folders that are importable.
        seconds: for each run.
    """
    tree = {str(path.relative_to(layer)) for layer in layers for path in layer.rglob("*") if path.is_file()}
    allowed = source_changes(changes, tests, tree).counted
    if not allowed:
        return Grade(missing=tuple(fail_to_pass))

    hidden = sorted({test.partition("[")[0] for test in fail_to_pass})
    repaired = tuple(fail_to_pass)
    broken: tuple[str, ...] = ()
    chance = 1.0  # That somebody who forges a report has guessed right each time.
    for others in (pass_to_pass, (), ()):
        made = rewrite(tests, [*fail_to_pass, *others], hidden, twins=twins, count=TWINS, draw=new_draw())
        found = run_tests(
            sandbox,
            layers,
            {**{name: text.encode() for name, text in made.files.items() if text != tests[name]}, **allowed},
            [*made.names.values(), *made.twins],
            test_files=sorted({test.partition("::")[0] for test in (*made.names, *made.twins)}),
            paths=paths,
            first=[*(made.names[test] for test in fail_to_pass), *made.twins],
            must_fail=made.must_fail,
            seconds=seconds,
        )
        repaired = tuple(test for test in repaired if made.names[test] in found.passed)
        if not repaired or found.forged or found.timed_out:
            return Grade((), tuple(fail_to_pass), (), found.forged, found.timed_out)
        broken += tuple(test for test in others if made.names[test] not in found.passed)
        chance *= made.chance
        if broken or chance <= _LEAST_CHANCE:
            break
    missing = tuple(test for test in fail_to_pass if test not in repaired)
    return Grade(repaired, missing, broken)
