"""Minigrid for the tests, and upstream's code where it is."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _minigrid() -> None:
    """Without Minigrid nothing here can run; where tests run on their own, it must be there."""
    if find_spec("minigrid") is None and not os.environ.get("CI"):
        pytest.skip("minigrid is not installed: pip install 'textagent-gym[babyai]'")


@pytest.fixture(scope="session")
def upstream_folder() -> Path:
    """The folder `agentenv-babyai` of AgentGym."""
    folder = os.environ.get("BABYAI_UPSTREAM")
    if not folder:
        pytest.skip("BABYAI_UPSTREAM must name the folder agentenv-babyai of AgentGym")
    return Path(folder)
