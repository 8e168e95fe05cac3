"""The last layer for some tokens only, against all tokens; for models of several families."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    PhiConfig,
    PhiForCausalLM,
    PreTrainedModel,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

from baselines.policy.last_layer import last_layer_for

SIZES: dict[str, Any] = {
    "vocab_size": 100,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "initializer_range": 0.1,
}
GROUPED: dict[str, Any] = {**SIZES, "num_key_value_heads": 2, "head_dim": 8}
MIXTURE: dict[str, Any] = {**GROUPED, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
FAMILIES: dict[str, Callable[[], PreTrainedModel]] = {
    "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**GROUPED)),
    "qwen3-eager": lambda: Qwen3ForCausalLM(Qwen3Config(**GROUPED, attn_implementation="eager")),
    "qwen3-moe": lambda: Qwen3MoeForCausalLM(Qwen3MoeConfig(**MIXTURE)),
    "neox": lambda: GPTNeoXForCausalLM(GPTNeoXConfig(**SIZES)),  # Attention and MLP side by side.
    "phi": lambda: PhiForCausalLM(PhiConfig(**SIZES)),
    "gpt2": lambda: GPT2LMHeadModel(GPT2Config(vocab_size=100, n_embd=32, n_layer=2, n_head=2)),
}
IDS = torch.randint(1, 100, (3, 11), generator=torch.Generator().manual_seed(0))
WANTED = (torch.tensor([0, 0, 2, 2, 2]), torch.tensor([3, 10, 0, 4, 9]))  # None of the second row.


def weighed(logits: torch.Tensor) -> torch.Tensor:
    return (logits * torch.linspace(-1, 1, logits.numel()).view(logits.shape)).sum()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("masked", [False, True])
def test_logits_and_gradients_of_the_wanted_tokens_are_those_of_all(family: str, masked: bool) -> None:
    torch.manual_seed(0)
    model = FAMILIES[family]().eval()
    mask = torch.ones_like(IDS)
    mask[:, 1:2] = 0 if masked else 1

    def read() -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        model.zero_grad()
        logits = model(input_ids=IDS, attention_mask=mask).logits[WANTED]
        weighed(logits).backward()
        return logits.detach(), {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}

    logits, gradients = read()
    with last_layer_for(model, *WANTED):
        some, learned = read()
    torch.testing.assert_close(some, logits, rtol=1e-5, atol=1e-5)
    assert learned.keys() == gradients.keys()
    for name, gradient in gradients.items():
        torch.testing.assert_close(learned[name], gradient, rtol=1e-4, atol=1e-5 * float(gradient.abs().max() + 1))
    torch.testing.assert_close(read()[0], logits, rtol=0, atol=0)  # The model is left as it was.


def test_what_was_read_before_counts() -> None:
    torch.manual_seed(0)
    model = FAMILIES["qwen3"]()
    whole = model(input_ids=IDS).logits
    cache = model(input_ids=IDS[:, :6], use_cache=True).past_key_values
    rows = torch.arange(3)
    with last_layer_for(model, rows, torch.full_like(rows, 4)):
        after = model(input_ids=IDS[:, 6:], past_key_values=cache, attention_mask=torch.ones_like(IDS)).logits
    torch.testing.assert_close(after[:, 4], whole[:, 10], rtol=1e-5, atol=1e-5)
    assert not torch.allclose(after[:, 3], whole[:, 9], rtol=1e-2)  # Nobody asked about these.


def count_rows(model: PreTrainedModel) -> list[int]:
    """Number of tokens that the last MLP computes in each forward pass from now on."""
    rows: list[int] = []
    mlp = model.get_decoder().layers[-1].mlp
    mlp.gate_proj.register_forward_hook(lambda _, __, output: rows.append(output[..., 0].numel()))
    return rows


def test_the_last_layer_computes_the_wanted_tokens_only() -> None:
    model = FAMILIES["qwen3"]()
    rows = count_rows(model)
    with last_layer_for(model, *WANTED):
        model(input_ids=IDS)
    with last_layer_for(model, WANTED[0][:0], WANTED[1][:0]):  # Somebody who has nothing to learn from.
        model(input_ids=IDS)
    assert rows == [5, 33]


def test_activations_that_are_computed_again_are_those_of_all_tokens() -> None:
    model = FAMILIES["qwen3"]()
    model.gradient_checkpointing_enable()
    rows = count_rows(model)
    with last_layer_for(model, *WANTED):
        logits = model(input_ids=IDS).logits
    weighed(logits).backward()
    assert rows == [33, 33]


def test_a_layer_that_stands_several_times_is_left_alone() -> None:
    model = FAMILIES["qwen3"]()
    decoder = model.get_decoder()
    decoder.layers[0] = decoder.layers[-1]
    rows = count_rows(model)
    with last_layer_for(model, *WANTED):
        model(input_ids=IDS)
    assert rows == [33, 33]


def test_a_model_that_fails_is_left_as_it_was() -> None:
    model = FAMILIES["qwen3"]()
    rows = count_rows(model)
    with pytest.raises(RuntimeError, match="stop"), last_layer_for(model, *WANTED):
        raise RuntimeError("stop")
    model(input_ids=IDS)
    assert rows == [33]
    assert model.config._attn_implementation == "sdpa"
