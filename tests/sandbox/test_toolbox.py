"""What a world asks for is in a sandbox beside the tree, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sandbox.conftest import UNSAFE
from textagent_gym.errors import MissingDependencyError
from textagent_gym.sandbox import Sandbox, SandboxError, Toolbox, make_sandbox
from textagent_gym.sandbox.base import ROOT

IMPORT = 'for name in pytest iniconfig numpy; do python -c "import $name" 2>/dev/null && echo $name; done'


@pytest.fixture(params=["auto", *UNSAFE])
def opened(request: pytest.FixtureRequest) -> Iterator[list[Sandbox]]:
    """A sandbox without a toolbox, and one with a package and variables."""
    boxes = []
    toolbox = Toolbox(packages=("iniconfig",), variables={"PLACE": f"{ROOT}/x", "X": "theirs"})
    try:
        for given in (None, toolbox):
            boxes.append(make_sandbox(request.param, toolbox=given))
    except SandboxError as error:
        pytest.skip(str(error))
    yield boxes
    for box in boxes:
        box.close()


def test_a_toolbox_is_there_and_nothing_else_is(opened: list[Sandbox]) -> None:
    if opened[0].name in UNSAFE:
        pytest.skip("commands find what is installed on this machine")
    outputs = []
    for box in opened:
        box.begin((), {})
        outputs.append(box.run(IMPORT, 20).output)
    assert outputs == ["", "iniconfig\n"]


def test_variables_of_a_toolbox_are_set_and_name_the_tree(opened: list[Sandbox]) -> None:
    outputs = []
    for box in opened:
        box.begin((), {"Y": "mine"})
        outputs.append(box.run('echo $X $Y; test "$PLACE" = "$PWD/x" && echo there', 20).output)
    assert outputs == ["mine\n", "theirs mine\nthere\n"]


def test_variables_of_the_caller_win(opened: list[Sandbox]) -> None:
    box = opened[1]
    box.begin((), {"X": "mine"})
    assert box.run("echo $X", 20).output == "mine\n"


def test_a_package_that_is_not_installed_is_named_with_its_extra() -> None:
    with pytest.raises(MissingDependencyError, match=r"'no-such-package'.*textagent-gym\[swe\]"):
        make_sandbox("process", toolbox=Toolbox(packages=("no-such-package",), extra="swe"))
