"""Environments from the command line: an id, keyword arguments as `--set name=value`, and a number of tasks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import tyro

from textagent_gym.errors import InvalidOptionError
from textagent_gym.registration import full_id
from textagent_gym.tasks import held_out_split


def check_workers(workers: int | None) -> None:
    """Raise `InvalidOptionError` for a number of processes below 1; `None` is the default number."""
    if workers is not None and workers < 1:
        raise InvalidOptionError(f"--workers must be at least 1, got {workers}")


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The environment that a command works on."""

    env: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="ID")]
    """Id of the environment; `textagent-gym list` shows all. "textagent/" and "-v0" may be left out.
    An id of the form module:ID first imports the module, which registers the environment."""
    set: Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="NAME=VALUE")] = field(default=())
    """Keyword argument of the environment, such as rooms=4; `textagent-gym info ID` shows all."""

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments, each read as its knob's type.

        Raises:
            InvalidOptionError: there is no such environment, or a value that it cannot have.
        """
        from textagent_gym.knobs import read_settings, split_settings

        return read_settings(full_id(self.env), split_settings(self.set))


@dataclass(frozen=True, kw_only=True)
class ChosenTasks(Chosen):
    """The environment that a command works on, and how many of its tasks."""

    tasks: int = 100
    """Number of tasks, from the first one of the split."""
    split: Annotated[str | None, tyro.conf.arg(metavar="NAME", help_behavior_hint="")] = None
    """Split of the tasks; `textagent-gym info ID` shows all. The default is named in the description above."""
    workers: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")] = None
    """Number of processes that make the tasks; by default the number of processor cores."""

    def make(self, default: str | None = None) -> tuple[Any, int]:
        """The environment, and the number of its tasks that are played; `prepare` makes them.

        Args:
            default: split where none was asked for; `None` for one that is held out, if there is one.
        """
        from textagent_gym.evaluation.episode import base_of, count_tasks

        check_workers(self.workers)
        asked = self.kwargs.get("split", self.split)
        if self.split not in (None, asked):
            raise InvalidOptionError(f"--split {self.split} and --set split={asked} contradict each other")
        env = make(self, **({} if asked is None else {"split": asked}))
        if asked is None:
            splits = base_of(env).tasks.splits
            chosen = default or held_out_split(splits)
            if base_of(env).split != chosen:
                env.close()
                env = make(self, split=chosen)
        return env, count_tasks(env, self.tasks)

    def prepare(self, env: Any, count: int) -> None:
        """Make the first tasks of the split, and say where there are fewer than were asked for."""
        from rich.console import Console

        from textagent_gym.cli.progress import bar

        base = env.unwrapped
        if count < self.tasks:
            which = f"num_tasks is {count}" if count == base.num_tasks else f"split {base.split!r} has {count}"
            Console(stderr=True).print(f"Fewer than {self.tasks} tasks: {which}.", style="yellow", soft_wrap=True)
        with bar("Making tasks", count) as done:
            base.tasks.prepare(base.split, range(count), workers=self.workers, progress=done)


def make(chosen: Chosen, **kwargs: Any) -> Any:
    """The environment that was chosen."""
    import gymnasium

    name = full_id(chosen.env)
    try:
        return gymnasium.make(name, **{**kwargs, **chosen.kwargs})
    except TypeError as error:
        raise InvalidOptionError(str(error)) from error
