"""Decides by swebench's own report whether an agent has repaired the repository of a row.

The tree is the image's own, fresh, with what the agent has changed in source files; the row's script puts its tests in,
runs them and prints what became of them, and swebench reads that. So what is printed decides: unlike `grader`, nothing
here finds out a repair that prints lines of its own.
"""

from __future__ import annotations

import base64
import shlex
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from textagent_gym.domains.swe.grading.grader import Grade
from textagent_gym.domains.swe.rows.scripts import Row
from textagent_gym.domains.swe.source_files import SourceChanges, source_changes
from textagent_gym.errors import InvalidOptionError, MissingDependencyError
from textagent_gym.sandbox import Changes, Limits, Sandbox, SandboxError
from textagent_gym.sandbox.base import ROOT
from textagent_gym.sandbox.layers import check_path

ENVIRONMENT = {
    "TESTBED": ROOT,
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": ROOT,
}
"""Variables of commands in the repository of a row, beside those of its image."""
_OUTPUT = 64 << 20
_SCRIPT = "/tmp/textagent-eval.sh"
_SECONDS_TO_WRITE = 120.0  # For an agent's changes and the script; thousands of files take seconds.


def grading_limits(limits: Limits) -> Limits:
    """The limits of a sandbox in which tests run: what they print must be kept whole."""
    return replace(limits, output=_OUTPUT)


def row_changes(changes: Changes, *, test_files: Iterable[str], repair: Iterable[str]) -> SourceChanges:
    """What an agent may change in the repository of a row: source files, and what the row's own repair changes.

    >>> changes = {"setup.cfg": b"", "tox.ini": b"", "a.py": b"", "t.py": b""}
    >>> sorted(row_changes(changes, test_files=["t.py"], repair=["setup.cfg"]).counted)
    ['a.py', 'setup.cfg']
    """
    tests = set(test_files)
    repaired = {path: changes[path] for path in set(repair) - tests if path in changes}
    others = {path: content for path, content in changes.items() if path not in repaired}
    counted, left_out = source_changes(others, tests)
    counted |= repaired
    odd = sorted(path for path in counted if not path.isprintable())  # Bytes may be no text at all.
    return SourceChanges(
        {path: content for path, content in counted.items() if path not in odd},
        (*left_out, *(f"{path!a} is no name that a patch could hold." for path in odd)),
    )


def grade_row(sandbox: Sandbox, row: Row, changes: Changes, *, seconds: float) -> Grade | None:
    """Run a row's tests on its repository with an agent's changes.

    Args:
        sandbox: sandbox other than the agent's, with `grading_limits`.
        row: complete row; see `scripts.completed`.
        changes: changes of the agent; `row_changes` says which of these count.
        seconds: seconds for the script.

    Returns:
        the grade; `None` where nothing of what was printed is the outcome of a test.

    Raises:
        SandboxError: the sandbox has failed.
    """
    if not changes:
        return Grade(missing=row.fail_to_pass)
    script = str(as_test_spec(row).eval_script)
    sandbox.begin((), ENVIRONMENT, image=row.image)
    written = sandbox.run(f"{placing(changes)}\n{_writing(_SCRIPT, script.encode())}", _SECONDS_TO_WRITE)
    if written.status != 0:
        raise SandboxError(f"what the agent has changed cannot be written in {row.image}: {written.output[-500:]}")
    result = sandbox.run(f"cd {ROOT}; bash {_SCRIPT} 2>&1", seconds)
    if result.timed_out:
        return Grade(missing=row.fail_to_pass, timed_out=True)
    return read_log(row, result.output)


def placing(changes: Changes) -> str:
    """A command that puts files into a repository, whatever has been there: folders, or links that lead elsewhere.

    A file that has been there keeps its mode.
    """
    commands = [f"cd {ROOT}"]
    for name, content in sorted(changes.items(), key=lambda item: (item[1] is not None, item[0])):  # First what goes.
        folders = [shlex.quote(f"./{folder}") for folder in check_path(name)]
        path = shlex.quote(f"./{name}")
        if content is None:
            commands.append(f"rm -rf {path}")
            continue
        commands += [f"if [ -L {folder} ] || [ -f {folder} ]; then rm -f {folder}; fi" for folder in folders]
        commands += [f"mkdir -p {folder}" for folder in folders[-1:]]
        commands += [f"if [ -L {path} ] || [ -d {path} ]; then rm -rf {path}; fi", _writing(path, content)]
    return " &&\n".join(commands) + " ||\nexit 1"


def _writing(path: str, content: bytes) -> str:
    """A command that writes a file; the path has been quoted."""
    return f"base64 -d >{path} <<<{shlex.quote(base64.b64encode(content).decode())}"


def as_test_spec(row: Row) -> Any:
    """The row as swebench's `TestSpec`.

    Raises:
        MissingDependencyError: swebench is not installed.
    """
    try:
        from swebench.harness.utils import make_test_spec
    except ImportError as error:
        raise MissingDependencyError("swebench", "swebench") from error
    return make_test_spec(row.to_dict())


def read_log(row: Row, log: str) -> Grade | None:
    """What a row's script has printed, read by swebench; `None` where it is the outcome of no test.

    Raises:
        InvalidOptionError: there is no such parser.
    """
    spec = as_test_spec(row)
    from swebench.harness.grading import get_eval_report
    from swebench.harness.log_parsers import PARSER_REGISTRY

    if row.log_parser not in PARSER_REGISTRY:
        raise InvalidOptionError(f"{row.where}: swebench has no log_parser {row.log_parser!r}")
    prediction = {"instance_id": row.instance_id, "model_name_or_path": "agent", "model_patch": "applied"}
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", errors="replace", suffix=".txt") as file:
        file.write(log)
        file.flush()
        report = get_eval_report(spec, prediction, file.name, include_tests_status=True)[row.instance_id]
    if not report["patch_successfully_applied"]:
        return None
    status = report["tests_status"]
    return Grade(
        repaired=tuple(status["FAIL_TO_PASS"]["success"]),
        missing=tuple(status["FAIL_TO_PASS"]["failure"]),
        broken=tuple(status["PASS_TO_PASS"]["failure"]),
    )
