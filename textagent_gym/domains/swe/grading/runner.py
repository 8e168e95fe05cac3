"""Run pytest on some files, or probes (see `hidden`), in a sandbox, and report what the tested code says.

    python -P runner.py DESCRIPTOR ROOT FILTER < requests

Three processes. The first imports pytest and nothing of the repository, and never sees a request or an answer. It forks
a second one for each request, which reads it and cannot be looked into. The third one, forked off that, runs the tests
and can say what it wants over a pipe: whoever reads it must not depend on its being true. FILTER, in hexadecimal
digits, is a filter of system calls for the third; with one, nobody else of this user lives in this process namespace,
and everything of this user ends after each request.

Unless the failures are to be explained, plain test functions are set up, called and torn down by pytest, but without
the hooks by which its plugins look on; see `Reporter.is_plain` for which. Most of a test's time is spent in those.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import gc
import importlib
import json
import os
import select
import signal
import struct
import sys
import time
import types
import unittest
from collections.abc import Callable
from typing import Any

import pytest
from _pytest.config import get_config
from _pytest.python import get_direct_param_fixture_func
from _pytest.tmpdir import tmppath_result_key
from _pytest.warnings import catch_warnings_for_item

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
_SECCOMP_MODE_FILTER = 2  # This and the numbers above: as in the headers of Linux.
_NONCE = 16  # Bytes of a secret per request, which its answer repeats.
_LONGEST = 1 << 22  # Bytes of an answer.
_DEATH = 10.0  # Seconds until what is killed has gone.
TIMED_OUT = b"timed out"


_LOOKING_ON = (
    "pytest_runtest_protocol", "pytest_runtest_setup", "pytest_runtest_call", "pytest_runtest_teardown",
    "pytest_runtest_makereport", "pytest_runtest_logstart", "pytest_runtest_logfinish", "pytest_runtest_logreport",
)  # fmt: skip


class Reporter:
    """Runs the tests that are wanted, and collects what each of them did.

    Args:
        wanted: ids of the tests; `None` for all.
        explain: whether messages of failures are kept.
    """

    def __init__(self, wanted: list[str] | None, *, explain: bool) -> None:
        self.wanted = set(wanted) if wanted is not None else None
        self.explain = explain
        self.phases: dict[str, dict[str, str]] = {}
        self.messages: dict[str, str] = {}

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        if self.wanted is not None:
            left_out = [item for item in items if item.nodeid not in self.wanted]
            items[:] = [item for item in items if item.nodeid in self.wanted]
            config.hook.pytest_deselected(items=left_out)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if self.explain:
            return None
        hooks = [getattr(session.config.hook, name) for name in _LOOKING_ON]
        strangers = [
            hook
            for hook in hooks
            for implementation in hook.get_hookimpls()
            if implementation.plugin is not self and not implementation.function.__module__.startswith("_pytest.")
        ]
        for item, following in zip(session.items, [*session.items[1:], None], strict=True):
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


def make_importable(paths: list[str]) -> None:
    """Let the tree's code be imported: behind what decides, before what happens to be installed."""
    paths = [os.path.join(os.getcwd(), path) for path in paths]
    installed = (place for place, path in enumerate(sys.path) if path.endswith(("site-packages", "dist-packages")))
    place = next(installed, len(sys.path))
    sys.path[place:place] = paths
    os.environ["PYTHONPATH"] = os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)


def pytest_arguments(files: list[str], maxfail: int = 0, *, explain: bool = False) -> list[str]:
    """Arguments of pytest that no setting of the repository changes."""
    quick = ["--assert=plain", "--tb=no", "-p", "no:unraisableexception", "-p", "no:threadexception"]
    return [
        *files, "-q", "-p", "no:cacheprovider", "--import-mode=append", "-o", "addopts=",
        f"--rootdir={os.getcwd()}", f"--confcutdir={os.getcwd()}",
        f"--maxfail={maxfail}", "--continue-on-collection-errors",
        *(["--assert=rewrite", "--tb=short"] if explain else quick),
    ]  # fmt: skip


def run_tests(request: dict[str, Any]) -> dict[str, Any]:
    """Run tests, and say what happened."""
    reporter = Reporter(request["tests"], explain=request["explain"])
    arguments = pytest_arguments(request["files"], request["maxfail"], explain=request["explain"])
    pytest.main(arguments, plugins=[reporter])
    return {"phases": reporter.phases, "messages": reporter.messages}


class Describer:
    """Collects what is known of tests before they run."""

    def __init__(self, wanted: list[str]) -> None:
        self.wanted = set(wanted)
        self.descriptions: dict[str, Any] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if item.nodeid in self.wanted and isinstance(item, pytest.Function):
                known = item._fixtureinfo.name2fixturedefs
                given = dict(item.callspec.params) if hasattr(item, "callspec") else {}
                indirect = [name for name in given if known[name][-1].func is not get_direct_param_fixture_func]
                for name in indirect:  # The parameters of a fixture.
                    del given[name]
                for_doctests = [
                    name for name, definitions in known.items() if definitions[-1].argnames == ("doctest_namespace",)
                ]
                supplied = (
                    *given,
                    "doctest_namespace",
                    *for_doctests,
                    *(() if "request" in item._fixtureinfo.argnames else ("request",)),
                )
                fixtures = [name for name in item.fixturenames if name not in supplied and not name.startswith("_")]
                module = [name for name in item.fixturenames if name.startswith("_xunit_setup_module")]
                self.descriptions[item.nodeid] = {
                    "parameters": {name: repr(value) for name, value in given.items()},
                    "suffix": f"[{item.callspec.id}]" if indirect else "",
                    "fixtures": fixtures + module,
                }
        items.clear()


def describe(request: dict[str, Any]) -> dict[str, Any]:
    """The parameters of tests and the fixtures that they use; nothing runs."""
    describer = Describer(request["tests"])
    pytest.main(pytest_arguments(request["files"]), plugins=[describer])
    return describer.descriptions


def run_probes(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Run the texts of probes, each as the module of a test file, and say what the witness saw."""
    witness = types.ModuleType("witness")
    exec(request["witness"], witness.__dict__)
    return [probe(request, text, witness) for text in request["texts"]]


def probe(request: dict[str, Any], text: str, witness: types.ModuleType) -> dict[str, Any]:
    """Run one probe; where `each` is set, within so many seconds."""
    builtins.witness = seen = witness.Witness()  # type: ignore[attr-defined]
    if request["each"]:
        signal.signal(signal.SIGALRM, out_of_time)
        signal.setitimer(signal.ITIMER_REAL, request["each"], request["each"])  # Again for who passes it over.
    end = "passed"
    try:
        if request["fixtures"]:
            reporter = Reporter(None, explain=False)
            names = [request["file"], request["owner"], request["function"] + request["suffix"]]
            pytest.main(pytest_arguments(["::".join(filter(None, names))]), plugins=[reporter])
            if [list(phases.values()) for phases in reporter.phases.values()] != [["passed"] * 3]:
                end = "failed"
        else:
            call(request, text)
    except BaseException as error:  # noqa: BLE001 (whatever a test raises)
        end = witness.name(type(error))
    signal.setitimer(signal.ITIMER_REAL, 0)
    return {"end": end, "events": seen.events}


def out_of_time(*_: object) -> None:
    raise TimeoutError


def call(request: dict[str, Any], text: str) -> None:
    """Call the tests of a module, which need no fixtures."""
    path = os.path.join(os.getcwd(), request["file"])
    folder, name = os.path.split(path.removesuffix(".py"))
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, package = os.path.split(folder)
        name = f"{package}.{name}"
    if folder not in sys.path:
        sys.path.append(folder)
    if "." in name:
        importlib.import_module(name.rpartition(".")[0])
    module = types.ModuleType(name)
    module.__file__, module.__package__ = path, name.rpartition(".")[0]
    sys.modules[name] = module
    exec(compile(text, path, "exec"), module.__dict__)
    holder = getattr(module, request["owner"]) if request["owner"] else module
    for function in [name for name in vars(holder) if name.startswith(request["function"])]:
        if request["owner"]:
            call_method(holder, function)
        else:
            getattr(module, function)()


def call_method(owner: Any, function: str) -> None:
    """Call a test that is a method, as pytest or unittest would."""
    if issubclass(owner, unittest.TestCase):
        result = unittest.TestResult()
        unittest.TestSuite([owner(function)]).run(result)
        if not (result.wasSuccessful() and result.testsRun == 1 and not result.skipped):
            raise AssertionError
        return
    one = owner()
    set_up(owner, "setup_class")
    set_up(one, "setup_method", getattr(one, function))
    getattr(one, function)()
    set_up(one, "teardown_method", getattr(one, function))
    set_up(owner, "teardown_class")


def set_up(holder: Any, name: str, *given: object) -> None:
    """Call a method that prepares a test or cleans up after it, if there is one."""
    method = getattr(holder, name, None)
    if method is not None:
        takes = getattr(method, "__code__", getattr(getattr(method, "__func__", None), "__code__", None))
        method(*given[: takes.co_argcount - 1 if takes is not None else 0])


KINDS: dict[str, Callable[[dict[str, Any]], Any]] = {"tests": run_tests, "describe": describe, "probes": run_probes}


def tested(request: dict[str, Any], pipe: int, filter: bytes) -> None:
    """Do what is asked, in this process, and say what happened."""
    seal(filter)
    gc.set_threshold(50_000, 20, 20)  # The process is short.
    make_importable(request["paths"])
    data = json.dumps(KINDS[request["kind"]](request)).encode()
    while data:
        data = data[os.write(pipe, data) :]


def seal(filter: bytes) -> None:
    """Put a filter of system calls on this process and all that it starts, for good."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    if filter:
        instructions = ctypes.create_string_buffer(filter, len(filter))
        program = struct.pack("HL", len(filter) // 8, ctypes.addressof(instructions))
        if ctypes.CDLL(None).prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, program, 0, 0) != 0:
            raise OSError("the filter of system calls is refused")


def supervise(request: dict[str, Any], root: str, filter: bytes, private: list[int]) -> bytes:
    """Do what is asked in a process of its own, and return what that says; `TIMED_OUT` where its time is up.

    Args:
        request: description of what to do.
        root: root of the repository.
        filter: filter of system calls.
        private: file descriptors that the other process must not have.
    """
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            for descriptor in (ours, *private):
                os.close(descriptor)
            _prctl(_PR_SET_DUMPABLE, 1)
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # It ends with this process.
            os.setsid()
            os.chdir(root)
            tested(request, theirs, filter)
        finally:
            os._exit(0)
    os.close(theirs)
    data = b""
    deadline = time.monotonic() + request["seconds"]
    try:
        while len(data) <= _LONGEST:
            left = deadline - time.monotonic()
            if left <= 0:
                return TIMED_OUT
            if select.select([ours], [], [], min(left, 0.02))[0]:
                part = os.read(ours, 1 << 16)
                data += part
                if not part:
                    break  # It has said all that it will.
            elif (
                os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
                and not select.select([ours], [], [], 0)[0]
            ):
                break  # Somebody else may still hold the other end.
    finally:
        os.close(ours)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return data[:_LONGEST]


def clean_up() -> bool:
    """End everything that the tests have left behind, and wait until nothing is left, also none that has only ended.

    Returns:
        whether nothing is left.
    """
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    deadline = time.monotonic() + _DEATH
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < deadline:
            if not os.waitpid(-1, os.WNOHANG)[0]:
                time.sleep(0.0005)
        return False
    return True


def answer_one(requests: int, kept: int, root: str, filter: bytes, private: list[int]) -> None:
    """Read one request, and write the answer to a file that is kept; write nothing at the end of all requests."""
    head = _read(requests, 8 + _NONCE)
    if len(head) < 8 + _NONCE:
        return
    request = json.loads(_read(requests, int.from_bytes(head[:8], "big") - _NONCE))
    data = head[8:] + supervise(request, root, filter, [requests, kept, *private])
    while data:
        data = data[os.write(kept, data) :]


def main() -> None:
    """Have requests answered until there are no more.

    This process never has a request or an answer in its memory, so that none is in what it forks: each is read by a
    process that ends with it, and the answer goes from a file in memory to its destination without being looked at.
    """
    answers, root, filter = int(sys.argv[1]), sys.argv[2], bytes.fromhex(sys.argv[3])
    requests = os.dup(0)
    silence = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(silence, descriptor)
    get_config()  # Loads pytest's own plugins, once for all.
    gc.collect()
    gc.freeze()
    _prctl(_PR_SET_DUMPABLE, 0)  # Nobody reads our memory or our descriptors.
    os.write(answers, bytes(8))  # Ready.
    while True:
        select.select([requests], [], [])  # Until there is one, nobody else lives here.
        kept = os.memfd_create("answer")
        pid = os.fork()
        if pid == 0:
            try:
                _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
                answer_one(requests, kept, root, filter, [answers])
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        if filter and not clean_up():
            return  # Whoever started this starts another one, in a place of its own.
        length = os.fstat(kept).st_size
        if not length:
            return  # There are no more requests, or the one who answered has been ended.
        os.write(answers, length.to_bytes(8, "big"))
        sent = 0
        while sent < length:
            sent += os.sendfile(answers, kept, sent, length - sent)
        os.close(kept)


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
