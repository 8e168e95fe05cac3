"""What every sandbox promises, as checks that the author of one can run.

    from textagent_gym.sandbox.conformity import check_sandbox

    def test_my_sandbox_keeps_its_promises():
        check_sandbox("mine")

Each promise is a function of an open sandbox and an empty folder of this machine, for a test of its own: `PROMISES` of
every sandbox, `SAFE_PROMISES` of those that are registered as safe. Promises about this machine say little of a sandbox
that runs its commands on another one.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from textagent_gym.errors import TextAgentError
from textagent_gym.sandbox import conformity_program
from textagent_gym.sandbox.base import Limits, Question, Result, Sandbox, TreeChanges
from textagent_gym.sandbox.changes import ReadingOrder
from textagent_gym.sandbox.registry import is_safe, make_sandbox
from textagent_gym.sandbox.tree import MOST_NEW_FILES

Promise = Callable[[Sandbox, Path], None]
_SECONDS = 20.0  # Seconds for a command that takes none, on a machine that is busy.
_LIMITS = Limits(memory=256, disk=64)  # Small, so that they are reached at once.
_ARTICLES: dict[type, str] = {Result: "a Result", TreeChanges: "TreeChanges", Iterator: "an iterator"}
_PROGRAM = Path(conformity_program.__file__)


class BrokenPromiseError(TextAgentError, AssertionError):
    """A sandbox does not do what every sandbox does; the message says what, and what came instead."""


def check_sandbox(name: str) -> None:
    """Check all promises of a kind of sandbox, those of safe ones if it is registered as safe.

    Args:
        name: name of the kind.

    Raises:
        BrokenPromiseError: one of them is not kept.
        SandboxError: this machine cannot have the sandbox.
        MissingDependencyError: what the sandbox needs is not installed.
        InvalidOptionError: there is no such sandbox.
    """
    sandbox = make_sandbox(name, _LIMITS)
    try:
        for promise in (*PROMISES, *(SAFE_PROMISES if is_safe(name) else ())):
            with tempfile.TemporaryDirectory(prefix="textagent-") as folder:
                promise(sandbox, Path(folder))
        mark = f"9{uuid.uuid4().int % 10**12}"
        _expect(sandbox.run(f"sleep {mark} & true", _SECONDS).status, 0, "a process can be started in the background")
    finally:
        sandbox.close()
    _expect(_running(mark), [], "nothing runs any more when a sandbox has been closed")


def methods_return_what_the_contract_says(sandbox: Sandbox, folder: Path) -> None:
    """`run` returns a `Result`, `changes` returns `TreeChanges`, and `ask` an iterator."""
    layers = _begin(sandbox, folder)
    for method, value, kind in (
        ("run", sandbox.run("true", _SECONDS), Result),
        ("changes", sandbox.changes(), TreeChanges),
        ("ask", sandbox.ask(layers, {}, program=_PROGRAM, questions=[]), Iterator),
    ):
        if not isinstance(value, kind):
            raise BrokenPromiseError(f"{method} must return {_ARTICLES[kind]}, got {value!r:.1000}")


def layers_are_one_tree_and_stay_as_they_are(sandbox: Sandbox, folder: Path) -> None:
    """The first layer hides the others, and none is written to."""
    layers = _begin(sandbox, folder)
    _expect(_output(sandbox, "cat a.txt b/c.txt"), "top\nbelow\n", "the first layer hides the others")
    _output(sandbox, "echo x > a.txt; rm -r b; echo x > d.txt; echo x > new; chmod 700 d.txt")
    texts = {path: path.read_text(encoding="utf-8") for layer in layers for path in layer.rglob("*") if path.is_file()}
    expected = {folder / f"{layer}/{name}": text for layer, files in _FILES.items() for name, text in files.items()}
    _expect(texts, expected, "no layer is ever written to")


def the_shell_stays_the_same(sandbox: Sandbox, folder: Path) -> None:
    """The shell keeps its folder, variables and functions; what a command prints and its status are told."""
    _begin(sandbox, folder, GREETING="hello")
    _output(sandbox, "cd b; X=5; f() { echo f$X; }")
    _expect(_output(sandbox, "cat c.txt; f; echo $GREETING"), "below\nf5\nhello\n", "the shell keeps its state")
    _expect(sandbox.run("false", _SECONDS).status, 1, "the status of a command is told")
    _expect(_output(sandbox, "echo out; echo error >&2"), "out\nerror\n", "both outputs come in their order")


def a_reset_leaves_nothing(sandbox: Sandbox, folder: Path) -> None:
    """`begin` gives a fresh tree and a fresh shell."""
    layers = _begin(sandbox, folder)
    _output(sandbox, "echo x > a.txt; echo x > new; X=5")
    sandbox.begin(layers, {})
    _expect(sandbox.changes().files, {}, "a fresh tree has no changes")
    _expect(_output(sandbox, "cat a.txt; ls new 2>/dev/null; echo $X"), "top\n\n", "a reset leaves nothing")


def changes_are_those_of_the_tree(sandbox: Sandbox, folder: Path) -> None:
    """New, changed and removed files are told, links are followed in the tree alone, and nothing odd is taken."""
    _begin(sandbox, folder)
    _output(
        sandbox,
        "echo changed > a.txt; rm -r b; echo new > e.txt; mkdir -p f/skip; echo g > f/g; echo h > f/skip/h; "
        "ln -s e.txt link; ln -s /etc/passwd out; mkfifo pipe; truncate -s 5M large",
    )
    changes = sandbox.changes(["skip"])
    expected = {"a.txt": b"changed\n", "b/c.txt": None, "e.txt": b"new\n", "f/g": b"g\n", "link": b"new\n"}
    _expect(changes.files, expected, "changes are those of the tree")
    _expect(len(changes.left_out), 3, f"what is left out is said ({changes.left_out})")


def new_files_are_read_in_the_order_asked_for(sandbox: Sandbox, folder: Path) -> None:
    """Where there are more new files than are read, those that are worth most are read."""
    _begin(sandbox, folder)
    count = MOST_NEW_FILES + 100
    _output(sandbox, f"mkdir b/a; for i in $(seq {count}); do echo > b/a/$i.o; done; mv b z; echo 1 > z/new.py")
    changes = sandbox.changes((), ReadingOrder(first=("*.py",), last=("*.o",))).files
    _expect({name: changes.get(name, "missing") for name in ("b/c.txt", "z/c.txt", "z/new.py")},
            {"b/c.txt": None, "z/c.txt": b"below\n", "z/new.py": b"1\n"},
            "what is worth most is read where there are too many new files")  # fmt: skip
    count = sum(text is not None for text in changes.values())
    _expect(count, MOST_NEW_FILES, "as many new files are read as there may be")


def a_command_that_takes_too_long_is_ended(sandbox: Sandbox, folder: Path) -> None:
    """It is ended with all that it has started; the files stay, and the next command gets a new shell."""
    _begin(sandbox, folder)
    mark = f"8{uuid.uuid4().int % 10**12}"
    result = sandbox.run(f"echo kept > kept; sleep {mark} & sleep {mark}", 1.0)
    _expect((result.timed_out, result.status), (True, None), "a command that takes too long is ended")
    _expect(_running(mark), [], "what it has started ends with it")
    _expect(_output(sandbox, "cat kept"), "kept\n", "files stay where a command was ended")


def a_shell_that_ends_is_replaced(sandbox: Sandbox, folder: Path) -> None:
    """A command may end the shell; the next one gets another."""
    _begin(sandbox, folder)
    for ending in ("exit 3", "exec true", "exec 1>&- 2>&-"):
        _expect(sandbox.run(ending, 2.0).status, None, f"{ending!r} ends the shell")
        _expect(_output(sandbox, "echo back"), "back\n", f"there is a new shell after {ending!r}")


def long_output_is_cut_in_the_middle(sandbox: Sandbox, folder: Path) -> None:
    """As much is kept as the limits say, half from the beginning and half from the end."""
    _begin(sandbox, folder)
    for count in (sandbox.limits.output * 5 // 4, sandbox.limits.output * 3):
        output = _output(sandbox, f"echo begin; head -c {count} /dev/zero | tr '\\0' x; echo; echo end")
        _expect((output[:6], output[-5:]), ("begin\n", "\nend\n"), "beginning and end of a long output are kept")
        _expect(len(output) <= sandbox.limits.output + 200, True, f"{len(output)} characters of a long output are cut")


def each_question_is_about_a_fresh_tree(sandbox: Sandbox, folder: Path) -> None:
    """A program sees layers and files as they are given, whatever the agent and earlier questions have changed."""
    layers = _begin(sandbox, folder)
    _output(sandbox, "echo mine > a.txt; echo mine > mine")
    files = {"d.txt": None, "x/y.txt": b"1"}
    questions = [Question(b"spoil", _SECONDS), Question(b"tree", _SECONDS, {"b/c.txt": None, "z": b"2"})]
    answers = [*sandbox.ask(layers, files, program=_PROGRAM, questions=[*questions, Question(b"tree", _SECONDS)])]
    plain = {"a.txt": "top\n", "b/c.txt": "below\n", "x/y.txt": "1"}
    other = {"a.txt": "top\n", "x/y.txt": "1", "z": "2"}
    trees = [None if answer is None else json.loads(answer) for answer in answers]
    _expect(trees, [plain, other, plain], "each question is about a fresh tree")


def a_program_without_an_answer_is_started_afresh(sandbox: Sandbox, folder: Path) -> None:
    """A program that takes too long, or says something else, has no answer; the next question has."""
    layers = _begin(sandbox, folder)
    questions = [Question(b"wait", 1.0), Question(b"lie", _SECONDS), Question(b"tree", _SECONDS)]
    answers = [*sandbox.ask(layers, {}, program=_PROGRAM, questions=questions)]
    _expect(answers[:2], [None, None], "a program that waits, or lies, has no answer")
    _expect(answers[2] is not None, True, "it is started afresh for the next question")


def files_of_this_machine_are_not_seen(sandbox: Sandbox, folder: Path) -> None:
    """No file beside the tree can be read or written, but for programs and libraries."""
    _begin(sandbox, folder)
    (folder / "secret").write_text("a secret of this machine", encoding="utf-8")
    command = f"cat {shlex.quote(str(folder / 'secret'))}; echo x > {shlex.quote(str(folder / 'written'))}"
    output = sandbox.run(command, _SECONDS).output
    _expect("a secret" in output, False, "files of this machine cannot be read")
    _expect((folder / "written").exists(), False, "nothing can be written beside the tree")


def variables_of_this_machine_are_not_seen(sandbox: Sandbox, folder: Path) -> None:
    """The environment is the one that the caller gives, in the shell and around it."""
    secret = uuid.uuid4().hex
    os.environ["TEXTAGENT_CONFORMITY"] = secret
    try:
        _begin(sandbox, folder)
        with _sleeper():  # It has the variable, too.
            output = sandbox.run(f"(env; cat /proc/[0-9]*/environ) 2>/dev/null | grep -ac {secret}", _SECONDS).output
    finally:
        del os.environ["TEXTAGENT_CONFORMITY"]
    _expect(output.strip(), "0", "variables of this machine are not seen")


def there_is_no_network(sandbox: Sandbox, folder: Path) -> None:
    """Not even a server on this machine can be reached."""
    _begin(sandbox, folder)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        for address in (("127.0.0.1", port), ("1.1.1.1", 53)):
            code = f"import socket; socket.create_connection({address!r}, 2)"
            status = sandbox.run(f"python -c {shlex.quote(code)}", _SECONDS).status
            _expect(status == 0, False, f"there is no network ({address[0]} was reached)")


def processes_of_this_machine_cannot_be_ended(sandbox: Sandbox, folder: Path) -> None:
    """Commands reach their own processes alone."""
    _begin(sandbox, folder)
    with _sleeper() as process:
        sandbox.run(f"kill -9 {process.pid}", _SECONDS)
        try:
            process.wait(0.5)
            survived = False
        except subprocess.TimeoutExpired:
            survived = True
    _expect(survived, True, "processes of this machine cannot be ended")


def commands_have_no_privileges(sandbox: Sandbox, folder: Path) -> None:
    """No capability, no way to one, and a filter of system calls for tested code."""
    _begin(sandbox, folder)
    output = _output(sandbox, "id -u; grep -E 'CapEff|NoNewPrivs' /proc/self/status | tr -d '\\t'")
    user, *privileges = output.split()
    _expect(user == "0", False, "commands are not root's")
    _expect(privileges, ["CapEff:0000000000000000", "NoNewPrivs:1"], "commands have no privileges, and get none")
    _expect(bool(sandbox.filter), True, "there is a filter of system calls")


def what_is_written_is_limited(sandbox: Sandbox, folder: Path) -> None:
    """All files together take no more room than the limits say, and the next reset gives it back."""
    layers = _begin(sandbox, folder)
    size = sandbox.limits.disk * 6 // 10
    status = sandbox.run(f"head -c {size}M /dev/zero > one && head -c {size}M /dev/zero > two", 3 * _SECONDS).status
    _expect(status == 0, False, f"no more than {sandbox.limits.disk} MiB can be written")
    sandbox.begin(layers, {})
    _expect(sandbox.run(f"head -c {size}M /dev/zero > one", 3 * _SECONDS).status, 0, "a reset gives the room back")


def nothing_runs_while_a_tree_is_read(sandbox: Sandbox, folder: Path) -> None:
    """What commands have started is ended before the tree is read."""
    _begin(sandbox, folder)
    _output(sandbox, "(for ((i = 0; ; i++)); do echo $i > count; done) 2>/dev/null & sleep 0.2")
    first = sandbox.changes().files
    second = sandbox.changes().files
    _expect(second, first, "nothing is written any more once a tree has been read")


PROMISES: tuple[Promise, ...] = (
    methods_return_what_the_contract_says,
    layers_are_one_tree_and_stay_as_they_are,
    the_shell_stays_the_same,
    a_reset_leaves_nothing,
    changes_are_those_of_the_tree,
    new_files_are_read_in_the_order_asked_for,
    a_command_that_takes_too_long_is_ended,
    a_shell_that_ends_is_replaced,
    long_output_is_cut_in_the_middle,
    each_question_is_about_a_fresh_tree,
    a_program_without_an_answer_is_started_afresh,
)
"""What every sandbox does."""

SAFE_PROMISES: tuple[Promise, ...] = (
    files_of_this_machine_are_not_seen,
    variables_of_this_machine_are_not_seen,
    there_is_no_network,
    processes_of_this_machine_cannot_be_ended,
    commands_have_no_privileges,
    what_is_written_is_limited,
    nothing_runs_while_a_tree_is_read,
)
"""What a sandbox does that keeps an agent in; they are the beginning of what it must withstand, not the end."""

_FILES = {
    "top": {"a.txt": "top\n"},
    "bottom": {"a.txt": "bottom\n", "b/c.txt": "below\n", "d.txt": "d\n"},
}
"""Texts of two layers by path; the first hides a file of the second."""


def _begin(sandbox: Sandbox, folder: Path, **environment: str) -> list[Path]:
    """Give a sandbox a tree of two layers, which are returned."""
    for layer, files in _FILES.items():
        for name, text in files.items():
            path = folder / layer / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    layers = [folder / layer for layer in _FILES]
    sandbox.begin(layers, environment)
    return layers


def _output(sandbox: Sandbox, command: str) -> str:
    """Output of a command that must not fail to be run."""
    result = sandbox.run(command, 3 * _SECONDS)
    if result.status is None:
        raise BrokenPromiseError(f"a command runs: {command!r} ended the shell, and printed {result.output!r:.500}")
    return result.output


def _expect(value: object, expected: object, promise: str) -> None:
    if value != expected:
        raise BrokenPromiseError(f"{promise}: expected {expected!r:.1000}, got {value!r:.1000}")


def _running(mark: str) -> list[str]:
    """Command lines on this machine that contain a word."""
    lines = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in lines if mark in line]


@contextmanager
def _sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process of this machine that waits."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        yield process
    finally:
        process.kill()
        process.wait()
