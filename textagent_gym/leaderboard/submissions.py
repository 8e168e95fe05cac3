"""Results that others send: checked, and taken into a folder of results, or refused with the reason."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from textagent_gym.agents import differing
from textagent_gym.agents.names import CHECKED_AGENTS, UNREADING_AGENTS
from textagent_gym.errors import InvalidOptionError, MissingDataError
from textagent_gym.evaluation import Result, compare, load_result
from textagent_gym.evaluation.copies import folded
from textagent_gym.evaluation.draws import DRAWS, described, read_draws
from textagent_gym.evaluation.results import SUMMARY, files_of
from textagent_gym.evaluation.trust import REPLAYED, REPLAYED_BUT_TEXTS
from textagent_gym.files import check_writable
from textagent_gym.leaderboard.entries import Entry, check_entry, digest_of, find_results, shown_name, wrong_name
from textagent_gym.leaderboard.trust import LEVELS, RERUN, level_of, note_trust, read_ledger
from textagent_gym.terminal import one_line

LARGEST_SUBMISSION = 2**26
"""Bytes of all files of a result as it is sent: 64 MiB hold three hundred long conversations, compressed."""

_DIGITS = 8  # Of a result's digest in the name of its folder, beside those of its agent.
_CHECKING = ".checking-"  # First letters of the folder in which a copy is checked; then comes when that has ended.
_SLACK = 3_600.0  # Seconds that checking may take beyond its limit.


def accept(
    folder: Path,
    results: Path,
    seconds: float = 3600.0,
    *,
    model: Path | None = None,
    challenge: Path | None = None,
    rerun: Path | None = None,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Entry:
    """Take a result into a folder of results, as SUITE/AGENT-DIGEST.

    What is checked is the copy, so that nobody can change it meanwhile. A result that is refused leaves nothing behind.
    Where it is there already, what is proven now is noted beside what was known.

    Args:
        folder: result of a suite.
        results: folder of the results that have been accepted.
        seconds: time after which checking stops.
        model, challenge: what proves who played, and that nobody knew the tasks (see `verify_result`); it is noted.
        rerun: the caller's own result of the same agent; that success is the same within the interval is noted.
        workers: number of processes that play what is checked; see `verify_result`.
        progress: called with the number of episodes checked so far, and of all: of the result, then of `rerun`.

    Returns:
        the entry, whose folder is where it is now, whose trust is all that was ever proven, and whose remarks say what
        looks as if somebody else had played.

    Raises:
        InvalidOptionError: it is no result, is not right, is there already and nothing more is proven, is too large,
            its agent's name may look like another one (see `entries.wrong_name`), or `rerun` does not prove it; the
            message says why.
    """
    # What is too large takes long to read.
    refused = _too_large([*folder.iterdir()] if folder.is_dir() else [])
    if refused:
        raise InvalidOptionError(refused)
    sent = load_result(folder)
    refused = unacceptable(folder, sent)
    if refused:
        raise InvalidOptionError(refused)
    paths = _files_of(folder, sent)
    check_writable(results, folder=True)
    is_new = not results.exists()
    there = None if is_new else _place_of(digest_of(folder), results)
    if there is not None and model is challenge is rerun is None:  # It is proven already that a replay is the same.
        raise InvalidOptionError(f"it is there already: {there}")
    results.mkdir(parents=True, exist_ok=True)
    _clear_stopped(results)
    try:
        # On the same disk, so that it can be moved.
        ended = time.time() + (1 if rerun is None else 2) * seconds + _SLACK
        with TemporaryDirectory(dir=results, prefix=f"{_CHECKING}{ended:.0f}-") as checking:
            copy = Path(checking) / "result"
            copy.mkdir()
            for path in paths:
                shutil.copyfile(path, copy / path.name, follow_symlinks=False)
            try:
                entry = check_entry(copy, seconds, model=model, challenge=challenge, workers=workers, progress=progress)
            except InvalidOptionError as error:
                raise InvalidOptionError(str(error).replace(str(copy), str(folder))) from error
            if challenge is not None and (results / DRAWS).exists():
                described(read_draws(results / DRAWS), entry.result.suite.name)
            refused = unacceptable(copy, entry.result)
            if refused:
                raise InvalidOptionError(refused)
            known = _place_of(entry.digest, results)
            place = known or results / entry.suite_slug / f"{entry.agent_slug}-{entry.digest[:_DIGITS]}"
            proven = (
                *entry.trust,
                *(() if rerun is None else (_rerun(entry, folder, rerun, seconds, progress, workers=workers),)),
            )
            noted = read_ledger(results).get(entry.digest, ())
            levels = _together(noted, proven)
            if place.exists() and (not known or _together(noted, entry.trust[:1]) == levels):
                raise InvalidOptionError(f"it is there already: {place}")
            if not known and len(proven) == 1:  # Nothing but the name says that it is somebody else's.
                _check_own(entry.result, results)
            if set(levels) - {REPLAYED, REPLAYED_BUT_TEXTS}:
                note_trust(results, entry.digest, levels)
            if not known:
                place.parent.mkdir(exist_ok=True)
                copy.rename(place)
            return replace(entry, folder=place, trust=levels)
    finally:
        if is_new:
            with suppress(OSError):  # It holds the result.
                results.rmdir()


def unacceptable(folder: Path, result: Result) -> str:
    """Why a result is not accepted however right it is, in words; "" if nothing speaks against it.

    Args:
        folder: folder of the result.
        result: what it holds.
    """
    refused = _too_large(_files_of(folder, result))
    if refused:
        return refused
    if all(episode.broken for episode in result.episodes):
        return "every episode broke: there is nothing to show"
    if result.agent in CHECKED_AGENTS and not result.exact and result.agent not in UNREADING_AGENTS:
        return f"nobody can check that {result.agent!r} acted where texts may differ from run to run"
    return wrong_name(result.agent)


def _too_large(paths: Sequence[Path]) -> str:
    """Why files are too large for a submission, in words; "" if they are not."""
    size = sum(path.lstat().st_size for path in paths)
    return f"it has {size} bytes; a submission has at most {LARGEST_SUBMISSION}" if size > LARGEST_SUBMISSION else ""


def _files_of(folder: Path, result: Result) -> list[Path]:
    """Every file of a result."""
    return [*files_of(folder, result.suite), folder / SUMMARY]


def _place_of(digest: str, results: Path) -> Path | None:
    """The accepted result whose summary has a digest; `None` if there is none."""
    return next((folder for folder in find_results(results) if digest and digest_of(folder) == digest), None)


def _together(noted: Sequence[str], proven: Sequence[str]) -> tuple[str, ...]:
    """Levels of trust of before and of now, from the weakest on; of one that was proven twice, the newer proof."""
    known = {level_of(each): each for each in (*noted, *proven)}
    return tuple(known[level] for level in LEVELS if level in known)


def _rerun(
    entry: Entry,
    folder: Path,
    rerun: Path,
    seconds: float,
    progress: Callable[[int, int], None] | None,
    *,
    workers: int,
) -> str:
    """What is noted of a result whose agent was run again: the level, and both successes.

    Args:
        entry: the result.
        folder: place of the result as it was sent.
        rerun: folder of the other result.
        seconds: time after which checking that stops.
        progress: called with the number of its episodes checked so far, and of all.
        workers: number of processes that play it.

    Raises:
        InvalidOptionError: the other result is not right, not another one, not of this suite and agent, or its success
            is another.
    """
    try:
        again = check_entry(rerun, seconds, workers=workers, progress=progress)
    except InvalidOptionError as error:
        raise InvalidOptionError(f"{rerun}, in which the agent was run again, is no right result: {error}") from error
    broken = sum(bool(episode.broken) for episode in again.result.episodes)
    if broken:  # Fewer tasks would make any two successes the same.
        raise InvalidOptionError(f"{broken} episodes of {rerun} broke: play them again with eval --retry-broken")
    if _files(folder) & _files(rerun):
        raise InvalidOptionError(f"{rerun} has files of {folder}: run the agent again yourself")
    details = entry.result.details, again.result.details
    for what, asked, there in (
        ("suite", entry.result.suite.name, again.result.suite.name),
        ("agent", entry.result.agent, again.result.agent),
        *((f"agent's {name!r:.50}", *(each.get(name, "not told") for each in details)) for name in differing(details)),
    ):
        if asked != there:
            raise InvalidOptionError(
                one_line(f"the {what} of {rerun} is {there!r:.100}, and {asked!r:.100} in what was sent")
            )
    sent, ours = ({name: each.episodes for name, each in one.result.evaluations.items()} for one in (entry, again))
    # The sender says what broke, and might say so of what was lost.
    both = compare({name: [replace(each, broken="") for each in episodes] for name, episodes in sent.items()}, ours)
    proof = (
        f"success {both.first} as sent and {both.second} when run again, on {both.tasks} tasks; difference "
        f"{both.difference}"
    )
    if not both.difference.low <= 0 <= both.difference.high:
        raise InvalidOptionError(f"{proof}: it is another success")
    return f"{RERUN}: {proof}; summary {again.digest}"


def _files(folder: Path) -> set[tuple[int, int]]:
    """The files of a folder, by whatever name."""
    return {(status.st_dev, status.st_ino) for status in map(Path.stat, folder.iterdir())}


def _clear_stopped(results: Path) -> None:
    """Delete the copies that runs have left which were killed."""
    for folder in results.glob(f"{_CHECKING}*"):
        ended = folder.name.removeprefix(_CHECKING).partition("-")[0]
        if not folder.is_symlink() and ended.isdecimal() and int(ended) < time.time():
            shutil.rmtree(folder, ignore_errors=True)


def _check_own(result: Result, results: Path) -> None:
    """Raise `InvalidOptionError` for episodes that another name has already been given: somebody's result, renamed."""
    for folder in find_results(results):
        try:
            other = load_result(folder)
        except (InvalidOptionError, MissingDataError):  # It is not complete, or of another version: nobody's result.
            continue
        if other.suite == result.suite and _actions(other) == _actions(result):
            raise InvalidOptionError(
                f"every action is that of {folder}, the result of {shown_name(other.agent)!r}: it is not a new one, "
                "unless --model, --challenge or --rerun proves who played"
            )


def _actions(result: Result) -> list[tuple[str, ...]]:
    """Every action, without what most worlds do not mind: case, and spaces."""
    return [tuple(map(folded, episode.actions)) for episode in result.episodes]
