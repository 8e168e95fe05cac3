"""The grader pays for repairs, and for nothing else: every known way to fool it is tried on every sandbox."""

from __future__ import annotations

import ast
import random
import subprocess

import pytest

from textagent_gym.domains.swe.grader import Grade, grade, run_tests
from textagent_gym.domains.swe.sandbox import Changes, Sandbox
from textagent_gym.domains.swe.sources import source_changes
from textagent_gym.domains.swe.tasks import SWETask
from textagent_gym.domains.swe.twins import all_twins, rewrite, twin

SOURCE = "measures/numerals.py"


def graded(sandbox: Sandbox, task: SWETask, changes: Changes, seconds: float = 60.0) -> Grade:
    """Grade changes of a task's tree."""
    return grade(
        sandbox,
        task.source_layers,
        changes,
        fail_to_pass=task.fail_to_pass,
        pass_to_pass=task.pass_to_pass,
        tests=task.repository.test_texts,
        twins=task.twins,
        paths=task.repository.package.paths,
        seconds=seconds,
    )


def wrong(task: SWETask) -> str:
    """The file with the mistake in it."""
    return (task.layers[1] / SOURCE).read_text()


def right(task: SWETask) -> str:
    """The file as it should be."""
    return (task.repository.root / SOURCE).read_text()


def test_the_repair_is_paid_in_full(sandbox: Sandbox, task: SWETask) -> None:
    for _ in range(3):
        result = graded(sandbox, task, {SOURCE: right(task).encode()})
        assert result == Grade(task.fail_to_pass)
        assert result.resolved
        assert result.credit == len(task.fail_to_pass)


def test_nothing_is_paid_for_nothing(sandbox: Sandbox, task: SWETask) -> None:
    for changes in ({}, {"README.md": b"better"}, {SOURCE: wrong(task).encode()}, {SOURCE: None}, {SOURCE: b"("}):
        result = graded(sandbox, task, changes)
        assert not result.resolved
        assert result.credit == 0
        assert result.missing == task.fail_to_pass


def test_a_repair_that_breaks_something_else_is_worth_nothing(sandbox: Sandbox, task: SWETask) -> None:
    broken = right(task).replace('{1: "st", 2: "nd"', '{1: "st", 2: "zd"')
    result = graded(sandbox, task, {SOURCE: broken.encode()})
    assert result.repaired == task.fail_to_pass
    assert "tests/test_numerals.py::test_ordinal[2-2nd]" in result.broken
    assert not result.resolved
    assert result.credit == 0


# Attacks from the code of the package, which runs in the process that tests it. Each is put before the wrong code.

FORGE = """
import json, os, re, sys
tests = [f"tests/{name}::{test}" for name in os.listdir("tests") if name.endswith(".py")
         for test in re.findall(r"^def (test_\\w+)", open(f"tests/{name}").read(), re.M)]
wanted = WANTED
passed = {"setup": "passed", "call": "passed", "teardown": "passed"}
failed = {**passed, "call": "failed"}
report = {"collected": tests, "phases": {}, "messages": {}, "errors": [], "tampered": False, "status": STATUS}
for test in tests + wanted:
    report["phases"][test] = CHOICE
data = json.dumps(report).encode()
for number in os.listdir("/proc/self/fd"):
    try:
        os.write(int(number), data)
    except OSError:
        pass
os._exit(STATUS)
"""

PATCH = """
import sys
def patch():
    from _pytest import reports, runner
    PATCH
patch()
"""

ATTACKS = {
    "exit at once": "import os\nos._exit(0)\n",
    "exit as if tests had failed": "import os\nos._exit(1)\n",
    "print a summary and exit": "import os\nos.write(1, b'=== 113 passed in 0.1s ===\\n')\nos._exit(0)\n",
    "raise SystemExit": "raise SystemExit(0)\n",
    "exit when the tests are done": "import atexit, os\natexit.register(os._exit, 0)\n",
    "forge a report, all passed": FORGE.replace("STATUS", "0").replace("CHOICE", "passed"),
    "forge a report, pytest failed": FORGE.replace("STATUS", "1").replace("CHOICE", "passed"),
    "forge a report, strangers failed": FORGE.replace("STATUS", "1").replace(
        "CHOICE", "passed if test in wanted or '[' in test else failed"
    ),
    "outcome of every report": PATCH.replace(
        "PATCH",
        "old = reports.TestReport.from_item_and_call.__func__\n"
        "    def made(cls, item, call):\n"
        "        found = old(cls, item, call)\n"
        "        found.outcome = 'passed'\n"
        "        return found\n"
        "    reports.TestReport.from_item_and_call = classmethod(made)",
    ),
    "outcome of every report, in place": PATCH.replace(
        "PATCH",
        "made = reports.TestReport.from_item_and_call.__func__\n"
        "    def new(cls, item, call):\n"
        "        return cls(item.nodeid, item.location, {}, 'passed', None, call.when)\n"
        "    made.__code__ = new.__code__",
    ),
    "calls that never fail": PATCH.replace(
        "PATCH",
        "old = runner.CallInfo.from_call.__func__\n"
        "    def made(cls, func, when, reraise=None):\n"
        "        return old(cls, lambda: None, when, reraise)\n"
        "    runner.CallInfo.from_call = classmethod(made)",
    ),
    "a plugin of one's own": "import gc\n"
    "from _pytest.config import PytestPluginManager\n"
    "import pytest\n"
    "class Plugin:\n"
    "    @pytest.hookimpl(hookwrapper=True)\n"
    "    def pytest_runtest_makereport(self, item, call):\n"
    "        outcome = yield\n"
    "        report = outcome.get_result()\n"
    "        report.outcome = 'passed'\n"
    "for found in gc.get_objects():\n"
    "    if isinstance(found, PytestPluginManager):\n"
    "        found.register(Plugin())\n",
    "tests that do nothing": "import gc\nfrom _pytest.python import Function\nFunction.runtest = lambda self: None\n",
    "the reporter itself": "import sys\n"
    "Reporter = sys.modules['__main__'].Reporter\n"
    "old = Reporter.pytest_runtest_logreport\n"
    "def logged(self, report):\n"
    "    report.outcome = 'passed'\n"
    "    old(self, report)\n"
    "Reporter.pytest_runtest_logreport = logged\n",
    "failures that are no failures": "import builtins\n"
    "class Quiet(Exception):\n"
    "    pass\n"
    "builtins.AssertionError = Quiet\n",
    "skip the module": "import pytest\npytest.skip(allow_module_level=True)\n",
    "expect failures": "import pytest\n"
    "from _pytest.python import Function\n"
    "old = Function.setup\n"
    "def setup(self):\n"
    "    self.add_marker(pytest.mark.xfail)\n"
    "    old(self)\n"
    "Function.setup = setup\n",
    "a result that equals everything": "class Any(str):\n"
    "    def __eq__(self, other):\n"
    "        return True\n"
    "    __hash__ = str.__hash__\n"
    "import _pytest.python_api, pytest\n"
    "class Never:\n"
    "    def __enter__(self):\n"
    "        return self\n"
    "    def __exit__(self, *error):\n"
    "        return True\n"
    "pytest.raises = lambda *a, **k: Never()\n",
    "kill the one who asks": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n",
    "kill everything": "import os, signal\nos.kill(-1, signal.SIGKILL)\n",
    "look into the one who asks": "import os\n"
    "for name in ('mem', 'fd', 'environ', 'maps'):\n"
    "    path = f'/proc/{os.getppid()}/{name}'\n"
    "    os.listdir(path) if name == 'fd' else open(path, 'rb').read(1)\n"
    "    raise RuntimeError(f'REACHED {name}')\n",
    "close everything": "import os\nos.closerange(3, 4096)\n",
    "wait for ever": "import time\ntime.sleep(10000)\n",
    "fork and go on": "import os\nif os.fork():\n    os._exit(1)\n",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_of_the_code_pays(sandbox: Sandbox, task: SWETask, name: str) -> None:
    if sandbox.name == "process" and name == "kill everything":
        pytest.skip("this would kill the tests; the sandbox 'process' keeps nothing in, as its page says")
    attack = ATTACKS[name].replace("WANTED", repr([*task.fail_to_pass, *task.pass_to_pass]))
    seconds = 5.0 if name == "wait for ever" else 60.0
    result = graded(sandbox, task, {SOURCE: (attack + wrong(task)).encode()}, seconds)
    assert not result.resolved, name
    assert result.credit == 0, name


GUESS = """
import ast, json, os, random
phases, failed = {}, {"setup": "passed", "call": "failed", "teardown": "passed"}
passed = {**failed, "call": "passed"}
known = KNOWN
for test in known:
    phases[test] = passed
for file in os.listdir("tests"):
    names = [f"tests/{file}::{node.name}" for node in ast.parse(open(f"tests/{file}").read()).body
             if isinstance(node, ast.FunctionDef)] if file.endswith(".py") else []
    strangers = [name for name in names if not any(test.partition("[")[0] == name for test in known)]
    real = random.choice(strangers) if strangers else None
    for name in strangers:
        for suffix in SUFFIXES:
            phases[name + suffix] = passed if name == real else failed
report = {"phases": phases, "messages": {}, "tampered": False, "status": 1}
for number in os.listdir("/proc/self/fd"):
    try:
        os.write(int(number), json.dumps(report).encode())
    except OSError:
        pass
os._exit(1)
"""


def test_a_forger_who_knows_everything_but_the_right_results_has_to_guess(sandbox: Sandbox, task: SWETask) -> None:
    """It knows the form of a report, the tests that are not hidden, and the parameters of those that are."""
    suffixes = sorted({test[test.index("[") :] if "[" in test else "" for test in task.fail_to_pass})
    attack = GUESS.replace("KNOWN", repr(list(task.pass_to_pass))).replace("SUFFIXES", repr(suffixes))
    results = [graded(sandbox, task, {SOURCE: (attack + wrong(task)).encode()}) for _ in range(12)]
    assert sum(result.resolved for result in results) <= 6
    assert sum(bool(result.forged) for result in results) >= 6


def test_a_report_with_the_right_failures_is_what_it_takes(sandbox: Sandbox, task: SWETask) -> None:
    """The forged reports above fail for what they say, not for their form: with the twins known, one is believed."""
    attack = FORGE.replace("STATUS", "1").replace("WANTED", f"{list(task.fail_to_pass)!r}")
    attack = attack.replace("CHOICE", "failed if test.endswith('planted') else passed")
    file = "tests/test_numerals.py"
    planted = task.repository.test_texts[file] + "\n\ndef test_planted():\n    assert 0\n"
    run = run_tests(
        sandbox,
        task.source_layers,
        {SOURCE: (attack + wrong(task)).encode(), file: planted.encode()},
        [*task.fail_to_pass, f"{file}::test_planted"],
        test_files=[file],
        paths=["."],
        must_fail=[f"{file}::test_planted"],
    )
    assert run.forged == ""
    assert set(task.fail_to_pass) <= run.passed


BOMB = """
import os, subprocess, sys, tempfile
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        script = (
            "import os, time\\n"
            "while True:\\n"
            "    for folder in ('/testbed/tests', '/testbed/measures', '/tmp', '/dev/shm'):\\n"
            "        try:\\n"
            "            open(os.path.join(folder, 'conftest.py'), 'w').write('import os; os._exit(0)')\\n"
            "        except OSError:\\n"
            "            pass\\n"
            "    time.sleep(0.01)  # 45678\\n"
        )
        os.execv(sys.executable, [sys.executable, '-c', script])
    os._exit(0)
open(os.path.join(tempfile.gettempdir(), 'left'), 'w').write('x')
"""


def test_a_time_bomb_does_not_reach_the_next_grading(safe_sandbox: Sandbox, task: SWETask) -> None:
    for text in (wrong(task), right(task)):
        graded(safe_sandbox, task, {SOURCE: (BOMB + text).encode()})
        found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        assert "time.sleep(0.01)  # 45678" not in found
        assert graded(safe_sandbox, task, {SOURCE: right(task).encode()}).resolved
        assert not graded(safe_sandbox, task, {SOURCE: wrong(task).encode()}).resolved


# Attacks from the agent's shell, which leave something behind in the tree.

SETTINGS = {
    "conftest.py": "import pytest\n"
    "@pytest.hookimpl(hookwrapper=True)\n"
    "def pytest_runtest_makereport(item, call):\n"
    "    outcome = yield\n"
    "    outcome.get_result().outcome = 'passed'\n",
    "tests/conftest.py": "collect_ignore_glob = ['*']\n",
    "pytest.ini": "[pytest]\naddopts = --collect-only\n",
    "tox.ini": "[pytest]\npython_files = nothing\n",
    "setup.cfg": "[tool:pytest]\naddopts = -k nothing\n",
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-p evil'\n",
    "sitecustomize.py": "import os\nos._exit(0)\n",
    "usercustomize.py": "import os\nos._exit(0)\n",
    "evil.pth": "import os; os._exit(0)\n",
    "tests/test_numerals.py": "def test_unusual_forms():\n    pass\n",
    "tests/__init__.py": "import os\nos._exit(0)\n",
    "measures/test_extra.py": "import os\nos._exit(0)\n",
    "pytest.py": "import os\nos._exit(0)\n",
    "_pytest/__init__.py": "import os\nos._exit(0)\n",
    "pluggy.py": "import os\nos._exit(0)\n",
    "json.py": "import os\nos._exit(0)\n",
    "ast.py": "import os\nos._exit(0)\n",
    "evil.py": "import os\nos._exit(0)\n",
}


def test_files_beside_the_source_do_nothing(sandbox: Sandbox, task: SWETask) -> None:
    left_behind: Changes = {name: text.encode() for name, text in SETTINGS.items()}
    assert not graded(sandbox, task, left_behind).resolved
    assert graded(sandbox, task, {**left_behind, SOURCE: right(task).encode()}).resolved


def test_what_counts_as_source() -> None:
    allowed = source_changes(
        dict.fromkeys([*SETTINGS, ".git/config", "a/.git/x", "a.pyc", "a.so", "a/b.py", "x.json"], b"")
    ).counted
    assert sorted(allowed) == [
        "_pytest/__init__.py",
        "a/b.py",
        "ast.py",
        "evil.py",
        "json.py",
        "pluggy.py",
        "pytest.py",
        "x.json",
    ]
    assert source_changes({"docs/doctests.py": b"", "Tests/x.py": b""}, ["docs/doctests.py"]).counted == {}


@pytest.mark.parametrize(
    "commands",
    [
        ["ln -sf /etc/passwd measures/numerals.py"],
        ["rm -r measures; ln -s tests measures"],
        ["mv tests measures/; ln -s measures/tests tests"],
        ["rm -rf measures"],
        ["rm -rf .git; git init -q ."],
        ["chmod -R 000 measures"],
        ["mkfifo measures/pipe; rm measures/numerals.py; mkfifo measures/numerals.py"],
        ["rm measures/numerals.py; mkdir measures/numerals.py; touch measures/numerals.py/x"],
        ["while :; do rm -rf d; mkdir d; echo 1 > d/x; rm -rf d; ln -s /etc d; done & sleep 0.3"],
        ["python -c \"open('a' * 200 + '.py', 'w'); open('new\\nline.py', 'w'); open('\\\\udcff.py', 'w')\""],
    ],
    ids=str,
)
def test_odd_trees_are_read_and_graded(safe_sandbox: Sandbox, task: SWETask, commands: list[str]) -> None:
    safe_sandbox.begin(task.layers, {})
    for command in commands:
        safe_sandbox.run(command, 5)
    changes = safe_sandbox.changes()
    assert not any(b"root:" in (content or b"") for content in changes.values())
    result = graded(safe_sandbox, task, changes)
    assert not result.resolved
    assert result.credit == 0


def test_hidden_tests_and_the_repair_are_nowhere(safe_sandbox: Sandbox, task: SWETask) -> None:
    safe_sandbox.begin(task.layers, {})
    hidden = task.fail_to_pass[0].split("::")[1].partition("[")[0]
    repair = task.hunks[0].right.strip()
    for word in (hidden, repair):
        outside = " ".join(f"--exclude-dir={name}" for name in ("proc", "sys", "usr", "lib"))
        command = f"grep -rlF {word!r} / {outside} 2>/dev/null | head; true"
        assert safe_sandbox.run(command.replace("'", '"'), 120).output == "", word
    for command in (
        "git log --all --oneline | wc -l; git reflog | wc -l; git stash list; git fsck --lost-found",
        "git rev-list --objects --all | cut -d' ' -f1 | git cat-file --batch | grep -cF 'def " + hidden + "'",
        "find . -name '*.pyc' | xargs grep -lF " + hidden,
    ):
        safe_sandbox.run(command, 20)
    assert safe_sandbox.run("git log --all --oneline | wc -l; git status --porcelain", 20).output == "1\n"
    assert safe_sandbox.run(f"git log --all -p | grep -cF 'def {hidden}('", 20).output == "0\n"
    assert safe_sandbox.run("python -m pytest -q -p no:cacheprovider 2>&1 | tail -1", 60).output.split()[1] == "passed"


SUITE = '''
import pytest
from unittest import TestCase


def test_one():
    # A comment.
    assert [1, "abc"] == f(1)


@pytest.mark.parametrize(("a", "b"), [(1, 2), (3, "x")])
def test_two(a, b):
    assert g(a) == b


class Case(TestCase):
    def test_three(self):
        """Some words
        in two lines."""
        with self.assertRaises(ValueError):
            h()
        self.assertTrue(k)

    def test_four(self):
        pass
'''
HIDDEN = ("t.py::test_one", "t.py::test_two[1-2]", "t.py::test_two[3-x]", "t.py::Case::test_three")


def test_twins_expect_something_else_and_stand_where_the_original_stood() -> None:
    functions = sorted({test.partition("[")[0] for test in HIDDEN})
    files, known = all_twins({"t.py": SUITE}, functions)
    ast.parse(files["t.py"])
    assert {function for function, _ in known.values()} == set(functions)
    assert 20 < len(known) < 8 * 7  # In 7 places 8 times, each text once.
    twins: dict[str, dict[int, list[str]]] = {}
    for function, number in known.values():
        twins.setdefault(function, {})[number] = ["[1-2]"] if "two" in function else [""]
    orders = set()
    for seed in range(40):
        made = rewrite({"t.py": SUITE}, HIDDEN, functions, twins=twins, count=9, draw=random.Random(seed))
        text = made.files["t.py"]
        module = ast.parse(text)
        top = [node.name for node in module.body if isinstance(node, ast.FunctionDef)]
        (case,) = (node for node in module.body if isinstance(node, ast.ClassDef))
        methods = [node.name for node in case.body if isinstance(node, ast.FunctionDef)]
        assert len(made.must_fail) == 9
        assert (len(top), len(methods)) == (2 + 6, 2 + 3)
        assert set(made.names) == set(HIDDEN)
        assert made.names["t.py::test_two[3-x]"].endswith("[3-x]")
        assert not {"test_one", "test_two", "test_three"} & {*top, *methods}
        assert methods[-1] == "test_four"
        assert "# A comment." not in text
        orders.add(top.index(made.names["t.py::test_one"].partition("::")[2]))
    assert orders == {0, 1, 2, 3}


def test_inherited_tests_have_no_twins() -> None:
    source = "class A:\n    def test_x(self):\n        assert f() == 1\n\n\nclass B(A):\n    pass\n"
    files, known = all_twins({"t.py": source}, ["t.py::A::test_x", "t.py::B::test_x"])
    assert files == {"t.py": source}
    assert known == {}


def test_a_twin_is_never_its_original() -> None:
    function = next(node for node in ast.parse(SUITE).body if isinstance(node, ast.FunctionDef))
    texts = {ast.unparse(twin(function, number)) for number in range(30)}
    assert ast.unparse(function) not in texts
    assert len(texts) > 10


def test_without_twins_a_test_fails_by_its_own_words() -> None:
    made = rewrite({"t.py": SUITE}, HIDDEN, ["t.py::test_one"], twins={}, count=9, draw=random.Random(0))
    assert made.names == {test: test for test in HIDDEN}
    assert len(made.must_fail) == 1
    assert made.must_fail[0].partition("::")[2] in made.files["t.py"]
