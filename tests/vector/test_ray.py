"""Workers on the machines of a Ray cluster: two nodes, each with processes of its own, on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import lights
import pytest
from gymnasium import Wrapper

from tests.vector.worlds import misbehaving, raising_at_birth
from textagent_gym.errors import WorkerError
from textagent_gym.ray_cluster import cluster_cpus, kept_sigterm
from textagent_gym.vector import ReadyFirstPool, Received, env_maker, transports

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
HARD = {"task": "Lights/v1/s6/train/3"}


class Placed(Wrapper[str, str, str, str]):
    """Tells on which node it lives."""

    def reset(self, **asked: Any) -> tuple[str, dict[str, Any]]:
        observation, info = self.env.reset(**asked)
        return observation, {**info, "node": ray.get_runtime_context().get_node_id()}


def placed() -> gymnasium.Env[str, str]:
    return Placed(misbehaving())


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes with two CPUs each; the driver lives on the first one."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch, kept_sigterm():  # Every node that a test adds replaces it, too.
        # As on a real cluster, the packages of the worlds are installed on every machine.
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(Path(lights.__file__).parent)]))
        node = {"num_cpus": 2, "object_store_memory": 80 << 20, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args=node)
        other = cluster.add_node(num_cpus=2, object_store_memory=80 << 20)
        ray.shutdown()  # Another test of this process may have joined another cluster.
        ray.init(address=cluster.address, log_to_driver=False, configure_logging=False)
        cluster.wait_for_nodes()
        cluster.other = other
        yield cluster
        ray.shutdown()
        cluster.shutdown()


def play(pool: ReadyFirstPool, episodes: int) -> dict[int, list[tuple[Any, ...]]]:
    """What was answered in each episode, by its seed; the expert's first suggestion is what is done."""
    seeds = {slot: slot for slot in range(pool.num_envs)}
    for slot, seed in seeds.items():
        pool.reset(slot, seed=seed)
    answers: dict[int, list[tuple[Any, ...]]] = {seed: [] for seed in range(episodes)}
    while pool.pending:
        got = pool.recv()
        answers[seeds[got.slot]].append((got.observation, got.reward, got.terminated, got.truncated, got.info["turn"]))
        if got.terminated or got.truncated:
            seeds[got.slot] += pool.num_envs
            if seeds[got.slot] < episodes:
                pool.reset(got.slot, seed=seeds[got.slot])
        else:
            pool.send(got.slot, got.info["oracle_action"])
    return answers


def begin(pool: ReadyFirstPool) -> dict[int, Received]:
    for slot in range(pool.num_envs):
        pool.reset(slot, seed=slot, options=HARD)
    return {got.slot: got for got in (pool.recv(60) for _ in range(pool.num_envs))}


def test_its_episodes_are_those_of_this_process(cluster: Any) -> None:
    make = env_maker("lights/Lights-v0", infos=("oracle_action",), switches=3, max_turns=5)
    with ReadyFirstPool([make] * 6, kind="ray", workers=3) as there, ReadyFirstPool([make] * 6, kind="thread") as here:
        played = play(there, 12)
        assert sum(map(len, played.values())) > 24
        assert played == play(here, 12)


JOIN = """
from textagent_gym.ray_cluster import join_cluster
print(join_cluster().nodes()[0]["Alive"])
"""


def test_a_cluster_that_ended_on_this_machine_is_not_waited_for() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # The names of its sockets must be short.
        Path(folder, "ray").mkdir()
        Path(folder, "ray", "ray_current_cluster").write_text("127.0.0.1:9")  # As `ray start` leaves it there.
        environ = {**os.environ, "RAY_TMPDIR": folder}
        environ.pop("RAY_ADDRESS", None)
        ended = subprocess.run(
            [sys.executable, "-c", JOIN], check=False, env=environ, capture_output=True, text=True, timeout=120
        )
    assert ended.stdout.splitlines()[-1:] == ["True"], ended.stderr


def test_workers_are_spread_and_the_slowest_stalls_nobody(cluster: Any) -> None:
    assert cluster_cpus() == 4
    with ReadyFirstPool([placed] * 4, kind="ray") as pool:
        nodes = [answer.info["node"] for answer in begin(pool).values()]
        assert len(set(nodes)) == 2
        pool.send(0, "sleep 2")
        for slot in (1, 2, 3):
            pool.send(slot, "look")
        assert [pool.recv(30).slot for _ in range(4)][-1] == 0


def test_an_actor_that_dies_or_hangs_breaks_its_episode_alone(cluster: Any) -> None:
    with ReadyFirstPool([misbehaving] * 3, kind="ray", time_limit=10.0) as pool:
        begin(pool)
        for slot, action in enumerate(("die", "hang", "look")):
            pool.send(slot, action)
        answers = {got.slot: got for got in (pool.recv(60) for _ in range(3))}
        assert [answers[slot].truncated for slot in range(3)] == [True, True, False]
        assert answers[0].info["broken"].startswith("its worker died (The actor died")
        assert answers[1].info["broken"] == "its worker gave no answer within 10.0 seconds"
        assert {got.reward for got in answers.values()} == {0.0}
        assert all(got.info["turn"] == 0 for got in begin(pool).values())


def test_what_an_environment_raises_reaches_the_caller(cluster: Any) -> None:
    with ReadyFirstPool([misbehaving] * 2, kind="ray") as pool:
        begin(pool)
        pool.send(1, "raise")
        with pytest.raises(LookupError, match="the world has a hole") as caught:
            pool.recv(30)
        assert isinstance(caught.value.__cause__, WorkerError)
        assert caught.value.__cause__.slot == 1
    with pytest.raises(LookupError, match="no world here"):
        ReadyFirstPool([raising_at_birth], kind="ray")


def test_a_cluster_without_a_free_cpu_is_named(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transports, "_SECONDS_TO_PLACE", 3.0)
    with pytest.raises(WorkerError, match="no CPU to spare for a worker within 3 seconds"):
        ReadyFirstPool([misbehaving] * 5, kind="ray")


def test_a_machine_that_is_lost_breaks_its_episodes_and_another_takes_its_place(cluster: Any) -> None:
    lost = cluster.other
    with ReadyFirstPool([placed] * 3, kind="ray") as pool:  # One more than the CPUs of the machine that stays.
        there = {slot for slot, answer in begin(pool).items() if answer.info["node"] == lost.node_id}
        assert there
        for slot in range(3):
            pool.send(slot, "sleep 5")
        cluster.remove_node(lost, allow_graceful=False)
        answers = {got.slot: got for got in (pool.recv(90) for _ in range(3))}
        assert {slot for slot in range(3) if answers[slot].truncated} == there
        assert all("its worker died (" in answers[slot].info["broken"] for slot in there)
        cluster.add_node(num_cpus=2, object_store_memory=80 << 20)
        assert all(answer.info["node"] != lost.node_id for answer in begin(pool).values())
