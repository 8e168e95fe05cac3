"""Software engineering as a Gymnasium environment."""

from __future__ import annotations

import contextlib
import logging
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Generic, Unpack

from gymnasium.error import ResetNeeded

from textagent_gym.calls import ActionError, Call, Tool
from textagent_gym.core import Outcome, TextEnv
from textagent_gym.domains.swe.grading.grader import Grade
from textagent_gym.domains.swe.grading.hidden.judge import MOST_GRADINGS
from textagent_gym.domains.swe.options import SWEKwargs, SWEOptions
from textagent_gym.domains.swe.replacements import lines_of
from textagent_gym.domains.swe.source_files import PRODUCT_FOLDERS, READING_ORDER, SourceChanges
from textagent_gym.domains.swe.tasks import Hunk, RepairTasks, RepairWorldT
from textagent_gym.domains.swe.toolbox import TOOLBOX
from textagent_gym.domains.swe.tools import (
    TOOLS,
    WINDOW,
    ActionFormat,
    command,
    instructions,
    parse,
    render,
    repair_script,
)
from textagent_gym.knobs import accepts, arguments_of, check_names
from textagent_gym.options import TextEnvKwargs
from textagent_gym.sandbox import Changes, Limits, Result, Sandbox, SandboxError, make_sandbox
from textagent_gym.tasks import Task
from textagent_gym.terminal import visible
from textagent_gym.texts import cut_middle

_log = logging.getLogger("textagent_gym.swe")
_LONGEST_ACTION = 200_000  # Characters of an action: whole files fit, floods do not.
_MOST_FAILED_GRADINGS = 3  # In an episode: each of them may take minutes.
_MOST_SENTENCES = 10  # Lines about what does not count; a folder of build products would fill the observation.
_HARMLESS: Changes = {"a-file-that-nobody-reads.txt": b""}
_SANDBOX_FAILURES = (SandboxError, OSError, RecursionError)


class SWEEnv(TextEnv[Task], Generic[RepairWorldT]):
    """# SWE

    ## Description
    A repository with mistakes in it, a shell in a sandbox, and hidden tests that decide. What the agent does is graded
    in a tree that it has never touched: the task's own, its hidden tests, and the agent's changes to source files.

    ## Actions
    Any string; `action_format` and `tools` say how it is read.

    | `action_format` | an action is |
    | --- | --- |
    | "bash" | one command in a ```` ```bash ```` block; `submit` ends the episode |
    | "functions" | a JSON object `{"name": ..., "arguments": {...}}`, or an OpenAI tool call |
    | "editor" | `open`, `edit FIRST:LAST`, `search_dir` and the like, as in SWE-agent (arXiv 2405.15793) |

    ## Observations
    At reset, what is wrong; then what the command printed, cut in the middle where it is long, with
    control characters shown instead of sent. What has been submitted and does not count is named, and why.

    ## Rewards
    Milestones: the hidden tests that failed and pass now. They count only while no test that passed before is broken,
    and an unchanged repository is worth nothing. Sparse reward is 1 if all of them pass. With `reward_at="turn"` the
    episode is lost with the first report of the tests that somebody has forged, and the third that does not come in
    time.

    Args:
        tasks: source of the tasks.
        options: knobs of `textagent_gym.domains.swe.options.SWEOptions`, and the arguments of `TextEnv`; the turn
            budget is 50 unless set.

    Raises:
        InvalidOptionError: an argument has a value that does not exist.
    """

    default_max_turns: ClassVar[int | str] = 50

    @accepts(SWEOptions)
    def __init__(self, tasks: RepairTasks[RepairWorldT], **options: Unpack[SWEKwargs]) -> None:
        check_names("SWE", options, SWEOptions)
        super().__init__(tasks, **arguments_of(TextEnvKwargs, options))
        working = SWEOptions.of(options)
        self._tools = TOOLS[working.tools]
        self.action_format: ActionFormat = working.action_format or (
            "bash" if working.tools == "shell" else "functions"
        )
        self.reward_at = working.reward_at
        self.command_timeout = working.command_timeout
        self.max_observation = working.max_observation
        self.sandbox_name = working.sandbox
        self.limits = working.limits or Limits()
        self.last_grade: Grade | None = None
        self._source = tasks
        self._world: RepairWorldT | None = None
        self._sandbox: Sandbox | None = None
        self._graded: Changes = {}
        self._left_out: tuple[str, ...] = ()
        self._gradings = 0
        self._failed_gradings = 0
        self._open = ("", 1)  # The file that the editor shows, and the line it begins at.

    # What a kind of tasks writes; its `_oracle` too.

    @abstractmethod
    def _enter(self, world: RepairWorldT) -> None:
        """Put the tree of the beginning into the sandbox."""

    @abstractmethod
    def _counted(self, changes: Changes) -> SourceChanges:
        """What counts of an agent's changes, and why the others do not."""

    @abstractmethod
    def _run_tests(self, changes: Changes) -> Grade:
        """Grade what the agent has made of source files."""

    # What all of them share.

    @property
    def instructions(self) -> str:
        """See `TextEnv`."""
        return instructions(self._tools, self.action_format)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """See `TextEnv`."""
        return self._tools

    def has_tool(self, name: str) -> bool:
        """Whether an action may call a tool."""
        return any(tool.name == name for tool in self._tools)

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox, made when it is first needed."""
        if self._sandbox is None:
            self._sandbox = self._make_sandbox(self.limits)
        return self._sandbox

    def _make_sandbox(self, limits: Limits) -> Sandbox:
        return make_sandbox(self.sandbox_name, limits, TOOLBOX)

    @property
    def world(self) -> RepairWorldT:
        """The repository of the current task.

        Raises:
            ResetNeeded: no episode has begun.
        """
        if self._world is None:
            raise ResetNeeded("there is no repository yet; call reset() first")
        return self._world

    def _begin(self, task: Task) -> str:
        self._world = self._source.world(task)
        try:
            self._enter(self._world)
        except (OSError, RecursionError) as error:
            raise SandboxError(str(error)) from error
        self.last_grade = None
        self._graded = {}
        self._left_out = ()
        self._gradings = 0
        self._failed_gradings = 0
        self._open = ("", 1)
        return visible(self._world.problem)

    def _act(self, action: str) -> Outcome:
        try:
            if len(action) > _LONGEST_ACTION:
                raise ActionError(f"The action has {len(action)} characters; {_LONGEST_ACTION} are allowed.")
            call = self._placed(parse(action, self._tools, self.action_format))
        except ActionError as error:
            return Outcome(
                cut_middle(visible(str(error)), self.max_observation, count_lines=True), self._credit(), valid=False
            )
        if call.tool == "submit":
            return self._submitted()
        text = command(call).encode(errors="replace").decode()  # Half of a surrogate pair is no text.
        result = self._run_or_begin_again(text)
        observation = cut_middle(visible(result.output), self.max_observation, count_lines=True)
        if result.timed_out:
            observation += f"\n[The command was ended after {self.command_timeout:g} seconds, and the shell with it.]"
        elif result.status is None:
            observation += "\n[The shell has ended; the next command gets a new one.]"
        elif result.status:
            observation += f"\n[exit status {result.status}]"
        observation = observation.strip("\n") or "[no output]"
        valid = call.tool == "shell" or result.status == 0
        if self.reward_at == "submit":
            return Outcome(observation, valid=valid)
        self._grade()
        solved = self.last_grade is not None and self.last_grade.resolved
        return Outcome(observation, self._credit(), valid=valid, success=solved, failure=self._is_lost)

    def _run_or_begin_again(self, text: str) -> Result:
        """Run a command; where the sandbox fails, there is a new one afterwards, with the tree of the beginning."""
        try:
            return self._run(text)
        except _SANDBOX_FAILURES as error:
            self._renew(error)
            return Result("[The sandbox has ended, and with it all that was changed.]", None)

    def _run(self, text: str) -> Result:
        """Run a command in the agent's shell."""
        return self.sandbox.run(text, self.command_timeout)

    def _renew(self, error: Exception) -> None:
        """A new sandbox with the tree of the beginning, in the place of one that has failed.

        Raises:
            SandboxError: this machine cannot have one.
        """
        _log.warning(
            "The sandbox of %s has failed, and a new one takes its place: %s", self.task.id, visible(str(error))
        )
        with contextlib.suppress(*_SANDBOX_FAILURES):
            self._end_sandboxes()
        self._enter(self.world)

    def _placed(self, call: Call) -> Call:
        """A call of the editor with the file and lines that it means."""
        path, line = self._open
        if call.tool in ("goto", "scroll", "edit_lines") and not path:
            raise ActionError("No file is open; open one first.")
        if call.tool == "scroll":
            call = Call("open", {"path": path, "line": max(1, line + WINDOW * call.arguments["direction"])})
        elif call.tool == "goto":
            call = Call("open", {"path": path, "line": max(1, call.arguments["line"])})
        elif call.tool == "edit_lines":
            return Call("edit_lines", {"path": path, **call.arguments})
        if call.tool == "open":
            self._open = (call.arguments["path"], call.arguments["line"])
        return call

    def _submitted(self) -> Outcome:
        self._grade()
        result = self.last_grade
        if result is None:
            sentence = "Nothing that counts has been changed" if self._left_out else "Nothing has been changed"
            return Outcome(visible(f"Submitted. {sentence}.{not_counted(self._left_out)}"), failure=True)
        total = len(self.world.fail_to_pass)
        sentence = f"Submitted. {len(result.repaired)} of {total} hidden tests that failed pass now"
        if result.broken:
            sentence += f", and {len(result.broken)} that passed do not"
        if result.timed_out:
            sentence += "; the tests did not end in time"
        sentence = visible(f"{sentence}.{not_counted(self._left_out)}")
        return Outcome(sentence, result.credit, success=result.resolved, failure=not result.resolved)

    def _grade(self) -> None:
        """Grade what the agent has made of the source files, unless it is what was graded last."""
        changes, self._left_out = self._changes_or_nothing()
        if changes != self._graded:
            self._graded = changes
            self.last_grade = self._grade_or_failure(changes)
            self._gradings += 1

    def _changes_or_nothing(self) -> SourceChanges:
        """What the agent has made of source files: nothing, where that cannot be read and a fresh tree can.

        Raises:
            SandboxError: this machine cannot have a sandbox any more.
        """
        try:
            return self._source_changes()
        except _SANDBOX_FAILURES as error:
            self._renew(error)
            counted, _ = self._source_changes()
            return SourceChanges(counted, ("The sandbox has ended, and with it all that was changed.",))

    def _source_changes(self) -> SourceChanges:
        """What the agent has made of source files."""
        tree = self.sandbox.changes(PRODUCT_FOLDERS, READING_ORDER)
        counted, left_out = self._counted(tree.files)
        return SourceChanges(counted, (*tree.left_out, *left_out))

    def _grade_or_failure(self, changes: Changes) -> Grade:
        """Grade changes; worth nothing are those with which a new sandbox fails too, and without which it does not.

        Raises:
            SandboxError: this machine can grade nothing any more.
        """
        for _ in range(2):
            try:
                result = self._run_tests(changes)
                self._failed_gradings += result.timed_out
                return result
            except _SANDBOX_FAILURES as error:
                self._renew(error)
        self._run_tests(_HARMLESS)  # Raises where it is not the changes that are to blame.
        self._failed_gradings += 1
        return Grade(missing=tuple(self.world.fail_to_pass))

    @property
    def _is_lost(self) -> bool:
        """What was graded last ends the episode: who forges, keeps waiting or tries too often gets no other try."""
        return self.last_grade is not None and (
            bool(self.last_grade.forged)
            or self._failed_gradings >= _MOST_FAILED_GRADINGS
            or (self._gradings >= MOST_GRADINGS and not self.last_grade.resolved)
        )

    def _credit(self) -> int:
        return self.last_grade.credit if self.last_grade is not None else 0

    def _plan(self, calls: list[Call]) -> tuple[str, ...]:
        """A plan of these calls; it ends with the submission, unless every turn is graded."""
        if calls and calls[0].tool == "open" and calls[0].arguments["path"] == self._open[0]:
            calls = calls[1:]
        if not calls or self.reward_at == "submit":
            calls = [*calls, Call("submit")]
        return tuple(render(call, self.action_format) for call in calls)

    def _replacement(self, hunk: Hunk) -> list[Call]:
        """Put the right lines of a hunk into its file, where the wrong ones occur once."""
        if self.action_format == "bash":
            return [Call("shell", {"command": repair_script(hunk.path, hunk.wrong, hunk.right)})]
        if self.action_format == "functions":
            return [Call("replace", {"path": hunk.path, "old": hunk.wrong, "new": hunk.right})]
        first = hunk.line
        lines = {"first": first, "last": first + len(lines_of(hunk.wrong)) - 1, "text": hunk.right}
        return [Call("open", {"path": hunk.path, "line": max(1, first - 10)}), Call("edit_lines", lines)]

    def _end_sandboxes(self) -> None:
        """End what this environment has started; the next command starts it anew."""
        box, self._sandbox = self._sandbox, None
        if box is not None:
            box.close()

    def _abandon(self) -> None:
        """See `TextEnv`."""
        with contextlib.suppress(*_SANDBOX_FAILURES):
            self._end_sandboxes()

    def close(self) -> None:
        """End the sandbox, and everything in it."""
        self._end_sandboxes()
        super().close()


def not_counted(sentences: Sequence[str]) -> str:
    """Lines that say what has not been taken into account, after a line that says something else.

    >>> not_counted(["x.py is no plain file."])
    '\\nNot taken into account:\\n- x.py is no plain file.'
    """
    shown = list(sentences)
    if len(shown) > _MOST_SENTENCES:
        shown = [*shown[: _MOST_SENTENCES - 1], f"{len(shown) - _MOST_SENTENCES + 1} more."]
    return "".join(["\nNot taken into account:" if shown else "", *(f"\n- {sentence}" for sentence in shown)])
