"""Runs tests in a copy of the tree, each time in a process of their own, and notes what they do and run through."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

ROOT = Path(os.environ.get("TESTBED", "."))
HOME = Path(tempfile.gettempdir()) / "search"
TREE = HOME / "tree"
TEST_FILE = re.compile(r"(test_.*|.*_test)\.py")
_OUTCOME = re.compile(r"^E +(.*)$", re.MULTILINE)
_MEMORY = 1 << 30  # Bytes that a run of tests may use.
_GRACE = 3.0  # Seconds in which pytest may still report after the time is up.
_OTHER_FOLDERS = {"test", "tests", "testing", "docs", "doc", "examples"}
_OTHER_FILES = {"setup.py", "conftest.py"}


class Watcher:
    """Notes what tests do, and what code they run through.

    Args:
        wanted: ids of the tests to run, or the beginning of their names; `None` for all.
        trace: "calls" for the functions that each test calls, "lines" for the lines too, "" for neither.
    """

    def __init__(self, wanted: set[str] | str | None, trace: str) -> None:
        self.wanted = wanted
        self.trace = trace
        self.outcomes: dict[str, bool] = {}
        self.messages: dict[str, list[str]] = {}
        self.entered: list[str] = []
        self.called: dict[tuple[str, int], int] = defaultdict(int)
        self.lines: set[tuple[str, int]] = set()
        self._here: set[tuple[str, int]] = set()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out what is not wanted."""
        wanted = self.wanted
        if isinstance(wanted, str):
            items[:] = [item for item in items if item.name.startswith(wanted)]
        elif wanted is not None:
            items[:] = [item for item in items if item.nodeid in wanted]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test has passed if its call has and nothing else has failed."""
        if report.failed:
            self.outcomes[report.nodeid] = False
            lines = [line.strip() for line in _OUTCOME.findall(str(report.longrepr))]
            self.messages[report.nodeid] = [line for line in lines if line and "Use -v to get" not in line][:4]
        elif report.when == "call" and report.passed and not hasattr(report, "wasxfail"):
            self.outcomes.setdefault(report.nodeid, True)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Watch the test itself."""
        if not self.trace:
            yield
            return
        self._here = set()
        sys.settrace(self._enter)
        yield
        sys.settrace(None)
        for place in self._here:
            self.called[place] += 1
        if any(is_source(below(file)) for file, _ in self._here):
            self.entered.append(item.nodeid)

    def _enter(self, frame: FrameType, event: str, argument: object) -> Any:
        file = frame.f_code.co_filename
        if not file.startswith(str(TREE)):
            return None
        self._here.add((file, frame.f_code.co_firstlineno))
        return self._line if self.trace == "lines" else None

    def _line(self, frame: FrameType, event: str, argument: object) -> Any:
        self.lines.add((frame.f_code.co_filename, frame.f_lineno))
        return self._line

    def report(self) -> dict[str, Any]:
        """Everything that was noted, as JSON can hold it."""
        return {
            "outcomes": self.outcomes,
            "messages": self.messages,
            "entered": self.entered,
            "called": [[below(file), line, count] for (file, line), count in self.called.items()],
            "lines": sorted([below(file), line] for file, line in self.lines),
        }


def is_source(file: str) -> bool:
    """A file is code of the repository, and no test."""
    path = Path(file)
    return not TEST_FILE.fullmatch(path.name) and not _OTHER_FOLDERS & set(path.parts) and path.name not in _OTHER_FILES


def below(file: str) -> str:
    return os.path.relpath(file, TREE)


def run(
    files: list[str],
    seconds: float,
    wanted: set[str] | str | None = None,
    *,
    trace: str = "",
    maxfail: int = 0,
    explain: bool = False,
) -> dict[str, Any] | None:
    """Run tests of the copy in a process of their own, as far as they come in time; `None` if they say nothing."""
    answer = HOME / "report.json"
    answer.unlink(missing_ok=True)
    watcher = Watcher(wanted, trace)
    arguments = [
        *files, "-q", "-p", "no:cacheprovider", "--import-mode=append", "-o", "addopts=", f"--rootdir={TREE}",
        f"--maxfail={maxfail}", "--continue-on-collection-errors", "--tb=short",
        f"--assert={'rewrite' if explain else 'plain'}",
    ]  # fmt: skip
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            os.chdir(TREE)
            signal.signal(signal.SIGALRM, signal.default_int_handler)  # Pytest then says how far it has come.
            signal.setitimer(signal.ITIMER_REAL, seconds)
            silence = os.open(os.devnull, os.O_RDWR)
            for descriptor in range(3):
                os.dup2(silence, descriptor)
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
            with contextlib.suppress(SystemExit):
                pytest.main(arguments, plugins=[watcher])
            answer.write_text(json.dumps(watcher.report()))
        finally:
            os._exit(0)
    deadline = time.monotonic() + seconds + _GRACE
    while not os.waitpid(pid, os.WNOHANG)[0]:
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    try:
        report: dict[str, Any] = json.loads(answer.read_text())
    except (OSError, ValueError):
        return None
    return report


def seen_tests() -> list[str]:
    """The tests that can be seen."""
    return sorted(below(str(path)) for path in TREE.rglob("*.py") if TEST_FILE.fullmatch(path.name))


def copy_tree() -> None:
    """Begin with a fresh copy."""
    shutil.rmtree(TREE, ignore_errors=True)
    shutil.copytree(ROOT, TREE, ignore=shutil.ignore_patterns(".git"))


@contextlib.contextmanager
def written(texts: dict[str, str]) -> Iterator[None]:
    """Files of the copy have other texts for a while."""
    before = {file: (TREE / file).read_text(encoding="utf-8") for file in texts}
    try:
        for file, text in texts.items():
            write(file, text)
        yield
    finally:
        for file, text in before.items():
            write(file, text)


def write(file: str, text: str) -> None:
    """Write a file with a date that it has never had, so that no compiled file from before is used."""
    (TREE / file).write_text(text, encoding="utf-8")
    stamp = time.time_ns() // 1_000_000 % 1_000_000_000
    os.utime(TREE / file, (stamp, stamp))


def remember(state: dict[str, Any]) -> None:
    (HOME / "state.json").write_text(json.dumps(state))


def recall() -> dict[str, Any]:
    state: dict[str, Any] = json.loads((HOME / "state.json").read_text())
    return state
