"""Makes complete what older rows lack: swebench 5 wants image, script, parser and kind of tests in each of them."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, replace
from typing import Any

from textagent_gym.domains.swe.rows.patches import read_patch
from textagent_gym.errors import InvalidOptionError, MissingDependencyError
from textagent_gym.sandbox.base import ROOT

_PYTEST = "python -m pytest -rA"
# What harnesses up to 4.x ran for repositories that do not run with plain pytest.
_COMMANDS = {
    "astropy/astropy": "pytest -rA -vv -o console_output_style=classic --tb=no",
    "django/django": "./tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1",
    "mwaskom/seaborn": "pytest --no-header -rA",
    "sphinx-doc/sphinx": "tox --current-env -epy39 -v --",
    "sympy/sympy": "PYTHONWARNINGS='ignore::UserWarning,ignore::SyntaxWarning' bin/test -C --verbose",
}
_NO_TESTS = (".json", ".png", ".csv", ".txt", ".md", ".jpg", ".jpeg", ".pkl", ".yml", ".yaml", ".toml")
_END = "END_OF_PATCH"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """An instance of a data set; what is "" has not been said.

    Attributes:
        instance_id: id of the instance.
        repo, base_commit, version: repository, commit and version that it comes from.
        problem_statement: description of what is wrong.
        patch: the repair.
        test_patch: patch that puts the tests in.
        fail_to_pass, pass_to_pass: ids of tests.
        image: image that holds the repository.
        eval_script: script that runs the tests.
        log_parser: name of swebench's parser of what the script prints.
        eval_type: "pass_and_fail", or "fail_only" where only failures are printed.
        test_command: command to make a script of where there is no script; the test files are appended.
        where: file and line of the row, for errors.
    """

    instance_id: str
    repo: str
    base_commit: str
    version: str
    problem_statement: str
    patch: str
    test_patch: str
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    image: str = ""
    eval_script: str = ""
    log_parser: str = ""
    eval_type: str = ""
    test_command: str = ""
    where: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The row as swebench's data sets have it."""
        return {
            "instance_id": self.instance_id,
            "repo": self.repo,
            "base_commit": self.base_commit,
            "version": self.version,
            "problem_statement": self.problem_statement,
            "hints_text": "",
            "created_at": "",
            "patch": self.patch,
            "test_patch": self.test_patch,
            "FAIL_TO_PASS": json.dumps(self.fail_to_pass),
            "PASS_TO_PASS": json.dumps(self.pass_to_pass),
            "image": self.image,
            "eval_script": self.eval_script,
            "log_parser": self.log_parser,
            "eval_type": self.eval_type,
        }


def completed(row: Row, images: str) -> Row:
    """The row with everything that swebench 5 wants.

    Args:
        row: row as the data set has it.
        images: scheme of the images' names where the row names no image: "swe-gym" or "swe-bench".

    Raises:
        InvalidOptionError: it has no script, and none can be made.
        MissingDependencyError: swebench is not installed.
    """
    return replace(
        row,
        image=row.image or image_name(row.instance_id, images),
        eval_script=row.eval_script or eval_script(row),
        log_parser=row.log_parser or log_parser(row.repo),
        eval_type=row.eval_type or eval_type(row.repo),
    )


def image_name(instance_id: str, images: str) -> str:
    """The image that a data set's makers have published.

    >>> image_name("getmoto__moto-5406", "swe-gym")
    'xingyaoww/sweb.eval.x86_64.getmoto_s_moto-5406:latest'
    >>> image_name("Django__django-1", "swe-bench")
    'swebench/sweb.eval.x86_64.django_1776_django-1:latest'
    """
    owner, separator = {"swe-gym": ("xingyaoww", "_s_"), "swe-bench": ("swebench", "_1776_")}[images]
    return f"{owner}/sweb.eval.x86_64.{instance_id.replace('__', separator)}:latest".lower()


def log_parser(repo: str) -> str:
    """Name of swebench's parser for a repository: its own, or else the one for pytest that keeps ids whole."""
    try:
        from swebench.harness.log_parsers.python import MAP_REPO_TO_PARSER_PY
    except ImportError as error:
        raise MissingDependencyError("swebench", "swebench") from error
    known = MAP_REPO_TO_PARSER_PY.get(repo)
    return "parse_log_pytest_v2" if known is None else str(known.__name__)


def eval_type(repo: str) -> str:
    """Whether passed tests are printed, or failures only."""
    try:
        from swebench.harness.constants import FAIL_ONLY_REPOS
    except ImportError as error:
        raise MissingDependencyError("swebench", "swebench") from error
    return "fail_only" if repo in FAIL_ONLY_REPOS else "pass_and_fail"


def eval_script(row: Row) -> str:
    """A script that puts a row's tests in, runs them, and takes them out again, as harnesses up to 4.x made it.

    Raises:
        InvalidOptionError: nobody knows how to run its tests.
    """
    commands = [
        f"cd {ROOT}",
        "if [ -f /opt/miniconda3/bin/activate ]; then source /opt/miniconda3/bin/activate; conda activate testbed; fi",
        f"git config --global --add safe.directory {ROOT}",
    ]
    if row.repo == "django/django":
        commands += ["export LANG=en_US.UTF-8 LANGUAGE=en_US:en LC_ALL=en_US.UTF-8 PYTHONIOENCODING=utf8"]
    return script(commands, command_for(row), row.test_patch, row.base_commit)


def script(commands: list[str], tests: str, test_patch: str, base_commit: str) -> str:
    """A script around a command that runs tests, which prints what swebench looks for.

    Args:
        commands: commands that come first.
        tests: the command that runs the tests.
        test_patch: patch that puts the tests in.
        base_commit: commit of the repository that the agent got.
    """
    end = _END
    while end in test_patch:
        end += "_"
    reset = _reset(test_patch, base_commit)
    lines = ["#!/bin/bash", "set -uxo pipefail", *commands, *reset]
    lines += [f"git apply --verbose --whitespace=nowarn - <<'{end}'", test_patch.removesuffix("\n"), end]
    lines += [": '>>>>> Start Test Output'", tests, ": '>>>>> End Test Output'", *reset]
    return "\n".join(lines) + "\n"


def _reset(test_patch: str, base_commit: str) -> list[str]:
    """Commands that make the test files what they were."""
    files = read_patch(test_patch)
    before = sorted({file.old for file in files if file.old is not None})
    new = sorted({file.new for file in files if file.new is not None} - set(before))
    commands = [f"git checkout {base_commit} -- {shlex.join(before)}"] if before else []
    return commands + ([f"rm -f -- {shlex.join(new)}"] if new else [])


def command_for(row: Row) -> str:
    """What runs the tests that a row's patch touches.

    Raises:
        InvalidOptionError: it touches none that could be run.
    """
    if row.repo == "python/mypy" and not row.test_command:
        cases = dict.fromkeys(re.findall(r"\[case ([^\]]+)\]", row.test_patch))
        if cases:
            return f"{_PYTEST} -k {shlex.quote(' or '.join(cases))}"
    files = [file.new for file in read_patch(row.test_patch) if file.new and not file.new.endswith(_NO_TESTS)]
    if not files:
        raise InvalidOptionError(f"{row.where}: test_patch holds no tests, and there is no eval_script")
    if row.repo == "django/django" and not row.test_command:  # Its runner wants names of modules.
        files = [file.removesuffix(".py").removeprefix("tests/").replace("/", ".") for file in files]
    command = row.test_command or _COMMANDS.get(row.repo, _PYTEST)
    return f"{command} {shlex.join(dict.fromkeys(files))}"
