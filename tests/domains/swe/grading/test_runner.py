"""The short way by which plain tests are run gives what pytest gives."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from textagent_gym.domains.swe.grading.pytest_runs import RUNNER, TestRun, ask_for_tests, read_run, run_tests
from textagent_gym.domains.swe.mutants.tasks import BuiltTasks
from textagent_gym.sandbox import Sandbox

SUITE = """
import asyncio, logging, sys, unittest, warnings
import pytest

events = []


@pytest.fixture
def broken_setup():
    raise ValueError


@pytest.fixture
def broken_teardown():
    yield 1
    raise ValueError


@pytest.fixture(scope="module")
def shared():
    events.append("made")
    yield events
    events.append("gone")


@pytest.fixture(autouse=True)
def counted():
    events.append("test")
    yield
    events.append("end")


@pytest.fixture(params=[1, 2])
def number(request):
    return request.param


def test_passes(): pass
def test_fails(): assert 0
def test_skips(): pytest.skip("no")
def test_skips_as_unittest_does(): raise unittest.SkipTest("no")
def test_expected(): pytest.xfail("no")
def test_fails_by_word(): pytest.fail("no")
def test_leaves(): sys.exit(0)
def test_raises_something(): raise BaseException
def test_returns(): return 3
async def test_waits(): await asyncio.sleep(0)
def test_shared(shared): assert shared.count("made") == 1
def test_shared_again(shared): assert shared.count("made") == 1
def test_number(number): assert number == 1
def test_setup(broken_setup): pass
def test_teardown(broken_teardown): pass
def test_unknown_fixture(nobody): pass
def test_folder(tmp_path): (tmp_path / "a").write_text("x")
def test_folder_of_a_failure(tmp_path): assert list(tmp_path.iterdir())
def test_output(capsys): print("hello"); assert capsys.readouterr().out == "hello\\n"
def test_output_below(capfd): print("hello", flush=True); assert capfd.readouterr().out == "hello\\n"
def test_log(caplog): logging.warning("hello"); assert "hello" in caplog.text
def test_patched(monkeypatch): monkeypatch.setenv("A_VARIABLE", "1"); assert __import__("os").environ["A_VARIABLE"]
def test_not_patched(): assert "A_VARIABLE" not in __import__("os").environ
def test_warns(): warnings.warn("this is an error here", UserWarning)
def test_recorded(recwarn): warnings.warn("x", RuntimeWarning); assert len(recwarn) == 1
def test_filters_are_back(): assert warnings.filters[0][0] != "always" or warnings.filters[0][2] is not Warning
@pytest.mark.filterwarnings("ignore")
def test_warns_in_vain(): warnings.warn("x", UserWarning)
@pytest.mark.skip
def test_marked(): pass
@pytest.mark.skipif(sys.version_info > (3,), reason="no")
def test_marked_by_condition(): pass
@pytest.mark.xfail
def test_expected_to_fail(): assert 0
@pytest.mark.xfail
def test_expected_to_fail_and_does_not(): pass
@pytest.mark.xfail(strict=True)
def test_strictly_expected_to_fail(): pass
@pytest.mark.usefixtures("broken_setup")
def test_used(): pass
@pytest.mark.parametrize("a", [1, 2, pytest.param(3, marks=pytest.mark.skip), pytest.param(4, marks=pytest.mark.xfail)])
def test_cases(a): assert a % 2
def test_subtests(subtests):
    for i in range(2):
        with subtests.test(i=i):
            assert i
def setup_module(): events.append("module")
def test_module_was_set_up(): assert events[0] == "module"


class TestClass:
    @classmethod
    def setup_class(cls): cls.made = 1
    def setup_method(self): self.own = 1
    def test_set_up(self): assert self.made and self.own
    def test_own_instance(self): assert not hasattr(self, "other"); self.other = 1
    def test_own_instance_again(self): assert not hasattr(self, "other"); self.other = 1
    def test_fails(self): assert self.missing


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls): cls.made = 1
    def setUp(self): self.own = 1
    def test_passes(self): self.assertEqual(self.made, self.own)
    def test_fails(self): self.assertEqual(1, 2)
    def test_skips(self): self.skipTest("no")
    @unittest.expectedFailure
    def test_expected(self): self.fail()
    def test_several(self):
        for i in range(2):
            with self.subTest(i=i):
                self.assertTrue(i)


class BrokenCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise ValueError
    def test_passes(self): pass
"""
FILES = {
    "test_suite.py": SUITE,
    "test_not_collected.py": "import nothing_of_that_name\n\ndef test_a(): pass\n",
    "setup.cfg": "[tool:pytest]\nfilterwarnings = error:this is an error\n",
}


def run(sandbox: Sandbox, tree: Path, **options: object) -> TestRun:
    """Run all tests of a tree."""
    tests = [name for name in FILES if name.startswith("test_")]
    return run_tests(sandbox, [tree], {}, test_files=tests, paths=["."], **options)  # type: ignore[arg-type]


def test_every_kind_of_test_does_what_it_does_in_pytest(sandbox: Sandbox, tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-rA", "-q", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    said = [line.split() for line in done.stdout.splitlines()]
    passed = {words[1] for words in said if words[:1] == ["PASSED"]}
    broken = {words[1] for words in said if words and words[0].startswith(("ERROR", "FAILED", "SUBFAILED"))}
    assert len(passed) > 20
    assert len(broken) > 15
    quick = run(sandbox, tmp_path)
    assert quick.forged == ""
    assert quick.passed == passed - broken
    assert run(sandbox, tmp_path, explain=True).passed == quick.passed


def test_hooks_of_the_repository_are_called(sandbox: Sandbox, tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    before = run(sandbox, tmp_path).passed
    (tmp_path / "conftest.py").write_text(
        "import pytest\ndef pytest_runtest_setup(item):\n    'passes' in item.name and pytest.skip('no')\n"
    )
    assert run(sandbox, tmp_path).passed == {test for test in before if "passes" not in test}


LEAVE_PROCESSES = """
import os, signal, time

def test_leaves_processes():
    if os.fork() == 0:  # Not in the group that ends with this process.
        os.setsid()
        for descriptor in range(3, 1024):
            try: os.close(descriptor)
            except OSError: pass
        for _ in range(80):
            if os.fork() == 0:
                while True: signal.pause()
        while True: signal.pause()
    deadline = time.monotonic() + 10
    while len([name for name in os.listdir("/proc") if name.isdigit()]) < 80 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert time.monotonic() < deadline
"""

NOBODY_ELSE = """
import os

def state(pid):
    with open(f"/proc/{pid}/stat") as file: return file.read().rpartition(")")[2].split()[0]

def test_sees_nobody_who_has_ended():
    assert "Z" not in [state(name) for name in os.listdir("/proc") if name.isdigit()]
"""


def test_what_a_question_has_started_has_gone_when_the_next_one_begins(safe_sandbox: Sandbox, tmp_path: Path) -> None:
    """Also what has ended and was not waited for: it can be counted."""
    (tmp_path / "test_first.py").write_text(LEAVE_PROCESSES)
    (tmp_path / "test_next.py").write_text(NOBODY_ELSE)
    tests = ["test_first.py::test_leaves_processes", "test_next.py::test_sees_nobody_who_has_ended"] * 2
    questions = [ask_for_tests([test], test_files=[test.partition(":")[0]], paths=["."], seconds=30) for test in tests]
    answers = safe_sandbox.ask([tmp_path], {}, program=RUNNER, questions=questions)
    assert [set(read_run(answer, [test]).passed) for answer, test in zip(answers, tests, strict=True)] == [
        {test} for test in tests
    ]


@pytest.mark.parametrize(
    ("answer", "forged"),
    [
        (b"", False),
        (b"x", True),
        (b"{}", True),
        (b"[" * 9999, True),
        (b'{"phases": {"t::other": {}}, "messages": {}}', True),
    ],
)
def test_what_is_no_report_is_a_forgery(answer: bytes, forged: bool) -> None:
    assert bool(read_run(answer, ["t::test"]).forged) == forged
    assert not read_run(answer, ["t::test"]).passed


def packages() -> list[str]:
    """Packages whose tests all run here."""
    from textagent_gym.domains.swe.mutants.packages import PACKAGES

    return [name for name, package in PACKAGES.items() if package.folder or "TEXTAGENT_TEST_PACKAGES" in os.environ]


@pytest.mark.parametrize("name", packages())
def test_every_test_of_a_package_does_what_it_does_in_pytest(sandbox: Sandbox, name: str) -> None:
    tasks = BuiltTasks((name,))
    repository = tasks.world(tasks.task("train", 0)).repository
    runs = [
        run_tests(
            sandbox,
            [repository.compiled, repository.root],
            {},
            test_files=repository.test_files,
            paths=repository.package.paths,
            explain=explain,
        )
        for explain in (False, True)
    ]
    assert runs[0].passed == runs[1].passed
    assert runs[0].failed == runs[1].failed
    assert len(runs[0].passed) > 100
