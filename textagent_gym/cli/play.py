"""`textagent-gym play`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated, Any

import tyro

from textagent_gym.cli.environment import Chosen, make
from textagent_gym.errors import UnsupportedOperationError
from textagent_gym.terminal import visible

_HELP = "? lists the actions that would do something, ! shows the shortest solution, < takes a turn back, Ctrl-D ends."


@dataclass(frozen=True, kw_only=True)
class Play(Chosen):
    """Play an environment at the terminal, or with actions read from standard input, one per line."""

    task: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")] = None
    """Index of the task, from 0; by default one is drawn at random."""
    seed: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")] = None
    """Seed of that draw; by default another task is drawn each time."""

    def run(self) -> int:
        """Play until the episode or the input ends."""
        from rich.console import Console

        from textagent_gym.evaluation.episode import base_of

        console = Console(highlight=False)
        env = make(self)
        base = base_of(env)
        with console.status("Making the task ..."):
            options = None if self.task is None else {"task_index": self.task}
            observation, info = env.reset(seed=self.seed, options=options)
        console.print(visible(f"{info.get('task', '')}   {_HELP}\n"), style="dim", markup=False)
        console.print(visible(observation), markup=False)
        past: list[Any] = []
        total = 0.0
        while True:
            try:
                action = input("\n> ") if sys.stdin.isatty() else _echo(input())
            except EOFError:
                console.print("\nThe input has ended.", style="dim")
                return 0
            try:
                if action == "?":
                    console.print(visible(", ".join(base.admissible_actions())), style="cyan", markup=False)
                elif action == "!":
                    plan = base.oracle()
                    console.print(
                        "out of reach" if plan is None else visible(" > ".join(plan)), style="cyan", markup=False
                    )
                elif action == "<":
                    if past:
                        token, observation, total = past.pop()
                        base.restore(token)
                        console.print(visible(observation), markup=False)
                    else:
                        console.print("This is the first turn.", style="yellow")
                else:
                    past += _moment(base, observation, total)
                    observation, reward, terminated, truncated, info = env.step(action)
                    total += float(reward)
                    console.print(visible(observation), markup=False)
                    if terminated or truncated:
                        broken = f"The world broke ({info['broken']})" if info.get("broken") else ""
                        ending = "Solved" if info.get("success") else "Out of turns" if truncated else "Lost"
                        ending = visible(broken) or ending
                        console.print(f"\n{ending} after {info.get('turn')} turns; return {total:.3f}.", style="bold")
                        return 0
            except UnsupportedOperationError as error:
                console.print(visible(str(error)), style="yellow", markup=False)


def _echo(action: str) -> str:
    print(f"\n> {visible(action)}")
    return action


def _moment(base: Any, observation: str, total: float) -> list[Any]:
    """Where one can go back to, in worlds that can save a state."""
    try:
        return [(base.snapshot(), observation, total)]
    except UnsupportedOperationError:
        return []
