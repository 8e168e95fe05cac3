"""Log-probabilities of sampled tokens only, against logits of all tokens; for models of several families."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    CohereConfig,
    CohereForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
)

from baselines.policy.models import load_policy
from baselines.rollout.trajectory import Batch, Trajectory, Turn, collate, idle_batch, rows_of
from baselines.training.scoring import batch_log_probs

TEMPERATURE = 0.7
SIZES: dict[str, Any] = {
    "vocab_size": 200,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "initializer_range": 0.1,
    "pad_token_id": 0,
}
FAMILIES: dict[str, Any] = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**SIZES)),
    "gpt2": lambda: GPT2LMHeadModel(GPT2Config(vocab_size=200, n_embd=32, n_layer=2, n_head=2)),
    # The logits of these two are changed after the LM head: scaled, or bounded.
    "cohere": lambda: CohereForCausalLM(CohereConfig(**SIZES, logit_scale=0.25)),
    "gemma2": lambda: Gemma2ForCausalLM(Gemma2Config(**SIZES, head_dim=16, final_logit_softcapping=2.0)),
}


def make_batch() -> Batch:
    """Five conversations of different lengths."""
    random = np.random.default_rng(0)

    def tokens(most: int) -> tuple[int, ...]:
        return tuple(random.integers(5, 200, random.integers(1, most)).tolist())

    played = []
    for number in range(5):
        pairs = [(tokens(9), tokens(4)) for _ in range(1 + number)]
        turns = [Turn(prompt, action, (0.0,) * len(action), 0.0, "", "") for prompt, action in pairs]
        played.append(Trajectory(tuple(turns), number))
    return collate(rows_of(played))


def naive_log_probs(model: Any, batch: Batch) -> torch.Tensor:
    """The same from the logits of all tokens."""
    logits = model(input_ids=batch.ids, attention_mask=batch.attention_mask).logits
    scores = (logits[:, :-1] / TEMPERATURE).log_softmax(-1).gather(-1, batch.ids[:, 1:, None]).squeeze(-1)
    return torch.nn.functional.pad(scores, (1, 0)) * batch.action_mask


def gradients(model: Any, log_probs: torch.Tensor) -> dict[str, torch.Tensor]:
    """Gradients of a loss that weighs every token differently."""
    model.zero_grad()
    (log_probs * torch.arange(log_probs.numel()).view(log_probs.shape) / log_probs.numel()).sum().backward()
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


def assert_equals_naive(model: Any) -> None:
    batch = make_batch()
    mine, naive = batch_log_probs(model, batch, TEMPERATURE), naive_log_probs(model, batch)
    assert naive.abs().max() > 1
    torch.testing.assert_close(mine, naive, rtol=1e-6, atol=1e-6)
    others = gradients(model, naive)
    for name, gradient in gradients(model, mine).items():
        largest = max(1.0, float(others[name].abs().max()))
        torch.testing.assert_close(gradient, others[name], rtol=1e-6, atol=1e-6 * largest)


@pytest.mark.parametrize("family", FAMILIES)
def test_log_probs_and_gradients_are_those_of_all_logits(family: str) -> None:
    torch.manual_seed(0)
    assert_equals_naive(FAMILIES[family]().eval())


def test_the_head_reads_the_hidden_states_of_sampled_tokens_only(tiny: Path) -> None:
    model = load_policy(str(tiny))[0]
    read: list[int] = []
    model.get_output_embeddings().register_forward_hook(lambda _, __, logits: read.append(logits[..., 0].numel()))
    batch = make_batch()
    batch_log_probs(model, batch, TEMPERATURE)
    assert read == [int(batch.action_mask.sum())]
    naive_log_probs(model, batch)  # The model is left as it was.
    assert read[1:] == [batch.ids.numel()]


def test_a_model_whose_head_is_not_known_computes_all_logits(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_policy(str(tiny))[0]
    monkeypatch.setattr(model, "get_output_embeddings", lambda: None)
    assert_equals_naive(model)


def test_a_head_that_reads_something_else_is_left_alone(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_policy(str(tiny))[0]
    model.lm_head.register_forward_pre_hook(lambda _, inputs: (inputs[0].flatten(0, 1)[None],))
    model.lm_head.register_forward_hook(lambda _, __, logits: logits.view(5, -1, logits.shape[-1]))
    assert_equals_naive(model)


def test_an_idle_batch_has_a_gradient_of_zero_for_every_weight(tiny: Path) -> None:
    model = load_policy(str(tiny))[0]
    batch_log_probs(model, idle_batch(), TEMPERATURE).sum().backward()
    assert all(parameter.grad is not None and not parameter.grad.any() for parameter in model.parameters())
