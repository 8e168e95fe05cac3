"""Folders of our own: emptied and written to whatever lies there."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from textagent_gym.sandbox.writing import empty, write_files


def test_emptying_copes_with_anything(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    (tmp_path / "kept").write_text("kept")
    script = """
        import os
        os.symlink("../kept", "link"); os.symlink("..", "up"); os.mkfifo("fifo"); os.makedirs("a/b/c/.1")
        open("a/b/x", "w").close(); os.mkdir(".1"); os.mkdir("d")
        os.chmod("a/b/c", 0); os.chmod("a/b", 0); os.chmod("a", 0); os.chdir("d")
        for _ in range(2000): os.mkdir("d" * 100); os.chdir("d" * 100)"""
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], cwd=top, check=True)
    empty(str(top))
    assert os.listdir(top) == []
    assert (tmp_path / "kept").read_text() == "kept"


WRITES: list[tuple[str, Callable[[Path], object], dict[str, bytes | None], dict[str, bytes]]] = [
    ("through a link", lambda top: (top / "d").symlink_to(top.parent), {"d/x": b"1"}, {"d/x": b"1"}),
    ("over a link", lambda top: (top / "x").symlink_to(top.parent / "y"), {"x": b"1"}, {"x": b"1"}),
    ("below a file", lambda top: (top / "x").write_text("0"), {"x/y/z": b"1"}, {"x/y/z": b"1"}),
    ("over a folder", lambda top: (top / "x" / "y").mkdir(parents=True), {"x": b"1"}, {"x": b"1"}),
    ("not there", lambda top: None, {"x/y": None, "z": None}, {}),
]


@pytest.mark.parametrize(("prepare", "files", "expected"), [case[1:] for case in WRITES], ids=[w[0] for w in WRITES])
def test_writing_gives_way(
    tmp_path: Path,
    prepare: Callable[[Path], object],
    files: dict[str, bytes | None],
    expected: dict[str, bytes],
) -> None:
    prepare(tmp_path)
    write_files(str(tmp_path), files)
    found = {str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert found == expected
    assert not any(path.is_symlink() for path in tmp_path.rglob("*"))


@pytest.mark.parametrize("name", ["../x", "/x", "a/../x", "", "a//b", "./a", "a\0b"])
def test_no_path_leads_out(tmp_path: Path, name: str) -> None:
    (tmp_path / "top").mkdir()
    with pytest.raises(ValueError, match="is no path"):
        write_files(str(tmp_path / "top"), {name: b"1"})
    assert os.listdir(tmp_path) == ["top"]
