"""Check a result file by playing its actions again."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from textagent_gym.agents import Agent, make_agent
from textagent_gym.agents.names import CHECKED_AGENTS, UNREADING_AGENTS, resembled
from textagent_gym.errors import InvalidOptionError, TextAgentError
from textagent_gym.evaluation.episode import COUNTED, Episode, episode_seed, play_until_whole
from textagent_gym.evaluation.players import task_id
from textagent_gym.evaluation.records import EpisodeRecord, Evaluation, digest, line, packages_of, record
from textagent_gym.evaluation.remarks import without_remarks
from textagent_gym.evaluation.untrusted import spec_from_file
from textagent_gym.processes import kill_on_error, worker_processes
from textagent_gym.texts import excerpts


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Something in a result file that is not what happens here.

    Attributes:
        episode: position of the episode in the file, from 0; `None` for the file as a whole.
        task: id of its task; "" for the file as a whole.
        what: description of the difference, in words.
        file: name of the file, in a result of several.
    """

    episode: int | None
    task: str
    what: str
    file: str = ""


_READ_OTHERWISE = "the agent read something else than is recorded"
_DIED = "it cannot be played: a process that played died"


class _Recorded:
    """Does what was recorded, and stops where the record ends.

    Args:
        actions: recorded actions.
        claimed: agent that is said to have acted; `None` where that cannot be checked.
        whole: whether the agent stopped itself where the record ends.
    """

    name = "recorded"

    def __init__(self, actions: tuple[str, ...], claimed: Agent | None, *, whole: bool = True) -> None:
        self._actions = actions
        self._claimed = claimed
        self._whole = whole
        self._next = 0
        self.difference = ""

    def reset(self, seed: int) -> None:
        """Begin with the first action again."""
        self._next = 0
        self.difference = ""
        if self._claimed is not None:
            self._claimed.reset(seed)

    @property
    def stop_reason(self) -> str:
        """Why the agent that is said to have acted stops here; "" where that cannot be checked."""
        return getattr(self._claimed, "stop_reason", "")

    def act(self, observation: str, info: dict[str, Any]) -> str | None:
        """The next recorded action."""
        action = self._actions[self._next] if self._next < len(self._actions) else None
        self._next += 1
        if self._claimed is not None and not self.difference and (self._whole or action is not None):
            expected = self._claimed.act(observation, info)
            if expected != action:
                name, recorded = self._claimed.name, "nothing" if action is None else repr(action)
                self.difference = (
                    f"action {self._next} of the agent {name!r} is {expected!r}, and {recorded} is recorded"
                )
        return action


def replay(
    evaluation: Evaluation,
    progress: Callable[[int], None] | None = None,
    *,
    spec: EnvSpec | None = None,
    conversations: Iterator[Any] | None = None,
    recompute: Callable[[list[dict[str, Any]], EpisodeRecord], str] | None = None,
    workers: int = 1,
    every: int = 1,
    offset: int = 0,
) -> list[Mismatch]:
    """Play every recorded action again and compare; an empty list says that the file is right.

    Every task must be there, in the order of the split, as often as the header says. Agents of this suite that act
    equally everywhere (`CHECKED_AGENTS`) are asked what they would do; nobody else's name can be checked, nor
    `seconds`, what an agent counts (`episode.COUNTED`), nor what a model wrote beside its actions. An episode whose
    world broke counts neither as won nor as lost. Nobody can check that it broke; but where such an agent of this suite
    plays it to its end here, it is wrong.

    Args:
        evaluation: file to check.
        progress: called with the number of episodes checked so far.
        spec: environment to play in; by default the file's own, as far as it is safe to make (see `spec_from_file`).
        conversations: what is said to have been said in each episode, as JSON values; `None` for no check.
        recompute: called with the conversation and the record of each episode that a replay confirms; returns what the
            policy would not have said, in words.
        workers: number of processes that play; with `recompute` it is this one alone, whatever the number. A script
            that asks for several must guard its main part by `if __name__ == "__main__":`.
        every: distance between the episodes that are played; 1 plays all. Of the others, only task and seed are
            compared.
        offset: number of one of the episodes that are played.

    Raises:
        InvalidOptionError: the environment cannot be made, or should not be for a file of somebody else.
    """
    for name, value in (("workers", workers), ("every", every)):
        if value < 1:
            raise InvalidOptionError(f"{name} must be at least 1, got {value}")
    if spec is None:
        spec, _ = spec_from_file(evaluation.spec)
    try:
        env: gymnasium.Env[str, str] = gymnasium.make(spec)
    except (TextAgentError, gymnasium.error.Error):
        raise
    except Exception as error:  # An argument that neither the world nor a wrapper takes.
        raise InvalidOptionError(f"the environment of the file cannot be made: {error}") from error
    mismatches = [Mismatch(None, "", what) for what in _gaps(evaluation, env)]
    texts = not spec.nondeterministic
    checks = (
        _Check(
            spec=spec,
            number=number,
            index=evaluation.first + number // max(1, evaluation.repeats),
            repeat=number % max(1, evaluation.repeats),
            seed=evaluation.seed,
            agent=evaluation.agent,
            claimed=evaluation.agent if evaluation.agent in (CHECKED_AGENTS if texts else UNREADING_AGENTS) else "",
            has_tokens="policy" in evaluation.details,
            expected=expected,
            recorded=None if conversations is None else next(conversations, None),
            has_conversation=conversations is not None,
            plays=(number - offset) % every == 0,
        )
        for number, expected in enumerate(evaluation.episodes)
    )
    try:
        here = workers == 1 or recompute is not None
        outcomes = ((each, each.difference(env, recompute)) for each in checks) if here else _divided(checks, workers)
        with closing(outcomes):
            for done, (check, what) in enumerate(outcomes, start=1):
                if what:
                    mismatches.append(Mismatch(check.number, check.expected.task, what))
                if progress is not None:
                    progress(done)
    finally:
        env.close()
    if conversations is not None and any(True for _ in conversations):
        mismatches.append(Mismatch(None, "", "more conversations than episodes are there"))
    return sorted(mismatches, key=lambda mismatch: -1 if mismatch.episode is None else mismatch.episode)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Check:
    """An episode to play again.

    Attributes:
        spec: environment.
        number: position of the episode in the file.
        index, repeat: position of its task in the split, and number of its repetition.
        seed: seed of the evaluation.
        agent: name of the agent; `claimed` is the same where it can be asked what it would do, "" elsewhere.
        has_tokens: whether the conversation tells the tokens of a policy.
        expected: record.
        recorded: conversation that is said to have been, if `has_conversation`.
        plays: whether the episode is played; if not, only its task and seed are compared.
    """

    spec: EnvSpec
    number: int
    index: int
    repeat: int
    seed: int
    agent: str
    claimed: str
    has_tokens: bool
    expected: EpisodeRecord
    recorded: Any
    has_conversation: bool
    plays: bool

    def difference(
        self,
        env: gymnasium.Env[str, str],
        recompute: Callable[[list[dict[str, Any]], EpisodeRecord], str] | None = None,
    ) -> str:
        """What is not as recorded, in words; empty if nothing."""
        expected, texts = self.expected, not self.spec.nondeterministic
        conversation = None
        if self.has_conversation:
            conversation = without_tokens(self.recorded) if self.has_tokens else self.recorded
            if self.agent not in CHECKED_AGENTS:  # These say nothing beside their actions.
                conversation = without_remarks(conversation)
            conversation = "" if conversation is None else conversation  # Nothing is not left unchecked.
        what = _wrong_task(env, self.seed, expected, self.index, self.repeat)
        if not self.plays:
            return what
        if not what and expected.broken:
            what = _difference_of_broken(env, expected, self.index, self.claimed)
        elif not what:
            what = _difference(env, expected, self.index, self.claimed, conversation, compare_texts=texts)
            what = what or _wrong_tokens(self.recorded, expected)
        if not what and conversation is not None and not _is_conversation(conversation):
            what = "its conversation is none"
        if not what and recompute is not None and not expected.broken:
            what = recompute(self.recorded or [], expected)
        return what


def _divided(checks: Iterator[_Check], workers: int) -> Generator[tuple[_Check, str], None, None]:
    """Check in processes, as they end. When one of these dies, what is under way is wrong, and all that is left."""
    with worker_processes(workers) as pool, kill_on_error(pool):
        running: dict[Future[str], _Check] = {}
        while (begun := list(islice(checks, 2 * workers - len(running)))) or running:
            for check in begun:
                try:
                    running[pool.submit(_check, check)] = check
                except BrokenExecutor:
                    yield check, _DIED
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                check, error = running.pop(future), future.exception()
                if error is not None and not isinstance(error, BrokenExecutor):
                    raise error
                yield check, _DIED if error is not None else future.result()


def _check(check: _Check) -> str:
    """In a worker: play an episode again."""
    if _seat.spec != check.spec:
        if _seat.env is not None:
            _seat.env.close()
        _seat.spec, _seat.env = check.spec, gymnasium.make(check.spec)
    assert _seat.env is not None
    return check.difference(_seat.env)


class _Seat:
    """Environment of a worker, kept while the same one is asked for."""

    spec: EnvSpec | None = None
    env: gymnasium.Env[str, str] | None = None


_seat = _Seat()


def _gaps(evaluation: Evaluation, env: gymnasium.Env[str, str]) -> list[str]:
    """What is wrong with the file as a whole."""
    gaps = []
    asked = evaluation.tasks * evaluation.repeats
    split = str(getattr(env.unwrapped, "split", ""))
    if not evaluation.sealed:
        gaps.append("it has been changed or cut since it was written: its last line does not fit the others")
    if evaluation.tasks < 1 or evaluation.repeats < 1:
        gaps.append(f"{evaluation.tasks} tasks with {evaluation.repeats} episodes each are no evaluation")
    elif len(evaluation.episodes) != asked:
        gaps.append(f"{len(evaluation.episodes)} episodes are recorded, and {asked} were asked for")
    if evaluation.split != split:
        gaps.append(f"split {evaluation.split!r} is recorded, and the environment plays {split!r}")
    if evaluation.agent in CHECKED_AGENTS and evaluation.details:
        gaps.append(f"the agent {evaluation.agent!r} has no details, and some are recorded")
    if evaluation.agent in CHECKED_AGENTS:
        try:
            make_agent(evaluation.agent, env)
        except InvalidOptionError as error:
            gaps.append(str(error))
    alike = resembled(evaluation.agent)
    if alike and evaluation.agent != alike:
        gaps.append(f"the agent {evaluation.agent!r:.100} reads like {alike!r}, which is an agent of this suite")
    strange = sorted(set(evaluation.versions) - {"python", *packages_of(evaluation.env)})
    if strange or not all(isinstance(version, str) for version in evaluation.versions.values()):
        gaps.append(f"versions are recorded of what decides nothing here: {', '.join(strange)}")
    return gaps


def _wrong_task(env: gymnasium.Env[str, str], seed: int, expected: EpisodeRecord, index: int, repeat: int) -> str:
    """What is wrong with the task or the seed of a record, in words; empty if nothing."""
    try:
        task = task_id(env, index)
    except Exception as error:  # noqa: BLE001 (of whatever a stranger's arguments make of a world)
        return f"it cannot be played: {error}"
    if expected.task != task:
        return f"task is {task!r}, and {expected.task!r} is recorded"
    right = episode_seed(seed, task, repeat)
    return "" if expected.seed == right else f"its seed is {expected.seed}, not {right}"


def _difference_of_broken(env: gymnasium.Env[str, str], expected: EpisodeRecord, index: int, claimed: str) -> str:
    """What went otherwise before the world broke, in words; empty if nothing did.

    Its last action may be the one that broke the world, so it is not played.
    """
    if expected.success or expected.terminated or not expected.truncated or expected.stopped:
        return "an episode whose world broke is truncated, neither terminated nor stopped nor a success"
    if len(expected.actions) != len(expected.rewards):
        return f"{len(expected.actions)} actions but {len(expected.rewards)} rewards are recorded"
    before = expected.actions[:-1]
    try:
        agent = _Recorded(before, make_agent(claimed, env) if claimed else None, whole=False)
        episode = play_until_whole(env, agent, options={"task_index": index}, seed=expected.seed)
    except Exception as error:  # noqa: BLE001 (of whatever a stranger's arguments make of a world)
        return f"it cannot be played: {error}"
    if episode.broken:
        return ""
    now = record(episode, expected.seed)
    what = _wrong_rewards(now, expected)
    if what:
        return what
    if expected.actions and not now.stopped:
        return f"it is recorded as broken ({expected.broken:.100}), and had ended after {now.turns} actions"
    for name in ("task_type", "complexity"):  # A world that breaks before the first action may tell neither.
        there, here = getattr(expected, name), getattr(now, name)
        if (there or expected.actions) and there != here:
            return f"{name} is {here!r}, and {there!r:.200} is recorded"
    if not 0 <= expected.invalid_actions - now.invalid_actions <= len(expected.actions) - len(before):
        return f"{now.invalid_actions} actions before the last are invalid, and {expected.invalid_actions} are recorded"
    return agent.difference or (_whole_after_all(env, expected, index, claimed) if claimed else "")


def _whole_after_all(env: gymnasium.Env[str, str], expected: EpisodeRecord, index: int, claimed: str) -> str:
    """Whether an agent that acts equally everywhere ends an episode that is said to have broken; in words, or empty.

    Else its losses could be left out as broken.
    """
    try:
        episode = play_until_whole(env, make_agent(claimed, env), options={"task_index": index}, seed=expected.seed)
    except Exception as error:  # noqa: BLE001 (of whatever a stranger's arguments make of a world)
        return f"it cannot be played: {error}"
    if episode.broken:
        return ""
    return (
        f"it is recorded as broken ({expected.broken:.100}), and here {claimed!r} plays it to its end: "
        "play it again with eval --retry-broken"
    )


def _wrong_rewards(now: EpisodeRecord, expected: EpisodeRecord) -> str:
    """The first action of both records that earned something else, in words; empty if there is none."""
    for turn, (reward, recorded) in enumerate(zip(now.rewards, expected.rewards, strict=False), start=1):
        if reward != recorded:
            return f"action {turn} earned {reward}, and {recorded} is recorded"
    return ""


def _difference(
    env: gymnasium.Env[str, str],
    expected: EpisodeRecord,
    index: int,
    claimed: str,
    conversation: Any,
    *,
    compare_texts: bool,
) -> str:
    """What went otherwise, in words; empty if nothing did."""
    if len(expected.actions) != len(expected.rewards) or not (expected.actions or expected.stopped):
        return f"{len(expected.actions)} actions but {len(expected.rewards)} rewards are recorded"
    try:
        agent = _Recorded(expected.actions, make_agent(claimed, env) if claimed else None)
        episode = play_until_whole(env, agent, options={"task_index": index}, seed=expected.seed)
    except Exception as error:  # noqa: BLE001 (of whatever a stranger's arguments make of a world)
        return f"it cannot be played: {error}"
    if episode.broken:
        return f"it could not be checked: {episode.broken}"
    what = _difference_of(episode, expected, claimed, compare_texts=compare_texts) or agent.difference
    if what == _READ_OTHERWISE:
        what += _first_difference(conversation, episode.conversation)
    if what or conversation is None:
        return what
    if compare_texts:
        same = json.dumps(conversation) == json.dumps(episode.conversation)
    else:
        same = _is_conversation(conversation) and _says(conversation, episode.conversation, expected)
    return (
        "" if same else f"its conversation is not what was said{_first_difference(conversation, episode.conversation)}"
    )


def _first_difference(conversation: Any, played: list[dict[str, Any]]) -> str:
    """The first message of a conversation that is not as it was said, in words; "" if none can be named."""
    if not _is_conversation(conversation):
        return ""
    actions = 0
    for there, here in zip(conversation, played, strict=False):
        if there["role"] != here["role"] or not isinstance(here["content"], str):
            break
        if here["content"] != there["content"]:
            played_text, recorded_text = excerpts(here["content"], there["content"])
            when = "at first" if not actions else f"after action {actions}"
            return f": {when}, {played_text!r} was said, and {recorded_text!r} is recorded"
        actions += here["role"] == "assistant"
    return ""


def without_tokens(messages: Any) -> Any:
    """JSON values of a conversation without the tokens of answers; `None` where these are not well formed."""
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        return None
    for message in messages:
        ids, log_probs = message.get("ids", []), message.get("log_probs", [])
        right = isinstance(ids, list) and isinstance(log_probs, list) and len(ids) == len(log_probs)
        if not right or ("ids" in message) != (message.get("role") == "assistant"):
            return None
        if not all(type(token) is int for token in ids) or not all(type(value) is float for value in log_probs):
            return None
    tokens = ("ids", "log_probs")
    return [{name: value for name, value in message.items() if name not in tokens} for message in messages]


def _is_conversation(messages: Any) -> bool:
    """Whether JSON values are messages."""
    return isinstance(messages, list) and all(
        isinstance(message, dict)
        and set(message) == {"role", "content"}
        and message["role"] in ("system", "user", "assistant")
        and isinstance(message["content"], str)
        for message in messages
    )


def _wrong_tokens(messages: Any, expected: EpisodeRecord) -> str:
    """What is wrong with the number of tokens where a conversation holds them, in words; empty if nothing."""
    sampled = [message["ids"] for message in messages or () if "ids" in message]
    number = sum(map(len, sampled))
    if not sampled or number == expected.tokens:
        return ""
    return f"its conversation holds {number} tokens, and {expected.tokens} are recorded"


def _says(conversation: list[dict[str, str]], played: list[dict[str, str]], expected: EpisodeRecord) -> bool:
    """Whether a conversation is the one that was played, but for observations, which are those of a record."""
    texts: dict[str, list[str]] = {"system": [], "user": [], "assistant": []}
    for message in conversation:
        texts[message["role"]].append(message["content"])
    return (
        [message["role"] for message in conversation] == [message["role"] for message in played]
        and texts["system"] == [message["content"] for message in played if message["role"] == "system"]
        and tuple(texts["assistant"]) == expected.actions
        and digest(texts["user"]) == expected.observations
    )


def _difference_of(episode: Episode, expected: EpisodeRecord, agent: str, *, compare_texts: bool) -> str:
    """What an episode has that its record has not, in words."""
    now = record(episode, expected.seed)
    what = _wrong_rewards(now, expected)
    if what:
        return what
    if now.turns < expected.turns:
        return f"the episode ended after {now.turns} actions, and {expected.turns} are recorded"
    if bool(now.stopped) != bool(expected.stopped):
        return (
            "it had not ended after the last action"
            if now.stopped
            else f"it is recorded as stopped ({expected.stopped}), and had ended"
        )
    for name in ("task", "task_type", "success", "terminated", "truncated", "invalid_actions", "score"):
        there, here = getattr(expected, name), getattr(now, name)
        if there != here:
            return f"{name} is {here!r}, and {there!r} is recorded"
    measured, claimed = now.complexity or {}, expected.complexity or {}
    for name in {**measured, **claimed}:
        here, there = (repr(values[name]) if name in values else "nothing" for values in (measured, claimed))
        if here != there:
            return f"{name} of the complexity is {here}, and {there} is recorded"
    if compare_texts and expected.observations != now.observations:
        return _READ_OTHERWISE
    names = [
        "seconds",
        *(() if agent else ("stopped", *COUNTED)),
        *(() if compare_texts else ("observations",)),
    ]
    unchecked = {name: getattr(expected, name) for name in names}
    if line(replace(now, **unchecked)) != line(expected):
        return "it is written otherwise than what happened"
    return ""
