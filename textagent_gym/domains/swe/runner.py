"""Run in a sandbox: pytest on some files, and a report of what happened that the tested code has no way to write.

    python -P runner.py DESCRIPTOR ROOT [alone] < requests

Two processes: this one imports pytest and nothing of the repository, holds the descriptor that answers go to, and
cannot be looked into by the other. The other one, forked off it for each request, runs the tests, and can say what it
wants over a pipe; what it says is believed only as far as its exit status and the tests that must fail (see `grader`)
bear it out. With "alone", nobody else lives in this process namespace, and everything in it ends after each request.

Unless the failures are to be explained, plain test functions are set up, called and torn down by pytest, but without
the hooks by which its plugins look on; see `Reporter.is_plain` for which. Most of a test's time is spent in those.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import select
import shutil
import signal
import sys
import time
import unittest
from collections.abc import Callable
from typing import Any

import pytest
from _pytest.config import get_config
from _pytest.tmpdir import tmppath_result_key
from _pytest.warnings import catch_warnings_for_item

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4


_LOOKING_ON = (
    "pytest_runtest_protocol", "pytest_runtest_setup", "pytest_runtest_call", "pytest_runtest_teardown",
    "pytest_runtest_makereport", "pytest_runtest_logstart", "pytest_runtest_logfinish", "pytest_runtest_logreport",
)  # fmt: skip


class Reporter:
    """Runs the tests that are wanted, and collects what each of them did.

    Args:
        wanted: their ids; `None` for all.
        first: those that run first; if none of them passes, the others do not run.
        explain: keep messages of failures.
    """

    def __init__(self, wanted: list[str] | None, first: list[str], *, explain: bool) -> None:
        self.wanted = set(wanted) if wanted is not None else None
        self.first = set(first)
        self.explain = explain
        self.phases: dict[str, dict[str, str]] = {}
        self.messages: dict[str, str] = {}

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        if self.wanted is not None:
            left_out = [item for item in items if item.nodeid not in self.wanted]
            items[:] = [item for item in items if item.nodeid in self.wanted]
            config.hook.pytest_deselected(items=left_out)
        items.sort(key=lambda item: item.nodeid not in self.first)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if self.explain:
            return None
        hooks = [getattr(session.config.hook, name) for name in _LOOKING_ON]
        strangers = [
            hook
            for hook in hooks
            for found in hook.get_hookimpls()
            if found.plugin is not self and not found.function.__module__.startswith("_pytest.")
        ]
        for item, following in zip(session.items, [*session.items[1:], None], strict=True):
            if self.first and item.nodeid not in self.first:
                if not any(list(phases.values()) == ["passed"] * 3 for phases in self.phases.values()):
                    break
                self.first = set()
            if isinstance(item, pytest.Function) and self.is_plain(item) and not strangers:
                self.run(item, following)
            else:
                session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail or session.shouldstop:
                break
        return True

    def is_plain(self, item: pytest.Function) -> bool:
        """A function without marks and fixtures that need more than pytest's fixtures and its care for warnings."""
        marks = {mark.name for mark in item.iter_markers()}
        return (
            type(item) is pytest.Function
            and marks <= {"parametrize", "usefixtures", "filterwarnings"}
            and not {"caplog", "subtests"} & set(item.fixturenames)
        )

    def run(self, item: pytest.Function, following: pytest.Item | None) -> None:
        """What pytest's own protocol does (`_pytest.runner.runtestprotocol`), less the hooks."""
        state = item.session._setupstate
        with catch_warnings_for_item(config=item.config, ihook=item.ihook, when="runtest", item=item):
            passed = item.stash[tmppath_result_key] = {}
            phases = {"setup": self.outcome(lambda: state.setup(item))}
            passed["setup"] = phases["setup"] == "passed"
            if passed["setup"]:
                phases["call"] = self.outcome(item.runtest)
                passed["call"] = phases["call"] == "passed"  # Temporary folders of failed tests are kept, if asked for.
            phases["teardown"] = self.outcome(lambda: state.teardown_exact(following))
        item.funcargs = None  # type: ignore[assignment]
        self.phases[item.nodeid] = phases
        item.session.testsfailed += "failed" in phases.values()

    def outcome(self, function: Callable[[], object]) -> str:
        """What became of a phase."""
        try:
            function()
        except (KeyboardInterrupt, pytest.exit.Exception):
            raise
        except (pytest.skip.Exception, pytest.xfail.Exception, unittest.SkipTest):
            return "skipped"
        except BaseException:  # noqa: BLE001 (whatever a test raises)
            return "failed"
        return "passed"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        outcome = report.outcome
        if hasattr(report, "wasxfail"):  # Expected failures and unexpected passes say nothing of a repair.
            outcome = "skipped"
        phases = self.phases.setdefault(report.nodeid, {})
        if phases.get(report.when or "") != "failed":  # Sub-tests report the same phase several times.
            phases[report.when or ""] = outcome
        if self.explain and report.failed and report.longrepr is not None:
            self.messages.setdefault(report.nodeid, str(report.longrepr)[-4000:])


def run_tests(request: dict[str, Any], pipe: int) -> int:
    """Run the tests in this process, say what happened, and return pytest's exit status."""
    paths = [os.path.join(os.getcwd(), path) for path in request["paths"]]
    # Behind what decides, before what happens to be installed.
    installed = (place for place, path in enumerate(sys.path) if path.endswith(("site-packages", "dist-packages")))
    place = next(installed, len(sys.path))
    sys.path[place:place] = paths
    os.environ["PYTHONPATH"] = os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    # What decides on the outcome of a test; tested code has no business with it.
    from _pytest import reports, runner

    def watched() -> list[object]:
        made = reports.TestReport.__dict__["from_item_and_call"]
        return [
            made.__func__, made.__func__.__code__, runner.call_and_report, runner.call_and_report.__code__,
            runner.CallInfo.__dict__["from_call"].__func__.__code__, runner.pytest_runtest_makereport.__code__,
            runner.runtestprotocol.__code__, pytest.main, reports.BaseReport.__dict__["failed"],
            reports.BaseReport.__dict__["passed"], Reporter.pytest_runtest_logreport.__code__, AssertionError,
            Reporter.run.__code__, Reporter.outcome.__code__, runner.SetupState.__dict__["setup"],
            pytest.Function.__dict__["runtest"],
        ]  # fmt: skip

    before = watched()
    explain = request["explain"]
    reporter = Reporter(request["tests"], request["first"], explain=explain)
    quick = ["--assert=plain", "--tb=no", "-p", "no:unraisableexception", "-p", "no:threadexception"]
    arguments = [
        *request["files"], "-q", "-p", "no:cacheprovider", "--import-mode=append", "-o", "addopts=",
        f"--rootdir={os.getcwd()}", f"--confcutdir={os.getcwd()}",
        f"--maxfail={request['maxfail']}", "--continue-on-collection-errors",
        *(["--assert=rewrite", "--tb=short"] if explain else quick),
    ]  # fmt: skip
    gc.set_threshold(50_000, 20, 20)  # The process is short.
    status = int(pytest.main(arguments, plugins=[reporter]))
    report = {
        "phases": reporter.phases,
        "messages": reporter.messages,
        "tampered": any(a is not b for a, b in zip(before, watched(), strict=True)),
        "status": status,
    }
    data = json.dumps(report).encode()
    while data:
        data = data[os.write(pipe, data) :]
    return status


def supervise(request: dict[str, Any], root: str, private: list[int]) -> dict[str, Any]:
    """Run the tests in a process of their own, and return what it says, with its exit status.

    Args:
        request: which tests.
        root: of the repository.
        private: file descriptors that the other process must not have.
    """
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            for descriptor in (ours, *private):
                os.close(descriptor)
            _prctl(_PR_SET_DUMPABLE, 1)
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # It ends with this process.
            os.setsid()
            os.chdir(root)
            code = run_tests(request, theirs)
        finally:
            os._exit(code)
    os.close(theirs)
    data = b""
    deadline = time.monotonic() + request["seconds"]
    status: int | None = None
    try:
        while status is None:
            left = deadline - time.monotonic()
            if left <= 0:
                return {"timed_out": True}
            if select.select([ours], [], [], min(left, 0.02))[0]:
                part = os.read(ours, 1 << 16)
                data += part
                if part:
                    continue
                time.sleep(0.001)  # It has closed its end, and is about to leave.
            done, code = os.waitpid(pid, os.WNOHANG)
            if done:
                status = os.waitstatus_to_exitcode(code)
        while select.select([ours], [], [], 0)[0]:  # Somebody may still hold the other end: no waiting for its end.
            part = os.read(ours, 1 << 16)
            if not part:
                break
            data += part
    finally:
        os.close(ours)
    try:
        report = json.loads(data)
    except ValueError:
        report = {}
    return {**(report if isinstance(report, dict) else {}), "exit": status}


def clean_up() -> None:
    """End everything that the tests have left behind; only for a process namespace of our own."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    for name in os.listdir("/dev/shm"):
        path = os.path.join("/dev/shm", name)
        shutil.rmtree(path, ignore_errors=True) if os.path.isdir(path) else os.unlink(path)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def main() -> None:
    """Answer requests until there are no more."""
    answer, root, alone = int(sys.argv[1]), sys.argv[2], sys.argv[3:] == ["alone"]
    requests = os.dup(0)
    silence = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(silence, descriptor)
    get_config()  # Loads pytest's own plugins, once for all.
    gc.collect()
    gc.freeze()
    _prctl(_PR_SET_DUMPABLE, 0)  # Nobody reads our memory or our descriptors.
    os.write(answer, bytes(8))  # Ready.
    while True:
        head = _read(requests, 8)
        if len(head) < 8:
            return
        request = json.loads(_read(requests, int.from_bytes(head, "big")))
        data = json.dumps(supervise(request, root, [requests, answer])).encode()
        if alone:
            clean_up()
        data = len(data).to_bytes(8, "big") + data
        while data:
            data = data[os.write(answer, data) :]


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _read(descriptor: int, length: int) -> bytes:
    data = b""
    while len(data) < length:
        part = os.read(descriptor, min(length - len(data), 1 << 16))
        if not part:
            break
        data += part
    return data


if __name__ == "__main__":
    main()
