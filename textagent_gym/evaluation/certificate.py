"""A certificate: whether a world keeps what every world promises (see `promises`).

from textagent_gym.evaluation import certify

certificate = certify("lights/Lights-v0", tasks=20)
assert certificate.holds, certificate.report

A world may end its process, with status 0, too. So the checks run in a process of their own, and only what it reports
counts: a promise during which it ends is broken.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation.apart import ProcessEndedError, run_apart
from textagent_gym.evaluation.promises import PROMISES
from textagent_gym.evaluation.records import versions
from textagent_gym.evaluation.subject import BrokenPromiseError, NotApplicableError, Promise, Subject

KEPT, BROKEN, NOT_APPLICABLE = "kept", "broken", "not applicable"
_LONGEST_REASON = 1000  # Characters of what is said of a promise: worlds may put whole observations into errors.


@dataclass(frozen=True, slots=True)
class Finding:
    """What checking one promise has shown.

    Attributes:
        promise: name of the promise.
        status: "kept", "broken" or "not applicable".
        what: what was checked, what came instead, or why the promise does not concern the world.
        seconds: time that the check took.
    """

    promise: str
    status: str
    what: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Certificate:
    """What checking a world has shown.

    Attributes:
        env: id of the environment.
        kwargs: keyword arguments that it was made with.
        tasks: number of tasks that each check played.
        versions: versions of Python and of the packages that decide what happens in an episode.
        findings: one finding per promise.
    """

    env: str
    kwargs: dict[str, Any]
    tasks: int
    versions: dict[str, str]
    findings: tuple[Finding, ...]

    @property
    def holds(self) -> bool:
        """Whether no promise is broken."""
        return all(finding.status != BROKEN for finding in self.findings)

    @property
    def report(self) -> str:
        """One line per promise."""
        return "\n".join(f"{each.status}: {each.promise}: {each.what}" for each in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """The certificate as JSON values."""
        return {**asdict(self), "holds": self.holds}


def certify(
    env: str,
    *,
    kwargs: Mapping[str, Any] | None = None,
    tasks: int = 20,
    strings: int = 10_000,
    seed: int = 0,
    harder: Mapping[str, tuple[Any, ...]] | None = None,
    promises: tuple[Promise, ...] = PROMISES,
    checking: Callable[[int, str], None] | None = None,
    apart: bool = True,
) -> Certificate:
    """Check every promise of a world.

    Args:
        env: registered id of an environment over text; "module:id" has the module imported first, also in the processes
            that are started.
        kwargs: keyword arguments of the environment.
        tasks: number of tasks that each check plays, from the first of the split on.
        strings: number of random strings that the world must survive.
        seed: seed of everything that is drawn.
        harder: values of keyword arguments, from easy to hard, that must be harder one after the other; by default the
            knobs that are an axis, at their default and at half as much again.
        promises: promises that are checked.
        checking: called with the number of promises checked so far, and the name of the next one.
        apart: whether the checks run in a process of their own. In this process, which a debugger sees, a world that
            ends its process ends the caller's.

    Raises:
        InvalidOptionError: an argument has a value that does not exist, or the environment is not one over text.
        BrokenPromiseError: the world cannot be made: its code raises, or ends its process.
        gymnasium.error.Error: there is no such id.
    """
    for name, value in (("tasks", tasks), ("strings", strings)):
        if value < 1:
            raise InvalidOptionError(f"{name} must be at least 1, got {value}")
    arguments = {"kwargs": dict(kwargs or {}), "tasks": tasks, "strings": strings, "seed": seed, "harder": harder}
    reports = run_apart(f"{__name__}:checks", env, arguments, promises) if apart else checks(env, arguments, promises)
    certificate, name = None, ""
    try:
        for each in reports:
            if isinstance(each, Certificate):
                certificate = each
            elif isinstance(each, Finding):
                assert certificate is not None
                certificate = replace(certificate, findings=(*certificate.findings, each))
            else:
                number, name = each
                if checking is not None:
                    checking(number, name)
    except ProcessEndedError as end:
        if certificate is None:
            raise BrokenPromiseError(f"{env} cannot be made: {end}") from None
        what = f"{end}; no other promise was checked after it"
        ended = Finding(name, BROKEN, what, 0.0)
        certificate = replace(certificate, findings=(*certificate.findings, ended))
    assert certificate is not None
    return certificate


def checks(
    env: str, arguments: dict[str, Any], promises: tuple[Promise, ...]
) -> Iterator[Certificate | Finding | tuple[int, str]]:
    """A certificate without findings; then for each promise its number and its name, and what checking it has shown."""
    subject = Subject.of(env, **arguments)
    yield Certificate(subject.id, subject.kwargs, subject.tasks, versions(subject.id), ())
    for number, promise in enumerate(promises):
        name = promise.__name__.replace("_", " ")
        yield number, name
        yield _finding(subject, promise, name)


def _finding(subject: Subject, promise: Promise, name: str) -> Finding:
    started = time.perf_counter()
    try:
        status, what = KEPT, promise(subject)
    except NotApplicableError as reason:
        status, what = NOT_APPLICABLE, str(reason)
    except BrokenPromiseError as broken:
        status, what = BROKEN, str(broken)
    except (Exception, SystemExit) as error:  # noqa: BLE001 (whatever a world raises is what its author must see)
        status, what = BROKEN, f"it raises {type(error).__name__}: {error}"
    return Finding(name, status, what[:_LONGEST_REASON], round(time.perf_counter() - started, 3))
