"""Episodes of a tiny policy: the continued cache beside reading the whole conversation again at every turn.

python -m benchmarks.rollout
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import gymnasium
import torch
from rich.console import Console
from rich.table import Table

from baselines.chat import ChatFormat
from baselines.models import load_policy, make_tiny_policy
from baselines.rollout import Collector, Completion, Episode, Request, TransformersGenerator

ENV, TASKS, SLOTS = "textagent/TextWorld-w2-o3-q4-v0", 4, 32


class Rereading:
    """A generator that reads each conversation from its beginning at every turn."""

    def __init__(self, generator: TransformersGenerator) -> None:
        self._generator = generator
        self._said: dict[int, tuple[int, ...]] = {}
        self.slots = generator.slots
        self.context_length = generator.context_length
        self.max_action_tokens = generator.max_action_tokens

    def generate(self, requests: list[Request]) -> list[Completion]:
        """Complete the conversations of some slots."""
        whole = []
        for request in requests:
            before = () if request.fresh else self._said[request.slot]
            self._said[request.slot] = (*before, *request.ids)
            whole.append(Request(request.slot, self._said[request.slot], True))
        self._generator._forget()
        completions = self._generator.generate(whole)
        for request, completion in zip(requests, completions, strict=True):
            self._said[request.slot] = (*self._said[request.slot], *completion.ids)
        return completions


def main() -> None:
    """Print tokens/s of both and their ratio."""
    env = gymnasium.make(ENV, num_tasks=TASKS, max_turns=20)
    texts = [env.reset(options={"task_index": index})[0] for index in range(TASKS)]
    table = Table(title=f"Rollouts of {2 * SLOTS} episodes in {SLOTS} slots", header_style="bold")
    for column in ("cache", "episodes/s", "tokens/s", "ratio"):
        table.add_column(column)
    with tempfile.TemporaryDirectory() as folder:
        make_tiny_policy(Path(folder), texts)
        model, tokenizer = load_policy(folder)
        chat, rates = ChatFormat(tokenizer), []
        for name in ("re-read", "continued"):
            torch.manual_seed(0)
            generator = TransformersGenerator(model.eval(), chat.end_id, slots=SLOTS, max_action_tokens=8)
            backend = generator if name == "continued" else Rereading(generator)
            collector = Collector(lambda: gymnasium.make(ENV, num_tasks=TASKS, max_turns=20), backend, chat)
            episodes = [Episode(i, options={"task_index": i % TASKS}) for i in range(2 * SLOTS)]
            started = time.perf_counter()
            played = collector.collect(episodes)
            seconds = time.perf_counter() - started
            collector.close()
            rates.append(sum(len(t.ids) for t in played) / seconds)
            table.add_row(name, f"{len(played) / seconds:.1f}", f"{rates[-1]:,.0f}", f"{rates[-1] / rates[0]:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
