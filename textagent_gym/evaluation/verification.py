"""Check the result of a suite: a folder that somebody else made.

Nothing in the folder chooses what is made, imported, read or run: the suite is the one of that name here, and its
environments are made from it. Files are plain files of bounded size, and nothing else is read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import gymnasium

from textagent_gym.agents import chosen, differing, recomputer
from textagent_gym.agents.names import CHECKED_AGENTS
from textagent_gym.calls import FORMATS
from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation.copies import find_copies
from textagent_gym.evaluation.learning import read_curve
from textagent_gym.evaluation.published import suite_of
from textagent_gym.evaluation.records import (
    LARGEST_FILE,
    Evaluation,
    begin,
    conversations_in,
    conversations_of,
    load,
    other_versions,
    read_line,
    small_file,
)
from textagent_gym.evaluation.replay import Mismatch, replay
from textagent_gym.evaluation.results import (
    FORMAT,
    IDENTITY,
    SUMMARY,
    Result,
    check_size,
    digests,
    files_of,
    make_part,
    records_of,
    summary_of,
    to_json,
)
from textagent_gym.evaluation.suites import Part, Suite
from textagent_gym.evaluation.trust import (
    CHALLENGE,
    RECOMPUTED,
    REPLAYED,
    REPLAYED_BUT_TEXTS,
    provable,
    read_challenge,
    settings_of,
)
from textagent_gym.files import PART

_MOST_CHANGES = 20  # Numbers of a summary that are told to differ.
_IDENTITY: dict[str, type] = {"format": str, "suite": str, "digest": str, "agent": str, "details": dict}


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What checking a result has shown.

    Attributes:
        result: the result, as far as it is what its files say.
        mismatches: everything that is not as it should be; none if the result is right.
        notes: sentences about what a reader should know, such as other versions of packages.
        trust: levels of trust that have been proven (see `trust`); none if something is not as it should be, or not
            every episode was played.
        flags: sentences about what looks as if somebody else had played (see `copies`).
        unproven: what else the result could prove, and how, as parts of sentences.
        exact: whether everything that the agent read was compared: no world of the suite says that it may differ.
    """

    result: Result
    mismatches: tuple[Mismatch, ...]
    notes: tuple[str, ...]
    trust: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    unproven: tuple[str, ...] = ()
    exact: bool = True


def load_result(folder: Path) -> Result:
    """Read the result of a suite without checking that it happened.

    Raises:
        InvalidOptionError: the folder holds no complete result of a suite that exists here, or anything else.
    """
    identity = _identity(folder)
    suite = suite_of(identity["suite"])
    _check_files(folder, suite)
    size = sum(records_of(folder, part).stat().st_size for part in suite.parts)
    if size > LARGEST_FILE:
        raise InvalidOptionError(
            f"{folder} is larger than result files are: {size} bytes of episodes, at most {LARGEST_FILE}"
        )
    evaluations = {part.name: load(records_of(folder, part)) for part in suite.parts}
    return Result(
        suite=suite,
        agent=identity["agent"],
        details=identity["details"],
        evaluations=evaluations,
        learning=read_curve(folder),
    )


def verify_result(
    folder: Path,
    progress: Callable[[int, int], None] | None = None,
    *,
    model: Path | None = None,
    challenge: Path | None = None,
    workers: int = 1,
    every: int = 1,
    offset: int = 0,
) -> Verification:
    """Play a result again and compare everything that can be compared.

    Args:
        folder: folder of the result.
        progress: called with the number of episodes checked so far, and of all.
        model: folder of the policy that is said to have played; every token is then computed again. It is the
            caller's own: nothing in a result names it.
        challenge: file of the challenge that the result is said to answer.
        workers: number of processes that play; see `replay`.
        every, offset: which episodes of the result are played; see `replay`. Digests, settings and numbers are always
            checked.

    Raises:
        InvalidOptionError: the folder holds no complete result of a suite that exists here, or anything else; or there
            is no such policy or challenge.
        MissingDataError: data of the suite are not on this machine.
    """
    result = load_result(folder)
    policy = None if model is None else _policy(model, result)
    wrong = [Mismatch(None, "", what, IDENTITY) for what in _wrong_player(result, policy, challenge)]
    if wrong:  # What was played by somebody else says nothing of this policy or challenge.
        return Verification(result=result, mismatches=tuple(wrong), notes=(), exact=result.exact)
    recompute = None if policy is None else policy.difference
    exact = True
    mismatches: list[Mismatch] = []
    notes: list[str] = []
    flags: list[str] = []
    checked = 0
    for part in result.suite.parts:
        evaluation, file = result.evaluations[part.name], records_of(folder, part)
        conversations = conversations_in(conversations_of(file))

        def show(done: int, before: int = checked) -> None:
            if progress is not None:
                progress(before + done, len(result.episodes))

        with closing(make_part(part, result.details)) as env:
            check_size(part, env)
            differences = [Mismatch(None, "", what) for what in _wrong_header(evaluation, result, part, env)]
            # The numbers of tasks and episodes are the suite's: what the header says otherwise has been noted.
            asked = replace(evaluation, tasks=part.tasks, repeats=part.episodes, seed=part.seed, first=part.first)
            assert env.spec is not None
            exact = exact and not env.spec.nondeterministic
            differences += replay(
                asked,
                show,
                spec=env.spec,
                conversations=conversations,
                recompute=recompute,
                workers=workers,
                every=every,
                offset=offset - checked,
            )
            if not differences and result.agent not in CHECKED_AGENTS:
                flags += [f"Part {part.name}: {copy}." for copy in find_copies(asked, env.spec)]
        mismatches += [replace(mismatch, file=file.name) for mismatch in differences]
        notes += [note for note in other_versions(evaluation) if note not in notes]
        checked += len(evaluation.episodes)
    if policy is not None and recompute is not None and policy.doubt:
        mismatches.append(Mismatch(None, "", policy.doubt, IDENTITY))
    # Numbers of episodes that did not happen may be no numbers.
    others = _wrong_digests(folder, result) if mismatches else _wrong_summary(folder, result)
    mismatches = [*mismatches, *(Mismatch(None, "", what, file) for file, what in others)]
    proven = {
        REPLAYED if exact else REPLAYED_BUT_TEXTS: True,
        CHALLENGE: challenge is not None,
        # What a policy was told decides what it says: where that cannot be compared, nothing is proven.
        RECOMPUTED: model is not None and exact and not any(episode.broken for episode in result.episodes),
    }
    is_right = not mismatches and every == 1 and not all(episode.broken for episode in result.episodes)
    trust = tuple(level for level, right in proven.items() if right and is_right)
    return Verification(
        result=result,
        mismatches=tuple(mismatches),
        notes=tuple(notes),
        trust=trust,
        flags=tuple(flags),
        unproven=tuple(_unproven(result, model, challenge)),
        exact=exact,
    )


def _policy(model: Path, result: Result) -> Any:
    """What recomputes a policy.

    Raises:
        InvalidOptionError: there is no such policy, or the result holds no tokens of one.
    """
    if RECOMPUTED not in provable(result.suite.name, result.details):
        raise InvalidOptionError(
            f"the agent {result.agent!r:.100} recorded no tokens of a policy that can be recomputed: only what --agent "
            "model:FOLDER samples, in 32 bits on a CPU, can be. vLLM and servers sample with numbers of their own"
        )
    return recomputer(str(model), settings_of(result.details))


def _wrong_player(result: Result, policy: Any, challenge: Path | None) -> Iterator[str]:
    """What speaks against the policy or the challenge that a result is said to be of."""
    if policy is not None and (result.agent, result.details) != (policy.name, policy.details):
        others = ", ".join(differing([policy.details, result.details])) or "name"
        yield f"it is a result of {result.agent!r:.100}, and the folder holds {policy.name}: another {others}"
    if challenge is not None:
        asked = read_challenge(challenge)
        if result.suite.name != asked.suite.name:
            yield f"the challenge asks for {asked.suite.name}, and {result.suite.name} is recorded"
        broken = asked.commitment.broken_by(result.details)
        if broken:
            yield broken


def _unproven(result: Result, model: Path | None, challenge: Path | None) -> Iterator[str]:
    """What else a result could prove, and how."""
    levels = provable(result.suite.name, result.details, exact=result.exact)
    if CHALLENGE in levels and challenge is None:
        yield "that its tasks were drawn after a commitment, with --challenge FILE"
    if RECOMPUTED in levels and model is None:
        yield "that the policy played, with --model FOLDER"


def _identity(folder: Path) -> dict[str, Any]:
    """What `result.json` holds.

    Raises:
        InvalidOptionError: it holds something else.
    """
    path = folder / IDENTITY
    if path.is_symlink() or not path.is_file():
        raise InvalidOptionError(f"{folder} holds no result of a suite: it has no {IDENTITY}")
    text = small_file(path)
    try:
        identity = read_line(text)
        right = isinstance(identity, dict) and set(identity) == set(_IDENTITY)
        right = right and all(isinstance(identity[name], kind) for name, kind in _IDENTITY.items())
        if not right or identity["format"] != FORMAT:
            raise ValueError(f"is not of {FORMAT!r}")
        if identity["details"].get("format") not in (None, *FORMATS):
            raise ValueError("names an unknown format of answers")
        if not isinstance(identity["details"].get("hints", False), bool):
            raise ValueError("does not say whether the agent was given hints")
    except (ValueError, TypeError) as error:
        raise InvalidOptionError(f"{path} {error}") from None
    suite = suite_of(identity["suite"])
    if identity["digest"] != suite.digest:
        raise InvalidOptionError(
            f"{path} is of another {suite.name} than the one here: digest {identity['digest']!r:.100}, "
            f"not {suite.digest!r}"
        )
    if text != to_json(identity).encode():
        raise InvalidOptionError(f"{path} is written otherwise than a result is")
    return dict(identity)


def _check_files(folder: Path, suite: Suite) -> None:
    """Raise `InvalidOptionError` unless a folder holds the files of a result, and nothing else."""
    expected = {path.name for path in (*files_of(folder, suite), folder / SUMMARY)}
    names = {path.name for path in folder.iterdir()}
    missing, strange = sorted(expected - names), sorted(names - expected)
    if SUMMARY in missing and any(name.endswith(PART) for name in names):
        raise InvalidOptionError(f"{folder} is not complete: the same `textagent-gym eval` command resumes it")
    if missing:
        raise InvalidOptionError(f"{folder} holds no complete result: it has no {', '.join(missing)}")
    if strange:
        raise InvalidOptionError(f"{folder} holds what is no part of a result: {', '.join(strange)[:300]}")
    for name in sorted(expected):
        if (folder / name).is_symlink() or not (folder / name).is_file():
            raise InvalidOptionError(f"{folder / name} is no plain file")


def _summary(folder: Path) -> tuple[bytes, dict[str, Any]]:
    """The text of a summary, and what it holds; nothing if it is damaged."""
    text = small_file(folder / SUMMARY)
    try:
        values = read_line(text)
    except ValueError:
        values = None
    return text, values if isinstance(values, dict) else {}


def _wrong_digests(folder: Path, result: Result) -> Iterator[tuple[str, str]]:
    """Names of files that are not those which the summary was made of, and what is wrong with them."""
    _, there = _summary(folder)
    recorded = there.get("files")
    for name, digest in digests(folder, result.suite).items():
        if not isinstance(recorded, dict) or recorded.get(name) != digest:
            yield name, f"it has been changed since {SUMMARY} was written"


def _wrong_summary(folder: Path, result: Result) -> Iterator[tuple[str, str]]:
    """Names of files, and what is wrong with them, where every episode is right."""
    yield from _wrong_digests(folder, result)
    text, there = _summary(folder)
    here = {**summary_of(result), "files": digests(folder, result.suite)}
    names = {*here, *there} - {"files"}
    changes = _changes({name: here.get(name) for name in names}, {name: there.get(name) for name in names})
    for name, now, then in islice(changes, _MOST_CHANGES):
        yield SUMMARY, f"{name} is {now!r:.100}, and {then!r:.100} is recorded"
    if text != to_json(here).encode():
        yield SUMMARY, "it is not what the episodes give"


def _changes(here: Any, there: Any, name: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Names of values that differ in two objects of JSON, such as `all.tokens`, with both: `None` if one is missing."""
    if isinstance(here, dict) and isinstance(there, dict):
        for key in sorted({*here, *there}):
            yield from _changes(here.get(key), there.get(key), f"{name}.{key:.50}" if name else f"{key:.50}")
    elif json.dumps(here, sort_keys=True) != json.dumps(there, sort_keys=True):
        yield name, here, there


def _wrong_header(evaluation: Evaluation, result: Result, part: Part, env: gymnasium.Env[str, str]) -> Iterator[str]:
    """What is wrong with the header of a part."""
    asked = {"tasks": part.tasks, "repeats": part.episodes, "seed": part.seed, "first": part.first}
    other = evaluation.details.keys() - chosen(evaluation.details).keys()
    details = {name: evaluation.details[name] if name in other else value for name, value in result.details.items()}
    expected = begin(env, result.agent, **asked, details=details)
    for name in ("agent", "spec", "split", *asked, "details"):
        here, there = getattr(expected, name), getattr(evaluation, name)
        if json.dumps(here, sort_keys=True) != json.dumps(there, sort_keys=True):
            yield f"{name} is {here!r:.200}, and {there!r:.200} is recorded"
