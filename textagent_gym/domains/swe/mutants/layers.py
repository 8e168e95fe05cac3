"""The trees of a task, as layers on disk that tell nothing of the mistake by where they lie or when they were made.

All code and tests lie in one layer, written in an order drawn by chance, all of one date; nothing of the right code is
in any layer that a sandbox sees.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from textagent_gym.domains.swe.mutants.packages import Repository, compile_sources, compile_tests, date
from textagent_gym.files import whole_folder
from textagent_gym.sandbox.layers import copy_layers

_IDENTITY = {
    "GIT_AUTHOR_NAME": "maintainer",
    "GIT_AUTHOR_EMAIL": "maintainer@localhost",
    "GIT_AUTHOR_DATE": "2000-01-01T00:00:00Z",
    "GIT_COMMITTER_NAME": "maintainer",
    "GIT_COMMITTER_EMAIL": "maintainer@localhost",
    "GIT_COMMITTER_DATE": "2000-01-01T00:00:00Z",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}


def rest(repository: Repository) -> Path:
    """The layer of what is neither code nor compiled code, the same for all tasks of a repository."""
    folder = repository.root.with_name(f"{repository.root.name}-rest")
    if not folder.is_dir():
        with whole_folder(folder) as part:
            left_out = shutil.ignore_patterns("*.py", "__pycache__")
            shutil.copytree(repository.root, part, symlinks=True, dirs_exist_ok=True, ignore=left_out)
            date(part)
    return folder


def write_tree(repository: Repository, code: Mapping[str, str], tests: Mapping[str, str], folder: Path) -> None:
    """Write the layer of a task's code and tests.

    Args:
        repository: repository as it should be.
        code: files with mistakes in them, by path.
        tests: test files without hidden tests, by path.
        folder: folder of the layer.
    """
    root = repository.root
    files: dict[str, bytes] = {
        str(path.relative_to(root)): path.read_bytes()
        for pattern in ("*.py", "__pycache__/*.pyc")
        for path in root.rglob(pattern)
    }
    files |= {name: text.encode() for name, text in {**code, **tests}.items()}
    with _written(code) as part:
        compile_sources(part, part)
        files |= {str(path.relative_to(part)): path.read_bytes() for path in part.rglob("*.pyc")}
    names = list(files)
    random.SystemRandom().shuffle(names)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(files[name])
    date(folder)


def write_compiled_tests(repository: Repository, tests: Mapping[str, str], folder: Path) -> None:
    """Write the layer of compiled tests, as the agent sees them; only what is graded has it."""
    for path in repository.compiled.rglob("*.pyc"):
        target = folder / path.relative_to(repository.compiled)
        target.parent.mkdir(parents=True, exist_ok=True)
        name = f"{target.parent.parent.relative_to(folder)}/{path.name.partition('.')[0]}.py".removeprefix("./")
        if name not in tests:
            shutil.copyfile(path, target)
    with _written(tests) as part:
        compile_tests(part, tests, folder)


@contextmanager
def _written(texts: Mapping[str, str]) -> Iterator[Path]:
    """A temporary folder of files, by path, that have the date of all others."""
    with tempfile.TemporaryDirectory(prefix="textagent-") as temporary:
        part = Path(temporary)
        for name, text in texts.items():
            (part / name).parent.mkdir(parents=True, exist_ok=True)
            (part / name).write_bytes(text.encode())
        date(part)
        yield part


def commit(folder: Path, repository: Repository) -> Path:
    """The layer with a `.git` that has one commit of the whole tree of a task; without git on this machine, empty.

    Args:
        folder: folder of the task's own layers.
        repository: repository as it should be.
    """
    layer = folder / "git"
    if not layer.is_dir():
        with whole_folder(layer) as part:
            if shutil.which("git") is not None:
                _write_commit([folder / "tree", rest(repository)], part)
            date(part)
    return layer


def _write_commit(layers: Sequence[Path], target: Path) -> None:
    """Put a `.git` with one commit of some layers into a folder."""
    with tempfile.TemporaryDirectory(prefix="textagent-") as temporary:
        tree = Path(temporary) / "tree"
        copy_layers(layers, tree, left_out=["__pycache__"])
        run_git(tree, "init", "--quiet", "--initial-branch=main", "--template=")
        (tree / ".git" / "info").mkdir(exist_ok=True)
        (tree / ".git" / "info" / "exclude").write_text("__pycache__/\n.pytest_cache/\n", encoding="ascii")
        run_git(tree, "add", "--all", "--force")
        run_git(tree, "commit", "--quiet", "--message=The repository as it is")
        run_git(tree, "config", "user.name", "agent")
        run_git(tree, "config", "user.email", "agent@localhost")
        shutil.rmtree(tree / ".git" / "logs", ignore_errors=True)
        shutil.move(tree / ".git", target / ".git")


def run_git(tree: Path, *arguments: str) -> str:
    """What git prints in a tree that lies in a temporary folder of its own; nobody's settings have a say in it."""
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(tree.parent), **_IDENTITY}
    done = subprocess.run(["git", *arguments], cwd=tree, env=environment, check=True, capture_output=True)
    return done.stdout.decode()
