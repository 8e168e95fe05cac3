"""What a sandbox offers beside the repository: a Python with pytest, and nothing else that is installed here."""

from __future__ import annotations

import compileall
import hashlib
import os
import shutil
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from textagent_gym.errors import MissingDependencyError
from textagent_gym.files import whole_folder

TOOLS = "/opt/textagent"
"""Where the toolbox lies, in every sandbox that has a file system of its own."""
_PACKAGES = ("pytest", "pluggy", "iniconfig", "packaging", "pygments")

PYTHON = Path(os.path.realpath(sys.base_prefix))
"""Folder of the interpreter."""
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
EXECUTABLE = PYTHON / "bin" / f"python{VERSION}"


@cache
def toolbox(parent: Path) -> Path:
    """A folder with copies of pytest and what it needs, made below `parent` when it is first asked for.

    Raises:
        MissingDependencyError: pytest is not installed here.
    """
    try:
        packages = [distribution(name) for name in _PACKAGES]
    except PackageNotFoundError as error:
        raise MissingDependencyError(str(error.name), "swe") from error
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


def variables(environment: Mapping[str, str], *, home: str, root: str, tools: str) -> dict[str, str]:
    """Environment variables of every command.

    Args:
        environment: variables of the caller; they win, but for what must be importable.
        home: folder for what is temporary.
        root: root of the tree.
        tools: folder with `packages`, the toolbox, and with `bin/python`.
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
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": root,
        **environment,
        "PYTHONPATH": ":".join(filter(None, importable)),
    }
