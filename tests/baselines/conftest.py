"""A tiny policy for the trainers, and the small world of the third-party package as their environment."""

from __future__ import annotations

import json
from pathlib import Path

import gymnasium
import pytest
import torch

from baselines import sft
from baselines.policy.models import make_tiny_policy
from textagent_gym.evaluation import demonstrate


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def demos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    env = gymnasium.make("lights/Lights-v0", switches=2)
    path = tmp_path_factory.mktemp("demos") / "demos.jsonl"
    lines = [json.dumps(demonstrate(env, {"task_index": index})) for index in range(40)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory, demos: Path) -> Path:
    texts = [m["content"] for line in demos.read_text().splitlines() for m in json.loads(line)["messages"]]
    folder = tmp_path_factory.mktemp("tiny")
    make_tiny_policy(folder, texts, hidden=32, layers=2, heads=2)
    return folder


@pytest.fixture(scope="session")
def talker(tiny: Path, demos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy that knows how to speak of switches, and not yet which one to press."""
    out = tmp_path_factory.mktemp("talker") / "sft"
    sft.run(sft.Config(model=str(tiny), demos=demos, out=out, epochs=8, batch_size=8, learning_rate=5e-3))
    return out
