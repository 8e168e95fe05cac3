"""Ctrl-C and SIGTERM stop a run where it can be stopped."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from baselines import grpo
from baselines.command_line import run_from_terminal
from baselines.training.run_log import logged
from baselines.training.signals import TerminatedError, delayed_signals, sigterm_raises
from tests.baselines.runs import lines

pytestmark = pytest.mark.usefixtures("usual_handlers")


def test_sigterm_raises_where_the_program_has_no_handler_of_its_own() -> None:
    with pytest.raises(TerminatedError), sigterm_raises():
        signal.raise_signal(signal.SIGTERM)
    heard: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    with sigterm_raises():
        signal.raise_signal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    assert heard == [signal.SIGTERM]


@pytest.mark.parametrize(("sent", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, TerminatedError)])
def test_a_signal_waits_for_the_end_of_the_block_and_a_second_one_does_not(
    sent: signal.Signals, error: type[BaseException], capfd: pytest.CaptureFixture[str]
) -> None:
    reached: list[int] = []

    def send(times: int) -> None:
        with sigterm_raises(), delayed_signals():
            for _ in range(times):
                signal.raise_signal(sent)
            reached.append(times)

    for times in (1, 2):
        with pytest.raises(error):
            send(times)
    assert reached == [1]
    assert "Stopping when this update has ended" in capfd.readouterr().err
    with pytest.raises(KeyboardInterrupt):  # The handler is what it was.
        signal.raise_signal(signal.SIGINT)


def test_other_threads_have_no_signals_to_handle() -> None:
    def use() -> None:
        with sigterm_raises(), delayed_signals():
            ended.append(True)

    ended: list[bool] = []
    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert ended == [True]


def test_a_logged_run_says_that_it_was_terminated(tmp_path: Path) -> None:
    with pytest.raises(TerminatedError), logged(tmp_path, lambda: 2):
        signal.raise_signal(signal.SIGTERM)
    stop = lines(tmp_path / "log.jsonl")[-1]
    assert (stop["event"], stop["iteration"], stop["cause"]) == ("stop", 2, "TerminatedError: SIGTERM")


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt, 130), (TerminatedError, 143)])
def test_the_exit_status_of_a_command_tells_how_it_was_stopped(
    error: type[BaseException], status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: Any) -> Path:
        raise error

    monkeypatch.setattr("sys.argv", ["grpo", "--model", "m", "--out", "o", "--env", "lights/Lights-v0"])
    with pytest.raises(SystemExit) as end:
        run_from_terminal(grpo.Config, stop)
    assert end.value.code == status
    assert capsys.readouterr().out == "Stopped. The same command resumes from the last checkpoint.\n"
