"""Token-exact episodes: what the policy read, what it sampled, and what each turn earned.

turn:        prompt ids (observation) | action ids (sampled)
trajectory:  prompt action prompt action prompt action
loss mask:   0      1      0      1      0      1
rewards:            r1            r2            r3     on the last token of each action
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of an episode.

    Attributes:
        prompt: ids that were added to the conversation before the action.
        action: ids that the policy sampled, the end token included where it was sampled.
        log_probs: natural log-probability of each action id when it was sampled.
        reward: of the turn.
        text: the action as the environment received it.
        observation: what the policy read before it acted.
        valid: the environment understood the action (true where it does not tell).
    """

    prompt: tuple[int, ...]
    action: tuple[int, ...]
    log_probs: tuple[float, ...]
    reward: float
    text: str
    observation: str
    valid: bool = True


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One episode.

    Attributes:
        turns: in order, at least one.
        group: episodes of the same group began in the same state.
        task: id of the task where the environment tells it.
        task_type: what sort of task it is, where the environment tells it.
        success: the goal was reached; `None` where the environment does not tell.
        terminated: the world ended the episode.
        overflow: the conversation reached the policy's context length, which cut the episode.
        last_observation: what the environment said last.
    """

    turns: tuple[Turn, ...]
    group: int
    task: str | None = None
    task_type: str = ""
    success: bool | None = None
    terminated: bool = False
    overflow: bool = False
    last_observation: str = ""
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def total_reward(self) -> float:
        """Sum of the rewards, undiscounted."""
        return sum(turn.reward for turn in self.turns)

    @property
    def ids(self) -> list[int]:
        """The whole conversation."""
        return [token for turn in self.turns for token in (*turn.prompt, *turn.action)]


@dataclass(frozen=True, slots=True)
class Batch:
    """Trajectories side by side, padded on the right; every tensor has the shape (batch, time).

    Attributes:
        ids: int64; padding is 0 and not attended to.
        attention_mask: int64, 1 for every token of the conversation, prompts included.
        action_mask: float32, 1 for every sampled token.
        log_probs: float32, of the sampled tokens when they were sampled; 0 elsewhere.
        rewards: float32, each turn's on the last token of its action.
        turns: int64, number of the turn that a sampled token belongs to, from 0; 0 elsewhere too.
    """

    ids: torch.Tensor
    attention_mask: torch.Tensor
    action_mask: torch.Tensor
    log_probs: torch.Tensor
    rewards: torch.Tensor
    turns: torch.Tensor


def collate(trajectories: Sequence[Trajectory]) -> Batch:
    """Pad trajectories to a batch."""
    length = max(len(trajectory.ids) for trajectory in trajectories)
    shape = (len(trajectories), length)
    ids = torch.zeros(shape, dtype=torch.int64)
    attention = torch.zeros(shape, dtype=torch.int64)
    action = torch.zeros(shape)
    log_probs = torch.zeros(shape)
    rewards = torch.zeros(shape)
    turns = torch.zeros(shape, dtype=torch.int64)
    for row, trajectory in enumerate(trajectories):
        at = 0
        for number, turn in enumerate(trajectory.turns):
            start = at + len(turn.prompt)
            end = start + len(turn.action)
            ids[row, at:end] = torch.tensor((*turn.prompt, *turn.action), dtype=torch.int64)
            action[row, start:end] = 1.0
            log_probs[row, start:end] = torch.tensor(turn.log_probs)
            rewards[row, end - 1] = turn.reward
            turns[row, start:end] = number
            at = end
        attention[row, :at] = 1
    return Batch(ids, attention, action, log_probs, rewards, turns)
