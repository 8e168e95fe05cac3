"""Processes with other hash seeds, in which the same episodes are played.

They are started when they are first asked for, and play whatever this process certifies until it ends: starting one
takes longer than most worlds take to be played.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, TimeoutError
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.util import Finalize
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec, registry

from textagent_gym.evaluation.subject import BrokenPromiseError, Subject
from textagent_gym.evaluation.walks import transcripts
from textagent_gym.processes import worker_processes

_SECONDS = 3600.0  # Seconds for the episodes: a busy machine may have to make its games.
_processes: dict[str, tuple[ProcessPoolExecutor, Future[int]]] = {}


@contextmanager
def playing_elsewhere(
    subject: Subject, hash_seeds: Sequence[str]
) -> Iterator[dict[str, Callable[[], list[list[str]]]]]:
    """Begin to play the episodes of a subject in other processes.

    Args:
        subject: world that is played.
        hash_seeds: values of `PYTHONHASHSEED`, one process each.

    Yields:
        functions that wait for the `transcripts` of a process, by its hash seed. They raise `BrokenPromiseError` where
        it cannot play the world. Processes that are not waited for are ended.
    """
    asked = (gymnasium.spec(subject.id).to_json(), subject.kwargs, subject.tasks, subject.seed)
    futures = {hash_seed: _process(hash_seed)[0].submit(_play, *asked) for hash_seed in hash_seeds}
    try:
        yield {hash_seed: partial(_result, future) for hash_seed, future in futures.items()}
    finally:
        for hash_seed, future in futures.items():
            if not future.done() or isinstance(future.exception(), BrokenProcessPool):
                _end(hash_seed)


def _process(hash_seed: str) -> tuple[ProcessPoolExecutor, Future[int]]:
    """The process with a hash seed, and its number."""
    if hash_seed not in _processes:
        Finalize(
            None, _end, (hash_seed,), exitpriority=0
        )  # Whoever was started by `multiprocessing` waits for its own.
        pool, before = worker_processes(1), os.environ.get("PYTHONHASHSEED")
        os.environ["PYTHONHASHSEED"] = hash_seed  # A process has it from the one that starts it, which is now.
        _processes[hash_seed] = pool, pool.submit(os.getpid)
        del os.environ["PYTHONHASHSEED"]
        if before is not None:
            os.environ["PYTHONHASHSEED"] = before
    return _processes[hash_seed]


def _end(hash_seed: str) -> None:
    """End a process, if it has not been ended: it plays what nobody waits for, or has ended itself."""
    if hash_seed not in _processes:
        return
    pool, number = _processes.pop(hash_seed)
    with suppress(BrokenProcessPool, ProcessLookupError):
        os.kill(number.result(_SECONDS), signal.SIGKILL)
    pool.shutdown(wait=False, cancel_futures=True)


def _result(future: Future[list[list[str]]]) -> list[list[str]]:
    try:
        return future.result(_SECONDS)
    except (Exception, SystemExit) as error:
        why = f"it does not end within {_SECONDS:g} s" if isinstance(error, TimeoutError) else repr(error)
        raise BrokenPromiseError(f"another process cannot play the world: {why}") from error


def _play(spec: str, kwargs: dict[str, Any], tasks: int, seed: int) -> list[list[str]]:
    """In another process: the transcripts of a world."""
    known = EnvSpec.from_json(spec)
    registry.setdefault(known.id, known)
    return transcripts(Subject.of(known.id, kwargs, tasks=tasks, strings=1, seed=seed, harder={}))
