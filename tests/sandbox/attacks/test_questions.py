"""Nothing that graded code does reaches from one question to the next."""

from __future__ import annotations

import errno
import os
import struct
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox.attacks.conftest import python
from tests.sandbox.conftest import open_sandbox
from textagent_gym.sandbox import Question, Sandbox
from textagent_gym.sandbox.seccomp import SHELL_FAMILIES, TESTED_FAMILIES, seccomp_filter

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
