"""What `torch.compile` and bfloat16 do to the time of an update on a CPU.

    python -m benchmarks.update_options
    python -m benchmarks.update_options --hidden 512 --layers 12 --tokens 512

Times are those of the processor, of one thread, beside plain float32 in the same run. Each update reads conversations
of other lengths, as training does.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import tyro
from transformers import AutoModelForCausalLM

from baselines.rollout.trajectory import Batch, Row, Turn, collate
from baselines.training.scoring import batch_log_probs
from benchmarks.memory import shape

VOCABULARY = 1_024
SAMPLED = 0.125
CASES = ("float32", "compiled", "bfloat16")


@dataclass(frozen=True)
class Config:
    """What is measured."""

    hidden: int = 64
    """Width of the model."""
    layers: int = 2
    """Number of layers."""
    tokens: int = 2_048
    """Number of tokens of an update, in four conversations."""
    updates: int = 8
    """Number of updates; the second half is after warm-up."""


def measure(config: Config, case: str) -> list[float]:
    """Seconds of the processor for each update."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(shape(config.hidden, config.layers, VOCABULARY), dtype=torch.float32)
    if case == "compiled":
        model.forward = torch.compile(model.forward)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    random = np.random.default_rng(0)
    seconds = []
    for _ in range(config.updates):
        batch = _batch(config.tokens // 4, random)
        started = time.process_time()
        with torch.autocast("cpu", torch.bfloat16, enabled=case == "bfloat16"):
            log_probs = batch_log_probs(model, batch, 1.0)
        (-log_probs.sum() / batch.action_mask.sum()).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()
        seconds.append(time.process_time() - started)
    return seconds


def _batch(length: int, random: np.random.Generator) -> Batch:
    rows = []
    for number in range(4):
        read = int(length * random.uniform(0.6, 1.0) * (1 - SAMPLED))
        sampled = max(1, int(read * SAMPLED))
        prompt, action = (tuple(random.integers(1, VOCABULARY, size).tolist()) for size in (read, sampled))
        rows.append(Row(number, (Turn(prompt, action, (0.0,) * sampled, 0.0, "", "", fresh=True),)))
    return collate(rows, "turn")


def main(config: Config) -> None:
    """Print a row per way of computing."""
    torch.set_num_threads(1)
    weights = sum(
        weight.numel()
        for weight in AutoModelForCausalLM.from_config(shape(config.hidden, config.layers, VOCABULARY)).parameters()
    )
    print(f"{weights / 1e6:.1f}M weights, {config.tokens} tokens per update, one thread")
    print("| | first update (s) | later updates (s) | to float32 |")
    print("| --- | --- | --- | --- |")
    plain = 0.0
    for case in CASES:
        seconds: Any = measure(config, case)
        later = float(np.median(seconds[len(seconds) // 2 :]))
        plain = plain or later
        print(f"| {case} | {seconds[0]:.2f} | {later:.3f} | {later / plain:.2f} |", flush=True)


if __name__ == "__main__":
    main(tyro.cli(Config))
