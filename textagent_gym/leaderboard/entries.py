"""What a leaderboard shows: results that have been played again and found right."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import gymnasium

from textagent_gym.agents import identifying
from textagent_gym.errors import InvalidOptionError, MissingDataError, MissingDependencyError, TextAgentError
from textagent_gym.evaluation import Result, Verification, verify_result
from textagent_gym.evaluation.copies import worded
from textagent_gym.evaluation.episode import base_of
from textagent_gym.evaluation.results import IDENTITY, SUMMARY, make_part
from textagent_gym.evaluation.trust import RECOMPUTED
from textagent_gym.leaderboard.trust import RERUN, level_of
from textagent_gym.registration import world_of
from textagent_gym.terminal import one_line
from textagent_gym.time_limit import TooSlowError, time_limit

LONGEST_NAME = 80
"""Characters of an agent's name that are shown: two lines of a table's cell."""
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._:/@+()-]*[A-Za-z0-9)+])?")
_DEEPEST = 4  # Folders between the one that is named and a result: SUITE/AGENT, and two for whoever sorts otherwise.
_DIGITS = 12  # Of a commitment.
_UNIQUE = 24  # Hexadecimal digits that tell results, agents and suites apart: nobody finds two with the same.
_LONGEST_SLUG = 40  # Characters of a name that an address repeats.
_MOST_REASONS = 3  # Differences that are told of a result that is left out: the first show what is wrong.


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A result that was verified.

    Attributes:
        slug: name of the entry in addresses: letters, digits, points, hyphens and underscores.
        folder: folder of the result.
        digest: SHA-256 of its summary, hexadecimal, which holds those of all its other files.
        result: suite, agent and episodes.
        trust: ways in which the result is known to be right, or its agent to be who it is said to be.
        notes: sentences about what a reader should know, such as other versions of packages.
        flags: sentences about actions that are the oracle's or the expert's (see `copies`).
        worlds_of_parts: name of the world of each part, by the part's name.
        densities: reward density of each part, 0 (only success pays) to 1, by its name.
    """

    slug: str
    folder: Path
    digest: str
    result: Result
    trust: tuple[str, ...]
    notes: tuple[str, ...]
    worlds_of_parts: dict[str, str]
    densities: dict[str, float]
    flags: tuple[str, ...] = ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """Everything that a reader should know."""
        return (*worded(self.flags, self.trust), *self.notes)

    @property
    def only_claimed(self) -> bool:
        """Whether the agent is a policy by its details, and nobody has proven that this policy played."""
        return "policy" in self.result.details and set(map(level_of, self.trust)).isdisjoint((RECOMPUTED, RERUN))

    @property
    def worlds(self) -> tuple[str, ...]:
        """Names of the worlds that are played, in the order of the parts."""
        return tuple(dict.fromkeys(self.worlds_of_parts.values()))

    @property
    def agent(self) -> str:
        """Name of the agent, as it may be shown."""
        return shown_name(self.result.agent)

    @property
    def suite_name(self) -> str:
        """Name of the suite, as it is shown: of a challenge, with the beginning of the commitment."""
        name, challenge, commitment = self.result.suite.name.partition("@")
        return f"{name}{challenge}{commitment[:_DIGITS]}"

    @property
    def suite_slug(self) -> str:
        """Name of the suite in addresses."""
        name = self.result.suite.name
        return name if name == _slug(name) else f"{_slug(name)}-{hashlib.sha256(name.encode()).hexdigest()[:_UNIQUE]}"

    @property
    def agent_slug(self) -> str:
        """Name of the agent in addresses; another agent of the same name has another, and so has whoever only claims
        to be a policy: no such result shall be merged with that of a policy which was proven to have played.
        """
        claim = ["not recomputed"] if self.only_claimed else []
        details = json.dumps([self.result.agent, identifying(self.result.details), *claim], sort_keys=True)
        return f"{_slug(self.result.agent)}-{hashlib.sha256(details.encode()).hexdigest()[:_UNIQUE]}"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A folder that holds no result which was found right.

    Attributes:
        folder: path below the folder of all results.
        reasons: sentences that say why.
    """

    folder: str
    reasons: tuple[str, ...]


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """End the block when it takes too long, also in the middle of an episode.

    Raises:
        InvalidOptionError: time was over, or is less than a second or more than a year.
    """
    if not 1 <= seconds <= 365 * 24 * 3600:
        raise InvalidOptionError(f"seconds must be at least 1 and at most those of a year, got {seconds}")
    try:
        with time_limit(seconds):
            yield
    except TooSlowError:
        raise InvalidOptionError(f"checking it takes longer than {seconds:g} seconds") from None


def find_results(folder: Path) -> list[Path]:
    """Folders below a folder, or this one, that say they are the result of a suite; sorted.

    Links are not followed, and names that begin with a point are passed over.

    Raises:
        InvalidOptionError: there is no such folder.
    """
    if not folder.is_dir():
        raise InvalidOptionError(f"{folder} is not a folder")
    results: list[Path] = []
    open_folders = [(folder, 0)]
    while open_folders:
        here, depth = open_folders.pop()
        if (here / IDENTITY).exists():
            results.append(here)
        elif depth < _DEEPEST:
            inside = (path for path in here.iterdir() if not path.name.startswith("."))
            open_folders += [(path, depth + 1) for path in inside if path.is_dir() and not path.is_symlink()]
    return sorted(results)


def check_entry(
    folder: Path,
    seconds: float = 3600.0,
    *,
    model: Path | None = None,
    challenge: Path | None = None,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Entry:
    """Verify the result of a suite by replay.

    Args:
        folder: folder of the result.
        seconds: time after which checking stops.
        model, challenge: folder of the policy and file of the challenge, where they prove more (see `verify_result`).
        workers: number of processes that play; see `verify_result`.
        progress: called with the number of episodes checked so far, and of all.

    Raises:
        InvalidOptionError: it is no result, is not right, takes too long, or needs data or a package that are not here;
            the message says what differs, or what is missing.
    """
    with at_most(seconds):
        try:
            verification = verify_result(folder, progress, model=model, challenge=challenge, workers=workers)
        except (MissingDataError, MissingDependencyError) as error:
            raise InvalidOptionError(one_line(f"it cannot be checked here: {error}")) from error
        except (TextAgentError, gymnasium.error.Error, OSError) as error:
            raise InvalidOptionError(one_line(str(error))) from error
    if verification.mismatches:
        first = verification.mismatches[:_MOST_REASONS]
        reasons = [f"{m.file}, episode {m.episode}: {m.what}" if m.episode is not None else m.what for m in first]
        more = len(verification.mismatches) - len(first)
        raise InvalidOptionError(
            "; ".join(one_line(reason) for reason in reasons) + (f"; and {more} more differences" if more else "")
        )
    return _entry(folder, verification)


def _entry(folder: Path, verification: Verification) -> Entry:
    result = verification.result
    worlds, densities = {}, {}
    for part in result.suite.parts:
        world = world_of(part.env)
        worlds[part.name] = world.name if world is not None else part.env
        with closing(make_part(part, result.details)) as env:
            densities[part.name] = base_of(env).reward_density
    digest = digest_of(folder)
    return Entry(
        slug=f"{_slug(result.suite.name)}-{_slug(result.agent)}-{digest[:_UNIQUE]}",
        folder=folder,
        digest=digest,
        result=result,
        trust=verification.trust,
        notes=verification.notes,
        flags=verification.flags,
        worlds_of_parts=worlds,
        densities=densities,
    )


def digest_of(folder: Path) -> str:
    """SHA-256 of the summary of a result, hexadecimal: it holds those of all its other files. "" if there is none."""
    path = folder / SUMMARY
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else ""


def wrong_name(name: str) -> str:
    """What is wrong with a name of an agent that may look like another one, such as "oracle" with a Cyrillic "o", in
    words; "" for one that is made of ASCII letters, digits, spaces and a few signs, begins with a letter or a digit,
    and is short enough to be shown.
    """
    if len(name) <= LONGEST_NAME and _NAME.fullmatch(name):
        return ""
    return (
        f"the agent's name must be 1 to {LONGEST_NAME} of: ASCII letters, digits, spaces, . _ : / @ + ( ) -, and begin "
        f"with a letter or a digit, got '{shown_name(name)}'"
    )


def shown_name(name: str) -> str:
    """The name of an agent as it may be shown: what is not ASCII as its code; "(no name)" for an empty one.

    >>> shown_name("ora\\u200bcle"), shown_name("\\u043eracle")
    ('ora\\\\u200bcle', '\\\\u043eracle')
    """
    seen = "".join(each if each.isascii() else f"\\u{ord(each):04x}" for each in name[:LONGEST_NAME])
    return one_line(seen + name[LONGEST_NAME:][:1], LONGEST_NAME).strip() or "(no name)"


def _slug(name: str) -> str:
    """A name as a part of an address."""
    return re.sub(r"[^a-z0-9]+", "-", name[:_LONGEST_SLUG].lower()).strip("-") or "agent"
