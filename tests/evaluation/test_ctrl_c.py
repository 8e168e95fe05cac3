"""Ctrl-C while worker processes are started: it reaches all processes of a terminal, and only the caller heeds it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = """
import pathlib, signal, sys, time

from textagent_gym.processes import worker_processes

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Whoever started this may ignore it.
    try:
        with worker_processes(1) as pool:
            handler, blocked = pool.submit(signal.getsignal, signal.SIGINT), pool.submit(signal.pthread_sigmask, 0, ())
            print(handler.result(), blocked.result())
    except KeyboardInterrupt:
        print("stopped")
else:  # A worker imports it before anything else.
    pathlib.Path(sys.argv[1]).touch()
    time.sleep(float(sys.argv[2]))
"""


def started(folder: Path, seconds: float) -> subprocess.Popen[str]:
    """The script, whose worker takes some seconds to start, in a session of its own."""
    (folder / "script.py").write_text(SCRIPT)
    return subprocess.Popen(
        [sys.executable, str(folder / "script.py"), str(folder / "begun"), str(seconds)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_workers_ignore_ctrl_c_and_do_not_hold_it_back_from_what_they_start(tmp_path: Path) -> None:
    out, err = started(tmp_path, 0.0).communicate(timeout=120)
    assert (out.strip(), err) == (f"{signal.SIG_IGN!s} set()", "")


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals cannot be held back on this system")
def test_workers_that_are_being_started_print_nothing(tmp_path: Path) -> None:
    process = started(tmp_path, 2.0)
    while not (tmp_path / "begun").exists():
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (out.strip(), err) == ("stopped", "")
