"""Supervised fine-tuning on demonstrations, with TRL's `SFTTrainer`; by default on the agent's tokens only.

python -m baselines.sft --model runs/tiny --demos demos.jsonl --out runs/sft

The folder holds the policy, and beside it how it came about; every start begins anew:

    fine-tuning/config.json          what was asked for
    fine-tuning/metrics.jsonl        loss and learning rate, every five updates; `iteration` is the number of updates
    fine-tuning/log.jsonl            starts and stops, with versions, git revision and cause
    fine-tuning/trajectories.jsonl   some demonstrations to read
    fine-tuning/index.html           all of this as a page
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from baselines.command_line import LogFunction, run_from_terminal
from baselines.settings.config import check_above_zero, check_at_least
from baselines.settings.dialogue import check_plain, dialogue_of
from baselines.settings.run_folder import (
    METRICS,
    append_metrics,
    check_folder,
    claim_folder,
    drop_metrics_after,
    hold_folder,
)
from textagent_gym.errors import TextAgentError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase
    from trl import SFTTrainer

RECORD = "fine-tuning"
"""Folder inside the policy's that says how it was made; the policy's own `config.json` is that of its model."""


@dataclass(frozen=True, kw_only=True)
class FineTuningConfig:
    """Settings of an optimizer that fits a policy to given actions.

    Raises:
        InvalidOptionError: a value is out of its range.
    """

    epochs: float = 3.0
    """Number of passes over the data."""
    batch_size: int = 16
    """Number of conversations per update."""
    learning_rate: float = 1e-3
    """Highest learning rate, from which it falls linearly to zero.
    The default suits a tiny model; about 1e-5 suits a pretrained one."""

    def __post_init__(self) -> None:
        check_above_zero("epochs", self.epochs)
        check_at_least("batch_size", self.batch_size, 1)
        check_at_least("learning_rate", self.learning_rate, 0)


@dataclass(frozen=True, kw_only=True)
class Config(FineTuningConfig):
    """Supervised fine-tuning on the agent's turns of demonstrations."""

    model: str
    """Folder or hub name of the policy to begin with."""
    demos: Path
    """JSONL file with one conversation per line, as `textagent-gym demos` writes it."""
    out: Path
    """Folder for the trained policy."""
    max_length: int | None = 2_048
    """Largest number of tokens per conversation; a longer one is cut at its end, with `None` none is."""
    every_token: bool = False
    """Whether every token is trained on, not the agent's alone.
    It teaches a tiny model the language of a world."""
    max_demos: int | None = None
    """Largest number of demonstrations, from the first one; by default all."""
    seed: int = 0
    """Seed of the order of the demonstrations."""


class DemonstrationError(TextAgentError, ValueError):
    """The file of demonstrations cannot be used; the message says which line and why."""


def read_demos(path: Path, limit: int | None = None) -> list[dict[str, Any]]:
    """The conversations of a JSONL file: `messages`, and `instructed` if they begin with the world's instructions.

    Raises:
        DemonstrationError: the file is empty, a line is not a conversation, or only some conversations begin with the
            instructions of their environment.
    """
    demos = []
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                demo = json.loads(line)
                messages, instructed = demo["messages"], bool(demo.get("instructed", False))
                roles = [message["role"] for message in messages]
            except (ValueError, KeyError, TypeError) as error:
                raise DemonstrationError(f"{path}, line {number}: not a conversation ({error!r})") from error
            if "assistant" not in roles:
                raise DemonstrationError(f"{path}, line {number}: the agent says nothing")
            demos.append({"messages": messages, "instructed": instructed})
            if instructed != demos[0]["instructed"]:
                raise DemonstrationError(
                    f"{path}, line {number}: some conversations were recorded with instructions and some without; "
                    "a policy is played in one way, so put them into two files"
                )
            if limit is not None and len(demos) == limit:
                break
    if not demos:
        raise DemonstrationError(f"{path} holds no demonstrations; make some with: textagent-gym demos ID --out {path}")
    return demos


def common_system(demos: list[dict[str, Any]]) -> str:
    """The system message with which every conversation begins; empty if they differ or have none."""
    firsts = [demo["messages"][0] for demo in demos]
    systems = {first["content"] if first["role"] == "system" else "" for first in firsts}
    return str(systems.pop()) if len(systems) == 1 else ""


def make_trainer(config: Config) -> SFTTrainer:
    """TRL's trainer over the demonstrations."""
    demos = read_demos(config.demos, config.max_demos)  # First: a file that cannot be used is told before a long load.
    from baselines.policy.models import load_policy

    return fit(
        *load_policy(config.model),
        [{"messages": demo["messages"]} for demo in demos],
        config,
        config.out,
        seed=config.seed,
        max_length=config.max_length,
        assistant_only_loss=not config.every_token,
    )


def fit(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    rows: list[dict[str, Any]],
    config: FineTuningConfig,
    out: Path,
    *,
    seed: int,
    max_length: int | None = None,
    assistant_only_loss: bool = False,
) -> SFTTrainer:
    """TRL's trainer over conversations, before its first update.

    Args:
        model, tokenizer: the policy, which is changed.
        rows: conversations, as `messages`, or as `input_ids` with `labels` (-100 where nothing is learned).
        config: settings of the optimizer.
        out: folder that TRL may write to.
        seed: seed of the order of the rows.
        max_length: largest number of tokens per conversation; a longer one is cut at its end.
        assistant_only_loss: whether only the agent's tokens of `messages` are trained on.
    """
    from datasets import Dataset
    from trl import SFTConfig, SFTTrainer

    from baselines.training.allocator import keep_freed_memory

    keep_freed_memory()
    arguments = SFTConfig(
        output_dir=str(out),
        num_train_epochs=config.epochs,
        per_device_train_batch_size=config.batch_size,
        learning_rate=config.learning_rate,
        lr_scheduler_type="linear",
        warmup_steps=5,
        max_length=max_length,
        assistant_only_loss=assistant_only_loss,
        logging_steps=5,
        save_strategy="no",
        report_to=[],
        seed=seed,
        bf16=False,
        gradient_checkpointing=False,
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    return SFTTrainer(model=model, processing_class=tokenizer, args=arguments, train_dataset=Dataset.from_list(rows))


def run(config: Config, log: LogFunction | None = None) -> Path:
    """Train and save; returns the folder of the policy.

    Args:
        config: settings of the training.
        log: called with `step`, `steps` and what TRL measured, such as `loss`.

    Raises:
        DemonstrationError: the file of demonstrations cannot be used.
        InvalidOptionError: the policy converses otherwise than demonstrations do.
        RunFolderError: the folder cannot be written, or is in use.
    """
    check_folder(config.out)
    check_plain(dialogue_of(config.model))
    trainer = make_trainer(config)
    is_main = trainer.is_world_process_zero()

    def keep(metrics: dict[str, Any]) -> None:
        if is_main:
            measured = {name: value for name, value in metrics.items() if name not in ("step", "steps")}
            append_metrics(config.out / RECORD, {"iteration": metrics["step"], **measured})
        if log is not None:
            log(metrics)

    report(trainer, keep)
    with _recorded(config, trainer) if is_main else nullcontext():
        trainer.train()
        trainer.save_model(str(config.out))
        _save_chat(config)
    return config.out


@contextmanager
def _recorded(config: Config, trainer: SFTTrainer) -> Iterator[None]:
    """Record in the policy's folder how it is made, from its start to its stop."""
    from baselines.training.run_log import TRAJECTORIES, demonstration_lines, keep_sample, logged

    folder = config.out / RECORD
    with hold_folder(folder):
        claim_folder(folder, config, may_change=[field.name for field in fields(config)])
        for file in (METRICS, TRAJECTORIES):
            drop_metrics_after(folder, -1, file)
        demos = read_demos(config.demos, config.max_demos)
        arguments = trainer.args
        with logged(
            folder, lambda: trainer.state.global_step, processes=arguments.world_size, device=str(arguments.device)
        ):
            keep_sample(folder, demonstration_lines([demo["messages"] for demo in demos]))
            yield


def report(trainer: SFTTrainer, log: LogFunction) -> None:
    """Hand every value that TRL logs on, instead of printing it."""
    from transformers import PrinterCallback, TrainerCallback

    class Report(TrainerCallback):  # type: ignore[misc]
        def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **_: Any) -> None:
            log({"step": state.global_step, "steps": state.max_steps, **(logs or {})})

    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(Report())


def _save_chat(config: Config) -> None:
    """Keep with the policy how it was trained: with each environment's instructions, or with one system message."""
    from baselines.policy.chat import ChatFormat
    from baselines.policy.models import load_policy

    _, tokenizer = load_policy(str(config.out))
    demos = read_demos(config.demos, config.max_demos)
    instructed = demos[0]["instructed"]
    ChatFormat(tokenizer, "" if instructed else common_system(demos), instructed).save(config.out)


if __name__ == "__main__":
    run_from_terminal(Config, run, after_stop="begins anew")
