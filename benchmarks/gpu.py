"""Training on one device: generation, iterations and memory of models of Qwen2.5's shapes, as a Markdown table.

    python -m benchmarks.gpu --shape 0.5B                        on a GPU
    python -m benchmarks.gpu --long                              1.5B weights and conversations of 16k tokens
    python -m benchmarks.gpu --shape tiny --precision float32    anywhere

The weights are random and made on the spot, so nothing is downloaded. It needs torch, transformers, accelerate and
peft; vLLM and TRL are measured where they are installed. The environment only speaks: its observations have a fixed
number of words, and its reward follows from the action, so that every episode is learned from.

Each row is a process of its own, and is printed, and added to `--out`, when it is measured. Memory is the peak of what
torch has allocated on a GPU, and of the process's pages on a CPU; beside it stands what `baselines.memory_plan`
calculates, and vLLM's own memory where it generates. TRL generates as many tokens in one turn, without an environment.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

import gymnasium
import numpy as np
import torch
import tyro
from transformers import AutoConfig, Qwen2Config, Qwen2ForCausalLM

from baselines import grpo, memory_plan
from baselines.policy.models import make_tokenizer
from baselines.settings.config import Precision
from baselines.training import trainer
from textagent_gym.spaces import UnicodeText

ENV = "benchmarks/Words-v0"
WORDS = ("lamp", "door", "river", "stone", "apple", "glass", "north", "chair")
SHAPES: dict[str, dict[str, int]] = {
    "tiny": {"hidden_size": 64, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 2},
    "0.5B": {"hidden_size": 896, "intermediate_size": 4_864, "num_hidden_layers": 24, "num_attention_heads": 14},
    "1.5B": {"hidden_size": 1_536, "intermediate_size": 8_960, "num_hidden_layers": 28, "num_attention_heads": 12},
}
"""Sizes of Qwen2.5's models, from their published configurations; all have two heads of keys and values."""
VOCABULARY = {"tiny": 512, "0.5B": 151_936, "1.5B": 151_936}
LEARNING_RATE = 1e-7  # So small that the policy, and with it the work, stays the same.
ROWS = {
    "transformers": "textagent-gym, transformers",
    "vllm": "textagent-gym, vLLM",
    "trl": "TRL, transformers",
    "trl-vllm": "TRL, vLLM",
}
"""What is measured, by the word of `--row`."""


@dataclass(frozen=True)
class Config:
    """How much is measured."""

    shape: Literal["tiny", "0.5B", "1.5B"] = "0.5B"
    """Shape of the model."""
    iterations: int = 3
    """Number of iterations per row; the first is a warm-up and not counted."""
    groups: int = 8
    """Number of tasks per iteration."""
    group_size: int = 8
    """Number of episodes per task."""
    turns: int = 8
    """Number of turns per episode."""
    words: int = 100
    """Number of words per observation."""
    action_tokens: int = 24
    """Largest number of tokens per action."""
    microbatch: int = 8_192
    """Number of tokens that go through the model at once."""
    lora_rank: int = 16
    """Rank of low-rank adapters; 0 learns all weights."""
    precision: Precision = "bfloat16"
    """Precision of the matrix products."""
    vllm_memory: float = 0.4
    """Share of the GPU's memory that vLLM takes for its weights and its cache."""
    long: bool = False
    """Whether conversations have 16k tokens and the model 1.5B weights, 16 at once: the shape, the numbers of tasks,
    turns, words and action tokens and of iterations are then others where they are not given."""
    cpu: bool = False
    """Whether shapes other than tiny are measured on a CPU too, which takes hours."""
    out: Path | None = None
    """Markdown file that the rows are added to."""
    row: str | None = None
    """The only row that is measured, in this process; its numbers are printed as JSON."""

    @property
    def episodes(self) -> int:
        """Number of episodes per iteration."""
        return self.groups * self.group_size


LONG = Config(long=True, shape="1.5B", iterations=2, groups=2, turns=16, words=920, action_tokens=100, vllm_memory=0.3)
"""16 conversations of about 16,384 tokens, of which a tenth is sampled."""


@dataclass(frozen=True)
class Row:
    """What one way to train has measured; times are medians over the counted iterations.

    Attributes:
        generation: seconds of an iteration in which episodes are played.
        iteration: seconds of a whole iteration.
        sampled: number of tokens that were sampled in an iteration.
        longest: number of tokens of the longest conversation.
        peak: largest memory in bytes.
        planned: the same by calculation; 0 where there is none.
    """

    generation: float
    iteration: float
    sampled: float
    longest: int
    peak: int
    planned: int = 0


class Words(gymnasium.Env[str, str]):
    """A world that says words, whatever it is told."""

    observation_space = UnicodeText()
    action_space = UnicodeText()

    def __init__(self, turns: int, words: int) -> None:
        self._turns = turns
        self._words = words

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """See `gymnasium.Env.reset`."""
        super().reset(seed=seed)
        self._turn = 0
        return self._say(), {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """See `gymnasium.Env.step`."""
        self._turn += 1
        return self._say(), (len(action) % 7) / 7, self._turn == self._turns, False, {}

    def _say(self) -> str:
        return " ".join(self.np_random.choice(WORDS, self._words))


def make_policy(folder: Path, shape: str) -> None:
    """A model of a shape with random weights, and a tokenizer that knows the words."""
    env = Words(turns=1, words=1_000)
    tokenizer = make_tokenizer(env.reset(seed=seed)[0] for seed in range(4))
    config = Qwen2Config(
        vocab_size=VOCABULARY[shape],
        num_key_value_heads=2,
        max_position_embeddings=32_768,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        **SHAPES[shape],
    )
    torch.manual_seed(0)
    Qwen2ForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


class Peak:
    """The largest memory that this process takes from now on."""

    def __init__(self) -> None:
        if torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats()
        else:
            Path("/proc/self/clear_refs").write_text("5")  # Linux: the largest size so far is forgotten.
            self._before = _pages("VmRSS")

    def read(self) -> int:
        """Bytes above those at the begin; on a GPU all bytes."""
        return torch.cuda.max_memory_allocated() if torch.cuda.is_available() else _pages("VmHWM") - self._before


def _pages(name: str) -> int:
    """A number of bytes from Linux's account of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1_024 for line in lines if line.startswith(f"{name}:"))


def run_ours(config: Config, policy: Path, out: Path) -> Row:
    """The iterations of this suite's GRPO, with the generator that `config.row` names."""
    if ENV not in gymnasium.registry:
        gymnasium.register(ENV, Words)
    longest = 0
    seen: list[dict[str, Any]] = []
    learn = trainer.update

    def update(learner: Any, method: Any, settings: Any, trajectories: Any, *args: Any, **more: Any) -> Any:
        nonlocal longest
        longest = max([longest, *(len(trajectory.ids) for trajectory in trajectories)])
        return learn(learner, method, settings, trajectories, *args, **more)

    settings = grpo.Config(
        model=str(policy),
        env=ENV,
        set={"turns": config.turns, "words": config.words},
        out=out,
        generator="vllm" if config.row == "vllm" else "transformers",
        vllm_memory=config.vllm_memory,
        iterations=config.iterations,
        groups=config.groups,
        group_size=config.group_size,
        slots=config.episodes,
        max_action_tokens=config.action_tokens,
        learning_rate=LEARNING_RATE,
        minibatches=1,
        microbatch=config.microbatch,
        lora_rank=config.lora_rank,
        gradient_checkpointing=True,
        precision=config.precision,
        checkpoint_every=config.iterations,
    )
    peak = Peak()
    with patch.object(trainer, "update", update):
        grpo.run(settings, seen.append)
    counted = seen[1:] or seen
    return Row(
        median([metrics["rollout_seconds"] for metrics in counted]),
        median([metrics["rollout_seconds"] + metrics["update_seconds"] for metrics in counted]),
        median([metrics["action_tokens"] for metrics in counted]),
        longest,
        peak.read(),
        planned_bytes(config, policy, longest),
    )


def planned_bytes(config: Config, policy: Path, longest: int) -> int:
    """The peak of an iteration by calculation: of the update beside vLLM, or with transformers of the larger part."""
    planned = memory_plan.plan(
        AutoConfig.from_pretrained(policy),
        memory_plan.Config(
            model=str(policy),
            context=longest,
            microbatch=config.microbatch,
            sampled=min(1.0, config.turns * config.action_tokens / longest),
            slots=config.episodes,
            lora_rank=config.lora_rank,
            gradient_checkpointing=True,
            precision=config.precision,
        ),
    )
    return planned.update + vllm_bytes(config, planned.parameters) if config.row == "vllm" else planned.peak


def vllm_bytes(config: Config, parameters: int) -> int:
    """What vLLM holds beside the update: its share of a GPU, or its cache and its weights on a CPU."""
    if torch.cuda.is_available():
        return int(config.vllm_memory * torch.cuda.get_device_properties(0).total_memory)
    cache = int(os.environ.get("VLLM_CPU_KVCACHE_SPACE", "1")) * 2**30
    return cache + parameters * (2 if config.precision == "bfloat16" else 4)


def trl_settings(config: Config, out: Path) -> dict[str, Any]:
    """The settings of TRL's GRPO that give the work of this suite's; with `config.row` "trl-vllm" vLLM generates."""
    device_batch = max(config.group_size, config.episodes // 8)
    vllm = config.row == "trl-vllm"
    settings = {
        "output_dir": str(out),
        "max_steps": config.iterations,
        "per_device_train_batch_size": device_batch,
        "gradient_accumulation_steps": config.episodes // device_batch,
        "steps_per_generation": config.episodes // device_batch,
        "num_generations": config.group_size,
        "max_completion_length": config.turns * config.action_tokens,
        "use_vllm": vllm,
        "temperature": 1.0,
        "top_k": 0,
        "beta": 0.0,
        "learning_rate": LEARNING_RATE,
        "use_cpu": not torch.cuda.is_available(),
        "bf16": config.precision == "bfloat16",
        "gradient_checkpointing": True,
        "report_to": [],
        "disable_tqdm": True,
        "logging_strategy": "no",
        "save_strategy": "no",
    }
    if vllm:
        settings |= {
            "vllm_mode": "colocate",  # In the trainer's process, as this suite's.
            "vllm_gpu_memory_utilization": config.vllm_memory,
            "vllm_importance_sampling_correction": False,
        }
    return settings


def run_trl(config: Config, policy: Path, out: Path) -> Row:
    """The iterations of TRL's GRPO: a prompt as long as all observations, and one completion as long as all actions."""
    import datasets
    from peft import LoraConfig
    from transformers import AutoTokenizer, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    if config.row == "trl-vllm" and not torch.cuda.is_available():
        import vllm._custom_ops as operators

        operators._supports_onednn = False  # Packed layers cannot be given weights.
    times: list[tuple[float, float]] = []
    sampled: list[float] = []
    notes: dict[str, float] = {}

    class Timed(GRPOTrainer):  # type: ignore[misc]
        def _generate_and_score_completions(self, inputs: Any) -> Any:
            started = time.perf_counter()
            outputs = super()._generate_and_score_completions(inputs)
            notes["generation"] = time.perf_counter() - started
            sampled.append(float(outputs["completion_mask"].sum()))
            notes["longest"] = outputs["prompt_ids"].shape[1] + outputs["completion_ids"].shape[1]
            return outputs

    class Clock(TrainerCallback):  # type: ignore[misc]
        def on_step_begin(self, *_: Any, **__: Any) -> None:
            notes["started"] = time.perf_counter()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            times.append((notes["generation"], time.perf_counter() - notes["started"]))

    env = Words(turns=1, words=config.turns * config.words)
    prompts = [{"prompt": env.reset(seed=number)[0]} for number in range(config.groups)]
    peak = Peak()
    adapters = LoraConfig(r=config.lora_rank, target_modules="all-linear") if config.lora_rank else None
    Timed(
        model=str(policy),
        reward_funcs=lambda completions, **_: [(len(text) % 7) / 7 for text in completions],
        args=GRPOConfig(**trl_settings(config, out)),
        train_dataset=datasets.Dataset.from_list(prompts),
        processing_class=AutoTokenizer.from_pretrained(policy, padding_side="left"),
        callbacks=[Clock()],
        peft_config=adapters,
    ).train()
    counted = times[1:] or times
    return Row(
        median([generation for generation, _ in counted]),
        median([iteration for _, iteration in counted]),
        median(sampled[1:] or sampled),
        int(notes["longest"]),
        peak.read(),
    )


def median(values: list[float]) -> float:
    """The median as a number that JSON knows."""
    return float(np.median(values))


def rows_of() -> list[str]:
    """What can be measured here."""
    installed = {name for name in ("vllm", "trl") if find_spec(name)}
    return [row for row in ROWS if set(row.split("-")) - {"transformers"} <= installed]


def measure(config: Config) -> Row | str:
    """One row, measured in a process of its own; a text says why there is none."""
    words = []
    for name, value in asdict(config).items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            words += [flag] if value else []
        elif value is not None:
            words.append(f"{flag}={value}")
    command = [sys.executable, "-m", "benchmarks.gpu", *words]
    environment = {"OMP_WAIT_POLICY": "passive", **os.environ}  # Waiting threads would take the cores of a small CPU.
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    lines = [line for line in (done.stdout if done.returncode == 0 else done.stderr).splitlines() if line.strip()]
    if done.returncode != 0:
        return lines[-1] if lines else f"ended with {done.returncode}"
    return Row(**json.loads(lines[-1]))


def heading(config: Config) -> list[str]:
    """The lines of the table before its rows."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    return [
        f"{config.shape}, {config.precision}, LoRA rank {config.lora_rank}, microbatch {config.microbatch}, "
        f"{config.episodes} episodes of {config.turns} turns, on: {device}",
        "",
        "| trainer, generation | longest | sampled tokens/s | generation s | iteration s | peak GiB | planned GiB |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]


def line_of(name: str, row: Row | str) -> str:
    """A row as a line of the table."""
    if isinstance(row, str):
        return f"| {ROWS[name]} | failed: {row} | | | | | |"
    planned = f"{row.planned / 2**30:.2f}" if row.planned else ""
    return (
        f"| {ROWS[name]} | {row.longest} | {row.sampled / row.generation:.0f} | {row.generation:.2f} | "
        f"{row.iteration:.2f} | {row.peak / 2**30:.2f} | {planned} |"
    )


def show(config: Config, lines: Sequence[str]) -> None:
    """Print lines, and add them to the file: a row that hangs must not lose those before it."""
    for line in lines:
        print(line, flush=True)
    if config.out is not None:
        config.out.parent.mkdir(parents=True, exist_ok=True)
        with open(config.out, "a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)


def read_settings(arguments: Sequence[str]) -> Config:
    """The settings of a command line; `--long` changes those that are not given."""
    return tyro.cli(Config, description=__doc__, args=arguments, default=LONG if "--long" in arguments else Config())


def main(config: Config) -> None:
    """Measure and print.

    Raises:
        SystemExit: there is no GPU, and the shape is too large for anything else.
    """
    if config.shape != "tiny" and not config.cpu and not torch.cuda.is_available():
        raise SystemExit(
            f"There is no CUDA device here, and the shape {config.shape} would take hours on a CPU. Pass --shape tiny "
            "--precision float32 to see the table anywhere, or --cpu to measure this shape all the same."
        )
    if config.row is None:
        show(config, heading(config))
        for name in rows_of():
            show(config, [line_of(name, measure(replace(config, out=None, row=name)))])
        return
    with tempfile.TemporaryDirectory() as home:
        policy, out = Path(home) / "policy", Path(home) / "out"
        make_policy(policy, config.shape)
        print(json.dumps(asdict((run_trl if config.row.startswith("trl") else run_ours)(config, policy, out))))


if __name__ == "__main__":
    main(read_settings(sys.argv[1:]))
