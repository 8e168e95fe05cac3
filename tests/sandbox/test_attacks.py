"""What sandboxes withstand of somebody who has read their source: each attack is one that was tried, or a variation."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox.conftest import SAFE, UNSAFE, open_sandbox, opened
from tests.sandbox.test_sandbox import ECHO
from textagent_gym.sandbox import Limits, Question, Result, Sandbox, SandboxError
from textagent_gym.sandbox.bubblewrap import mounts
from textagent_gym.sandbox.changes import BY_NAME, decode, encode, noted_changes
from textagent_gym.sandbox.layers import copy_layers, pack
from textagent_gym.sandbox.seccomp import SHELL_FAMILIES, TESTED_FAMILIES, seccomp_filter
from textagent_gym.sandbox.tree import (
    LARGEST_FILE,
    MOST_BYTES,
    MOST_NEW_FILES,
)
from textagent_gym.sandbox.writing import empty, write_files

SKIP = (".git", "__pycache__")


sandbox = pytest.fixture(opened, scope="module", params=[*UNSAFE, *SAFE], name="sandbox")
"""Each kind of sandbox on this machine; what a cluster has is one of them."""
safe_sandbox = pytest.fixture(opened, scope="module", params=SAFE, name="safe_sandbox")
"""Each kind that keeps an agent in."""


@pytest.fixture
def tree(tmp_path: Path) -> list[Path]:
    """A package in one layer, with a mistake over it in another."""
    files = {
        "secret-of-the-task/pkg/a.py": "wrong = 1\n",
        "bottom/pkg/__init__.py": "",
        "bottom/pkg/a.py": "right = 1\n",
        "bottom/pkg/deep/b.py": "b = 1\n",
        "bottom/setup.cfg": "[x]\n",
        "bottom/.git/HEAD": "ref\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return [tmp_path / "secret-of-the-task", tmp_path / "bottom"]


@pytest.fixture
def echo(tmp_path: Path) -> Path:
    (tmp_path / "echo.py").write_text(ECHO)
    return tmp_path / "echo.py"


def python(code: str) -> str:
    """A command that runs Python."""
    return f"python - <<'END'\n{textwrap.dedent(code)}\nEND"


# Reading the tree: whatever is done to it, the repair is found, and nothing raises.

REPAIR = "echo 'right = 2' > pkg/a.py; "
"""Comes first in each attack."""

TREES = {
    "nested folders": python("""
        import os
        for _ in range(1200):
            os.mkdir("d"); os.chdir("d")
        open("x", "w").close()"""),
    "nested folders with long names": python("""
        import os
        for _ in range(60):
            os.mkdir("d" * 200); os.chdir("d" * 200)
        open("x", "w").close()"""),
    "sparse files": "for i in $(seq 300); do truncate -s 1M s$i; done",
    "many sparse files": python("""
        import os
        for i in range(2000):
            with open(f"s{i}", "w") as f: f.truncate(1 << 20)"""),
    "a sparse file of 200 GB": "truncate -s 200G big || true",
    "many files": python("""
        import os
        for i in range(3000):
            os.makedirs(f"0/{i % 7}", exist_ok=True); open(f"0/{i % 7}/{i}.py", "w").close()"""),
    "modes": "mkdir -p m/n && echo x > m/n/x && chmod 000 m/n/x m/n m pkg/deep pkg . || true",
    "the mode of the file": "chmod 000 pkg/a.py",
    "a mode that lists and does not enter": "mkdir l; echo 1 > l/x; chmod 400 l pkg/deep",
    "odd names": python(r"""
        for name in (b"\n", b"\xff\xfe", b"a b", b"-rf", b'"', "\u00e9".encode(), b"\x1b[31m", b"'", b"x" * 255):
            with open(name, "w") as f: f.write("1")"""),
    "fifos and sockets": python("""
        import os, socket
        os.mkfifo("fifo"); socket.socket(socket.AF_UNIX).bind("socket")"""),
    "links everywhere": "ln -s / root; ln -s /proc proc; ln -s . self; ln -s .. up; ln -s loop loop; ln -s l2 l1; "
    "ln -s l1 l2",
    "links to folders in folders": python("""
        import os
        for i in range(12):
            os.mkdir(f"f{i}")
        for i in range(11):
            for j in "abcd":
                os.symlink(f"../f{i + 1}", f"f{i}/{j}")
        open("f11/x.py", "w").close()"""),
    "files that come and go": "(while :; do for i in 1 2 3; do echo x > t$i; mkdir u$i; rm -r t$i u$i; done; done) &",
    "folders that become files": "(while :; do mkdir -p q/r; echo x > q/r/s; rm -r q; echo x > q; rm q; done) &",
    "writers that go on": "(while :; do echo 'spoilt = 1' > pkg/b.py; done) & (exec python -c 'while 1: pass') &",
}  # fmt: skip


@pytest.mark.parametrize("attack", TREES.values(), ids=TREES)
def test_a_repair_is_found_in_any_tree(sandbox: Sandbox, tree: list[Path], attack: str) -> None:
    sandbox.begin(tree, {})
    sandbox.run(REPAIR + attack, 30)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    for _ in range(2):
        changes = sandbox.changes(SKIP)
        assert changes.files["pkg/a.py"] == b"right = 2\n"
    assert time.monotonic() - began < 30
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400 << 10  # KiB.
    assert sum(len(content or b"") for content in changes.files.values()) <= MOST_BYTES
    assert len(changes.files) <= MOST_NEW_FILES + 10
    assert len(changes.left_out) <= 10
    sandbox.run("chmod 755 . 2>/dev/null; true", 10)
    sandbox.begin(tree, {})
    assert sandbox.changes(SKIP).files == {}
    assert sandbox.run("cat pkg/a.py", 10).output == "wrong = 1\n"


SWAPS = {
    "a folder becomes a file": ("rm -rf pkg; echo x > pkg", {"pkg": b"x\n"}),
    "a file becomes a folder": ("rm setup.cfg; mkdir setup.cfg; echo x > setup.cfg/x.py", {"setup.cfg/x.py": b"x\n"}),
    "a folder becomes a link": ("mv pkg p; ln -s p pkg", {"pkg/deep/b.py": b"b = 1\n", "p/a.py": b"wrong = 1\n"}),
    "a file becomes a link": ("mv pkg/a.py pkg/c.py; ln -s c.py pkg/a.py", {"pkg/a.py": b"wrong = 1\n"}),
    "an absolute link": ("mv pkg/a.py c.py; ln -s $PWD/c.py pkg/a.py", {"pkg/a.py": b"wrong = 1\n"}),
    "a link to a link": ("ln -s setup.cfg x; ln -s ../x pkg/y", {"pkg/y": b"[x]\n", "x": b"[x]\n"}),
    "a link out of the tree": ("rm pkg/a.py; ln -s /etc/ld.so.cache pkg/a.py", {"pkg/a.py": None}),
    "a link out and back": ("ln -s ../../../../$PWD/setup.cfg pkg/y", {}),
    "a folder comes back": (
        "rm -r pkg/deep; mkdir pkg/deep; echo 1 > pkg/deep/c",
        {"pkg/deep/b.py": None, "pkg/deep/c": b"1\n"},
    ),
    "a large module": ("head -c 3000000 /dev/zero > pkg/a.py", {"pkg/a.py": bytes(3_000_000)}),
    "a fifo": ("rm pkg/a.py; mkfifo pkg/a.py", {"pkg/a.py": None}),
    "what is skipped": ("echo x > .git/HEAD; mkdir pkg/__pycache__; echo x > pkg/__pycache__/a", {}),
}  # fmt: skip


@pytest.mark.parametrize(("command", "expected"), SWAPS.values(), ids=SWAPS)
def test_what_replaces_what_can_be_applied(
    sandbox: Sandbox, tree: list[Path], tmp_path: Path, *, command: str, expected: dict[str, bytes | None]
) -> None:
    echo = tmp_path / "echo.py"
    echo.write_text(ECHO)
    sandbox.begin(tree, {})
    assert sandbox.run(command, 20).status == 0
    files = sandbox.changes(SKIP).files
    assert {name: files.get(name, b"missing") for name in expected} == expected
    assert expected or files == {}
    gone = [name for name, content in files.items() if content is None]
    assert list(files)[: len(gone)] == gone
    copy = tmp_path / "copy"
    copy_layers(tree, copy)
    write_files(str(copy), files)
    look = "import os; print(sorted(os.path.join(f, n) for f, _, ns in os.walk('.') for n in ns))"
    listed = [f"./{path.relative_to(copy)}" for path in copy.rglob("*") if path.is_file()]
    answers = list(sandbox.ask(tree, files, program=echo, questions=[Question(look.encode(), 20)]))
    answers += list(sandbox.ask(tree, {}, program=echo, questions=[Question(look.encode(), 20, files)]))
    assert answers == [f"{sorted(listed)}\n".encode()] * 2
    pack(tree, files)


ANYTHING = """
import os, random, sys
top = os.getcwd()
draw = random.Random(int(sys.argv[1]))
names = ["pkg", "setup.cfg", "a.py", "deep", "b.py", "x", "y", "z"]
def path(): return "/".join(draw.choices(names, k=draw.randint(1, 4)))
def write(name):
    with open(name, "w") as file: file.write(name)
steps = [lambda: os.makedirs(path()), lambda: write(path()), lambda: os.rename(path(), path()),
         lambda: os.symlink(draw.choice(["..", path(), "../" + path(), os.getcwd() + "/" + path(), "/etc"]), path()),
         lambda: os.unlink(path()), lambda: os.chmod(path(), draw.choice([0, 0o111, 0o444, 0o755])),
         lambda: os.link(path(), path()), lambda: __import__("shutil").rmtree(path())]
for _ in range(150):
    try: draw.choice(steps)()
    except OSError: pass
try: os.chmod(top, 0o755)  # A link may have led to it.
except PermissionError: pass
for _ in range(9):
    for folder, folders, _ in os.walk("."):
        for name in folders:
            if not os.path.islink(f"{folder}/{name}"): os.chmod(f"{folder}/{name}", 0o755)
found = []
for folder, _, names in os.walk("."):
    for name in names:
        inner = os.path.join(folder, name)
        if not os.path.islink(inner) and os.path.isfile(inner):
            os.chmod(inner, 0o644)
            found.append((inner[2:], open(inner).read()))
open("/tmp/found", "w").write(repr(found))
if len(sys.argv) > 2:
    for name in ("pkg", "x", "pkg/a.py", "y"):
        if os.path.exists(name) and not os.path.islink(name): os.chmod(name, 0)
"""


@pytest.mark.parametrize("seed", range(8))
def test_what_is_read_and_written_is_the_tree_itself(
    safe_sandbox: Sandbox, tree: list[Path], tmp_path: Path, seed: int
) -> None:
    sandbox = safe_sandbox  # Nothing else holds what goes through links.
    sandbox.begin(tree, {})
    sandbox.run(f"cat > /tmp/any.py <<'END'\n{ANYTHING}\nEND\npython /tmp/any.py {seed} locked", 30)
    files = sandbox.changes(SKIP).files
    there = dict(eval(sandbox.run("cat /tmp/found", 10).output))
    copy = tmp_path / "copy"
    copy_layers(tree, copy)
    write_files(str(copy), files)
    here = {
        str(path.relative_to(copy)): path.read_text()
        for path in copy.rglob("*")
        if path.is_file() and ".git" not in path.parts
    }
    assert {name: here.get(name) for name in there if not name.startswith(".git/")} == {
        name: text for name, text in there.items() if not name.startswith(".git/")
    }
    linked = {name for name in here if name not in there}
    assert all(here[name] in there.values() for name in linked)


def test_a_tree_that_is_gone(sandbox: Sandbox, tree: list[Path]) -> None:
    sandbox.begin(tree, {})
    sandbox.run('cd /; rm -rf "$OLDPWD"; exec true', 10)
    files = sandbox.changes(SKIP).files
    assert files == dict.fromkeys(["pkg/__init__.py", "pkg/a.py", "pkg/deep/b.py", "setup.cfg"])
    assert sandbox.run("echo fine", 10).output == "fine\n"


def test_many_small_files_take_no_longer_than_few_large_ones() -> None:
    files = {f"f{number}": bytes(16_000) for number in range(MOST_NEW_FILES)}
    began = time.monotonic()
    assert decode(encode(files)) == (files, [])
    assert time.monotonic() - began < 2


def test_what_is_left_out_is_said(sandbox: Sandbox, tree: list[Path]) -> None:
    sandbox.begin(tree, {})
    sandbox.run("truncate -s 5M data.bin; ln -s /etc/passwd out; mkfifo pipe", 10)
    found = sandbox.changes(SKIP)
    assert found.files == {}
    assert sorted(found.left_out) == [
        "data.bin is larger than 4 MiB.",
        "out is a link to something that is not in the repository.",
        "pipe is not a plain file.",
    ]
    assert LARGEST_FILE == 4 << 20


def test_names_travel_to_the_graded_tree(sandbox: Sandbox, tree: list[Path], echo: Path) -> None:
    sandbox.begin(tree, {})
    sandbox.run(python(r"[open(name, 'w').close() for name in (b'\xff\n', '\u00e9'.encode(), b'a b')]"), 10)
    files = sandbox.changes().files
    assert sorted(os.fsencode(name) for name in files) == [b"a b", b"\xc3\xa9", b"\xff\n"]
    look = (
        b"import os; print(sorted(name for name in os.listdir(b'.') if name in (b'a b', b'\\xc3\\xa9', b'\\xff\\n')))"
    )
    answers = list(sandbox.ask(tree, files, program=echo, questions=[Question(look, 20), Question(look, 20, files)]))
    assert answers == [b"[b'a b', b'\\xc3\\xa9', b'\\xff\\n']\n"] * 2


BOMBS = {
    "forks in the background": "(b() { b | b & }; b) >/dev/null 2>&1 &",
    "forks that are nobody's": python("""
        import os
        if os.fork() == 0:
            os.setsid()
            while True:
                try: os.fork()
                except OSError: pass"""),
    "a shell that forks": "exec python -c 'import os\nwhile True:\n try: os.fork()\n except OSError: pass'",
    "one that wakes the shell": python("""
        import os, signal
        for _ in range(8):
            if os.fork() == 0:
                os.setsid()
                while True: os.kill(-1, signal.SIGCONT)"""),
    "one that stops whoever comes": python("""
        import os, signal
        if os.fork() == 0:
            os.setsid()
            while True:
                try: os.kill(os.getpid() + 1, signal.SIGSTOP)
                except OSError: pass"""),
    "sleepers": "for i in $(seq 200); do sleep 1000 & done 2>/dev/null",
    "a trap": "trap 'while :; do :; done' DEBUG",
    "a shell of many threads": "exec python -c 'import threading, time\n"
    "for _ in range(20): threading.Thread(target=time.sleep, args=(100,)).start()'",
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_a_bomb_costs_the_agent_its_shell_at_most(
    safe_sandbox: Sandbox, tree: list[Path], echo: Path, bomb: str
) -> None:
    safe_sandbox.begin(tree, {})
    safe_sandbox.run(REPAIR, 10)
    safe_sandbox.run(bomb, 2)
    files = safe_sandbox.changes(SKIP).files
    assert files == {"pkg/a.py": b"right = 2\n"}
    show = Question(b"print(open('pkg/a.py').read())", 20)
    assert list(safe_sandbox.ask(tree, files, program=echo, questions=[show])) == [b"right = 2\n\n"]
    safe_sandbox.run("trap - DEBUG", 2)
    assert safe_sandbox.run("echo fine", 20).output.endswith("fine\n")


def descendants(pid: int) -> list[int]:
    """Processes that a process has started, and those that these have, also those about to end."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            words = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
            children.setdefault(int(words[1]), []).append(int(name))
    found = children.get(pid, [])
    for child in found:
        found += children.get(child, [])
    return found


def test_what_was_killed_does_not_count_any_more_when_the_next_shell_starts(tree: list[Path]) -> None:
    """The memory of each of these takes a while to give back, and each of them counts until then."""
    code = (
        "import os, time\nx = bytearray(30 << 20)\n"
        "for _ in range(12):\n if not os.fork():\n  x[:] = b'1' * len(x)\n  break\n"
    )
    box: Any = open_sandbox("bubblewrap", Limits(processes=24))
    supervisor = box._supervisor._process.pid
    try:
        box.begin(tree, {})
        for _ in range(3):
            assert box.run("echo fine", 20).output == "fine\n"
            assert descendants(supervisor)
            assert box.run(f"exec python -c '{code}time.sleep(100)'", 1).timed_out
            assert not descendants(supervisor)
    finally:
        box.close()


def test_a_shell_that_could_not_be_started_is_started_again(tree: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    box = open_sandbox("bubblewrap")
    start, starts = type(box)._start_shell, []  # type: ignore[attr-defined]

    def start_late(self: Any) -> Any:
        starts.append(start(self))
        if len(starts) in (2, 3):
            self._kill_shell()
        return starts[-1]

    try:
        box.begin(tree, {})
        monkeypatch.setattr(type(box), "_start_shell", start_late)
        assert box.run("exit 3", 20) == Result("", None)
        assert box.run("echo fine", 20) == Result("fine\n", 0)
        assert len(starts) == 4
    finally:
        box.close()


def test_what_the_agent_has_started_ends_before_its_tree_is_read(sandbox: Sandbox, tree: list[Path]) -> None:
    sandbox.begin(tree, {})
    sandbox.run("X=7; (sleep 1; echo late > pkg/a.py) &", 10)
    assert sandbox.changes().files == {}
    time.sleep(1.5)
    assert sandbox.changes().files == {}
    assert sandbox.run("echo $X", 10).output.endswith("7\n")
    assert sandbox.run("cat pkg/a.py", 10).output == "wrong = 1\n"


READ_WHOEVER_COMES = """
import os, signal
if os.fork() == 0:
    os.setsid()
    other = os.getpid() + 1
    while True:
        try: os.kill(other, signal.SIGSTOP); break
        except OSError: pass
    text = "".join(open(f"/proc/{other}/{name}").read() for name in ("mountinfo", "mounts", "cmdline", "net/unix"))
    with open("/tmp/read", "w") as file: file.write(text)
    os.kill(other, signal.SIGCONT)
"""


def test_whoever_ends_processes_tells_them_nothing(safe_sandbox: Sandbox, tree: list[Path]) -> None:
    """A helper of the suite enters a box to end what runs there, and is stopped, read and continued."""
    safe_sandbox.begin(tree, {})
    read = ""
    for _ in range(20):  # Whoever comes is there for a moment, which may be missed.
        safe_sandbox.run(python(READ_WHOEVER_COMES), 10)
        safe_sandbox.changes()
        read = safe_sandbox.run("cat /tmp/read; cat /proc/net/unix | wc -l", 10).output
        if safe_sandbox.name != "bubblewrap" or "/testbed" in read:
            break
    else:
        pytest.fail("nobody was read")
    assert safe_sandbox.name != "bubblewrap" or read.count("/sockets") + read.count(".sock") == 0
    assert "secret-of-the-task" not in read


def test_a_supervisor_that_does_not_answer_is_ended(tree: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textagent_gym.sandbox.bubblewrap.sandbox._PATIENCE", 5.0)
    box: Any = open_sandbox("bubblewrap")
    box.begin(tree, {})
    os.kill(box._supervisor._process.pid, signal.SIGSTOP)
    began = time.monotonic()
    with pytest.raises(SandboxError, match="timed out"):
        box.run("echo", 5)
    box.close()
    assert time.monotonic() - began < 20


def test_links_are_followed_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these links takes a second: 38 steps through 60 folders."""
    monkeypatch.setattr("textagent_gym.sandbox.tree._SECONDS", 0.5)
    deep = tmp_path.joinpath(*["d"] * 60)
    deep.mkdir(parents=True)
    for number in range(38):
        (deep / f"l{number}").symlink_to(deep / f"l{number + 1}")
    (deep / "l38").touch()
    for number in range(20):
        (tmp_path / f"x{number}").symlink_to(deep / "l0")
    began = time.monotonic()
    files, left_out = noted_changes(str(tmp_path), {}, str(tmp_path), skip=(), order=BY_NAME)
    assert time.monotonic() - began < 8
    assert not [name for name in files if name.startswith("x")]
    assert "is left out: there is too much to read" in " ".join(left_out)


# From one question to the next.

DEVICES = """
import os
for name in ("null", "zero", "full", "random", "urandom", "tty", "pts/ptmx"):
    status = os.stat(f"/dev/{name}")
    print(oct(status.st_mode), name == "pts/ptmx" or status.st_mtime_ns)
os.openpty()
"""
SPOIL_DEVICES = """
import contextlib, os
for name in ("null", "zero", "full", "random", "urandom", "tty"):  # Output of this program is the caller's.
    for change in (lambda path: os.utime(path), lambda path: os.chmod(path, 0o666)):
        with contextlib.suppress(OSError): change(f"/dev/{name}")
with contextlib.suppress(OSError): os.chmod("/dev/pts/ptmx", 0)
"""


def test_devices_carry_nothing_over(tree: list[Path], echo: Path) -> None:
    """Their dates are for everybody to change who may write to them, and the machine has only one of each."""
    box = open_sandbox("bubblewrap")
    before = os.stat("/dev/null").st_mtime_ns
    try:
        questions = [Question(code.encode(), 20) for code in (DEVICES, SPOIL_DEVICES, DEVICES)]
        first, _, last = box.ask(tree, {}, program=echo, questions=questions)
        assert first == last
        assert first is not None
        assert b"Error" not in first
        box.begin(tree, {})
        assert box.run("touch /dev/null", 10).status == 1
        assert os.stat("/dev/null").st_mtime_ns == before
    finally:
        box.close()


TERMINALS = """
import os
taken = 0
try:
    while True: os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY); taken += 1
except OSError: print(taken)
"""


def test_terminals_are_left_for_others(tree: list[Path], echo: Path) -> None:
    box = open_sandbox("bubblewrap")
    try:
        box.begin(tree, {})
        assert box.run(python(TERMINALS), 20).output == "32\n"
        assert list(box.ask(tree, {}, program=echo, questions=[Question(TERMINALS.encode(), 20)] * 2)) == [b"32\n"] * 2
    finally:
        box.close()


LEFT_BEHIND = """
import os
os.getpid = lambda: 1
from textagent_gym.sandbox import Limits
from textagent_gym.sandbox.limits import ControlGroup
print(*ControlGroup(Limits()).folders, flush=True)
os._exit(1)
"""


def test_a_group_that_was_left_behind_is_in_nobodys_way() -> None:
    """In a container, the suite may have the same process number each time."""
    command = [sys.executable, "-c", LEFT_BEHIND]
    groups = [subprocess.run(command, capture_output=True, text=True, check=False).stdout.split() for _ in range(2)]
    for folder in (*groups[0], *groups[1]):
        os.rmdir(folder)
    assert len(groups[0]) == len(groups[1])


SPOILERS = {
    "limits of others": """
        import resource, os
        for pid in (os.getppid(), 1):
            for kind, value in ((resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_NOFILE, 3), (resource.RLIMIT_CPU, 0)):
                try: resource.prlimit(pid, kind, (value, value))
                except OSError: pass""",
    "priorities of others": """
        import os
        for pid in (os.getppid(), 1):
            for change in (lambda: os.setpriority(0, pid, 19), lambda: os.sched_setaffinity(pid, [0]),
                           lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))):
                try: change(); print("changed")
                except OSError: pass""",
    "files in memory": """
        import os
        for top in ("/dev/shm", "/tmp", "."):
            try:
                os.makedirs(f"{top}/deep"); os.symlink("/testbed", f"{top}/link"); os.chmod(f"{top}/deep", 0)
                os.makedirs(f"{top}/nest"); os.chdir(f"{top}/nest")
                for _ in range(1200): os.mkdir("d"); os.chdir("d")
            except OSError: pass
            os.chdir("/testbed")""",
    "processes": """
        import os, signal, time
        for _ in range(3):
            if os.fork() == 0:
                os.setsid()
                for number in range(1, 65):
                    try: signal.signal(number, signal.SIG_IGN)
                    except (OSError, ValueError): pass
                while True:
                    try: open("/tmp/alive", "w").close()
                    except OSError: pass
                    time.sleep(0.001)""",
    "the descriptors of the program": """
        import os
        for pid in (os.getppid(), 1):
            for number in range(200):
                try: open(f"/proc/{pid}/fd/{number}", "wb").write(bytes(8) * 100); print("written")
                except OSError: pass""",
    "the memory of the program": """
        import os
        for pid in (os.getppid(), 1):
            try: open(f"/proc/{pid}/mem", "r+b"); print("opened")
            except OSError: pass""",
    "signals": """
        import os, signal
        for pid in (os.getppid(), 1):
            for number in (signal.SIGSTOP, signal.SIGTSTP, signal.SIGCONT, signal.SIGINT, signal.SIGUSR1):
                try: os.kill(pid, number)
                except OSError: pass""",
    "all signals": """
        import contextlib, os, signal
        with contextlib.suppress(OSError): os.kill(-1, signal.SIGKILL)""",
    "inotify": """
        import ctypes
        print(sum(ctypes.CDLL(None).inotify_init() >= 0 for _ in range(200)) > 140)""",
    "memory": """
        import mmap, os
        for _ in range(3):
            if os.fork() == 0:
                area = mmap.mmap(-1, 300 << 20); area.write(b"x" * (300 << 20)); import time; time.sleep(100)""",
}


@pytest.mark.parametrize("spoiler", SPOILERS.values(), ids=SPOILERS)
def test_nothing_carries_over_from_one_question_to_the_next(
    safe_sandbox: Sandbox, tree: list[Path], echo: Path, spoiler: str
) -> None:
    probe = Question(
        b"import os, resource\n"
        b"print(sorted(os.listdir('.')), sorted(set(os.listdir('/tmp')) - {'said'}), os.listdir('/dev/shm'))\n"
        b"print([resource.getrlimit(kind) for kind in (1, 2, 7)], os.getpriority(0, 0), os.sched_getscheduler(0),"
        b" len(os.sched_getaffinity(0)), len(open('/proc/self/mountinfo').readlines()))\n"
        b"print(len([name for name in os.listdir('/proc') if name.isdigit()]))\n"
        b"print(sum(len(open(path).readlines()) for path in ('/proc/sysvipc/shm', '/proc/sysvipc/sem')))\n"
        b"bytearray(200 << 20); open('/tmp/size', 'wb').write(bytes(20 << 20))",
        20,
    )
    spoil = Question(textwrap.dedent(spoiler).encode(), 3)
    answers = list(safe_sandbox.ask(tree, {}, program=echo, questions=[probe, spoil, probe]))
    assert answers[0] is not None
    assert answers[2] == answers[0]
    assert answers[1] in (None, b"", b"False\n")


IPC = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
numbers = {"x86_64": dict(add_key=248, keyctl=250, shmget=29, msgget=68, semget=64, mq_open=240, ptrace=101,
    process_vm_readv=310, unshare=272, setns=308, mount=165, bpf=321, perf_event_open=298, userfaultfd=323, kcmp=312,
    pidfd_getfd=438, io_uring_setup=425, clone3=435, open_by_handle_at=304, fsopen=430, chroot=161, setpriority=141,
    io_setup=206),
  "aarch64": dict(add_key=217, keyctl=219, shmget=194, msgget=186, semget=190, mq_open=180, ptrace=117,
    process_vm_readv=270, unshare=97, setns=268, mount=40, bpf=280, perf_event_open=241, userfaultfd=282, kcmp=272,
    pidfd_getfd=438, io_uring_setup=425, clone3=435, open_by_handle_at=265, fsopen=430, chroot=51, setpriority=140,
    io_setup=0)}
wrong = []
calls = numbers[os.uname().machine]
for name, number in calls.items():
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), 0, 0, 0, 0, 0, 0)
    expected = errno.ENOSYS if name in ("io_uring_setup", "clone3") else errno.EPERM
    if result != -1 or ctypes.get_errno() != expected:
        wrong.append((name, result, ctypes.get_errno()))
for number in (1000, 0x40000000 | 39):
    ctypes.set_errno(0)
    if libc.syscall(ctypes.c_long(number), 0) != -1 or ctypes.get_errno() != errno.ENOSYS:
        wrong.append(number)
if os.uname().machine == "x86_64":  # As an i386 program would: sync().
    import mmap
    page = mmap.mmap(-1, 4096, prot=7)
    page.write(bytes.fromhex("53b814000000cd805bc3"))  # getpid by int 0x80
    function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    if function() != -errno.EPERM:
        wrong.append("int 0x80")
for change in (lambda: os.setpriority(0, 0, 5), lambda: libc.prctl(1, 0, 0, 0, 0) and 1 / 0):
    try:
        change(); wrong.append("changed")
    except (OSError, ZeroDivisionError):
        pass
import resource
if resource.getrlimit(resource.RLIMIT_CORE) != (1, 1):
    wrong.append("core dumps")
resource.prlimit(0, resource.RLIMIT_NOFILE, (500, 500))
for limit in (lambda: resource.setrlimit(4, (0, 0)), lambda: resource.prlimit(0, 4, (0, 0)),
              lambda: resource.prlimit(os.getppid(), 7)):
    try:
        limit(); wrong.append("limited")
    except (OSError, ValueError):
        pass
print(wrong)
"""


def test_system_calls_that_no_test_needs_are_denied(safe_sandbox: Sandbox, tree: list[Path], echo: Path) -> None:
    safe_sandbox.begin(tree, {})
    assert safe_sandbox.run(python(IPC), 20).output == "[]\n"
    assert list(safe_sandbox.ask(tree, {}, program=echo, questions=[Question(IPC.encode(), 20)])) == [b"[]\n"]


def test_a_filter_for_each_machine_that_has_one() -> None:
    families = SHELL_FAMILIES
    assert (
        seccomp_filter("arm64", families) == seccomp_filter("aarch64", families) != seccomp_filter("x86_64", families)
    )
    with pytest.raises(ValueError, match="riscv64"):
        seccomp_filter("riscv64", families)


FAMILIES = """
import ctypes, errno, os, socket
libc = ctypes.CDLL(None, use_errno=True)
numbers = {"x86_64": (41, 53), "aarch64": (198, 199)}[os.uname().machine]
def refused(number, family):
    pair = (ctypes.c_int * 2)()
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), ctypes.c_long(family), 1, 0, ctypes.byref(pair))
    if result >= 0 and number == numbers[0]:
        os.close(result)
    return result == -1 and ctypes.get_errno() == errno.EAFNOSUPPORT
wrong = [family for family in range(64) if refused(numbers[0], family) == (family in FAMILIES)]
wrong += [family for family in range(64) if family not in FAMILIES and not refused(numbers[1], family)]
upper = 1 << 32
wrong += [number for number in numbers if not refused(number, upper | 40) or not refused(number, -upper | 40)]
wrong += [refused(numbers[0], upper | 1)]  # The kernel looks at the lower half alone.
socket.socketpair()
if 2 in FAMILIES: socket.getaddrinfo("127.0.0.1", 80)
print([each for each in wrong if each])
"""


def test_no_socket_reaches_beyond_the_network_namespace(safe_sandbox: Sandbox, tree: list[Path], echo: Path) -> None:
    """VSOCK's ports are shared with the machine outside, and what netlink holds counts for no control group."""
    safe_sandbox.begin(tree, {})
    assert safe_sandbox.run(python(f"FAMILIES = {SHELL_FAMILIES}\n{FAMILIES}"), 20).output == "[]\n"
    tested = Question(f"FAMILIES = {TESTED_FAMILIES}\n{FAMILIES}".encode(), 20)
    assert list(safe_sandbox.ask(tree, {}, program=echo, questions=[tested])) == [b"[]\n"]


CONNECTIONS = """
import asyncio, socket
asyncio.run(asyncio.sleep(0))  # Its loop has a pair of sockets.
try:
    with socket.create_server(("127.0.0.1", 0)) as server:
        for _ in range(3):
            client = socket.create_connection(server.getsockname()); server.accept()[0].close(); client.close()
except OSError:
    pass
print(len(open("/proc/self/net/tcp").readlines()))
"""


def test_no_connection_carries_over_from_one_question_to_the_next(
    safe_sandbox: Sandbox, tree: list[Path], echo: Path
) -> None:
    """What TCP notes of one stays for a minute, with an address that can mean anything, whoever has ended."""
    questions = [
        Question(CONNECTIONS.encode(), 20),
        Question(b"print(len(open('/proc/self/net/tcp').readlines()))", 20),
    ]
    assert list(safe_sandbox.ask(tree, {}, program=echo, questions=questions)) == [b"1\n", b"1\n"]
    safe_sandbox.begin(tree, {})
    assert int(safe_sandbox.run(python(CONNECTIONS), 20).output) > 1  # An agent's own commands may connect.


QUEUES = """
import socket
server = socket.create_server(("127.0.0.1", 0), backlog=100)
ends, queued = [], 0
for _ in range(12):
    ends.append(socket.create_connection(server.getsockname()))
    ends.append(server.accept()[0])
    for end in ends[-2:]:
        end.setblocking(False)
        try:
            while True: queued += end.send(bytes(1 << 16))
        except BlockingIOError: pass
print(queued >> 20)
"""


def test_what_connections_hold_is_limited(tree: list[Path]) -> None:
    box: Any = open_sandbox("bubblewrap")
    try:
        if not box._groups["agent"].folders:
            pytest.skip("no control groups")
        box.begin(tree, {})
        assert int(box.run(python(QUEUES), 30).output) < 64
    finally:
        box.close()


def filtered(program: bytes, audit: int, number: int, argument: int) -> int:
    """What a filter of system calls returns for a call with this first argument: the kernel's machine, in small."""
    data = struct.pack("iIQ6Q", number, audit, 0, argument, *[0] * 5)
    found, place = 0, 0
    while True:
        code, if_true, if_false, value = struct.unpack_from("HBBI", program, 8 * place)
        place += 1
        match code:
            case 0x20:
                (found,) = struct.unpack_from("I", data, value)
            case 0x06:
                return int(value)
            case 0x15:
                place += if_true if found == value else if_false
            case 0x35:
                place += if_true if found >= value else if_false
            case 0x45:
                place += if_true if found & value else if_false
            case _:
                raise AssertionError(code)


@pytest.mark.parametrize("families", [(1, 2, 10), (1,)], ids=["a shell", "tested code"])
@pytest.mark.parametrize(
    ("machine", "audit", "socket", "socketpair"), [("x86_64", 0xC000003E, 41, 53), ("aarch64", 0xC00000B7, 198, 199)]
)
def test_few_families_of_sockets_are_let_through_on_each_machine(
    machine: str, audit: int, socket: int, socketpair: int, *, families: tuple[int, ...]
) -> None:
    assert families in (SHELL_FAMILIES, TESTED_FAMILIES)
    program = seccomp_filter(machine, families)
    for number in (socket, socketpair):
        for upper in (0, 1 << 32, 0xFFFFFFFF << 32):
            let_through = [f for f in range(256) if filtered(program, audit, number, upper | f) == 0x7FFF0000]
            assert let_through == list(families)
            assert filtered(program, audit, number, upper | 40) == 0x00050000 | errno.EAFNOSUPPORT
    assert filtered(program, audit, socketpair + 1, 40) == 0x7FFF0000  # Other calls do not take families.


def test_what_tests_need_still_works(safe_sandbox: Sandbox, tree: list[Path]) -> None:
    safe_sandbox.begin(tree, {})
    used = """
        import asyncio, multiprocessing, os, resource, signal, socket, sqlite3, ssl, subprocess, tempfile, threading
        from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
        from multiprocessing import shared_memory
        if __name__ == "__main__":
            with ThreadPoolExecutor() as pool: assert list(pool.map(abs, [-1])) == [1]
            with ProcessPoolExecutor(1) as pool: assert list(pool.map(abs, [-1])) == [1]
            block = shared_memory.SharedMemory(create=True, size=100); block.close(); block.unlink()
            multiprocessing.Lock().acquire()
            asyncio.run(asyncio.sleep(0)); socket.socketpair(); os.openpty(); tempfile.mkdtemp()
            resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
            signal.setitimer(signal.ITIMER_REAL, 0); os.sched_getaffinity(0); os.sched_setaffinity(0, {0})
            subprocess.run("yes | head -1 >/dev/null; test ${PIPESTATUS[0]} = 141", shell=True, check=True,
                           executable="/bin/bash")
            print("fine")"""
    result = safe_sandbox.run(python(used).replace("python -", "cat > x.py", 1) + "\npython x.py", 30)
    assert result.output == "fine\n"
    assert (
        safe_sandbox.run(
            "mkdir g && cd g && git init -q . && touch x && git add . && git status --short | head -1", 20
        ).status
        == 0
    )
    assert safe_sandbox.run("yes | head -1; echo ${PIPESTATUS[0]}", 20).output == "y\n141\n"


# What is seen, and what can be reached.


def test_nothing_seen_says_which_task_it_is(safe_sandbox: Sandbox, tree: list[Path], echo: Path) -> None:
    safe_sandbox.begin(tree, {})
    look = "cat /proc/self/mountinfo /proc/mounts /proc/self/cgroup /proc/1/cmdline /proc/1/environ /proc/cmdline"
    said = safe_sandbox.run(f"{look} 2>/dev/null | tr '\\0' ' '; cat /proc/keys", 10).output
    code = "import subprocess; print(subprocess.run(%r, shell=True, capture_output=True, text=True).stdout)" % look  # noqa: UP031
    (answer,) = safe_sandbox.ask(tree, {}, program=echo, questions=[Question(code.encode(), 20)])
    assert answer is not None
    for text in (said, answer.decode()):
        assert "secret-of-the-task" not in text


def test_no_setting_of_this_machine_can_be_changed(safe_sandbox: Sandbox, tree: list[Path], echo: Path) -> None:
    find = python("""
        import os
        found = []
        for top in ("/proc/sys", "/sys", "/proc"):
            for folder, folders, names in os.walk(top):
                folders[:] = [name for name in folders if not name.isdigit() and name not in ("self", "thread-self")]
                for name in names:
                    try: os.close(os.open(f"{folder}/{name}", os.O_WRONLY | os.O_NONBLOCK))
                    except OSError: continue
                    if folder == "/proc/pressure" or os.path.samefile(f"{folder}/{name}", "/dev/null"): continue
                    found.append(f"{folder}/{name}")
        print(sorted(set(found)))""")
    safe_sandbox.begin(tree, {})
    assert safe_sandbox.run(find, 30).output == "[]\n"
    if safe_sandbox.name == "bubblewrap":
        assert safe_sandbox.run("ls /sys /etc/passwd /home /usr/src /usr/share/doc /usr/local /var", 10).status != 0
        assert "No such file" in safe_sandbox.run("ls /sys", 10).output


def test_no_copy_of_a_package_is_seen(safe_sandbox: Sandbox) -> None:
    packages = [
        b"def camelize(",
        b"class TTLCache",
        b"class DiGraph",
        b"def simple_separated_format(",
        b"def css3_names",
    ]
    assert safe_sandbox.search(packages) == []
    found = safe_sandbox.search([b"def fnmatchcase(name, pat)"])
    assert any(path.endswith("/fnmatch.py") for path in found)


@pytest.mark.skipif(os.geteuid() != 0, reason="only where root runs the suite")
def test_root_here_is_nobody_there(tree: list[Path]) -> None:
    box = open_sandbox("bubblewrap")
    other = open_sandbox("bubblewrap")
    users = []
    for one in (box, other):
        one.begin(tree, {})
        one.run("python -c 'import time; time.sleep(60)' & echo x >> pkg/a.py; sleep 0.3", 10)
        found = subprocess.run(["ps", "-eo", "uid,args"], capture_output=True, text=True, check=True).stdout
        users += [line.split()[0] for line in found.splitlines() if line.endswith("import time; time.sleep(60)")]
        assert one.changes().files == {"pkg/a.py": b"wrong = 1\nx\n"}
        assert one.run("echo y > pkg/new && stat -c %u pkg/new pkg/a.py pkg/__init__.py", 10).output.endswith(
            "1000\n1000\n1000\n"
        )
    box.close()
    other.close()
    assert len(set(users)) == 2
    assert "0" not in users


@pytest.mark.skipif(os.geteuid() != 0, reason="only where root runs the suite")
def test_root_without_idmapped_mounts(
    tree: list[Path], echo: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    open_sandbox("bubblewrap").close()

    def refuse(mount: int, namespace: int) -> None:
        raise OSError(errno.EINVAL, "no such thing")

    monkeypatch.setattr(mounts, "change_owner", refuse)
    box = open_sandbox("bubblewrap")
    assert "has no idmapped mounts" in caplog.text
    box.begin(tree, {})
    assert box.run(f"{REPAIR}cat pkg/a.py; id -u", 20).output == "right = 2\n1000\n"
    assert box.run("echo > /proc/sys/kernel/core_pattern", 10).status == 1
    assert box.run("chmod 666 /dev/null", 10).status == 1
    files = box.changes().files
    show = Question(b"print(open('pkg/a.py').read())", 20)
    assert list(box.ask(tree, files, program=echo, questions=[show])) == [b"right = 2\n\n"]
    box.close()


def test_one_caller_at_a_time(tree: list[Path], echo: Path) -> None:
    box = open_sandbox("bubblewrap")
    show = [Question(b"print(1)", 20)] * 2
    first = iter(box.ask(tree, {}, program=echo, questions=show))
    assert next(first) == b"1\n"
    second = iter(box.ask(tree, {}, program=echo, questions=show))
    assert next(second) == b"1\n"
    with pytest.raises(SandboxError, match="meanwhile"):
        next(first)
    assert next(second) == b"1\n"
    box.close()


def test_kernel_limits_of_a_user_are_not_used_up(safe_sandbox: Sandbox, tree: list[Path]) -> None:
    safe_sandbox.begin(tree, {})
    take = python("""
        import ctypes, time
        libc = ctypes.CDLL(None)
        print(sum(libc.inotify_init() >= 0 for _ in range(1000)))""")
    taken = int(safe_sandbox.run(take, 20).output)
    if safe_sandbox.name == "bubblewrap":
        assert 0 < taken <= 32


NOT_ROOT = """
import ctypes, os, sys
from pathlib import Path
from textagent_gym.sandbox import Question, make_sandbox
from textagent_gym.sandbox.bubblewrap import mounts
from textagent_gym.sandbox.bubblewrap import BubblewrapSandbox

top = Path(sys.argv[1])
prefix = Path(sys.base_prefix).resolve()
libc = ctypes.CDLL(None)
assert libc.unshare(0x20000) == 0
assert libc.mount(b"none", b"/", None, ctypes.c_ulong(0x44000), None) == 0
if closed := [path for path in prefix.parents if not path.stat().st_mode & 1]:
    held = mounts.clone(prefix)
    assert libc.mount(b"tmpfs", os.fsencode(closed[-1]), b"tmpfs", ctypes.c_ulong(0), b"mode=755") == 0
    prefix.mkdir(parents=True)
    mounts.attach(held, str(prefix))
os.setgroups([])
os.setresgid(54321, 54321, 54321)
os.setresuid(54321, 54321, 54321)
layers = [top / "over", top / "under"]
for layer, text in zip(layers, ("wrong", "right")):
    (layer / "pkg").mkdir(parents=True)
    (layer / "pkg" / "a.py").write_text(text)
box = make_sandbox("bubblewrap")
for command in ("chmod 000 pkg/a.py pkg; mkdir n; echo 1 > n/x; chmod 000 n/x n .",
                "b() { b | b & }; b >/dev/null 2>&1 &"):
    box.begin(layers, {})
    box.run("echo repaired > pkg/a.py; " + command, 5)
    files = box.changes().files
    assert files["pkg/a.py"] == b"repaired\\n", files
    show = Question(b"print(open('pkg/a.py').read())", 20)
    assert list(box.ask(layers, files, program=top / "echo.py", questions=[show, show])) == [b"repaired\\n\\n"] * 2
    box.run("true", 20)
box.begin(layers, {})
wait = Question(b"import time; time.sleep(100)", 1)  # After which the program is started anew.
other = make_sandbox("bubblewrap")
assert list(other.ask(layers, {}, program=top / "echo.py", questions=[wait, show])) == [None, b"wrong\\n"]
other.close()
print(box.run("cat pkg/a.py; id -u; cat /proc/self/mountinfo | grep -c over/", 20))
box.close()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes somebody else")
def test_a_user_who_is_not_root_has_it_too(echo: Path) -> None:
    open_sandbox("bubblewrap").close()
    with tempfile.TemporaryDirectory() as name:  # Not below a folder of root's alone.
        os.chmod(name, 0o777)
        shutil.copy(echo, name)
        environment = {**os.environ, "TEXTAGENT_CACHE": f"{name}/cache", "HOME": name}
        command = [sys.executable, "-c", NOT_ROOT, name]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=120)
    assert "output='wrong1000\\n0\\n'" in done.stdout, done.stderr


# Folders of our own.


def test_emptying_copes_with_anything(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    (tmp_path / "kept").write_text("kept")
    script = """
        import os
        os.symlink("../kept", "link"); os.symlink("..", "up"); os.mkfifo("fifo"); os.makedirs("a/b/c/.1")
        open("a/b/x", "w").close(); os.mkdir(".1"); os.mkdir("d")
        os.chmod("a/b/c", 0); os.chmod("a/b", 0); os.chmod("a", 0); os.chdir("d")
        for _ in range(2000): os.mkdir("d" * 100); os.chdir("d" * 100)"""
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], cwd=top, check=True)
    empty(str(top))
    assert os.listdir(top) == []
    assert (tmp_path / "kept").read_text() == "kept"


WRITES: list[tuple[str, Callable[[Path], object], dict[str, bytes | None], dict[str, bytes]]] = [
    ("through a link", lambda top: (top / "d").symlink_to(top.parent), {"d/x": b"1"}, {"d/x": b"1"}),
    ("over a link", lambda top: (top / "x").symlink_to(top.parent / "y"), {"x": b"1"}, {"x": b"1"}),
    ("below a file", lambda top: (top / "x").write_text("0"), {"x/y/z": b"1"}, {"x/y/z": b"1"}),
    ("over a folder", lambda top: (top / "x" / "y").mkdir(parents=True), {"x": b"1"}, {"x": b"1"}),
    ("not there", lambda top: None, {"x/y": None, "z": None}, {}),
]


@pytest.mark.parametrize(("prepare", "files", "expected"), [case[1:] for case in WRITES], ids=[w[0] for w in WRITES])
def test_writing_gives_way(
    tmp_path: Path,
    prepare: Callable[[Path], object],
    files: dict[str, bytes | None],
    expected: dict[str, bytes],
) -> None:
    prepare(tmp_path)
    write_files(str(tmp_path), files)
    found = {str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert found == expected
    assert not any(path.is_symlink() for path in tmp_path.rglob("*"))


@pytest.mark.parametrize("name", ["../x", "/x", "a/../x", "", "a//b", "./a", "a\0b"])
def test_no_path_leads_out(tmp_path: Path, name: str) -> None:
    (tmp_path / "top").mkdir()
    with pytest.raises(ValueError, match="is no path"):
        write_files(str(tmp_path / "top"), {name: b"1"})
    assert os.listdir(tmp_path) == ["top"]
