"""Losses as pure functions over tensors of shape (batch, time). Each says which equation of which paper it is."""

from __future__ import annotations

import torch

from baselines.config import Aggregation


def sampled_log_probs(logits: torch.Tensor, ids: torch.Tensor, temperature: float = 1.0) -> torch.Tensor:
    """Log-probability of each token given the tokens before it; 0 for the first one.

    Args:
        logits: shape (batch, time, vocabulary).
        ids: shape (batch, time).
        temperature: sampling temperature of the tokens.

    Returns:
        shape (batch, time).
    """
    scaled = logits[:, :-1].float() / temperature
    chosen = scaled.gather(-1, ids[:, 1:, None]).squeeze(-1) - scaled.logsumexp(-1)
    return torch.nn.functional.pad(chosen, (1, 0))


def ppo_clip(
    log_probs: torch.Tensor,
    old_log_probs: torch.Tensor,
    advantages: torch.Tensor,
    *,
    clip_low: float = 0.2,
    clip_high: float | None = None,
) -> torch.Tensor:
    """-min(r A, clip(r, 1 - low, 1 + high) A) per token, with r = exp(log_probs - old_log_probs).

    Source: Schulman et al., 2017, "Proximal Policy Optimization" (arXiv 1707.06347), equation 7; different bounds below
    and above: Yu et al., 2025, "DAPO" (arXiv 2503.14476), equation 10.

    Args:
        log_probs, old_log_probs: shape (batch, time).
        advantages: shape (batch, time), or (batch, 1) for one per episode.
        clip_low: distance below 1 at which the ratio is clipped.
        clip_high: distance above 1 at which the ratio is clipped; the same as `clip_low` if not given.
    """
    ratio = (log_probs - old_log_probs).exp()
    bounded = ratio.clamp(1 - clip_low, 1 + (clip_low if clip_high is None else clip_high))
    return -torch.minimum(ratio * advantages, bounded * advantages)


def clipped(log_probs: torch.Tensor, old_log_probs: torch.Tensor, *, clip_low: float, clip_high: float) -> torch.Tensor:
    """1 per token whose probability ratio is outside the bounds of `ppo_clip`, else 0; a measurement, not a loss."""
    ratio = (log_probs - old_log_probs).detach().exp()
    return ((ratio < 1 - clip_low) | (ratio > 1 + clip_high)).float()


def kl_k3(log_probs: torch.Tensor, reference_log_probs: torch.Tensor) -> torch.Tensor:
    """Estimate of KL(policy || reference) per token: exp(d) - d - 1 with d = reference - policy; never negative.

    Source: Schulman, 2020, "Approximating KL Divergence" (the estimator k3).
    """
    difference = reference_log_probs - log_probs
    return difference.exp() - difference - 1


def aggregate(
    values: torch.Tensor, mask: torch.Tensor, how: Aggregation = "token", *, constant: float = 1.0
) -> torch.Tensor:
    """One number out of a value per token.

    Args:
        values, mask: shape (batch, time); only tokens with mask 1 count.
        how: "token" divides the sum by the number of tokens (DAPO, equation 8); "sequence" takes the mean of each
            sequence's mean (GRPO); "constant" divides each sequence's sum by `constant` (Dr. GRPO).
        constant: divisor of "constant".
    """
    values = values * mask
    if how == "token":
        return values.sum() / mask.sum().clamp(min=1)
    if how == "sequence":
        return (values.sum(1) / mask.sum(1).clamp(min=1)).mean()
    return (values.sum(1) / constant).mean()
