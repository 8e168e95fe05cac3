"""A simulator for the tests, and why there is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from textagent_gym.domains.scienceworld import stop_idle


@pytest.fixture(scope="session")
def simulator() -> Iterator[None]:
    """Whatever needs Java; idle simulators pass from test to test."""
    missing = [name for name in ("scienceworld", "py4j") if find_spec(name) is None]
    if not missing and shutil.which("java") is None:
        missing = ["java"]
    if missing and not os.environ.get("TEXTAGENT_TEST_JAVA"):
        pytest.skip(f"{missing[0]} is not installed")
    yield
    stop_idle()
