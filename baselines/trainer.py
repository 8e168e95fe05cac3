"""The loop that all methods share: collect, advantages, update, log, checkpoint.

A method is a function from returns and groups to advantages, and a loss; everything else is here. A run is a folder:

    config.json       what was asked for
    metrics.jsonl     one line an iteration
    checkpoint/       policy, optimizer, random states, and how far the run is; replaced as a whole
    policy/           the trained policy, when the run has finished

A run that was killed at any instant goes on from its last checkpoint along the same curve.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from accelerate import Accelerator
from torch.optim.lr_scheduler import LinearLR

from baselines.advantages import AdvantageFunction, GroupTooSmallError
from baselines.allocator import keep_freed_memory
from baselines.chat import ChatFormat
from baselines.losses import Aggregation, aggregate, kl_k3, ppo_clip, sampled_log_probs
from baselines.models import load_policy
from baselines.rollout import Collector, Episode, TransformersGenerator
from baselines.run_folder import claim_folder
from baselines.trajectory import Trajectory, collate


@dataclass(frozen=True, kw_only=True)
class TrainerConfig:
    """What every method needs to know."""

    model: str
    """Folder or hub name of the policy to begin with."""
    out: Path
    """Folder of the run; a run that stopped there goes on."""
    iterations: int = 50
    """Times that episodes are collected and learned from."""
    groups: int = 8
    """Different tasks an iteration."""
    group_size: int = 8
    """Episodes of each task."""
    slots: int = 64
    """Episodes played at once."""
    temperature: float = 1.0
    """Of the sampling."""
    max_action_tokens: int = 24
    """Tokens of an action at most."""
    learning_rate: float = 1e-4
    """Constant after the warm-up. The default suits a tiny model: use about 1e-6 for a pretrained one."""
    warmup: int = 0
    """Updates over which the learning rate rises to its value: Adam's first steps are its boldest."""
    epochs: int = 1
    """Passes over each iteration's episodes."""
    minibatches: int = 2
    """Updates a pass."""
    microbatch: int = 16
    """Episodes that go through the model at once; it bounds the memory and changes nothing else."""
    clip_low: float = 0.2
    """Of the probability ratio, below 1."""
    clip_high: float = 0.28
    """Of the probability ratio, above 1."""
    kl: float = 0.0
    """Weight of the divergence from the policy at the beginning; 0 saves that policy's memory."""
    aggregation: Aggregation = "token"
    """How the loss of the tokens becomes one number."""
    max_gradient: float = 1.0
    """Norm of the gradient at most."""
    system: str = ""
    """System message of every conversation."""
    checkpoint_every: int = 10
    """Iterations between two checkpoints."""
    seed: int = 0
    """Of everything: tasks, sampling, order of the updates."""


def train(
    config: TrainerConfig,
    make_env: Callable[[], gymnasium.Env[str, str]],
    advantages_of: AdvantageFunction,
    log: Callable[[dict[str, Any]], None] | None = None,
) -> Path:
    """Train and return the folder of the policy.

    Args:
        config: of the run.
        make_env: makes one environment.
        advantages_of: out of `advantages.py`, or one like them.
        log: called with the metrics of each iteration.

    Raises:
        GroupTooSmallError: `group_size` is 1, and there is nothing to compare an episode with.
    """
    if config.group_size < 2:
        raise GroupTooSmallError(
            f"group_size={config.group_size}: episodes are compared within their group, so it must hold 2 or more"
        )
    keep_freed_memory()
    run = _Run(config)
    generator = TransformersGenerator(
        run.accelerator.unwrap_model(run.policy),
        run.chat.end_id,
        slots=min(config.slots, config.groups * config.group_size),
        max_action_tokens=config.max_action_tokens,
        temperature=config.temperature,
    )
    collector = Collector(make_env, generator, run.chat)
    try:
        while run.iteration < config.iterations:
            started = time.perf_counter()
            # Each iteration has generators of its own, so what happens in it does not depend on when a run resumed.
            generator.random.manual_seed(_seed(config, run.iteration, 1, run.accelerator.process_index))
            run.policy.eval()
            trajectories = collector.collect(_episodes(config, run.iteration, run.accelerator.process_index))
            collected = time.perf_counter()
            run.policy.train()
            metrics = run.update(trajectories, advantages_of)
            run.iteration += 1
            metrics = {
                "iteration": run.iteration,
                **_summary(trajectories),
                **metrics,
                "rollout_seconds": collected - started,
                "update_seconds": time.perf_counter() - collected,
            }
            run.write(metrics)
            if log is not None:
                log(metrics)
            if run.iteration % config.checkpoint_every == 0 and run.iteration < config.iterations:
                run.save_checkpoint()
    finally:
        collector.close()
    return run.finish()


def _episodes(config: TrainerConfig, iteration: int, process: int) -> list[Episode]:
    """The episodes of one iteration: equal seeds within a group, so that they begin in the same state."""
    random = np.random.default_rng(_seed(config, iteration, 0, process))
    seeds = random.integers(2**31, size=config.groups)
    return [Episode(group, seed=int(seed)) for group, seed in enumerate(seeds) for _ in range(config.group_size)]


def _seed(config: TrainerConfig, *path: int) -> int:
    return int(np.random.SeedSequence((config.seed, *path)).generate_state(1)[0])


def _summary(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    successes = [t.success for t in trajectories if t.success is not None]
    tokens = sum(len(turn.action) for t in trajectories for turn in t.turns)
    return {
        "episodes": len(trajectories),
        "return": float(np.mean([t.total_reward for t in trajectories])),
        **({"success": float(np.mean(successes))} if successes else {}),
        "turns": float(np.mean([len(t.turns) for t in trajectories])),
        "action_tokens": tokens,
        "entropy_estimate": -sum(sum(turn.log_probs) for t in trajectories for turn in t.turns) / tokens,
    }


class _Run:
    """The state of a run, and its folder."""

    def __init__(self, config: TrainerConfig) -> None:
        self.config = config
        self.folder = config.out
        self.accelerator = Accelerator()
        claim_folder(config.out, config, may_change=("iterations",))
        checkpoint = self._restore_folder()
        model, tokenizer = load_policy(str(checkpoint) if checkpoint else config.model)
        self.tokenizer = tokenizer
        self.chat = ChatFormat(tokenizer, config.system)
        optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate, weight_decay=0.0)
        self.policy, self.optimizer = self.accelerator.prepare(model, optimizer)
        self.schedule = LinearLR(optimizer, 1 / (config.warmup + 1), total_iters=config.warmup)
        self.reference = load_policy(config.model)[0].to(self.accelerator.device).eval() if config.kl else None
        self.iteration = 0
        if checkpoint is not None:
            state = torch.load(checkpoint / "state.pt", weights_only=True)
            self.optimizer.load_state_dict(state["optimizer"])
            self.schedule.load_state_dict(state["schedule"])
            self.iteration = state["iteration"]
        self._drop_metrics_after(self.iteration)

    def update(self, trajectories: Sequence[Trajectory], advantages_of: AdvantageFunction) -> dict[str, float]:
        """Learn from one iteration's episodes."""
        config = self.config
        lengths = np.array([len(t.turns) for t in trajectories], dtype=np.int64)
        rewards = np.zeros((len(trajectories), int(lengths.max())))
        for row, trajectory in enumerate(trajectories):
            rewards[row, : lengths[row]] = [turn.reward for turn in trajectory.turns]
        groups = np.array([t.group for t in trajectories], dtype=np.int64)
        advantages = advantages_of(rewards, lengths, groups)
        random = np.random.default_rng(_seed(config, self.iteration, 2, self.accelerator.process_index))
        losses, clipped, norms = [], [], []
        for _ in range(config.epochs):
            for part in np.array_split(random.permutation(len(trajectories)), config.minibatches):
                # Episodes without advantage teach nothing, unless they are held near the reference.
                members = [int(i) for i in part if advantages[i].any() or config.kl]
                if members:
                    loss, share, norm = self._step([trajectories[i] for i in members], advantages[members])
                    losses.append(loss)
                    clipped.append(share)
                    norms.append(norm)
        if not losses:
            return {"loss": 0.0, "clipped": 0.0, "gradient_norm": 0.0}
        return {
            "loss": float(np.mean(losses)),
            "clipped": float(np.mean(clipped)),
            "gradient_norm": float(np.mean(norms)),
        }

    def _step(self, trajectories: list[Trajectory], advantages: Any) -> tuple[float, float, float]:
        """One update of the weights: loss, share of tokens at the clip, norm of the gradient."""
        config = self.config
        # Episodes of similar length go together, so that little is padded; the gradient is the same.
        order = sorted(range(len(trajectories)), key=lambda i: len(trajectories[i].ids))
        tokens = sum(len(turn.action) for t in trajectories for turn in t.turns)
        total, at_clip = 0.0, 0.0
        for start in range(0, len(order), config.microbatch):
            members = order[start : start + config.microbatch]
            batch = collate([trajectories[i] for i in members])
            device = self.accelerator.device
            ids, mask = batch.ids.to(device), batch.action_mask.to(device)
            old = batch.log_probs.to(device)
            logits = self.policy(input_ids=ids, attention_mask=batch.attention_mask.to(device), use_cache=False).logits
            log_probs = sampled_log_probs(logits, ids, config.temperature or 1.0)
            advantage = torch.tensor(advantages[members], dtype=torch.float32).gather(1, batch.turns).to(device)
            values = ppo_clip(log_probs, old, advantage, clip_low=config.clip_low, clip_high=config.clip_high)
            if self.reference is not None:
                with torch.no_grad():
                    said = self.reference(input_ids=ids, attention_mask=batch.attention_mask.to(device)).logits
                    reference = sampled_log_probs(said, ids, config.temperature or 1.0)
                values = values + config.kl * kl_k3(log_probs, reference)
            share = float(mask.sum()) / tokens if config.aggregation == "token" else len(members) / len(trajectories)
            loss = aggregate(values, mask, config.aggregation, constant=float(config.max_action_tokens)) * share
            self.accelerator.backward(loss)
            total += float(loss.detach())
            ratio = (log_probs - old).detach().exp()
            outside = (ratio < 1 - config.clip_low) | (ratio > 1 + config.clip_high)
            at_clip += float((outside * mask).sum()) / tokens
        norm = self.accelerator.clip_grad_norm_(self.policy.parameters(), config.max_gradient)
        self.optimizer.step()
        self.schedule.step()
        self.optimizer.zero_grad()
        return total, at_clip, float(norm)

    def write(self, metrics: dict[str, Any]) -> None:
        """Append a line to the metrics."""
        if self.accelerator.is_main_process:
            with open(self.folder / "metrics.jsonl", "a", encoding="utf-8") as file:
                file.write(json.dumps(metrics) + "\n")

    def save_checkpoint(self) -> None:
        """Write everything that is needed to go on, as a whole or not at all."""
        if not self.accelerator.is_main_process:
            return
        fresh, old = self.folder / "checkpoint.new", self.folder / "checkpoint.old"
        shutil.rmtree(fresh, ignore_errors=True)
        self._save_policy(fresh)
        state = {
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "iteration": self.iteration,
        }
        torch.save(state, fresh / "state.pt")
        shutil.rmtree(old, ignore_errors=True)
        current = self.folder / "checkpoint"
        if current.exists():
            current.rename(old)
        fresh.rename(current)
        shutil.rmtree(old, ignore_errors=True)

    def finish(self) -> Path:
        """Write the trained policy; the checkpoint is no longer needed."""
        policy = self.folder / "policy"
        if self.accelerator.is_main_process:
            fresh = self.folder / "policy.new"
            shutil.rmtree(fresh, ignore_errors=True)
            self._save_policy(fresh)
            shutil.rmtree(policy, ignore_errors=True)
            fresh.rename(policy)
            for name in ("checkpoint", "checkpoint.old"):
                shutil.rmtree(self.folder / name, ignore_errors=True)
        return policy

    def _save_policy(self, folder: Path) -> None:
        self.accelerator.unwrap_model(self.policy).save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    def _restore_folder(self) -> Path | None:
        """The last whole checkpoint: the old one, if the run was killed between the two renames."""
        for name in ("checkpoint", "checkpoint.old"):
            if (self.folder / name / "state.pt").is_file():
                return self.folder / name
        return None

    def _drop_metrics_after(self, iteration: int) -> None:
        """Forget what was logged after the checkpoint: those iterations are played again."""
        path = self.folder / "metrics.jsonl"
        if not path.is_file():
            return
        kept = []
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue  # A line cut by a kill.
            if record["iteration"] <= iteration:
                kept.append(line)
        temporary = path.with_suffix(".new")
        temporary.write_text("".join(line + "\n" for line in kept), encoding="utf-8")
        os.replace(temporary, path)
