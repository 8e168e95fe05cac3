"""What is seen of this machine in bubblewrap: what Python, git, bash and the basic programs need, and nothing else.

In particular no package of any Python, so that nobody finds the repository that is to be repaired, or a copy.
"""

from __future__ import annotations

import fnmatch
import os
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from textagent_gym.sandbox.toolbox import EXECUTABLE, PYTHON, TOOLS

_USR = Path("/usr")
_DATA = (
    "share/git-core", "share/terminfo", "share/zoneinfo", "share/i18n", "share/misc", "share/mime",
    "libexec/git-core", "lib/git-core", "lib/locale", "lib/terminfo", "lib/file", "lib/klibc",
)  # fmt: skip
_SETTINGS = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime")
_LIBRARIES = ("lib", "lib32", "lib64", "libx32")
_PACKAGES = ("*-packages", "_bundled", "python-wheels")
"""Folders of installed packages, or of archives of them."""
_FOREIGN = (*_PACKAGES, "python*", "pypy*", "node_modules", "ruby*", "R", "jvm", "conda*", "cmake", "pkgconfig")
"""Folders beside libraries that are not libraries."""


@dataclass(frozen=True, slots=True)
class System:
    """What is seen, by the place where it is seen.

    Attributes:
        sources: files and folders of this machine, by place.
        links: targets by place.
        hidden: folders that are shown empty, in what is seen otherwise.
    """

    sources: dict[str, Path] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    hidden: list[str] = field(default_factory=list)

    def show(self, path: Path, place: str = "", hide: tuple[str, ...] = _PACKAGES, depth: int = 3) -> None:
        """Let a file or folder be seen, less the folders whose names say that they hold something else."""
        place = place or str(path)
        if not os.path.exists(path) or place in self.sources:  # Or it cannot be reached.
            return
        self.sources[place] = path
        if path.is_dir():
            self.hidden.extend(f"{place}/{name}" for name in _matching(path, hide, depth))


def _matching(folder: Path, patterns: tuple[str, ...], depth: int) -> Iterator[str]:
    """Folders by these names, down to some depth."""
    try:
        entries = sorted(folder.iterdir())
    except PermissionError:  # Then nobody in there can read it either.
        return
    for entry in entries:
        if entry.is_symlink() or not os.path.isdir(entry):
            continue
        if any(fnmatch.fnmatch(entry.name, pattern) for pattern in patterns):
            yield entry.name
        elif depth > 1:
            yield from (f"{entry.name}/{name}" for name in _matching(entry, patterns, depth - 1))


@cache
def system(tools: Path) -> System:
    """What is seen here.

    Args:
        tools: folder with the packages of the toolbox.
    """
    shown = System()
    for name in ("bin", "sbin", *_LIBRARIES):
        if (top := Path("/", name)).is_symlink():
            shown.links[str(top)] = os.readlink(top)
    roots = [path for path in (_USR, Path("/")) if path == _USR or not Path("/bin").is_symlink()]
    for root in roots:
        shown.show(root / "bin")
        for name in _LIBRARIES:
            if not (root / name).is_symlink():
                _show_libraries(shown, root / name)
    for name in _DATA:
        shown.show(_USR / name)
    for name in _SETTINGS:
        shown.show(Path(name))
    _show_python(shown)
    shown.show(tools, f"{TOOLS}/packages", hide=())
    shown.links[f"{TOOLS}/bin/python"] = str(EXECUTABLE)
    return shown


def _show_libraries(shown: System, folder: Path) -> None:
    """The libraries of a folder: the whole folder where they lie right in there, else those of this kind of machine."""
    if not os.path.isdir(folder):
        return
    if os.path.exists(folder / "libc.so.6"):
        shown.show(folder, hide=_FOREIGN)
        return
    for entry in sorted(folder.iterdir()):
        if entry.is_symlink():
            if entry.name.startswith("ld-"):
                shown.links[str(entry)] = os.readlink(entry)
        elif entry.name.startswith("ld-") or ("-linux-" in entry.name and entry.is_dir()):
            shown.show(entry, hide=_FOREIGN)


def _show_python(shown: System) -> None:
    """The interpreter and its standard library."""
    if PYTHON != _USR:
        shown.show(PYTHON / "bin")
    base = {"base": str(PYTHON), "platbase": str(PYTHON), "installed_base": str(PYTHON)}
    folders = {Path(sysconfig.get_path(name, vars=base)) for name in ("stdlib", "platstdlib")}
    for folder in sorted(folders):
        if PYTHON != _USR:
            others = tuple(
                entry.name for entry in folder.parent.iterdir() if os.path.isdir(entry) and entry not in folders
            )
            shown.show(folder.parent, hide=(*_PACKAGES, *others), depth=1)
            shown.hidden.extend(f"{folder}/{name}" for name in _matching(folder, _PACKAGES, 3))
            continue
        if str(folder) in shown.hidden:
            shown.hidden.remove(str(folder))
        if str(folder.parent) in shown.sources:
            shown.hidden.extend(f"{folder}/{name}" for name in _matching(folder, _PACKAGES, 3))
        else:
            shown.show(folder)
