"""`textagent-gym verify`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from textagent_gym.errors import InvalidOptionError
from textagent_gym.terminal import one_line
from textagent_gym.time_limit import GRACE, TooSlowError, killed_after, time_limit

if TYPE_CHECKING:
    from textagent_gym.evaluation import EpisodeRecord, Mismatch

_MOST_SHOWN = 20  # Differences that are printed: the first ones show what is wrong.
_LONGEST_SHOWN = 500  # Characters of a difference.
_LONGEST_LINE = 2000  # Characters of anything that is said.


@dataclass(frozen=True, kw_only=True)
class Verify:
    """Check a result: play every recorded action again and compare what happens.

    A result may come from a stranger. That of a suite (a folder) chooses nothing: its environments are those of the
    suite of that name here. A file of an ID chooses, without --trust, nothing that is imported, read or run on this
    machine: the environment must be registered here, its wrappers must be the suite's, no argument may name a file, a
    folder or a module, and commands run in a sandbox that keeps them in, or not at all.
    """

    result: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="PATH")]
    """Folder or result file that `textagent-gym eval --out` wrote."""
    set: Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="NAME=VALUE")] = field(default=())
    """Keyword argument of the environment, in place of the file's own, such as data=FOLDER."""
    trust: bool = False
    """Whether the file is trusted like your own: whatever it names is then imported, read and run."""
    model: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER", help_behavior_hint="")] = None
    """Folder of the policy that is said to have played: every token of the result of a suite is computed again."""
    challenge: Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="")] = None
    """File of the challenge that the result of a suite is said to answer; see `textagent-gym challenge`."""
    workers: int = 1
    """Number of processes that play. With --model, one plays."""
    seconds: float = 3600.0
    """Time after which checking stops, as if something were wrong."""

    def run(self) -> int:
        """Check; 1 if something is not as recorded."""
        if not 0 < self.seconds < 10**9:
            raise InvalidOptionError(f"--seconds must be more than 0 and less than 10**9, got {self.seconds}")
        try:
            with killed_after(self.seconds + GRACE), time_limit(self.seconds):
                return self._check_suite() if self.result.is_dir() else self._check_file()
        except TooSlowError:
            print(f"Stopped after {self.seconds:g} seconds: the result is not checked. See --seconds.", file=sys.stderr)
            return 1

    def _check_suite(self) -> int:
        """Check a folder."""
        from textagent_gym.cli.progress import bar, counting
        from textagent_gym.cli.tables import suite_table, table_console
        from textagent_gym.evaluation import verify_result
        from textagent_gym.evaluation.copies import labelled
        from textagent_gym.evaluation.trust import RECOMPUTED
        from textagent_gym.leaderboard.submissions import unacceptable

        if self.set or self.trust:
            raise InvalidOptionError("the result of a suite is checked in the suite's environments: leave out options")
        with bar("Replaying") as done:
            verification = verify_result(
                self.result, counting(done), model=self.model, challenge=self.challenge, workers=self.workers
            )
        result = verification.result
        checked = (verification.mismatches, result.episodes, result.agent, verification.exact)
        recomputed = RECOMPUTED in verification.trust
        notes = [*verification.notes, *(f"It can prove more: {how}." for how in verification.unproven)]
        status = _print(notes, *checked, remarks=True, recomputed=recomputed)
        if not status:
            console = table_console()
            console.print(suite_table(result))
            for flag in labelled(verification.flags, verification.trust):
                _say(flag, "yellow")
            _say(f"Proven: {', '.join(verification.trust) or 'nothing'}.", "green" if verification.trust else "yellow")
            refused = unacceptable(self.result, result)
            if refused:
                _say(f"`textagent-gym leaderboard accept` refuses it: {refused}.", "yellow")
        return status

    def _check_file(self) -> int:
        """Check a result file."""
        from textagent_gym.cli.progress import bar
        from textagent_gym.evaluation import load, other_versions, replay, spec_from_file
        from textagent_gym.evaluation.records import conversations_in, conversations_of
        from textagent_gym.evaluation.results import IDENTITY, SUMMARY
        from textagent_gym.knobs import parse_settings

        parts = [self.result.parent / name for name in (IDENTITY, SUMMARY)]
        if self.result in parts and all(part.is_file() for part in parts):
            raise InvalidOptionError(f"{self.result} is a part of a suite's result: name the folder that it is in")
        if not self.result.exists():
            raise InvalidOptionError(f"{self.result} cannot be read: it does not exist")
        if self.model is not None or self.challenge is not None:
            raise InvalidOptionError("--model and --challenge are for the result of a suite, which is a folder")
        evaluation = load(self.result)
        spec, notes = spec_from_file(evaluation.spec, trust=self.trust, kwargs=parse_settings(self.set))
        beside = conversations_of(self.result)
        conversations = conversations_in(beside) if os.path.lexists(beside) else None
        with bar("Replaying", len(evaluation.episodes)) as done:
            mismatches = replay(evaluation, done, spec=spec, workers=self.workers, conversations=conversations)
        if evaluation.first or evaluation.seed:
            notes.append(f"Its maker chose tasks from number {evaluation.first} on, and seed {evaluation.seed}.")
        notes += other_versions(evaluation)
        exact = not spec.nondeterministic
        remarks = conversations is not None
        return _print(notes, mismatches, evaluation.episodes, evaluation.agent, exact, remarks=remarks)


def _print(
    notes: Sequence[str],
    mismatches: Sequence[Mismatch],
    episodes: Sequence[EpisodeRecord],
    agent: str,
    exact: bool,
    *,
    remarks: bool,
    recomputed: bool = False,
) -> int:
    """Say what checking has shown; returns the exit status.

    Args:
        notes: sentences for the reader.
        mismatches: everything that is not as recorded.
        episodes: recorded episodes.
        agent: name of the agent.
        exact: whether texts are compared, and so the agents that act equally everywhere.
        remarks: whether the agent may have written something beside its actions that is kept.
        recomputed: whether it has been shown that the agent sampled every token.
    """
    from textagent_gym.agents.names import CHECKED_AGENTS, UNREADING_AGENTS
    from textagent_gym.evaluation import summarize

    for note in notes:
        _say(note[:_LONGEST_SHOWN], "yellow")
    for mismatch in mismatches[:_MOST_SHOWN]:
        where = "file" if mismatch.episode is None else f"episode {mismatch.episode} ({mismatch.task:.100})"
        file = f"{mismatch.file}, " if mismatch.file else ""
        _say(f"{file}{where}: {mismatch.what[:_LONGEST_SHOWN]}", "red")
    total, broken = len(episodes), sum(bool(episode.broken) for episode in episodes)
    if broken:
        solved = sum(episode.success for episode in episodes if not episode.broken)
        _say(
            f"{broken} of {total} episodes cannot be checked and are left out: they broke. If all of them are lost, "
            f"success is {solved / total:.3f}.",
            "yellow",
        )
    different = sum(mismatch.episode is not None for mismatch in mismatches)
    if different:
        _say(f"{different} of {total} episodes went otherwise.", "bold red")
    if mismatches:
        return 1
    if broken < total:
        _say(f"{_number(total - broken)} happened as recorded; success {summarize(episodes).success}.", "green")
        beside = "what it wrote beside its actions, " if remarks and agent not in CHECKED_AGENTS else ""
        known = recomputed or agent in (CHECKED_AGENTS if exact else UNREADING_AGENTS)
        who = "" if known else f"that {agent[:100]!r} acted, "
        texts = "" if exact else "what the agent read, "
        cost = "" if all(episode.cost is None for episode in episodes) else "cost, "
        tokens = "" if recomputed else "tokens, "
        endings = "how answers ended, which models gave them, " if any(each.served for each in episodes) else ""
        _say(f"Not checked: {who}{beside}{texts}{endings}seconds, {tokens}{cost}and the versions of packages.")
    return 0


def _say(text: str, style: str = "") -> None:
    """Print a text that may hold a stranger's."""
    from rich.console import Console

    Console().print(one_line(text, _LONGEST_LINE), style=style, markup=False, highlight=False, soft_wrap=True)


def _number(count: int) -> str:
    """All of some episodes, in words."""
    return "The one episode" if count == 1 else f"All {count} episodes"
