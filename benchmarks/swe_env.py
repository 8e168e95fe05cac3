"""Episodes of software engineering: this suite's sandbox beside a plain copy of the tree and fresh processes.

    python -m benchmarks.swe_env --packages measures inflection toolz

An episode is a reset, five commands of which one repairs the code, the hidden tests, and the end. The plain way copies
the tree, starts a process for each command, and runs pytest on the hidden tests and then on the others. Both play the
same tasks in one run. The cost of a reset is measured for trees of several sizes too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import gymnasium
import tyro
from rich.console import Console
from rich.table import Table

from textagent_gym.domains.swe.sandbox import make_sandbox
from textagent_gym.domains.swe.tasks import SWETask

COMMANDS = ("ls", "git status --short", "grep -rn 'def ' . | head -5", "git log --oneline | head -3")


@dataclass(frozen=True)
class Config:
    """What is measured."""

    packages: tuple[str, ...] = ("measures",)
    """Packages of the tasks."""
    episodes: int = 20
    """Episodes for each package and way."""
    megabytes: tuple[int, ...] = (1, 10, 100, 300)
    """Sizes of the trees whose resets are timed."""


def here(env: gymnasium.Env[str, str], index: int) -> None:
    """An episode in this suite."""
    env.reset(options={"task_index": index})
    for command in COMMANDS:
        env.step(f"```bash\n{command}\n```")
    reward = 0.0
    for action in env.unwrapped.oracle():  # type: ignore[attr-defined]
        _, reward, *_ = env.step(action)
    assert reward == 1.0


def plain(task: SWETask) -> None:
    """The same with a copy and processes."""
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(task.repository.package.paths)}
    variables["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # As in the sandbox.
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        for layer in reversed(task.layers):
            shutil.copytree(layer, tree, dirs_exist_ok=True)
        for command in COMMANDS:
            subprocess.run(["bash", "-c", command], cwd=tree, env=variables, capture_output=True, check=False)
        for hunk in task.hunks:
            script = (
                f"p = {hunk.path!r}; t = open(p).read(); open(p, 'w').write(t.replace({hunk.wrong!r}, {hunk.right!r}))"
            )
            subprocess.run([sys.executable, "-c", script], cwd=tree, env=variables, check=True)
        for name, text in task.repository.test_texts.items():
            (tree / name).write_text(text, encoding="utf-8")
        pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts="]
        hidden = subprocess.run(
            [*pytest, *task.fail_to_pass], cwd=tree, env=variables, capture_output=True, check=False
        )
        assert hidden.returncode == 0, hidden.stdout
        files = task.repository.test_files
        subprocess.run([*pytest, *files], cwd=tree, env=variables, capture_output=True, check=False)


def episodes(config: Config) -> Table:
    """Episodes a minute."""
    table = Table("package", "lines", "this suite, episodes/min", "plain", "ratio")
    for name in config.packages:
        env = gymnasium.make("textagent/SWE-v0", packages=name)
        tasks = env.unwrapped.tasks  # type: ignore[attr-defined]
        count = min(4, tasks.size("train"))
        chosen = [tasks.task("train", index) for index in range(count)]  # Built before anything is timed.
        here(env, 0)
        began = time.perf_counter()
        for number in range(config.episodes):
            here(env, number % count)
        ours = 60 * config.episodes / (time.perf_counter() - began)
        env.close()
        began = time.perf_counter()
        for number in range(config.episodes):
            plain(chosen[number % count])
        theirs = 60 * config.episodes / (time.perf_counter() - began)
        table.add_row(
            name, str(chosen[0].repository.package.lines), f"{ours:.0f}", f"{theirs:.0f}", f"{ours / theirs:.2f}"
        )
    return table


def resets(config: Config) -> Table:
    """Milliseconds of a reset."""
    table = Table("tree", "reset", "reset and first command", "copying the tree")
    sandbox = make_sandbox("auto")
    for size in config.megabytes:
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder) / "tree"
            for number in range(size * 10):
                path = tree / f"{number % 100}" / f"{number}.txt"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(os.urandom(100_000))
            times = []
            for command in (False, True):
                began = time.perf_counter()
                for _ in range(20):
                    sandbox.begin([tree], {})
                    if command:
                        sandbox.run("true", 10)
                times.append((time.perf_counter() - began) / 20 * 1e3)
            began = time.perf_counter()
            shutil.copytree(tree, Path(folder) / "copy")
            copied = (time.perf_counter() - began) * 1e3
            table.add_row(f"{size} MB", f"{times[0]:.1f} ms", f"{times[1]:.1f} ms", f"{copied:.0f} ms")
    sandbox.close()
    return table


def main() -> None:
    """Print both tables."""
    config = tyro.cli(Config)
    Console().print(resets(config))
    Console().print(episodes(config))


if __name__ == "__main__":
    main()
