"""What is seen in a sandbox, and what can be reached from there."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.sandbox.attacks.conftest import REPAIR, python
from tests.sandbox.conftest import open_sandbox
from textagent_gym.sandbox import Question, Sandbox, SandboxError
from textagent_gym.sandbox.bubblewrap import mounts


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
