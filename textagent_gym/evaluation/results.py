"""The result of a suite: a folder that others can check.

result.json                     which suite (with its digest), which agent
PART.jsonl                      a result file per part of the suite (see `records`)
PART.conversations.jsonl.gz     everything that was said, a line per episode
learning.json                   the learning curve of the agent's training, where it has one (see `learning`)
summary.json                    the numbers, and the SHA-256 of the other files; it appears last
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, cast

import gymnasium

from textagent_gym.agents import AGENTS
from textagent_gym.agents.names import CHECKED_AGENTS
from textagent_gym.errors import InvalidOptionError, MissingDataError
from textagent_gym.evaluation.episode import base_of
from textagent_gym.evaluation.learning import LEARNING, LearningCurve, curve_of
from textagent_gym.evaluation.players import AgentMaker, details_of, identity_of, make_player, unverifiable
from textagent_gym.evaluation.records import EpisodeRecord, Evaluation, conversations_of
from textagent_gym.evaluation.runner import changed_facts, check_target, evaluate, has_begun
from textagent_gym.evaluation.statistics import Interval, Summary, repeated, success_by_axis, summarize
from textagent_gym.evaluation.suites import Part, Suite
from textagent_gym.evaluation.trust import provable
from textagent_gym.files import CHECK, PART, check_writable, lock, locked_folder, write_whole
from textagent_gym.knobs import AXES
from textagent_gym.wrappers import ActionParser, AdmissibleActionHints

FORMAT = "textagent-gym result 1"
IDENTITY = "result.json"
SUMMARY = "summary.json"
_FURTHER = ("tokens_read", "cut", "refused")
"""Numbers of episodes whose sums a summary has where they are known."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """The result of an agent in a suite.

    Attributes:
        suite: suite that was played.
        agent: name of the agent.
        details: further facts about the agent.
        evaluations: result of each part, by its name.
        learning: learning curve of the agent's training, as the submitter tells it; `None` if it has none.
    """

    suite: Suite
    agent: str
    details: dict[str, Any]
    evaluations: Mapping[str, Evaluation]
    learning: LearningCurve | None = None

    @property
    def episodes(self) -> tuple[EpisodeRecord, ...]:
        """The episodes of all parts."""
        return tuple(episode for evaluation in self.evaluations.values() for episode in evaluation.episodes)

    @property
    def exact(self) -> bool:
        """Whether a replay gives the same texts: no world of the suite says that they may differ."""
        return not any(evaluation.spec.get("nondeterministic") for evaluation in self.evaluations.values())


def records_of(folder: Path, part: Part) -> Path:
    """The result file of a part."""
    return folder / f"{part.name}.jsonl"


def make_part(part: Part, details: Mapping[str, Any]) -> gymnasium.Env[str, str]:
    """The environment of a part as an agent plays it.

    Args:
        part: part of a suite.
        details: facts about the agent; see `as_played`.

    Raises:
        InvalidOptionError: see `as_played`.
    """
    return as_played(part.make(), details)


def as_played(env: gymnasium.Env[str, str], details: Mapping[str, Any]) -> gymnasium.Env[str, str]:
    """An environment as an agent plays it; it is wrapped as in training.

    Args:
        env: environment.
        details: facts about the agent; `format` among them is the format of `calls.FORMATS` that it answers in, and
            `hints` says whether it is told the admissible actions.

    Raises:
        InvalidOptionError: the agent wants hints, and the environment cannot list its admissible actions.
    """
    if details.get("format"):
        env = ActionParser(env, details["format"])
    return AdmissibleActionHints(env) if details.get("hints") else env


def evaluate_suite(
    suite: Suite,
    agent: AgentMaker,
    folder: Path,
    *,
    workers: int = 1,
    run: Path | None = None,
    retry_broken: bool = False,
    ended: Callable[[EpisodeRecord], None] | None = None,
) -> Result:
    """Play a suite. A run that was stopped resumes, and a folder that is complete is returned as it is.

    Args:
        suite: suite to play.
        agent: a name out of `AGENTS`, or a function that makes an agent for an environment.
        folder: folder of the result.
        workers: number of episodes that are played at once; see `evaluate`.
        run: folder of the training run whose learning curve is kept with the result.
        retry_broken: whether the broken episodes of a complete result are played again; those that count stay as they
            are.
        ended: called with the record of each episode, those of an earlier run included.

    Raises:
        InvalidOptionError: see `check_suite`; or the run has no learning curve, or another program writes the folder.
        AgentFailedError: the agent cannot play at all; see `evaluate`.
    """
    learning = None if run is None else curve_of(run)
    identity = check_suite(suite, agent, folder)
    folder.mkdir(parents=True, exist_ok=True)
    evaluations = {}
    with _alone(folder, identity):
        if retry_broken:
            (folder / SUMMARY).unlink(missing_ok=True)  # It appears again when all parts are complete again.
        for part in suite.parts:
            with closing(make_part(part, identity["details"])) as env:
                evaluations[part.name] = evaluate(
                    env,
                    agent,
                    tasks=part.tasks,
                    episodes=part.episodes,
                    seed=part.seed,
                    first=part.first,
                    path=records_of(folder, part),
                    workers=workers,
                    conversations=True,
                    details=identity["details"],
                    retry_broken=retry_broken,
                    ended=ended,
                )
        result = Result(
            suite=suite,
            agent=identity["agent"],
            details=identity["details"],
            evaluations=evaluations,
            learning=learning,
        )
        _clear_unfinished(folder)
        if not (folder / SUMMARY).exists():
            if learning is not None:
                write_whole(folder / LEARNING, learning.to_json())
            write_summary(folder, result)
    return result


def _clear_unfinished(folder: Path) -> None:
    """Delete what a kill has left of files that are there by now."""
    for path in folder.iterdir():
        if path.name.startswith(CHECK):
            shutil.rmtree(path, ignore_errors=True)
        elif path.name.endswith(PART):
            path.unlink(missing_ok=True)


def check_suite(suite: Suite, agent: AgentMaker, folder: Path) -> dict[str, Any]:
    """Find out before any task is made what `evaluate_suite` refuses; returns what `result.json` holds.

    Raises:
        InvalidOptionError: the agent cannot play the suite, or the folder holds something else or cannot be written.
        MissingDataError: the suite's data are not all there.
    """
    check_writable(folder, folder=True)
    first: dict[str, Any] = {}
    identity: dict[str, Any] = {}
    for part in suite.parts:
        with closing(make_part(part, details_of(agent))) as env:
            first = first or _identity(suite, agent, env)
            twin = _identity(suite, agent, env)
            if twin != first:
                raise InvalidOptionError(
                    f"the agent says otherwise who it is each time that it is made: {_changes(first, twin)}"
                )
            identity = identity or _kept(folder, first, suite)
            check_size(part, env)
            asked = {"tasks": part.tasks, "episodes": part.episodes, "seed": part.seed, "first": part.first}
            check_target(env, (first["agent"], first["details"]), **asked, path=records_of(folder, part))
    return identity


def _identity(suite: Suite, agent: AgentMaker, env: gymnasium.Env[str, str]) -> dict[str, Any]:
    """What `result.json` holds."""
    player = make_player(agent, env)
    name, details = identity_of(player)
    for wish, nothing in (("format", ""), ("hints", False)):
        if (details.get(wish) or nothing) != (details_of(agent).get(wish) or nothing):
            raise InvalidOptionError(
                f"the agent {name!r:.100} has {wish!r} in its details, and what makes it has not: the world would be "
                "another one than they say. Give the class or function the same `details`"
            )
    if name in CHECKED_AGENTS and not isinstance(player, cast(type, AGENTS[name])):
        raise InvalidOptionError(unverifiable(name, name))
    return {"format": FORMAT, "suite": suite.name, "digest": suite.digest, "agent": name, "details": details}


def _changes(first: dict[str, Any], second: dict[str, Any]) -> str:
    """In what two identities differ, in words."""
    pairs = [("name", first["agent"], second["agent"])]
    names = sorted({*first["details"], *second["details"]})
    pairs += [(name, first["details"].get(name), second["details"].get(name)) for name in names]
    return "; ".join(f"{name} is {one!r:.100}, then {other!r:.100}" for name, one, other in pairs if one != other)


def _kept(folder: Path, identity: dict[str, Any], suite: Suite) -> dict[str, Any]:
    """What `result.json` holds or will hold: of the same agent, the address that is there stays.

    Nothing is lost of a result whose agent has played nothing, so it may be another one.

    Raises:
        InvalidOptionError: a folder holds anything but the beginning of this very result.
    """
    if not folder.exists() or not any(folder.iterdir()):
        return identity
    try:
        there = json.loads((folder / IDENTITY).read_text(encoding="utf-8"))
        different = changed_facts(there, identity)
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        raise InvalidOptionError(f"{folder} holds something else than a result; choose another folder") from error
    if different and (there.get("suite") != suite.name or any(has_begun(records_of(folder, p)) for p in suite.parts)):
        raise InvalidOptionError(
            f"{folder} holds another result (different: {different}); delete it or choose another folder"
        )
    return identity if different else {**identity, "details": there["details"]}


def check_size(part: Part, env: gymnasium.Env[str, str]) -> None:
    """Raise `MissingDataError` unless the split holds all tasks of a part."""
    base = base_of(env)
    size = base.tasks.size(base.split)
    if size is not None and size < part.first + part.tasks:
        raise MissingDataError(
            f"part {part.name} has {part.tasks} tasks, and split {part.split!r} holds {size} here: data are missing"
        )


@contextmanager
def _alone(folder: Path, identity: dict[str, Any]) -> Iterator[None]:
    """Keep other programs from writing the same result; the folder then says what it is the result of."""
    path = folder / IDENTITY
    with ExitStack() as locked:
        with locked_folder(folder):  # Else two that begin at once would each lock a file of their own.
            if not path.exists():
                write_whole(path, to_json(identity))
            file = locked.enter_context(open(path, encoding="utf-8"))
            try:
                lock(file, wait=False)
            except BlockingIOError as error:
                raise InvalidOptionError(f"another program is writing {folder}") from error
            if file.read() != to_json(identity):
                write_whole(path, to_json(identity))
                lock(locked.enter_context(open(path, encoding="utf-8")), wait=False)
        yield


def write_summary(folder: Path, result: Result) -> None:
    """Write the numbers of a result, and the digests of its other files, into its folder."""
    write_whole(folder / SUMMARY, to_json({**summary_of(result), "files": digests(folder, result.suite)}))


def summary_of(result: Result) -> dict[str, Any]:
    """The numbers of a result: of each part, and of all parts together."""
    parts = {
        name: _numbers([evaluation.episodes], evaluation.unit_returns)
        for name, evaluation in result.evaluations.items()
    }
    unit_returns = all(evaluation.unit_returns for evaluation in result.evaluations.values())
    return {
        "format": FORMAT,
        "suite": result.suite.name,
        "digest": result.suite.digest,
        "agent": result.agent,
        "trust": provable(result.suite.name, result.details, exact=result.exact),
        "all": _numbers([evaluation.episodes for evaluation in result.evaluations.values()], unit_returns),
        "parts": parts,
    }


def _numbers(parts: Sequence[Sequence[EpisodeRecord]], unit_returns: bool) -> dict[str, Any]:
    """A summary as JSON values. Numbers have six digits after the point, so that all machines write the same."""
    episodes = [episode for records in parts for episode in records]
    broken = sum(bool(episode.broken) for episode in episodes)
    counts = {"asked": len(episodes), "broken": broken}
    if broken == len(episodes):
        return counts
    summary = summarize(episodes, unit_returns=unit_returns)
    repeats = repeated(*parts)
    solved = sum(episode.success for episode in episodes if not episode.broken)
    values = {name: _value(getattr(summary, name)) for name in Summary.__dataclass_fields__ if name != "broken"}
    tokens, cost = total([episode.tokens for episode in episodes]), total([episode.cost for episode in episodes])
    further = {name: total([getattr(episode, name) for episode in episodes]) for name in _FURTHER}
    return {
        **counts,
        **values,
        "pass": {name: {k: _value(share) for k, share in shares.items()} for name, shares in repeats.items()},
        "success_if_broken_is_lost": round(solved / len(episodes), 6),
        "tokens": tokens,
        **({} if cost is None else {"cost": round(cost, 6)}),
        **{name: number for name, number in further.items() if number is not None},
        "by_axis": {axis: _by_axis(episodes, axis) for axis in AXES},
    }


def total(amounts: Sequence[float | None]) -> float | None:
    """A sum; `None` if an amount is unknown, or there is none.

    >>> total([1, 2]), total([1, None])
    (3, None)
    """
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known and len(known) == len(amounts) else None


def _by_axis(episodes: Sequence[EpisodeRecord], axis: str) -> list[dict[str, Any]]:
    """Success along an axis of difficulty, from easy to hard, as JSON values."""
    return [
        {"low": low, "high": high, "episodes": rate.episodes, "success": _value(rate.success)}
        for (low, high), rate in success_by_axis(episodes, axis).items()
    ]


def _value(value: Any) -> Any:
    if isinstance(value, Interval):
        return [round(bound, 6) if isfinite(bound) else None for bound in (value.mean, value.low, value.high)]
    return round(value, 6) if isinstance(value, float) else value


def digests(folder: Path, suite: Suite) -> dict[str, str]:
    """SHA-256 of each file of a result but its summary, in hexadecimal, by name."""
    return {path.name: _digest(path) for path in files_of(folder, suite)}


def files_of(folder: Path, suite: Suite) -> list[Path]:
    """The files of a result but its summary."""
    records = [records_of(folder, part) for part in suite.parts]
    learning = [folder / LEARNING] if os.path.lexists(folder / LEARNING) else []
    return [folder / IDENTITY, *learning, *(path for record in records for path in (record, conversations_of(record)))]


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def to_json(values: dict[str, Any]) -> str:
    """A file of JSON, for people too."""
    return json.dumps(values, indent=2, sort_keys=True) + "\n"
