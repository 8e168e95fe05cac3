"""What others install."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("wheels")
    for project in (ROOT, ROOT / "tests" / "third_party" / "lights"):
        subprocess.run(
            [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(project)],
            check=True,
            timeout=300,
        )
    return sorted(folder.glob("*.whl"))


def test_the_wheel_holds_the_packages_and_the_start_up_file(wheels: list[Path]) -> None:
    names = zipfile.ZipFile(next(w for w in wheels if "textagent" in w.name)).namelist()
    assert {"textagent_gym/py.typed", "textagent_gym_autoload.pth", "_textagent_gym_autoload.py"} <= set(names)
    assert "baselines/recipes/textworld/grpo.yaml" in names
    leaderboard = ("templates/base.html", "static/site.css", "static/site.js", "literature.json")
    assert {f"textagent_gym/leaderboard/{name}" for name in leaderboard} <= set(names)
    assert not any(name.startswith("tests/") for name in names)


@pytest.mark.slow
def test_installed_in_an_empty_environment_gymnasium_knows_the_ids(wheels: list[Path], tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    python = str(venv / "bin" / "python")
    main, world = (next(w for w in wheels if part in w.name) for part in ("textagent", "lights"))
    for package in (f"{main}[textworld]", str(world)):
        subprocess.run([python, "-m", "pip", "install", "--quiet", package], check=True, timeout=600, cwd=tmp_path)
    code = (
        "import gymnasium, sys\n"
        "assert 'torch' not in sys.modules\n"
        "print(gymnasium.make('lights/Lights-v0').reset(seed=0)[0].splitlines()[0])\n"
        "env = gymnasium.make('textagent/TextWorld-v0', rooms=1, objects=2, quest_length=2, infos=('oracle_action',))\n"
        "observation, info = env.reset(seed=0)\n"
        "for _ in range(2): _, _, _, _, info = env.step(info['oracle_action'])\n"
        "print(info['success'])\n"
    )
    done = subprocess.run(
        [python, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        cwd=tmp_path,
        env=dict(os.environ),
    )
    assert done.stdout.split("\n")[:2] == ["Turn on all 4 lights.", "True"]
