"""A right repair is paid, however it was made and whatever lies beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import gymnasium
import pytest

from tests.domains.swe.conftest import bash
from tests.sandbox.conftest import open_sandbox
from textagent_gym.tasks import Task

MODULE = "measures/numerals.py"
"""What the repair changes."""


def above(*lines: str) -> str:
    """A command that writes lines above the code."""
    return f"cat - {MODULE} > /tmp/new <<'END'\n" + "\n".join(lines) + f"\nEND\ncat /tmp/new > {MODULE}"


def moved(path: str) -> str:
    """A command that moves the code to another module, from which the old one takes it."""
    folder, _, name = path.removesuffix(".py").rpartition("/")
    module = f"{folder.replace('/', '.')}.{name}".lstrip(".")
    create = f"mkdir -p {folder} && " if folder else ""
    return f"{create}mv {MODULE} {path} && echo 'from {module} import *' > {MODULE}"


PRODUCTS = "mkdir -p a build && touch a/{1..1050}.o build/{1..1050}.o"
"""A command that makes more new files than are read."""

AFTERWARDS = {
    "nothing else": "true",
    "line ends of Windows": f"sed -i 's/$/\\r/' {MODULE}",
    "a byte order mark": f"sed -i '1s/^/\\xef\\xbb\\xbf/' {MODULE}",
    "another encoding": above("# -*- coding: latin-1 -*-") + f" && printf '# caf\\xe9\\n' >> {MODULE}",
    "a program": f"chmod 755 {MODULE}",
    "a file to read alone": f"chmod 400 {MODULE}",
    "a file of mode 000": f"chmod 000 {MODULE}",
    "a folder of mode 000": moved("measures/inner/code.py") + " && chmod 000 measures/inner",
    "a module that becomes a package": f"mkdir new && mv {MODULE} new/__init__.py && mv new measures/numerals",
    "a package with a helper": (
        f"mkdir measures/numerals && mv {MODULE} measures/numerals/code.py && "
        "echo 'from .code import *' > measures/numerals/__init__.py"
    ),
    "a hard link": f"ln {MODULE} measures/copy.py && ln {MODULE} another",
    "a folder that went and came back": "mv measures new && mv new measures",
    "a folder that was copied back": "mv measures new && cp -r new measures && rm -r new",
    "git stash": "git stash -q && git stash pop -q",
    "git commit": "git add -A && git commit -qm 'Repair it' && git checkout -q -b other",
    "git gc": "git commit -qam 'Repair it' && git gc -q",
    "no git": "rm -rf .git",
    "imports": above("import asyncio, decimal, sqlite3, unittest.mock"),
    "a module at the top": moved("roman.py"),
    "a module named like a test": moved("measures/self_test.py"),
    "another module named like a test": moved("measures/test_values.py"),
    "a module in a folder named testing": moved("measures/testing/helper.py"),
    "a module in a folder named tests": moved("measures/tests/helper.py"),
    "a link to another module": f"mv {MODULE} measures/roman.py && ln -s roman.py {MODULE}",
    "a large module": f"python -c 'print(\"DATA =\", list(range(180_000)))' >> {MODULE}",
    "much to say": above("print('x' * 2_000_000)"),
    "a thread": above("import threading, time", "threading.Thread(target=time.sleep, args=(0.2,)).start()"),
    "warnings": above("import warnings", "warnings.warn('This is old.', DeprecationWarning)"),
    "a deeper stack": above("import sys", "sys.setrecursionlimit(20_000)"),
    "a draft": "echo 'def (' > measures/draft.py; cp measures/draft.py draft.py",
    "no readme and settings": "rm README.md pyproject.toml",
    "settings of its own": "echo x = > pyproject.toml; echo 'raise SystemExit' > conftest.py; echo '[pytest' > tox.ini",
    "broken tests": "echo 'assert False' > tests/test_numerals.py; rm tests/test_sizes.py",
    "tests that are gone": "rm -r tests && echo > tests",
    "names of all kinds": "touch 'a b' é.py $'\\xff.py' $'line\\nend.py'; echo > measures/größe.py",
    "a process": "sleep 1000 & disown",
    "files that come and go": "(while :; do for i in 1 2 3; do echo > x$i; rm x$i; done; done) 2>/dev/null & disown",
    "an environment": "mkdir -p .venv/lib/x && touch .venv/lib/x/{1..1474}.py",
    "many products of a build": PRODUCTS,
    "a moved module and many products of a build": moved("measures/roman.py") + f" && {PRODUCTS}",
    "a package behind a link and many files": "mv measures real && ln -s real measures && touch {1..2100}.dat",
    "a large product": "head -c 6000000 /dev/zero > measures.tar",
    "a link to nowhere": "ln -s /no/where link.py; ln -s . loop",
}


TOGETHER = (
    ("git stash", "a hard link", "names of all kinds", "settings of its own", "a link to nowhere", "a process"),
    ("git gc", "a link to another module", "an environment", "broken tests", "files that come and go", "a draft"),
    ("a folder that went and came back", "many products of a build", "a large product", "a folder of mode 000"),
    ("a module that becomes a package", "no git", "tests that are gone", "no readme and settings"),
)
"""What depends on how a sandbox reads and writes trees."""


def opened(request: pytest.FixtureRequest) -> Iterator[gymnasium.Env[str, str]]:
    """An environment with the sandbox that is asked for."""
    open_sandbox(request.param).close()
    env = gymnasium.make("textagent/SWE-v0", sandbox=request.param)
    yield env
    env.close()


KINDS = ["bubblewrap", pytest.param("process", marks=pytest.mark.slow)]
env = pytest.fixture(opened, scope="module", params=KINDS, name="env")
slow_env = pytest.fixture(opened, scope="module", params=["docker", "podman", "ray"], name="slow_env")


@pytest.mark.parametrize("command", AFTERWARDS.values(), ids=AFTERWARDS)
def test_a_right_repair_is_paid(
    env: gymnasium.Env[str, str], task: Task, command: str, caplog: pytest.LogCaptureFixture
) -> None:
    repair_and_submit(env, task, [command])
    assert "takes its place" not in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("names", TOGETHER, ids=lambda names: names[0])
def test_a_right_repair_is_paid_where_a_tree_takes_longer_to_send(
    slow_env: gymnasium.Env[str, str], task: Task, names: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    """Other shapes of repairs differ in what is graded, and that is the same everywhere."""
    repair_and_submit(slow_env, task, [AFTERWARDS[name] for name in names])
    assert "takes its place" not in caplog.text


def repair_and_submit(env: gymnasium.Env[str, str], task: Task, commands: Sequence[str]) -> None:
    """Repair, run some commands, and be paid."""
    env.reset(options={"task": task.id})
    (repair, _) = env.unwrapped.oracle()
    said, *_, info = env.step(repair)
    assert info["valid_action"], said
    for command in commands:
        said, *_ = env.step(bash(command))
        assert "exit status" not in said, (command, said)
    said, reward, terminated, _, info = env.step(bash("submit"))
    assert (reward, terminated, info["success"]) == (1.0, True, True), (said, env.unwrapped.last_grade)


@pytest.mark.parametrize("command", ["a draft", "a module named like a test", "broken tests", "settings of its own"])
def test_what_lies_beside_a_repair_is_worth_nothing_without_it(
    env: gymnasium.Env[str, str], task: Task, command: str
) -> None:
    env.reset(options={"task": task.id})
    env.step(bash(AFTERWARDS[command]))
    _, reward, terminated, _, info = env.step(bash("submit"))
    assert (reward, terminated, info["success"]) == (0.0, True, False)


def test_a_draft_that_cannot_be_imported_costs_nothing(task: Task) -> None:
    env = gymnasium.make("textagent/SWE-v0", sandbox="process", reward_at="turn")
    try:
        env.reset(options={"task": task.id})
        (repair,) = env.unwrapped.oracle()
        _, reward, terminated, truncated, _ = env.step(bash(f"cp {MODULE} kept; echo 'def (' >> {MODULE}"))
        assert (reward, terminated, truncated) == (0.0, False, False)
        env.step(bash(f"mv kept {MODULE}"))
        *_, info = env.step(repair)
        assert info["success"]
    finally:
        env.close()
