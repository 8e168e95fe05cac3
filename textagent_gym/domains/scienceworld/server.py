"""ScienceWorld's simulator in Java processes that are reused from episode to episode.

The package's own `step` also lists every valid action, which takes many times as long as the step. Here the simulator
is called directly, and the list is made when it is asked for. A process plays one episode at a time.

    take() --> Server --load, step, ...--> give back --> the next take()
                  \\-- does not answer, is gone: WorldBrokenError, and the process is stopped
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import secrets
import shutil
import subprocess
from collections import deque
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread, Timer
from typing import Any
from weakref import WeakSet

from textagent_gym.errors import TextAgentError, WorldBrokenError
from textagent_gym.files import PART, cache_folder
from textagent_gym.processes import after_fork, start

_START_SECONDS = 180.0  # It takes one; on a machine with ten times as much to do as it can, twenty.
_CALL_SECONDS = 180  # The longest call, a gold path, takes two; on such a machine, fifty.
_MOST_IDLE = 4  # Processes kept for the next episodes; each holds about 300 MB.
DETERMINISTIC = ("-XX:+UnlockExperimentalVMOptions", "-XX:hashCode=2")
"""Options of Java with which equal actions have equal results: the simulator goes through sets in the order of hashes
that are random, which decides texts, temperatures and gold paths. With equal hashes, it is the order of insertion."""
_NO_FILES = ("-XX:-UsePerfData", f"-XX:ErrorFile={os.devnull}")
"""Options of Java with which it writes no files of its own: none that others watch it by, none where it breaks down."""
_JAVA_OPTIONS = (*DETERMINISTIC, *_NO_FILES, "-Xmx256m", "-XX:+UseSerialGC")
_TABLE = "object_type_ids.tsv"  # What the simulator reads when it starts, and writes again with each new type.
_MOST_PRINTED = 4000  # Bytes of what Java says on standard error that are kept for a message.
_END_SECONDS = 5.0  # Between the end of a process's output and that of the process.
_MOST_CHARACTERS = 1000  # Of an action that are sent; the longest valid ones have about 150.
NOT_UNDERSTOOD = ("No known action matches that input.", "Unknown action.")
"""Beginnings of the simulator's answers to what is not a command."""
logging.getLogger("py4j").addHandler(logging.NullHandler())  # What it says of a process that is gone, an error says.


class MissingJavaError(TextAgentError, RuntimeError):
    """There is no Java on this machine; the message says how to get it."""


class Server:
    """One Java process with one simulator.

    The simulator keeps a table of object types in its working folder. That is a folder of the cache, the same for every
    process, in which the table is a link to nowhere: it is read as empty, and what is written is gone, so that however
    a process ends, it leaves nothing behind.

    Raises:
        MissingJavaError: there is no Java.
        WorldBrokenError: the process has not started; raised by every other method where it does not answer.
    """

    def __init__(self) -> None:
        import py4j.java_gateway as py4j
        from py4j.protocol import Py4JError
        from scienceworld.constants import JAR_PATH

        self._errors = (Py4JError, OSError)
        self._owner = os.getpid()
        self._gateway: Any = None
        jars = os.pathsep.join(map(os.path.abspath, (py4j.find_jar_path(), JAR_PATH)))
        command = [_java(), "-cp", jars, *_JAVA_OPTIONS]
        # Where the kernel does not see to it, it ends as soon as its input does.
        self._process = start(
            [*command, "py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=_working_folder(),
        )
        _servers.add(self)
        port, token = self._started(command[0])
        parameters = py4j.GatewayParameters(
            port=port,
            auth_token=token,
            read_timeout=_CALL_SECONDS,
            enable_memory_management=False,  # Few objects are asked for, and they go with the process.
        )
        try:
            self._gateway = py4j.JavaGateway(gateway_parameters=parameters)
            self._interface: Any = self._gateway.jvm.scienceworld.runtime.pythonapi.PythonInterface()
        except self._errors as error:
            self.stop()
            raise WorldBrokenError(f"The simulator of ScienceWorld has not started: {_first_line(error)}") from None

    def _started(self, java: str) -> tuple[int, str]:
        """Port and password of the simulator, which the process prints first.

        Raises:
            WorldBrokenError: it has ended, or it does not print them in time.
        """
        printed, late = bytearray(), Event()
        reader = Thread(target=_drain, args=(self._process.stderr, printed), daemon=True)
        reader.start()

        def give_up() -> None:
            late.set()
            self._process.kill()

        limit = Timer(_START_SECONDS, give_up)
        limit.start()
        assert self._process.stdout is not None
        port, token = self._process.stdout.readline(), self._process.stdout.readline()
        limit.cancel()
        if token:
            Thread(target=_drain, args=(self._process.stdout, bytearray()), daemon=True).start()
            return int(port), token.decode().strip()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        reader.join(_END_SECONDS)
        status = self._process.poll()
        self.stop()
        start = "Java has not started the simulator of ScienceWorld"
        if late.is_set():
            raise WorldBrokenError(f"{start} within {_START_SECONDS:g} s.")
        reason = printed.decode(errors="replace").strip() or "it said nothing on standard error"
        raise WorldBrokenError(f"{start}: {java} has ended with status {status}: {reason}")

    @property
    def pid(self) -> int:
        """Number of the Java process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process runs, and belongs to this process and not to the one that this was forked from."""
        return self._owner == os.getpid() and self._process.poll() is None

    def load(self, task: str, variation: int, simplifications: str, *, gold: bool = False) -> None:
        """Begin a task.

        Args:
            task: name of the task, such as "boil".
            variation: number of the variation, from 0.
            simplifications: names with commas between them; "" for no simplification.
            gold: whether to compute a gold path.
        """
        self._call("load", task, variation, simplifications, gold)

    def step(self, action: str) -> str:
        """Act; the observation."""
        return str(self._call("step", action[:_MOST_CHARACTERS].encode("utf-8", "replace").decode()))

    def score(self) -> int:
        """Score, up to 100; -100 after a wrong focus."""
        return round(100 * float(self._call("getScore")))

    def completed(self) -> bool:
        """Whether the simulator has ended the task."""
        return bool(self._call("getCompleted"))

    def description(self) -> str:
        """What is to be done."""
        return str(self._call("getTaskDescription"))

    def valid_actions(self) -> list[str]:
        """Every action that the simulator takes for valid now; takes 40 to 300 ms."""
        listed = json.loads(self._call("getValidActionObjectCombinationsJSON"))["validActions"]
        return [str(each["action"]) for each in listed]

    def objects(self) -> int:
        """Number of objects in the world."""
        return len(json.loads(self._call("getAllObjectTypesLUTJSON")))

    def gold_path(self) -> list[str]:
        """Actions that solve the task, from its beginning; `load` was called with `gold`."""
        return [str(action) for action in self._call("getGoldActionSequence")]

    def variations(self, split: str) -> list[int]:
        """Official variations of the task that was loaded; `split` is "train", "dev" or "test"."""
        return [int(number) for number in self._call(f"getVariations{split.capitalize()}")]

    def stop(self) -> None:
        """End the process and wait for its end."""
        if self._owner == os.getpid():
            if self._gateway is not None:
                self._gateway.close()
            self._process.kill()
            self._process.wait()
        self.close_pipe()

    def close_pipe(self) -> None:
        """Close the pipe whose end ends the process: nobody else may keep it open."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()

    def _call(self, name: str, *arguments: Any) -> Any:
        if not self.alive:
            raise WorldBrokenError("The Java process of ScienceWorld has ended.")
        try:
            return getattr(self._interface, name)(*arguments)
        except self._errors as error:
            self.stop()
            raise WorldBrokenError(f"ScienceWorld's simulator has failed in {name}: {_first_line(error)}") from None


def take() -> Server:
    """A simulator: one that is idle, or a new one."""
    while _idle:
        with suppress(IndexError):  # Another thread was faster.
            server = _idle.pop()
            if server.alive:
                return server
            server.stop()
    return Server()


def give(server: Server) -> None:
    """Keep a simulator for the next episode, or stop it where enough are kept."""
    if server.alive and len(_idle) < _MOST_IDLE:
        _idle.append(server)
    else:
        server.stop()


def stop_idle() -> None:
    """Stop every simulator that is not in use."""
    while _idle:
        _idle.pop().stop()


_idle: deque[Server] = deque()
_servers: WeakSet[Server] = WeakSet()


def _stop_all() -> None:
    for server in list(_servers):
        server.stop()


def _forget() -> None:
    """In a forked process: the simulators are the other one's, and end with that one, not with this."""
    _idle.clear()
    for server in list(_servers):
        server.close_pipe()


atexit.register(_stop_all)
after_fork(_forget)


def _working_folder() -> Path:
    """Folder in which every simulator runs; see `Server`.

    Raises:
        WorldBrokenError: the cache folder cannot be written.
    """
    folder = cache_folder() / "scienceworld" / "working-folder"
    table = folder / _TABLE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # None is there at first; a file is, where a simulator ran while somebody emptied the cache. On Windows, only
        # administrators make links: there the table is a file that all share.
        if os.name != "nt" and not table.is_symlink():
            link = folder / f".{_TABLE}-{secrets.token_hex(4)}{PART}"
            link.symlink_to(os.devnull)
            link.replace(table)
    except OSError as error:
        raise WorldBrokenError(
            f"ScienceWorld's simulator needs a folder in the cache: {error}. TEXTAGENT_CACHE names another cache folder"
        ) from None
    return folder


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else None
    java = java or shutil.which("java")
    if java is None:
        named = f"none in the `bin` of JAVA_HOME={home}" if home else "JAVA_HOME is not set"
        raise MissingJavaError(
            f"ScienceWorld's simulator needs Java 8 or newer: there is no `java` in PATH, and {named}. "
            "On Debian or Ubuntu: apt-get install openjdk-17-jre-headless"
        )
    return java


def _drain(stream: Any, kept: bytearray) -> None:
    """Read what the process prints, or it stops when the pipe is full, and keep the beginning."""
    with suppress(OSError, ValueError):
        while part := stream.read1(65536):
            kept += part[: _MOST_PRINTED - len(kept)]


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
