"""Every kind of sandbox keeps the promises that others' are checked for, and the checks notice one that does not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

from textagent_gym.sandbox import BY_NAME, Limits, ReadingOrder, Result, Sandbox, TreeChanges
from textagent_gym.sandbox.conformity import (
    PROMISES,
    SAFE_PROMISES,
    BrokenPromiseError,
    Promise,
    a_command_that_takes_too_long_is_ended,
    a_program_without_an_answer_is_started_afresh,
    a_reset_leaves_nothing,
    a_shell_that_ends_is_replaced,
    changes_are_those_of_the_tree,
    check_sandbox,
    each_question_is_about_a_fresh_tree,
    layers_are_one_tree_and_stay_as_they_are,
    long_output_is_cut_in_the_middle,
    methods_return_what_the_contract_says,
    new_files_are_read_in_the_order_asked_for,
    nothing_runs_while_a_tree_is_read,
    the_shell_stays_the_same,
    variables_of_this_machine_are_not_seen,
)
from textagent_gym.sandbox.process import ProcessSandbox
from textagent_gym.sandbox.registry import _kinds, register_sandbox


def name_of(promise: Promise) -> str:
    return promise.__name__


@pytest.mark.parametrize("promise", PROMISES, ids=name_of)
def test_a_sandbox_keeps_its_promises(sandbox: Sandbox, promise: Promise, tmp_path: Path) -> None:
    promise(sandbox, tmp_path)


@pytest.mark.parametrize("promise", SAFE_PROMISES, ids=name_of)
def test_a_safe_sandbox_keeps_an_agent_in(safe_sandbox: Sandbox, promise: Promise, tmp_path: Path) -> None:
    promise(safe_sandbox, tmp_path)


@pytest.fixture
def open_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Sandbox]]:
    boxes = []

    def one(kind: type[ProcessSandbox]) -> Sandbox:
        boxes.append(kind(Limits(memory=256, disk=64)))
        return boxes[-1]

    yield one
    for box in boxes:
        box.close()


@pytest.mark.parametrize(
    "promise", [promise for promise in SAFE_PROMISES if promise is not nothing_runs_while_a_tree_is_read], ids=name_of
)
def test_what_keeps_nothing_in_is_noticed(open_process: Any, promise: Promise, tmp_path: Path) -> None:
    with pytest.raises(BrokenPromiseError):
        promise(open_process(ProcessSandbox), tmp_path)


class Mute(ProcessSandbox):
    """Returns nothing."""

    def run(self, command: str, timeout: float) -> Any:
        super().run(command, timeout)


class Forgetful(ProcessSandbox):
    """Has a new shell for each command."""

    def run(self, command: str, timeout: float) -> Result:
        self._end_shell()
        return super().run(command, timeout)


class Clinging(ProcessSandbox):
    """Keeps its tree when another one begins."""

    def begin(self, layers: Any, environment: Any, *, image: str = "") -> None:
        if not self._noted:
            super().begin(layers, environment, image=image)


class Writing(ProcessSandbox):
    """Works in the first layer itself."""

    def begin(self, layers: Any, environment: Any, *, image: str = "") -> None:
        super().begin(layers, environment, image=image)
        self._layer = layers[0]

    def run(self, command: str, timeout: float) -> Result:
        result = super().run(command, timeout)
        (self._layer / "new").write_text("")
        return result


class Additive(ProcessSandbox):
    """Does not tell what is gone."""

    def changes(self, skip: Collection[str] = (), order: ReadingOrder = BY_NAME) -> TreeChanges:
        read = super().changes(skip, order)
        return TreeChanges({name: content for name, content in read.files.items() if content is not None})


class Alphabetical(ProcessSandbox):
    """Reads new files in the order of their names."""

    def changes(self, skip: Collection[str] = (), order: ReadingOrder = BY_NAME) -> TreeChanges:
        return super().changes(skip)


class Patient(ProcessSandbox):
    """Lets what a command has started run on."""

    def _kill_shell(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


class Silent(ProcessSandbox):
    """Says of every command that it worked."""

    def run(self, command: str, timeout: float) -> Result:
        return Result(super().run(command, timeout).output, 0)


class Talkative(ProcessSandbox):
    """Has other limits than it says."""

    def _start_shell(self) -> Any:
        shell = super()._start_shell()
        shell._keep *= 10
        return shell


class Shared(ProcessSandbox):
    """Asks about the agent's tree."""

    def ask(self, layers: Any, files: Any, **arguments: Any) -> Any:
        return super().ask([self._root], files, **arguments)


class Guessing(ProcessSandbox):
    """Has an answer to every question."""

    def ask(self, layers: Any, files: Any, **arguments: Any) -> Any:
        return (answer or b"{}" for answer in super().ask(layers, files, **arguments))


@pytest.mark.parametrize(
    ("kind", "promise"),
    [
        (Mute, methods_return_what_the_contract_says),
        (Forgetful, the_shell_stays_the_same),
        (Clinging, a_reset_leaves_nothing),
        (Writing, layers_are_one_tree_and_stay_as_they_are),
        (Additive, changes_are_those_of_the_tree),
        (Alphabetical, new_files_are_read_in_the_order_asked_for),
        (Patient, a_command_that_takes_too_long_is_ended),
        (Silent, a_shell_that_ends_is_replaced),
        (Talkative, long_output_is_cut_in_the_middle),
        (Shared, each_question_is_about_a_fresh_tree),
        (Guessing, a_program_without_an_answer_is_started_afresh),
    ],
    ids=lambda part: part.__name__,
)
def test_a_broken_promise_is_noticed(
    open_process: Any, kind: type[ProcessSandbox], promise: Promise, tmp_path: Path
) -> None:
    with pytest.raises(BrokenPromiseError):
        promise(open_process(kind), tmp_path)


def test_every_promise_has_a_sandbox_that_breaks_it() -> None:
    (table,) = [mark for mark in test_a_broken_promise_is_noticed.pytestmark if mark.name == "parametrize"]  # type: ignore[attr-defined]
    assert {promise for _, promise in table.args[1]} == set(PROMISES)


def test_a_kind_is_checked_as_what_it_is_registered_for() -> None:
    register_sandbox("careless", safe=True)(ProcessSandbox)
    try:
        with pytest.raises(BrokenPromiseError, match="files of this machine cannot be read"):
            check_sandbox("careless")
    finally:
        del _kinds["careless"]


def test_a_safe_promise_leaves_the_environment_as_it_was(open_process: Any, tmp_path: Path) -> None:
    import os

    before = dict(os.environ)
    with pytest.raises(BrokenPromiseError):
        variables_of_this_machine_are_not_seen(open_process(ProcessSandbox), tmp_path)
    assert dict(os.environ) == before


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("run", "run must return a Result, got None"),
        ("changes", "changes must return TreeChanges, got None"),
        ("ask", "ask must return an iterator, got None"),
    ],
)
def test_a_method_that_is_not_written_yet_is_named(method: str, said: str) -> None:
    unwritten = {method: lambda *_, **__: None}
    register_sandbox("unwritten")(type("Unwritten", (ProcessSandbox,), unwritten))
    try:
        with pytest.raises(BrokenPromiseError, match=said):
            check_sandbox("unwritten")
    finally:
        del _kinds["unwritten"]
