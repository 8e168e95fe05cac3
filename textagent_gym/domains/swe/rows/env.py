"""The public data sets of repositories to repair, as an environment."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any, Unpack

from textagent_gym.calls import Call
from textagent_gym.domains.swe.env import SWEEnv
from textagent_gym.domains.swe.grading.grader import Grade
from textagent_gym.domains.swe.options import InstancesKwargs, InstancesOptions, SWEKwargs, SWEOptions
from textagent_gym.domains.swe.replacements import replacements
from textagent_gym.domains.swe.rows.instances import Instances, InstanceWorld, is_file
from textagent_gym.domains.swe.rows.reports import ENVIRONMENT, grade_row, grading_limits, row_changes
from textagent_gym.domains.swe.source_files import SourceChanges
from textagent_gym.domains.swe.toolbox import TOOLBOX
from textagent_gym.domains.swe.tools import writing_script
from textagent_gym.errors import InvalidOptionError
from textagent_gym.knobs import OptionsClass, accepts, arguments_of, check_names
from textagent_gym.registration import SWE_ROWS, require
from textagent_gym.sandbox import Changes, Limits, Result, Sandbox, SandboxError, make_sandbox
from textagent_gym.sandbox.base import ROOT

_LIMITS = Limits(memory=4096, processes=512, disk=4096, files=200_000)
# The images of the data sets keep what a repository needs in an environment of conda.
_ACTIVATE = (
    "if [ -f /opt/miniconda3/bin/activate ]; then . /opt/miniconda3/bin/activate; conda activate testbed; fi; "
    f"cd {ROOT}"
)


class SWEInstancesEnv(SWEEnv[InstanceWorld]):
    """## Instances of the public data sets
    An instance of SWE-Gym, SWE-bench or a data set of their form: its issue, its repository as its image holds it, and
    its own tests, read by swebench. The image is run by Docker or Podman, without a network.

    ## Difficulty
    How large a task is follows from its row: `complexity` measures the lines and the places that its repair changes.


    ## Registered ids
    `textagent/SWE-Gym-v0` for training, `textagent/SWE-bench-v0` (SWE-bench Verified) for testing.

    Args:
        options: knobs of `textagent_gym.domains.swe.options.InstancesOptions`, and the arguments of `SWEEnv` and
            `TextEnv`; sandboxes have 4 GiB of memory unless `limits` are set.

    Raises:
        InvalidOptionError: an argument has a name or value that does not exist, or a row of the file is not what it
            should be.
    """

    @accepts(InstancesOptions, SWEOptions)
    def __init__(self, **options: Unpack[InstancesKwargs]) -> None:
        check_names("SWE's data sets", options, *self.declared_options(options))
        require(SWE_ROWS)
        asked = InstancesOptions.of(options)
        source = Instances(asked.rows, images=asked.images, divide=asked.divide, dataset_split=asked.dataset_split)
        working = arguments_of(SWEKwargs, options)
        working["limits"] = SWEOptions.of(options).limits or _LIMITS
        super().__init__(source, **working)
        if is_file(asked.rows) and not source.size(self.split):
            raise InvalidOptionError(
                f"no row of {asked.rows} is in the split {self.split!r}; divide={self.split!r} puts all of them there"
            )
        self.grading_timeout = asked.grading_timeout
        self._grader: Sandbox | None = None
        self._new_shell = True
        self._repair: tuple[str, Changes, Changes] = ("", {}, {})  # Of which task; files before and after.
        self._gradable = ("", True)  # Of which task; whether its repair can be graded.

    @classmethod
    def declared_options(cls, given: Mapping[str, Any]) -> tuple[OptionsClass, ...]:
        """Classes that declare the knobs."""
        return InstancesOptions, SWEOptions

    def _make_sandbox(self, limits: Limits) -> Sandbox:
        return make_sandbox(self.sandbox_name, limits, TOOLBOX, images=True)

    @property
    def _second_sandbox(self) -> Sandbox:
        """Where tests run; it begins afresh each time."""
        if self._grader is None:
            self._grader = self._make_sandbox(grading_limits(self.limits))
        return self._grader

    def _enter(self, world: InstanceWorld) -> None:
        self.sandbox.begin((), ENVIRONMENT, image=world.row.image)
        self._new_shell = True

    def _run(self, text: str) -> Result:
        if self._new_shell:
            self.sandbox.run(_ACTIVATE, self.command_timeout)
        result = super()._run(text)
        self._new_shell = result.status is None
        return result

    def _counted(self, changes: Changes) -> SourceChanges:
        repair = {path for file in self.world.files for path in file.paths}
        return row_changes(changes, test_files=self.world.test_files, repair=repair)

    def _run_tests(self, changes: Changes) -> Grade:
        grade = self._grade_row(changes)
        if grade is None and not self._can_be_graded():
            raise SandboxError(
                f"not even with the repair of {self.task.id} is there the outcome of a test in what its script prints "
                f"in {self.world.row.image}"
            )
        return grade or Grade(missing=self.world.fail_to_pass)  # As after an error in a draft.

    def _grade_row(self, changes: Changes) -> Grade | None:
        return grade_row(self._second_sandbox, self.world.row, changes, seconds=self.grading_timeout)

    def _can_be_graded(self) -> bool:
        """With the row's own repair, the tests have outcomes."""
        known, can = self._gradable
        if known != self.task.id:
            can = self._grade_row(self._repaired({})[1]) is not None
            self._gradable = (self.task.id, can)
        return can

    def _oracle(self) -> tuple[str, ...] | None:
        """The instance's own repair, whatever the agent has made of the files; `None` where the tools cannot do it."""
        changes, _ = self._changes_or_nothing()
        if not changes and self.action_format == "bash":
            calls = [Call("shell", {"command": _applying(self.world.row.patch)})]
        else:
            before, after = self._repaired(changes)
            calls = []
            for path in sorted({*after, *changes}):
                right = after.get(path, before.get(path))
                now = changes[path] if path in changes else before.get(path)
                if now != right:
                    written = self._writing(path, now, right)
                    if written is None:
                        return None
                    calls += written
        return self._plan(calls)

    def _writing(self, path: str, now: bytes | None, right: bytes | None) -> list[Call] | None:
        """Calls that give a file its content; `None` where the tools cannot do it."""
        try:
            text = None if right is None else right.decode()
            old = None if now is None else now.decode()
        except UnicodeDecodeError:
            return None
        if text is None:
            remove = Call("shell", {"command": f'rm -f "$TESTBED"/{shlex.quote(path)}'})
            return [remove] if self.has_tool("shell") else None
        if self.action_format == "bash":
            return [Call("shell", {"command": writing_script(path, text)})]
        if old:
            [hunk] = replacements(path, old, text)
            return self._replacement(hunk)
        return [Call("create", {"path": path, "content": text})] if self.has_tool("create") else None

    def _repaired(self, changes: Changes) -> tuple[Changes, Changes]:
        """The files that the repair or the agent changes: as the image has them, and those of the repair after it."""
        task, world = self.task, self.world
        known, before, after = self._repair
        if known == task.id and set(changes) <= set(before):
            return before, after
        box = self._second_sandbox
        box.begin((), ENVIRONMENT, image=world.row.image)
        repaired = {path for file in world.files for path in file.paths} - world.test_files
        before = dict.fromkeys(repaired | set(changes))
        # Written once more as they are, so that they come back as changes.
        names = shlex.join(sorted(before))
        box.run(f'cd {ROOT}; for f in {names}; do [ -f "$f" ] && cat "$f" >/tmp/f && cat /tmp/f >"$f"; done', 60)
        now = box.changes().files
        before = {path: now.get(path) for path in before}
        applied = box.run(_applying(world.row.patch), 60)
        if applied.status != 0:
            raise SandboxError(f"the patch of {task.id} does not apply in {world.row.image}: {applied.output[-500:]}")
        after = {path: content for path, content in box.changes().files.items() if before.get(path) != content}
        after = {path: content for path, content in after.items() if path in before}
        self._repair = (task.id, before, after)
        return before, after

    def _end_sandboxes(self) -> None:
        super()._end_sandboxes()
        box, self._grader = self._grader, None
        if box is not None:
            box.close()


def _applying(patch: str) -> str:
    """A command that applies a patch."""
    end = "END_OF_PATCH"
    while end in patch:
        end += "_"
    return f"cd \"$TESTBED\" && git apply --whitespace=nowarn - <<'{end}'\n{patch.removesuffix(chr(10))}\n{end}"
