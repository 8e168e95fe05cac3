"""The suite's own tasks as rows of a data set, with an image for each, so that swebench's harness can run them."""

from __future__ import annotations

import io
import json
import shlex
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from textagent_gym.domains.swe.mutants.layers import run_git
from textagent_gym.domains.swe.mutants.tasks import BuiltTasks, MutantWorld
from textagent_gym.domains.swe.rows.scripts import Row, script
from textagent_gym.domains.swe.toolbox import TOOLBOX
from textagent_gym.errors import MissingDependencyError, UnsupportedOperationError
from textagent_gym.sandbox import SandboxError
from textagent_gym.sandbox.base import ROOT
from textagent_gym.sandbox.layers import copy_layers
from textagent_gym.sandbox.toolbox import TOOLS
from textagent_gym.tasks import Task

_PARSER = "parse_log_pytest_v2"
# Plain pytest as the suite's own grader runs it; -rA prints what swebench reads.
_PYTEST = "python -m pytest -rA -p no:cacheprovider --import-mode=append -o addopts= --tb=short"


def export_rows(
    source: BuiltTasks,
    tasks: Iterable[Task],
    out: Path,
    *,
    base: str = "",
    progress: Callable[[int], None] | None = None,
) -> list[Row]:
    """Write tasks as rows in the form of SWE-bench, one JSON object per line.

    Args:
        source: source of the tasks.
        tasks: tasks to write.
        out: file to write.
        base: image with bash, git and Python 3.11 or later, from which Docker builds the rows' images; "" builds none.
        progress: function that is called with the number of tasks that are done.

    Raises:
        UnsupportedOperationError: a task has no `.git`, or no hidden test that swebench could find in a log.
        MissingDependencyError: swebench is not installed.
        SandboxError: an image cannot be built.
    """
    rows = []
    out.parent.mkdir(parents=True, exist_ok=True)
    with open(out, "w", encoding="utf-8") as file:
        for done, task in enumerate(tasks, start=1):
            world = source.world(task)
            with _tree(task, world) as tree:
                if base:  # First: what git notes of the tree would make another image each time.
                    _build(_image(task), tree, base, world.repository.package.paths)
                row = _row(task, world, tree)
            rows.append(row)
            file.write(json.dumps(row.to_dict()) + "\n")
            file.flush()
            if progress is not None:
                progress(done)
    return rows


def _row(task: Task, world: MutantWorld, tree: Path) -> Row:
    """A task as a row; its tree is changed and becomes what it was."""
    package = world.repository.package
    base_commit = _git(tree, "rev-parse", "HEAD").strip()
    hidden = [
        path
        for path in world.repository.test_files
        if (world.layers[1] / path).read_bytes() != (world.repository.root / path).read_bytes()
    ]
    patches = [
        _patch(tree, {path: world.repository.root / path for path in paths})
        for paths in (sorted({hunk.path for hunk in world.hunks}), hidden)
    ]
    fail_to_pass, pass_to_pass = readable(world.fail_to_pass), readable(world.pass_to_pass)
    if not fail_to_pass:
        raise UnsupportedOperationError(f"swebench cannot read the name of any hidden test of {task.id} in a log")
    files = sorted({test.partition("::")[0] for test in (*fail_to_pass, *pass_to_pass)})
    return Row(
        instance_id=f"textagent__{_name(task)}",
        repo=f"textagent/{package.name}",
        base_commit=base_commit,
        version=package.version,
        problem_statement=world.problem,
        patch=patches[0],
        test_patch=patches[1],
        fail_to_pass=fail_to_pass,
        pass_to_pass=pass_to_pass,
        image=_image(task),
        eval_script=script([f"cd {ROOT}"], f"{_PYTEST} {shlex.join(files)}", patches[1], base_commit),
        log_parser=_PARSER,
        eval_type="pass_and_fail",
    )


def _name(task: Task) -> str:
    return task.id.removeprefix("SWE/").replace("/", "-").replace("+", "-")


def _image(task: Task) -> str:
    return f"textagent-swe/{_name(task)}:latest".lower()


def readable(tests: Sequence[str]) -> tuple[str, ...]:
    """The tests whose ids swebench's parser finds in a log as they are: it changes some characters and blanks.

    Raises:
        MissingDependencyError: swebench is not installed.
    """
    try:
        from swebench.harness.log_parsers import PARSER_REGISTRY
    except ImportError as error:
        raise MissingDependencyError("swebench", "swebench") from error
    parse = PARSER_REGISTRY[_PARSER]
    return tuple(
        test
        for test in tests
        if parse(f"PASSED {test}", None) == {test: "PASSED"} and parse(f"FAILED {test} - x", None) == {test: "FAILED"}
    )


@contextmanager
def _tree(task: Task, world: MutantWorld) -> Iterator[Path]:
    """The agent's tree, in one folder."""
    if not (world.layers[0] / ".git").is_dir():
        raise UnsupportedOperationError(
            f"{task.id} was built without git and has no commit; install git, build it again"
        )
    with tempfile.TemporaryDirectory(prefix="textagent-") as temporary:
        tree = Path(temporary) / "testbed"
        copy_layers(world.layers, tree, left_out=["__pycache__"])
        yield tree


def _files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def _patch(tree: Path, right: dict[str, Path]) -> str:
    """What makes some files what they should be, as a diff."""
    for path, source in right.items():
        shutil.copyfile(source, tree / path)
    patch = _git(tree, "diff", "--no-color", "--no-ext-diff", "--full-index", "HEAD")
    _git(tree, "reset", "--quiet", "--hard")
    return patch


def _git(tree: Path, *arguments: str) -> str:
    """See `run_git`; the tree may be anybody's, and modes do not count."""
    try:
        return run_git(tree, "-c", "core.fileMode=false", "-c", f"safe.directory={tree}", *arguments)
    except (OSError, subprocess.CalledProcessError) as error:
        raise UnsupportedOperationError(f"rows need git: {error}") from error


def _build(tag: str, tree: Path, base: str, paths: Sequence[str]) -> None:
    """Build the image of a row: a base, pytest, and the agent's tree."""
    import docker.errors

    from textagent_gym.sandbox.container import connect, prepared, present

    engine = connect("docker")
    importable = [*(ROOT if path == "." else f"{ROOT}/{path}" for path in paths), f"{TOOLS}/packages"]
    variables = {
        "PATH": f"{TOOLS}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "PYTHONPATH": ":".join(importable),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "LANG": "C.UTF-8",
    }
    lines = [
        f"FROM {prepared(engine, present(engine, base), TOOLBOX)}",
        *(f"ENV {name}={variables[name]}" for name in variables),
    ]
    lines += [f"COPY testbed {ROOT}", f"WORKDIR {ROOT}"]
    recipe = "\n".join(lines).encode()
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as tar:
        member = tarfile.TarInfo("Dockerfile")
        member.size = len(recipe)
        tar.addfile(member, io.BytesIO(recipe))
        tar.add(tree, "testbed", filter=_anonymous)
    context.seek(0)
    try:
        engine.images.build(fileobj=context, custom_context=True, tag=tag, rm=True, network_mode="none")
    except (docker.errors.DockerException, OSError) as error:
        raise SandboxError(f"the image {tag} cannot be built on {base}: {error}") from error


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Root's, and of no date: the same tree makes the same image."""
    member.mtime = 0
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member
