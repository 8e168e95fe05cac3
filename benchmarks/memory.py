"""Peak memory of an update on a CPU beside what `baselines.memory_plan` calculates, and the memory per short.

    python -m benchmarks.memory
    python -m benchmarks.memory --plot docs/measurements/memory.svg

The measured peak is that of the process's pages (Linux), above those before the model was made.
"""

from __future__ import annotations

import ctypes
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
import tyro
from accelerate import Accelerator
from transformers import AutoModelForCausalLM, Qwen2Config

from baselines.memory_plan import Config as PlanConfig
from baselines.memory_plan import plan
from baselines.policy.adapters import add_adapters
from baselines.rollout.trajectory import Row, Turn, collate
from baselines.training.scoring import batch_log_probs
from benchmarks.gpu import SHAPES, Peak

SAMPLED = 0.125
_MMAP_THRESHOLD = -3  # Name of the option in glibc's <malloc.h>.
CASES: dict[str, dict[str, Any]] = {
    "all weights": {},
    "checkpointing": {"gradient_checkpointing": True},
    "adapters": {"lora_rank": 8},
    "adapters, checkpointing": {"lora_rank": 8, "gradient_checkpointing": True},
    "adapters, checkpointing, bfloat16": {"lora_rank": 8, "gradient_checkpointing": True, "precision": "bfloat16"},
}


@dataclass(frozen=True)
class Config:
    """What is measured, or drawn."""

    tokens: int = 4_096
    """Number of tokens of the conversation."""
    hidden: int = 256
    """Width of the model."""
    layers: int = 4
    """Number of layers."""
    plot: Path | None = None
    """File of the memory per token of the shapes of Qwen2.5, drawn instead; its ending decides the format."""


def shape(hidden: int, layers: int, vocabulary: int = 8_192) -> Qwen2Config:
    """A model of the family of Qwen2.5."""
    return Qwen2Config(
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=4 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 32,
        num_key_value_heads=2,
        max_position_embeddings=32_768,
        tie_word_embeddings=True,
    )


def measure(model: Qwen2Config, asked: PlanConfig) -> int:
    """Peak memory in bytes of two updates with one conversation, in a process that has freed nothing before."""
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as process:
        return process.submit(_measured, model, asked).result()


def _measured(model: Qwen2Config, asked: PlanConfig) -> int:
    ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, 2**16)  # Else glibc keeps the pages of freed tensors.
    _update(shape(64, 1), replace(asked, context=64))  # What is loaded with the first update is not counted.
    peak = Peak()
    _update(model, asked)
    return peak.read()


def _update(model: Qwen2Config, asked: PlanConfig) -> None:
    accelerator = Accelerator(cpu=True, mixed_precision="bf16" if asked.precision == "bfloat16" else "no")
    policy = AutoModelForCausalLM.from_config(model, dtype=torch.float32)
    if asked.lora_rank:
        add_adapters(policy, asked.lora_rank, alpha=8.0)
    if asked.gradient_checkpointing:
        policy.gradient_checkpointing_enable({"use_reentrant": False})
    learned = [weight for weight in policy.parameters() if weight.requires_grad]
    policy, optimizer = accelerator.prepare(policy, torch.optim.AdamW(learned))
    policy.train()
    length = int(asked.context * asked.sampled)
    turn = Turn((1,) * (asked.context - length), (2,) * length, (0.0,) * length, 0.0, "", "", fresh=True)
    batch = collate([Row(0, (turn,))], "turn")
    for _ in range(2):
        (-batch_log_probs(policy, batch, 1.0).sum()).backward()
        optimizer.step()
        optimizer.zero_grad()


def draw(file: Path) -> None:
    """What a token takes with the shapes of Qwen2.5."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    for panel, name in zip(axes, ("0.5B", "1.5B"), strict=True):
        model = Qwen2Config(vocab_size=151_936, num_key_value_heads=2, tie_word_embeddings=True, **SHAPES[name])
        lengths = [1_024, 2_048, 4_096, 8_192, 16_384]
        for case, settings in CASES.items():
            short = plan(model, PlanConfig(model=name, context=1_024, microbatch=1, slots=16, **settings))
            held = short.update - short.activations - short.logits
            peaks = [
                max(
                    held + (short.activations + short.logits) * length // 1_024,
                    short.generation + short.cache * (length - 1_024) // 1_024,
                )
                / 2**30
                for length in lengths
            ]
            panel.plot(lengths, peaks, marker="o", label=case)
        panel.axhline(24, color="grey", linestyle="--", label="24 GiB")
        panel.set(title=name, xlabel="tokens of a conversation", ylabel="peak GiB", yscale="log", xscale="log")
        panel.set_xticks(lengths, [f"{length // 1_024}k" for length in lengths], minor=False)
    axes[0].legend(fontsize="small")
    figure.savefig(file)
    plt.close(figure)


def main(config: Config) -> None:
    """Print the table, or draw."""
    if config.plot is not None:
        draw(config.plot)
        return
    torch.set_num_threads(1)  # A process with more of them cannot be copied.
    model = shape(config.hidden, config.layers)
    print("| update of | planned MiB | measured MiB | measured / planned |\n| --- | --- | --- | --- |")
    for name, settings in CASES.items():
        asked = PlanConfig(model="", context=config.tokens, microbatch=1, sampled=SAMPLED, slots=1, **settings)
        measured, planned = measure(model, asked), plan(model, asked).update
        print(f"| {name} | {planned / 2**20:.0f} | {measured / 2**20:.0f} | {measured / planned:.2f} |", flush=True)


if __name__ == "__main__":
    main(tyro.cli(Config, description=__doc__))
