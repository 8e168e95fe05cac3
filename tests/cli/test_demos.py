"""Demonstrations from the command line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.program import PROGRAM, call, run
from textagent_gym.cli.demos import Demos
from textagent_gym.errors import UnsupportedOperationError

SMALL = "TextWorld-w2-o3-q4"
LIGHTS = "lights/Lights-v0"


def test_demos_are_conversations_that_trl_reads(tmp_path: Path) -> None:
    out = tmp_path / "demos.jsonl"
    assert run("demos", SMALL, "--tasks", "2", "--hints", "--out", str(out)).returncode == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["return"] for line in lines] == [1.0, 1.0]
    for line in lines:
        assert [m["role"] for m in line["messages"]] == ["system", *["user", "assistant"] * 4]
        assert "inventory" in line["messages"][0]["content"]  # A command that the instructions name.
        assert "Possible actions:" in line["messages"][1]["content"]
        assert line["complexity"]["solution_length"] == 4
    before = out.read_text()
    assert run("demos", SMALL, "--tasks", "2", "--hints", "--out", str(out)).returncode == 0
    assert out.read_text() == before


def test_demonstrations_of_the_expert(tmp_path: Path) -> None:
    out = tmp_path / "demos.jsonl"
    arguments = ("demos", "ALFWorld", "--tasks", "5", "--out", str(out))
    assert "genius" in call(*arguments, "--agent", "genius").stderr
    assert call(*arguments, "--agent", "expert").returncode == 0
    demos = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(demo["agent"], demo["success"], demo["return"]) for demo in demos] == [("expert", True, 1.0)] * 5
    lengths = [demo["complexity"]["solution_length"] for demo in demos]
    assert all(len(demo["messages"]) >= 2 * length for demo, length in zip(demos, lengths, strict=True))
    other = call(*arguments)
    assert other.returncode == 2
    assert "demonstrations of expert" in other.stderr


@pytest.mark.parametrize(
    "other",
    [
        ("--hints",),
        ("--no-instructions",),
        ("--set", "switches=2"),
        ("--set", "reward_density=dense"),
        ("--split", "test"),
    ],
)
def test_a_file_made_with_other_settings_is_refused(other: tuple[str, ...], tmp_path: Path) -> None:
    arguments = ("demos", LIGHTS, "--tasks", "3", "--out", str(tmp_path / "demos.jsonl"))
    assert call(*arguments).returncode == 0
    before = (tmp_path / "demos.jsonl").read_text()
    done = call(*arguments, *other)
    assert done.returncode == 2
    assert "other settings" in done.stderr
    assert (tmp_path / "demos.jsonl").read_text() == before


def test_failed_episodes_are_no_demonstrations(tmp_path: Path) -> None:
    out = tmp_path / "demos.jsonl"
    done = run("demos", "ALFWorld", "--tasks", "5", "--agent", "expert", "--set", "max_turns=3", "--out", str(out))
    assert done.returncode == 0
    assert "5 tasks were not solved" in done.stderr
    assert out.read_text() == ""


def test_a_stopped_run_resumes_where_it_was(tmp_path: Path) -> None:
    out = tmp_path / "demos.jsonl"
    part = tmp_path / "demos.jsonl.part"
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "demos", LIGHTS, "--tasks", "100000", "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Shells start background jobs with Ctrl-C switched off, and the tests may run in one.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 (no threads here)
    )
    deadline = time.monotonic() + 60
    while (not part.exists() or part.stat().st_size < 20_000) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=30)[1].decode()
    assert process.returncode == 130
    assert "of 100000 demonstrations are kept; the same command resumes" in said
    whole = [line for line in part.read_text().splitlines() if line.endswith("}")]
    marked = [json.loads(line) for line in whole]
    marked[0]["messages"] = [{"role": "user", "content": "from the first run"}]
    part.write_text("".join(json.dumps(demo) + "\n" for demo in marked) + '{"cut')
    assert run("demos", LIGHTS, "--tasks", str(len(marked)), "--out", str(out)).returncode == 0
    assert "from the first run" in out.read_text()
    assert len(out.read_text().splitlines()) == len(marked)
    assert not part.exists()


def test_a_run_that_fails_at_once_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise UnsupportedOperationError("no oracle for this task")

    monkeypatch.setattr("textagent_gym.evaluation.demonstrations.demonstrate", fail)
    with pytest.raises(UnsupportedOperationError):
        Demos(env=LIGHTS, out=tmp_path / "demos.jsonl", tasks=1).run()
    assert list(tmp_path.iterdir()) == []
