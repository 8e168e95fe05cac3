"""A folder holds one run, which one process at a time goes on with."""

from __future__ import annotations

import errno
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from baselines.settings import run_folder
from baselines.settings.run_folder import (
    LOCK,
    FolderInUseError,
    OtherRunError,
    RunFolderError,
    claim_folder,
    hold_folder,
)
from tests.baselines.runs import ROOT

HOLD = """
import sys, time
from pathlib import Path
from baselines.settings.run_folder import hold_folder
with hold_folder(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_another_process_holds_a_folder_until_it_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        said = (folder / LOCK).read_text()
        with pytest.raises(FolderInUseError, match=f"{folder} is in use by process {other.pid} on "):
            hold_folder(folder).__enter__()
        assert (folder / LOCK).read_text() == said
        other.kill()
    with hold_folder(folder):
        pass


def test_a_folder_without_a_run_is_deleted_again_and_any_other_stays(tmp_path: Path) -> None:
    with pytest.raises(LookupError), hold_folder(tmp_path / "new" / "run"):
        raise LookupError("no such model")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "mine").mkdir()
    with hold_folder(tmp_path / "mine"):
        pass
    with hold_folder(tmp_path / "run"):
        claim_folder(tmp_path / "run", Settings())
    assert [path.name for path in sorted(tmp_path.rglob("*"))] == ["mine", "run", "config.json"]


def test_a_lock_that_was_deleted_while_it_was_waited_for_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lock_late(*_: Any, **__: Any) -> None:
        (tmp_path / LOCK).unlink()

    monkeypatch.setattr(run_folder, "lock", lock_late)
    with pytest.raises(FolderInUseError):
        hold_folder(tmp_path).__enter__()


def test_a_file_system_without_locks_is_told_and_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(run_folder, "lock", refuse)
    with pytest.warns(RuntimeWarning, match="cannot be locked .*No locks available"), hold_folder(tmp_path / "run"):
        claim_folder(tmp_path / "run", Settings())


@pytest.mark.parametrize("name", ["file", "file/run"])
def test_a_file_is_not_the_folder_of_a_run(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RunFolderError, match="file is a file; choose another name"):
        hold_folder(tmp_path / name).__enter__()


@dataclass(frozen=True)
class Inner:
    """Settings within settings."""

    epochs: float = 3.0


@dataclass(frozen=True)
class Settings:
    """Settings of a run, before there was more to set."""

    out: Path = Path("run")
    model: str = "m"


@dataclass(frozen=True)
class InnerWithMore(Inner):
    """The same, later."""

    batch_size: int = 16


@dataclass(frozen=True)
class SettingsWithMore(Settings):
    """The same, later."""

    extra: tuple[str, ...] = ()
    inner: Inner = field(default_factory=Inner)


def test_a_setting_that_is_newer_than_the_run_has_its_default_there(tmp_path: Path) -> None:
    claim_folder(tmp_path, Settings())
    for change in ({"extra": ("new",)}, {"inner": Inner(4.0)}):
        with pytest.raises(OtherRunError, match=next(iter(change))):
            claim_folder(tmp_path, SettingsWithMore(**change))
    claim_folder(tmp_path, SettingsWithMore())
    with pytest.raises(OtherRunError, match="inner"):
        claim_folder(tmp_path, SettingsWithMore(inner=InnerWithMore(batch_size=8)))
    claim_folder(tmp_path, SettingsWithMore(inner=InnerWithMore()))


def test_a_folder_that_was_moved_or_is_spelled_otherwise_holds_the_same_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    claim_folder(Path("runs/a/rl"), Settings(Path("runs/a/rl"), "runs/a/sft"))
    whole = tmp_path / "runs" / "a"
    claim_folder(whole / "rl", Settings(whole / "rl", str(whole / "sft")))
    moved = whole.rename(tmp_path / "b")
    claim_folder(moved / "rl", Settings(moved / "rl", str(moved / "sft")))
    with pytest.raises(OtherRunError, match="model"):
        claim_folder(moved / "rl", Settings(moved / "rl", str(whole / "sft")))
