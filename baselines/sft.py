"""Supervised fine-tuning on demonstrations, with TRL's `SFTTrainer`; by default on the agent's tokens only.

python -m baselines.sft --model runs/tiny --demos demos.jsonl --out runs/sft
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from datasets import Dataset
from transformers import TrainerCallback
from trl import SFTConfig, SFTTrainer

from baselines.allocator import keep_freed_memory
from baselines.models import load_policy


@dataclass(frozen=True)
class Config:
    """Supervised fine-tuning on the agent's turns of demonstrations."""

    model: str
    """Folder or hub name of the policy to begin with."""
    demos: Path
    """JSONL with a conversation a line, as `textagent-gym demos` writes it."""
    out: Path
    """Folder for the trained policy."""
    epochs: float = 3.0
    """Passes over the demonstrations."""
    batch_size: int = 16
    """Conversations of an update."""
    learning_rate: float = 1e-3
    """Peak; it falls linearly to zero. The default suits a tiny model: use about 1e-5 for a pretrained one."""
    max_length: int = 2_048
    """Tokens of a conversation at most; a longer one is cut at its end."""
    agent_only: bool = True
    """Learn what the agent says only; otherwise every token, which teaches a tiny model the language of a world."""
    max_demos: int | None = None
    """Use the first so many demonstrations only."""
    seed: int = 0
    """Of the order of the demonstrations."""


class DemonstrationError(ValueError):
    """The file of demonstrations cannot be used; the message says which line and why."""


def read_demos(path: Path, limit: int | None = None) -> list[dict[str, Any]]:
    """The conversations of a JSONL file.

    Raises:
        DemonstrationError: the file is empty, or a line is no conversation.
    """
    demos = []
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                messages = json.loads(line)["messages"]
                roles = [message["role"] for message in messages]
            except (ValueError, KeyError, TypeError) as error:
                raise DemonstrationError(f"{path}, line {number}: no conversation ({error!r})") from error
            if "assistant" not in roles:
                raise DemonstrationError(f"{path}, line {number}: the agent says nothing")
            demos.append({"messages": messages})
            if limit is not None and len(demos) == limit:
                break
    if not demos:
        raise DemonstrationError(f"{path} holds no demonstrations; make some with: textagent-gym demos ID --out {path}")
    return demos


def make_trainer(config: Config) -> SFTTrainer:
    """TRL's trainer over the demonstrations."""
    keep_freed_memory()
    model, tokenizer = load_policy(config.model)
    arguments = SFTConfig(
        output_dir=str(config.out),
        num_train_epochs=config.epochs,
        per_device_train_batch_size=config.batch_size,
        learning_rate=config.learning_rate,
        lr_scheduler_type="linear",
        warmup_steps=5,
        max_length=config.max_length,
        assistant_only_loss=config.agent_only,
        logging_steps=5,
        save_strategy="no",
        report_to=[],
        seed=config.seed,
        bf16=False,
        gradient_checkpointing=False,
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    return SFTTrainer(
        model=model,
        processing_class=tokenizer,
        args=arguments,
        train_dataset=Dataset.from_list(read_demos(config.demos, config.max_demos)),
    )


class _Report(TrainerCallback):
    """Hands every logged value on, instead of printing it."""

    def __init__(self, log: Callable[[dict[str, float]], None]) -> None:
        self._log = log

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **_: Any) -> None:
        self._log({"step": state.global_step, "steps": state.max_steps, **(logs or {})})


def train(config: Config, log: Callable[[dict[str, float]], None] | None = None) -> Path:
    """Train and save; returns the folder of the policy.

    Args:
        config: what to do.
        log: called with `step`, `steps` and what TRL measured, such as `loss`.
    """
    trainer = make_trainer(config)
    if log is not None:
        from transformers import PrinterCallback

        trainer.remove_callback(PrinterCallback)
        trainer.add_callback(_Report(log))
    trainer.train()
    trainer.save_model(str(config.out))
    return config.out


def main() -> None:
    """Command line."""
    config = tyro.cli(Config)
    train(config)
    print(f"Policy saved to {config.out}")


if __name__ == "__main__":
    main()
