"""`textagent-gym leaderboard`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from textagent_gym.cli.environment import check_workers
from textagent_gym.cli.subcommand import subcommand
from textagent_gym.errors import InvalidOptionError
from textagent_gym.terminal import one_line, visible
from textagent_gym.time_limit import GRACE, killed_after

_LONGEST_SHOWN = 500  # Characters of a remark.
_MOST_SECONDS = 365 * 24 * 3600


def _check_limits(seconds: float, workers: int) -> None:
    if not 1 <= seconds <= _MOST_SECONDS:
        raise InvalidOptionError(f"--seconds must be at least 1 and at most {_MOST_SECONDS}, got {seconds:g}")
    check_workers(workers)


@dataclass(frozen=True)
class Build:
    """Check every result below a folder by replay, and write a site of static pages that shows those which are right.

    Open its index.html in a browser, or put the folder on any web server: it needs nothing from a network. Results that
    are not right, or whose data are not on this machine, are left out, and the exit status is then 1; the page "About"
    says which, and why.
    """

    results: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RESULTS")]
    """Folder with results of suites, at any depth up to four folders."""
    out: Annotated[Path, tyro.conf.arg(metavar="FOLDER")]
    """Folder of the site. A site that an earlier build has made there is replaced, once the new one is complete."""
    title: str = "textagent-gym leaderboard"
    """Title of the site."""
    episodes: int = 50
    """Number of episodes per part of a suite that can be stepped through; 0 for none."""
    workers: int = 1
    """Number of processes that play what is checked."""
    seconds: float = 3600.0
    """Time after which checking one result stops, as if something were wrong."""

    def run(self) -> int:
        """Build; 1 if a result was left out."""
        from rich.console import Console

        from textagent_gym.cli.progress import bar
        from textagent_gym.leaderboard import build, find_results

        if self.episodes < 0:
            raise InvalidOptionError(f"--episodes must be at least 0, got {self.episodes}")
        _check_limits(self.seconds, self.workers)
        with bar("Checking results", len(find_results(self.results))) as done:
            shown, left_out = build(
                *(self.results, self.out),
                title=self.title,
                episodes=self.episodes,
                seconds=self.seconds,
                workers=self.workers,
                progress=done,
            )
        console = Console()
        for each in left_out:
            text = f"left out {each.folder}: {' '.join(each.reasons)}"
            console.print(visible(text), style="yellow", markup=False, highlight=False, soft_wrap=True)
        console.print(
            f"{len(shown)} {'result' if len(shown) == 1 else 'results'}. Open {self.out / 'index.html'}",
            soft_wrap=True,
            highlight=False,
        )
        return 1 if left_out else 0


@dataclass(frozen=True)
class Accept:
    """Check a result that somebody has sent, by replay, and copy it into a folder of results; or say what is wrong.

    Nothing in it is imported or chooses what is run. It becomes RESULTS/SUITE/AGENT-DIGEST. Where the result is there
    already, what --model, --challenge or --rerun proves is noted beside what was known.
    """

    result: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FOLDER")]
    """Folder of the result of a suite."""
    workers: int = 1
    """Number of processes that play. With --model, one plays."""
    into: Annotated[Path, tyro.conf.arg(metavar="RESULTS")] = Path("results")
    """Folder of the results that have been accepted."""
    seconds: float = 3600.0
    """Time after which checking stops, as if something were wrong."""
    model: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER", help_behavior_hint="")] = None
    """Folder of the policy that is said to have played: every token is computed again."""
    challenge: Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="")] = None
    """Challenge that the result is said to answer."""
    rerun: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER", help_behavior_hint="")] = None
    """Folder of your own result of the same agent in the same suite, which is checked by replay, too. If the 95%
    interval of the difference holds zero, RESULTS/trust.json notes both successes."""

    def run(self) -> int:
        """Accept; an error says why it is refused."""
        from rich.console import Console

        from textagent_gym.cli.progress import bar, counting
        from textagent_gym.evaluation.copies import labelled
        from textagent_gym.files import check_writable
        from textagent_gym.leaderboard.submissions import accept

        _check_limits(self.seconds, self.workers)
        check_writable(self.into, folder=True)
        try:
            times = 1 if self.rerun is None else 2
            with killed_after(times * self.seconds + GRACE), bar("Replaying") as done:
                entry = accept(
                    self.result,
                    self.into,
                    self.seconds,
                    model=self.model,
                    challenge=self.challenge,
                    rerun=self.rerun,
                    workers=self.workers,
                    progress=counting(done),
                )
        except InvalidOptionError as error:
            raise InvalidOptionError(f"{self.result} is refused: {error}") from error
        console = Console()
        console.print(f"Accepted: {entry.folder}", soft_wrap=True, markup=False, highlight=False)
        console.print(f"Proven: {', '.join(entry.trust)}.", soft_wrap=True, markup=False, highlight=False)
        for remark in (*labelled(entry.flags, entry.trust), *(f"Note: {note}" for note in entry.notes)):
            console.print(
                one_line(remark, _LONGEST_SHOWN), style="yellow", markup=False, highlight=False, soft_wrap=True
            )
        return 0


@dataclass(frozen=True)
class Schema:
    """Print the JSON Schemas of the files of a result, by their names."""

    def run(self) -> int:
        """Print."""
        import json

        from textagent_gym.leaderboard.schema import schemas

        print(json.dumps(schemas(), indent=2))
        return 0


@dataclass(frozen=True)
class Leaderboard:
    """Show results to others: write a site (build), take what somebody sent (accept), say how files look (schema)."""

    work: Annotated[
        Annotated[Build, subcommand("build", Build)]
        | Annotated[Accept, subcommand("accept", Accept)]
        | Annotated[Schema, subcommand("schema", Schema)],
        tyro.conf.arg(name=""),
    ]

    def run(self) -> int:
        """Do the work."""
        return self.work.run()
