"""Log-probabilities of the sampled tokens of conversations.

Most tokens of a conversation are read, not sampled, and logits are the largest part of a small model's work and of a
large vocabulary's memory. So the LM head is applied only to the hidden states that tokens were sampled from:

    conversation   prompt prompt action action prompt action
    hidden states           x      x             x             before each sampled token
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from accelerate.utils import extract_model_from_parallel

from baselines.credit.losses import token_log_probs
from baselines.credit.rollouts import Array
from baselines.policy.last_layer import last_layer_for
from baselines.policy.microbatches import pack
from baselines.rollout.trajectory import Batch, Trajectory, collate, rows_of
from baselines.training.openings import Opened, read_openings


def batch_log_probs(model: Any, batch: Batch, temperature: float, opened: Opened | None = None) -> torch.Tensor:
    """Log-probability of each sampled token given the tokens before it; 0 for the others.

    Models whose LM head is not known to `transformers` (`get_output_embeddings`) compute the logits of all tokens.

    Args:
        model: causal language model, or a wrapper around it for several processes.
        batch: the conversations; no row begins with a sampled token.
        temperature: sampling temperature.
        opened: what the model has read of the rows already; it reads the rest.

    Returns:
        shape (batch, time).
    """
    rows, columns = batch.action_mask.nonzero(as_tuple=True)
    # Rows are padded on the right, where no token of theirs looks: without a mask attention is causal, which is faster.
    ids, before, arguments = batch.ids, columns - 1, {"use_cache": False}
    if opened is not None:
        ids, arguments = _rest(batch, opened)
        before = before - opened.lengths[rows]
    with _head_reads_only(model, ids.shape, rows, before) as selected, last_layer_for(model, rows, before):
        logits = model(input_ids=ids, **arguments).logits
    logits = logits[0] if selected else logits[rows, before]
    chosen = token_log_probs(logits, batch.ids[rows, columns], temperature)
    return torch.zeros_like(batch.action_mask).index_put((rows, columns), chosen)


def _rest(batch: Batch, opened: Opened) -> tuple[torch.Tensor, dict[str, Any]]:
    """The ids after each row's opening, shape (batch, rest), and the model's other arguments."""
    lengths = opened.lengths[:, None]
    width = int((batch.attention_mask.sum(1, keepdim=True) - lengths).max())
    positions = (lengths + torch.arange(width, device=lengths.device)).clamp(max=batch.ids.shape[1] - 1)
    ids = batch.ids.gather(1, positions)
    past = torch.arange(opened.cache.get_seq_length(), device=lengths.device) < lengths
    return ids, {
        "attention_mask": torch.cat((past.long(), torch.ones_like(ids)), 1),
        "position_ids": positions,
        "past_key_values": opened.cache,
        "use_cache": True,
    }


@contextmanager
def _head_reads_only(
    model: Any, shape: torch.Size, rows: torch.Tensor, columns: torch.Tensor
) -> Iterator[list[torch.Tensor]]:
    """Within the block, logits are those of some tokens, of shape (1, tokens, vocabulary), if the list is not empty."""
    selected: list[torch.Tensor] = []

    def select(_: Any, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...] | None:
        if inputs[0].shape[:-1] != shape:
            return None
        selected.append(inputs[0][rows, columns][None])
        return (selected[0], *inputs[1:])

    head = extract_model_from_parallel(model).get_output_embeddings()
    if head is None:
        yield selected
        return
    handle = head.register_forward_pre_hook(select)
    try:
        yield selected
    finally:
        handle.remove()


@torch.no_grad()
def read_log_probs(
    model: Any, trajectories: Sequence[Trajectory], temperature: float, microbatch: int, device: torch.device
) -> list[Array]:
    """Log-probability of every sampled token of each episode given the tokens before it in its row.

    Args:
        model: causal language model, not wrapped for several processes.
        trajectories: the episodes.
        temperature: sampling temperature.
        microbatch: number of tokens that go through the model at once.
        device: device that holds the model.

    Returns:
        per episode an array for `Trajectory.ids`, 0 for tokens that were not sampled.
    """
    scores = [np.zeros(len(trajectory.ids)) for trajectory in trajectories]
    rows = rows_of(trajectories)
    openings = read_openings(model, rows, microbatch, device)
    for places in pack([len(row.ids) - openings.length(row) for row in rows], microbatch - openings.columns):
        some = [rows[place] for place in places]
        opened = openings.before(some, len(some))
        numbers = batch_log_probs(model, collate(some).to(device), temperature, opened).double().cpu().numpy()
        for row, line in zip(some, numbers, strict=True):
            end = row.start + len(row.ids)
            scores[row.episode][row.start : end] = line[: len(row.ids)]
    return scores


def sampling_log_probs(trajectories: Sequence[Trajectory]) -> list[Array]:
    """Log-probability of every sampled token of each episode as the generator gave it, 0 for the others."""
    return [np.concatenate([(0.0,) * len(turn.prompt) + turn.log_probs for turn in t.turns]) for t in trajectories]
