"""Log-probabilities of conversations under a model that does not learn meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from baselines.losses import sampled_log_probs
from baselines.rollouts import Array
from baselines.trajectory import Trajectory, collate


@torch.no_grad()
def read_log_probs(
    model: Any, trajectories: Sequence[Trajectory], temperature: float, microbatch: int, device: torch.device
) -> list[Array]:
    """Log-probability of every token of each conversation given the tokens before it.

    Args:
        model: causal language model, not wrapped for several processes.
        trajectories: the episodes.
        temperature: sampling temperature.
        microbatch: number of episodes that go through the model at once.
        device: device that holds the model.

    Returns:
        per episode an array of the length of its conversation, 0 for the first token.
    """
    scores: list[Array] = []
    for start in range(0, len(trajectories), microbatch):
        some = trajectories[start : start + microbatch]
        batch = collate(some).to(device)
        logits = model(input_ids=batch.ids, attention_mask=batch.attention_mask, use_cache=False).logits
        numbers = sampled_log_probs(logits, batch.ids, temperature).double().cpu().numpy()
        scores += [row[: len(trajectory.ids)] for row, trajectory in zip(numbers, some, strict=True)]
    return scores


def sampling_log_probs(trajectories: Sequence[Trajectory]) -> list[Array]:
    """Log-probability of every sampled token of each conversation as the generator gave it, 0 for the others."""
    return [np.concatenate([(0.0,) * len(turn.prompt) + turn.log_probs for turn in t.turns]) for t in trajectories]
