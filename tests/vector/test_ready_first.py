"""The pool that answers in the order in which worlds are done."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError

from tests.vector.worlds import gone_within, misbehaving
from textagent_gym.errors import InvalidOptionError, WorkerError
from textagent_gym.vector import ReadyFirstPool, env_maker

HARD = {"task": "Lights/v1/s6/train/3"}
KINDS = ("process", "thread")


def begin(pool: ReadyFirstPool) -> None:
    for slot in range(pool.num_envs):
        pool.reset(slot, seed=slot, options=HARD)
    assert {pool.recv().slot for _ in range(pool.num_envs)} == set(range(pool.num_envs))


@pytest.mark.parametrize("kind", KINDS)
def test_the_slowest_world_stalls_nobody(kind: str, tmp_path: Path) -> None:
    with ReadyFirstPool([misbehaving] * 3, kind=kind) as pool:
        begin(pool)
        pool.send(0, f"wait {tmp_path / 'go'}")
        pool.send(1, "look")
        pool.send(2, "look")
        turns: Counter[int] = Counter()
        while sum(turns.values()) < 200:
            received = pool.recv()
            turns[received.slot] += 1
            if turns[received.slot] < 100:
                pool.send(received.slot, "look")
        assert turns == {1: 100, 2: 100}
        assert pool.pending == {0}
        (tmp_path / "go").touch()
        assert pool.recv().slot == 0


@pytest.mark.parametrize("kind", KINDS)
def test_its_episodes_are_those_of_the_environment_alone(kind: str) -> None:
    make = env_maker("lights/Lights-v0", reward_density="dense", infos=("oracle_action",))
    with ReadyFirstPool([make] * 4, kind=kind, workers=2) as pool:
        for slot in range(4):
            pool.reset(slot, seed=slot)
        returns = dict.fromkeys(range(4), 0.0)
        records: dict[int, list[object]] = {slot: [] for slot in range(4)}
        open_slots = set(range(4))
        while open_slots:
            received = pool.recv()
            returns[received.slot] += received.reward
            records[received.slot].append((received.observation, received.reward, received.info))
            if received.terminated or received.truncated:
                open_slots.remove(received.slot)
            else:
                pool.send(received.slot, received.info["oracle_action"])
    assert list(returns.values()) == [1.0] * 4
    for slot, record in records.items():
        env = make()
        observation, info = env.reset(seed=slot)
        alone: list[object] = [(observation, 0.0, info)]
        while not info["success"]:
            observation, reward, _, _, info = env.step(info["oracle_action"])
            alone.append((observation, reward, info))
        assert record == alone


def test_a_killed_worker_is_replaced_and_the_others_go_on() -> None:
    with ReadyFirstPool([misbehaving] * 3) as pool:
        begin(pool)
        pids = pool.worker_pids
        pool.send(0, "sleep 60")
        pool.send(1, "sleep 0.3")
        os.kill(pids[0], signal.SIGKILL)
        os.kill(pids[2], signal.SIGKILL)  # An idle one: nobody is told before its environment is asked.
        first, second = pool.recv(), pool.recv()
        assert (first.slot, first.truncated, first.reward) == (0, True, 0.0)
        assert first.info["broken"] == "its worker died (exit code -9)"
        assert (second.slot, second.truncated, second.info["turn"]) == (1, False, 1)
        pool.send(2, "look")
        third = pool.recv()
        assert (third.slot, third.terminated, third.truncated, third.reward) == (2, False, True, 0.0)
        assert third.info["broken"]
        assert third.info["success"] is False
        begin(pool)
        for slot in range(3):
            pool.send(slot, "press red")
        answers = [pool.recv() for _ in range(3)]
        assert not any("broken" in answer.info for answer in answers)
        pids += pool.worker_pids
    assert gone_within(5, [pid for pid in pids if pid])


@pytest.mark.parametrize("action", ["look", "press black"], ids=["truncated", "terminated"])
def test_an_episode_that_had_ended_is_not_broken_by_the_death_of_its_worker(action: str) -> None:
    with ReadyFirstPool([env_maker("lights/Lights-v0", max_turns=1)]) as pool:
        pool.reset(0, seed=0)
        pool.recv()
        pool.send(0, action)
        last = pool.recv()
        assert (last.truncated, last.terminated) == (action == "look", action != "look")
        assert pool.worker_pids[0] is not None
        os.kill(pool.worker_pids[0], signal.SIGKILL)
        pool.send(0, "look")
        with pytest.raises(WorkerError, match="died"):
            pool.recv(timeout=30)


def test_environments_that_share_a_killed_worker_are_all_truncated() -> None:
    with ReadyFirstPool([misbehaving] * 4, workers=2) as pool:
        begin(pool)
        pool.send(0, "die")
        pool.send(2, "look")
        answers = {answer.slot: answer for answer in (pool.recv(), pool.recv())}
        assert (answers[0].truncated, answers[2].truncated) == (True, False)
        pool.send(1, "press red")
        assert pool.recv().info["broken"]
        pool.send(3, "press red")
        assert not pool.recv().truncated


@pytest.mark.parametrize("kind", KINDS)
def test_a_restarted_worker_breaks_its_episodes_and_takes_new_ones(kind: str) -> None:
    with ReadyFirstPool([misbehaving] * 3, kind=kind, workers=2) as pool:  # Environment 0 alone, 1 and 2 together.
        begin(pool)
        pids = pool.worker_pids
        pool.send(1, "hang")
        with pytest.raises(TimeoutError):
            pool.recv(timeout=0.2)
        pool.restart(1)
        hung = pool.recv(timeout=30)
        assert (hung.slot, hung.truncated, hung.terminated, hung.reward) == (1, True, False, 0.0)
        assert hung.info["broken"] == "its worker was restarted"
        assert hung.info["success"] is False
        pool.send(2, "look")
        assert pool.recv(timeout=30).info["broken"] == "its worker was restarted"
        pool.send(0, "look")
        assert "broken" not in pool.recv(timeout=30).info
        assert pool.worker_pids[0] == pids[0]
        begin(pool)
        with pytest.raises(InvalidOptionError, match="from 0 to 2"):
            pool.restart(3)
    with pytest.raises(ClosedEnvironmentError):
        pool.restart(0)


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_that_takes_too_long_is_a_broken_episode(kind: str) -> None:
    with ReadyFirstPool([misbehaving] * 2, kind=kind, time_limit=1.5) as pool:
        begin(pool)
        pool.send(0, "hang")
        pool.send(1, "look")
        answers = {answer.slot: answer for answer in (pool.recv(timeout=30), pool.recv(timeout=30))}
        assert answers[0].truncated
        assert answers[0].info["broken"] == "its worker gave no answer within 1.5 seconds"
        assert "broken" not in answers[1].info
        begin(pool)


def test_an_answer_in_time_counts_even_when_it_is_fetched_late() -> None:
    with ReadyFirstPool([misbehaving], time_limit=1.0) as pool:
        begin(pool)
        pool.send(0, "look")
        time.sleep(1.5)
        assert not pool.recv(timeout=30).truncated


@pytest.mark.usefixtures("ctrl_c")
def test_a_call_that_was_interrupted_leaves_no_stale_answers() -> None:
    with ReadyFirstPool([misbehaving] * 2) as pool:
        begin(pool)
        pool.send(1, "look")
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            pool.call(0, "step", "hang")
        pool.reset(0, seed=0, options=HARD)
        answers = {answer.slot: answer for answer in (pool.recv(timeout=30), pool.recv(timeout=30))}
        assert answers[0].observation.startswith("Turn on all 6 lights.")
        assert answers[1].info["turn"] == 1


def test_a_reset_survives_the_death_of_its_worker() -> None:
    with ReadyFirstPool([misbehaving]) as pool:
        begin(pool)
        os.kill(pool.worker_pids[0], signal.SIGKILL)
        pool.reset(0, seed=1, options=HARD)
        assert pool.recv().observation.startswith("Turn on all 6 lights.")


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_world_raises_comes_out_of_recv_and_the_pool_goes_on(kind: str) -> None:
    with ReadyFirstPool([misbehaving] * 2, kind=kind) as pool:
        begin(pool)
        pool.send(1, "raise")
        with pytest.raises(LookupError, match="hole") as caught:
            pool.recv()
        assert isinstance(caught.value.__cause__, WorkerError)
        assert caught.value.__cause__.slot == 1
        assert pool.pending == frozenset()
        begin(pool)


@pytest.mark.parametrize("kind", KINDS)
def test_methods_are_called_without_losing_what_others_answer(kind: str) -> None:
    with ReadyFirstPool([misbehaving] * 2, kind=kind) as pool:
        begin(pool)
        pool.send(1, "press red")
        token = pool.call(0, "snapshot")
        plan = pool.call(0, "oracle")
        pool.send(0, plan[0])
        assert {pool.recv().slot, pool.recv().slot} == {0, 1}
        pool.call(0, "restore", token)
        assert pool.call(0, "oracle") == plan
        assert pool.call(0, "max_turns") == 1000
        with pytest.raises(AttributeError):
            pool.call(0, "no_such_thing")


def test_a_call_whose_worker_dies_says_so() -> None:
    with ReadyFirstPool([misbehaving]) as pool:
        begin(pool)
        os.kill(pool.worker_pids[0], signal.SIGKILL)
        with pytest.raises(WorkerError, match="died"):
            pool.call(0, "oracle")
        begin(pool)


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_that_takes_too_long_says_so_and_its_environment_is_replaced(kind: str) -> None:
    with ReadyFirstPool([misbehaving] * 2, kind=kind) as pool:
        begin(pool)
        pool.send(1, "look")
        started = time.monotonic()
        with pytest.raises(WorkerError, match=r"environment 0 has not answered 'step' within 0\.5 seconds") as caught:
            pool.call(0, "step", "sleep 20", timeout=0.5)
        assert time.monotonic() - started < 15
        assert caught.value.slot == 0
        pool.reset(0, seed=0, options=HARD)
        answers = {answer.slot: answer for answer in (pool.recv(timeout=30), pool.recv(timeout=30))}
        assert answers[0].observation.startswith("Turn on all 6 lights.")
        assert answers[1].info["turn"] == 1


def test_an_infinite_time_limit_is_none() -> None:
    with ReadyFirstPool([misbehaving], time_limit=math.inf) as pool:
        begin(pool)
        pool.send(0, "look")
        assert pool.recv(timeout=math.inf).info["turn"] == 1
        assert pool.call(0, "max_turns", timeout=math.inf) == 1000


@pytest.mark.parametrize("kind", KINDS)
def test_calls_out_of_order_say_so(kind: str) -> None:
    with ReadyFirstPool([misbehaving] * 2, kind=kind) as pool:
        with pytest.raises(NoAsyncCallError):
            pool.recv()
        begin(pool)
        pool.send(0, "sleep 0.5")
        with pytest.raises(AlreadyPendingCallError):
            pool.send(0, "look")
        with pytest.raises(AlreadyPendingCallError):
            pool.call(0, "oracle")
        with pytest.raises(TimeoutError, match=r"1 environments .* within 0.05 seconds"):
            pool.recv(timeout=0.05)
        assert pool.recv(timeout=30).slot == 0
        with pytest.raises(InvalidOptionError, match="from 0 to 1"):
            pool.send(2, "look")
    with pytest.raises(ClosedEnvironmentError):
        pool.reset(0)


def test_many_large_messages_pass_both_ways_at_once() -> None:
    # Both sides write more than a pipe holds: neither may wait for the other to read first.
    with ReadyFirstPool([misbehaving] * 6, workers=2) as pool:
        begin(pool)
        large = "x" * 2**21
        for slot in range(6):
            pool.send(slot, f"echo {large}")
        for _ in range(30):
            received = pool.recv()
            assert received.observation == large
            pool.send(received.slot, f"echo {large}")


def test_an_action_that_cannot_be_sent_is_refused_at_once_even_while_its_worker_is_busy() -> None:
    with ReadyFirstPool([misbehaving] * 2, workers=1) as pool:
        begin(pool)
        pool.send(0, "sleep 0.3")
        with pytest.raises(TypeError, match="pickle"):
            pool.send(1, threading.Lock())
        pool.send(1, "look")
        assert {pool.recv().info["turn"], pool.recv().info["turn"]} == {1}


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="thread"):
        ReadyFirstPool([misbehaving], kind="fiber")
