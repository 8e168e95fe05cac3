"""The Python in the documentation runs, and its links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("textworld", reason='needs: pip install "textagent-gym[textworld]"')

ROOT = Path(__file__).parents[1]
PAGES = (*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md")
BLOCKS = [
    pytest.param(block, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S))
    if "--8<--" not in block
]


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_runs_as_a_script(block: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    # The sample world and method, which a reader has installed; everything else stands as it is on the page.
    third_party = [str(ROOT / "tests" / "third_party" / name) for name in ("lights", "method")]
    lights = (
        f"import sys; sys.path[:0] = {third_party!r}\n"
        "import gymnasium, lights\n"
        "if 'lights/Lights-v0' not in gymnasium.registry: lights.register()\n"
    )
    script.write_text(lights + block, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=300, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr


def anchors(page: Path) -> set[str]:
    """Names by which a page's headings can be linked."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^a-z0-9 _-]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        if "://" in link or not path:
            continue
        target = (page.parent / path).resolve()
        assert target.is_file(), f"{link} leads nowhere"
        assert not anchor or anchor in anchors(target), f"{link}: {path} has no such heading"
