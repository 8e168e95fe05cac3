"""`textagent-gym eval`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from textagent_gym.cli.environment import Chosen, full_id, make

if TYPE_CHECKING:
    from textagent_gym.evaluation import Summary


@dataclass(frozen=True, kw_only=True)
class Eval(Chosen):
    """Play an agent on the tasks of a split, print its success with a 95% interval, and write a result file."""

    agent: str = "admissible-random"
    """random (any text), admissible-random, oracle, expert (knows only what it has read) or human."""
    tasks: int = 100
    """Number of tasks, from the first of the split on."""
    episodes: int = 1
    """Times that each task is played, with different seeds."""
    split: str | None = None
    """Split of the tasks; the environment's first one by default."""
    seed: int = 0
    """Of the agent."""
    out: Path | None = None
    """Result file for `textagent-gym verify`. A run that was stopped goes on from it."""
    workers: int | None = None
    """Processes that make the tasks; all processor cores by default."""

    def run(self) -> int:
        """Evaluate."""
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        from textagent_gym.agents import AGENTS
        from textagent_gym.cli.progress import bar
        from textagent_gym.errors import InvalidOptionError
        from textagent_gym.evaluation import evaluate, summarize, summarize_by_type
        from textagent_gym.terminal import visible

        if self.agent not in AGENTS:
            raise InvalidOptionError(f"agent {self.agent!r} does not exist; choose one of: {', '.join(AGENTS)}")
        kwargs = {**self.kwargs, **({"split": self.split} if self.split else {})}
        env = make(self, **({"split": self.split} if self.split else {}))
        tasks, split = env.unwrapped.tasks, env.unwrapped.split
        env.close()
        size = tasks.size(split)
        count = self.tasks if size is None else min(self.tasks, size)
        with bar("Making tasks", count) as done:
            tasks.prepare(split, range(count), workers=self.workers, progress=done)
        played = 0
        with bar("Playing", count * self.episodes) as done:

            def show(_: object) -> None:
                nonlocal played
                played += 1
                done(played)

            result = evaluate(
                full_id(self.env),
                self.agent,
                tasks=self.tasks,
                episodes=self.episodes,
                seed=self.seed,
                kwargs=kwargs,
                path=self.out,
                progress=show,
            )
        table = Table(title=f"{result.env}, split {result.split}", header_style="bold")
        for column in ("agent", "episodes", "success [95%]", "return [95%]", "turns [95%]", "invalid actions"):
            table.add_column(column)
        table.add_row(result.agent, *_cells(summarize(result.episodes)))
        for name, part in summarize_by_type(result.episodes).items():
            table.add_row(Text(visible(f"  {name}")), *_cells(part), style="dim")
        Console().print(table)
        if self.out is not None:
            Console().print(f"Result file: {self.out}   Check it with: textagent-gym verify {self.out}", soft_wrap=True)
        return 0


def _cells(summary: Summary) -> tuple[str, ...]:
    """A row of the table, without its name."""
    rates = (str(summary.success), str(summary.total_reward), str(summary.turns))
    return (str(summary.episodes), *rates, f"{summary.invalid:.1%}")
