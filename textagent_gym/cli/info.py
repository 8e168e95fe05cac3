"""`textagent-gym info`."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass

from textagent_gym.cli.environment import Chosen, make
from textagent_gym.core import TextEnv
from textagent_gym.errors import WorldBrokenError
from textagent_gym.knobs import knob_table
from textagent_gym.options import TextEnvKwargs
from textagent_gym.registration import full_id
from textagent_gym.terminal import visible

_FOR_PROGRAMMERS = re.compile(r"^(?:Args|Raises|Attributes|Example):\n(?:(?: .*)?\n|(?: .+)\Z)*", re.M)


@dataclass(frozen=True, kw_only=True)
class Info(Chosen):
    """Describe an environment: what it is, its knobs, how to act, and one of its tasks with its measured difficulty."""

    task: int = 0
    """Index of the task that is shown, from 0."""

    def run(self) -> int:
        """Print the description."""
        from rich.console import Console
        from rich.markdown import Markdown

        from textagent_gym.evaluation.episode import base_of

        console = Console()
        env = make(self)
        base = base_of(env)
        console.rule(full_id(self.env))
        console.print(Markdown(_description(type(base))))
        console.rule("knobs")
        console.print(Markdown(knob_table(type(base), env.spec.kwargs) or "It declares none."))
        shared = ", ".join(f"`{name}`" for name in TextEnvKwargs.__annotations__)
        console.print(Markdown(f"Every environment takes {shared} too."))
        console.print(f"\n  observations: {env.observation_space}   actions: {env.action_space}")
        tasks, supports = base.tasks, sorted(base.supports)
        console.print(f"  supports: {', '.join(supports) or 'nothing beside reset and step'}", highlight=False)
        if base.instructions:
            console.rule("how to act")
            console.print(visible(base.instructions), markup=False, highlight=False)
        console.rule("tasks")
        if tasks.missing_data:
            console.print(tasks.missing_data, markup=False, highlight=False)
            env.close()
            return 0
        for split in tasks.splits:
            size = tasks.size(split)
            console.print(f"  split {split}: {'endless' if size is None else f'{size} tasks'}")
        try:
            with console.status("Making the task ..."):
                observation, info = env.reset(options={"task_index": self.task})
        except WorldBrokenError as error:  # Such as an engine that does not run.
            console.print(
                f"  Task {self.task} cannot be shown here: {visible(str(error))}", markup=False, highlight=False
            )
            env.close()
            return 0
        console.rule(visible(info["task"]))
        for name, value in info["complexity"].to_dict().items():
            console.print(f"  {name}: {value}")
        console.print(f"  max_turns: {base.max_turns}\n")
        console.print(visible(observation), markup=False, highlight=False)
        env.close()
        return 0


def _description(world: type) -> str:
    """The docstrings of a world's class and of those that it is built on, the most general first.

    They are shown without the sections for programmers, whose arguments are the knobs.
    """
    kinds = [kind for kind in world.__mro__ if not issubclass(TextEnv, kind)]
    texts = [_FOR_PROGRAMMERS.sub("", inspect.cleandoc(kind.__doc__)) for kind in reversed(kinds) if kind.__doc__]
    return "\n\n".join(texts) or "No description."
