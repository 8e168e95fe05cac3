"""A generator that runs in a process of its own, for checks of worlds that may end their process.

`os._exit(0)` in a world ends the process that plays it with status 0. What counts is not that status but what the
generator has yielded, up to its last item.
"""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from gymnasium.envs.registration import EnvSpec, registry

from textagent_gym.errors import InvalidOptionError, TextAgentError
from textagent_gym.registration import full_id
from textagent_gym.vector.messages import Failure

_LAST = "the generator has ended"
_SECONDS_TO_END = 10.0
"""Time that the process has to end by itself after its generator."""


class ProcessEndedError(TextAgentError):
    """The process in which a generator runs has ended before the generator has."""


def run_apart(function: str, env: str, *arguments: Any) -> Iterator[Any]:
    """What a generator yields in a process of its own.

    Args:
        function: "module:function" that makes the generator.
        env: first argument: id of an environment, which is registered there, too; or "module:id".
        arguments: further arguments, which pickle.

    Raises:
        ProcessEndedError: the process ended before the generator did.
        InvalidOptionError: there is no such environment, or another process cannot make it.
        Exception: the generator raised it.
    """
    spec = None if ":" in env else _spec_of(full_id(env))
    program = "from textagent_gym.evaluation.apart import report; report()"
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(writer)],
        stdin=subprocess.PIPE,
        stdout=2,  # What a world prints is no part of what the caller prints.
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        pass_fds=(writer,),
    )
    os.close(writer)
    assert process.stdin is not None
    try:
        with open(reader, "rb") as reports, process.stdin as request:
            pickle.dump((function, spec, env, arguments), request)
            request.close()
            while True:
                try:
                    item = pickle.load(reports)
                except (EOFError, pickle.UnpicklingError):
                    status = process.wait()
                    raise ProcessEndedError(f"the process that plays the world ended with status {status}") from None
                if isinstance(item, Failure):
                    raise item.error or TextAgentError(item.trace)
                if item == _LAST:
                    with suppress(subprocess.TimeoutExpired):  # A world may keep its process from ending.
                        process.wait(_SECONDS_TO_END)
                    return
                yield item
    finally:
        process.kill()
        process.wait()


def _spec_of(id: str) -> str:
    """The spec of a registered environment as JSON."""
    try:
        return registry[id].to_json()
    except (TypeError, ValueError) as error:
        raise InvalidOptionError(f"{id} cannot be made in another process: {error}") from error


def report() -> None:
    """In the process: run the generator that is asked for on standard input, and write what it yields."""
    writer = int(sys.argv[1])
    os.set_inheritable(writer, False)
    function, spec, env, arguments = pickle.load(sys.stdin.buffer)
    with open(writer, "wb") as reports:

        def say(item: Any) -> None:
            pickle.dump(item, reports)
            reports.flush()

        try:
            if spec is not None:
                known = EnvSpec.from_json(spec)
                if isinstance(known.entry_point, str):  # Its module may register it itself.
                    importlib.import_module(known.entry_point.partition(":")[0])
                registry.setdefault(known.id, known)
            module, _, name = function.partition(":")
            for item in getattr(importlib.import_module(module), name)(env, *arguments):
                say(item)
        except Exception as error:  # noqa: BLE001 (whatever it is, the caller raises it)
            say(Failure.of(error))
        else:
            say(_LAST)
