"""A package of somebody else, installed: its world is there as soon as Gymnasium is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from lights import LightsEnv, LightsOptions, LightsTasks

from textagent_gym.errors import InvalidOptionError, UnknownTaskError

ROOT = Path(__file__).parents[2]
PACKAGE = Path(__file__).parent / "lights"
PAGE = ROOT / "docs" / "adding-a-world.md"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site-packages")
    options = ["--quiet", "--no-build-isolation", "--no-deps", "--no-index", "--target", str(target)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(PACKAGE)], check=True, timeout=300)
    return target


def python(code: str, site: Path, folder: Path) -> str:
    """What a fresh interpreter prints, somewhere else than in the checkout."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(site), str(ROOT)))}
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environment,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_an_installed_world_is_made_without_importing_its_package(installed: Path, tmp_path: Path) -> None:
    code = (
        "import gymnasium\n"
        "env = gymnasium.make('lights/Lights-v0', switches=3)\n"
        "print(env.reset(options={'task_index': 0})[1]['task'], env.unwrapped.oracle() != ())\n"
    )
    assert python(code, installed, tmp_path) == "Lights/v1/s3/train/0 True"


def test_an_installed_world_is_listed_with_those_of_the_suite(installed: Path, tmp_path: Path) -> None:
    code = (
        "from textagent_gym.registration import installed_worlds, world_of\n"
        "world = world_of('lights/Lights-v0')\n"
        "print(world in installed_worlds(), world.name, world.packages)\n"
    )
    assert python(code, installed, tmp_path) == "True lights ('lights-world',)"
    code = "from textagent_gym.cli import main; import sys; sys.argv[1:] = ['list']; main()"
    assert "lights/Lights-v0" in python(code, installed, tmp_path)


def test_an_installed_world_is_made_in_worker_processes(installed: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from textagent_gym.vector import ReadyFirstPool\n"
        "import gymnasium\n"
        "def make(): return gymnasium.make('lights/Lights-v0')\n"
        "if __name__ == '__main__':\n"
        "    with ReadyFirstPool([make] * 2) as pool:\n"
        "        pool.reset(1, options={'task_index': 0})\n"
        "        print(pool.recv().info['task'])\n",
        encoding="utf-8",
    )
    assert python(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')", installed, tmp_path) == (
        "Lights/v1/s4/train/0"
    )


def test_a_broken_package_is_named_and_takes_nothing_down_with_it(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def register(): raise RuntimeError('half a world')\n", encoding="utf-8")
    metadata = tmp_path / "broken-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text("[textagent_gym.envs]\nx = broken:register\n", encoding="utf-8")
    code = (
        "import warnings\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    import gymnasium\n"
        "print('textagent/TextWorld-v0' in gymnasium.registry)\n"
        "print(*(str(warning.message) for warning in caught))\n"
    )
    there, told = python(code, tmp_path, tmp_path).splitlines()
    assert there == "True"
    assert "broken:register" in told
    assert "half a world" in told


def test_the_page_shows_the_very_package_that_is_tested() -> None:
    page = PAGE.read_text(encoding="utf-8")
    included = re.findall(r'--8<-- "(.+?)"', page)
    assert [ROOT / name for name in included] == [PACKAGE / "lights.py", PACKAGE / "pyproject.toml"]
    assert all((ROOT / name).is_file() for name in included)
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["entry-points"]["textagent_gym.envs"] == {"lights": "lights:register"}
    assert (PACKAGE / "lights.py").read_text(encoding="utf-8").count("\n") < 160  # "About a hundred lines."


def test_tasks_of_different_splits_and_sizes_are_different() -> None:
    tasks = LightsTasks(LightsOptions(switches=4))
    ids = {tasks.task(split, index).id for split in tasks.splits for index in range(20)}
    assert len(ids) == 60
    assert all(tasks.find(name).id == name for name in ids)
    for wrong in (
        "Lights/v1/s5/train/0",
        "Lights/v1/s4/dev/0",
        "Lights/v1/s4/train/x",
        "Lights/v1/s4/train/007",
        "Lights/v1/s4/train/-1",
    ):
        with pytest.raises(UnknownTaskError):
            tasks.find(f"Lights/v1/{wrong}")


@pytest.mark.parametrize("switches", [0, 7])
def test_a_number_of_switches_that_does_not_exist_is_refused(switches: int) -> None:
    with pytest.raises(InvalidOptionError, match="from 1 to 6"):
        LightsEnv(switches)


def test_the_world_is_the_same_whatever_the_hash_seed(tmp_path: Path) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(PACKAGE)!r})\n"
        "from lights import LightsEnv\n"
        "env = LightsEnv(6)\n"
        "print([env.reset(seed=seed) for seed in range(5)])"
    )
    told = set()
    for seed in ("0", "1", "random"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
        told.add(done.stdout)
    assert len(told) == 1
