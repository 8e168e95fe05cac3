"""Sandboxes and trees that are attacked."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.sandbox.conftest import SAFE, UNSAFE, opened
from tests.sandbox.test_sandbox import ECHO

SKIP = (".git", "__pycache__")
REPAIR = "echo 'right = 2' > pkg/a.py; "
"""Comes first in each attack."""


sandbox = pytest.fixture(opened, scope="module", params=[*UNSAFE, *SAFE], name="sandbox")
"""Each kind of sandbox on this machine; what a cluster has is one of them."""
safe_sandbox = pytest.fixture(opened, scope="module", params=SAFE, name="safe_sandbox")
"""Each kind that keeps an agent in."""


@pytest.fixture
def tree(tmp_path: Path) -> list[Path]:
    """A package in one layer, with a mistake over it in another."""
    files = {
        "secret-of-the-task/pkg/a.py": "wrong = 1\n",
        "bottom/pkg/__init__.py": "",
        "bottom/pkg/a.py": "right = 1\n",
        "bottom/pkg/deep/b.py": "b = 1\n",
        "bottom/setup.cfg": "[x]\n",
        "bottom/.git/HEAD": "ref\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return [tmp_path / "secret-of-the-task", tmp_path / "bottom"]


@pytest.fixture
def echo(tmp_path: Path) -> Path:
    (tmp_path / "echo.py").write_text(ECHO)
    return tmp_path / "echo.py"


def python(code: str) -> str:
    """A command that runs Python."""
    return f"python - <<'END'\n{textwrap.dedent(code)}\nEND"
