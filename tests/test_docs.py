"""The Python in the documentation runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("textworld", reason='needs: pip install "textagent-gym[textworld]"')

ROOT = Path(__file__).parents[1]
BLOCKS = [
    pytest.param(block, id=f"{page.stem}-{number}")
    for page in (*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md")
    for number, block in enumerate(re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S))
    if "--8<--" not in block
]


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_runs_as_a_script(block: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    # The sample world, which a reader has installed; everything else stands as it is on the page.
    lights = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'tests' / 'third_party' / 'lights')!r})\n"
        "import gymnasium, lights\n"
        "if 'lights/Lights-v0' not in gymnasium.registry: lights.register()\n"
    )
    script.write_text(lights + block, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=300, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
