"""Low-rank adapters: the paper's formula, the first policy within the present one, and runs that learn them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from baselines import grpo
from baselines.policy.adapters import WithoutAdapters, add_adapters, learned_weights, merged, merged_weights
from baselines.policy.models import load_policy
from tests.baselines.runs import curve

RANK, ALPHA = 4, 6.0
IDS = torch.arange(5, 45).reshape(2, 20)


@pytest.fixture
def first(tiny: Path) -> PreTrainedModel:
    return load_policy(str(tiny))[0].eval()


@pytest.fixture
def policy(tiny: Path) -> PreTrainedModel:
    """A policy whose adapters have learned something."""
    model = load_policy(str(tiny))[0].eval()
    add_adapters(model, RANK, ALPHA)
    with torch.no_grad():
        for weight in learned_weights(model).values():
            weight.add_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(0)) / 10)
    return model


def run(model: Path | str, out: Path, iterations: int, **more: Any) -> Path:
    settings: dict[str, Any] = {
        "env": "lights/Lights-v0",
        "set": {"switches": 2, "reward_density": "dense"},
        "groups": 4,
        "group_size": 4,
        "slots": 8,
        "max_action_tokens": 6,
        "learning_rate": 3e-3,
        "lora_rank": RANK,
        "checkpoint_every": 1,
    }
    return grpo.run(grpo.Config(model=str(model), out=out, iterations=iterations, **{**settings, **more}))


def test_a_policy_begins_as_it_was_and_learns_its_adapters_alone(tiny: Path, first: PreTrainedModel) -> None:
    model = load_policy(str(tiny))[0].eval()
    add_adapters(model, RANK, ALPHA)
    with torch.no_grad():
        assert torch.equal(model(IDS).logits, first(IDS).logits)
    layers = model.config.num_hidden_layers
    assert len(learned_weights(model)) == layers * 7 * 2  # Four layers of attention, three of the MLP; A and B of each.
    model(IDS).logits.sum().backward()
    assert {name for name, weight in model.named_parameters() if weight.grad is not None} == set(learned_weights(model))


def test_merged_weights_are_those_of_the_paper(policy: PreTrainedModel, first: PreTrainedModel) -> None:
    weights = dict(merged_weights(policy))
    before = dict(first.named_parameters())
    assert set(weights) == set(before)
    learned = learned_weights(policy)
    for name, weight in before.items():
        layer = name.removesuffix(".weight")
        expected = weight
        if f"{layer}.lora_A.default.weight" in learned:
            a, b = (learned[f"{layer}.lora_{letter}.default.weight"] for letter in "AB")
            expected = weight + ALPHA / RANK * b @ a
            assert not torch.equal(expected, weight)
        torch.testing.assert_close(weights[name], expected, rtol=1e-6, atol=1e-6)


def test_a_merged_policy_is_the_policy(policy: PreTrainedModel, tmp_path: Path) -> None:
    merged(policy).save_pretrained(tmp_path)
    again = AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    with torch.no_grad():
        torch.testing.assert_close(again(IDS).logits, policy(IDS).logits, rtol=1e-4, atol=1e-4)


def test_without_adapters_it_is_the_first_policy(policy: PreTrainedModel, first: PreTrainedModel) -> None:
    policy.train()
    with torch.no_grad():
        now, expected = policy(IDS).logits, first(IDS).logits
        assert torch.equal(WithoutAdapters(policy)(input_ids=IDS).logits, expected)
        assert not torch.allclose(now, expected, atol=0.1)
        assert torch.equal(policy(IDS).logits, now)  # They are there again.
    assert policy.training


def test_a_run_learns_adapters_and_resumes_along_the_same_curve(tiny: Path, tmp_path: Path) -> None:
    whole = run(tiny, tmp_path / "whole", 3, kl=0.1)
    run(tiny, tmp_path / "parts", 1, kl=0.1)
    parts = run(tiny, tmp_path / "parts", 3, kl=0.1)
    assert curve(tmp_path / "parts") == curve(tmp_path / "whole")
    assert curve(tmp_path / "whole")[0]["kl"] == pytest.approx(0.0, abs=1e-3)
    assert curve(tmp_path / "whole")[-1]["kl"] > 1e-3
    assert curve(tmp_path / "whole")[-1]["log_prob_difference_max"] < 1e-4
    after, again, before = (dict(load_policy(str(each))[0].named_parameters()) for each in (whole, parts, tiny))
    assert all(torch.equal(after[name], again[name]) for name in after)
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {name for name in before if "_proj.weight" in name}


def test_gradient_checkpointing_changes_no_curve(tiny: Path, tmp_path: Path) -> None:
    for rank in (0, RANK):
        run(tiny, tmp_path / f"plain{rank}", 2, lora_rank=rank)
        run(tiny, tmp_path / f"spare{rank}", 2, lora_rank=rank, gradient_checkpointing=True)
        for one, other in zip(curve(tmp_path / f"plain{rank}"), curve(tmp_path / f"spare{rank}"), strict=True):
            assert one == pytest.approx(other, rel=1e-5)
