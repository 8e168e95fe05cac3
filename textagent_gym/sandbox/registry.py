"""Kinds of sandboxes by name: the suite's own, and those of other packages.

A kind registers itself in one line, on its class or on a function that makes one:

    @register_sandbox("jail", safe=True)
    class JailSandbox(Sandbox): ...

An installed package makes its kind known by an entry point of that name, whose module is imported when the kind is
first asked for:

    [project.entry-points."textagent_gym.sandboxes"]
    jail = "jailed.sandbox"

Then `sandbox="jail"` works wherever the name of a sandbox is taken. `textagent_gym.sandbox.conformity` checks it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from textagent_gym.errors import InvalidOptionError, MissingDependencyError
from textagent_gym.sandbox.base import Limits, Sandbox, SandboxError
from textagent_gym.sandbox.toolbox import Toolbox

ENTRY_POINT_GROUP = "textagent_gym.sandboxes"
AUTO = "auto"
"""Name that stands for the first kind that keeps an agent in and that this machine can have."""
SandboxFactory = Callable[[Limits, Toolbox], Sandbox]
_FactoryT = TypeVar("_FactoryT", bound=Callable[..., Sandbox])
_log = logging.getLogger("textagent_gym.sandbox")


def _nothing() -> None:
    """What a kind needs that runs everywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxKind:
    """A line of the registry.

    Attributes:
        name: name by which it is chosen.
        make: function of the limits and the toolbox that makes a sandbox; with `wraps`, the factory of the inner one
            comes first.
        safe: whether it keeps an agent in; "auto" only takes such kinds.
        images: whether it runs trees that lie in images of containers.
        wraps: whether it holds a sandbox of another kind, named after a colon, as in "ray:docker".
        needs: function that raises `MissingDependencyError` where a package is not installed.
    """

    name: str
    make: Callable[..., Sandbox]
    safe: bool = False
    images: bool = False
    wraps: bool = False
    needs: Callable[[], object] = _nothing


_kinds: dict[str, SandboxKind] = {}


def register_sandbox(
    name: str,
    *,
    safe: bool = False,
    images: bool = False,
    wraps: bool = False,
    needs: Callable[[], object] = _nothing,
) -> Callable[[_FactoryT], _FactoryT]:
    """Register the class or function below as a kind of sandbox; see `SandboxKind` for the arguments.

    Raises:
        InvalidOptionError: the name is taken, or cannot be one.

    >>> from textagent_gym.sandbox.process import ProcessSandbox
    >>> @register_sandbox("trusting")
    ... class TrustingSandbox(ProcessSandbox):
    ...     name = "trusting"
    >>> "trusting" in sandbox_names(), sandbox_kind("trusting").safe
    (True, False)
    >>> del _kinds["trusting"]
    """
    if not name or name == AUTO or ":" in name:
        raise InvalidOptionError(f"a kind of sandbox cannot be named {name!r}")

    def register(factory: _FactoryT) -> _FactoryT:
        if name in _kinds:
            raise InvalidOptionError(f"sandbox {name!r} is registered already, by {_kinds[name].make.__module__}")
        _kinds[name] = SandboxKind(name=name, make=factory, safe=safe, images=images, wraps=wraps, needs=needs)
        return factory

    return register


def sandbox_names() -> tuple[str, ...]:
    """Names of all kinds: the suite's own first, then those of installed packages."""
    return tuple(dict.fromkeys([*_kinds, *sorted(plugin.name for plugin in _plugins())]))


def sandbox_kinds() -> tuple[SandboxKind, ...]:
    """All kinds, in the order in which "auto" tries them; one whose package cannot be imported is left out."""
    return tuple(_loadable(sandbox_names()))


def _loadable(names: tuple[str, ...]) -> Iterator[SandboxKind]:
    for name in names:
        try:
            yield sandbox_kind(name)
        except SandboxError as error:
            _log.warning("%s", error)


def sandbox_kind(name: str, *, images: bool = False) -> SandboxKind:
    """The kind of a name other than "auto"; "ray:docker" is as safe as "docker".

    Args:
        name: name of a kind, or two of them with a colon between.
        images: whether an inner "auto" must be able to run images.

    Raises:
        InvalidOptionError: there is no such kind.
        SandboxError: the package that brings it cannot be imported.
    """
    outer, colon, inner = name.partition(":")
    if outer not in _kinds:
        _load(outer)
    if outer not in _kinds or (colon and not _kinds[outer].wraps):
        raise InvalidOptionError(f"sandbox={name!r} does not exist; choose of {_choices()}")
    kind = _kinds[outer]
    if not kind.wraps:
        return kind
    inner = inner if colon else AUTO
    held = None if inner == AUTO else sandbox_kind(inner)
    return replace(
        kind,
        name=name,
        make=partial(kind.make, partial(make_sandbox, inner, images=images)),
        safe=held is None or held.safe,
        images=held is None or held.images,
    )


def check_sandbox_name(name: str) -> None:
    """Raise `InvalidOptionError` for a name that no kind of sandbox has."""
    if name != AUTO:
        sandbox_kind(name)


def is_safe(name: str) -> bool:
    """Whether a name means a kind that keeps an agent in.

    Raises:
        InvalidOptionError: there is no such kind.
        SandboxError: the package that brings it cannot be imported.
    """
    return name == AUTO or sandbox_kind(name).safe


def keeps_nothing_in(name: str) -> bool:
    """Whether a name means a kind that is known not to be safe; no package is imported to find out."""
    return any(part in _kinds and not (_kinds[part].safe or _kinds[part].wraps) for part in name.split(":"))


def make_sandbox(
    name: str = AUTO, limits: Limits | None = None, toolbox: Toolbox | None = None, *, images: bool = False
) -> Sandbox:
    """A sandbox by name; `close` it in the end.

    Args:
        name: name of a kind; "auto" takes the first that keeps an agent in and that this machine can have.
        limits: limits on what commands may use.
        toolbox: Python packages and variables that commands find beside the tree.
        images: whether it must be able to run trees that lie in images.

    Raises:
        SandboxError: this machine cannot have it; for "auto", it can have none that keeps an agent in.
        MissingDependencyError: what the sandbox needs is not installed.
        InvalidOptionError: there is no such sandbox.
    """
    limits, toolbox = limits or Limits(), toolbox or Toolbox()
    if name == AUTO:
        return _first_available(limits, toolbox, images=images)
    kind = sandbox_kind(name, images=images)
    if not kind.safe:
        _warn_of(name)
    return kind.make(limits, toolbox)


@cache
def _warn_of(name: str) -> None:
    """Warn of a kind that is not safe, once per process."""
    _log.warning("sandbox=%r keeps nothing in: commands can do whatever you can. For trusted agents only.", name)


def _first_available(limits: Limits, toolbox: Toolbox, *, images: bool) -> Sandbox:
    """The first sandbox that keeps an agent in; what it is, and why not another one, is logged."""
    reasons = []
    for kind in sandbox_kinds():
        if not kind.safe or kind.wraps or (images and not kind.images):
            continue
        try:
            sandbox = kind.make(limits, toolbox)
            if not images:
                sandbox.begin((), {})  # An engine may be here, and no image for it.
        except (SandboxError, MissingDependencyError) as error:
            reasons.append(f"{kind.name}: {error}")
            continue
        level = logging.WARNING if reasons else logging.INFO
        _log.log(level, "sandbox='auto' is %r here%s", kind.name, f" ({'; '.join(reasons)})" if reasons else "")
        return sandbox
    trusted = "" if images else " With an agent you trust, say sandbox='process'."
    raise SandboxError(f"no sandbox here keeps an agent in ({'; '.join(reasons)}).{trusted}")


def refuse_image(name: str, image: str) -> None:
    """Refuse an image in a sandbox that runs none.

    Raises:
        SandboxError: an image is asked for.
    """
    if image:
        able = " or ".join(repr(kind.name) for kind in _kinds.values() if kind.images)
        raise SandboxError(f"sandbox={name!r} cannot run the image {image}; choose {able}")


def _choices() -> str:
    """What exists, and what is to be installed for it."""
    names = [AUTO]
    for name in sandbox_names():
        try:
            if name in _kinds:
                _kinds[name].needs()
            names.append(name)
        except MissingDependencyError as error:
            names.append(f'{name} (pip install "textagent-gym[{error.extra}]")')
    wrapping = [f'"{kind.name}:NAME"' for kind in _kinds.values() if kind.wraps]
    return ", ".join([*names, *wrapping])


def _plugins() -> Iterator[EntryPoint]:
    """Entry points of installed packages; none of them takes the name of another kind."""
    return (plugin for plugin in entry_points(group=ENTRY_POINT_GROUP) if plugin.name not in _kinds)


def _load(name: str) -> None:
    """Import the package that brings a kind, where there is one.

    Raises:
        SandboxError: it cannot be imported, or does not register the kind.
    """
    for plugin in _plugins():
        if plugin.name == name:
            try:
                plugin.load()
            except Exception as error:
                raise SandboxError(f"sandbox={name!r}: {plugin.value} cannot be imported: {error!r}") from error
            if name not in _kinds:
                raise SandboxError(f"sandbox={name!r}: {plugin.value} registers no sandbox of this name")
            return
