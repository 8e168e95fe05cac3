"""What the tests and the examples in docstrings share: a cache of their own, and a world of another package."""

from __future__ import annotations

import os
import sys
import time
from datetime import UTC, datetime
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Tests assert what is done and not how fast: a machine may be busy.
settings.register_profile("any speed", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any speed")

# Its examples would be looked for, and it is imported by vLLM's own processes.
collect_ignore = [] if find_spec("vllm") else ["baselines/rollout/vllm_worker.py"]

TESTS = Path(__file__).parent / "tests"
LIGHTS = TESTS / "third_party" / "lights"
DAY = "TEXTAGENT_TESTS_DAY"
"""Environment variable: number of the day, which decides what is tested first, or at all, where time is short."""
FIRST = (TESTS / "evaluation" / "test_certificates_of_ours.py", TESTS / "leaderboard" / "test_entries.py")
"""Slow tests that come first, and fail where there is no time for them: the documentation says that CI has seen them.
Of all others, the order is the day's."""


def pytest_configure(config: pytest.Config) -> None:
    # The tests make games of their own and leave the user's cache alone; worker processes inherit the folder.
    os.environ.setdefault(DAY, str(datetime.now(UTC).toordinal()))
    os.environ.setdefault("TEXTAGENT_CACHE", str(Path(__file__).parent / ".pytest_cache" / "games"))
    sys.path.insert(0, str(LIGHTS))
    import gymnasium
    import lights

    if "lights/Lights-v0" not in gymnasium.registry:
        lights.register()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # Engines of containers and clusters take their time.
    for item in items:
        if isinstance(item, pytest.Function) and any(
            item.path.is_relative_to(TESTS / folder) for folder in ("sandbox", "domains/swe")
        ):
            values = item.callspec.params.values() if hasattr(item, "callspec") else ()
            kinds = {value for value in values if isinstance(value, str)}
            if "container_image" in item.fixturenames or not kinds.isdisjoint(("docker", "podman", "ray")):
                item.add_marker(pytest.mark.slow)
    if config.getoption("markexpr") == "slow":
        order = {path: place for place, path in enumerate(FIRST)}
        drawn = {item.path: sha256(f"{os.environ[DAY]} {item.path.name}".encode()).hexdigest() for item in items}
        items.sort(key=lambda item: (order.get(item.path, len(order)), drawn[item.path], item.path))
        for item in items:
            if item.path not in FIRST:  # A file's tests share what it sets up, so one process has them all.
                item.add_marker(pytest.mark.xdist_group(str(item.path.relative_to(config.rootpath))))


def pytest_runtest_setup(item: pytest.Item) -> None:
    # CI has a time limit, and machines differ: there, tests that would begin after this moment are left out.
    if time.time() > float(os.environ.get("TEXTAGENT_TESTS_UNTIL", "inf")):
        if item.path in FIRST and item.get_closest_marker("slow") is not None:
            pytest.fail("CI's time for tests is over, and the documentation says that CI has seen this one")
        pytest.skip("CI's time for tests is over")
