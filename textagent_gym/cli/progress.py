"""Progress bars of the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol


class Done(Protocol):
    """Sets how much is done, a note beside the bar, and how much there is where that was not known at first."""

    def __call__(self, done: int, note: str = "", *, total: int | None = None) -> None: ...


def counting(show: Done) -> Callable[[int, int], None]:
    """A function that sets how much is done, and of how much."""
    return lambda done, total: show(done, total=total)


@contextmanager
def bar(what: str, total: int | None = None) -> Iterator[Done]:
    """A bar on standard error; the function it gives sets how much is done.

    Args:
        what: words before the bar.
        total: amount that there is to do; `None` if it is known later, and until then nothing is shown.
    """
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
        task = progress.add_task(what, total=total, visible=total is not None, note="")

        def show(done: int, note: str = "", *, total: int | None = None) -> None:
            progress.update(task, completed=done, total=total, visible=True, note=note)

        yield show
