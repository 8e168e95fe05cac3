"""Recipes for the tests: upstream's, where they are, and the package's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def upstream_folder() -> Path:
    """The folder `agentenv-textcraft` of AgentGym."""
    folder = os.environ.get("TEXTCRAFT_UPSTREAM")
    if not folder:
        pytest.skip("TEXTCRAFT_UPSTREAM must name the folder agentenv-textcraft of AgentGym")
    return Path(folder)
