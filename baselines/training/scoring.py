"""Log-probabilities of conversations under a model that does not learn meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from baselines.credit.losses import sampled_log_probs
from baselines.credit.rollouts import Array
from baselines.rollout.trajectory import Trajectory, collate, rows_of


@torch.no_grad()
def read_log_probs(
    model: Any, trajectories: Sequence[Trajectory], temperature: float, microbatch: int, device: torch.device
) -> list[Array]:
    """Log-probability of every token of each episode given the tokens before it in its row.

    Args:
        model: causal language model, not wrapped for several processes.
        trajectories: the episodes.
        temperature: sampling temperature.
        microbatch: number of rows that go through the model at once.
        device: device that holds the model.

    Returns:
        per episode an array for `Trajectory.ids`, 0 for the first token of each row.
    """
    scores: list[list[Array]] = [[] for _ in trajectories]
    rows = rows_of(trajectories)
    for start in range(0, len(rows), microbatch):
        some = rows[start : start + microbatch]
        batch = collate(some).to(device)
        logits = model(input_ids=batch.ids, attention_mask=batch.attention_mask, use_cache=False).logits
        numbers = sampled_log_probs(logits, batch.ids, temperature).double().cpu().numpy()
        for row, line in zip(some, numbers, strict=True):
            scores[row.episode].append(line[: len(row.ids)])
    return [np.concatenate(lines) for lines in scores]


def sampling_log_probs(trajectories: Sequence[Trajectory]) -> list[Array]:
    """Log-probability of every sampled token of each episode as the generator gave it, 0 for the others."""
    return [np.concatenate([(0.0,) * len(turn.prompt) + turn.log_probs for turn in t.turns]) for t in trajectories]
