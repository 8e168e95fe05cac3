"""Files and folders that appear as a whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from textagent_gym.errors import InvalidOptionError
from textagent_gym.files import PART, cache_folder, check_writable, whole_file, whole_folder, write_whole


def test_a_file_whose_writing_fails_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "result.txt"
    write_whole(path, "before")
    with pytest.raises(KeyboardInterrupt), whole_file(path):
        raise KeyboardInterrupt
    assert path.read_text() == "before"
    assert os.listdir(path.parent) == ["result.txt"]


def test_what_is_not_finished_has_one_kind_of_suffix(tmp_path: Path) -> None:
    with whole_file(tmp_path / "a") as file, whole_folder(tmp_path / "b"):
        file.write("x")
        names = os.listdir(tmp_path)
        assert len(names) == 2
        assert all(name.endswith(PART) for name in names)
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_a_written_file_has_the_permissions_of_any_other(tmp_path: Path) -> None:
    write_whole(tmp_path / "ours", "x")
    (tmp_path / "theirs").write_text("x")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "theirs").stat().st_mode


def test_the_folder_of_somebody_who_was_faster_stays_unless_it_is_to_be_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "game"
    for replace, expected in ((False, "theirs"), (True, "ours")):
        with whole_folder(folder, replace=replace) as part:
            (part / "text").write_text("ours")
            folder.mkdir(exist_ok=True)
            (folder / "text").write_text("theirs")
        assert (folder / "text").read_text() == expected
    assert os.listdir(tmp_path) == ["game"]


def test_a_folder_whose_filling_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), whole_folder(tmp_path / "game"):
        raise RuntimeError
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("folder", [False, True])
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("file/x", "cannot be written: Not a directory"),
        ("/dev/null/x", "cannot be written: Not a directory"),
        ("/proc/x/y", "cannot be written: "),
        ("/dev/null", "is no plain file; name a "),
        ("n" * 300, "cannot be written: File name too long"),
    ],
)
def test_what_cannot_be_written_is_found_out_before(tmp_path: Path, name: str, reason: str, folder: bool) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidOptionError, match=reason):
        check_writable(tmp_path / name, folder=folder)


def test_a_file_is_no_folder_and_finding_out_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for folder in (False, True):
        check_writable(tmp_path / "new" / "x", folder=folder)
        check_writable(tmp_path / ("folder" if folder else "file"), folder=folder)
        with pytest.raises(InvalidOptionError, match="name a folder" if folder else "name a file"):
            check_writable(tmp_path / ("file" if folder else "folder"), folder=folder)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder"]


def test_the_cache_is_where_the_variable_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TEXTAGENT_CACHE", str(tmp_path / "here"))
    assert cache_folder() == tmp_path / "here"
    monkeypatch.delenv("TEXTAGENT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "textagent-gym"
