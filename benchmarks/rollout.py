"""Episodes of a tiny policy: the continued cache beside reading the conversation again, and pools beside this process.

python -m benchmarks.rollout
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import gymnasium
import torch
from rich.console import Console
from rich.table import Table

from baselines.envs.pool import Pool, make_pool
from baselines.policy.chat import ChatFormat
from baselines.policy.models import load_policy, make_tiny_policy
from baselines.rollout import Collector, Completion, EpisodeRequest, Generator, Prompt, TransformersGenerator
from baselines.rollout.trajectory import Trajectory
from baselines.settings.config import PoolKind
from textagent_gym.vector import env_maker

ENV, TASKS, SLOTS = "textagent/TextWorld-w2-o3-q4-v0", 4, 32
WORLDS: dict[str, dict[str, Any]] = {
    "textagent/ALFWorld-v0": {"num_tasks": 4, "max_turns": 20},
    ENV: {"num_tasks": TASKS, "max_turns": 20},
}
PAUSE = 0.5  # Seconds per step of the only slow environment among all slots.
EPISODES = 128  # Of each run without it and with it.
PAIRS = 5  # Such runs: other programs move single ones by a fifth.
SLEEP = 0.05  # Seconds that one environment of the slow world takes per step, ten times a cheap world's batch.


class Rereading:
    """A generator that reads each conversation from its beginning at every turn."""

    def __init__(self, generator: TransformersGenerator) -> None:
        self._generator = generator
        self._conversations: dict[int, tuple[int, ...]] = {}
        self._turns: dict[int, int] = {}
        self._seeds: dict[int, int] = {}
        self.slots = generator.slots
        self.context_length = generator.context_length
        self.max_action_tokens = generator.max_action_tokens

    def generate(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Complete the conversations of some slots."""
        whole = []
        for prompt in prompts:
            before = () if prompt.fresh else self._conversations[prompt.slot]
            self._turns[prompt.slot] = 0 if prompt.fresh else self._turns[prompt.slot] + 1
            self._conversations[prompt.slot] = (*before, *prompt.ids)
            if prompt.seed is not None:
                self._seeds[prompt.slot] = prompt.seed
            seed = self._seeds[prompt.slot] + 1_000 * self._turns[prompt.slot]
            whole.append(Prompt(prompt.slot, self._conversations[prompt.slot], True, seed))
        self._generator.forget()
        completions = self._generator.generate(whole)
        for prompt, completion in zip(prompts, completions, strict=True):
            self._conversations[prompt.slot] = (*self._conversations[prompt.slot], *completion.ids)
        return completions

    def take_weights(self, model: Any) -> None:
        """See `Generator`."""
        self._generator.take_weights(model)

    def forget(self) -> None:
        """See `Generator`."""
        self._generator.forget()

    def close(self) -> None:
        """See `Generator`."""
        self._generator.close()


class Slow(gymnasium.Wrapper[str, str, str, str]):
    """A world of which every eighth task takes its time."""

    def reset(self, **kwargs: Any) -> tuple[str, dict[str, Any]]:
        """See `gymnasium.Env.reset`."""
        self._slow = (kwargs.get("options") or {}).get("task_index", 0) % 8 == 0
        return super().reset(**kwargs)

    def step(self, action: str) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """See `gymnasium.Env.step`."""
        if self._slow:
            time.sleep(SLEEP)
        return super().step(action)


class SlowSlot(gymnasium.Wrapper[str, str, str, str]):
    """A world whose first environment takes its time, whatever it plays.

    Seconds are those of this process's CPU clock, so that a busy machine slows this environment as much as all else.
    """

    made = itertools.count()

    def __init__(self, env: gymnasium.Env[str, str]) -> None:
        super().__init__(env)
        self._slow = next(self.made) == 0

    def step(self, action: str) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """See `gymnasium.Env.step`."""
        until = time.process_time() + PAUSE
        while self._slow and time.process_time() < until:
            time.sleep(0.01)
        return super().step(action)


@dataclass(frozen=True)
class Cost:
    """What some episodes took.

    Attributes:
        seconds: seconds.
        computed: CPU seconds of all threads, which other programs on the machine hardly move.
        waited: seconds in which nothing was generated, because no environment had answered.
        turns: number of their turns.
    """

    seconds: float
    computed: float
    waited: float
    turns: int

    @property
    def needed(self) -> float:
        """Seconds per turn on a machine that does nothing else: computing, then waiting."""
        return (self.computed + self.waited) / self.turns


def cost_of(collector: Collector, pool: Pool) -> Cost:
    """Play episodes of 5 to 15 turns, from the first to the end of the last."""
    waited = 0.0

    def receive(timeout: float | None = None, recv: Any = pool.recv) -> Any:
        nonlocal waited
        asked = time.perf_counter()
        try:
            return recv(timeout)
        finally:
            waited += time.perf_counter() - asked

    requests = [
        EpisodeRequest(i, options={"task_index": i % TASKS, "max_turns": 5 + i % 11}, sampling_seed=i)
        for i in range(EPISODES)
    ]
    began, computed = time.perf_counter(), time.process_time()
    with patch.object(pool, "recv", receive):
        played = collector.collect(requests)
    turns = sum(len(trajectory.turns) for trajectory in played.trajectories)
    return Cost(time.perf_counter() - began, time.process_time() - computed, waited, turns)


def measure_slow_slot(generator: Generator, chat: ChatFormat, console: Console) -> None:
    """Print what one slow slot costs: pairs of runs in turns, so that other load on the machine meets both."""
    torch.set_num_threads(1)  # So that the CPU clock runs no faster than others.
    world: dict[str, Any] = {"num_tasks": TASKS, "max_turns": 15}
    makers = [env_maker("textagent/ALFWorld-v0", wrappers=wrappers, **world) for wrappers in ((), (SlowSlot,))]
    pools = [make_pool(make, SLOTS, "thread") for make in makers]
    collectors = [Collector(pool, generator, chat) for pool in pools]
    pairs = []
    for _ in range(1 + PAIRS):
        generator.forget()
        pairs.append([cost_of(collector, pool) for collector, pool in zip(collectors, pools, strict=True)])
    del pairs[0]  # Environments show how fast they are.
    for pool in pools:
        pool.close()
    title = f"{EPISODES} episodes in {SLOTS} slots, one of which takes {PAUSE} s per step; medians of {PAIRS} pairs"
    table = Table(title=title, header_style="bold")
    for column in ("slots", "turns/s", "CPU ms per turn", "waiting for environments"):
        table.add_column(column)
    for name, runs in zip(("all quick", "one slow"), zip(*pairs, strict=True), strict=True):
        table.add_row(
            name,
            f"{median(run.turns / run.seconds for run in runs):.1f}",
            f"{median(1_000 * run.computed / run.turns for run in runs):.2f}",
            f"{median(run.waited / run.seconds for run in runs):.1%}",
        )
    console.print(table)
    ratios = [quick.needed / slow.needed for quick, slow in pairs]
    console.print(
        f"Throughput with one slow slot, computing and waiting alone: {median(ratios):.3f} times that of quick ones "
        f"({min(ratios):.3f} to {max(ratios):.3f})."
    )


def collect(
    make: Any, backend: Generator, chat: ChatFormat, kind: PoolKind, **kwargs: Any
) -> tuple[float, list[Trajectory]]:
    """Seconds and episodes; making the pool and the first episodes, which compile games, are not counted."""
    pool = make_pool(make, SLOTS, kind)
    collector = Collector(pool, backend, chat, **kwargs)
    try:
        collector.collect([EpisodeRequest(i, options={"task_index": i % TASKS}) for i in range(SLOTS)])
        requests = [EpisodeRequest(i, options={"task_index": i % 8}, sampling_seed=i) for i in range(2 * SLOTS)]
        started = time.perf_counter()
        played = collector.collect(requests).trajectories
        return time.perf_counter() - started, played
    finally:
        collector.close()


def new_table(title: str, first: str) -> Table:
    """A table of rates."""
    table = Table(title=title, header_style="bold")
    for column in (first, "episodes/s", "tokens/s", "ratio"):
        table.add_column(column)
    return table


def add_row(table: Table, name: str, seconds: float, played: list[Trajectory], basis: float | None) -> float:
    """Add a rate and return it; `basis` is the rate that the ratio is taken to."""
    rate = sum(len(t.ids) for t in played) / seconds
    table.add_row(name, f"{len(played) / seconds:.1f}", f"{rate:,.0f}", f"{rate / (basis or rate):.2f}")
    return rate


def main() -> None:
    """Print tokens/s and ratios."""
    console = Console()
    makers = {name: env_maker(name, **{**kwargs, "num_tasks": 8}) for name, kwargs in WORLDS.items()}
    texts = []
    for make in makers.values():
        env = make()
        texts += [env.reset(options={"task_index": index})[0] for index in range(TASKS)]
    makers["every eighth task slow"] = env_maker("textagent/ALFWorld-v0", wrappers=(Slow,), num_tasks=8, max_turns=20)
    with tempfile.TemporaryDirectory() as folder:
        make_tiny_policy(Path(folder), texts)
        model, tokenizer = load_policy(folder)
        chat = ChatFormat(tokenizer)
        torch.manual_seed(0)
        generator = TransformersGenerator(model.eval(), chat.end_id, slots=SLOTS, max_action_tokens=8)
        table, basis = new_table(f"{ENV}: {2 * SLOTS} episodes in {SLOTS} slots", "cache"), None
        for name, backend in (("re-read", Rereading(generator)), ("continued", generator)):
            rate = add_row(table, name, *collect(makers[ENV], backend, chat, "in-process"), basis)
            basis = basis or rate
        console.print(table)
        pools: list[tuple[str, PoolKind, float]] = [
            ("in-process", "in-process", 0.0),
            ("process, all wait", "process", float("inf")),
            ("process, ready first", "process", 0.02),
            ("thread, all wait", "thread", float("inf")),
            ("thread, ready first", "thread", 0.02),
        ]
        for world, make in makers.items():
            table, basis = new_table(f"{world}: {2 * SLOTS} episodes in {SLOTS} slots", "pool"), None
            for name, kind, patience in pools:
                rate = add_row(table, name, *collect(make, generator, chat, kind, patience=patience), basis)
                basis = basis or rate
            console.print(table)
        measure_slow_slot(generator, chat, console)


if __name__ == "__main__":
    main()
