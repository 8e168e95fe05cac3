"""The suite's own tasks as an environment."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Unpack

from textagent_gym.calls import Call
from textagent_gym.domains.swe.env import SWEEnv
from textagent_gym.domains.swe.expert.searcher import Searcher
from textagent_gym.domains.swe.grading.grader import Grade, grade
from textagent_gym.domains.swe.mutants.packages import PACKAGES, find
from textagent_gym.domains.swe.mutants.tasks import BuiltTasks, MutantWorld
from textagent_gym.domains.swe.options import RepairKwargs, RepairOptions, SWEKwargs, SWEOptions
from textagent_gym.domains.swe.replacements import replacements
from textagent_gym.domains.swe.source_files import SourceChanges, source_changes
from textagent_gym.domains.swe.tools import writing_script
from textagent_gym.errors import (
    InfeasibleDifficultyError,
    UnknownTaskError,
    UnsupportedOperationError,
)
from textagent_gym.knobs import OptionsClass, accepts, arguments_of, check_names
from textagent_gym.registration import SWE, require
from textagent_gym.sandbox import Changes
from textagent_gym.sandbox.base import ROOT
from textagent_gym.tasks import Task

_log = logging.getLogger("textagent_gym.swe")
_MOST_DRAWS = 20  # Draws until a task is served; nearly every one is.


class SWERepairEnv(SWEEnv[MutantWorld]):
    """## Tasks that come with the suite
    Mistakes put into real packages, kept where one to ten of their tests notice. The package `measures` comes with the
    suite; the others are fetched from the package index when they are first played, and checked.

    ## Difficulty
    | knob | values | axis |
    | --- | --- | --- |
    | `packages`, `lines` | 239 to 117,226 lines of code | `state_size` is a range, another name of `lines` |
    | `tools` | "shell", "edit" or "all" | what can be done |
    | `mutants` | 1 to 5 | independent mistakes; `solution_length` is measured |

    ## Registered ids
    `textagent/SWE-v0`: the package `measures`, which comes with the suite.

    Args:
        options: knobs of `textagent_gym.domains.swe.options.RepairOptions`, and the arguments of `SWEEnv` and
            `TextEnv`.

    Raises:
        InvalidOptionError: an argument has a name or value that does not exist.
        InfeasibleDifficultyError: no package has as many lines as asked for.
    """

    @accepts(RepairOptions, SWEOptions)
    def __init__(self, **options: Unpack[RepairKwargs]) -> None:
        check_names("SWE", options, *self.declared_options(options))
        require(SWE)
        asked = RepairOptions.of(options)
        working = SWEOptions.of(options)
        names = list(PACKAGES) if asked.packages == ("all",) else list(asked.packages)
        if asked.lines is not None:
            least, most = asked.lines
            names = [name for name in names if least <= find(name).lines <= most]
            if not names:
                sizes = ", ".join(f"{package.name} {package.lines}" for package in PACKAGES.values())
                raise InfeasibleDifficultyError(f"no package of these has {least} to {most} lines; there are {sizes}")
        recipes = None if asked.recipes is None else Path(asked.recipes).expanduser()
        source = BuiltTasks(names, asked.mutants, recipes=recipes, sandbox=working.sandbox)
        super().__init__(source, **arguments_of(SWEKwargs, options))

    @classmethod
    def declared_options(cls, given: Mapping[str, Any]) -> tuple[OptionsClass, ...]:
        """Classes that declare the knobs."""
        return RepairOptions, SWEOptions

    def _choose_task(self, options: dict[str, Any]) -> Task:
        """See `TextEnv`. A task that is not served here, with this Python, is passed over unless it was asked for."""
        for _ in range(_MOST_DRAWS):
            try:
                return super()._choose_task(options)
            except UnknownTaskError as error:
                if options:
                    raise
                _log.warning("another task is drawn: %s", error)
        return super()._choose_task(options)

    def _enter(self, world: MutantWorld) -> None:
        paths = world.repository.package.paths
        importable = ":".join(ROOT if path == "." else f"{ROOT}/{path}" for path in paths)
        self.sandbox.begin(world.layers, {"PYTHONPATH": importable, "TESTBED": ROOT})

    def _counted(self, changes: Changes) -> SourceChanges:
        repository = self.world.repository
        return source_changes(changes, repository.test_files, repository.files, sources=repository.package.sources)

    def _run_tests(self, changes: Changes) -> Grade:
        return grade(self.sandbox, self.world.graded_layers, changes, self.world.exam)

    def _oracle(self) -> tuple[str, ...] | None:
        """The repair, a command for each place, whatever the agent has made of the files."""
        changes, _ = self._changes_or_nothing()
        calls: list[Call] = []
        for path in sorted({hunk.path for hunk in self.world.hunks} | set(changes)):
            calls += self._repairs(path, changes)
        return self._plan(calls)

    @property
    def supports(self) -> frozenset[str]:
        """See `TextEnv`; the expert needs a shell."""
        return super().supports - (frozenset() if self.has_tool("shell") else {"expert"})

    def _expert(self) -> Searcher:
        if not self.has_tool("shell"):
            raise UnsupportedOperationError('the expert needs a shell; the tools "shell" and "all" have one')
        return Searcher(self.action_format, self.max_turns, seconds=self.command_timeout)

    def _repairs(self, path: str, changes: Changes) -> list[Call]:
        """What brings a file to where it should be."""
        repository = self.world.repository
        right = (repository.root / path).read_text(encoding="utf-8") if path in repository.files else None
        hunks = [hunk for hunk in self.world.hunks if hunk.path == path]
        task = (self.world.layers[1] / path).read_text(encoding="utf-8") if hunks else None
        if path in changes:
            content = changes[path]
            now = None if content is None else content.decode(errors="replace")
        else:
            now = task
        if now == right or right is None:  # New files do no harm.
            return []
        if now:
            steps = replacements(path, now, right, task or "", hunks)
            return [call for hunk in steps for call in self._replacement(hunk)]
        if self.action_format == "bash":
            return [Call("shell", {"command": writing_script(path, right)})]
        return [Call("create", {"path": path, "content": right})]
