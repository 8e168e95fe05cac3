"""`textagent-gym certify`."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from textagent_gym.cli.environment import Chosen
from textagent_gym.terminal import visible

if TYPE_CHECKING:
    from textagent_gym.evaluation import Certificate


@dataclass(frozen=True, kw_only=True)
class Certify(Chosen):
    """Check whether a world keeps what every world promises: your own one, or one of the suite.

    The exit status is 1 if a promise is broken. What the world does not declare, such as an oracle, is "not
    applicable".
    """

    tasks: int = 20
    """Number of tasks that each check plays, from the first one of the split."""
    strings: int = 10_000
    """Number of random strings that the world must survive."""
    seed: int = 0
    """Seed of everything that is drawn."""
    harder: Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="NAME=VALUE,...")] = field(
        default=()
    )
    """Values of a keyword argument from easy to hard, such as rooms=2,4,8; by default those of the knobs that are an
    axis of difficulty."""
    json: bool = False
    """Whether the certificate is printed as JSON."""

    def run(self) -> int:
        """Check; 1 if a promise is broken."""
        from textagent_gym.cli.progress import bar
        from textagent_gym.evaluation import certify
        from textagent_gym.evaluation.promises import PROMISES

        with bar("Checking", len(PROMISES)) as done:
            certificate = certify(
                self.env,
                kwargs=self.kwargs,
                tasks=self.tasks,
                strings=self.strings,
                seed=self.seed,
                harder=self._harder,
                checking=done,
            )
            done(len(PROMISES))
        if self.json:
            print(json.dumps(certificate.to_dict(), indent=2, sort_keys=True))
        else:
            _print(certificate)
        return 0 if certificate.holds else 1

    @property
    def _harder(self) -> dict[str, tuple[Any, ...]] | None:
        """The settings that were named; `None` if none were."""
        from textagent_gym.knobs import read_settings, split_settings
        from textagent_gym.registration import full_id

        settings = {name: text.split(",") for name, text in split_settings(self.harder).items()}
        read = {
            name: tuple(
                read_settings(full_id(self.env), {**split_settings(self.set), name: text})[name] for text in texts
            )
            for name, texts in settings.items()
        }
        return read or None


def _print(certificate: Certificate) -> None:
    """A table of the promises, and a sentence."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from textagent_gym.evaluation.certificate import BROKEN

    table = Table(title=Text(f"{certificate.env}, {certificate.tasks} tasks"), box=SIMPLE_HEAD, header_style="bold")
    for column in ("promise", "", "what was checked"):
        table.add_column(column, overflow="fold")
    for finding in certificate.findings:
        style = "red" if finding.status == BROKEN else ""
        table.add_row(finding.promise, finding.status, Text(visible(finding.what)), style=style)
    Console().print(table)
    total, broken = len(certificate.findings), sum(each.status == BROKEN for each in certificate.findings)
    sentence = (
        f"{broken} of {total} promises {'is' if broken == 1 else 'are'} broken." if broken else "No promise is broken."
    )
    Console().print(sentence, style="bold red" if broken else "green", highlight=False)
