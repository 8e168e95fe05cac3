"""Decides whether an agent has repaired a repository, in a tree that the agent has never touched.

The tree is the task's own, with what the agent has changed in *source files* (see `source_files`). Hidden tests run
there as *probes* (see `hidden`): each asks the code something, in a process of its own that is sealed from all others,
and says what it saw. What is right is known here alone; no answer that is expected ever enters a sandbox. To be paid,
the code has to give the right answers to the hidden tests, and to the same questions with other input.

The tests that the agent can see run last, with pytest. Their report is made where the tested code is, and is believed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from textagent_gym.domains.swe.grading.hidden.answers import Seen
from textagent_gym.domains.swe.grading.hidden.exam import Exam, Group, kept_question, read_answer, version_question
from textagent_gym.domains.swe.grading.pytest_runs import RUNNER, TIMED_OUT, ask_for_tests, read_run
from textagent_gym.sandbox.base import Changes, Question, Sandbox

_FORGED = "the tested code has said something that no probe sees"


@dataclass(frozen=True, slots=True)
class Grade:
    """What a repair is worth.

    Attributes:
        repaired: hidden tests that failed and pass now, with other input too.
        missing: hidden tests that failed and still do.
        broken: tests that passed before and do not now; empty where they were not run because nothing was repaired.
        forged: reason why what the sandbox said cannot be true, or "".
        timed_out: whether the tests did not end in time.
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


class _Stopped(Exception):  # noqa: N818 (nothing has gone wrong here)
    """There is nothing more to find out."""

    def __init__(self, *, forged: str = "", timed_out: bool = False) -> None:
        self.forged, self.timed_out = forged, timed_out


def grade(sandbox: Sandbox, layers: Sequence[Path], changes: Changes, exam: Exam) -> Grade:
    """Grade what an agent has made of a tree.

    Args:
        sandbox: sandbox whose kind is used; the agent's own tree is not.
        layers: layers of the task's tree, with the mistakes and without hidden tests.
        changes: the agent's changes, those that count.
        exam: questions, and the right answers.
    """
    tests = exam.tests
    if not changes:
        return Grade(missing=tests)
    answers = iter(sandbox.ask(layers, changes, program=RUNNER, questions=_questions(exam)))
    repaired: list[str] = []
    try:
        for group in exam.groups:
            repaired += _repaired(group, answers)
        if not repaired:
            return Grade(missing=tests)
        broken = tuple(test for kept in exam.kept for test in kept.broken(_heard(answers)))
        run = read_run(next(answers, None), exam.visible)
        if run.forged or run.timed_out:
            raise _Stopped(forged=run.forged, timed_out=run.timed_out)
        broken += tuple(test for test in exam.visible if test not in run.passed)
    except _Stopped as stopped:
        return Grade((), tests, (), stopped.forged, stopped.timed_out)
    return Grade(tuple(repaired), tuple(test for test in tests if test not in set(repaired)), broken)


def _questions(exam: Exam) -> Iterator[Question]:
    """The versions, the rows that are kept and the visible tests; none any more when the time for all is spent.

    Wrong answers stop nothing but what comes after all versions: how long a grading takes would tell which of the
    versions a forger has got right, one after the other.
    """
    deadline = time.monotonic() + exam.total
    asked: list[Callable[[float], Question]] = [
        *(partial(version_question, version, exam.paths) for group in exam.groups for version in group.versions),
        *(partial(kept_question, kept, exam.paths) for kept in exam.kept),
        lambda seconds: ask_for_tests(exam.visible, test_files=exam.visible_files, paths=exam.paths, seconds=seconds),
    ]
    for question in asked:
        left = deadline - time.monotonic()
        if left <= 0:
            return
        yield question(min(exam.seconds, left))


def _repaired(group: Group, answers: Iterator[bytes | None]) -> list[str]:
    """The tests of a group that pass; none unless the answers with other input are right too."""
    right = []
    everywhere = True
    for version in group.versions:
        seen = _heard(answers)
        if version.is_right(seen[0] if len(seen) == 1 else None):
            right += [version.test] if version.is_original else []
        elif not version.is_original:
            everywhere = False
    return right if everywhere else []


def _heard(answers: Iterator[bytes | None]) -> Sequence[Seen | None]:
    """What the next probes saw; nothing where their process has ended without a word, as code may that is broken.

    Raises:
        _Stopped: it cannot be one, or the time is up.
    """
    answer = next(answers, None)
    if answer is None or answer == TIMED_OUT:
        raise _Stopped(timed_out=True)
    seen = read_answer(answer)
    if answer and (not seen or None in seen):
        raise _Stopped(forged=_FORGED)
    return seen
