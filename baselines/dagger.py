"""DAgger: the policy plays, an expert says what it would have done in each state, and the policy learns from that.

    python -m baselines.dagger --model Qwen/Qwen2.5-0.5B-Instruct --out runs/dagger --learning-rate 1e-5 \\
        --env textagent/TextWorld-w2-o3-q4-v0 --set num_tasks=100 --labels 2000 --iterations 5

In the order of Ross, Gordon and Bagnell, 2011 (arXiv 1011.0686), algorithm 3.1, for iterations i = 1 to `iterations`:

1. play episodes with the mixture pi_i = beta_i expert + (1 - beta_i) policy_i, where beta_i = `decay`^(i - 1): by
   default the expert plays in the first iteration and the policy in all others, as in the paper's experiments. Who
   plays is drawn per episode, so that a conversation has one author. (The paper draws per turn. The states of the
   mixture are at most 2 beta_i away from those of the policy here, 2 T beta_i there, so its bounds hold.)
2. ask the expert about every state that was visited (`labelled.Labelled`), until the iteration's share of `labels` is
   spent;
3. add the labels to those of all iterations before;
4. fit the first policy to all of them (TRL's `SFTTrainer`), which gives policy_(i+1).

Supervised fine-tuning on the expert's own episodes is the case of one iteration: `--iterations 1`.

A run is a folder:

    config.json          what was asked for
    labels/1.json        what the first iteration played and learned from, as token ids; and so on
    metrics.jsonl        one line per iteration
    log.jsonl            starts and stops, with versions, git revision and cause
    trajectories.jsonl   some episodes to read, of each iteration
    index.html           all of this as a page
    policy/              the policy after the last iteration; replaced as a whole
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from baselines.command_line import LogFunction, run_from_terminal
from baselines.settings.config import HARMLESS, LabelAgent, RolloutConfig, check_at_least
from baselines.settings.run_folder import (
    METRICS,
    append_metrics,
    claim_folder,
    drop_metrics_after,
    hold_folder,
    write_whole,
)
from baselines.sft import FineTuningConfig, fit, report
from textagent_gym.errors import InvalidOptionError, UnsupportedOperationError

if TYPE_CHECKING:
    from baselines.envs.labelled import Labelled
    from baselines.policy.chat import ChatFormat
    from baselines.rollout import Collector
    from baselines.rollout.trajectory import Trajectory

_MOST_SILENT = 100
"""Number of episodes in a row without a label after which a run ends: an expert that has nothing to say about so many
tasks has nothing to teach."""


@dataclass(frozen=True, kw_only=True)
class Config(RolloutConfig, FineTuningConfig):
    """DAgger on any environment of the suite that has an oracle or an expert."""

    labels: int = 1_000
    """Number of labels that are learned, shared evenly by the iterations. The expert is asked in every state of all
    episodes that are played at once, so lower `slots` where its answers cost something (`expert_calls`)."""
    iterations: int = 5
    """Number of times that labels are collected and the policy is fitted to all of them."""
    decay: float = 0.0
    """Factor per iteration of the share of episodes that the expert plays, which is 1 in the first iteration."""
    agent: LabelAgent = "oracle"
    """Expert that is asked: "oracle" (knows everything) or "expert" (knows what has been said)."""

    def __post_init__(self) -> None:
        RolloutConfig.__post_init__(self)
        FineTuningConfig.__post_init__(self)
        check_at_least("iterations", self.iterations, 1)
        check_at_least("labels", self.labels, self.iterations)
        if not 0 <= self.decay <= 1:
            raise InvalidOptionError(f"decay must be from 0 to 1, got {self.decay}")

    def share(self, iteration: int) -> int:
        """Number of labels of an iteration, counted from 1."""
        return self.labels * iteration // self.iterations - self.labels * (iteration - 1) // self.iterations


@dataclass(frozen=True, slots=True)
class _Run:
    """What all iterations share.

    Attributes:
        config: settings of the run.
        chat: format of the conversations.
        expert: environment in which the expert plays.
        context_length: largest number of ids that the policy can read.
    """

    config: Config
    chat: ChatFormat
    expert: Labelled
    context_length: int

    @property
    def policy(self) -> Path:
        """Folder of the policy."""
        return self.config.out / "policy"

    def labels(self, iteration: int) -> Path:
        """File of what an iteration, counted from 1, played and learned from."""
        return self.config.out / "labels" / f"{iteration}.json"


def run(config: Config, log: LogFunction | None = None) -> Path:
    """Train on `config.env` and return the folder of the policy.

    Args:
        config: settings of the run.
        log: called with the metrics of each iteration.

    Raises:
        InvalidOptionError: the world is not one of text or has no such expert, an action of the expert is longer than
            `max_action_tokens`, the policy converses otherwise than experts do, or several processes were started.
        RunFolderError: the folder holds another run, or is in use.
        UnsupportedOperationError: the expert has no answer in any state of many episodes.
    """
    from accelerate import PartialState

    from baselines.envs.labelled import Labelled
    from baselines.envs.pool import make_text_env
    from baselines.policy.chat import chat_of
    from baselines.policy.models import context_length, load_policy, room_before_action
    from baselines.settings.dialogue import check_plain, dialogue_of
    from baselines.training.run_log import TRAJECTORIES, logged

    if PartialState().num_processes > 1:
        raise InvalidOptionError("dagger runs in one process; start it without accelerate launch")
    check_plain(dialogue_of(config.model))
    expert = Labelled(make_text_env(config.env, config.set, config.wrappers), config.agent)
    with closing(expert), hold_folder(config.out):
        may_change = HARMLESS - {"iterations"}
        claim_folder(config.out, config, may_change, write=False)
        model, tokenizer = load_policy(config.model)
        context = context_length(model)
        room_before_action(context, config.max_action_tokens)
        # Only now: a start that fails, because there is no such model, leaves no folder that refuses the next one.
        claim_folder(config.out, config, may_change)
        chat = chat_of(config.model, tokenizer, config.system)
        this = _Run(config, chat, expert, context)
        done = _iterations_done(this.policy)
        for file in (METRICS, TRAJECTORIES):
            drop_metrics_after(config.out, done, file)
        with logged(config.out, lambda: done, device=str(PartialState().device)):
            while done < config.iterations:
                _iterate(this, done + 1, log)
                done += 1
    return this.policy


def _iterate(run: _Run, iteration: int, log: LogFunction | None) -> None:
    """One iteration, counted from 1. What is done already after a kill is read, not done again."""
    from baselines.training.checkpoint import replace_folder
    from baselines.training.run_log import keep_sample

    started = time.perf_counter()
    path = run.labels(iteration)
    if not path.is_file():
        path.parent.mkdir(exist_ok=True)
        write_whole(path, json.dumps(_collect(run, iteration)))
    collected = time.perf_counter()
    lessons = [json.loads(run.labels(number).read_text(encoding="utf-8")) for number in range(1, iteration + 1)]
    rows = [row for lesson in lessons for row in lesson["rows"]]

    def write(folder: Path) -> None:
        loss = _fit(run, rows, folder)
        metrics = {
            "iteration": iteration,
            **lessons[-1]["metrics"],
            "labels": sum(lesson["metrics"]["new_labels"] for lesson in lessons),
            "rows": len(rows),
            "loss": loss,
            "rollout_seconds": collected - started,
            "update_seconds": time.perf_counter() - collected,
        }
        append_metrics(run.config.out, metrics)
        keep_sample(run.config.out, lessons[-1]["sample"])
        if log is not None:
            log(metrics)
        (folder / "iteration").write_text(str(iteration))

    replace_folder(run.policy, write)


def _collect(run: _Run, iteration: int) -> dict[str, Any]:
    """Play until the iteration's share of the labels is spent.

    Returns:
        `rows` to learn from, `metrics` of the episodes, a `sample` of them to read, and `episodes`, the number of those
        that were begun so far.
    """
    from baselines.training.labels import first_labels, rows_of
    from baselines.training.run_log import sample_lines

    config, limit = run.config, run.config.share(iteration)
    before = 0 if iteration == 1 else json.loads(run.labels(iteration - 1).read_text(encoding="utf-8"))["episodes"]
    rows: list[dict[str, list[int]]] = []
    played: list[Trajectory] = []
    begun = broken = labels = calls = agreed = unlabelled = silent = 0
    with closing(_episodes(run, iteration, before)) as episodes:
        while labels < limit:
            trajectory, asked = next(episodes)
            begun += 1
            calls += asked
            turns = [] if trajectory is None else first_labels(trajectory.turns, limit - labels)
            new = [turn for turn in turns if turn.label is not None]
            for turn in new:
                _check_length(run, str(turn.label))
            rows += rows_of(turns, run.chat)
            if trajectory is None:
                broken += 1
            else:
                played.append(trajectory)
            silent = 0 if new else silent + 1
            if silent == _MOST_SILENT:
                raise UnsupportedOperationError(
                    f"{silent} episodes in a row gave no label: the {config.agent} of {config.env} had no answer in "
                    f"any of their states ({broken} of {begun} episodes broke)"
                )
            labels += len(new)
            agreed += sum(turn.text == turn.label for turn in new)
            unlabelled += len(turns) - len(new)
    metrics = {
        "expert_share": config.decay ** (iteration - 1),
        "episodes": len(played),
        "broken": broken,
        "success": float(np.mean([bool(trajectory.success) for trajectory in played])),
        "new_labels": labels,
        "unlabelled": unlabelled,
        "expert_calls": calls,
        "agreement": agreed / labels,
    }
    sample = sample_lines(iteration, "training", [trajectory for trajectory in played if trajectory.turns])
    return {"episodes": before + begun, "metrics": metrics, "sample": sample, "rows": rows}


def _episodes(run: _Run, iteration: int, first: int) -> Generator[tuple[Trajectory | None, int]]:
    """Episodes of the mixture, from a number on; `None` where a world broke each time.

    With each comes the number of states in which the expert was asked since the one before: the first of the policy's
    episodes that were played at once comes with those of all of them. Episodes of the policy that broke are left out.

    The tasks are those of the environment in order, again and again. What happens in an episode follows from its number
    and from the policy alone, not from how many are played at once.
    """
    from baselines.rollout import EpisodeRequest
    from baselines.training.labels import demonstrate
    from textagent_gym.evaluation import count_tasks

    config, beta = run.config, run.config.decay ** (iteration - 1)
    collector = None if beta == 1 else _labelled_play(run)
    try:
        for start in count(first, config.slots):
            requests, experts = [], set()
            for number in range(start, start + config.slots):
                seed, sampling_seed, draw = np.random.SeedSequence((config.seed, iteration, number)).generate_state(3)
                task = number % count_tasks(run.expert, number + 1)
                requests.append(EpisodeRequest(number, int(seed), {"task_index": task}, int(sampling_seed)))
                if draw < beta * 2**32:
                    experts.add(number)
            others = [request for request in requests if request.group not in experts]
            played = {} if collector is None else {t.group: t for t in collector.collect(others).trajectories}
            # An episode that only the context's length has cut was labelled after its last turn too.
            asked = sum(len(trajectory.turns) + trajectory.overflow for trajectory in played.values())
            for request in requests:
                trajectory = played.get(request.group)
                if request.group in experts:
                    before = run.expert.calls
                    trajectory = demonstrate(run.expert, run.chat, request, longest=run.context_length)
                    asked += run.expert.calls - before
                yield trajectory, asked
                asked = 0
    finally:
        if collector is not None:
            collector.close()


def _labelled_play(run: _Run) -> Collector:
    """Environments with labels, and the policy of the iteration before."""
    from baselines.envs.labelled import Labelled
    from baselines.policy.models import load_policy
    from baselines.rollout import make_collector
    from textagent_gym.vector import Wrap, env_maker

    config = run.config
    model, _ = load_policy(str(run.policy))
    wrappers: tuple[Wrap, ...] = (*config.wrappers, partial(Labelled, agent=config.agent))
    make_env = env_maker(config.env, wrappers=wrappers, **config.set)
    return make_collector(config, model.eval(), run.chat, make_env, config.slots)


def _fit(run: _Run, rows: list[dict[str, list[int]]], folder: Path) -> float:
    """Fit the first policy to all labels and save it; returns the mean loss over the updates."""
    from baselines.policy.models import load_policy

    trainer = fit(*load_policy(run.config.model), rows, run.config, folder, seed=run.config.seed)
    report(trainer, lambda _: None)
    loss = float(trainer.train().training_loss)
    trainer.save_model(str(folder))
    run.chat.save(folder)
    return loss


def _check_length(run: _Run, label: str) -> None:
    """Refuse a label that the policy could never sample."""
    length = len(run.chat.reply(label))
    if length > run.config.max_action_tokens:
        raise InvalidOptionError(
            f"max_action_tokens must be at least {length}, got {run.config.max_action_tokens}: "
            f"the {run.config.agent} does {label!r}"
        )


def _iterations_done(policy: Path) -> int:
    """Number of iterations that have ended; where a kill has left the policy's predecessor only, that is put back."""
    old = policy.with_name(f"{policy.name}.old")
    if old.is_dir() and not policy.is_dir():
        old.rename(policy)
    done = policy / "iteration"
    return int(done.read_text()) if done.is_file() else 0


if __name__ == "__main__":
    run_from_terminal(Config, run)
