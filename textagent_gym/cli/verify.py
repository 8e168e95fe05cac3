"""`textagent-gym verify`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass(frozen=True, kw_only=True)
class Verify:
    """Check a result file: play every recorded action again and compare what happens."""

    file: tyro.conf.Positional[Path]
    """Result file that `textagent-gym eval --out` wrote."""

    def run(self) -> int:
        """Check; 1 if an episode went otherwise."""
        from rich.console import Console

        from textagent_gym.cli.progress import bar
        from textagent_gym.evaluation import load, replay, summarize
        from textagent_gym.evaluation.records import versions
        from textagent_gym.terminal import visible

        console = Console()
        evaluation = load(self.file)
        for package, there in evaluation.versions.items():
            here = versions().get(package)
            if here != there and package != "python":
                console.print(visible(f"Made with {package} {there}; here is {here}."), style="yellow", markup=False)
        played = 0
        with bar("Replaying", len(evaluation.episodes)) as done:

            def show(_: object) -> None:
                nonlocal played
                played += 1
                done(played)

            mismatches = replay(evaluation, show)
        for mismatch in mismatches[:20]:
            text = visible(f"episode {mismatch.episode} ({mismatch.task}): {mismatch.what}")
            console.print(text, style="red", markup=False)
        if mismatches:
            console.print(f"{len(mismatches)} of {len(evaluation.episodes)} episodes went otherwise.", style="bold red")
            return 1
        success = summarize(evaluation.episodes).success
        console.print(
            f"All {len(evaluation.episodes)} episodes happened as recorded; success {success}.", style="green"
        )
        return 0
