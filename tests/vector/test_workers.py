"""What happens to episodes and processes when workers are killed, worlds raise, and people press Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from gymnasium.envs.registration import EnvSpec

from tests.vector.worlds import (
    dying_at_birth,
    dying_at_reset,
    gone_within,
    hanging_at_reset,
    misbehaving,
    raising_at_birth,
)
from textagent_gym.errors import InvalidOptionError, WorkerError
from textagent_gym.vector import ProcessVectorEnv, make_vec

HARD = {"task": "Lights/v1/s6/train/3"}
ROOT = Path(__file__).parents[2]
MISBEHAVING = EnvSpec("Misbehaving-v0", entry_point="tests.vector.worlds:MisbehavingEnv")


@pytest.mark.parametrize("context", ["forkserver", "spawn", "fork"])
def test_a_killed_worker_is_replaced_and_only_its_episodes_are_truncated(context: str) -> None:
    envs = ProcessVectorEnv([misbehaving] * 4, workers=2, context=context)
    try:
        envs.reset(seed=0, options=HARD)
        seen, *_ = envs.step(["press red"] * 4)
        pids = envs.worker_pids
        os.kill(pids[0], signal.SIGKILL)
        observations, rewards, terminations, truncations, infos = envs.step(["look"] * 4)
        assert truncations.tolist() == [True, True, False, False]
        assert infos["broken"].tolist() == ["its worker died (exit code -9)"] * 2 + [None] * 2
        assert infos["_broken"].tolist() == [True, True, False, False]
        assert not terminations.any()
        assert not rewards.any()
        assert not infos["success"].any()
        assert observations[:2] == seen[:2]  # The last that was seen of them.
        assert infos["turn"].tolist() == [1, 1, 2, 2]
        observations, *_, infos = envs.step(["look"] * 4)
        assert [text.startswith("Turn on all") for text in observations] == [True, True, False, False]
        assert infos["turn"].tolist() == [0, 0, 3, 3]
        assert "broken" not in infos
        assert envs.worker_pids[0] != pids[0]
        assert envs.worker_pids[1] == pids[1]
    finally:
        envs.close()
    assert gone_within(5, [*pids, *(pid for pid in envs.worker_pids if pid)])


def test_a_worker_killed_while_it_acts_is_replaced() -> None:
    envs = ProcessVectorEnv([misbehaving] * 2, workers=2, autoreset_mode="SameStep")
    try:
        envs.reset(seed=0, options=HARD)
        threading.Timer(0.3, os.kill, (envs.worker_pids[1], signal.SIGKILL)).start()
        observations, _, _, truncations, infos = envs.step(["press red", "sleep 60"])
        assert truncations.tolist() == [False, True]
        assert infos["final_info"]["broken"].tolist() == [None, "its worker died (exit code -9)"]
        assert observations[1].startswith("Turn on all 6 lights.")
        assert infos["turn"].tolist() == [1, 0]
    finally:
        envs.close()


def test_a_world_that_kills_its_process_ends_its_episode_and_no_other() -> None:
    envs = ProcessVectorEnv([misbehaving] * 2, workers=2)
    try:
        envs.reset(seed=0)
        for _ in range(5):  # More often than a worker may die in a row without answering.
            assert envs.step(["die", "look"])[3].tolist() == [True, False]
            assert envs.step(["", "look"])[3].tolist() == [False, False]
    finally:
        envs.close()


def test_workers_that_never_live_long_enough_are_given_up() -> None:
    envs = ProcessVectorEnv([dying_at_reset], workers=1)
    try:
        for _ in range(2):
            with pytest.raises(WorkerError, match="times in a row"):
                envs.reset(seed=0)
    finally:
        envs.close()
    with pytest.raises(WorkerError, match="making their environments"):
        ProcessVectorEnv([dying_at_birth])


def test_what_a_world_raises_reaches_the_caller_with_the_workers_traceback() -> None:
    envs = ProcessVectorEnv([misbehaving] * 3, workers=2)
    try:
        envs.reset(seed=0)
        with pytest.raises(LookupError, match="the world has a hole") as caught:
            envs.step(["look", "raise", "look"])
        cause = caught.value.__cause__
        assert isinstance(cause, WorkerError)
        assert cause.slot == 1
        assert "worlds.py" in str(cause)
        assert 'raise LookupError("the world has a hole")' in str(cause)
        with pytest.raises(WorkerError, match="ToldTwiceError: too odd"):
            envs.step(["look", "look", "raise-oddly"])
        with pytest.raises(TypeError, match=r"cannot pickle.*lock"):
            envs.step(["look", "look", "lock"])
        assert envs.reset(seed=0)[1]["turn"].tolist() == [0, 0, 0]
    finally:
        envs.close()
    with pytest.raises(LookupError, match="no world here"):
        ProcessVectorEnv([misbehaving, raising_at_birth], workers=1)


def test_an_action_that_cannot_be_sent_leaves_everything_in_order() -> None:
    envs = ProcessVectorEnv([misbehaving] * 2, workers=2)
    try:
        envs.reset(seed=0)
        with pytest.raises(TypeError, match="pickle"):
            envs.step(["look", threading.Lock()])
        assert envs.step(["look", "look"])[4]["turn"].tolist() == [1, 1]
    finally:
        envs.close()


@pytest.mark.usefixtures("ctrl_c")
def test_a_step_that_was_interrupted_leaves_no_stale_answers() -> None:
    envs = ProcessVectorEnv([misbehaving] * 2, workers=2)
    try:
        envs.reset(seed=0, options=HARD)
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            envs.step(["echo one", "sleep 0.6"])
        assert envs.reset(seed=0, options=HARD)[1]["turn"].tolist() == [0, 0]
        assert envs.step(["echo two", "echo three"])[0] == ("two", "three")
    finally:
        envs.close()


@pytest.mark.usefixtures("ctrl_c")
def test_a_reset_after_an_interrupted_step_that_hangs_replaces_its_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textagent_gym.vector.workers._SECONDS_TO_FINISH", 0.2)
    envs = ProcessVectorEnv([misbehaving] * 2, workers=2)
    try:
        envs.reset(seed=0, options=HARD)
        pids = envs.worker_pids
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            envs.step(["look", "hang"])
        assert envs.reset(seed=0, options=HARD)[1]["turn"].tolist() == [0, 0]
        assert envs.worker_pids[0] == pids[0]
        assert envs.worker_pids[1] != pids[1]
        assert envs.step(["echo two", "echo three"])[0] == ("two", "three")
    finally:
        envs.close()


def test_a_step_that_takes_too_long_breaks_only_the_episodes_of_its_worker() -> None:
    envs = make_vec(MISBEHAVING, 3, kind="process", workers=3, time_limit=1.5)
    try:
        envs.reset(seed=0, options=HARD)
        _, rewards, terminations, truncations, infos = envs.step(["look", "hang", "look"])
        assert truncations.tolist() == [False, True, False]
        assert infos["broken"].tolist() == [None, "its worker gave no answer within 1.5 seconds", None]
        assert not terminations.any()
        assert not rewards.any()
        assert envs.step(["look"] * 3)[4]["turn"].tolist() == [2, 0, 2]
    finally:
        envs.close()


def test_a_reset_that_hangs_again_and_again_is_given_up() -> None:
    envs = ProcessVectorEnv([misbehaving, hanging_at_reset], workers=2, time_limit=0.5)
    try:
        with pytest.raises(WorkerError, match=r"gave no answer within 0\.5 seconds, 3 times in a row") as caught:
            envs.reset(seed=0)
        assert caught.value.slot == 1
    finally:
        envs.close()


@pytest.mark.parametrize("limit", [0, -1.0, float("nan")])
def test_a_time_limit_is_a_positive_number(limit: float) -> None:
    with pytest.raises(InvalidOptionError, match="positive number of seconds"):
        ProcessVectorEnv([misbehaving], time_limit=limit)


def test_large_actions_and_observations_pass() -> None:
    envs = ProcessVectorEnv([misbehaving] * 2, workers=1)
    try:
        envs.reset(seed=0)
        large = "🙂" * 2**20
        assert envs.step([f"echo {large}"] * 2)[0] == (large, large)
    finally:
        envs.close()


@pytest.mark.usefixtures("ctrl_c")
def test_a_worker_that_hangs_does_not_outlive_close(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textagent_gym.vector.workers._SECONDS_TO_END", 0.2)
    envs = ProcessVectorEnv([misbehaving], workers=1)
    envs.reset(seed=0)
    pids = [pid for pid in envs.worker_pids if pid]
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        envs.step(["hang"])
    envs.close()
    assert gone_within(1, pids)


def test_an_environment_that_is_forgotten_leaves_no_process_behind() -> None:
    envs = make_vec("lights/Lights-v0", 2, kind="process", workers=2)
    pids = [pid for pid in envs.worker_pids if pid]
    del envs
    assert gone_within(5, pids)


def test_an_unknown_way_to_start_processes_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="forkserver"):
        ProcessVectorEnv([misbehaving], context="teleport")


SCRIPT = """
    import signal
    import sys
    sys.path[:0] = {paths!r}
    from tests.vector.worlds import misbehaving
    from textagent_gym.vector import ProcessVectorEnv, ReadyFirstPool

    if __name__ == "__main__":
        signal.signal(signal.SIGINT, signal.default_int_handler)  # As in a terminal.
        envs = ProcessVectorEnv([misbehaving] * 2, workers=2)
        pool = ReadyFirstPool([misbehaving] * 2)
        print(*envs.worker_pids, *pool.worker_pids, flush=True)
        envs.reset(seed=0)
        pool.reset(0)
        pool.recv()
        pool.send(0, {action!r})
        print("acting", flush=True)
        {then}
"""


UNGUARDED = """
    import sys
    sys.path[:0] = {paths!r}
    from textagent_gym.vector import ProcessVectorEnv, make_vec
    envs = make_vec("CartPole-v1", 2, kind="process", workers=2)
"""


def test_a_script_without_a_main_guard_is_told_so_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    file.write_text(textwrap.dedent(UNGUARDED).format(paths=[str(ROOT)]), encoding="utf-8")
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1
    assert 'under `if __name__ == "__main__":`' in done.stderr.splitlines()[-1]


def start_script(folder: Path, action: str, then: str) -> tuple[subprocess.Popen[str], list[int]]:
    paths = [str(ROOT), str(ROOT / "tests" / "third_party" / "lights")]
    file = folder / "script.py"
    file.write_text(textwrap.dedent(SCRIPT).format(paths=paths, action=action, then=then), encoding="utf-8")
    # A session of its own, as a terminal gives it: Ctrl-C reaches every process of the group.
    process = subprocess.Popen(
        [sys.executable, str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    pids = [int(pid) for pid in process.stdout.readline().split()]
    assert process.stdout.readline().strip() == "acting"
    assert len(pids) == 4
    return process, pids


def group_is_empty(group: int) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if not any(running_in(group, stat) for stat in Path("/proc").glob("[0-9]*/stat")):
            return True
        time.sleep(0.05)
    return False


def running_in(group: int, stat: Path) -> bool:
    try:
        state, _, of_group = stat.read_text(encoding="utf-8").rpartition(")")[2].split()[:3]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z" and int(of_group) == group


def test_ctrl_c_leaves_no_process_behind(tmp_path: Path) -> None:
    process, pids = start_script(tmp_path, "look", "envs.step(['sleep 0.5', 'sleep 0.5'] ); envs.step(['hang'] * 2)")
    time.sleep(1.0)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert errors.count("Traceback") == 1  # The user's own, none of the workers'.
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert gone_within(10, pids)
    assert group_is_empty(process.pid)


def test_a_script_that_ends_without_closing_leaves_no_process_behind(tmp_path: Path) -> None:
    process, pids = start_script(tmp_path, "look", "pass")
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, "")
    assert gone_within(5, pids)
    assert group_is_empty(process.pid)


def test_workers_end_when_their_parent_is_killed_even_while_they_act(tmp_path: Path) -> None:
    process, pids = start_script(tmp_path, "hang", "envs.step(['hang', 'hang'])")
    process.kill()
    process.communicate(timeout=30)
    assert gone_within(5, pids)
    assert group_is_empty(process.pid)
