"""Token-exact episodes: what the policy read, what it sampled, and what each turn earned.

turn:        prompt ids (observation) | action ids (sampled)
trajectory:  prompt action prompt action prompt action
loss mask:   0      1      0      1      0      1
rewards:            r1            r2            r3     on the last token of each action

A row is what a model reads at once. An episode is one row, unless its context was begun anew on the way (`memory.py`);
then each context is a row of its own, which holds the turns that share it:

rows:        prompt action prompt action
             prompt action                             from here on the policy read a rewritten context
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from baselines.settings.config import Level
from textagent_gym import Complexity


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of an episode.

    Attributes:
        prompt: ids that were added to the context before the action.
        action: ids that the policy sampled, the end token included where it was sampled.
        log_probs: natural log-probability of each action id when it was sampled.
        reward: reward of the turn.
        text: the action as the environment received it.
        observation: what the policy read before it acted.
        valid: whether the environment understood the action (true where it does not tell).
        fresh: whether the prompt begins a context of its own; that of an episode's first turn always does.
        state: key of the state in which it was taken; "" where the environment was not asked.
        value: mean return of the branches from that state; `None` without branches.
        moment: saved moment of the environment before the action; `None` unless `EpisodeRequest.saves`.
        label: what an expert would have done, in an environment with labels (`envs.labelled.Labelled`).
    """

    prompt: tuple[int, ...]
    action: tuple[int, ...]
    log_probs: tuple[float, ...]
    reward: float
    text: str
    observation: str
    valid: bool = True
    fresh: bool = False
    state: str = ""
    value: float | None = None
    moment: Any = field(default=None, compare=False, repr=False)
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One episode.

    Attributes:
        turns: turns in order, at least one.
        group: number of its group; episodes of the same group began in the same state.
        task: id of the task where the environment tells it.
        task_type: sort of the task, where the environment tells it.
        success: whether the goal was reached; `None` where the environment does not tell.
        terminated: whether the world ended the episode.
        truncated: whether the environment cut the episode, for example because the turn budget ran out.
        overflow: whether the conversation reached the policy's context length, which cut the episode.
        score: the world's own measure at the end, 0 to 1; `None` where it has none.
        last_observation: last text that the environment showed.
        closing: ids that the policy would have read next, with that observation; a critic reads them to value what
            was cut off.
        closing_fresh: whether these begin a context of their own.
        complexity: measured difficulty of the task, where the environment tells it.
        options: options of `reset` with which the episode began.
        sampling_seed: seed of the tokens that were sampled.
    """

    turns: tuple[Turn, ...]
    group: int
    task: str | None = None
    task_type: str = ""
    success: bool | None = None
    terminated: bool = False
    truncated: bool = False
    overflow: bool = False
    score: float | None = None
    last_observation: str = ""
    closing: tuple[int, ...] = ()
    closing_fresh: bool = False
    complexity: Complexity | None = None
    options: dict[str, Any] | None = None
    sampling_seed: int = 0

    @property
    def total_reward(self) -> float:
        """Sum of the rewards, undiscounted."""
        return sum(turn.reward for turn in self.turns)

    @property
    def ids(self) -> list[int]:
        """What was read and sampled, turn by turn; all rows one after the other."""
        return [token for turn in self.turns for token in (*turn.prompt, *turn.action)]

    @property
    def sampled(self) -> int:
        """Number of tokens that the policy sampled."""
        return sum(len(turn.action) for turn in self.turns)


@dataclass(frozen=True, slots=True)
class Row:
    """Turns of an episode that share a context.

    Attributes:
        episode: position of the episode among those that `rows_of` was given.
        turns: the turns in order, at least one.
        number: number of the first of them in the episode, from 0.
        sampled: number of tokens that the policy sampled in the episode before the row.
        start: position of the row's first id in `Trajectory.ids`.
    """

    episode: int
    turns: tuple[Turn, ...]
    number: int = 0
    sampled: int = 0
    start: int = 0

    @property
    def ids(self) -> list[int]:
        """Ids of the context."""
        return [token for turn in self.turns for token in (*turn.prompt, *turn.action)]


def rows_of(trajectories: Sequence[Trajectory]) -> list[Row]:
    """The rows of some episodes, in order."""
    rows = []
    for episode, trajectory in enumerate(trajectories):
        turns = trajectory.turns
        begins = [number for number, turn in enumerate(turns) if turn.fresh or number == 0]
        sampled = start = 0
        for begin, end in zip(begins, [*begins[1:], len(turns)], strict=True):
            row = Row(episode, turns[begin:end], begin, sampled, start)
            rows.append(row)
            sampled += sum(len(turn.action) for turn in row.turns)
            start += len(row.ids)
    return rows


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows side by side, padded on the right; every tensor has the shape (batch, time).

    Attributes:
        ids: int64; padding is 0 and not attended to.
        attention_mask: int64, 1 for every token of the context, prompts included.
        action_mask: float32, 1 for every sampled token.
        log_probs: float32, log-probability of the sampled tokens when they were sampled; 0 elsewhere.
        steps: int64, number of the episode's step that a sampled token belongs to, from 0; 0 elsewhere too.
        step_mask: float32, 1 for the first token of every step.
    """

    ids: torch.Tensor
    attention_mask: torch.Tensor
    action_mask: torch.Tensor
    log_probs: torch.Tensor
    steps: torch.Tensor
    step_mask: torch.Tensor

    def to(self, device: torch.device) -> Batch:
        """The same batch on a device."""
        return Batch(
            self.ids.to(device),
            self.attention_mask.to(device),
            self.action_mask.to(device),
            self.log_probs.to(device),
            self.steps.to(device),
            self.step_mask.to(device),
        )


def collate(rows: Sequence[Row], level: Level = "turn") -> Batch:
    """Pad rows to a batch; `level` says what a step is (see `credit/rollouts.py`)."""
    length = max(len(row.ids) for row in rows)
    shape = (len(rows), length)
    ids = torch.zeros(shape, dtype=torch.int64)
    attention = torch.zeros(shape, dtype=torch.int64)
    action = torch.zeros(shape)
    log_probs = torch.zeros(shape)
    steps = torch.zeros(shape, dtype=torch.int64)
    step_mask = torch.zeros(shape)
    for place, row in enumerate(rows):
        at, sampled = 0, row.sampled
        for number, turn in enumerate(row.turns, start=row.number):
            start = at + len(turn.prompt)
            end = start + len(turn.action)
            ids[place, at:end] = torch.tensor((*turn.prompt, *turn.action), dtype=torch.int64)
            action[place, start:end] = 1.0
            log_probs[place, start:end] = torch.tensor(turn.log_probs)
            if level == "turn":
                steps[place, start:end] = number
                step_mask[place, start] = 1.0
            else:
                steps[place, start:end] = torch.arange(sampled, sampled + len(turn.action))
                step_mask[place, start:end] = 1.0
            sampled += len(turn.action)
            at = end
        attention[place, :at] = 1
    return Batch(ids, attention, action, log_probs, steps, step_mask)


def idle_batch() -> Batch:
    """A batch without a sampled token: what a process reads that has nothing to learn from while others have."""
    zeros = torch.zeros((1, 2))
    return Batch(zeros.long(), zeros.long() + 1, zeros, zeros, zeros.long(), zeros)
