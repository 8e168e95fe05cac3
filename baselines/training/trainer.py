"""The loop that all methods share: collect, update, log, checkpoint. It knows no method by name.

A run is a folder:

    config.json          what was asked for
    metrics.jsonl        one line per iteration
    evaluations.jsonl    one line per evaluation on held-out tasks
    log.jsonl            starts and stops, with versions, git revision and cause
    broken.jsonl         one line per time that a world broke, with its cause
    trajectories.jsonl   some episodes to read, of each checkpoint and each evaluation
    index.html           all of this as a page
    checkpoint/          policy, critic, optimizer, and how far the run is; replaced as a whole
    policy/              the trained policy, when the run has finished

A run that was killed at any instant resumes from its last checkpoint along the same curve; a finished one does nothing,
unless it is asked for more iterations.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from safetensors import SafetensorError
from torch.optim.lr_scheduler import LinearLR
from transformers import PreTrainedModel

from baselines.credit.advantages import GroupTooSmallError
from baselines.credit.method import Method
from baselines.envs.curriculum import Curriculum, Stage, make_curriculum
from baselines.evaluation.held_out import HeldOut, make_held_out_env
from baselines.policy.adapters import (
    WithoutAdapters,
    add_adapters,
    learned_weights,
    load_learned_weights,
    merged,
)
from baselines.policy.chat import chat_of
from baselines.policy.models import context_length, load_policy, room_before_action
from baselines.rollout import Collector, EpisodeRequest, make_collector, share_of
from baselines.rollout.backend import check_installed, check_server
from baselines.rollout.trajectory import Trajectory
from baselines.settings.config import HARMLESS, Precision, TrainerConfig
from baselines.settings.run_folder import (
    EVALUATIONS,
    METRICS,
    RunFolderError,
    append_lines,
    append_metrics,
    claim_folder,
    drop_metrics_after,
    hold_folder,
    logged_iterations,
)
from baselines.training import zero
from baselines.training.allocator import keep_freed_memory
from baselines.training.capabilities import check_environments, infos_of
from baselines.training.checkpoint import Checkpoint, damaged, find_checkpoint, replace_folder, save_checkpoint
from baselines.training.critic import load_critic
from baselines.training.joint_stop import JointStop
from baselines.training.player import Played, Player, Stream, copy_policy, episode_requests, stream_seed
from baselines.training.run_log import (
    BROKEN,
    TRAJECTORIES,
    broken_lines,
    keep_sample,
    log_start,
    log_stop,
    sample_lines,
)
from baselines.training.sharding import (
    check_distribution,
    divides,
    gather_weights,
    joins_on_cpus,
    load_whole_state,
    make_whole_copy,
    whole_state,
)
from baselines.training.signals import delayed_signals, sigterm_raises
from baselines.training.trackers import check_trackers, flat_settings, run_names
from baselines.training.update import Learner, update
from textagent_gym.errors import InvalidOptionError, WorldBrokenError

_MIXED: dict[Precision, str] = {"float32": "no", "bfloat16": "bf16"}  # As `accelerate` names what it multiplies in.


def train(config: TrainerConfig, method: Method, log: Callable[[dict[str, Any]], None] | None = None) -> Path:
    """Train and return the folder of the policy.

    Args:
        config: settings of the run.
        method: advantages, loss and what they need.
        log: called with the metrics of each iteration and, under the name `evaluation`, of each evaluation, in the
            main process.

    Raises:
        GroupTooSmallError: `group_size` is smaller than the method needs.
        InvalidOptionError: the observations or the actions of an environment are not text, or it does not take what the
            curriculum asks for.
        RunFolderError: the folder holds another run, or a damaged one, is in use, or cannot be written.
        DivergedError: a loss or a gradient is not a finite number.
        WorldBrokenError: not one episode of an iteration could be played.
        TerminatedError: a process of the run was asked to end by SIGTERM.
        OtherProcessError: another process of the run has failed while it played.
    """
    keep_freed_memory()
    with sigterm_raises(), ExitStack() as held:
        run = _Run(config, method, held)
        with run.stop.noted_signals():
            return _train(run, log)


def _train(run: _Run, log: Callable[[dict[str, Any]], None] | None) -> Path:
    """Do the iterations that are left, and say in the log how the run ended."""
    config, method = run.config, run.method
    cause: BaseException | None = None
    try:
        _evaluate(run, log)
        if run.iteration < config.iterations:
            run.player = Player(config, method, run.make_collector(), run.requests, run.accelerator.device)
            gc.freeze()  # Libraries hold half a million objects, none of which will ever be garbage.
            while run.iteration < config.iterations:
                _iterate(run, run.player, log)
                _evaluate(run, log)
        return run.finish()
    except BaseException as error:
        cause = error
        run.save_before_stopping()
        raise
    finally:
        gc.unfreeze()
        try:
            run.close()
        finally:
            run.log_stop(cause)


def check_run(config: TrainerConfig, method: Method) -> Curriculum:
    """Refuse what cannot be played, before a model is loaded or a folder made; returns what is played.

    Raises:
        GroupTooSmallError: `group_size` is smaller than the method needs.
        InvalidOptionError: an environment lacks what the method, the curriculum or the evaluations need, or the loss
            cannot be computed with the memory or with the staleness.
        MissingDependencyError: the back end of the generation is not installed.
    """
    if config.group_size < method.smallest_group:
        raise GroupTooSmallError(
            f"group_size={config.group_size}: this method compares the episodes of a task, so it must be at least "
            f"{method.smallest_group}"
        )
    if config.staleness and not method.rescored:
        raise InvalidOptionError(
            "staleness=1 needs a method that weights tokens by their probability, which has Method.rescored"
        )
    config.check_memory(config.dialogue.memory)
    check_installed(config.generator)
    if config.eval_every:
        make_held_out_env(config).close()
    curriculum = make_curriculum(config)
    check_environments(curriculum.components, config, method)
    return curriculum


def _evaluate(run: _Run, log: Callable[[dict[str, Any]], None] | None) -> None:
    """Play the held-out tasks, if it is time and a run that was killed has not done so. It changes nothing else."""
    config, iteration = run.config, run.iteration
    is_due = config.eval_every and (iteration % config.eval_every == 0 or iteration == config.iterations)
    if not is_due or iteration in run.evaluated:
        return
    if run.player is not None:
        run.stop.apart(run.player.rest)
    policy = run.acting_policy()
    if run.held_out is None:
        processes, process = run.accelerator.num_processes, run.accelerator.process_index
        run.held_out = HeldOut(run.played, policy, run.chat, processes, process)
    held_out = run.held_out
    played = run.stop.apart(lambda: held_out.play(policy))
    metrics = {"iteration": iteration, **held_out.measure(played)}
    run.evaluated.add(iteration)
    run.track({f"evaluation/{name}": value for name, value in metrics.items()})
    if run.accelerator.is_main_process:
        append_metrics(run.folder, metrics, EVALUATIONS)
        run.keep_sample("evaluation", played.trajectories)
        if log is not None:
            log({"iteration": iteration, "evaluation": metrics})


def _iterate(run: _Run, player: Player, log: Callable[[dict[str, Any]], None] | None) -> None:
    """One iteration. It has seeds of its own, so what happens in it does not depend on when a run resumed."""
    config = run.config
    started = time.perf_counter()
    policy = run.acting_policy()
    acting = policy if run.behaviour is None else run.behaviour
    if run.method.resample:  # The processes ask each other what is missing, so none may leave before the others.
        played = player.take(run.iteration, acting)
        run.stop.agree()
    else:
        played = run.stop.apart(lambda: player.take(run.iteration, acting))
    # Several processes note a signal instead, and agree on it.
    with delayed_signals() if run.accelerator.num_processes == 1 else nullcontext():
        metrics = _learn(run, player, policy, played, started)
        if run.accelerator.is_main_process and log is not None:
            log(metrics)
    run.stop.agree()
    if run.iteration % config.checkpoint_every == 0 or run.iteration == config.iterations:
        run.keep_sample("training", played.collection.trajectories)
        run.save_checkpoint()


def _learn(run: _Run, player: Player, policy: Any, played: Played, started: float) -> dict[str, Any]:
    """Update the weights by the episodes of an iteration, and log its metrics; meanwhile nothing can be saved."""
    config, iteration, collection, stage = run.config, run.iteration, played.collection, run.stage
    summary = _summary(played, iteration, run.curriculum)
    run.is_between_updates = False
    run.successes.append(run.curriculum.success(stage, summary))
    if run.behaviour is not None:
        load_learned_weights(run.behaviour, learned_weights(policy))
        if iteration + 1 < config.iterations:
            player.begin(iteration + 1, run.behaviour)
    collected = time.perf_counter()
    run.learner.policy.train()
    metrics = update(
        run.learner,
        run.method,
        config,
        collection.trajectories,
        stream_seed(config, iteration, Stream.ORDER),
        only_critic=run.method.critic is not None and iteration < run.method.critic.warmup,
    )
    metrics = {
        "iteration": iteration + 1,
        **run.curriculum.metrics(stage),
        **summary,
        **metrics,
        "rollout_seconds": collected - started,
        "update_seconds": time.perf_counter() - collected,
    }
    run.iteration += 1
    run.track(metrics)
    if run.accelerator.is_main_process:
        append_metrics(run.folder, metrics)
        append_lines(run.folder, broken_lines(run.iteration, collection.breaks), BROKEN)
    run.is_between_updates = True
    return metrics


def _summary(of: Played, iteration: int, curriculum: Curriculum) -> dict[str, float]:
    """Metrics of the episodes of all processes; `env_steps` are those of their branches too.

    Raises:
        WorldBrokenError: there are none.
    """
    mine = [_measure(trajectory) for trajectory in of.collection.trajectories]
    played: list[dict[str, Any]] = gather_object(mine)
    branches: list[int] = gather_object([of.branch_steps])
    reasons: list[str] = gather_object([episode.reason for episode in of.collection.broken])
    if not played:
        raise WorldBrokenError(f"no episode of iteration {iteration + 1} could be played: {reasons[0]}")
    successes = [episode["success"] for episode in played if episode["success"] is not None]
    scores = [episode["score"] for episode in played if episode["score"] is not None]
    tokens = sum(episode["tokens"] for episode in played)
    return {
        "episodes": len(played),
        "broken": len(reasons),
        "return": float(np.mean([episode["return"] for episode in played])),
        **({"success": float(np.mean(successes))} if successes else {}),
        **({"score": float(np.mean(scores))} if scores else {}),
        "turns": float(np.mean([episode["turns"] for episode in played])),
        "env_steps": sum(episode["turns"] for episode in played) + sum(branches),
        "action_tokens": tokens,
        "entropy_estimate": -sum(episode["log_prob"] for episode in played) / tokens,
        **curriculum.component_metrics(played),
    }


def _measure(trajectory: Trajectory) -> dict[str, Any]:
    return {
        "options": trajectory.options,
        "return": trajectory.total_reward,
        "success": trajectory.success,
        "score": trajectory.score,
        "turns": len(trajectory.turns),
        "tokens": sum(len(turn.action) for turn in trajectory.turns),
        "log_prob": sum(sum(turn.log_probs) for turn in trajectory.turns),
    }


class _Run:
    """The state of a run.

    Args:
        config, method: see `train`.
        held: stack that frees the folder of the run when it is left.
    """

    def __init__(self, config: TrainerConfig, method: Method, held: ExitStack) -> None:
        self.config = config
        self.method = method
        self.folder = config.out
        check_trackers(config.trackers)
        self.accelerator = Accelerator(
            cpu=joins_on_cpus(),
            # Of DeepSpeed it would ask for weights in bfloat16; its engine is told what to multiply in.
            mixed_precision="no" if zero.is_launched() else _MIXED[config.precision],
            log_with=list(config.trackers) or None,
            project_dir=str(config.out),
        )
        check_distribution(self.accelerator, config, method)
        self.stop = JointStop(self.accelerator.num_processes, self.accelerator.process_index)
        zero.keep_loading_whole(self.accelerator)
        if config.staleness and method.resample and self.accelerator.num_processes > 1:
            raise InvalidOptionError(
                f"staleness=1 with resample={method.resample} needs a single process: several would have to agree on "
                "what is missing while they update"
            )
        if self.accelerator.is_main_process:
            held.enter_context(hold_folder(config.out))
        claim_folder(config.out, config, HARMLESS, write=False)
        checkpoint = find_checkpoint(config.out)
        # A run that resumes converses as it did, wherever the first model may be now.
        self.played = replace(config, model=str(checkpoint.folder)) if checkpoint else config
        with self.accelerator.main_process_first():
            self.curriculum = check_run(self.played, method)
        if checkpoint is None or checkpoint.iteration < config.iterations:
            check_server(config.generator, config.server_url)
        try:
            policy, tokenizer = self._load_policy(checkpoint)
            context = context_length(policy)
            for tokens in (config.max_action_tokens, config.eval_max_action_tokens or 1):
                room_before_action(context, tokens)  # Refused before the folder is claimed.
            critic = self._load_critic(checkpoint)
        except (OSError, SafetensorError) as error:
            if checkpoint is None:
                raise
            raise damaged([(checkpoint.folder, error)]) from error
        # Only now: a start that fails, because there is no such model, leaves no folder that refuses the next one.
        if self.accelerator.is_main_process:
            claim_folder(config.out, config, HARMLESS)
        self.chat = chat_of(self.played.model, tokenizer, config.system, self.played.dialogue)
        self.iteration = self.saved = checkpoint.iteration if checkpoint else 0
        self.successes = checkpoint.successes if checkpoint else []
        self.learner = self._prepare(policy, critic, checkpoint)
        self.behaviour = self._make_behaviour(checkpoint) if config.staleness else None
        if self.accelerator.is_main_process:
            for file in (METRICS, EVALUATIONS, BROKEN, TRAJECTORIES):
                drop_metrics_after(self.folder, self.iteration, file)
            device = str(self.accelerator.device)
            log_start(self.folder, self.iteration, self.accelerator.num_processes, device)
        self.accelerator.wait_for_everyone()
        if config.trackers:
            names = run_names(self.folder) if self.accelerator.is_main_process else {}
            self.accelerator.init_trackers("textagent-gym", flat_settings(config), names)
        self.evaluated = logged_iterations(self.folder, EVALUATIONS)
        self.held_out: HeldOut | None = None  # Made for the first evaluation.
        self.is_between_updates = True
        self.player: Player | None = None  # Made for the first iteration.

    def make_collector(self) -> Collector:
        """The environments of this process, and the policy that acts in them."""
        config = self.config
        episodes = len(self.requests(self.iteration, range(config.groups))) * max(1, self.method.branches)
        make_env = self.curriculum.make_env(infos_of(self.method))
        slots = max(1, min(config.slots, episodes))
        return make_collector(config, self.acting_policy(), self.chat, make_env, slots, precision=config.precision)

    def acting_policy(self) -> Any:
        """The policy as it is now, to be read by this process alone; all processes call it."""
        self.learner.policy.eval()
        if self.learner.whole_copy is not None:
            gather_weights(self.accelerator, self.learner.policy, self.learner.whole_copy)
        return self.learner.actor

    def close(self) -> None:
        """Close the trackers, the environments and the generators."""
        with ExitStack() as stack:  # Each is closed, whatever another one raises.
            if self.held_out is not None:
                stack.callback(self.held_out.close)
            if self.player is not None:
                stack.callback(self.player.close)
            for tracker in self.accelerator.trackers:
                stack.callback(tracker.finish)

    def track(self, metrics: dict[str, Any]) -> None:
        """Log the metrics that are numbers to the trackers, at the number of the last iteration."""
        numbers = {name: value for name, value in metrics.items() if isinstance(value, (int, float))}
        self.accelerator.log(numbers, step=self.iteration)

    @property
    def stage(self) -> Stage:
        """Where the curricula of the iteration are that is played after those whose success is known."""
        return self.curriculum.stage(self.successes)

    def requests(self, iteration: int, groups: range) -> list[EpisodeRequest]:
        """This process's share of the episodes of some groups, once all iterations before have been played."""
        seed = stream_seed(self.config, iteration, Stream.CURRICULUM, groups.start)
        options = self.curriculum.options(self.stage, len(groups), seed)
        requests = episode_requests(self.config, iteration, groups, options)
        if self.method.branches:
            requests = [replace(request, saves=True) for request in requests]
        return share_of(requests, self.accelerator.num_processes, self.accelerator.process_index)

    def save_checkpoint(self) -> None:
        """Write everything that is needed to resume."""
        learner = self.learner
        self.acting_policy()
        optimizer = zero.whole_state(learner.policy) if learner.zero else whole_state(learner.optimizer)
        if self.accelerator.is_main_process:
            critic = None if learner.critic is None else self.accelerator.unwrap_model(learner.critic)
            save_checkpoint(
                self.folder,
                self.iteration,
                optimizer=optimizer,
                schedule=learner.schedule,
                successes=self.successes,
                save_policy=self._save_policy,
                adapters=self._adapter_weights(),
                behaviour={} if self.behaviour is None else learned_weights(self.behaviour),
                critic=critic,
            )
        self.saved = self.iteration
        self.accelerator.wait_for_everyone()

    def save_before_stopping(self) -> None:
        """Write a checkpoint if the weights are those of the last iteration, and all processes stop here.

        Where they have not agreed on it, the others may wait for this one elsewhere.
        """
        here = self.accelerator.num_processes == 1 or self.stop.agreed
        if here and self.is_between_updates and self.iteration > self.saved:
            with suppress(RunFolderError):  # What stops the run is what must be told.
                self.save_checkpoint()

    def keep_sample(self, kind: str, trajectories: Sequence[Trajectory]) -> None:
        """Keep some of the main process's episodes to be read, and show the run as it is now."""
        if self.accelerator.is_main_process:
            keep_sample(self.folder, sample_lines(self.iteration, kind, trajectories))

    def log_stop(self, cause: BaseException | None) -> None:
        """Log how the run ended."""
        if self.accelerator.is_main_process:
            log_stop(self.folder, self.iteration, cause)
        if self.stop.agreed:
            with suppress(RuntimeError):  # A launcher ends all processes when one has ended, so none does before.
                self.accelerator.wait_for_everyone()

    def finish(self) -> Path:
        """Write the trained policy, unless it is there already; the checkpoint stays, for more iterations."""
        folder = self.folder / "policy"
        done = folder / "iteration"
        self.acting_policy()
        if self.accelerator.is_main_process and not (done.is_file() and done.read_text() == str(self.iteration)):

            def write(fresh: Path) -> None:
                self._save_policy(fresh)
                (fresh / done.name).write_text(str(self.iteration))

            replace_folder(folder, write)
        self.accelerator.wait_for_everyone()
        return folder

    def _load_policy(self, checkpoint: Checkpoint | None) -> tuple[Any, Any]:
        config = self.config
        # Adapters belong to the weights that they were learned with, and a checkpoint holds the sum of both.
        policy, tokenizer = load_policy(str(checkpoint.folder) if checkpoint and not config.lora_rank else config.model)
        if config.lora_rank:
            add_adapters(policy, config.lora_rank, config.lora_alpha, config.seed)
        if checkpoint:
            load_learned_weights(policy, checkpoint.adapters)
        if config.gradient_checkpointing:
            policy.gradient_checkpointing_enable({"use_reentrant": False})
        return policy, tokenizer

    def _load_critic(self, checkpoint: Checkpoint | None) -> Any:
        if self.method.critic is None:
            return None
        if checkpoint is not None:
            return load_critic(str(checkpoint.critic))
        return load_critic(self.method.critic.model or self.config.model)

    def _prepare(self, policy: Any, critic: Any, checkpoint: Checkpoint | None) -> Learner:
        """Models and optimizer, on the devices of all processes."""
        config, method = self.config, self.method
        groups: list[dict[str, Any]] = [{"params": [weight for weight in policy.parameters() if weight.requires_grad]}]
        if critic is not None and method.critic is not None:
            groups.append({"params": list(critic.parameters()), "lr": method.critic.learning_rate})
        inner = torch.optim.AdamW(groups, lr=config.learning_rate, weight_decay=0.0)
        whole_copy = make_whole_copy(self.accelerator, policy)
        optimizer: Any = inner
        if zero.uses_zero(self.accelerator):
            policy = zero.prepare_engine(self.accelerator, policy, inner, config)
        else:
            policy, optimizer = self.accelerator.prepare(policy, inner)
        critic = None if critic is None else self.accelerator.prepare(critic)
        schedule = LinearLR(inner, 1 / (config.warmup + 1), total_iters=config.warmup)
        reference: Any = None
        if method.reference:
            if config.lora_rank:
                reference = WithoutAdapters(self.accelerator.unwrap_model(policy))
            else:
                reference, _ = load_policy(config.model)
                if not divides(self.accelerator):  # It is not divided: every process reads it by itself.
                    reference = self.accelerator.prepare_model(reference, evaluation_mode=True)
                reference = reference.to(self.accelerator.device).eval()
        if checkpoint is not None:
            if zero.uses_zero(self.accelerator):
                zero.load_whole_state(policy, checkpoint.optimizer)
            else:
                load_whole_state(optimizer, checkpoint.optimizer)
            schedule.load_state_dict(checkpoint.schedule)
        return Learner(self.accelerator, policy, optimizer, schedule, critic, reference, whole_copy)

    def _make_behaviour(self, checkpoint: Checkpoint | None) -> PreTrainedModel:
        """The policy that plays ahead, as it was before the last update."""
        behaviour = copy_policy(self.accelerator.unwrap_model(self.learner.policy))
        if checkpoint is not None:
            load_learned_weights(behaviour, checkpoint.behaviour)
        return behaviour

    def _adapter_weights(self) -> dict[str, torch.Tensor]:
        return learned_weights(self.learner.actor) if self.config.lora_rank else {}

    def _save_policy(self, folder: Path) -> None:
        policy = self.learner.actor
        (merged(policy) if self.config.lora_rank else policy).save_pretrained(folder)
        self.chat.save(folder)
