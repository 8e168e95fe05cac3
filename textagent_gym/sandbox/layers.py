"""Trees that are given as layers, folders of which the first hides the others: copied, or packed into an archive."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from textagent_gym.sandbox.base import Changes, SandboxError
from textagent_gym.sandbox.writing import is_path


def check_path(name: str) -> list[str]:
    """The folders of a file's path, outermost first.

    Raises:
        SandboxError: the path leads out of the tree.
    """
    if not is_path(name):
        raise SandboxError(f"{name!r} is no path of a file in a repository")
    return [str(parent) for parent in reversed(PurePosixPath(name).parents[:-1])]


def copy_layers(layers: Sequence[Path], root: Path, *, left_out: Sequence[str] = ()) -> None:
    """Copy a tree given as layers into a folder, which may exist; files by these names are left out."""
    root.mkdir(exist_ok=True)
    for layer in reversed(layers):
        shutil.copytree(layer, root, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*left_out))


def pack(layers: Sequence[Path], files: Changes) -> bytes:
    """A tree as an archive: its layers, of which the first hides the others, and files over them."""
    sources: dict[str, Path] = {}
    for layer in reversed(layers):
        for folder, folders, names in os.walk(layer):
            for name in (*folders, *names):
                path = Path(folder, name)
                sources[str(path.relative_to(layer))] = path
    for name, content in files.items():
        if content is None:
            through_link = any(parent in sources and sources[parent].is_symlink() for parent in check_path(name))
            if not through_link and name in sources and (sources[name].is_symlink() or not sources[name].is_dir()):
                del sources[name]
            continue
        for parent in check_path(name):  # Files and links give way to folders, and folders to files.
            if parent in sources and (sources[parent].is_symlink() or not sources[parent].is_dir()):
                del sources[parent]
        if name in sources and sources[name].is_dir():
            sources = {path: source for path, source in sources.items() if not path.startswith(f"{name}/")}
        sources.pop(name, None)
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, path in sorted(sources.items()):
            member = tar.gettarinfo(path, name)
            if member is None:
                continue  # A socket.
            if member.islnk():  # One file by two names.
                member.type, member.size = tarfile.REGTYPE, path.stat().st_size
            member.mtime = int(member.mtime)
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            if member.isfile():
                with path.open("rb") as stream:
                    tar.addfile(member, stream)
            elif member.isdir() or member.issym():
                tar.addfile(member)
        for name, content in sorted(files.items()):
            if content is not None:
                member = tarfile.TarInfo(name)
                member.size = len(content)
                member.mtime = int(time.time())
                tar.addfile(member, io.BytesIO(content))
    return data.getvalue()
