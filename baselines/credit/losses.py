"""Losses as pure functions over tensors of shape (batch, time). Each says which equation of which paper it is.

What the tokens of an episode share (`gspo_ratio`, `episode_ratio`) is computed over the sampled tokens of a row, which
must be the whole episode; a memory that begins contexts anew is refused with these (`PolicyConfig.check_memory`).
"""

from __future__ import annotations

import torch

from baselines.credit.method import Forward, Losses
from baselines.settings.config import Aggregation, KLEstimator, PolicyConfig
from textagent_gym.errors import TextAgentError


class DivergedError(TextAgentError, ArithmeticError):
    """A loss or a gradient is not a finite number; the message says which."""


def token_log_probs(logits: torch.Tensor, ids: torch.Tensor, temperature: float = 1.0) -> torch.Tensor:
    """Log-probability of each token, from the logits that it was sampled from.

    Args:
        logits: shape (..., vocabulary).
        ids: shape (...).
        temperature: sampling temperature of the tokens.
    """
    scaled = logits.float() / temperature
    return scaled.gather(-1, ids[..., None]).squeeze(-1) - scaled.logsumexp(-1)


def token_ratio(log_probs: torch.Tensor, old_log_probs: torch.Tensor) -> torch.Tensor:
    """r = exp(log_probs - old_log_probs) per token, as in PPO and GRPO. All of shape (batch, time)."""
    return (log_probs - old_log_probs).exp()


def gspo_ratio(log_probs: torch.Tensor, old_log_probs: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """s = (product of the episode's n ratios)^(1/n), for all its tokens.

    The gradient of a token's s is s times that of the token's log-probability (GSPO-token): averaged over the episode
    it is GSPO's where all tokens have one advantage, and each token keeps its own where they have not.

    Source: Zheng et al., 2025, "Group Sequence Policy Optimization" (arXiv 2507.18071), equations 7, 13 and 14.

    Args:
        log_probs, old_log_probs: shape (batch, time).
        mask: 1 for every sampled token, shape (batch, time).
    """
    mean = _episode_sum(log_probs - old_log_probs, mask) / mask.sum(1, keepdim=True).clamp(min=1)
    return _shared_ratio(mean, log_probs, 1.0)


def episode_ratio(log_probs: torch.Tensor, old_log_probs: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """w = product of the episode's n ratios, for all its tokens: the whole episode is one action.

    The gradient of a token's w is n w times that of the token's log-probability, so that the mean over the episode has
    the gradient of w, and each token keeps its own advantage.

    Source: `RLOOTrainer` of TRL 1.16, after Ahmadian et al., 2024, "Back to Basics" (arXiv 2402.14740), section 3.2.
    Arguments as for `gspo_ratio`.
    """
    total = _episode_sum(log_probs - old_log_probs, mask)
    return _shared_ratio(total, log_probs, mask.sum(1, keepdim=True))


def clip(ratio: torch.Tensor, advantages: torch.Tensor, *, clip_low: float, clip_high: float) -> torch.Tensor:
    """-min(r A, clip(r, 1 - low, 1 + high) A) per token, for any of the ratios above.

    Source: Schulman et al., 2017, "Proximal Policy Optimization" (arXiv 1707.06347), equation 7; different bounds below
    and above: Yu et al., 2025, "DAPO" (arXiv 2503.14476), equation 10.

    Args:
        ratio: shape (batch, time).
        advantages: shape (batch, time), or (batch, 1) for one per episode.
        clip_low: distance below 1 at which the ratio is clipped.
        clip_high: distance above 1 at which the ratio is clipped.
    """
    return -torch.minimum(ratio * advantages, ratio.clamp(1 - clip_low, 1 + clip_high) * advantages)


def ppo_clip(
    log_probs: torch.Tensor,
    old_log_probs: torch.Tensor,
    advantages: torch.Tensor,
    *,
    clip_low: float = 0.2,
    clip_high: float | None = None,
) -> torch.Tensor:
    """`clip` of `token_ratio`; bounds of the same width on both sides if `clip_high` is not given."""
    high = clip_low if clip_high is None else clip_high
    return clip(token_ratio(log_probs, old_log_probs), advantages, clip_low=clip_low, clip_high=high)


def cispo(ratio: torch.Tensor, log_probs: torch.Tensor, advantages: torch.Tensor, *, clip_high: float) -> torch.Tensor:
    """-min(r, 1 + high) A log_probs per token, the ratio being a constant here: no token loses its gradient.

    Source: MiniMax, 2025, "MiniMax-M1" (arXiv 2506.13585), equations 4 and 5, without a bound below as there.
    Arguments as for `clip`.
    """
    return -ratio.detach().clamp(max=1 + clip_high) * advantages * log_probs


def clipped(ratio: torch.Tensor, *, clip_low: float, clip_high: float) -> torch.Tensor:
    """1 per token whose ratio is outside the bounds of `clip`, else 0; a measurement, not a loss."""
    ratio = ratio.detach()
    return ((ratio < 1 - clip_low) | (ratio > 1 + clip_high)).float()


def truncated_weights(old_log_probs: torch.Tensor, sampling_log_probs: torch.Tensor, largest: float) -> torch.Tensor:
    """min(p_old / p_sampling, largest) per token: the weight of a loss whose tokens another back end has sampled.

    Source: Yao et al., 2025, "Your Efficient RL Framework Secretly Brings You Off-Policy RL Training" (truncated
    importance sampling).

    Args:
        old_log_probs: log-probability under the trainer's weights when it was sampled, shape (batch, time).
        sampling_log_probs: log-probability that the back end gave, shape (batch, time).
        largest: bound of the weight.
    """
    return (old_log_probs - sampling_log_probs).detach().exp().clamp(max=largest)


def value_clip(
    values: torch.Tensor, old_values: torch.Tensor, returns: torch.Tensor, *, clip: float = 0.2
) -> torch.Tensor:
    """max((V - G)^2, (V' - G)^2) / 2, with V' no further than `clip` from the estimate when it was collected.

    Source: Schulman et al.'s implementation of PPO (openai/baselines, `ppo2`); Huang et al., 2022, "The 37
    Implementation Details of PPO", detail 9.

    Args:
        values, old_values, returns: shape (batch, time).
        clip: largest change of an estimate that is learned from; `inf` for the squared error alone.
    """
    near = old_values + (values - old_values).clamp(-clip, clip)
    return 0.5 * torch.maximum((values - returns) ** 2, (near - returns) ** 2)


def kl_estimate(
    log_probs: torch.Tensor, reference_log_probs: torch.Tensor, estimator: KLEstimator = "k3"
) -> torch.Tensor:
    """Estimate of KL(policy || reference) per token, from d = log_probs - reference_log_probs.

        k1 = d                       unbiased; its gradient as a loss is that of the log-probability, 0 on average
        k2 = d^2 / 2                 biased; its gradient is that of the divergence, where tokens are the policy's own
        k3 = exp(-d) - 1 + d         unbiased and never negative; its gradient is that of KL(reference || policy)

    Source: Schulman, 2020, "Approximating KL Divergence".
    """
    difference = log_probs - reference_log_probs
    if estimator == "k1":
        return difference
    if estimator == "k2":
        return difference**2 / 2
    return (-difference).exp() - 1 + difference


def policy_losses(forward: Forward, config: PolicyConfig) -> Losses:
    """The loss per token that `config` asks for, with its corrections and its measurements; no critic's."""
    new, old, mask = forward.log_probs, forward.old_log_probs, forward.mask
    bounds = {"clip_low": config.clip_low, "clip_high": config.clip_high}
    if config.loss == "gspo":
        ratio = gspo_ratio(new, old, mask)
    elif config.loss == "episode":
        ratio = episode_ratio(new, old, mask)
    else:
        ratio = token_ratio(new, old)
    if config.loss == "cispo":
        policy = cispo(ratio, new, forward.advantages, clip_high=config.clip_high)
    else:
        policy = clip(ratio, forward.advantages, **bounds)
    metrics = {"clipped": clipped(ratio, **bounds)}
    if config.largest_weight is not None:
        policy = policy * truncated_weights(old, forward.sampling_log_probs, config.largest_weight)
    if forward.reference_log_probs is not None:
        metrics["kl"] = kl_estimate(new, forward.reference_log_probs, "k3").detach()
        if config.kl_in == "loss":
            policy = policy + config.kl * kl_estimate(new, forward.reference_log_probs, config.kl_estimator)
    return Losses(policy, metrics=metrics)


def aggregate(
    values: torch.Tensor,
    mask: torch.Tensor,
    how: Aggregation = "token",
    *,
    constant: float = 1.0,
    lengths: torch.Tensor | None = None,
) -> torch.Tensor:
    """One number out of a value per token.

    Args:
        values, mask: shape (batch, time); only tokens with mask 1 count.
        how: "token" divides the sum by the number of tokens (DAPO, equation 8); "sequence" takes the mean of each
            sequence's mean (GRPO); "constant" divides each sequence's sum by `constant` (Dr. GRPO).
        constant: divisor of "constant"; the trainers take the largest number of tokens per action.
        lengths: number of tokens of each row's sequence, shape (batch,), where sequences have several rows; by default
            that of the row.
    """
    values = values * mask
    if how == "token":
        return values.sum() / mask.sum().clamp(min=1)
    if how == "sequence":
        lengths = mask.sum(1) if lengths is None else lengths
        return (values.sum(1) / lengths.clamp(min=1)).mean()
    return (values.sum(1) / constant).mean()


def _episode_sum(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Sum over the sampled tokens, shape (batch, 1)."""
    return (values * mask).sum(1, keepdim=True)


def _shared_ratio(log_ratio: torch.Tensor, log_probs: torch.Tensor, times: torch.Tensor | float) -> torch.Tensor:
    """exp(log_ratio) for every token, with `times` this and the gradient of the token's own log-probability."""
    return log_ratio.detach().exp() * (times * (log_probs - log_probs.detach())).exp()
