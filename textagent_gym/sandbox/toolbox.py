"""What a sandbox offers beside the tree: a Python with the packages that a world asks for, and nothing else."""

from __future__ import annotations

import compileall
import hashlib
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from textagent_gym.errors import MissingDependencyError
from textagent_gym.files import cache_folder, whole_folder

TOOLS = "/opt/textagent"
"""Place of the toolbox, in every sandbox that has a file system of its own."""

PYTHON = Path(os.path.realpath(sys.base_prefix))
"""Folder of the interpreter."""
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
EXECUTABLE = PYTHON / "bin" / f"python{VERSION}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolbox:
    """What commands find in a sandbox beside the tree.

    Attributes:
        packages: names of distributions that can be imported, copied from this machine with nothing that they need.
        variables: environment variables; `ROOT` in them becomes the root of the tree.
        extra: extra of `textagent-gym` that installs the packages.
    """

    packages: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    extra: str = ""


def packages_folder(toolbox: Toolbox) -> Path:
    """The folder with copies of a toolbox's packages, made when it is first asked for.

    Raises:
        MissingDependencyError: one of them is not installed here.
    """
    return _copied(toolbox.packages, toolbox.extra, cache_folder() / "sandbox")


@cache
def _copied(names: tuple[str, ...], extra: str, parent: Path) -> Path:
    try:
        packages = [distribution(name) for name in names]
    except PackageNotFoundError as error:
        raise MissingDependencyError(str(error.name), extra) from error
    versions = " ".join(f"{package.name}-{package.version}" for package in packages) + sys.version
    folder = parent / f"toolbox-{hashlib.sha256(versions.encode()).hexdigest()[:12]}"
    if folder.is_dir():
        return folder
    with whole_folder(folder) as part:
        for package in packages:
            for file in package.files or ():
                if ".." not in file.parts and "__pycache__" not in file.parts:
                    (part / file).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(str(file.locate()), part / file)
        compileall.compile_dir(str(part), quiet=2, workers=1)
    return folder


def variables(toolbox: Toolbox, environment: Mapping[str, str], *, home: str, tools: str) -> dict[str, str]:
    """Environment variables of every command.

    Args:
        toolbox: toolbox of the sandbox.
        environment: variables of the caller; they win, but for what must be importable.
        home: folder for what is temporary.
        tools: folder with `packages`, the copies of the toolbox's packages, and with `bin/python`.
    """
    importable = [environment.get("PYTHONPATH", ""), f"{tools}/packages"]
    return {
        "PATH": f"{tools}/bin:{PYTHON}/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME": home,
        "TMPDIR": home,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PAGER": "cat",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        **toolbox.variables,
        **environment,
        "PYTHONPATH": ":".join(filter(None, importable)),
    }
