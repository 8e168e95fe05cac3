"""`textagent-gym challenge`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from textagent_gym.cli.subcommand import subcommand


@dataclass(frozen=True, kw_only=True)
class Commit:
    """Commit to a policy by its hash, and to its sampling, before the tasks are drawn. Publish the file."""

    model: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FOLDER")]
    """Folder of the policy."""
    suite: str
    """Suite whose settings will be played; its splits must be endless."""
    out: Path
    """File of the commitment."""
    temperature: float = 1.0
    """Sampling temperature that will be played with; 0 takes the likeliest token."""
    max_tokens: int = 24
    """Largest number of tokens per action that will be played with."""
    hints: bool = False
    """Whether the policy will be told the admissible actions."""

    def run(self) -> int:
        """Write the commitment."""
        from textagent_gym.agents import PolicySettings
        from textagent_gym.evaluation import commit

        settings = PolicySettings(temperature=self.temperature, max_action_tokens=self.max_tokens, hints=self.hints)
        commitment = commit(self.model, self.suite, self.out, settings)
        print(f"Committed to policy {commitment.policy[:12]} in {self.out}: sha256 {commitment.digest}")
        return 0


@dataclass(frozen=True, kw_only=True)
class Draw:
    """Draw the seed of a commitment that has been published: the organiser's step. Publish the file."""

    commitment: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
    """File of the commitment."""
    out: Path
    """File of the challenge."""
    ledger: Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="")] = None
    """Your ledger of draws, which is made if it is missing. A commitment that is in it is refused. Publish it."""
    submitter: str = ""
    """Name of whoever has published the commitment, for the ledger."""

    def run(self) -> int:
        """Write the challenge."""
        from textagent_gym.evaluation import draw

        challenge = draw(self.commitment, self.out, self.ledger, self.submitter)
        committed = challenge.commitment
        sampling = f"--temperature {committed.temperature} --max-tokens {committed.max_action_tokens}"
        hints = " --hints" if committed.hints else ""
        print(f"Drew seed {challenge.seed} in {self.out}. Whoever has committed plays it with:")
        print(f"textagent-gym eval --challenge {self.out} --agent model:FOLDER {sampling}{hints} --out results/NAME")
        return 0


@dataclass(frozen=True)
class ChallengeSteps:
    """Have tasks drawn that nobody knew when the policy was chosen: commit to it (commit), then draw a seed (draw)."""

    step: Annotated[
        Annotated[Commit, subcommand("commit", Commit)] | Annotated[Draw, subcommand("draw", Draw)],
        tyro.conf.arg(name=""),
    ]

    def run(self) -> int:
        """Do the step."""
        return self.step.run()
