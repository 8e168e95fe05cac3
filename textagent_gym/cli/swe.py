"""`textagent-gym swe`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from textagent_gym.errors import InvalidOptionError


@dataclass(frozen=True, kw_only=True)
class Swe:
    """Prepare tasks of software engineering: make new ones (build), download packages (fetch), or export them (rows).

    build puts mistakes into Python packages and writes the recipes to --out; play them with --set recipes=FILE.
    fetch downloads the packages of the suite and runs their tests, so that they can be played without a network.
    rows writes tasks to --out as rows in the form of SWE-bench, for its harness.
    """

    what: tyro.conf.Positional[Literal["build", "fetch", "rows"]]
    """Kind of work; see above."""
    packages: tuple[str, ...] = ("all",)
    """Names of packages, or paths of folders with your own repositories; all for every package of the suite."""
    count: int = 10
    """Number of recipes per package (build), or largest number of rows in all (rows)."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="")] = None
    """File to write (build, rows). build adds to the recipes in the file, so a stopped build resumes."""
    sandbox: str = "auto"
    """Sandbox that the tests run in: auto (the first available one that keeps what runs there in), or the name of a
    registered one, such as bubblewrap, docker, podman, ray or process."""
    split: str = "train"
    """Split of the tasks (rows)."""
    mutants: int = 1
    """Number of mistakes in each task (rows)."""
    base: str = ""
    """Image with bash, git and Python 3.11 or later, from which Docker builds one image per row (rows).
    Without it, no image is built."""

    def run(self) -> int:
        """Fetch, test and build."""
        from rich.console import Console

        from textagent_gym.domains.swe.mutants.packages import PACKAGES, find, prepare
        from textagent_gym.domains.swe.toolbox import TOOLBOX
        from textagent_gym.sandbox import make_sandbox

        if self.what != "fetch" and self.out is None:
            raise InvalidOptionError(f"{self.what} needs --out, the file to write")
        if self.count < 1:
            raise InvalidOptionError(f"--count must be at least 1, got {self.count}")
        console = Console(stderr=True)
        names = list(PACKAGES) if self.packages == ("all",) else list(self.packages)
        if self.what == "rows":
            return self._rows(names)
        chosen = [find(name) for name in names]
        sandbox = make_sandbox(self.sandbox, toolbox=TOOLBOX)
        try:
            for package in chosen:
                with console.status(f"{package.slug}: fetching, running its tests"):
                    repository = prepare(package, sandbox)
                console.print(f"{package.slug}: {package.lines} lines, {len(repository.tests)} tests", highlight=False)
                if self.out is not None and self.what == "build":
                    self._build(repository, sandbox, self.out)
        finally:
            sandbox.close()
        return 0

    def _rows(self, names: list[str]) -> int:
        """Write tasks of packages as rows."""
        from textagent_gym.cli.progress import bar
        from textagent_gym.domains.swe.mutants.tasks import BuiltTasks
        from textagent_gym.domains.swe.rows.export import export_rows

        assert self.out is not None
        source = BuiltTasks(names, self.mutants, sandbox=self.sandbox)
        count = min(self.count, source.size(self.split))
        with bar(f"Writing rows to {self.out}", count) as done:
            tasks = (source.task(self.split, index) for index in range(count))
            export_rows(source, tasks, self.out, base=self.base, progress=done)
        return 0

    def _build(self, repository: object, sandbox: object, out: Path) -> None:
        """Add recipes of a package to the file, one by one."""
        from textagent_gym.cli.progress import bar
        from textagent_gym.domains.swe.mutants.assembly import is_servable
        from textagent_gym.domains.swe.mutants.builder import Tally, build
        from textagent_gym.domains.swe.mutants.packages import Repository
        from textagent_gym.domains.swe.mutants.recipe import Recipe, read_recipe
        from textagent_gym.sandbox import Sandbox

        assert isinstance(repository, Repository)
        assert isinstance(sandbox, Sandbox)
        slug = repository.package.slug
        lines = out.read_text(encoding="utf-8").splitlines() if out.is_file() else []
        try:
            known = [recipe for recipe in map(read_recipe, lines) if recipe.package == slug]
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidOptionError(f"{out} is no file of recipes: {error}") from error
        out.parent.mkdir(parents=True, exist_ok=True)
        wanted = self.count - len(known)
        if wanted < 1:
            return
        with bar(f"Making tasks of {slug}", wanted) as done, open(out, "a", encoding="utf-8") as file:

            def add(recipe: Recipe, tally: Tally) -> None:
                file.write(recipe.to_json() + "\n")
                file.flush()
                done(tally.kept)

            build(
                repository,
                sandbox,
                wanted,
                known=frozenset(recipe.key for recipe in known),
                accept=lambda recipe: is_servable(recipe, repository, self.sandbox),
                progress=add,
            )
