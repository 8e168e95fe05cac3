"""`textagent-gym swe`: what prepares tasks of software engineering."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from textagent_gym.cli.subcommand import subcommand
from textagent_gym.errors import InvalidOptionError

if TYPE_CHECKING:
    from textagent_gym.domains.swe.mutants.packages import Package, Repository
    from textagent_gym.sandbox import Sandbox


@dataclass(frozen=True, kw_only=True)
class _OfPackages:
    packages: tuple[str, ...] = ("all",)
    """Names of packages, or paths of folders with your own repositories; all for every package of the suite."""
    sandbox: str = "auto"
    """Sandbox that the tests run in: auto (the first available one that keeps what runs there in), or the name of a
    registered one, such as bubblewrap, docker, podman, ray or process."""

    @property
    def names(self) -> list[str]:
        """Names and paths, one by one."""
        from textagent_gym.domains.swe.mutants.packages import PACKAGES

        return list(PACKAGES) if self.packages == ("all",) else list(self.packages)


@dataclass(frozen=True, kw_only=True)
class Fetch(_OfPackages):
    """Download the packages of the suite and run their tests, so that they can be played without a network."""

    def run(self) -> int:
        """Fetch every package, and run its tests."""
        from rich.console import Console

        from textagent_gym.domains.swe.mutants.packages import find, prepare
        from textagent_gym.domains.swe.toolbox import TOOLBOX
        from textagent_gym.sandbox import make_sandbox

        console = Console(stderr=True)
        chosen: list[Package] = [find(name) for name in self.names]
        sandbox = make_sandbox(self.sandbox, toolbox=TOOLBOX)
        try:
            for package in chosen:
                with console.status(f"{package.slug}: fetching, running its tests"):
                    repository = prepare(package, sandbox)
                console.print(f"{package.slug}: {package.lines} lines, {len(repository.tests)} tests", highlight=False)
                self._prepared(repository, sandbox)
        finally:
            sandbox.close()
        return 0

    def _prepared(self, repository: Repository, sandbox: Sandbox) -> None:
        """A package has been fetched, and its tests pass."""


@dataclass(frozen=True, kw_only=True)
class Build(Fetch):
    """Put mistakes into Python packages, and write the recipes to --out; play them with --set recipes=FILE."""

    out: Annotated[Path, tyro.conf.arg(metavar="FILE")]
    """File that recipes are added to, so that a stopped command resumes."""
    count: int = 10
    """Number of recipes per package."""

    def run(self) -> int:
        """Fetch every package, and make its recipes."""
        from textagent_gym.files import check_writable

        check_writable(self.out)
        _check_count(self.count)
        return super().run()

    def _prepared(self, repository: Repository, sandbox: Sandbox) -> None:
        """Add recipes of a package to the file, one by one."""
        from textagent_gym.cli.progress import bar
        from textagent_gym.domains.swe.mutants.assembly import is_servable
        from textagent_gym.domains.swe.mutants.builder import Tally, build
        from textagent_gym.domains.swe.mutants.recipe import Recipe, read_recipe

        slug = repository.package.slug
        lines = self.out.read_text(encoding="utf-8").splitlines() if self.out.is_file() else []
        try:
            known = [recipe for recipe in map(read_recipe, lines) if recipe.package == slug]
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidOptionError(f"{self.out} is no file of recipes: {error}") from error
        self.out.parent.mkdir(parents=True, exist_ok=True)
        wanted = self.count - len(known)
        if wanted < 1:
            return
        with bar(f"Making tasks of {slug}", wanted) as done, open(self.out, "a", encoding="utf-8") as file:

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


@dataclass(frozen=True, kw_only=True)
class Rows(_OfPackages):
    """Write tasks to --out as rows in the form of SWE-bench, for its harness."""

    out: Annotated[Path, tyro.conf.arg(metavar="FILE")]
    """File to write."""
    count: int = 10
    """Largest number of rows in all."""
    split: str = "train"
    """Split of the tasks."""
    mutants: int = 1
    """Number of mistakes in each task."""
    base: str = ""
    """Image with bash, git and Python 3.11 or later, from which Docker builds one image per row. Without it, no image
    is built."""

    def run(self) -> int:
        """Write the rows."""
        from textagent_gym.cli.progress import bar
        from textagent_gym.domains.swe.mutants.tasks import BuiltTasks
        from textagent_gym.domains.swe.rows.export import export_rows
        from textagent_gym.files import check_writable

        check_writable(self.out)
        _check_count(self.count)
        source = BuiltTasks(self.names, self.mutants, sandbox=self.sandbox)
        count = min(self.count, source.size(self.split))
        with bar(f"Writing rows to {self.out}", count) as done:
            tasks = (source.task(self.split, index) for index in range(count))
            export_rows(source, tasks, self.out, base=self.base, progress=done)
        return 0


def _check_count(count: int) -> None:
    if count < 1:
        raise InvalidOptionError(f"--count must be at least 1, got {count}")


@dataclass(frozen=True)
class Swe:
    """Prepare tasks of software engineering: make them (build), fetch their packages (fetch), or export them (rows)."""

    work: Annotated[
        Annotated[Build, subcommand("build", Build)]
        | Annotated[Fetch, subcommand("fetch", Fetch)]
        | Annotated[Rows, subcommand("rows", Rows)],
        tyro.conf.arg(name=""),
    ]

    def run(self) -> int:
        """Do the work."""
        return self.work.run()
