"""`make java`: a machine on which Java cannot be installed goes on without it, but not in CI."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAKE = shutil.which("make")


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (folder / name).chmod(0o755)


def make_java(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """`make java` by somebody who seems to be root, with an `apt-get` that installs nothing."""
    if MAKE is None or not (ROOT / "Makefile").exists():
        pytest.skip("make, or the Makefile, is not there")
    program(folder, "apt-get", "exit 100")
    program(folder, "id", "echo 0")
    for name in ("bash", "sh", "mktemp", "tail", "rm"):
        place = shutil.which(name)
        assert place is not None
        (folder / name).symlink_to(place)
    return subprocess.run(
        [MAKE, "--no-print-directory", "java"],
        cwd=ROOT,
        env={"PATH": str(folder), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_without_a_working_apt_the_tests_go_on_and_say_why_java_is_missing(tmp_path: Path) -> None:
    done = make_java(tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Java could not be installed by apt-get: ScienceWorld's tests are skipped." in done.stdout


def test_in_ci_java_must_be_installed(tmp_path: Path) -> None:
    assert make_java(tmp_path, CI="true").returncode != 0


def test_java_that_is_there_is_not_installed_again(tmp_path: Path) -> None:
    program(tmp_path, "java", "exit 0")
    done = make_java(tmp_path, CI="true")
    assert (done.returncode, done.stdout) == (0, "")
