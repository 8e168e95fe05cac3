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
from math import isfinite
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from numpy.typing import NDArray

from baselines.credit.advantages import Credit
from baselines.credit.losses import DivergedError, aggregate
from baselines.credit.method import Forward, Method
from baselines.credit.rollouts import Array, Counts, Rollouts, join, rollouts_of, turn_values
from baselines.policy.microbatches import pack
from baselines.rollout.trajectory import Batch, Row, Trajectory, collate, idle_batch, rows_of
from baselines.settings.config import TrainerConfig
from baselines.training import zero
from baselines.training.critic import estimates, read_values
from baselines.training.openings import Opened, read_openings
from baselines.training.scoring import batch_log_probs, read_log_probs, sampling_log_probs
from baselines.training.sharding import divides, whole

_DIFFERENCE = "log_prob_difference"  # How the metrics name the distance between the generator and the trainer.
_NO_ADVANTAGE = 1e-8
"""Largest size of an advantage that counts as 0: equal returns, summed in different orders, differ by about 1e-16,
which a deviation of nearly 0 makes 1e-12."""
_MUST_BE_FINITE = {"loss", "critic_loss", "gradient_norm", "critic_gradient_norm"}


@dataclass(frozen=True, slots=True)
class Learner:
    """What learns.

    Attributes:
        accelerator: the processes and their devices.
        policy: model that learns, prepared for the processes.
        optimizer: optimizer of the policy and of the critic.
        schedule: schedule of its learning rate.
        critic: model that estimates what will be earned; `None` for methods without one.
        reference: the first policy; `None` unless the method asks for it.
        whole_copy: copy of the policy, where its own weights are divided among processes; see `training.sharding`.
    """

    accelerator: Accelerator
    policy: Any
    optimizer: Any
    schedule: Any
    critic: Any = None
    reference: Any = None
    whole_copy: Any = None

    @property
    def actor(self) -> Any:
        """The policy as one process can read it alone: itself, or its copy with whole weights."""
        return self.accelerator.unwrap_model(self.policy) if self.whole_copy is None else self.whole_copy

    @property
    def zero(self) -> bool:
        """Whether the policy is an engine of DeepSpeed, which has the optimizer in it."""
        return zero.uses_zero(self.accelerator)


@dataclass(frozen=True, slots=True)
class _Everyone:
    """The episodes of all processes, in the order of their groups.

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
    """What one iteration teaches: this process's episodes, and what is known of those of all processes.

    Attributes:
        learner, method, config: what learns, and how.
        trajectories: the episodes of this process.
        old: log-probability of each sampled token of their `ids` before the first update; 0 for the others.
        reference: the same under the first policy; `None` without one.
        everyone: the episodes of all processes.
        credit: what their steps are credited with.
        only_critic: whether the policy stays as it is.
    """

    learner: Learner
    method: Method
    config: TrainerConfig
    trajectories: Sequence[Trajectory]
    old: list[Array]
    reference: list[Array] | None
    everyone: _Everyone
    credit: Credit
    only_critic: bool


def update(
    learner: Learner,
    method: Method,
    config: TrainerConfig,
    trajectories: Sequence[Trajectory],
    seed: int,
    *,
    only_critic: bool = False,
) -> dict[str, float]:
    """Learn from one iteration's episodes; every process calls it with its own and with the same seed.

    Groups that have become smaller than the method needs, because worlds broke, are left out. Groups without any
    advantage are not read, unless the method learns from them otherwise: their gradient is 0. The losses are divided by
    their tokens too, but for methods that replace them (DAPO's filter).

    Returns:
        metrics of all processes: the means over the updates of `loss`, `gradient_norm`, what the loss measured, and
        `padding`, the share of padding among the tokens that the policy computes; the number of `useful_groups`, which
        have an advantage; and `log_prob_difference_mean` and `_max`, the distance of the generator's log-probabilities
        from the trainer's over the tokens of the first update, when the policy is still the one that sampled them.

    Raises:
        DivergedError: a loss or a gradient is not a finite number.
    """
    old, reference = _scores(learner, method, config, trajectories)
    values, bootstrap = _values(learner, method, config, trajectories)
    kl = None if reference is None else [mine - first for mine, first in zip(old, reference, strict=True)]
    rollouts = rollouts_of(trajectories, method.level, values, bootstrap, kl, states=method.states)
    everyone = _share(trajectories, rollouts, method.smallest_group)
    if not len(everyone.tokens):
        return {"loss": 0.0, "gradient_norm": 0.0, "useful_groups": 0.0}
    credit = method.advantages(everyone.rollouts)
    lesson = _Lesson(learner, method, config, trajectories, old, reference, everyone, credit, only_critic)
    useful = _useful(everyone, credit)
    every = np.ones(len(useful), dtype=bool)
    read, counted = every if method.learns_from_all else useful, useful if method.resample else every
    groups = {"useful_groups": float(len(np.unique(everyone.rollouts.groups[useful])))}
    random = np.random.default_rng(seed)
    metrics: list[dict[str, float]] = []
    for _ in range(config.epochs):
        for part in np.array_split(random.permutation(len(everyone.tokens)), config.minibatches):
            if read[part].any():
                metrics.append(_step(lesson, part[read[part]], part[counted[part]]))
    if not metrics:
        return {"loss": 0.0, "gradient_norm": 0.0, **groups}
    means = {name: float(np.mean([one[name] for one in metrics])) for name in metrics[0]}
    return {**means, **groups, **{name: value for name, value in metrics[0].items() if name.startswith(_DIFFERENCE)}}


def useful_groups(method: Method, trajectories: Sequence[Trajectory]) -> int:
    """Number of groups of all processes in which some step has an advantage; every process calls it with its own."""
    everyone = _share(
        trajectories, rollouts_of(trajectories, method.level, states=method.states), method.smallest_group
    )
    if not len(everyone.tokens):
        return 0
    useful = _useful(everyone, method.advantages(everyone.rollouts))
    return len(np.unique(everyone.rollouts.groups[useful]))


def _useful(everyone: _Everyone, credit: Credit) -> NDArray[np.bool_]:
    """True for every episode of a group in which some step has an advantage, shape (episodes,)."""
    some = (np.abs(credit.advantages) > _NO_ADVANTAGE).any(1)
    useful: NDArray[np.bool_] = np.isin(everyone.rollouts.groups, everyone.rollouts.groups[some])
    return useful


def _scores(
    learner: Learner, method: Method, config: TrainerConfig, trajectories: Sequence[Trajectory]
) -> tuple[list[Array], list[Array] | None]:
    """`_Lesson.old` and `_Lesson.reference` of this process's episodes."""

    def read(model: Any) -> list[Array]:
        temperature, device = config.temperature or 1.0, learner.accelerator.device
        return read_log_probs(model, trajectories, temperature, config.microbatch, device)

    old = sampling_log_probs(trajectories)
    if method.rescored:
        training = learner.actor.training
        old = read(learner.actor.eval())
        learner.actor.train(training)
    return old, read(learner.reference) if method.reference else None


def _values(
    learner: Learner, method: Method, config: TrainerConfig, trajectories: Sequence[Trajectory]
) -> tuple[Array | None, Array | None]:
    """What branches, or the critic before it learns from them, say of this process's episodes."""
    if method.branches:
        return turn_values(trajectories), np.zeros(len(trajectories))
    if learner.critic is None:
        return None, None
    critic = learner.accelerator.unwrap_model(learner.critic).eval()
    read = read_values(critic, trajectories, method.level, config.microbatch, learner.accelerator.device)
    critic.train()
    return read


def _share(trajectories: Sequence[Trajectory], rollouts: Rollouts, smallest_group: int) -> _Everyone:
    """The episodes of all processes in the order of their groups, without groups that are too small."""
    tokens = np.array([t.sampled for t in trajectories], dtype=np.int64)
    parts: list[tuple[Rollouts, Counts]] = gather_object([(rollouts, tokens)])
    rollouts = join([part for part, _ in parts])
    process = np.concatenate([np.full(len(counts), number) for number, (_, counts) in enumerate(parts)])
    place = np.concatenate([np.arange(len(counts)) for _, counts in parts])
    tokens = np.concatenate([counts for _, counts in parts])
    sizes = dict(zip(*np.unique(rollouts.groups, return_counts=True), strict=True))
    # A process that plays again what had no advantage has groups that lie after those of the next process.
    ordered = np.argsort(rollouts.groups, kind="stable")
    kept = np.array([i for i in ordered if sizes[rollouts.groups[i]] >= smallest_group], dtype=np.int64)
    return _Everyone(rollouts.select(kept), tokens[kept], process[kept], place[kept])


def _step(lesson: _Lesson, read: Counts, counted: Counts) -> dict[str, float]:
    """One update of the weights from the `read` episodes of all processes; losses are divided by the `counted` ones."""
    learner, method, config, everyone = lesson.learner, lesson.method, lesson.config, lesson.everyone
    accelerator = learner.accelerator
    tokens, read_tokens = (int(everyone.tokens[episodes].sum()) for episodes in (counted, read))
    steps = int(everyone.rollouts.lengths[counted].sum())
    mine = [int(i) for i in read if everyone.process[i] == accelerator.process_index]
    my_rows = rows_of([lesson.trajectories[everyone.place[i]] for i in mine])
    # A critic reads the rows of the same microbatches as a whole, and divided weights are gathered by all processes in
    # each pass, of which some processes would have one more.
    sharing = [] if learner.critic is not None or divides(accelerator) else my_rows
    with torch.set_grad_enabled(not lesson.only_critic):
        # By the actor: the policy's wrapper for several processes waits in each pass for others, who may share nothing.
        openings = read_openings(learner.actor, sharing, config.microbatch, accelerator.device)
    unread = [len(row.ids) - openings.length(row) for row in my_rows]
    microbatches = pack(unread, config.microbatch - openings.columns)
    columns = sum(len(places) * max(unread[place] for place in places) for places in microbatches)
    counts: list[int] = gather_object([len(microbatches)])
    passes = max(counts)
    models = [model for model in (learner.policy, learner.critic) if model is not None]
    sums: dict[str, float] = {"read": openings.tokens + sum(unread), "computed": openings.columns + columns}
    largest = 0.0
    for number in range(passes):
        rows = [my_rows[place] for place in microbatches[number]] if number < len(microbatches) else []
        batch = (collate(rows, method.level) if rows else idle_batch()).to(accelerator.device)
        episodes = [mine[row.episode] for row in rows]
        with ExitStack() as unsynchronised:
            last = number + 1 == passes
            if not last and not learner.zero:
                for model in models:
                    unsynchronised.enter_context(accelerator.no_sync(model))
            opened = openings.before(rows, len(batch.ids), last=last)
            forward = _forward(lesson, batch, rows, episodes, opened)
            losses = method.loss(forward)
            share = float(forward.mask.sum()) / tokens if config.aggregation == "token" else len(rows) / len(counted)
            constant = float(config.max_action_tokens)
            lengths = torch.from_numpy(everyone.tokens[episodes]).to(accelerator.device) if rows else None
            policy = share * aggregate(
                losses.policy, forward.mask, config.aggregation, constant=constant, lengths=lengths
            )
            critic = None if losses.critic is None else (losses.critic * forward.step_mask).sum() / steps
            learned = [loss for loss in (None if lesson.only_critic else policy, critic) if loss is not None]
            # Gradients are averaged over the processes, and each has divided by the tokens of all of them.
            total = sum(learned) * accelerator.num_processes
            if learner.zero:
                zero.backward(learner.policy, total, last=last)
            else:
                accelerator.backward(total)
        distance = ((forward.log_probs.detach() - forward.sampling_log_probs) * forward.mask).abs()
        largest = max(largest, float(distance.max()))
        measured = {
            name: float((value.detach() * forward.mask).sum()) / read_tokens for name, value in losses.metrics.items()
        }
        measured[f"{_DIFFERENCE}_mean"] = float(distance.sum()) / read_tokens
        measured["loss"] = float(policy.detach())
        if critic is not None:
            measured["critic_loss"] = float(critic.detach())
        for name, value in measured.items():
            sums[name] = sums.get(name, 0.0) + value
    parts: list[tuple[list[float], float]] = gather_object([(list(sums.values()), largest)])
    totals = np.sum([numbers for numbers, _ in parts], 0)
    metrics = {name: float(total) for name, total in zip(sums, totals, strict=True)}
    metrics["padding"] = 1 - metrics.pop("read") / metrics.pop("computed")
    metrics[f"{_DIFFERENCE}_max"] = max(part for _, part in parts)
    if learner.zero:
        _check_finite(metrics)
        metrics["gradient_norm"] = zero.step(learner.policy)
        _check_finite(metrics)
        learner.schedule.step()
    else:
        # Each model by itself: a critic that is far off must not shorten the policy's step.
        for name, model in (("gradient_norm", learner.policy), ("critic_gradient_norm", learner.critic)):
            if model is not None:
                metrics[name] = float(whole(accelerator.clip_grad_norm_(model.parameters(), config.max_gradient)))
        _check_finite(metrics)
        learner.optimizer.step()
        learner.schedule.step()
        learner.optimizer.zero_grad()
    return metrics


def _check_finite(metrics: dict[str, float]) -> None:
    """Stop before the weights are touched; every process has the same numbers, so all stop.

    Raises:
        DivergedError: a loss or a gradient is not a finite number.
    """
    diverged = {name: metrics[name] for name in _MUST_BE_FINITE & metrics.keys() if not isfinite(metrics[name])}
    if diverged:
        numbers = ", ".join(f"{name}={number}" for name, number in sorted(diverged.items()))
        advice = "a lower learning_rate or max_gradient in another folder may help"
        raise DivergedError(f"{numbers}: the update was not made; {advice}")


def _forward(lesson: _Lesson, batch: Batch, rows: list[Row], episodes: list[int], opened: Opened | None) -> Forward:
    """Everything that a loss may depend on, for one microbatch of rows; `episodes` are those of all processes."""
    learner, credit = lesson.learner, lesson.credit
    ids = batch.ids
    temperature = lesson.config.temperature or 1.0

    def per_step(array: Array) -> torch.Tensor:
        """What belongs to a token's step, shape (batch, time)."""
        numbers = array[episodes] if rows else np.zeros((len(ids), 1))
        return torch.tensor(numbers, dtype=torch.float32, device=ids.device).gather(1, batch.steps)

    def per_token(arrays: list[Array]) -> torch.Tensor:
        """What belongs to a token of the row, shape (batch, time)."""
        numbers = np.zeros(ids.shape, dtype=np.float32)
        for number, (row, episode) in enumerate(zip(rows, episodes, strict=True)):
            array = arrays[lesson.everyone.place[episode]][row.start : row.start + len(row.ids)]
            numbers[number, : len(array)] = array
        return torch.from_numpy(numbers).to(ids.device)

    with torch.set_grad_enabled(not lesson.only_critic):
        log_probs = batch_log_probs(learner.policy, batch, temperature, opened)
    old_values = lesson.everyone.rollouts.values
    return Forward(
        mask=batch.action_mask,
        log_probs=log_probs,
        old_log_probs=per_token(lesson.old),
        sampling_log_probs=batch.log_probs,
        advantages=per_step(credit.advantages),
        reference_log_probs=None if lesson.reference is None else per_token(lesson.reference),
        step_mask=batch.step_mask,
        values=None if learner.critic is None else estimates(learner.critic, ids),
        old_values=None if old_values is None else per_step(old_values),
        returns=None if credit.returns is None else per_step(credit.returns),
    )
