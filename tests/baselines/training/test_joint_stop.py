"""Several processes stop together: at one point, with a checkpoint, whoever of them was asked to or has failed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from baselines.training import joint_stop
from baselines.training.checkpoint import find_checkpoint
from baselines.training.joint_stop import JointStop, OtherProcessError
from baselines.training.signals import TerminatedError, sigterm_raises
from tests.baselines.runs import curve, lines

SCRIPT = Path(__file__).with_name("stopped_processes.py")
DDP = Path(__file__).parents[3] / "baselines" / "accelerate" / "ddp.yaml"

Told = tuple[int, str]


pytestmark = pytest.mark.usefixtures("usual_handlers")


@pytest.fixture
def other(monkeypatch: pytest.MonkeyPatch) -> Callable[[Told], None]:
    """A function that sets what the other one of two processes tells."""

    def tells(told: Told) -> None:
        monkeypatch.setattr(joint_stop, "gather_object", lambda mine: [*mine, told])

    tells((0, ""))
    return tells


def break_world() -> None:
    raise LookupError("a hole")


def test_what_another_process_was_asked_or_failed_with_stops_this_one(other: Callable[[Told], None]) -> None:
    stop = JointStop(2, 0)
    assert stop.apart(lambda: 3) == 3
    stop.agree()
    assert not stop.agreed
    for told, error in (
        ((signal.SIGTERM, ""), TerminatedError),
        ((signal.SIGINT, ""), KeyboardInterrupt),
        ((0, "process 1: LookupError: a hole"), OtherProcessError),
    ):
        other(told)
        for act in (stop.agree, lambda stop=stop: stop.apart(lambda: 3)):
            stop.agreed = False
            with pytest.raises(error) as raised:
                act()
            assert raised.type is error
            assert stop.agreed
    assert str(raised.value) == "process 1: LookupError: a hole"


@pytest.mark.usefixtures("other")
def test_a_signal_ends_at_once_what_a_process_does_by_itself_and_nothing_else() -> None:
    reached: list[str] = []

    def play() -> None:
        reached.append("begun")
        signal.raise_signal(signal.SIGTERM)
        reached.append("played")

    def update(stop: JointStop) -> None:
        play()
        stop.apart(lambda: reached.append("played once more"))

    stop = JointStop(2, 0)
    with pytest.raises(TerminatedError), sigterm_raises(), stop.noted_signals():
        stop.apart(play)
    assert reached == ["begun"]
    reached.clear()
    stop = JointStop(2, 0)
    with pytest.raises(TerminatedError), sigterm_raises(), stop.noted_signals():
        update(stop)
    assert reached == ["begun", "played"]
    assert stop.agreed


def test_the_words_of_an_error_are_told_and_the_error_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(joint_stop, "gather_object", lambda mine: told.extend(mine) or [(0, ""), *mine])
    stop = JointStop(2, 1)
    with pytest.raises(LookupError, match="a hole"):
        stop.apart(break_world)
    assert told == [(0, "process 1: LookupError: a hole")]
    assert stop.agreed


@pytest.mark.usefixtures("other")
def test_a_second_signal_ends_a_process_at_once_and_an_echo_of_the_first_does_not(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    now, reached = [100.0], []

    def update() -> None:
        for seconds in (0, 1, 10):
            now[0] = 100.0 + seconds
            signal.raise_signal(signal.SIGTERM)
            reached.append(seconds)

    monkeypatch.setattr(joint_stop.time, "monotonic", lambda: now[0])
    stop = JointStop(2, 0)
    with pytest.raises(TerminatedError), sigterm_raises(), stop.noted_signals():
        update()
    assert reached == [0, 1]
    assert not stop.agreed
    assert capfd.readouterr().err.count("Stopping when all processes can") == 1


def test_a_signal_that_came_too_late_to_be_agreed_on_is_delivered_at_the_end() -> None:
    reached: list[str] = []

    def finish() -> None:
        signal.raise_signal(signal.SIGINT)
        reached.append("finished")

    with pytest.raises(KeyboardInterrupt), JointStop(2, 0).noted_signals():
        finish()
    assert reached == ["finished"]


def test_where_the_other_process_has_gone_the_signal_is_what_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_: list[Told]) -> list[Told]:
        raise RuntimeError("Connection closed by peer")

    def play() -> None:
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(joint_stop, "gather_object", gone)
    stop = JointStop(2, 0)
    with pytest.raises(RuntimeError, match="closed by peer"):
        stop.agree()
    with pytest.raises(TerminatedError), sigterm_raises(), stop.noted_signals():
        stop.apart(play)
    assert not stop.agreed


def test_a_process_that_is_alone_is_left_as_it_is() -> None:
    stop = JointStop(1, 0)
    with pytest.raises(TerminatedError), sigterm_raises(), stop.noted_signals():
        signal.raise_signal(signal.SIGTERM)
    with pytest.raises(LookupError):
        stop.apart(break_world)
    stop.agree()
    assert not stop.agreed


def launch(policy: Path, out: Path, *options: str, **variables: str) -> subprocess.Popen[str]:
    """Start a run of two processes as a user does; it checkpoints only when it stops or ends."""
    command = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(DDP), "--num_processes", "2"]
    command += ["--main_process_ip", "127.0.0.1", "--main_process_port", "0", str(SCRIPT)]
    command += ["--model", str(policy), "--out", str(out), "--env", "lights/Lights-v0"]
    command += ["--set", "switches=2", "max_turns=3", "reward_density=dense", "num_tasks=8"]
    command += ["--iterations", "40", "--checkpoint-every", "1000", "--groups", "2", "--group-size", "4"]
    command += ["--slots", "8", "--max-action-tokens", "6", "--kl", "0.1", *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_iterations(process: subprocess.Popen[str], out: Path, iterations: int) -> None:
    metrics = out / "metrics.jsonl"
    while not metrics.is_file() or metrics.read_text().count("\n") < iterations:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.005)


def finish(process: subprocess.Popen[str], out: Path) -> list[dict[str, Any]]:
    """The metrics of a run, when it has ended with all its iterations.

    Its exit status says less: threads of `torch.distributed` now and then abort a Python that has done all its work.
    """
    _, errors = process.communicate(timeout=300)
    stop = lines(out / "log.jsonl")[-1]
    assert (stop["event"], stop["cause"]) == ("stop", None), errors
    assert (out / "policy" / "iteration").read_text() == str(stop["iteration"])
    return curve(out)


def process_of(launcher: int, number: int) -> int:
    """Id of one of the processes that a launcher has started."""
    for child in Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split():
        if f"RANK={number}".encode() in Path(f"/proc/{child}/environ").read_bytes().split(b"\0"):
            return int(child)
    raise LookupError(f"the launcher has no process {number}")


def check_stop(out: Path, cause: str) -> int:
    """The iteration that a run has stopped after, with a checkpoint and the cause in its log."""
    stop = lines(out / "log.jsonl")[-1]
    assert (stop["event"], stop["cause"]) == ("stop", cause)
    assert cause in (out / "index.html").read_text()
    checkpoint = find_checkpoint(out)
    assert checkpoint is not None
    assert checkpoint.iteration == stop["iteration"] == len(curve(out))
    return checkpoint.iteration


@pytest.fixture(scope="module")
def whole(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The metrics of a run that nobody stops."""
    out = tmp_path_factory.mktemp("whole")
    return finish(launch(tiny, out), out)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds the launcher's processes in /proc")
def test_two_processes_that_are_stopped_lose_nothing_whoever_hears_of_it(
    tiny: Path, tmp_path: Path, whole: list[dict[str, Any]]
) -> None:
    """In turn: the launcher is terminated, process 1 alone is, and the launcher gets Ctrl-C."""
    done = 0
    for sent, number in ((signal.SIGTERM, None), (signal.SIGTERM, 1), (signal.SIGINT, None)):
        process = launch(tiny, tmp_path)
        wait_for_iterations(process, tmp_path, done + 2)
        os.kill(process.pid if number is None else process_of(process.pid, number), sent)
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 1  # That of the launcher, however its processes end.
        assert "SIGKILL" not in errors
        if number == 1:  # 143, unless the launcher or an abort comes before the last of what Python does.
            assert re.search(r"exitcode +: (143|-6|-15) ", errors)
        done = check_stop(tmp_path, "TerminatedError: SIGTERM" if sent == signal.SIGTERM else "KeyboardInterrupt")
        assert done < 40
    assert finish(launch(tiny, tmp_path), tmp_path) == whole


@pytest.mark.slow
def test_processes_that_play_ahead_and_evaluate_stop_together_too(tiny: Path, tmp_path: Path) -> None:
    options = ["--staleness", "1", "--eval-every", "3", "--eval-tasks", "4", "--pool", "process", "--workers", "1"]
    options += ["--iterations", "8"]
    whole, out = tmp_path / "whole", tmp_path / "stopped"
    process = launch(tiny, out, *options)
    wait_for_iterations(process, out, 3)
    process.terminate()
    process.communicate(timeout=120)
    assert 3 <= check_stop(out, "TerminatedError: SIGTERM") < 8
    assert finish(launch(tiny, out, *options), out) == finish(launch(tiny, whole, *options), whole)


@pytest.mark.slow
def test_an_error_of_one_process_while_it_plays_stops_both_and_loses_nothing(
    tiny: Path, tmp_path: Path, whole: list[dict[str, Any]]
) -> None:
    process = launch(tiny, tmp_path, FAULTY_STEP="40")
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "LookupError: the world has a hole" in errors
    assert check_stop(tmp_path, "OtherProcessError: process 1: LookupError: the world has a hole") > 0
    assert finish(launch(tiny, tmp_path), tmp_path) == whole
