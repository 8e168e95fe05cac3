"""The policy that vLLM speaks with in the tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from baselines.policy.models import make_tiny_policy


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory, demos: Path) -> Path:
    texts = [m["content"] for line in demos.read_text().splitlines() for m in json.loads(line)["messages"]]
    folder = tmp_path_factory.mktemp("policy")
    make_tiny_policy(folder, texts, hidden=64, layers=2, heads=2)  # vLLM refuses heads smaller than 32.
    return folder
