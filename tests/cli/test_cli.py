"""The command line, as somebody types it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

LIGHTS = Path(__file__).parents[1] / "third_party" / "lights"
PROGRAM = (
    f"import sys; sys.path.insert(0, {str(LIGHTS)!r}); import gymnasium, lights;"
    "'lights/Lights-v0' in gymnasium.registry or lights.register();"
    "from textagent_gym.cli import main; main()"
)
SMALL = "TextWorld-w2-o3-q4"


def run(*arguments: str, **kwargs: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "COLUMNS": "200", "TERM": "dumb"},
        **kwargs,
    )


def test_help_and_list_name_everything() -> None:
    assert all(name in run("--help").stdout for name in ("list", "info", "play", "demos", "eval", "verify", "cache"))
    assert "textagent/TextWorld-w8-o12-q12-v0" in run("list").stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("info", "TextWorl-w2-o3-q4"), "Did you mean"),
        (("info", SMALL, "--set", "romms=3"), "Did you mean 'rooms'"),
        (("info", SMALL, "--set", "rooms"), "name=value"),
        (("info", "TextWorldCoinCollector", "--set", "level=999"), "1 to 233"),
        (("eval", "lights/Lights-v0", "--agent", "genius"), "admissible-random"),
        (("eval", "lights/Lights-v0", "--split", "dev"), "validation"),
        (("verify", "/nowhere.jsonl"), "cannot be read"),
        (("demos", "lights/Lights-v0", "--out", "/dev/null/x", "--tasks", "1"), "File exists"),
        (("frobnicate",), "frobnicate"),
        ((), "subcommand"),
    ],
)
def test_a_wrong_argument_is_one_clear_line_and_no_traceback(arguments: tuple[str, ...], said: str) -> None:
    done = run(*arguments)
    assert done.returncode in (1, 2)
    assert said in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


def test_info_shows_a_task_with_its_complexity() -> None:
    out = run("info", SMALL).stdout
    assert "solution_length: 4" in out
    assert "split guide-test: 100 tasks" in out


def test_play_reads_actions_from_a_pipe() -> None:
    done = run("play", "lights/Lights-v0", "--task", "0", input="?\n!\npress red\n<\n<\nsing\n")
    assert done.returncode == 0
    assert "press black, press blue" in done.stdout
    assert "This is the first turn" in done.stdout
    assert "Nothing happens." in done.stdout
    assert "The input has ended." in done.stdout
    solved = run("play", "lights/Lights-v0", "--task", "0", input="press red\npress green\npress blue\npress white\n")
    assert "Solved after 4 turns; return 1.000" in solved.stdout


def test_eval_then_verify(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    done = run("eval", SMALL, "--agent", "oracle", "--tasks", "2", "--out", str(out))
    assert "1.000" in done.stdout
    assert run("verify", str(out)).returncode == 0
    forged = out.read_text().replace('"rewards": [0.0', '"rewards": [0.5', 1)
    out.write_text(forged)
    done = run("verify", str(out))
    assert done.returncode == 1
    assert "1 of 2 episodes went otherwise" in done.stdout


def test_demos_are_conversations_that_trl_reads(tmp_path: Path) -> None:
    out = tmp_path / "demos.jsonl"
    assert run("demos", SMALL, "--tasks", "2", "--hints", "--out", str(out)).returncode == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["return"] for line in lines] == [1.0, 1.0]
    for line in lines:
        assert [m["role"] for m in line["messages"]] == ["user", "assistant"] * 4
        assert "Possible actions:" in line["messages"][0]["content"]
        assert line["complexity"]["solution_length"] == 4
    before = out.read_text()
    assert run("demos", SMALL, "--tasks", "2", "--hints", "--out", str(out)).returncode == 0
    assert out.read_text() == before


def test_ctrl_c_in_the_middle_keeps_what_is_done(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    part = tmp_path / "r.jsonl.part"
    arguments = ("eval", "lights/Lights-v0", "--agent", "admissible-random", "--tasks", "100000", "--out", str(out))
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Shells start background jobs with Ctrl-C switched off, and the tests may run in one.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 (no threads here)
    )
    deadline = time.monotonic() + 60
    while (not part.exists() or part.stat().st_size < 20_000) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Stopped." in errors
    assert "Traceback" not in errors
    assert len(part.read_text().splitlines()) > 10
    assert not out.exists()


def test_the_cache_is_shown_and_cleared(tmp_path: Path) -> None:
    env = {**os.environ, "TEXTAGENT_CACHE": str(tmp_path)}
    code = "from textagent_gym.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "cache", "--clear"], capture_output=True, text=True, env=env, check=True
    )
    assert "0 games" in done.stdout
    assert "Deleted 0 games" in done.stdout


def test_no_text_of_a_world_or_a_file_of_actions_commands_the_terminal() -> None:
    done = run("play", "lights/Lights-v0", input="press \x1b[2J\x9b31m\u202e\n")
    assert done.returncode == 0
    assert "\x1b[2J" not in done.stdout
    assert not {"\x9b", "\u202e"} & set(done.stdout)
    assert "press ␛[2J\\x9b31m\\u202e" in done.stdout
