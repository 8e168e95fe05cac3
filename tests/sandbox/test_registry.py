"""Kinds of sandboxes by name, the suite's own and somebody else's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import gymnasium
import pytest

from textagent_gym.errors import InvalidOptionError, MissingDependencyError
from textagent_gym.evaluation.untrusted import spec_from_file
from textagent_gym.sandbox import (
    Limits,
    Sandbox,
    SandboxError,
    Toolbox,
    keeps_nothing_in,
    make_sandbox,
    register_sandbox,
    registry,
    sandbox_kind,
    sandbox_kinds,
    sandbox_names,
)
from textagent_gym.sandbox.process import ProcessSandbox

ROOT = Path(__file__).parents[2]


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch) -> dict[str, registry.SandboxKind]:
    """The registry, which is afterwards what it was before."""
    copy = dict(registry._kinds)
    monkeypatch.setattr(registry, "_kinds", copy)
    return copy


class Plain(ProcessSandbox):
    """Another name for no sandbox at all."""

    name = "plain"


@pytest.mark.parametrize("as_function", [False, True])
def test_a_class_or_a_function_registers_itself_in_one_line(as_function: bool, kinds: object) -> None:
    if as_function:

        @register_sandbox("plain")
        def make(limits: Limits, toolbox: Toolbox) -> Sandbox:
            return Plain(limits, toolbox)
    else:
        assert register_sandbox("plain")(Plain) is Plain
    box = make_sandbox("plain", Limits(memory=300), Toolbox(variables={"X": "5"}))
    try:
        box.begin((), {})
        assert (type(box), box.limits.memory, box.run("echo $X", 10).output) == (Plain, 300, "5\n")
    finally:
        box.close()


@pytest.mark.parametrize("name", ["bubblewrap", "auto", "", "ray:mine"])
def test_names_that_cannot_be_taken(name: str, kinds: dict[str, registry.SandboxKind]) -> None:
    before = dict(kinds)
    with pytest.raises(InvalidOptionError):
        register_sandbox(name, safe=True)(Plain)
    assert kinds == before


def test_auto_passes_over_what_is_not_safe_and_what_is_not_here(
    kinds: dict[str, registry.SandboxKind], caplog: pytest.LogCaptureFixture
) -> None:
    kinds.clear()
    register_sandbox("loose")(Plain)

    @register_sandbox("absent", safe=True)
    def absent(limits: Limits, toolbox: Toolbox) -> Sandbox:
        raise SandboxError("there is no such engine")

    with pytest.raises(SandboxError, match=r"absent: there is no such engine"):
        make_sandbox("auto")
    register_sandbox("tight", safe=True)(Plain)
    box = make_sandbox("auto")
    box.close()
    assert "sandbox='auto' is 'tight' here (absent: there is no such engine)" in caplog.text
    with pytest.raises(SandboxError, match="no sandbox here"):
        make_sandbox("auto", images=True)


def test_a_kind_that_is_not_safe_is_warned_of_once(
    kinds: dict[str, registry.SandboxKind], caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("open", "open", "wide-open"):
        if name not in kinds:
            register_sandbox(name)(Plain)
        make_sandbox(name).close()
    assert caplog.text.count("sandbox='open' keeps nothing in") == 1
    assert caplog.text.count("sandbox='wide-open' keeps nothing in") == 1


def test_one_in_another_is_as_safe_as_the_inner_one() -> None:
    safety = {name: sandbox_kind(name).safe for name in ("ray", "ray:auto", "ray:docker", "ray:process", "process")}
    assert safety == {"ray": True, "ray:auto": True, "ray:docker": True, "ray:process": False, "process": False}
    assert [keeps_nothing_in(name) for name in ("process", "ray:process", "ray:docker", "auto", "no-such")] == [
        *(True, True, False, False, False)
    ]
    for name in ("docker:ray", "ray:prison", "bubblewrap:bubblewrap"):
        with pytest.raises(InvalidOptionError, match="does not exist"):
            sandbox_kind(name)


def test_an_unknown_name_lists_what_there_is_and_what_is_to_be_installed(
    kinds: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "docker", None)

    def needs() -> None:
        raise MissingDependencyError("jailer", "jail")

    register_sandbox("jail", needs=needs)(Plain)
    with pytest.raises(InvalidOptionError) as caught:
        make_sandbox("prison")
    text = str(caught.value)
    assert "choose of auto, bubblewrap, " in text
    assert 'docker (pip install "textagent-gym[docker]")' in text
    assert 'jail (pip install "textagent-gym[jail]")' in text
    assert "process," in text


@pytest.mark.parametrize("name", ["prison", "ray:prison", "docker:ray"])
def test_an_environment_refuses_an_unknown_name_when_it_is_made(name: str) -> None:
    with pytest.raises(InvalidOptionError, match="does not exist; choose of auto, bubblewrap"):
        gymnasium.make("textagent/SWE-v0", sandbox=name)


@pytest.mark.parametrize("name", ["process", "ray:process", "loose"])
def test_a_file_of_somebody_else_cannot_ask_for_what_keeps_nothing_in(name: str, kinds: object) -> None:
    register_sandbox("loose")(Plain)
    from gymnasium.envs.registration import registry as environments

    from textagent_gym.registration import register_all

    register_all()
    spec = {**json.loads(environments["textagent/SWE-v0"].to_json()), "kwargs": {"sandbox": name}}
    with pytest.raises(InvalidOptionError, match="keeps nothing in"):
        spec_from_file(spec)


# Somebody else's package.

JAIL = """
from textagent_gym.sandbox import register_sandbox
from textagent_gym.sandbox.process import ProcessSandbox

@register_sandbox("jail")
class JailSandbox(ProcessSandbox):
    name = "jail"
"""

INSTALLED = {
    "jailed.py": JAIL,
    "broken_jail.py": "raise RuntimeError('no jailer')",
    "empty_jail.py": "",
    "jailed-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: jailed\nVersion: 1.0\n",
    "jailed-1.0.dist-info/entry_points.txt": (
        "[textagent_gym.sandboxes]\njail = jailed\nbroken = broken_jail\nempty = empty_jail\nbubblewrap = broken_jail\n"
    ),
}


@pytest.fixture
def run(tmp_path: Path) -> Callable[[str], str]:
    """Runs a program where a package with sandboxes is installed; returns what it prints."""
    for name, text in INSTALLED.items():
        (tmp_path / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / name).write_text(text)

    def one(program: str) -> str:
        environment = {**os.environ, "PYTHONPATH": f"{tmp_path / 'site'}:{ROOT}"}
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            cwd=tmp_path,
            timeout=500,  # A task may have to be built first.
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    return one


PLAY = """
import sys
import gymnasium, textagent_gym
env = gymnasium.make("textagent/SWE-v0", sandbox="jail")
assert "jailed" in sys.modules
env.reset(options={"task": "SWE/measures-own/fe3002c196"})
reward = 0.0
for action in env.unwrapped.oracle():
    _, reward, *_ = env.step(action)
print(reward, type(env.unwrapped.sandbox).__module__)
env.close()
"""


@pytest.mark.slow
def test_a_sandbox_of_another_package_plays(run: Callable[[str], str]) -> None:
    assert "1.0 jailed" in run(PLAY)


def test_a_sandbox_of_another_package_is_checked(run: Callable[[str], str]) -> None:
    program = "from textagent_gym.sandbox.conformity import check_sandbox; check_sandbox('jail'); print('kept')"
    assert "kept" in run(program)


@pytest.mark.slow
def test_a_sandbox_of_another_package_is_evaluated_from_the_command_line(run: Callable[[str], str]) -> None:
    program = (
        "from textagent_gym.cli import main\n"
        "main(['eval', 'SWE', '--set', 'sandbox=jail', '--agent', 'oracle', '--tasks', '1', '--out', 'results'])\n"
    )
    output = run(program)
    assert "1/1" in output
    assert "sandbox='jail' keeps nothing in" in output


NAMES = """
import sys
import textagent_gym.sandbox as sandbox
print(sandbox.sandbox_names())
assert not {"jailed", "broken_jail", "empty_jail"} & set(sys.modules)
for name in ("broken", "empty", "prison"):
    try:
        sandbox.make_sandbox(name)
    except Exception as error:
        print(type(error).__name__, error)
print(sandbox.sandbox_kind("bubblewrap").make.__module__)
print([kind.name for kind in sandbox.sandbox_kinds()])
"""


def test_packages_are_imported_when_they_are_asked_for_and_harm_nothing_else(run: Callable[[str], str]) -> None:
    lines = run(NAMES).splitlines()
    assert lines[0].startswith("('bubblewrap', ")
    assert lines[0].endswith("'broken', 'empty', 'jail')")
    assert lines[1] == "SandboxError sandbox='broken': broken_jail cannot be imported: RuntimeError('no jailer')"
    assert lines[2] == "SandboxError sandbox='empty': empty_jail registers no sandbox of this name"
    assert lines[3].startswith("InvalidOptionError")
    assert "broken, empty, jail" in lines[3]
    assert lines[4] == "textagent_gym.sandbox.bubblewrap.sandbox"
    assert eval(lines[5])[-1] == "jail"


def test_own_kinds_come_first() -> None:
    assert sandbox_names()[0] == "bubblewrap"
    assert {kind.name for kind in sandbox_kinds()} >= {"bubblewrap", "docker", "podman", "ray", "process"}
