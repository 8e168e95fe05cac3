"""Low-rank adapters (Hu et al., 2021, arXiv 2106.09685): a policy whose own weights stay, with `peft`.

Every linear layer but the LM head gets W + (alpha / rank) B A, and only A and B are learned. B begins at 0, so the
policy begins as it was, and without its adapters it is the first policy, which a divergence is measured from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import torch
from peft import LoraConfig
from peft.tuners.lora import LoraLayer
from transformers import AutoModelForCausalLM, PreTrainedModel

_ADAPTER = "default"  # The name that transformers gives to the only one.


def add_adapters(policy: PreTrainedModel, rank: int, alpha: float, seed: int = 0) -> None:
    """Freeze the weights of a policy and add adapters to its linear layers.

    Args:
        policy: causal language model.
        rank: number of rows of A, and of columns of B.
        alpha: weight of the adapters, times `rank`.
        seed: seed of the first A.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        policy.add_adapter(LoraConfig(r=rank, lora_alpha=alpha, target_modules="all-linear"), _ADAPTER)


def learned_weights(policy: PreTrainedModel) -> dict[str, torch.Tensor]:
    """The weights that are learned, by their names."""
    return {name: weight.detach() for name, weight in policy.named_parameters() if weight.requires_grad}


def load_learned_weights(policy: PreTrainedModel, weights: Mapping[str, torch.Tensor]) -> None:
    """Give a policy the weights that `learned_weights` gave."""
    parameters = dict(policy.named_parameters())
    with torch.no_grad():
        for name, weight in weights.items():
            parameters[name].copy_(weight)


def merged_weights(policy: PreTrainedModel) -> Iterator[tuple[str, torch.Tensor]]:
    """The weights of the policy as a model without adapters has them, by its names; the policy stays as it is.

    They are summed one by one, so that there is never a second copy of all of them.
    """
    layers = {
        f"{name}.base_layer.weight": layer for name, layer in policy.named_modules() if isinstance(layer, LoraLayer)
    }
    for name, weight in policy.named_parameters():
        if ".lora_" in name:
            continue
        summed = weight.detach()
        if name in layers:
            with torch.no_grad():
                summed = summed + cast("Any", layers[name]).get_delta_weight(_ADAPTER)
        yield name.replace(".base_layer.", "."), summed


def merged(policy: PreTrainedModel) -> PreTrainedModel:
    """The same policy without adapters; it takes memory of its own, not on the policy's device."""
    model: PreTrainedModel = AutoModelForCausalLM.from_config(policy.config, dtype=policy.dtype)
    weights = {name: weight.cpu() for name, weight in merged_weights(policy)}
    model.load_state_dict(weights, strict=False)  # Tied weights stand there once.
    model.generation_config = policy.generation_config
    return model


class WithoutAdapters(torch.nn.Module):
    """The first policy, as the model that has adapters now; it takes no memory.

    Args:
        policy: causal language model with adapters.
    """

    def __init__(self, policy: PreTrainedModel) -> None:
        super().__init__()
        self.config = policy.config
        self._policy = policy

    def forward(self, **inputs: Any) -> Any:
        """The output of the model, without what its adapters add."""
        learns = self._policy.training
        self._policy.eval().disable_adapters()
        try:
            return self._policy(**inputs)
        finally:
            self._policy.enable_adapters()
            self._policy.train(learns)

    def get_output_embeddings(self) -> Any:
        """See `PreTrainedModel`."""
        return self._policy.get_output_embeddings()
