"""How many mistakes in our code the tests notice: `python -m tests.mutations results.jsonl`.

Single small changes are drawn at random from each file, the files' tests run on each of them in a copy of the tree, and
one line per mutant is kept. The same command continues where it was stopped. A mutant that survives shows a missing
test, unless the changed program does the same; `--again` runs the survivors once more.
"""

from __future__ import annotations

import ast
import compileall
import contextlib
import difflib
import hashlib
import json
import os
import random
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import tyro
from rich.console import Console
from rich.progress import track
from rich.table import Table

from tests.forked_pytest import LOG
from textagent_gym.domains.swe.mutants.mutations import KINDS, Mutation, mutations

ROOT = Path(__file__).parents[1]
TEXTAGENT = "textagent_gym"
ALFWORLD, BABYAI, TEXTCRAFT, TEXTWORLD = (
    f"{TEXTAGENT}/domains/{name}" for name in ("alfworld", "babyai", "textcraft", "textworld")
)
DRAWN_KINDS = tuple(kind for kind in KINDS if kind not in ("string", "function", "handler", "arguments"))
"""Left out: texts, which tests need not repeat, and changes that any call of the function notices."""
LINES_PER_MUTANT, FEWEST_PER_FILE = 50, 3
"""One mutant per so many lines of a file, but a few in short files too: a run of all files takes about an hour."""
SLOWER, EXTRA_SECONDS = 5.0, 60.0
"""A mutant's tests hang if they take this many times as long as on the unchanged file, and this many seconds more."""
IDLE_PLUGINS = ("cacheprovider", "typeguard", "anyio", "xdist", "xdist.looponfail")
"""Plugins of pytest that these tests do not use: each would be loaded for every mutant."""
LIBRARIES = (
    *("pytest", "hypothesis", "numpy", "gymnasium", "rich", "torch", "transformers", "accelerate", "textworld"),
    "trl.trainer.grpo_trainer",
)
"""Imported once for all mutants: they take longer than the tests of most files."""
MEMORY_BYTES = 8 * 2**30
"""Private memory of a test process: a mutant that never stops growing shall not stop the machine."""


@dataclass(frozen=True)
class Area:
    """Files, and the tests that cover them.

    Attributes:
        files: files that are changed, as patterns from the root of the checkout.
        tests: arguments of pytest, the quickest file first; the changed file's own examples always run.
    """

    files: tuple[str, ...]
    tests: tuple[str, ...]


AREAS = {
    "core": Area(
        tuple(f"{TEXTAGENT}/{name}.py" for name in ("core", "options", "rewards")),
        ("tests/test_rewards.py", "tests/test_core.py"),
    ),
    "sources": Area((f"{TEXTAGENT}/sources.py", f"{TEXTAGENT}/tasks.py"), ("tests/test_sources.py",)),
    "knobs": Area((f"{TEXTAGENT}/knobs.py",), ("tests/test_knobs.py",)),
    "texts": Area((f"{TEXTAGENT}/spaces.py", f"{TEXTAGENT}/texts.py"), ("tests/test_texts.py", "tests/test_spaces.py")),
    "plans": Area(
        (f"{TEXTAGENT}/complexity.py", f"{TEXTAGENT}/planning.py"),
        ("tests/test_complexity.py",),
    ),
    "evaluation": Area((f"{TEXTAGENT}/evaluation/*.py",), ("tests/evaluation",)),
    "calls": Area((f"{TEXTAGENT}/calls/*.py",), ("tests/calls",)),
    "wrappers": Area((f"{TEXTAGENT}/wrappers/limits.py",), ("tests/wrappers",)),
    "methods": Area(
        (
            *(f"baselines/credit/{name}.py" for name in ("advantages", "losses", "rollouts")),
            *(f"baselines/training/{name}.py" for name in ("scoring", "update")),
        ),
        (
            "tests/baselines/credit/test_advantages_and_losses.py",
            "tests/baselines/credit/test_exact_advantages.py",
            "tests/baselines/credit/test_exact_losses.py",
            "tests/baselines/training/test_method.py",
        ),
    ),
    "collector": Area(("baselines/rollout/collector.py",), ("tests/baselines/rollout/test_collector.py",)),
    "alfworld": Area(
        (f"{ALFWORLD}/engine.py", f"{ALFWORLD}/game.py"),
        (
            "tests/domains/alfworld/test_env.py",
            "tests/domains/alfworld/test_engine.py",
            "--deselect=tests/domains/alfworld/test_engine.py::test_every_walkthrough_wins[train]",  # The other is one.
        ),
    ),
    "alfworld plans": Area(
        (f"{ALFWORLD}/planner.py",),
        ("tests/domains/alfworld/test_plain_search.py", "tests/domains/alfworld/test_planner.py"),
    ),
    "babyai": Area(
        tuple(f"{BABYAI}/{name}.py" for name in ("grid", "planner", "commands", "texts")),
        tuple(f"tests/domains/babyai/test_{name}.py" for name in ("grid", "planner", "env", "texts")),
    ),
    "textcraft": Area(
        tuple(f"{TEXTCRAFT}/{name}.py" for name in ("engine", "planner", "generator", "minecraft")),
        tuple(f"tests/domains/textcraft/test_{name}.py" for name in ("engine", "planner", "generator", "minecraft")),
    ),
    "textworld": Area(
        tuple(f"{TEXTWORLD}/{name}.py" for name in ("commands", "logic", "milestones", "planner", "search")),
        tuple(f"tests/domains/textworld/test_{name}.py" for name in ("commands", "logic", "planner", "engines")),
    ),
    "textworld quests": Area(
        (f"{TEXTWORLD}/generation/quests.py",),
        ("tests/domains/textworld/test_generation.py", "-k", "shape or shortest or cannot_be"),
    ),
    "batches": Area(
        tuple(f"{TEXTAGENT}/vector/{name}.py" for name in ("infos", "make", "vector_env")),
        ("tests/vector/test_infos.py", "tests/vector/test_vector_env.py", "tests/vector/test_as_gymnasiums.py"),
    ),
    "workers": Area(
        tuple(f"{TEXTAGENT}/vector/{n}.py" for n in ("messages", "ready_first", "transports", "worker", "workers")),
        ("tests/vector/test_ready_first.py", "tests/vector/test_workers.py"),
    ),
}


@dataclass(frozen=True)
class Mutant:
    """A changed file.

    Attributes:
        area: name of its area.
        path: path of the file from the root.
        source: digest of the unchanged file.
        mutation: change of the file.
    """

    area: str
    path: str
    source: str
    mutation: Mutation

    @property
    def key(self) -> str:
        """What identifies the mutant in a result file."""
        changed = json.dumps([self.path, self.source, *asdict(self.mutation).values()])
        return hashlib.sha256(changed.encode()).hexdigest()[:16]


def draw(root: Path, areas: Sequence[str], seed: int) -> list[Mutant]:
    """Mutants of the files of some areas; equal seeds give equal mutants of equal files."""
    mutants = []
    for area in areas:
        paths = sorted({path for pattern in AREAS[area].files for path in root.glob(pattern)})
        for path in (path for path in paths if path.name != "__init__.py"):
            source, name = path.read_text(encoding="utf-8"), path.relative_to(root).as_posix()
            rng = random.Random(f"{seed}/{name}")
            decorators = _decorators(source)
            by_kind = defaultdict(list)
            for mutation in (*mutations(source), *_fractions(source)):
                is_code = source.count("\n", 0, mutation.start) + 1 not in decorators
                is_check = source[: mutation.start].endswith("strict=")  # Of two lengths that are equal.
                if is_code and not is_check and mutation.kind in DRAWN_KINDS:
                    by_kind[mutation.kind].append(mutation)
            wanted = max(FEWEST_PER_FILE, source.count("\n") // LINES_PER_MUTANT)
            digest = hashlib.sha256(source.encode()).hexdigest()
            while wanted and by_kind:  # Every kind is as likely, though some are much more frequent than others.
                kind = rng.choice(sorted(by_kind))
                mutation = by_kind[kind].pop(rng.randrange(len(by_kind[kind])))
                if mutation.parses(source):
                    mutants.append(Mutant(area, name, digest, mutation))
                    wanted -= 1
                if not by_kind[kind]:
                    del by_kind[kind]
    return mutants


def _fractions(source: str) -> Iterator[Mutation]:
    """Other values of the floats, which the mistakes that programmers make in packages do not include."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and type(node.value) is float and source.isascii():
            start, end = starts[node.lineno - 1] + node.col_offset, starts[(node.end_lineno or 0) - 1]
            yield Mutation("number", start, end + (node.end_col_offset or 0), repr(node.value + 1))


def _decorators(source: str) -> set[int]:
    """Lines of decorators: a class that could be changed, or takes more memory, does nothing else."""
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef | ast.FunctionDef))
    return {line for n in nodes for d in n.decorator_list for line in range(d.lineno, (d.end_lineno or 0) + 1)}


class Tree:
    """A copy of the checkout in which one file at a time is changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        for name in filter(None, listed.stdout.split("\0")):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        shared = Path(os.environ.get("TEXTAGENT_SHARED_DATA") or ROOT.parent / "shared" / "data")
        variables = {
            **os.environ,
            "PYTHONPATH": str(folder),
            "TEXTAGENT_SHARED_DATA": str(shared),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        compileall.compile_dir(folder, quiet=2)
        self._pytest = subprocess.Popen(
            [sys.executable, "tests/forked_pytest.py", *LIBRARIES], cwd=folder, env=variables, bufsize=0,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=_limit_memory,  # noqa: PLW1509 (no threads here)
        )  # fmt: skip
        self._usual: dict[str, float] = {}

    def close(self) -> None:
        """End the process that the tests are forked from."""
        self._pytest.communicate()

    def run(self, mutant: Mutant) -> tuple[Literal["killed", "hung", "survived"], float]:
        """What the tests say of a mutant, and the seconds that they took.

        Raises:
            RuntimeError: the tests fail without a mutant.
        """
        path = self.folder / mutant.path
        source = path.read_text(encoding="utf-8")
        usual = self._usual.get(mutant.area)
        if usual is None:
            code, usual = self._tests(mutant, None)
            if code != 0:
                said = (self.folder / LOG).read_text(errors="replace")
                raise RuntimeError(f"the tests of {mutant.area} fail without a mutant (exit code {code}):\n{said}")
            self._usual[mutant.area] = usual
        try:
            path.write_text(mutant.mutation.apply(source), encoding="utf-8")
            code, seconds = self._tests(mutant, SLOWER * usual + EXTRA_SECONDS)
        finally:
            path.write_text(source, encoding="utf-8")
        return "hung" if code is None else "killed" if code else "survived", seconds

    def _tests(self, mutant: Mutant, limit: float | None) -> tuple[int | None, float]:
        """Exit code of pytest, `None` after the time limit, and the seconds that it took."""
        # Byte code is told from its source by the second and the size, which a mutant may share with the original.
        for stale in (self.folder / mutant.path).parent.glob(f"__pycache__/{Path(mutant.path).stem}.*"):
            stale.unlink()
        options = ["-x", "-q", *(f"-pno:{plugin}" for plugin in IDLE_PLUGINS)]
        started = time.monotonic()
        assert self._pytest.stdin is not None
        assert self._pytest.stdout is not None
        self._pytest.stdin.write(json.dumps([*options, mutant.path, *AREAS[mutant.area].tests]).encode() + b"\n")
        session = int(self._pytest.stdout.readline())
        ended = bool(select.select([self._pytest.stdout], [], [], limit)[0])
        with contextlib.suppress(ProcessLookupError):
            os.killpg(session, signal.SIGKILL)
        code = int(self._pytest.stdout.readline())
        return code if ended else None, time.monotonic() - started


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))


def difference(mutant: Mutant, source: str) -> str:
    """What a mutant changes, as a unified diff without context."""
    lines = source.splitlines(), mutant.mutation.apply(source).splitlines()
    return "\n".join(list(difflib.unified_diff(*lines, mutant.path, lineterm="", n=0))[2:])


def main(
    results: tyro.conf.Positional[Path],
    /,
    areas: tuple[str, ...] = tuple(AREAS),
    seed: int = 0,
    again: bool = False,
) -> None:
    """Draw mutants, run their tests, and print how many survive.

    Args:
        results: file of JSON lines, one per mutant; what it holds is not run again.
        areas: names of the areas whose files are changed.
        seed: seed of the draw.
        again: whether the survivors in the file are run once more.
    """
    console = Console()
    known = {}
    if results.exists():
        known = {line["key"]: line for line in map(json.loads, results.read_text(encoding="utf-8").splitlines())}
    mutants = draw(ROOT, areas, seed)
    waiting = [m for m in mutants if m.key not in known or (again and known[m.key]["outcome"] == "survived")]
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="mutants-"))
        lines = stack.enter_context(results.open("a", encoding="utf-8"))
        tree = stack.enter_context(contextlib.closing(Tree(Path(folder))))
        for mutant in track(waiting, description=f"Mutants, to {results}", console=console):
            outcome, seconds = tree.run(mutant)
            changes = difference(mutant, (ROOT / mutant.path).read_text(encoding="utf-8"))
            line = {
                "key": mutant.key, "area": mutant.area, "path": mutant.path, "kind": mutant.mutation.kind,
                "outcome": outcome, "seconds": round(seconds, 1), "diff": changes,
            }  # fmt: skip
            lines.write(json.dumps(line) + "\n")
            lines.flush()
            known[mutant.key] = line
    table = Table("area", "mutants", "killed", "survived")
    for area in areas:
        outcomes = Counter(known[m.key]["outcome"] == "survived" for m in mutants if m.area == area)
        table.add_row(area, *map(str, (outcomes.total(), outcomes[False], outcomes[True])))
    for mutant in mutants:
        if known[mutant.key]["outcome"] == "survived":
            console.print(mutant.path, known[mutant.key]["diff"], sep="\n", markup=False, highlight=False)
    console.print(table)


if __name__ == "__main__":
    tyro.cli(main)
