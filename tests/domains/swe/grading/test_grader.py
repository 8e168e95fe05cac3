"""The grader pays for repairs, and for nothing else: every known way to fool it is tried on every sandbox."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.swe_forger import OLD, paid
from tests.domains.swe.conftest import task_with
from textagent_gym.domains.swe.grading.grader import Grade, grade
from textagent_gym.domains.swe.grading.hidden.exam import Exam
from textagent_gym.domains.swe.grading.hidden.exam_maker import time_of_gradings
from textagent_gym.domains.swe.grading.hidden.judge import MOST_CHANCE
from textagent_gym.domains.swe.mutants.tasks import BuiltTasks, MutantWorld
from textagent_gym.domains.swe.source_files import source_changes
from textagent_gym.domains.swe.toolbox import TOOLBOX
from textagent_gym.sandbox import Changes, Sandbox, make_sandbox
from textagent_gym.sandbox.base import Question
from textagent_gym.tasks import Task

SOURCE = "measures/numerals.py"


def graded(sandbox: Sandbox, world: MutantWorld, changes: Changes) -> Grade:
    """Grade changes of a task's tree, those that count."""
    counted = source_changes(changes, world.repository.test_files, world.repository.files, sources="measures").counted
    return grade(sandbox, world.graded_layers, counted, world.exam)


def wrong(world: MutantWorld, path: str = SOURCE) -> str:
    """A file as the task has it."""
    return (world.layers[1] / path).read_text()


def right(world: MutantWorld, path: str = SOURCE) -> str:
    """A file as it should be."""
    return (world.repository.root / path).read_text()


def test_the_repair_is_paid_in_full(sandbox: Sandbox, world: MutantWorld) -> None:
    for _ in range(3):
        result = graded(sandbox, world, {SOURCE: right(world).encode()})
        assert result == Grade(world.fail_to_pass)
        assert result.resolved
        assert result.credit == len(world.fail_to_pass)


def test_nothing_is_paid_for_nothing(sandbox: Sandbox, world: MutantWorld) -> None:
    for changes in ({}, {"README.md": b"better"}, {SOURCE: wrong(world).encode()}, {SOURCE: None}, {SOURCE: b"("}):
        result = graded(sandbox, world, changes)
        assert not result.resolved
        assert result.credit == 0
        assert result.missing == world.fail_to_pass
        assert result.forged == ""  # A draft that cannot be imported is no forgery.


def test_a_repair_that_breaks_something_else_is_worth_nothing(sandbox: Sandbox, world: MutantWorld) -> None:
    broken = right(world).replace('{1: "st", 2: "nd"', '{1: "st", 2: "zd"')
    result = graded(sandbox, world, {SOURCE: broken.encode()})
    assert result.repaired == world.fail_to_pass
    assert "tests/test_numerals.py::test_ordinal[2-2nd]" in result.broken
    assert not result.resolved
    assert result.credit == 0


def test_special_cases_of_what_the_statement_shows_are_not_paid(sandbox: Sandbox, tasks: BuiltTasks) -> None:
    """A table of the inputs and outputs that were told is no repair: the same is asked with other input."""
    path = "measures/durations.py"
    world = tasks.world(task_with(tasks, path, "    started = True"))
    text = wrong(world, path).replace(
        "def format_duration(seconds", "def format_duration(seconds, *a, **k):\n"
        "    if seconds == 90000 and k == {'largest': 'h'}:\n        return '25h'\n"
        "    if seconds == 7200 and k == {'largest': 'm'}:\n        return '120m'\n"
        "    return _format_duration(seconds, *a, **k)\n\n\ndef _format_duration(seconds",
    )  # fmt: skip
    assert text != wrong(world, path)
    result = graded(sandbox, world, {path: text.encode()})
    assert result.credit == 0
    assert graded(sandbox, world, {path: right(world, path).encode()}).resolved


def every_world(tasks: BuiltTasks) -> Iterator[tuple[Task, MutantWorld]]:
    """Every task with its repository."""
    for split in tasks.splits:
        for index in range(tasks.size(split)):
            task = tasks.task(split, index)
            yield task, tasks.world(task)


# Attacks from the code of the package, which runs in the process that tests it. Each is put before the wrong code.

PATCH = """
import sys
def patch():
    from _pytest import reports, runner
    PATCH
patch()
"""

ATTACKS = {
    "answer in the place of who runs the tests": OLD,
    "exit at once": "import os\nos._exit(0)\n",
    "exit as if tests had failed": "import os\nos._exit(1)\n",
    "print a summary and exit": "import os\nos.write(1, b'=== 113 passed in 0.1s ===\\n')\nos._exit(0)\n",
    "raise SystemExit": "raise SystemExit(0)\n",
    "exit when the tests are done": "import atexit, os\natexit.register(os._exit, 0)\n",
    "the outcome of every report": PATCH.replace(
        "PATCH",
        "old = reports.TestReport.from_item_and_call.__func__\n"
        "    def made(cls, item, call):\n"
        "        found = old(cls, item, call)\n"
        "        found.outcome = 'passed'\n"
        "        return found\n"
        "    reports.TestReport.from_item_and_call = classmethod(made)",
    ),
    "tests that do nothing": "import gc\nfrom _pytest.python import Function\nFunction.runtest = lambda self: None\n",
    "the reporter itself": "import sys\nReporter = sys.modules['__main__'].Reporter\n"
    "Reporter.outcome = lambda self, function: 'passed'\n",
    "failures that are no failures": "import builtins\n"
    "class Quiet(Exception):\n    pass\nbuiltins.AssertionError = Quiet\n",
    "skip the module": "import pytest\npytest.skip(allow_module_level=True)\n",
    "kill the one who asks": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n",
    "stop the one who asks": "import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)\n",
    "kill everything": "import os, signal\nos.kill(-1, signal.SIGKILL)\n",
    "look into the one who asks": "import os\n"
    "for name in ('mem', 'fd', 'environ', 'maps'):\n"
    "    path = f'/proc/{os.getppid()}/{name}'\n"
    "    os.listdir(path) if name == 'fd' else open(path, 'rb').read(1)\n"
    "    raise RuntimeError(f'REACHED {name}')\n",
    "close everything": "import os\nos.closerange(3, 4096)\n",
    "fork and go on": "import os\nif os.fork():\n    os._exit(1)\n",
    "say too much": "import os\nfor number in range(3, 64):\n"
    "    try:\n        os.set_blocking(number, True)\n        os.write(number, b'[' * 9_000_000)\n"
    "    except OSError:\n        pass\n",
    "answer with nested lists": "import builtins\nnested = []\nfor _ in range(900):\n    nested = [nested]\n"
    "if hasattr(builtins, 'witness'):\n    builtins.witness.events.append(nested)\n",
    "answer with something else": "import builtins\n"
    "if hasattr(builtins, 'witness'):\n    builtins.witness.events = {'phases': {}}\n",
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_of_the_code_pays(sandbox: Sandbox, world: MutantWorld, name: str) -> None:
    if sandbox.name == "process" and name in ("kill everything", "stop the one who asks"):
        pytest.skip("this would reach the tests; the sandbox 'process' keeps nothing in, as its page says")
    result = graded(sandbox, world, {SOURCE: (ATTACKS[name] + wrong(world)).encode()})
    assert not result.resolved, name
    assert result.credit == 0, name
    assert graded(sandbox, world, {SOURCE: right(world).encode()}).resolved


def test_what_no_probe_says_is_a_forgery(sandbox: Sandbox, world: MutantWorld) -> None:
    for name in ("answer with nested lists", "answer with something else"):
        assert graded(sandbox, world, {SOURCE: (ATTACKS[name] + wrong(world)).encode()}).forged, name


@pytest.mark.slow
def test_no_rule_of_a_forger_pays_for_any_task(tasks: BuiltTasks) -> None:
    """A forger that owns the witness and knows everything but the right answers, on every task of a package."""
    sandbox = make_sandbox("auto", toolbox=TOOLBOX)
    try:
        for task, world in every_world(tasks):
            assert paid(sandbox, world) == [], task.id
    finally:
        sandbox.close()


@pytest.mark.slow
def test_every_task_says_what_chance_a_forger_has(tasks: BuiltTasks) -> None:
    every = list(every_world(tasks))
    assert len(every) > 12
    for task, world in every:
        assert 0 < world.exam.chance <= MOST_CHANCE
        assert task.complexity.chance == world.exam.chance
        for group in world.exam.groups:
            assert any(version.is_original for version in group.versions)
            assert any(not version.is_original for version in group.versions)


SEARCH = """
import gc, hashlib, re, sys
def _search():
    wanted, length = WANTED
    found = []
    for line in open("/proc/self/maps"):
        first, last = (int(word, 16) for word in line.split()[0].split("-"))
        if "r" not in line.split()[1] or "[v" in line:
            continue
        try:
            with open("/proc/self/mem", "rb") as memory:
                memory.seek(first)
                data = memory.read(last - first)
        except (OSError, ValueError, OverflowError):
            continue
        for place in re.finditer(b"Q-(?=[a-z])", data):
            if hashlib.sha256(data[place.start() : place.start() + length]).hexdigest() == wanted:
                found.append(place.start())
    return len(found)
_found = _search()
"""


def test_the_right_answer_is_nowhere_in_the_process_that_is_tested(safe_sandbox: Sandbox, world: MutantWorld) -> None:
    """Every byte that the tested process can read is searched for an answer, by a hash of it."""
    import hashlib

    answer = "Q-the-one-and-only-answer"
    group = world.exam.groups[0]
    version = replace(
        group.versions[0],
        text="from measures import numerals\ndef test_probe():\n    witness.see(0, numerals._found)\n",
        sites=("==",),
        events=((0, answer, answer),),
    )
    exam = Exam(
        (replace(group, versions=(version,)),),
        (),
        world.exam.visible,
        world.exam.visible_files,
        world.exam.paths,
        seconds=60.0,
        total=600.0,
    )
    wanted = (hashlib.sha256(answer.encode()).hexdigest(), len(answer))
    attack = SEARCH.replace("WANTED", repr(wanted))
    for planted, expected in (("", 0), (f"_planted = 'Q-' + {answer[2:]!r}\n", 1)):
        code = planted + attack + wrong(world)
        counted = replace(version, events=((0, ["i", hex(expected)], ["i", hex(expected)]),), sites=(">=",))
        least = replace(exam, groups=(replace(group, versions=(counted,)),))
        assert grade(safe_sandbox, world.graded_layers, {SOURCE: code.encode()}, least).repaired
        none = replace(counted, sites=("==",))
        only = replace(exam, groups=(replace(group, versions=(none,)),))
        if not planted:
            assert grade(safe_sandbox, world.graded_layers, {SOURCE: code.encode()}, only).repaired


def test_no_answer_is_left_in_memory_for_the_next_question(safe_sandbox: Sandbox, world: MutantWorld) -> None:
    """Right code says its answers, once plainly and once beside them; nobody who comes later finds a trace of them."""
    import hashlib

    answer = "Q-the-one-and-only-answer"
    group = world.exam.groups[0]
    text = "from measures import numerals\ndef test_probe():\n    witness.see(0, numerals._found)\n"
    said = replace(group.versions[0], text=text, sites=("==",), events=((0, answer, answer),))
    none = replace(said, events=((0, ["i", "0x0"], ["i", "0x0"]),))
    tells = f"_found = 'Q-' + {answer[2:]!r}\n"
    heir = (
        "import builtins, json\nif hasattr(builtins, 'witness'):\n"
        "    _old = json._default_encoder.encode\n"
        "    json._default_encoder.encode = lambda told: _old([{**one, 'x': _found * 9999} for one in told])\n"
    )
    wanted = (hashlib.sha256(answer.encode()).hexdigest(), len(answer))
    attack = SEARCH.replace("WANTED", repr(wanted))
    for first in (tells, tells + heir):
        for code, version, is_paid in ((first, said, heir not in first), (attack, none, True), (attack, none, True)):
            exam = replace(world.exam, groups=(replace(group, versions=(version, version)),), kept=())
            result = grade(safe_sandbox, world.graded_layers, {SOURCE: (code + wrong(world)).encode()}, exam)
            assert bool(result.repaired) == is_paid


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


def test_a_time_bomb_does_not_reach_the_next_grading(safe_sandbox: Sandbox, world: MutantWorld) -> None:
    for text in (wrong(world), right(world)):
        graded(safe_sandbox, world, {SOURCE: (BOMB + text).encode()})
        found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        assert "time.sleep(0.01)  # 45678" not in found
        assert graded(safe_sandbox, world, {SOURCE: right(world).encode()}).resolved
        assert not graded(safe_sandbox, world, {SOURCE: wrong(world).encode()}).resolved


LEAVE = """
import os
left = []
for folder in ("/tmp", "/dev/shm", "/testbed", "/testbed/measures"):
    if os.path.exists(folder + "/left"):
        left.append(folder)
    try:
        os.makedirs(folder + "/left/deep", exist_ok=True)
        os.chmod(folder + "/left/deep", 0)
        os.chmod(folder + "/left", 0)
    except OSError:
        pass
if left:
    os._exit(0)
"""


def test_nothing_is_left_from_one_version_to_the_next(safe_sandbox: Sandbox, world: MutantWorld) -> None:
    """The right code that ends as soon as it finds what it has left in another process is paid: it finds nothing."""
    for _ in range(2):
        assert graded(safe_sandbox, world, {SOURCE: (LEAVE + right(world)).encode()}).resolved


WAIT = "import builtins, time\nif hasattr(builtins, 'witness'):\n    time.sleep(SECONDS)\n"


@pytest.mark.parametrize("seconds", [0.5, 10000])
def test_code_that_waits_costs_no_more_than_the_time_of_a_grading(
    safe_sandbox: Sandbox, world: MutantWorld, seconds: float
) -> None:
    """Be it for ever in one question, or a little in each of them."""
    code = WAIT.replace("SECONDS", str(seconds)) + right(world)
    began = time.monotonic()
    result = grade(safe_sandbox, world.graded_layers, {SOURCE: code.encode()}, replace(world.exam, total=2.0))
    assert result == Grade(missing=world.fail_to_pass, timed_out=True)
    assert time.monotonic() - began < 2.0 + 15  # On a machine that has other things to do.


def test_a_grading_has_ten_times_the_time_of_the_right_code_and_a_minute_at_least(world: MutantWorld) -> None:
    assert world.exam.total >= 60
    assert [time_of_gradings(measured) for measured in (0.0, 6.0, 9.0)] == [60.0, 60.0, 90.0]
    assert Exam.from_json(world.exam.to_json()) == world.exam


def test_the_time_of_a_grading_does_not_tell_which_version_is_wrong(world: MutantWorld) -> None:
    """Were the others not asked, forgers could find the answers to the versions one by one."""
    asked = []

    class Silent:
        def ask(self, layers: object, files: object, *, program: object, questions: Iterable[Question]) -> Any:
            for question in questions:
                asked.append(question)
                yield b""

    silent: Any = Silent()
    assert not grade(silent, world.graded_layers, {SOURCE: b""}, world.exam).resolved
    assert len(asked) == sum(len(group.versions) for group in world.exam.groups) > 1


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
    "witness.py": "import os\nos._exit(0)\n",
    "evil.py": "import os\nos._exit(0)\n",
}


def test_files_beside_the_source_do_nothing(sandbox: Sandbox, world: MutantWorld) -> None:
    left_behind: Changes = {name: text.encode() for name, text in SETTINGS.items()}
    assert not graded(sandbox, world, left_behind).resolved
    assert graded(sandbox, world, {**left_behind, SOURCE: right(world).encode()}).resolved


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
def test_odd_trees_are_read_and_graded(safe_sandbox: Sandbox, world: MutantWorld, commands: list[str]) -> None:
    safe_sandbox.begin(world.layers, {})
    for command in commands:
        safe_sandbox.run(command, 5)
    changes = safe_sandbox.changes((".git",)).files
    assert not any(b"root:" in (content or b"") for content in changes.values())
    result = graded(safe_sandbox, world, changes)
    assert not result.resolved
    assert result.credit == 0


def test_hidden_tests_and_the_repair_are_nowhere(safe_sandbox: Sandbox, world: MutantWorld) -> None:
    safe_sandbox.begin(world.layers, {})
    hidden = world.fail_to_pass[0].split("::")[1].partition("[")[0]
    repair = world.hunks[0].right.strip()
    for word in (hidden, repair):
        outside = " ".join(f"--exclude-dir={name}" for name in ("proc", "sys"))
        command = f"grep -rlF {word!r} / {outside} 2>/dev/null | head; true"
        assert safe_sandbox.run(command.replace("'", '"'), 120).output == "", word
    assert safe_sandbox.run("git log --all --oneline | wc -l; git status --porcelain", 20).output == "1\n"
    assert safe_sandbox.run(f"git log --all -p | grep -cF 'def {hidden}('", 20).output == "0\n"
    assert safe_sandbox.run("find . -name '*.pyc' | xargs grep -lF " + hidden, 20).output == ""
    assert safe_sandbox.run("python -m pytest -q -p no:cacheprovider 2>&1 | tail -1", 60).output.split()[1] == "passed"


def test_no_table_that_hidden_tests_alone_read_is_left(world: MutantWorld) -> None:
    text = (world.layers[1] / "tests/test_numerals.py").read_text()
    assert "KNOWN" in (world.repository.root / "tests/test_numerals.py").read_text()
    assert "KNOWN" not in text
    assert "def test_ordinal(" in text


def test_nothing_of_a_tree_tells_where_the_mistake_is(safe_sandbox: Sandbox, tasks: BuiltTasks) -> None:
    """Dates, order on disk and mounts are those of a tree without a mistake, and the id is drawn by chance."""
    first_of = []
    for index in range(4):
        task = tasks.task("train", index)
        world = tasks.world(task)
        safe_sandbox.begin(world.layers, {})
        path = world.hunks[0].path
        dates = safe_sandbox.run("stat -c %Y $(git ls-files | grep py$) | sort -u", 20).output.split()
        assert len(dates) == 1
        for order in ("ls -tc", "ls -U", "ls -i"):
            lines = safe_sandbox.run(f"{order} measures/*.py | sort -n | tail -1", 20).output
            first_of.append((order, path in lines))
        mounts = safe_sandbox.run("cat /proc/self/mountinfo", 20).output
        assert task.id.rpartition("/")[2] not in mounts
        assert "measures" not in mounts
        assert safe_sandbox.run("git status --porcelain", 20).output == ""
    for order in ("ls -tc", "ls -U", "ls -i"):
        hits = [hit for name, hit in first_of if name == order]
        assert not all(hits), order
