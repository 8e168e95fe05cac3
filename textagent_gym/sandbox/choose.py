"""Which sandbox it is."""

from __future__ import annotations

import logging
from collections.abc import Callable

from textagent_gym.errors import InvalidOptionError, MissingDependencyError
from textagent_gym.sandbox.base import Limits, Sandbox, SandboxError

_log = logging.getLogger("textagent_gym.swe")


def _bubblewrap(limits: Limits) -> Sandbox:
    from textagent_gym.sandbox.bubblewrap import BubblewrapSandbox

    return BubblewrapSandbox(limits)


def _process(limits: Limits) -> Sandbox:
    from textagent_gym.sandbox.process import ProcessSandbox

    _log.warning("sandbox='process' keeps nothing in: commands can do whatever you can. For trusted agents only.")
    return ProcessSandbox(limits)


def _container(engine: str) -> Callable[[Limits], Sandbox]:
    def make(limits: Limits) -> Sandbox:
        from textagent_gym.sandbox.container import ContainerSandbox

        return ContainerSandbox(engine, limits)

    return make


def _ray(limits: Limits, kind: str = "auto") -> Sandbox:
    from textagent_gym.sandbox.cluster import RaySandbox

    return RaySandbox(kind, limits)


SANDBOXES: dict[str, Callable[[Limits], Sandbox]] = {
    "bubblewrap": _bubblewrap,
    "docker": _container("docker"),
    "podman": _container("podman"),
    "ray": _ray,
    "process": _process,
}
"""By name. What "ray" runs on another machine can be named: "ray:docker"; it is "auto" otherwise."""

ENGINES = ("docker", "podman")
"""Those that run images."""
SAFE = ("bubblewrap", *ENGINES)
"""Those that keep an agent in; "auto" takes the first of them that this machine can have."""


def make_sandbox(name: str = "auto", limits: Limits | None = None, *, images: bool = False) -> Sandbox:
    """A sandbox by name; `close` it in the end.

    Args:
        name: "auto" takes the first that this machine can have and that keeps an agent in.
        limits: limits on what commands may use.
        images: whether it must be able to run trees that lie in images.

    Raises:
        SandboxError: this machine cannot have it; for "auto", it can have none that keeps an agent in.
        MissingDependencyError: what the sandbox needs is not installed.
        InvalidOptionError: there is no such sandbox.
    """
    limits = limits or Limits()
    if name.startswith("ray:"):
        return _ray(limits, name.removeprefix("ray:"))
    if name != "auto":
        if name not in SANDBOXES:
            raise InvalidOptionError(f"sandbox={name!r} does not exist; choose of auto, {', '.join(SANDBOXES)}")
        return SANDBOXES[name](limits)
    reasons = []
    for candidate in ENGINES if images else SAFE:
        try:
            sandbox = SANDBOXES[candidate](limits)
            if not images:
                sandbox.begin((), {})  # An engine may be here, and no image for it.
        except (SandboxError, MissingDependencyError) as error:
            reasons.append(f"{candidate}: {error}")
            continue
        level = logging.WARNING if reasons else logging.INFO
        _log.log(level, "sandbox='auto' is %r here%s", candidate, f" ({'; '.join(reasons)})" if reasons else "")
        return sandbox
    trusted = "" if images else " With an agent you trust, say sandbox='process'."
    raise SandboxError(f"no sandbox here keeps an agent in ({'; '.join(reasons)}).{trusted}")
