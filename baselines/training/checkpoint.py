"""What must survive a kill: weights, optimizer, and how far the run is. A checkpoint is replaced as a whole.

    checkpoint.new  --rename-->  checkpoint  --rename-->  checkpoint.old  --> deleted

At every instant `checkpoint` or `checkpoint.old` is whole. What is renamed has been flushed to the disk, so this holds
where the power fails too.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

from baselines.settings.run_folder import RESUMES, RunFolderError, flush_to_disk

_CRITIC = "critic"  # Folder of the critic inside a checkpoint; the policy lies in the checkpoint itself.


class CheckpointError(RunFolderError):
    """A checkpoint cannot be read or written; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint that can be resumed from.

    Attributes:
        folder: folder of the checkpoint, from which `load_policy` reads the policy.
        iteration: number of iterations that were learned from.
        optimizer: state of the optimizer.
        schedule: state of the learning rate's schedule.
        successes: success rate of each iteration, which the curriculum follows.
        adapters: weights of the policy's adapters; none where it has none.
        behaviour: learned weights of the policy that plays the next iteration; none where it is the policy itself.
    """

    folder: Path
    iteration: int
    optimizer: dict[str, Any]
    schedule: dict[str, Any]
    successes: list[float]
    adapters: dict[str, torch.Tensor]
    behaviour: dict[str, torch.Tensor]

    @property
    def critic(self) -> Path:
        """Folder of the critic, for `load_critic`."""
        return self.folder / _CRITIC


def find_checkpoint(run: Path) -> Checkpoint | None:
    """The last whole checkpoint of a run: the old one, if the run was killed while it was being replaced.

    Raises:
        CheckpointError: there are checkpoints, and none can be read.
    """
    errors = []
    for folder in (run / "checkpoint", run / "checkpoint.old"):
        if not folder.is_dir():
            continue
        try:
            state = torch.load(folder / "state.pt", weights_only=True)
            if not (folder / "config.json").is_file():
                raise FileNotFoundError(f"{folder / 'config.json'} does not exist")
            for weights in folder.rglob("*.safetensors"):
                with safe_open(weights, "pt"):  # Its header tells how long it must be.
                    pass
            return Checkpoint(folder=folder, **state)
        except Exception as error:  # noqa: BLE001 (a file that was cut fails in as many ways as it has readers)
            errors.append((folder, error))
    if errors:
        raise damaged(errors)
    return None


def damaged(errors: Sequence[tuple[Path, Exception]]) -> CheckpointError:
    """What a user is told of checkpoints that cannot be read."""
    causes = "; ".join(f"{folder} is damaged ({error})" for folder, error in errors)
    return CheckpointError(f"{causes}. Delete what is damaged; without a checkpoint the run begins anew.")


def save_checkpoint(
    run: Path,
    iteration: int,
    *,
    optimizer: dict[str, Any],
    schedule: Any,
    successes: list[float],
    save_policy: Callable[[Path], None],
    adapters: dict[str, torch.Tensor],
    behaviour: dict[str, torch.Tensor],
    critic: Any = None,
) -> None:
    """Write a checkpoint, as a whole or not at all.

    Args:
        run: folder of the run.
        iteration: number of iterations that were learned from.
        optimizer: state of the optimizer.
        schedule: object with a `state_dict`.
        successes: success rate of each iteration.
        save_policy: writes the policy and its chat settings to a folder.
        adapters: weights of the policy's adapters.
        behaviour: learned weights of the policy that plays the next iteration, if it is another one.
        critic: model to save too; `None` for methods without one.
    """

    def write(folder: Path) -> None:
        save_policy(folder)
        if critic is not None:
            critic.save_pretrained(folder / _CRITIC)
        state = {
            "optimizer": optimizer,
            "schedule": schedule.state_dict(),
            "iteration": iteration,
            "successes": successes,
            "adapters": adapters,
            "behaviour": behaviour,
        }
        torch.save(state, folder / "state.pt")

    replace_folder(run / "checkpoint", write)


def replace_folder(folder: Path, write: Callable[[Path], None]) -> None:
    """Put what `write` writes in the place of a folder; a kill leaves the folder, or its predecessor beside it.

    Raises:
        CheckpointError: it could not be written, because the disk is full for example; the folder is what it was.
    """
    fresh, old = folder.with_name(f"{folder.name}.new"), folder.with_name(f"{folder.name}.old")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        fresh.mkdir(parents=True)
        write(fresh)
        # What a run has logged so far must not be lost where what it resumes from is not.
        for path in (*folder.parent.glob("*.jsonl"), *fresh.rglob("*"), fresh):
            flush_to_disk(path)
    except Exception as error:  # Each library that writes has errors of its own for a disk that is full.
        shutil.rmtree(fresh, ignore_errors=True)
        raise CheckpointError(f"{folder} could not be written ({error}); {RESUMES}") from error
    if folder.exists():
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
    fresh.rename(folder)
    flush_to_disk(folder.parent)
    shutil.rmtree(old, ignore_errors=True)
