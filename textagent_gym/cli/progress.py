"""Progress bars of the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Done(Protocol):
    """Sets how much is done, and a note beside the bar."""

    def __call__(self, done: int, note: str = "") -> None: ...


@contextmanager
def bar(what: str, total: int) -> Iterator[Done]:
    """A bar on standard error; the function it gives sets how much is done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(what, total=total, note="")

        def show(done: int, note: str = "") -> None:
            progress.update(task, completed=done, note=note)

        yield show
