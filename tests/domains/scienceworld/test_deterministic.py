"""Equal actions have equal results, in every process and whatever was played before."""

from __future__ import annotations

import random

import pytest

from textagent_gym.domains.scienceworld.server import Server

pytestmark = [pytest.mark.usefixtures("simulator"), pytest.mark.slow]


def played(simulator: Server, task: str, variation: int, steps: int) -> list[object]:
    """Valid actions, texts and scores of a random walk."""
    draw = random.Random(task)
    simulator.load(task, variation, "")
    told: list[object] = [simulator.step("look around")]
    for _ in range(steps):
        valid = [action for action in sorted(simulator.valid_actions()) if "focus" not in action]
        told += [valid, simulator.step(draw.choice(valid)), simulator.score()]
    return [*told, *(simulator.step(f"look in {room}") for room in ("hallway", "kitchen", "greenhouse"))]


def test_another_process_with_another_past_says_the_same() -> None:
    one, other = Server(), Server()
    played(other, "melt", 3, 3)
    for task in ("use-thermometer", "grow-plant"):
        assert played(one, task, 1, 6) == played(other, task, 1, 6)
    one.stop()
    other.stop()
