"""`textagent-gym verify`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True, kw_only=True)
class Verify:
    """Check a result file: play every recorded action again and compare what happens.

    A file may come from a stranger. Without --trust, it cannot choose what is imported, read or run on this machine:
    the environment must be registered here, its wrappers must be the suite's, no argument may name a file, a folder or
    a module, and commands run in a sandbox that keeps them in, or not at all.
    """

    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
    """Result file that `textagent-gym eval --out` wrote."""
    set: Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="NAME=VALUE")] = field(default=())
    """Keyword argument of the environment, in place of the file's own, such as data=FOLDER."""
    trust: bool = False
    """Whether the file is trusted like your own: whatever it names is then imported, read and run."""

    def run(self) -> int:
        """Check; 1 if something is not as recorded."""
        from rich.console import Console

        from textagent_gym.cli.progress import bar
        from textagent_gym.evaluation import load, replay, spec_from_file, summarize
        from textagent_gym.evaluation.records import versions
        from textagent_gym.knobs import parse_settings
        from textagent_gym.terminal import visible

        console = Console()
        evaluation = load(self.file)
        spec, notes = spec_from_file(evaluation.spec, trust=self.trust, kwargs=parse_settings(self.set))
        here = versions(evaluation.env)
        for package, there in evaluation.versions.items():
            if here.get(package) != there and package != "python":
                notes.append(f"Made with {package} {there}; here is {here.get(package)}.")
        for note in notes:
            console.print(visible(note), style="yellow", markup=False, highlight=False, soft_wrap=True)
        total = len(evaluation.episodes)
        with bar("Replaying", total) as done:
            mismatches = replay(evaluation, done, spec=spec)
        for mismatch in mismatches[:20]:
            where = "file" if mismatch.episode is None else f"episode {mismatch.episode} ({mismatch.task})"
            console.print(visible(f"{where}: {mismatch.what}"), style="red", markup=False, soft_wrap=True)
        broken = sum(bool(episode.broken) for episode in evaluation.episodes)
        if broken:
            text = f"{broken} of {total} episodes cannot be checked and are left out: their world broke."
            console.print(text, style="yellow", soft_wrap=True)
        different = sum(mismatch.episode is not None for mismatch in mismatches)
        if different:
            console.print(f"{different} of {total} episodes went otherwise.", style="bold red")
        if mismatches:
            return 1
        if broken < total:
            success = summarize(evaluation.episodes).success
            text = f"All {total - broken} episodes happened as recorded; success {success}."
            console.print(text, style="green", soft_wrap=True)
            text = f"Not checked: that {evaluation.agent!r} acted, seconds, tokens, and the versions of packages."
            console.print(visible(text), markup=False, soft_wrap=True)
        return 0
