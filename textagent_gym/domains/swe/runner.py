"""Run in a sandbox: pytest on some files, and a report of what happened that the tested code has no way to write.

    python -P runner.py DESCRIPTOR ROOT [alone] < requests

Two processes: this one imports pytest and nothing of the repository, holds the descriptor that answers go to, and
cannot be looked into by the other. The other one, forked off it for each request, runs the tests, and can say what it
wants over a pipe; what it says is believed only as far as its exit status and the tests that must fail (see `grader`)
bear it out. With "alone", nobody else lives in this process namespace, and everything in it ends after each request.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import sys
import time
from typing import Any

import pytest
from _pytest.config import get_config

_PR_SET_DUMPABLE = 4


class Reporter:
    """Collects what each test did."""

    def __init__(self, wanted: list[str] | None) -> None:
        self.wanted = set(wanted) if wanted is not None else None
        self.collected: list[str] = []
        self.phases: dict[str, dict[str, str]] = {}
        self.messages: dict[str, str] = {}
        self.errors: list[str] = []

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        if self.wanted is not None:
            left_out = [item for item in items if item.nodeid not in self.wanted]
            items[:] = [item for item in items if item.nodeid in self.wanted]
            config.hook.pytest_deselected(items=left_out)
        self.collected = [item.nodeid for item in items]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.errors.append(str(report.longrepr)[-4000:])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        outcome = report.outcome
        if hasattr(report, "wasxfail"):  # Expected failures and unexpected passes say nothing of a repair.
            outcome = "skipped"
        phases = self.phases.setdefault(report.nodeid, {})
        if phases.get(report.when or "") != "failed":  # Sub-tests report the same phase several times.
            phases[report.when or ""] = outcome
        if report.failed and report.longrepr is not None:
            self.messages.setdefault(report.nodeid, str(report.longrepr)[-4000:])


def run_tests(request: dict[str, Any], pipe: int) -> int:
    """Run the tests in this process, say what happened, and return pytest's exit status."""
    paths = [os.path.join(os.getcwd(), path) for path in request["paths"]]
    sys.path += paths
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
        ]  # fmt: skip

    before = watched()
    reporter = Reporter(request["tests"])
    arguments = [
        *request["files"], "-q", "-p", "no:cacheprovider", "--import-mode=append", "-o", "addopts=", "--tb=short",
        f"--rootdir={os.getcwd()}", f"--assert={'rewrite' if request['explain'] else 'plain'}",
        f"--maxfail={request['maxfail']}", "--continue-on-collection-errors",
    ]  # fmt: skip
    status = int(pytest.main(arguments, plugins=[reporter]))
    report = {
        "collected": reporter.collected,
        "phases": reporter.phases,
        "messages": reporter.messages,
        "errors": reporter.errors,
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
            _dumpable(1)
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
    _dumpable(0)  # Nobody reads our memory or our descriptors.
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


def _dumpable(value: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, value, 0, 0, 0)


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
