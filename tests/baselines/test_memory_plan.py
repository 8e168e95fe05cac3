"""Memory by calculation, beside what models take."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from baselines import memory_plan
from baselines.memory_plan import Config, plan
from baselines.policy.adapters import add_adapters, learned_weights
from baselines.policy.models import load_policy
from baselines.rollout import Prompt, TransformersGenerator
from benchmarks.gpu import SHAPES
from textagent_gym.errors import InvalidOptionError


def asked(**settings: Any) -> Config:
    return Config(model="", **{"context": 100, "microbatch": 1, "slots": 1, **settings})


def test_parameters_are_counted_as_the_model_has_them(tiny: Path) -> None:
    policy, _ = load_policy(str(tiny))
    parameters = sum(weight.numel() for weight in policy.parameters())
    whole = plan(policy.config, asked())
    assert (whole.parameters, whole.learned) == (parameters, parameters)
    assert whole.weights + whole.gradients + whole.optimizer == 16 * parameters
    add_adapters(policy, rank=3, alpha=1.0)
    learned = sum(weight.numel() for weight in learned_weights(policy).values())
    adapted = plan(policy.config, asked(lora_rank=3))
    assert (adapted.parameters, adapted.learned) == (parameters + learned, learned)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_cache_takes_what_is_planned(precision: Any) -> None:
    config = Qwen2Config(
        vocab_size=8,
        hidden_size=64,
        intermediate_size=64,
        num_attention_heads=4,
        num_key_value_heads=2,
        num_hidden_layers=3,
    )
    generator = TransformersGenerator(Qwen2ForCausalLM(config).eval(), 0, slots=1, max_action_tokens=2)
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
        generator.generate([Prompt(0, (1, 2, 3), fresh=True, seed=0)])
    taken = sum(part[:1, :, :1].nbytes for layer in generator._cache.layers for part in (layer.keys, layer.values))
    planned = plan(config, asked(slots=2, context=10, precision=precision))
    assert (planned.cache_per_token, planned.cache) == (taken, 20 * taken)


def test_each_setting_spares_what_it_says(tiny: Path) -> None:
    config = load_policy(str(tiny))[0].config
    basis = plan(config, asked())
    checkpointed = plan(config, asked(gradient_checkpointing=True))
    assert checkpointed.activations < basis.activations
    assert checkpointed.per_token == 2 * 32 * 4  # Two layers, 32 numbers between them.
    assert plan(config, asked(lora_rank=2)).optimizer < basis.optimizer / 2
    assert plan(config, asked(precision="bfloat16")).activations < basis.activations
    longer = plan(config, asked(context=200))
    assert (longer.activations, longer.logits) == (2 * basis.activations, 2 * basis.logits)
    assert plan(config, asked(played=50)).cache == basis.cache / 2


@pytest.mark.slow
def test_16k_tokens_of_a_model_of_1_5b_weights_train_with_adapters_on_24_gib() -> None:
    config = Qwen2Config(vocab_size=151_936, num_key_value_heads=2, tie_word_embeddings=True, **SHAPES["1.5B"])
    settings = {"context": 16_384, "slots": 16, "gradient_checkpointing": True, "precision": "bfloat16"}
    adapted = plan(config, asked(**settings, lora_rank=16))
    assert adapted.parameters - adapted.learned == 1_543_714_304  # As published.
    assert adapted.peak < 24 * 2**30
    assert plan(config, asked(**settings)).peak > 24 * 2**30


def test_the_plan_is_told_in_lines(tiny: Path) -> None:
    config = load_policy(str(tiny))[0].config
    shown = memory_plan.describe(plan(config, asked()), device=1.0)
    assert "per token of an update" in shown
    assert shown.endswith("a device of 1 GiB is enough")
    assert memory_plan.describe(plan(config, asked()), device=1e-4).endswith("is not enough")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"sampled": 0.0}, "sampled must be above 0"),
        ({"context": 0}, "context must be at least 1"),
        ({"device": 0.0}, "device"),
    ],
)
def test_settings_out_of_range_are_refused(setting: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        asked(**setting)


@pytest.mark.slow
def test_the_command_line_names_a_model_that_is_not_there(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "baselines.memory_plan", "--model", str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "none" in done.stderr
    assert "Traceback" not in done.stderr
