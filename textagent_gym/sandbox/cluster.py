"""Sandboxes on the machines of a Ray cluster: an actor there keeps a sandbox of another kind.

The cluster is that of `textagent_gym.ray_cluster`. Layers of trees travel once to each machine and stay in its cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import tarfile
import weakref
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from textagent_gym.files import cache_folder, whole_folder, write_whole
from textagent_gym.ray_cluster import import_ray, join_cluster
from textagent_gym.sandbox.base import Changes, Limits, Question, Result, Sandbox, SandboxError, TreeChanges
from textagent_gym.sandbox.changes import BY_NAME, ReadingOrder
from textagent_gym.sandbox.layers import pack
from textagent_gym.sandbox.registry import SandboxFactory, register_sandbox
from textagent_gym.sandbox.toolbox import Toolbox

_SECONDS = 120.0  # Seconds for what takes no time by itself: an actor may have to be started first.
_LONGEST_SECONDS = 3600.0  # Seconds for anything else; a large tree may be under way for minutes.
_CPUS = 1.0  # CPUs that the cluster sets aside per sandbox: commands mostly wait for the model.


@register_sandbox("ray", wraps=True, needs=import_ray)
class RaySandbox(Sandbox):
    """See the module, and `Sandbox` for what it does.

    Args:
        inner: factory of the sandbox on the other machine.
        limits: limits on what commands may use.
        toolbox: Python packages and variables that commands find beside the tree, copied from the other machine.

    Raises:
        SandboxError: there is no Ray, no machine with a free CPU, or it cannot have such a sandbox.
    """

    name = "ray"

    def __init__(self, inner: SandboxFactory, limits: Limits | None = None, toolbox: Toolbox | None = None) -> None:
        super().__init__(limits, toolbox)
        ray = self._ray = import_ray()
        self._digests: dict[Path, tuple[int, str]] = {}
        try:
            join_cluster()
            self._actor = ray.remote(num_cpus=_CPUS)(Host).remote(inner, self.limits, self.toolbox)
            self._release = weakref.finalize(self, _kill, self._actor)
            self._platform: str = self._ask("platform", seconds=_SECONDS)
        except (ray.exceptions.RayError, ConnectionError, RuntimeError) as error:
            raise SandboxError(f"Ray has no sandbox for us: {error}") from error

    def _ask(self, method: str, *arguments: Any, seconds: float = _LONGEST_SECONDS) -> Any:
        try:
            return self._ray.get(getattr(self._actor, method).remote(*arguments), timeout=seconds)
        except self._ray.exceptions.GetTimeoutError as error:
            raise SandboxError(f"no answer within {seconds:g} seconds: the cluster may have no CPU to spare") from error
        except self._ray.exceptions.RayTaskError as error:
            cause = error.cause
            raise (cause if isinstance(cause, SandboxError) else SandboxError(str(error))) from error
        except self._ray.exceptions.RayError as error:
            raise SandboxError(f"the sandbox on the cluster has ended: {error}") from error

    @property
    def platform(self) -> str:
        """See `Sandbox.platform`: that of the other machine."""
        return self._platform

    def _sent(self, layers: Sequence[Path]) -> list[str]:
        """The names of layers there, after what is missing has been sent."""
        names = [self._digest(layer) for layer in layers]
        missing = set(self._ask("missing", names))
        for layer, name in zip(layers, names, strict=True):
            if name in missing:
                self._ask("store", name, pack([layer], {}))
        return names

    def _digest(self, layer: Path) -> str:
        """A name for a layer: the same content, the same name. Files are only read again when they look different."""
        look = hash(tuple(_look(layer)))
        if self._digests.get(layer, (None, ""))[0] != look:
            self._digests[layer] = (look, hashlib.sha256(pack([layer], {})).hexdigest()[:32])
        return self._digests[layer][1]

    def begin(self, layers: Sequence[Path], environment: Mapping[str, str], *, image: str = "") -> None:
        self._ask("begin", self._sent(layers), dict(environment), image)

    def run(self, command: str, timeout: float) -> Result:
        result: Result = self._ask("run", command, timeout, seconds=timeout + _SECONDS)
        return result

    @property
    def filter(self) -> bytes:
        """See `Sandbox.filter`: that of the other machine."""
        program: bytes = self._ask("filter")
        return program

    def changes(self, skip: Collection[str] = (), order: ReadingOrder = BY_NAME) -> TreeChanges:
        changes: TreeChanges = self._ask("changes", tuple(skip), order)
        return changes

    def ask(
        self, layers: Sequence[Path], files: Changes, *, program: Path, questions: Iterable[Question]
    ) -> Iterator[bytes | None]:
        names, text = self._sent(layers), program.read_bytes()
        self._ask("prepare", names, files, text)
        for question in questions:
            answer: bytes | None = self._ask("answer", question, seconds=question.timeout + _SECONDS)
            yield answer

    def close(self) -> None:
        if self._release.alive:
            with contextlib.suppress(SandboxError):
                self._ask("close", seconds=_SECONDS)
        self._release()


class Host:
    """Has a sandbox on the machine where it lives; see `RaySandbox`."""

    def __init__(self, make: SandboxFactory, limits: Limits, toolbox: Toolbox) -> None:
        self._sandbox = make(limits, toolbox)
        self._folder = cache_folder() / "sandbox" / "layers"
        self._answers: Iterator[bytes | None] = iter(())
        self._questions: deque[Question] = deque()

    def platform(self) -> str:
        """Of the sandbox."""
        return self._sandbox.platform

    def missing(self, names: Sequence[str]) -> list[str]:
        """Layers that are not here yet."""
        return [name for name in names if not (self._folder / name).is_dir()]

    def store(self, name: str, data: bytes) -> None:
        """Keep a layer."""
        with whole_folder(self._folder / name) as part, tarfile.open(fileobj=io.BytesIO(data)) as tar:
            tar.extractall(part, filter="tar")

    def begin(self, layers: Sequence[str], environment: Mapping[str, str], image: str) -> None:
        """See `Sandbox.begin`."""
        self._sandbox.begin([self._folder / name for name in layers], environment, image=image)

    def run(self, command: str, timeout: float) -> Result:
        """See `Sandbox.run`."""
        return self._sandbox.run(command, timeout)

    def filter(self) -> bytes:
        """See `Sandbox.filter`."""
        return self._sandbox.filter

    def changes(self, skip: Collection[str], order: ReadingOrder) -> TreeChanges:
        """See `Sandbox.changes`."""
        return self._sandbox.changes(skip, order)

    def prepare(self, layers: Sequence[str], files: Changes, program: bytes) -> None:
        """See `Sandbox.ask`; questions and answers go one by one through `answer`."""
        folders = [self._folder / name for name in layers]
        questions = iter(self._questions.popleft, None)
        self._answers = self._sandbox.ask(folders, files, program=self._kept(program), questions=questions)

    def answer(self, question: Question) -> bytes | None:
        """The answer to a question."""
        self._questions.append(question)
        return next(self._answers)

    def _kept(self, program: bytes) -> Path:
        """A file that holds a program."""
        path = self._folder.parent / "programs" / f"{hashlib.sha256(program).hexdigest()[:16]}.py"
        if not path.is_file():
            write_whole(path, program.decode())
        return path

    def close(self) -> None:
        """See `Sandbox.close`."""
        self._sandbox.close()


def _look(folder: Path) -> list[tuple[str, int, int, int]]:
    """Files of a folder with what changes when they do."""
    looks = []
    for path, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            file = os.path.join(path, name)
            status = os.lstat(file)
            looks.append((os.path.relpath(file, folder), status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    return looks


def _kill(actor: Any) -> None:
    """End an actor; what its sandbox runs ends with it."""
    import ray

    if ray.is_initialized():
        with contextlib.suppress(ray.exceptions.RayError):
            ray.kill(actor)
