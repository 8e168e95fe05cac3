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
import shutil
import subprocess
import tempfile
from collections import deque
from contextlib import suppress
from pathlib import Path
from threading import Thread, Timer
from typing import Any
from weakref import WeakSet

from textagent_gym.errors import TextAgentError, WorldBrokenError
from textagent_gym.processes import after_fork, start

_START_SECONDS = 180.0  # It takes one; on a machine with ten times as much to do as it can, twenty.
_CALL_SECONDS = 180  # The longest call, a gold path, takes two; on such a machine, fifty.
_MOST_IDLE = 4  # Processes kept for the next episodes; each holds about 300 MB.
DETERMINISTIC = ("-XX:+UnlockExperimentalVMOptions", "-XX:hashCode=2")
"""Options of Java with which equal actions have equal results: the simulator goes through sets in the order of hashes
that are random, which decides texts, temperatures and gold paths. With equal hashes, it is the order of insertion."""
_JAVA_OPTIONS = (*DETERMINISTIC, "-Xmx256m", "-XX:+UseSerialGC", "-XX:-UsePerfData")
_MOST_CHARACTERS = 1000  # Of an action that are sent; the longest valid ones have about 150.
NOT_UNDERSTOOD = ("No known action matches that input.", "Unknown action.")
"""Beginnings of the simulator's answers to what is not a command."""
logging.getLogger("py4j").addHandler(logging.NullHandler())  # What it says of a process that is gone, an error says.


class MissingJavaError(TextAgentError, RuntimeError):
    """There is no Java on this machine; the message says how to get it."""


class Server:
    """One Java process with one simulator, in a working folder of its own, which goes with it.

    The simulator reads and writes a table of object types in its working folder, `object_type_ids.tsv`.

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
        self._folder = tempfile.mkdtemp(prefix="textagent-scienceworld-")
        # Where the kernel does not see to it, it ends as soon as its input does.
        self._process = start(
            [*command, "py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._folder,
        )
        _servers.add(self)
        assert self._process.stdout is not None
        limit = Timer(_START_SECONDS, self._process.kill)
        limit.start()
        port, token = self._process.stdout.readline(), self._process.stdout.readline()
        limit.cancel()
        if not token:
            self.stop()
            raise WorldBrokenError(f"Java has not started the simulator of ScienceWorld within {_START_SECONDS:g} s.")
        Thread(target=_drain, args=(self._process.stdout,), daemon=True).start()
        parameters = py4j.GatewayParameters(
            port=int(port),
            auth_token=token.decode().strip(),
            read_timeout=_CALL_SECONDS,
            enable_memory_management=False,  # Few objects are asked for, and they go with the process.
        )
        try:
            self._gateway = py4j.JavaGateway(gateway_parameters=parameters)
            self._interface: Any = self._gateway.jvm.scienceworld.runtime.pythonapi.PythonInterface()
        except self._errors as error:
            self.stop()
            raise WorldBrokenError(f"The simulator of ScienceWorld has not started: {_first_line(error)}") from None

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
        """End the process, wait for its end and delete its folder."""
        if self._owner == os.getpid():
            if self._gateway is not None:
                self._gateway.close()
            self._process.kill()
            self._process.wait()
            shutil.rmtree(self._folder, ignore_errors=True)
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


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else None
    java = java or shutil.which("java")
    if java is None:
        raise MissingJavaError(
            "ScienceWorld's simulator needs Java 8 or newer, and there is no `java` in PATH and no JAVA_HOME. "
            "On Debian or Ubuntu: apt-get install openjdk-17-jre-headless"
        )
    return java


def _drain(stream: Any) -> None:
    """Read what the process prints, or it stops when the pipe is full."""
    with suppress(OSError, ValueError):
        while stream.read(65536):
            pass


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
