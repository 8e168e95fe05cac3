"""The face of a sandbox, and the shell that all of them keep."""

from __future__ import annotations

import io
import json
import logging
import os
import platform
import secrets
import select
import shlex
import shutil
import tarfile
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from textagent_gym.errors import WorldBrokenError
from textagent_gym.sandbox import visible
from textagent_gym.sandbox.seccomp import TESTED_FAMILIES, seccomp_filter
from textagent_gym.sandbox.tree import is_path
from textagent_gym.texts import notice

ROOT = "/testbed"
"""Where the repository lies, in every sandbox that has a file system of its own."""

Changes = dict[str, bytes | None]
"""What has become of files: their new content by path below the root, or `None` for a file that is gone."""

_log = logging.getLogger("textagent_gym.swe")
_LONGEST_ANSWER = 1 << 22
_NONCE = 16
_SEARCH_SECONDS = 600.0
_MOST_STARTS = 4  # Of a shell, in a row, where it ends before it does anything.
_START_SECONDS = 20.0


class SandboxError(WorldBrokenError):
    """A sandbox is not available on this machine, or has failed; the message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What commands may use at most, all together.

    Attributes:
        memory: memory in mebibytes.
        processes: number of processes and threads at once.
        cpus: number of CPUs, where control groups or an engine limit them.
        disk: mebibytes that can be written.
        files: number of files that can be made.
        output: bytes of a command's output that are kept, half from its beginning and half from its end.
    """

    memory: int = 1024
    processes: int = 128
    cpus: float = 2.0
    disk: int = 256
    files: int = 20_000
    output: int = 100_000


@dataclass(frozen=True, slots=True)
class Result:
    """What a command did.

    Attributes:
        output: standard output and error in the order in which they came.
        status: exit status; `None` where the shell ended or was ended.
        timed_out: whether it ran out of time, and was ended with everything that it had started.
    """

    output: str
    status: int | None
    timed_out: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """One question to a program of ours.

    Attributes:
        message: bytes that the program is sent.
        timeout: seconds for the answer.
        files: files written over the tree for this question alone.
    """

    message: bytes
    timeout: float
    files: Changes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TreeChanges:
    """What has become of a tree.

    Attributes:
        files: changed files; those that are gone come first.
        left_out: at most ten sentences for the agent to read: what is not taken into account, and why.
    """

    files: Changes
    left_out: tuple[str, ...] = ()


class Sandbox(ABC):
    """Runs commands on a tree of files, and programs of ours on a fresh copy of that tree.

    A tree is given as layers, folders of which the first hides the others; none of them is ever written to.

    Args:
        limits: limits on what commands may use.

    Raises:
        SandboxError: this machine cannot have it.
    """

    name: str

    @property
    def platform(self) -> str:
        """What decides on the outcome of a test, in a short word: the same word, the same interpreter and libraries."""
        return f"python{platform.python_version()}"

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()

    @property
    def filter(self) -> bytes:
        """The filter of system calls that tested code gets; see `seccomp`.

        Raises:
            SandboxError: there is none for this machine.
        """
        return filter_for(platform.machine(), TESTED_FAMILIES)

    @abstractmethod
    def begin(self, layers: Sequence[Path], environment: Mapping[str, str], *, image: str = "") -> None:
        """A fresh tree and a fresh shell in it; what was there before is gone, processes included.

        Args:
            layers: layers of the tree.
            environment: variables of the shell.
            image: image of a container, which holds the tree below the layers at `ROOT`; only engines of containers
                have images.

        Raises:
            SandboxError: there are no images here, or not this one.
        """

    @abstractmethod
    def run(self, command: str, timeout: float) -> Result:
        """Run a command in the shell, which keeps its folder and variables from one command to the next.

        A command that takes longer than `timeout` seconds is ended with all its processes, and the shell with it; the
        files stay, and the next command gets a new shell.
        """

    @abstractmethod
    def changes(self, skip: Collection[str] = ()) -> TreeChanges:
        """What the commands have made of the tree, read from outside; never raises for anything that they did.

        What they have started is ended first, but for the shell, which stands still until the next command.

        Args:
            skip: names of folders, such as ".git", that are not looked into.
        """

    @abstractmethod
    def ask(
        self, layers: Sequence[Path], files: Changes, *, program: Path, questions: Iterable[Question]
    ) -> Iterator[bytes | None]:
        """Ask a Python program of ours about a tree that nobody else has touched, afresh for each question.

        Nothing carries over from one question to the next: no process, file, mount, shared memory or limit.

        Args:
            layers: layers of the tree.
            files: files written over the tree.
            program: file of the program, started as `python -P PROGRAM DESCRIPTOR ROOT FILTER`: the descriptor that it
                answers on, the folder of the tree, and the `filter` for tested code as hexadecimal digits, "" where
                there is none. It reads questions on standard input; see `converse` for the form. It sends an empty
                message when it is ready, and, before it answers, ends all processes that the question has started.
            questions: questions, each of them taken, and asked, when the caller wants its answer.

        Returns:
            an iterator over the answers, of 4 MiB at most; `None` where the time was up or the program has ended. It is
            started afresh then.
        """

    def search(self, texts: Sequence[bytes]) -> list[str]:
        """Files that are seen in the sandbox beside the tree, and contain one of some texts. Takes seconds.

        Raises:
            SandboxError: there is no answer.
        """
        question = Question(json.dumps([text.hex() for text in texts]).encode(), _SEARCH_SECONDS)
        answer = next(iter(self.ask((), {}, program=Path(visible.__file__), questions=[question])))
        if answer is None:
            raise SandboxError("what is seen in the sandbox cannot be searched")
        return [str(path) for path in json.loads(answer)]

    @abstractmethod
    def close(self) -> None:
        """End everything and leave nothing behind."""


class Shell:
    """A bash that answers command by command, over two file descriptors.

    After each command it prints a word that nobody can guess with the exit status. A command that ends the shell, or
    takes the word's way out from it, costs a new shell, and nothing else.
    """

    def __init__(self, stdin: int, stdout: int, keep: int) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self._keep = keep

    def run(self, command: str, timeout: float) -> Result:
        """See `Sandbox.run`; the caller ends the shell where the status is `None`."""
        word = secrets.token_hex(16)
        script = f"eval {shlex.quote(command)} </dev/null; printf '\\n{word} %s\\n' \"$?\"\n"
        deadline = time.monotonic() + timeout
        if not write_all(self._stdin, script.encode(), deadline):
            return Result("", None, timed_out=time.monotonic() >= deadline)
        collected = _Ends(self._keep)
        marker = f"\n{word} ".encode()
        while True:
            tail = collected.tail
            found = tail.rfind(marker)
            if found >= 0 and tail.endswith(b"\n"):
                status = tail[found + len(marker) :].strip()
                collected.cut(len(tail) - found)
                return Result(collected.text(), int(status) if status.isdigit() else None)
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._stdout], [], [], left)[0]:
                return Result(collected.text(), None, timed_out=True)
            data = os.read(self._stdout, 1 << 16)
            if not data:
                return Result(collected.text(), None)
            collected.add(data)

    def close(self) -> None:
        """Close both ends."""
        os.close(self._stdin)
        os.close(self._stdout)


class ShellSandbox(Sandbox):
    """A sandbox whose shell hangs on two file descriptors of this process."""

    def __init__(self, limits: Limits | None = None) -> None:
        super().__init__(limits)
        self._shell: Shell | None = None

    def run(self, command: str, timeout: float) -> Result:
        """See `Sandbox.run`."""
        if self._shell is None:
            self._begin_shell()
        assert self._shell is not None
        self._resume()
        result = self._shell.run(command, timeout)
        if result.status is None:
            self._end_shell()
        return result

    def _begin_shell(self) -> None:
        """Start a shell; again, after a while, where it ends at once: what has just been killed may still count."""
        for start in range(_MOST_STARTS):
            self._end_shell()
            time.sleep(0.3 * start)
            self._shell = self._start_shell()
            answer = self._shell.run(":", _START_SECONDS)
            if answer.status == 0 or answer.timed_out:
                return
            _log.info("a shell has ended before it did anything: %s", answer.output)

    @abstractmethod
    def _start_shell(self) -> Shell:
        """A shell in the tree."""

    @abstractmethod
    def _resume(self) -> None:
        """Let the shell continue if it stands still."""

    def _end_shell(self) -> None:
        """End the shell and all that it has started."""
        if self._shell is not None:
            self._kill_shell()
            self._shell.close()
            self._shell = None

    @abstractmethod
    def _kill_shell(self) -> None:
        """End the processes of the shell."""


class _Ends:
    """The beginning and the end of a long output."""

    def __init__(self, keep: int) -> None:
        self._half = max(256, keep // 2)
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, data: bytes) -> None:
        room = self._half - len(self._head)
        if room > 0 and not self._left_out:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * self._half:
            self._left_out += len(self._tail) - self._half
            self._tail = self._tail[-self._half :]

    @property
    def tail(self) -> bytes:
        """The end of what has come so far, long enough for a marker."""
        head = b"" if self._left_out else self._head[-128:]
        return bytes(head + self._tail[-128:])[-128:]

    def cut(self, count: int) -> None:
        """Take so many bytes off the end."""
        from_tail = min(count, len(self._tail))
        self._tail = self._tail[: len(self._tail) - from_tail]
        if count > from_tail:
            self._head = self._head[: len(self._head) - (count - from_tail)]

    def text(self) -> str:
        if self._left_out:
            return (self._head + notice(self._left_out, "bytes").encode() + self._tail).decode(errors="replace")
        return (self._head + self._tail).decode(errors="replace")


def filter_for(machine: str, families: tuple[int, ...]) -> bytes:
    """A filter of system calls; see `seccomp_filter`.

    Raises:
        SandboxError: there is none for this kind of machine.
    """
    try:
        return seccomp_filter(machine, families)
    except ValueError as error:
        raise SandboxError(str(error)) from error


def no_images(name: str, image: str) -> None:
    """Refuse an image where there is no engine for it."""
    if image:
        raise SandboxError(f"sandbox={name!r} cannot run the image {image}; choose 'docker' or 'podman'")


def ask_once(stdin: int, answers: int, question: Question) -> bytes | None:
    """Put a question to a program, and read the answer.

    Both are messages (see `converse`) that begin with the same random bytes, so that no other message is taken for the
    answer.

    Returns:
        the answer, or `None` when the time is up, the program has ended, or has said something else.
    """
    nonce = secrets.token_bytes(_NONCE)
    answer = converse(stdin, answers, nonce + question.message, question.timeout, _LONGEST_ANSWER + _NONCE)
    if answer is None or not secrets.compare_digest(answer[:_NONCE], nonce):
        return None
    return answer[_NONCE:]


def converse(stdin: int, answers: int, message: bytes, timeout: float, most: int = 1 << 26) -> bytes | None:
    """Send a message and read the answer; both begin with their length in 8 bytes.

    Returns:
        the answer, or `None` when the time is up, the other side has ended, or says more than `most` bytes.
    """
    deadline = time.monotonic() + timeout
    if not write_all(stdin, len(message).to_bytes(8, "big") + message, deadline):
        return None
    head = _read_exactly(answers, 8, deadline)
    length = int.from_bytes(head or b"", "big")
    return None if head is None or length > most else _read_exactly(answers, length, deadline)


def wait_until_ready(answers: int, timeout: float = 60.0) -> None:
    """Wait for the empty message of a program that has started.

    Raises:
        SandboxError: it does not come.
    """
    if _read_exactly(answers, 8, time.monotonic() + timeout) != bytes(8):
        raise SandboxError("the program that runs tests has not started in the sandbox")


def write_all(descriptor: int, data: bytes, deadline: float) -> bool:
    """Write everything; `False` if that is not possible in time."""
    view = memoryview(data)
    while view:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([], [descriptor], [], left)[1]:
            return False
        try:
            view = view[os.write(descriptor, view[:4096]) :]
        except BrokenPipeError:
            return False
    return True


def _read_exactly(descriptor: int, length: int, deadline: float) -> bytes | None:
    parts: list[bytes] = []
    while length:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            return None
        data = os.read(descriptor, min(length, 1 << 16))
        if not data:
            return None
        parts.append(data)
        length -= len(data)
    return b"".join(parts)


def check_path(name: str) -> list[str]:
    """The folders of a file's path, outermost first.

    Raises:
        SandboxError: the path leads out of the tree.
    """
    if not is_path(name):
        raise SandboxError(f"{name!r} is no path of a file in a repository")
    return [str(parent) for parent in reversed(PurePosixPath(name).parents[:-1])]


def copy_layers(layers: Sequence[Path], root: Path, *, left_out: Sequence[str] = ()) -> None:
    """Copy a tree given as layers into a folder, which may exist; files by these names are left out."""
    root.mkdir(exist_ok=True)
    for layer in reversed(layers):
        shutil.copytree(layer, root, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*left_out))


def pack(layers: Sequence[Path], files: Changes) -> bytes:
    """A tree as an archive: its layers, of which the first hides the others, and files over them."""
    sources: dict[str, Path] = {}
    for layer in reversed(layers):
        for folder, folders, names in os.walk(layer):
            for name in (*folders, *names):
                path = Path(folder, name)
                sources[str(path.relative_to(layer))] = path
    for name, content in files.items():
        if content is None:
            through_link = any(parent in sources and sources[parent].is_symlink() for parent in check_path(name))
            if not through_link and name in sources and (sources[name].is_symlink() or not sources[name].is_dir()):
                del sources[name]
            continue
        for parent in check_path(name):  # Files and links give way to folders, and folders to files.
            if parent in sources and (sources[parent].is_symlink() or not sources[parent].is_dir()):
                del sources[parent]
        if name in sources and sources[name].is_dir():
            sources = {path: source for path, source in sources.items() if not path.startswith(f"{name}/")}
        sources.pop(name, None)
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, path in sorted(sources.items()):
            member = tar.gettarinfo(path, name)
            if member is None:
                continue  # A socket.
            if member.islnk():  # One file by two names.
                member.type, member.size = tarfile.REGTYPE, path.stat().st_size
            member.mtime = int(member.mtime)
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            if member.isfile():
                with path.open("rb") as stream:
                    tar.addfile(member, stream)
            elif member.isdir() or member.issym():
                tar.addfile(member)
        for name, content in sorted(files.items()):
            if content is not None:
                member = tarfile.TarInfo(name)
                member.size = len(content)
                member.mtime = int(time.time())
                tar.addfile(member, io.BytesIO(content))
    return data.getvalue()
