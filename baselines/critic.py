"""A critic: a model of the policy's kind with one number per token, the estimate of what will still be earned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForTokenClassification, PreTrainedModel

from baselines.rollouts import Array, Level
from baselines.trajectory import Trajectory


def load_critic(name_or_path: str) -> PreTrainedModel:
    """The critic in a folder; or one that begins with a policy's weights, and with the estimate 0 everywhere."""
    config = AutoConfig.from_pretrained(name_or_path, num_labels=1)
    config.classifier_dropout = 0.0  # What was collected and what is learned are estimates of the same function.
    model, loading = AutoModelForTokenClassification.from_pretrained(
        name_or_path, config=config, output_loading_info=True
    )
    for name, parameter in model.named_parameters():
        # A copy: a sum over weights that lie in a mapped file is not equal to the last bit, as a resumed run must be.
        parameter.data = parameter.data.clone()
        if name in loading["missing_keys"]:
            torch.nn.init.zeros_(parameter)
    return model  # type: ignore[no-any-return]


def estimates(critic: Any, ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
    """The estimate before each token, from the tokens before it; 0 for the first. All of shape (batch, time)."""
    numbers = critic(input_ids=ids, attention_mask=attention_mask).logits.squeeze(-1).float()
    return torch.nn.functional.pad(numbers[:, :-1], (1, 0))


@torch.no_grad()
def read_values(
    critic: Any, trajectories: Sequence[Trajectory], level: Level, microbatch: int, device: torch.device
) -> tuple[Array, Array]:
    """What a critic says of the steps of episodes.

    Args:
        critic: model that `load_critic` returned, or a wrapper around it.
        trajectories: the episodes.
        level: unit that counts as a step.
        microbatch: number of episodes that go through the critic at once.
        device: device that holds the critic.

    Returns:
        `Rollouts.values`, shape (episodes, steps), and `Rollouts.bootstrap`, shape (episodes,).
    """
    rows: list[list[float]] = []
    bootstrap: list[float] = []
    for start in range(0, len(trajectories), microbatch):
        some = trajectories[start : start + microbatch]
        conversations = [[*t.ids, *t.closing] for t in some]
        width = max(len(ids) for ids in conversations) + 1  # The estimate after the last token stands one further on.
        ids = torch.tensor([ids + [0] * (width - len(ids)) for ids in conversations], device=device)
        mask = torch.tensor([[1] * len(ids) + [0] * (width - len(ids)) for ids in conversations], device=device)
        numbers = estimates(critic, ids, mask).tolist()
        for trajectory, conversation, line in zip(some, conversations, numbers, strict=True):
            at, row = 0, []
            for turn in trajectory.turns:
                begin = at + len(turn.prompt)
                at = begin + len(turn.action)
                row += line[begin : begin + 1] if level == "turn" else line[begin:at]
            rows.append(row)
            bootstrap.append(0.0 if trajectory.terminated else line[len(conversation)])
    values = np.zeros((len(rows), max((len(row) for row in rows), default=0)))
    for number, row in enumerate(rows):
        values[number, : len(row)] = row
    return values, np.array(bootstrap, dtype=np.float64)
