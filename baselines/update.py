"""One optimiser step, by all processes together: the same as one process would do with the episodes of all of them.

    process 0   forward backward | forward backward | idle    backward \\
    process 1   forward backward | forward backward | forward backward -- gradients are averaged -- clip -- step
                                                      (the last pass sends the gradients)

Every process makes the same number of passes, because each waits for the others in its last one; who has nothing to
learn from reads an idle batch, whose loss is 0. A token counts the same wherever it was sampled: losses are divided by
the number of tokens (or episodes) of all processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import gather_object

from baselines.advantages import Credit
from baselines.config import TrainerConfig
from baselines.critic import estimates, read_values
from baselines.losses import aggregate, sampled_log_probs
from baselines.method import Forward, Losses, Method
from baselines.rollouts import Array, Counts, Rollouts, join, rollouts_of
from baselines.trajectory import Batch, Trajectory, collate, idle_batch


@dataclass(frozen=True, slots=True)
class Learner:
    """What learns.

    Attributes:
        accelerator: the processes and their devices.
        policy: model that acts.
        optimizer: optimizer of the policy and of the critic.
        schedule: schedule of its learning rate.
        critic: model that estimates what will be earned; `None` for methods without one.
        reference: the first policy; `None` unless the method asks for it.
    """

    accelerator: Accelerator
    policy: Any
    optimizer: Any
    schedule: Any
    critic: Any = None
    reference: Any = None


@dataclass(frozen=True, slots=True)
class _Everyone:
    """The episodes of all processes, in their order.

    Attributes:
        rollouts: the episodes.
        tokens: shape (episodes,), number of sampled tokens.
        process: shape (episodes,), the process that holds the episode.
        place: shape (episodes,), its number among the episodes of that process.
    """

    rollouts: Rollouts
    tokens: Counts
    process: Counts
    place: Counts


@dataclass(frozen=True, slots=True)
class _Lesson:
    """What one iteration teaches: this process's episodes, and what is known of those of all processes."""

    learner: Learner
    method: Method
    config: TrainerConfig
    trajectories: Sequence[Trajectory]
    everyone: _Everyone
    credit: Credit


def update(
    learner: Learner, method: Method, config: TrainerConfig, trajectories: Sequence[Trajectory], seed: int
) -> dict[str, float]:
    """Learn from one iteration's episodes; every process calls it with its own and with the same seed.

    Groups that have become smaller than the method needs, because worlds broke, are left out.

    Returns:
        metrics of all processes: the means over the updates of `loss`, `gradient_norm` and what the loss measured.
    """
    values, bootstrap = _values(learner, method, config, trajectories)
    everyone = _share(trajectories, rollouts_of(trajectories, method.level, values, bootstrap), method.smallest_group)
    if not len(everyone.tokens):
        return {"loss": 0.0, "gradient_norm": 0.0}
    credit = method.advantages(everyone.rollouts)
    lesson = _Lesson(learner, method, config, trajectories, everyone, credit)
    random = np.random.default_rng(seed)
    metrics: list[dict[str, float]] = []
    for _ in range(config.epochs):
        for part in np.array_split(random.permutation(len(everyone.tokens)), config.minibatches):
            # Episodes without advantage teach most methods nothing.
            members = [int(i) for i in part if method.learns_from_all or credit.advantages[i].any()]
            if members:
                metrics.append(_step(lesson, members))
    if not metrics:
        return {"loss": 0.0, "gradient_norm": 0.0}
    return {name: float(np.mean([one[name] for one in metrics])) for name in metrics[0]}


def _values(
    learner: Learner, method: Method, config: TrainerConfig, trajectories: Sequence[Trajectory]
) -> tuple[Array | None, Array | None]:
    """What the critic, if there is one, says of this process's episodes before it learns from them."""
    if learner.critic is None:
        return None, None
    critic = learner.accelerator.unwrap_model(learner.critic).eval()
    read = read_values(critic, trajectories, method.level, config.microbatch, learner.accelerator.device)
    critic.train()
    return read


def _share(trajectories: Sequence[Trajectory], rollouts: Rollouts, smallest_group: int) -> _Everyone:
    """The episodes of all processes, without groups that are too small."""
    tokens = np.array([sum(len(turn.action) for turn in t.turns) for t in trajectories], dtype=np.int64)
    parts: list[tuple[Rollouts, Counts]] = gather_object([(rollouts, tokens)])
    rollouts = join([part for part, _ in parts])
    process = np.concatenate([np.full(len(counts), number) for number, (_, counts) in enumerate(parts)])
    place = np.concatenate([np.arange(len(counts)) for _, counts in parts])
    tokens = np.concatenate([counts for _, counts in parts])
    sizes = dict(zip(*np.unique(rollouts.groups, return_counts=True), strict=True))
    rows = np.array([i for i, group in enumerate(rollouts.groups) if sizes[group] >= smallest_group], dtype=np.int64)
    return _Everyone(rollouts.select(rows), tokens[rows], process[rows], place[rows])


def _step(lesson: _Lesson, members: list[int]) -> dict[str, float]:
    """One update of the weights from some of the episodes of all processes."""
    learner, method, config, everyone = lesson.learner, lesson.method, lesson.config, lesson.everyone
    accelerator = learner.accelerator
    tokens = int(everyone.tokens[members].sum())
    steps = int(everyone.rollouts.lengths[members].sum())
    most = np.bincount(everyone.process[members]).max()
    passes = -(-int(most) // config.microbatch)
    mine = [i for i in members if everyone.process[i] == accelerator.process_index]
    # Episodes of similar length go together, so that little is padded; the gradient is the same.
    order = sorted(mine, key=lambda i: len(lesson.trajectories[everyone.place[i]].ids))
    models = [model for model in (learner.policy, learner.critic) if model is not None]
    sums: dict[str, float] = {}
    for number in range(passes):
        rows = order[number * config.microbatch : (number + 1) * config.microbatch]
        some = [lesson.trajectories[everyone.place[i]] for i in rows]
        batch = (collate(some, method.level) if some else idle_batch()).to(accelerator.device)
        with ExitStack() as unsynchronised:
            if number + 1 < passes:
                for model in models:
                    unsynchronised.enter_context(accelerator.no_sync(model))
            forward = _forward(lesson, batch, rows)
            losses = method.loss(forward)
            share = float(forward.mask.sum()) / tokens if config.aggregation == "token" else len(rows) / len(members)
            constant = float(config.max_action_tokens)
            loss = aggregate(losses.policy, forward.mask, config.aggregation, constant=constant) * share
            if losses.critic is not None:
                loss = loss + (losses.critic * forward.step_mask).sum() / steps
            # Gradients are averaged over the processes, and each has divided by the tokens of all of them.
            accelerator.backward(loss * accelerator.num_processes)
        for name, value in _measured(loss, losses, forward, tokens).items():
            sums[name] = sums.get(name, 0.0) + value
    for name, value in zip(sums, _over_processes(accelerator, list(sums.values())), strict=True):
        sums[name] = value
    parameters = [parameter for model in models for parameter in model.parameters()]
    norm = accelerator.clip_grad_norm_(parameters, config.max_gradient)
    learner.optimizer.step()
    learner.schedule.step()
    learner.optimizer.zero_grad()
    return {**sums, "gradient_norm": float(norm)}


def _forward(lesson: _Lesson, batch: Batch, rows: list[int]) -> Forward:
    """Everything that a loss may depend on, for one microbatch."""
    learner, credit = lesson.learner, lesson.credit
    ids, mask = batch.ids, batch.attention_mask
    temperature = lesson.config.temperature or 1.0

    def per_token(array: Array | None) -> torch.Tensor | None:
        """What belongs to a token's step, shape (batch, time)."""
        if array is None:
            return None
        numbers = array[rows] if rows else np.zeros((len(ids), 1))
        return torch.tensor(numbers, dtype=torch.float32, device=ids.device).gather(1, batch.steps)

    logits = learner.policy(input_ids=ids, attention_mask=mask, use_cache=False).logits
    reference = None
    if learner.reference is not None:
        with torch.no_grad():
            reference = sampled_log_probs(
                learner.reference(input_ids=ids, attention_mask=mask).logits, ids, temperature
            )
    advantages = per_token(credit.advantages)
    assert advantages is not None
    return Forward(
        mask=batch.action_mask,
        log_probs=sampled_log_probs(logits, ids, temperature),
        old_log_probs=batch.log_probs,
        advantages=advantages,
        reference_log_probs=reference,
        step_mask=batch.step_mask,
        values=None if learner.critic is None else estimates(learner.critic, ids, mask),
        old_values=per_token(lesson.everyone.rollouts.values),
        returns=per_token(credit.returns),
    )


def _measured(loss: torch.Tensor, losses: Losses, forward: Forward, tokens: int) -> dict[str, float]:
    """This microbatch's part of the metrics; the parts of all processes add up to them."""
    metrics = {name: float((value.detach() * forward.mask).sum()) / tokens for name, value in losses.metrics.items()}
    return {"loss": float(loss.detach()), **metrics}


def _over_processes(accelerator: Accelerator, numbers: list[float]) -> list[float]:
    """The sums over all processes."""
    parts: list[list[float]] = gather_object([numbers])
    return [float(sum(part)) for part in zip(*parts, strict=True)]
