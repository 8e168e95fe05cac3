"""Episodes of software engineering: this suite's sandbox beside a plain copy of the tree and a fresh Docker container.

    python -m benchmarks.swe_env --packages measures inflection toolz

An episode is a reset, five commands of which one repairs the code, the hidden tests, and the end. The plain way copies
the tree, starts a process for each command, and runs pytest on the hidden tests and then on the others. The other one
does the same in a container that is started for the episode. All play the same tasks in one run; without an engine and
an image (`TEXTAGENT_SWE_IMAGE`), its column is empty. The cost of a reset is measured for trees of several sizes, the
gain of a second worker process, and what a thousand episodes leave behind.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import gymnasium
import tyro
from rich.console import Console
from rich.table import Table

from textagent_gym.domains.swe.mutants.tasks import BuiltTasks, MutantWorld
from textagent_gym.domains.swe.toolbox import TOOLBOX
from textagent_gym.sandbox import SandboxError, make_sandbox
from textagent_gym.sandbox.base import ROOT
from textagent_gym.sandbox.container import connect, prepared, present
from textagent_gym.sandbox.layers import copy_layers, pack

COMMANDS = ("ls", "git status --short", "grep -rn 'def ' . | head -5", "git log --oneline | head -3")


@dataclass(frozen=True)
class Config:
    """What is measured."""

    packages: tuple[str, ...] = ("measures",)
    """Packages of the tasks."""
    episodes: int = 20
    """Episodes for each package and way."""
    megabytes: tuple[int, ...] = (1, 3, 10, 30, 100, 300)
    """Sizes of the trees whose resets are timed."""
    plot: Path | None = None
    """File for a drawing of the resets (needs matplotlib)."""
    leaks: int = 1000
    """Episodes after which one looks for what they have left behind."""


def here(env: gymnasium.Env[str, str], index: int) -> None:
    """An episode in this suite."""
    env.reset(options={"task_index": index})
    for command in COMMANDS:
        env.step(f"```bash\n{command}\n```")
    reward = 0.0
    for action in env.unwrapped.oracle():  # type: ignore[attr-defined]
        _, reward, *_ = env.step(action)
    assert reward == 1.0


def repairs(world: MutantWorld) -> list[list[str]]:
    """Commands that repair the code."""
    script = "p = {!r}; t = open(p).read(); open(p, 'w').write(t.replace({!r}, {!r}))"
    return [["python3", "-c", script.format(hunk.path, hunk.wrong, hunk.right)] for hunk in world.hunks]


def tests(world: MutantWorld) -> list[list[str]]:
    """Commands that run the hidden tests and then all of them."""
    pytest = ["python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts="]
    return [[*pytest, *world.fail_to_pass], [*pytest, *world.repository.test_files]]


def variables(world: MutantWorld) -> dict[str, str]:
    """Of the environment, the same for all."""
    paths = os.pathsep.join(world.repository.package.paths)
    return {"PYTHONPATH": paths, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def plain(world: MutantWorld) -> None:
    """An episode with a copy and processes."""
    environment = {**os.environ, **variables(world), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        copy_layers(world.layers, tree)

        def run(argv: list[str]) -> int:
            return subprocess.run(argv, cwd=tree, env=environment, capture_output=True, check=False).returncode

        for command in COMMANDS:
            run(["bash", "-c", command])
        for argv in repairs(world):
            run(argv)
        for name, text in world.repository.test_texts.items():
            (tree / name).write_text(text, encoding="utf-8")
        hidden, others = tests(world)
        assert run(hidden) == 0
        run(others)


def container(world: MutantWorld) -> None:
    """An episode in a fresh container."""
    engine = connect("docker")
    image = prepared(engine, present(engine, os.environ["TEXTAGENT_SWE_IMAGE"]), TOOLBOX)
    environment = {**variables(world), "PYTHONPATH": f"{variables(world)['PYTHONPATH']}:/opt/textagent/packages"}
    box = engine.containers.run(image, ["sleep", "600"], detach=True, network_mode="none", environment=environment)
    try:

        def run(argv: list[str]) -> int:
            return int(box.exec_run(argv, workdir=ROOT).exit_code)

        box.exec_run(["mkdir", ROOT])
        box.put_archive(ROOT, pack(world.layers, {}))
        for command in COMMANDS:
            run(["bash", "-c", command])
        for argv in repairs(world):
            run(argv)
        box.put_archive(ROOT, pack((), {name: text.encode() for name, text in world.repository.test_texts.items()}))
        hidden, others = tests(world)
        assert run(hidden) == 0
        run(others)
    finally:
        box.remove(force=True)


def rate(count: int, episode: Callable[[int], None]) -> float:
    """Episodes a minute."""
    episode(0)
    began = time.perf_counter()
    for number in range(count):
        episode(number)
    return 60 * count / (time.perf_counter() - began)


def worlds_of(package: str) -> list[MutantWorld]:
    """Repositories of some tasks of a package."""
    source = BuiltTasks((package,))
    return [source.world(source.task("train", index)) for index in range(min(4, source.size("train")))]


def episodes(config: Config) -> Table:
    """Episodes a minute."""
    table = Table("package", "lines", "this suite, episodes/min", "plain", "ratio", "fresh container", "ratio")
    try:
        make_sandbox("docker").begin((), {})
        has_engine = "TEXTAGENT_SWE_IMAGE" in os.environ
    except SandboxError:
        has_engine = False
    for name in config.packages:
        chosen = worlds_of(name)
        env = gymnasium.make("textagent/SWE-v0", packages=name)
        ours = rate(config.episodes, lambda number, env=env, chosen=chosen: here(env, number % len(chosen)))  # type: ignore[misc]
        env.close()
        row = [name, str(chosen[0].repository.package.lines), f"{ours:.0f}"]
        for way in (plain, container):
            if way is container and not has_engine:
                row += ["", ""]
                continue
            theirs = rate(config.episodes, lambda number, way=way, found=chosen: way(found[number % len(found)]))  # type: ignore[misc]
            row += [f"{theirs:.0f}", f"{ours / theirs:.2f}"]
        table.add_row(*row)
    return table


def work(package: str, count: int, barrier: object, times: object) -> None:
    """One worker's episodes."""
    env = gymnasium.make("textagent/SWE-v0", packages=package)
    here(env, 0)
    barrier.wait()  # type: ignore[attr-defined]
    for number in range(count):
        here(env, number % 4)
    times.put(time.time())  # type: ignore[attr-defined]
    env.close()


def workers(config: Config) -> Table:
    """What a second process gains."""
    table = Table("package", "one worker, episodes/min", "two workers", "gain")
    context = multiprocessing.get_context("spawn")
    for name in config.packages:
        rates = []
        for count in (1, 2):
            barrier, times = context.Barrier(count + 1), context.Queue()
            found = [context.Process(target=work, args=(name, config.episodes, barrier, times)) for _ in range(count)]
            for process in found:
                process.start()
            barrier.wait()
            began = time.time()
            last = max(times.get() for _ in found)
            for process in found:
                process.join()
            rates.append(60 * config.episodes * count / (last - began))
        table.add_row(name, f"{rates[0]:.0f}", f"{rates[1]:.0f}", f"{rates[1] / rates[0]:.2f}")
    return table


def state() -> dict[str, int]:
    """What a leak would add to."""
    processes = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return {
        "processes": sum("bwrap" in line or "supervisor.py" in line for line in processes.splitlines()),
        "mounts": Path("/proc/self/mounts").read_text(encoding="utf-8").count("\n"),
        "open files": len(os.listdir("/proc/self/fd")),
        "temporary files": sum(1 for _ in Path(tempfile.gettempdir()).glob("textagent-*")),
        "memory of this process, MiB": int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4 // 1024,
    }


def leaks(config: Config) -> Table:
    """What many episodes leave behind."""
    env = gymnasium.make("textagent/SWE-v0", packages=config.packages[0])
    for number in range(20):
        here(env, number % 4)
    before = state()
    for number in range(config.leaks):
        here(env, number % 4)
    after = state()
    env.close()
    closed = state()
    table = Table("left behind", "after 20 episodes", f"after {config.leaks} more", "closed")
    for name in before:
        table.add_row(name, str(before[name]), str(after[name]), str(closed[name]))
    return table


def resets(config: Config) -> Table:
    """Milliseconds of a reset."""
    drawn: dict[str, list[float]] = {"reset": [], "reset and first command": [], "copying the tree": []}
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
            for values, value in zip(drawn.values(), (*times, copied), strict=True):
                values.append(value)
            table.add_row(f"{size} MB", f"{times[0]:.1f} ms", f"{times[1]:.1f} ms", f"{copied:.0f} ms")
    sandbox.close()
    if config.plot is not None:
        draw(config, drawn)
    return table


def draw(config: Config, drawn: dict[str, list[float]]) -> None:
    """Draw the resets."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.subplots()
    for name, values in drawn.items():
        axes.loglog(config.megabytes, values, marker="o", label=name)
    axes.set(xlabel="size of the repository, MB", ylabel="ms")
    axes.legend()
    axes.grid(alpha=0.3)
    assert config.plot is not None
    figure.savefig(config.plot)


def main() -> None:
    """Print all tables."""
    config = tyro.cli(Config)
    for table in (resets, episodes, workers, leaks):
        Console().print(table(config))


if __name__ == "__main__":
    main()
