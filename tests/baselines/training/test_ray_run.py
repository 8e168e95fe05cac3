"""A run whose environments live on a Ray cluster."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import lights
import pytest

from baselines import grpo
from tests.baselines.runs import ROOT, curve, lines, small_run
from textagent_gym.ray_cluster import join_cluster, kept_sigterm

ray = pytest.importorskip("ray")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A cluster with two CPUs, whose workers find the worlds of the tests."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(Path(lights.__file__).parent)]))
    ray.shutdown()  # Another test of this process may have joined another cluster.
    with kept_sigterm():
        ray.init(
            address="local",
            num_cpus=2,
            object_store_memory=80 << 20,
            include_dashboard=False,
            log_to_driver=False,
            configure_logging=False,
        )
    yield
    ray.shutdown()


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_a_run_on_a_cluster_has_the_curve_and_the_evaluations_of_one_with_threads(tiny: Path, tmp_path: Path) -> None:
    changes = {"iterations": 2, "learning_rate": 1e-3, "kl": 0.1, "eval_every": 1, "eval_tasks": 3}
    for pool in ("ray", "thread"):
        grpo.run(small_run(grpo.Config, tiny, tmp_path / pool, pool=pool, patience=math.inf, **changes))
    assert curve(tmp_path / "ray") == curve(tmp_path / "thread")
    assert len(curve(tmp_path / "ray")) == 2
    there, here = (lines(tmp_path / pool / "evaluations.jsonl") for pool in ("ray", "thread"))
    for line in (*there, *here):
        del line["seconds"]
    assert there == here
    assert len(there) == 3


@pytest.mark.slow
def test_sigterm_does_after_joining_a_cluster_what_it_did_before() -> None:
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    ray.shutdown()
    try:
        mine = signal.getsignal(signal.SIGTERM)
        join_cluster()
        assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, before)
        ray.shutdown()
