"""Reading the tree: whatever is done to it, the repair is found, and nothing raises."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox.attacks.conftest import REPAIR, SKIP, python
from tests.sandbox.conftest import open_sandbox
from tests.sandbox.test_sandbox import ECHO
from textagent_gym.sandbox import Limits, Question, Result, Sandbox, SandboxError
from textagent_gym.sandbox.changes import BY_NAME, decode, encode, noted_changes
from textagent_gym.sandbox.layers import copy_layers, pack
from textagent_gym.sandbox.tree import LARGEST_FILE, MOST_BYTES, MOST_NEW_FILES
from textagent_gym.sandbox.writing import write_files

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
