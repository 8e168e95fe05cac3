"""Every loss against TRL's own where TRL has it, on the same random tensors, and against loops from the papers."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from trl import GRPOTrainer, RLOOTrainer

from baselines import reinforce_pp
from baselines.credit.losses import aggregate, gspo_ratio, kl_estimate, policy_losses, truncated_weights, value_clip
from baselines.credit.method import Forward
from baselines.settings.config import Aggregation, PolicyConfig, PolicyLoss

CASES = range(50)
LENGTH = 9.0  # Divisor of "constant", and TRL's `max_completion_length`.


def config(**settings: Any) -> PolicyConfig:
    return PolicyConfig(model="", env="", out=Path(), **settings)


def random_forward(seed: int, *, per_turn: bool = False) -> Forward:
    """A microbatch of random log-probabilities; advantages are one per episode unless `per_turn`."""
    random = torch.Generator().manual_seed(seed)
    shape = (4, 12)

    def normal(size: tuple[int, int] = shape, scale: float = 1.0) -> torch.Tensor:
        return scale * torch.randn(size, generator=random)

    mask = (torch.rand(shape, generator=random) < 0.6).float()
    mask[:, 0] = 0.0
    mask[:, 1] = 1.0
    new = -normal().abs()
    return Forward(
        mask=mask,
        log_probs=new.requires_grad_(),
        old_log_probs=new.detach() + normal(scale=0.2),
        sampling_log_probs=new.detach() + normal(scale=0.4),
        advantages=normal() if per_turn else normal((4, 1)).expand(shape),
        reference_log_probs=new.detach() + normal(scale=0.5),
        step_mask=mask,
    )


def ours(forward: Forward, settings: PolicyConfig, aggregation: Aggregation) -> tuple[float, torch.Tensor]:
    """Loss of the batch, and its gradient for the log-probabilities."""
    value = aggregate(policy_losses(forward, settings).policy, forward.mask, aggregation, constant=LENGTH)
    return value.item(), torch.autograd.grad(value, forward.log_probs)[0]


def theirs(trainer: Any, forward: Forward) -> tuple[float, torch.Tensor]:
    """The same of a trainer of TRL, which is given the log-probabilities instead of a model."""
    nothing = torch.zeros_like(forward.mask)
    trainer._get_per_token_logps_and_entropies = lambda *_, **__: (forward.log_probs, nothing, None)
    trainer.model = SimpleNamespace(training=False)  # No accumulation of gradients.
    trainer.accelerator = SimpleNamespace(
        reduce=lambda tensor, reduction: tensor, gather=lambda tensor: tensor, num_processes=1
    )
    trainer._metrics = {"eval": defaultdict(list)}
    trainer.aux_loss_enabled = False
    inputs = {
        "prompt_ids": nothing[:, :0],
        "prompt_mask": nothing[:, :0],
        "completion_ids": nothing,
        "completion_mask": forward.mask,
        "advantages": forward.advantages[:, 0],
        "old_per_token_logps": forward.old_log_probs,
        "old_logps": (forward.old_log_probs * forward.mask).sum(1),
        "ref_per_token_logps": forward.reference_log_probs,
        "num_items_in_batch": forward.mask.sum(),
        "importance_sampling_ratio": truncated_weights(forward.old_log_probs, forward.sampling_log_probs, 1.5),
    }
    value = trainer._compute_loss(None, inputs)
    return value.item(), torch.autograd.grad(value, forward.log_probs)[0]


def grpo_trainer(loss_type: str, level: str, kl: float, corrected: bool) -> Any:
    """TRL's trainer with what its loss reads, and nothing else."""
    trainer: Any = object.__new__(GRPOTrainer)
    trainer.loss_type = loss_type
    trainer.importance_sampling_level = level
    trainer.beta = kl
    trainer.epsilon_low, trainer.epsilon_high = 0.1, 1.3 if loss_type == "cispo" else 0.3
    trainer.use_vllm = trainer.vllm_importance_sampling_correction = corrected
    trainer.top_entropy_quantile = 1.0
    trainer.off_policy_mask_threshold = None
    trainer._entropy_bonus_enabled = False
    trainer.max_completion_length = LENGTH
    trainer.args = SimpleNamespace(use_bias_correction_kl=False, delta=None)
    return trainer


@dataclass(frozen=True)
class Same:
    """Settings of TRL and of ours that mean the same."""

    loss: PolicyLoss
    loss_type: str
    aggregation: Aggregation
    level: str = "token"


SAME = [
    Same("clip", "grpo", "sequence"),
    Same("clip", "bnpo", "token"),
    Same("clip", "dapo", "token"),
    Same("clip", "dr_grpo", "constant"),
    Same("gspo", "grpo", "sequence", level="sequence"),
    Same("cispo", "cispo", "token"),
]


@pytest.mark.parametrize("same", SAME, ids=lambda same: f"{same.loss}-{same.loss_type}")
@pytest.mark.parametrize(("kl", "corrected"), list(product([0.0, 0.2], [False, True])))
def test_the_loss_and_its_gradient_are_those_of_trls_grpo(same: Same, kl: float, corrected: bool) -> None:
    trainer = grpo_trainer(same.loss_type, same.level, kl, corrected)
    weight = 1.5 if corrected else None
    settings = config(loss=same.loss, clip_low=0.1, clip_high=0.3, kl=kl, max_sampling_weight=weight)
    for seed in CASES:
        forward = random_forward(seed)
        mine, other = ours(forward, settings, same.aggregation), theirs(trainer, forward)
        assert mine[0] == pytest.approx(other[0], rel=1e-6, abs=1e-6)
        # Where an episode has one ratio, TRL spreads the weight of a token over all tokens; here each keeps its own.
        if not (corrected and same.level == "sequence"):
            torch.testing.assert_close(mine[1], other[1], rtol=1e-6, atol=1e-6)


def test_the_loss_and_its_gradient_are_those_of_trls_rloo() -> None:
    trainer: Any = object.__new__(RLOOTrainer)
    trainer.epsilon_low, trainer.epsilon_high = 0.1, 0.3
    settings = config(loss="episode", clip_low=0.1, clip_high=0.3)
    for seed in CASES:
        forward = random_forward(seed)
        mine, other = ours(forward, settings, "sequence"), theirs(trainer, forward)
        assert mine[0] == pytest.approx(other[0], rel=1e-6, abs=1e-6)
        torch.testing.assert_close(mine[1], other[1], rtol=1e-6, atol=1e-6)


def loop(forward: Forward, settings: PolicyConfig) -> torch.Tensor:
    """The gradient of the sum over tokens, token by token, as the papers have it; advantages may differ by turn."""
    result = torch.zeros(forward.mask.shape, dtype=torch.float64)
    for row, column in forward.mask.nonzero().tolist():
        sampled = forward.mask[row].bool()
        differences = (forward.log_probs.detach() - forward.old_log_probs)[row].double()
        advantage = float(forward.advantages[row, column])
        factor = 1.0
        if settings.loss == "gspo":
            ratio = math.exp(float(differences[sampled].mean()))
        elif settings.loss == "episode":
            ratio = math.exp(float(differences[sampled].sum()))
            factor = float(sampled.sum())
        else:
            ratio = math.exp(float(differences[column]))
        if settings.loss == "cispo":
            slope = -min(ratio, 1 + settings.clip_high) * advantage
        else:
            stopped = (ratio > 1 + settings.clip_high) if advantage > 0 else (ratio < 1 - settings.clip_low)
            slope = 0.0 if stopped else -factor * ratio * advantage
        if settings.max_sampling_weight is not None:
            off = float(forward.old_log_probs[row, column] - forward.sampling_log_probs[row, column])
            slope *= min(math.exp(off), settings.max_sampling_weight)
        assert forward.reference_log_probs is not None
        distance = float(forward.log_probs[row, column].detach() - forward.reference_log_probs[row, column])
        if settings.kl_in == "loss":
            slopes = {"k1": 1.0, "k2": distance, "k3": 1 - math.exp(-distance)}
            slope += settings.kl * slopes[settings.kl_estimator]
        result[row, column] = slope
    return result.float()


@pytest.mark.parametrize("loss", ["clip", "gspo", "cispo", "episode"])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"kl": 0.3, "kl_estimator": "k1"},
        {"kl": 0.3, "kl_estimator": "k2"},
        {"kl": 0.3, "kl_estimator": "k3"},
        {"kl": 0.3, "kl_in": "reward"},
        {"max_sampling_weight": 1.2},
    ],
)
def test_each_token_has_its_own_gradient_where_turns_have_advantages_of_their_own(
    loss: PolicyLoss, changes: dict[str, Any]
) -> None:
    settings = config(loss=loss, clip_low=0.1, clip_high=0.3, **changes)
    for seed in CASES:
        forward = random_forward(seed, per_turn=True)
        value = (policy_losses(forward, settings).policy * forward.mask).sum()
        gradient = torch.autograd.grad(value, forward.log_probs)[0]
        torch.testing.assert_close(gradient, loop(forward, settings), rtol=2e-6, atol=1e-6)


def test_reinforce_pp_has_k1_in_the_reward_and_its_baseline_variant_k2_in_the_loss() -> None:
    def settings(**changes: Any) -> reinforce_pp.Config:
        return reinforce_pp.Config(model="", env="", out=Path(), kl=0.3, **changes)

    in_loss = settings(baseline=True, group_size=2, kl_in="loss")
    assert (settings().reward_kl, in_loss.reward_kl) == (0.3, 0.0)
    expected = config(clip_low=0.2, clip_high=0.2, kl=0.3, kl_estimator="k2")
    for seed in CASES:
        forward = random_forward(seed, per_turn=True)
        value = (reinforce_pp.method(in_loss).loss(forward).policy * forward.mask).sum()
        gradient = torch.autograd.grad(value, forward.log_probs)[0]
        torch.testing.assert_close(gradient, loop(forward, expected), rtol=2e-6, atol=1e-6)


def test_the_value_loss_is_the_larger_of_two_squares() -> None:
    for seed in CASES:
        random = torch.Generator().manual_seed(seed)
        values, old, returns = (torch.randn(3, 5, generator=random) for _ in range(3))
        expected = []
        for v, o, g in zip(values.flatten().tolist(), old.flatten().tolist(), returns.flatten().tolist(), strict=True):
            near = o + min(max(v - o, -0.3), 0.3)
            expected.append(max((v - g) ** 2, (near - g) ** 2) / 2)
        torch.testing.assert_close(
            value_clip(values, old, returns, clip=0.3).flatten(), torch.tensor(expected), rtol=1e-6, atol=1e-6
        )
        unbounded = value_clip(values, old, returns, clip=math.inf)
        torch.testing.assert_close(unbounded, 0.5 * (values - returns) ** 2, rtol=1e-6, atol=1e-6)


def test_an_estimate_that_has_moved_towards_its_target_too_far_is_not_learned_from() -> None:
    values = torch.tensor([0.5, -0.5, 0.1], requires_grad=True)
    value_clip(values, torch.zeros(3), torch.ones(3), clip=0.2).sum().backward()
    assert values.grad is not None
    assert values.grad.tolist() == pytest.approx([0.0, -1.5, -0.9])


@pytest.mark.parametrize(
    ("estimator", "expected"), [("k1", "nothing"), ("k2", "policy to reference"), ("k3", "reference to policy")]
)
def test_estimators_of_the_divergence_pull_where_their_docstring_says(estimator: Any, expected: str) -> None:
    for seed in CASES:
        random = torch.Generator().manual_seed(seed)
        logits = torch.randn(7, generator=random, dtype=torch.float64, requires_grad=True)
        policy = logits.log_softmax(0)
        reference = torch.randn(7, generator=random, dtype=torch.float64).log_softmax(0)
        mean = (policy.detach().exp() * kl_estimate(policy, reference, estimator)).sum()  # Over all that is sampled.
        divergence = (policy.exp() * (policy - reference)).sum()
        other_way = (reference.exp() * (reference - policy)).sum()
        target = {"nothing": 0 * divergence, "policy to reference": divergence, "reference to policy": other_way}
        slopes = [torch.autograd.grad(x, logits, retain_graph=True)[0] for x in (mean, target[expected])]
        torch.testing.assert_close(slopes[0], slopes[1], rtol=1e-9, atol=1e-12)
        if estimator != "k2":
            assert mean.item() == pytest.approx(divergence.item())  # Unbiased.


def test_gspos_ratio_ignores_what_nobody_sampled() -> None:
    forward = random_forward(0)
    changed = forward.log_probs.detach() + 5 * (1 - forward.mask)
    ratios = [gspo_ratio(x.detach(), forward.old_log_probs, forward.mask) for x in (forward.log_probs, changed)]
    torch.testing.assert_close(*ratios)


def test_what_is_clipped_is_measured_on_the_ratio_that_the_loss_clips() -> None:
    forward = random_forward(3)
    bounds = {"clip_low": 0.1, "clip_high": 0.1}
    share = {
        loss: float((policy_losses(forward, config(loss=loss, **bounds)).metrics["clipped"] * forward.mask).sum())
        for loss in ("clip", "gspo")
    }
    assert share["gspo"] < share["clip"]  # A mean of ratios is nearer 1 than they are.
