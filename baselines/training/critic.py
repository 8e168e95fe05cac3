"""A critic: a model of the policy's kind with one number per token, the estimate of what will still be earned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForTokenClassification, PreTrainedModel

from baselines.credit.rollouts import Array
from baselines.policy.microbatches import pack
from baselines.rollout.trajectory import Trajectory, Turn, rows_of
from baselines.settings.config import Level


def load_critic(name_or_path: str) -> PreTrainedModel:
    """The critic in a folder, in float32; or one with a policy's weights, which estimates 0 everywhere."""
    config = AutoConfig.from_pretrained(name_or_path, num_labels=1)
    config.classifier_dropout = 0.0  # What was collected and what is learned are estimates of the same function.
    model, loading = AutoModelForTokenClassification.from_pretrained(
        name_or_path, config=config, dtype=torch.float32, output_loading_info=True
    )
    for name, parameter in model.named_parameters():
        # A copy: a sum over weights that lie in a mapped file is not equal to the last bit, as a resumed run must be.
        parameter.data = parameter.data.clone()
        if name in loading["missing_keys"]:
            torch.nn.init.zeros_(parameter)
    return model


def estimates(critic: Any, ids: torch.Tensor) -> torch.Tensor:
    """The estimate before each token, from the tokens before it; 0 for the first. All of shape (batch, time)."""
    # Rows are padded on the right, so attention that is causal needs no mask.
    numbers = critic(input_ids=ids).logits.squeeze(-1).float()
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
        microbatch: number of tokens that go through the critic at once.
        device: device that holds the critic.

    Returns:
        `Rollouts.values`, shape (episodes, steps), and `Rollouts.bootstrap`, shape (episodes,).
    """
    rows = rows_of([replace(t, turns=(*t.turns, _silent_turn(t))) for t in trajectories])
    estimated: list[list[float]] = [[] for _ in rows]
    for places in pack([len(row.ids) for row in rows], microbatch):
        some = [rows[place] for place in places]
        width = max(len(row.ids) for row in some) + 1  # The estimate after the last token stands one further on.
        ids = torch.tensor([row.ids + [0] * (width - len(row.ids)) for row in some], device=device)
        numbers = estimates(critic, ids).tolist()
        for place, row, line in zip(places, some, numbers, strict=True):
            at = 0
            for turn in row.turns:
                begin = at + len(turn.prompt)
                at = begin + len(turn.action)
                estimated[place] += line[begin:at] if level == "token" and turn.action else line[begin : begin + 1]
    steps: list[list[float]] = [[] for _ in trajectories]
    for row, line in zip(rows, estimated, strict=True):
        steps[row.episode] += line
    bootstrap = [0.0 if t.terminated else line[-1] for t, line in zip(trajectories, steps, strict=True)]
    values = np.zeros((len(steps), max((len(line) - 1 for line in steps), default=0)))
    for number, line in enumerate(steps):
        values[number, : len(line) - 1] = line[:-1]
    return values, np.array(bootstrap, dtype=np.float64)


def _silent_turn(trajectory: Trajectory) -> Turn:
    """The turn after an episode's last one, in which nobody acts."""
    return Turn(trajectory.closing, (), (), 0.0, "", "", fresh=trajectory.closing_fresh)
