"""What is kept of an evaluation: enough to play every episode again and compare."""

from __future__ import annotations

import gzip
import hashlib
import json
import platform
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import gymnasium

from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation.episode import Episode
from textagent_gym.files import part_of, whole_file
from textagent_gym.registration import world_of

_ADDED = ("shaping", "invalid_action_penalty", "turn_penalty")  # Arguments of `TextEnv` that add to rewards.
_READING = {f"textagent_gym.wrappers.{name}" for name in ("parsing:ActionParser", "hints:AdmissibleActionHints")}
"""Wrappers in which results of suites are played, and which leave rewards as they are."""
FORMAT = "textagent-gym evaluation 4"
LONGEST_LINE = 2**24
"""Bytes of a line that is read: an episode of 50 turns with answers of 300 kilobytes."""
LARGEST_FILE = 2**28
"""Bytes of a file that is read, once it is decompressed: what fits into the memory of a small machine."""
LARGEST_SMALL_FILE = 2**21
"""Bytes of a file, or of a header, that holds a single value of JSON, such as a summary: that of 30 parts has 60
thousand."""
_LONGEST_NAME, _MOST_NAMES = 200, 10  # Characters of a served model's name, and number of them in an episode.
_SEAL = "sha256"  # Key of the last line.
_DEEPEST = 20  # Levels of a line: an argument of a wrapper in a spec has five, and its value has some of its own.
LARGEST_NUMBER = 2**128
"""Seeds, and all other numbers of a file, are below it."""
LARGEST_AMOUNT = 2**53
"""Most seconds, tokens, invalid actions or money of an episode, and the largest reward or score: every program counts
exactly up to it, and no sum of them overflows."""
_LARGEST = sys.float_info.max  # JSON has no infinity, and no number that is none.


@dataclass(frozen=True, slots=True)
class EpisodeRecord:
    """One episode.

    Attributes:
        task: id of the task.
        seed: seed of the agent and of the environment's reset.
        actions: every action, in order.
        rewards: reward of each action.
        success, terminated, truncated: way in which the environment ended the episode.
        invalid_actions: number of actions that were not valid.
        task_type: sort of the task, in worlds that have several.
        score: the world's own measure at the end, 0 to 1; `None` where it has none.
        complexity: measurements of the task; `None` where the environment tells none.
        broken: reason why the world broke, "" if it did not; such an episode counts neither as won nor as lost.
        stopped: reason why the agent stopped before the environment ended the episode, such as "context"; "" if it did
            not.
        observations: digest of everything that the agent read (see `digest`).
        seconds: time that the episode took.
        tokens: tokens that the agent's model wrote; `None` if they were not counted.
        cost: money that the agent's model cost, in the currency of its prices; `None`, and not in the file, if it was
            not counted.
        tokens_read: tokens that the agent's model read; so is this, and what follows.
        cut, refused: answers that ended at a limit of tokens, and those that the model refused or its server withheld.
        served: models that answered, as their server calls them.
    """

    task: str
    seed: int
    actions: tuple[str, ...]
    rewards: tuple[float, ...]
    success: bool
    terminated: bool
    truncated: bool
    invalid_actions: int = 0
    task_type: str = ""
    score: float | None = None
    complexity: dict[str, Any] | None = None
    broken: str = ""
    stopped: str = ""
    observations: str = ""
    seconds: float = field(default=0.0, compare=False)
    tokens: int | None = None
    cost: float | None = None
    tokens_read: int | None = None
    cut: int | None = None
    refused: int | None = None
    served: tuple[str, ...] | None = None

    @property
    def turns(self) -> int:
        """Number of actions."""
        return len(self.actions)

    @property
    def total_reward(self) -> float:
        """Sum of the rewards, undiscounted."""
        return sum(self.rewards)


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The episodes of one agent in one environment, and what is needed to play them again.

    Attributes:
        agent: name of the agent.
        spec: the environment's `EnvSpec` as JSON, with its keyword arguments and its wrappers.
        split: split of the tasks.
        seed: seed from which that of each episode follows (see `episode.episode_seed`).
        tasks: number of tasks.
        first: position of the first of them in the split.
        repeats: episodes per task.
        episodes: records of the episodes, task by task.
        versions: versions of Python and of the packages that decide what happens in an episode.
        details: further facts about the agent: model, revision, prompt, sampling.
        sealed: whether the file that it was read from is as it was written.
    """

    agent: str
    spec: dict[str, Any]
    split: str
    seed: int
    tasks: int
    repeats: int
    first: int = 0
    episodes: tuple[EpisodeRecord, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    sealed: bool = field(default=True, compare=False)

    @property
    def env(self) -> str:
        """Id of the environment."""
        return str(self.spec["id"])

    @property
    def unit_returns(self) -> bool:
        """Whether no return can leave 0 to 1: shaping, penalties and most wrappers may add to a world's own rewards."""
        wrappers = self.spec.get("additional_wrappers") or ()
        if not all(isinstance(each, dict) and str(each.get("entry_point")) in _READING for each in wrappers):
            return False
        return not any((self.spec.get("kwargs") or {}).get(name) for name in _ADDED)


def begin(
    env: gymnasium.Env[Any, Any],
    agent: str,
    *,
    tasks: int,
    repeats: int = 1,
    seed: int = 0,
    first: int = 0,
    details: dict[str, Any] | None = None,
) -> Evaluation:
    """An evaluation without episodes yet.

    Args:
        env: environment that is played, with all its wrappers.
        agent, tasks, repeats, seed, first, details: see `Evaluation`.

    Raises:
        InvalidOptionError: the environment cannot be made again from what JSON can hold.
    """
    spec = spec_of(env)
    split = str(getattr(env.unwrapped, "split", ""))
    return Evaluation(
        agent=agent,
        spec=spec,
        split=split,
        seed=seed,
        tasks=tasks,
        repeats=repeats,
        first=first,
        versions=versions(spec["id"]),
        details=dict(details or {}),
    )


def spec_of(env: gymnasium.Env[Any, Any]) -> dict[str, Any]:
    """The spec of an environment as JSON values, wrappers included.

    Raises:
        InvalidOptionError: it was not made by `gymnasium.make`, a wrapper does not record its arguments, or an argument
            is no JSON value.
    """
    spec = env.spec
    if spec is None:
        raise InvalidOptionError(f"{env} was not made by gymnasium.make, so nobody else could make it again")
    for wrapper in spec.additional_wrappers:
        if wrapper.kwargs is None:
            raise InvalidOptionError(
                f"the wrapper {wrapper.name} does not record its arguments: let it inherit "
                "gymnasium.utils.RecordConstructorArgs"
            )
    try:
        data: dict[str, Any] = json.loads(spec.to_json())
    except (TypeError, ValueError) as error:
        raise InvalidOptionError(f"the arguments of {spec.id} cannot be written as JSON: {error}") from error
    return data


def record(episode: Episode, seed: int) -> EpisodeRecord:
    """What is kept of an episode that was played with a seed. Tokens and cost that cannot be counted are unknown."""
    cost = episode.cost
    complexity = episode.beginning.get("complexity")
    score = episode.info.get("score")
    return EpisodeRecord(
        task=str(episode.info.get("task", "")),
        seed=seed,
        actions=tuple(turn.action for turn in episode.turns),
        rewards=tuple(turn.reward for turn in episode.turns),
        success=episode.success,
        terminated=episode.terminated,
        truncated=episode.truncated,
        invalid_actions=sum(not turn.valid for turn in episode.turns),
        task_type=str(episode.info.get("task_type", "")),
        score=None if score is None else float(score),
        complexity=None if complexity is None else complexity.to_dict(),
        broken=episode.broken,
        stopped=episode.stopped,
        observations=digest(episode.observations),
        seconds=round(episode.seconds, 3),
        tokens=_count(episode.tokens),
        cost=round(float(cost), 9) if cost is not None and type(cost) in {int, float} and _is_amount(cost) else None,
        tokens_read=_count(episode.tokens_read),
        cut=_count(episode.cut),
        refused=_count(episode.refused),
        served=_names(episode.served),
    )


def _count(value: Any) -> int | None:
    """A number of something; `None` for what cannot be one."""
    return value if type(value) is int and _is_amount(value) else None


def _names(values: Any) -> tuple[str, ...] | None:
    """Names of models; `None` where an agent tells none, or something else."""
    if not (isinstance(values, list) and values and all(isinstance(value, str) for value in values)):
        return None
    return tuple(str.__str__(value)[:_LONGEST_NAME] for value in values[:_MOST_NAMES])


def _is_amount(value: float | None) -> bool:
    """Whether a number can be one of seconds, tokens, actions or money."""
    return value is not None and 0 <= value <= LARGEST_AMOUNT


def digest(observations: Iterable[Any]) -> str:
    """A digest of what an agent has read, in order: text, or any JSON value.

    >>> digest(["You are in a kitchen.", "Taken."])[:16]
    '97b5b3d1ce681e40'
    """
    text = hashlib.sha256()
    for observation in observations:
        text.update(json.dumps(observation, sort_keys=True).encode() + b"\n")
    return text.hexdigest()


def packages_of(env_id: str) -> tuple[str, ...]:
    """Packages whose versions decide what happens in an episode."""
    world = world_of(env_id)
    return ("textagent-gym", "gymnasium", *(world.packages if world is not None else ()))


def versions(env_id: str) -> dict[str, str]:
    """Versions of Python, of this suite and of the packages that a world's table entry names."""
    known = {"python": platform.python_version()}
    for package in packages_of(env_id):
        try:
            known[package] = version(package)
        except PackageNotFoundError:
            continue
    return known


def other_versions(evaluation: Evaluation) -> list[str]:
    """Sentences about packages whose versions are not those of a file."""
    here = versions(evaluation.env)
    return [
        f"Made with {package} {there}; here is {here.get(package)}."
        for package, there in evaluation.versions.items()
        if here.get(package) != there and package != "python"
    ]


def save(evaluation: Evaluation, path: str | Path) -> None:
    """Write a result file: a header, one line per episode and a seal, as JSON. It appears as a whole or not at all.

    The seal is the SHA-256 of all lines before it, so that whatever is changed later by somebody who does not write the
    seal anew is noticed, also what no replay can check, such as seconds.
    """
    seal = hashlib.sha256()
    with whole_file(Path(path)) as file:
        for text in (header(evaluation), *map(line, evaluation.episodes)):
            file.write(text + "\n")
            seal.update(text.encode() + b"\n")
        file.write(json.dumps({_SEAL: seal.hexdigest()}) + "\n")


def conversations_of(path: str | Path) -> Path:
    """Where the conversations of a result file are.

    >>> conversations_of("results/mine/rooms.jsonl").as_posix()
    'results/mine/rooms.conversations.jsonl.gz'
    """
    path = Path(path)
    return path.with_name(f"{path.name.removesuffix('.jsonl')}.conversations.jsonl.gz")


def save_conversations(path: Path, conversations: Iterable[Sequence[dict[str, Any]]]) -> None:
    """Write everything that was said beside a result file: one line per episode, as JSON, compressed."""
    target = conversations_of(path)
    # No time and no name of a file is in it: equal conversations give equal bytes.
    with open(part_of(target), "wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:
        for messages in conversations:
            file.write(json.dumps(messages).encode() + b"\n")
    part_of(target).replace(target)


def conversations_in(path: Path) -> Iterator[Any]:
    """What was said in each episode of a file; "" for a line that is damaged, or written otherwise than results are."""
    for text in bounded_lines(path):
        try:
            values = read_line(text)
        except ValueError:
            values = ""
        yield values if text == json.dumps(values).encode() + b"\n" else ""


def header(evaluation: Evaluation) -> str:
    """The first line of a result file."""
    known = {name: getattr(evaluation, name) for name in _HEADER}
    return json.dumps({"format": FORMAT, **known}, sort_keys=True)


def line(episode: EpisodeRecord) -> str:
    """The line of an episode in a result file."""
    values = asdict(episode)
    return json.dumps(
        {name: values[name] for name in values if name not in OPTIONAL or values[name] is not None}, sort_keys=True
    )


def load(path: str | Path) -> Evaluation:
    """Read a result file; `Evaluation.sealed` says whether its seal is whole.

    Raises:
        InvalidOptionError: the file is not a result file of this format, a line is damaged, or it is larger than
            result files are.
    """
    number, sealed, seal = 1, False, hashlib.sha256()
    head: dict[str, Any] = {}
    episodes: list[EpisodeRecord] = []
    try:
        for number, text in enumerate(bounded_lines(path), start=1):
            if sealed:
                raise ValueError("follows the seal")
            if number == 1 and len(text) > LARGEST_SMALL_FILE:
                raise ValueError("is longer than a header is")
            values = read_line(text)
            as_written = json.dumps(values, sort_keys=True).encode() + b"\n"
            if number == 1:
                head = _read_header(values)
            elif isinstance(values, dict) and _SEAL in values:
                if values != {_SEAL: seal.hexdigest()}:
                    break
                sealed = True
            else:
                episodes.append(read_record(values))
            if text != as_written:
                raise ValueError("is written otherwise than results are")
            seal.update(text)
    except InvalidOptionError:
        raise
    except ValueError as error:
        raise InvalidOptionError(f"{path} is no result file of {FORMAT!r}: line {number} {error}") from None
    if not head:
        raise InvalidOptionError(f"{path} is no result file: it is empty")
    return Evaluation(**head, episodes=tuple(episodes), sealed=sealed)


def small_file(path: Path) -> bytes:
    """What is in a file of at most `LARGEST_SMALL_FILE` bytes that somebody else made.

    Raises:
        InvalidOptionError: see `bounded_lines`.
    """
    return b"".join(bounded_lines(path, LARGEST_SMALL_FILE))


def bounded_lines(path: str | Path, largest: int = LARGEST_FILE) -> Iterator[bytes]:
    """Lines of a file that somebody else made, plain or compressed (.gz), with their ends.

    Args:
        path: the file.
        largest: number of bytes that are read, once they are decompressed.

    Raises:
        InvalidOptionError: it is no plain file, cannot be read, or is larger than `largest` or `LONGEST_LINE`.
    """
    path, size = Path(path), 0
    try:
        if not path.is_file():
            reason = "it is not a plain file" if path.exists() else "it does not exist"
            raise InvalidOptionError(f"{path} cannot be read: {reason}")
        with gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb") as file:
            while text := file.readline(LONGEST_LINE + 1):
                size += len(text)
                if len(text) > LONGEST_LINE or size > largest:
                    raise InvalidOptionError(
                        f"{path} is larger than result files are: at most {LONGEST_LINE} bytes per line, "
                        f"{largest} in all"
                    )
                yield text
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidOptionError(f"{path} cannot be read: {error}") from error


def read_line(text: bytes) -> Any:
    """What a line holds.

    Raises:
        ValueError: it is not JSON, names something twice, which programs read differently, is nested deeper than
            results are, or holds a number that cannot be counted with.
    """
    try:
        values = json.loads(text, object_pairs_hook=_once)
    except KeyError as error:
        raise ValueError(f"names {error.args[0]!r:.100} twice") from None
    except (ValueError, RecursionError):
        raise ValueError("is cut off or damaged") from None
    _check_numbers(values, _DEEPEST)
    return values


def _check_numbers(value: Any, depth: int) -> None:
    """Raise `ValueError` for values nested too deep, or numbers that cannot be counted with."""
    if isinstance(value, int | float) and not abs(value) <= (LARGEST_NUMBER if isinstance(value, int) else _LARGEST):
        raise ValueError(f"holds the number {value!r:.20}, which is none or too large")
    if isinstance(value, dict | list):
        if not depth:
            raise ValueError("is nested too deep")
        for item in value.values() if isinstance(value, dict) else value:
            if not isinstance(item, str):
                _check_numbers(item, depth - 1)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise KeyError(name)
        values[name] = value
    return values


def _read_header(head: Any) -> dict[str, Any]:
    """The fields of an evaluation, but for its episodes.

    Raises:
        ValueError: the values of the first line do not hold them.
    """
    if not isinstance(head, dict) or head.pop("format", None) != FORMAT:
        raise ValueError("does not name this format")
    _check(head, _HEADER)
    if not isinstance(head["spec"].get("id"), str):
        raise ValueError("holds a spec without an id")
    return head


def read_record(data: Any) -> EpisodeRecord:
    """The episode of a line, from its JSON values.

    Raises:
        ValueError: they are not those of an episode; the message continues a sentence that names the line.
    """
    if not isinstance(data, dict):
        raise ValueError("holds no episode")
    _check(data, {name: kind for name, kind in _EPISODE.items() if name not in OPTIONAL or name in data})
    if not all(isinstance(action, str) for action in data["actions"]):
        raise ValueError("holds an action that is not a text")
    if not all(isinstance(reward, float) for reward in data["rewards"]):
        raise ValueError("holds a reward that is not a number with a decimal point")
    if not all(abs(reward) <= LARGEST_AMOUNT for reward in (*data["rewards"], data["score"] or 0.0)):
        raise ValueError(f"holds a reward or a score beyond {LARGEST_AMOUNT}")
    for name in AMOUNTS:
        amount = data.get(name)
        if amount is not None and not _is_amount(amount):
            raise ValueError(f"holds {amount} {name}: it is from 0 to {LARGEST_AMOUNT}")
    if any(isinstance(value, dict | list | str) for value in (data["complexity"] or {}).values()):
        raise ValueError("holds a complexity that is not made of numbers")
    served = data.get("served")
    if served is not None and not (served and all(isinstance(name, str) for name in served)):
        raise ValueError("holds names of models that are none")
    lists = {name: tuple(data[name]) for name in ("actions", "rewards", "served") if data.get(name) is not None}
    return EpisodeRecord(**{**data, **lists})


_HEADER: dict[str, type | tuple[type, ...]] = {
    "agent": str,
    "spec": dict,
    "split": str,
    "seed": int,
    "tasks": int,
    "repeats": int,
    "first": int,
    "versions": dict,
    "details": dict,
}
_EPISODE: dict[str, type | tuple[type, ...]] = {
    "task": str,
    "seed": int,
    "actions": list,
    "rewards": list,
    "success": bool,
    "terminated": bool,
    "truncated": bool,
    "invalid_actions": int,
    "task_type": str,
    "score": (float, type(None)),
    "complexity": (dict, type(None)),
    "broken": str,
    "stopped": str,
    "observations": str,
    "seconds": (float, int),
    "tokens": (int, type(None)),
    "cost": float,
    "tokens_read": int,
    "cut": int,
    "refused": int,
    "served": list,
}
AMOUNTS = ("seconds", "tokens", "cost", "invalid_actions", "tokens_read", "cut", "refused")
"""Fields of an episode that are from 0 to `LARGEST_AMOUNT`, or not known."""
OPTIONAL = ("cost", "tokens_read", "cut", "refused", "served")
"""Fields of an episode that its line holds only where they are known."""


def _check(data: dict[str, Any], kinds: dict[str, type | tuple[type, ...]]) -> None:
    """Raise `ValueError` for a field that is missing, unknown or of another type: a file may hold anything."""
    for name in kinds:
        if name not in data:
            raise ValueError(f"has no {name!r}")
    for name, value in data.items():
        if name not in kinds:
            raise ValueError(f"has the unknown key {name!r:.100}")
        if not isinstance(value, kinds[name]) or (isinstance(value, bool) and kinds[name] is not bool):
            raise ValueError(f"holds {value!r:.100} as {name!r}")
