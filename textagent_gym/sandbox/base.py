"""The contract: what a sandbox is given, what it does, and what it answers."""

from __future__ import annotations

import json
import platform
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from textagent_gym.errors import WorldBrokenError
from textagent_gym.sandbox import visible
from textagent_gym.sandbox.changes import BY_NAME, ReadingOrder
from textagent_gym.sandbox.seccomp import TESTED_FAMILIES, seccomp_filter
from textagent_gym.sandbox.toolbox import Toolbox

ROOT = "/testbed"
"""Root of the tree, in every sandbox that has a file system of its own."""

Changes = dict[str, bytes | None]
"""What has become of files: their new content by path below the root, or `None` for a file that is gone."""

_SEARCH_SECONDS = 600.0  # Seconds for a search of all that is seen, archives included.


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
        toolbox: Python packages and variables that commands find beside the tree.

    Raises:
        SandboxError: this machine cannot have it.
    """

    name: str

    @property
    def platform(self) -> str:
        """What decides on the outcome of a test, in a short word: the same word, the same interpreter and libraries."""
        return f"python{platform.python_version()}"

    def __init__(self, limits: Limits | None = None, toolbox: Toolbox | None = None) -> None:
        self.limits = limits or Limits()
        self.toolbox = toolbox or Toolbox()

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
    def changes(self, skip: Collection[str] = (), order: ReadingOrder = BY_NAME) -> TreeChanges:
        """What the commands have made of the tree, read from outside; never raises for anything that they did.

        What they have started is ended first, but for the shell, which stands still until the next command.

        Args:
            skip: names of folders, such as ".git", that are not looked into.
            order: order in which new files are read, 2,000 at most.
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
                there is none. It reads questions on standard input; see `messages.converse` for the form. It sends an
                empty message when it is ready, and ends all that a question has started before it answers.
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


def filter_for(machine: str, families: tuple[int, ...]) -> bytes:
    """A filter of system calls; see `seccomp_filter`.

    Raises:
        SandboxError: there is none for this kind of machine.
    """
    try:
        return seccomp_filter(machine, families)
    except ValueError as error:
        raise SandboxError(str(error)) from error
