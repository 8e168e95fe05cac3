"""Play an agent in an environment, task by task, and keep what happened. A run that was stopped resumes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from textagent_gym.agents import chosen, differing, identifying
from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation.episode import count_tasks, episode_seed
from textagent_gym.evaluation.players import (
    AgentMaker,
    Job,
    Played,
    Players,
    identity_of,
    make_player,
    play_job,
    task_id,
)
from textagent_gym.evaluation.records import (
    FORMAT,
    LARGEST_NUMBER,
    EpisodeRecord,
    Evaluation,
    begin,
    bounded_lines,
    conversations_of,
    header,
    line,
    load,
    read_line,
    read_record,
    save,
    save_conversations,
)
from textagent_gym.files import part_of, write_whole


def evaluate(
    env: str | EnvSpec | gymnasium.Env[str, str],
    agent: AgentMaker,
    *,
    tasks: int = 100,
    episodes: int = 1,
    seed: int = 0,
    first: int = 0,
    kwargs: dict[str, Any] | None = None,
    path: str | Path | None = None,
    workers: int = 1,
    conversations: bool = False,
    details: Mapping[str, Any] | None = None,
    retry_broken: bool = False,
    progress: Callable[[int], None] | None = None,
    ended: Callable[[EpisodeRecord], None] | None = None,
) -> Evaluation:
    """Play the first tasks of a split.

    Args:
        env: id or spec of an environment of this suite or built on it, or such an environment itself, with wrappers
            that record their arguments; it stays open.
        agent: a name out of `AGENTS`, or a function that makes an agent for the environment. Its `name` is recorded,
            and its `details` if it has some (model, revision, prompt, sampling).
        tasks: number of tasks (all that there are, if the split has fewer).
        episodes: times that each task is played, with different seeds.
        seed: seed of the evaluation, from which that of each episode follows (see `episode.episode_seed`).
        first: position of the first task in the split.
        kwargs: keyword arguments of the environment; `split` among them says which tasks.
        path: result file. Episodes are added to `<path>.part` as they end, and a run that was stopped takes them from
            there; the file itself appears when the run is complete. A complete file of the same evaluation is returned
            as it is.
        workers: number of episodes that are played at once; the result is the same for every number. With more than
            one, they are played in processes (see `players.Players`), and a script must guard its main part by
            `if __name__ == "__main__":`.
        conversations: whether everything that was said is kept beside `path`, compressed (`conversations_of(path)`).
        details: facts that say who the agent is, where they are known: others are refused.
        retry_broken: whether the broken episodes of a complete file are played again; those that count stay as they
            are.
        progress: called with the number of episodes finished so far, those of an earlier run included.
        ended: called with the record of each of them.

    Returns:
        the evaluation. An episode whose world broke four times in a row says so in `broken`.

    Raises:
        InvalidOptionError: the environment is not a `TextEnv`, the agent cannot play it or has a name or details that
            cannot be recorded, or `path` holds another evaluation.
        AgentFailedError: the agent cannot play at all. What it has played is kept, and the same call resumes.
    """
    if workers < 1:
        raise InvalidOptionError(f"workers must be at least 1, got {workers}")
    with ExitStack() as stack:
        if isinstance(env, gymnasium.Env):
            if kwargs:
                raise InvalidOptionError("kwargs is for an id or a spec; this environment has been made already")
            played = env
        else:
            played = stack.enter_context(closing(gymnasium.make(env, **(kwargs or {}))))
        player = make_player(agent, played)
        empty = _begun(played, identity_of(player), tasks=tasks, episodes=episodes, seed=seed, first=first)
        if details is not None and identifying(empty.details) != identifying(details):
            names = ", ".join(differing([empty.details, details]))
            raise InvalidOptionError(f"the agent says otherwise who it is than when it was made first: {names}")
        target = None if path is None else Path(path)
        done = 0

        def report(episode: EpisodeRecord) -> None:
            nonlocal done
            done += 1
            if ended is not None:
                ended(episode)
            if progress is not None:
                progress(done)

        complete = _complete(target, empty)
        if complete is not None and retry_broken and any(episode.broken for episode in complete.episodes):
            assert target is not None
            _reopen(target, complete, conversations)
            complete = None
        if complete is not None:
            assert target is not None
            part_of(target).unlink(missing_ok=True)  # A kill may have left it.
            for episode in complete.episodes:
                report(episode)
            return complete
        outcomes = _resumed(target, empty, conversations)
        keys = [(index, repeat) for index in range(empty.tasks) for repeat in range(episodes)]
        missing = [key for key in keys if key not in outcomes]
        for key in keys:
            if key in outcomes:
                report(outcomes[key].record)
        jobs = [
            Job(_spec(played), first + index, episode_seed(seed, task_id(played, first + index), repeat), conversations)
            for index, repeat in missing
        ]
        results: Iterator[tuple[int, Played | None]]
        if workers == 1:
            results = ((number, play_job(played, player, job)) for number, job in enumerate(jobs))
        else:
            results = stack.enter_context(Players(agent, workers)).play(jobs)
        for number, result in results:
            outcome = result or _lost(played, jobs[number])
            outcomes[missing[number]] = outcome
            if target is not None:
                with open(part_of(target), "a", encoding="utf-8") as file:
                    file.write(_keyed(missing[number], outcome))
            report(outcome.record)
        evaluation = replace(empty, episodes=tuple(outcomes[key].record for key in keys))
        if target is not None:
            if conversations:
                save_conversations(target, [outcomes[key].conversation for key in keys])
            save(evaluation, target)
            part_of(target).unlink(missing_ok=True)
        return evaluation


def _spec(env: gymnasium.Env[str, str]) -> EnvSpec:
    assert env.spec is not None  # `begin` has refused an environment without one.
    return env.spec


def _lost(env: gymnasium.Env[str, str], job: Job) -> Played:
    """An episode that nobody could play to its end."""
    broken = "the process that played it died"
    return Played(EpisodeRecord(task_id(env, job.index), job.seed, (), (), False, False, True, broken=broken), [])


def check_evaluation(
    env: gymnasium.Env[str, str],
    agent: AgentMaker,
    *,
    tasks: int,
    episodes: int,
    seed: int,
    first: int = 0,
    path: str | Path | None,
) -> None:
    """Find out before any task is made what `evaluate` refuses; see there for the arguments.

    Raises:
        InvalidOptionError: the agent cannot play the environment, or `path` holds another evaluation.
    """
    one, other = (identity_of(make_player(agent, env)) for _ in range(2))
    if one != other:
        (name, details), (other_name, other_details) = one, other
        raise InvalidOptionError(
            "the agent says otherwise who it is each time that it is made: "
            f"{name!r} with {details!r:.200}, then {other_name!r} with {other_details!r:.200}"
        )
    check_target(env, one, tasks=tasks, episodes=episodes, seed=seed, first=first, path=path)


def check_target(
    env: gymnasium.Env[str, str],
    identity: tuple[str, dict[str, Any]],
    *,
    tasks: int,
    episodes: int,
    seed: int,
    first: int,
    path: str | Path | None,
) -> None:
    """Find out whether `path` may hold an evaluation; see `evaluate` for the other arguments.

    Args:
        identity: name and details of the agent.

    Raises:
        InvalidOptionError: it holds another evaluation, or there are no such tasks.
    """
    empty = _begun(env, identity, tasks=tasks, episodes=episodes, seed=seed, first=first)
    target = None if path is None else Path(path)
    if _complete(target, empty) is None:
        _kept(target, empty)


def _begun(
    env: gymnasium.Env[str, str],
    identity: tuple[str, dict[str, Any]],
    *,
    tasks: int,
    episodes: int,
    seed: int,
    first: int,
) -> Evaluation:
    """An evaluation without episodes yet, of an agent with a name and details."""
    if tasks < 1 or episodes < 1:
        raise InvalidOptionError(f"tasks and episodes must be at least 1, got {tasks} and {episodes}")
    for given, value in (("seed", seed), ("first", first)):
        if not 0 <= value < LARGEST_NUMBER:
            raise InvalidOptionError(f"{given} must be at least 0 and less than 2**128, got {value}")
    name, details = identity
    count = count_tasks(env, tasks, first)
    return begin(env, name, tasks=count, repeats=episodes, seed=seed, first=first, details=details)


def _complete(target: Path | None, empty: Evaluation) -> Evaluation | None:
    """What the file holds, if it holds this evaluation.

    Raises:
        InvalidOptionError: it holds something else, which is not overwritten.
    """
    if target is None or not target.exists():
        return None
    try:
        evaluation = load(target)
    except InvalidOptionError as error:
        raise InvalidOptionError(f"{target} is there already, and is not overwritten ({error})") from error
    _check_same(target, header(replace(evaluation, episodes=())), empty)
    return evaluation


def _resumed(target: Path | None, empty: Evaluation, conversations: bool) -> dict[tuple[int, int], Played]:
    """The episodes of an earlier run of the same evaluation; its file is mended, or begun."""
    if target is None:
        return {}
    kept = {key: played for key, played in _kept(target, empty).items() if played.conversation or not conversations}
    write_whole(part_of(target), header(empty) + "\n" + "".join(_keyed(key, played) for key, played in kept.items()))
    return kept


def keeps_conversations(target: Path) -> bool:
    """Whether a run with this result file keeps everything that was said: not one that has begun without."""
    if target.exists():
        return conversations_of(target).exists()
    if not part_of(target).is_file():
        return True
    lines = part_of(target).read_text(encoding="utf-8", errors="replace").splitlines()
    return all(played.conversation for _, played in _read(lines[1:]))


def _reopen(target: Path, complete: Evaluation, conversations: bool) -> None:
    """Make a complete file that of an unfinished run again, which holds the episodes that count.

    Raises:
        InvalidOptionError: its conversations are not those of its episodes.
    """
    keys = [(number // complete.repeats, number % complete.repeats) for number in range(len(complete.episodes))]
    texts: list[Any] = [[] for _ in keys]
    if conversations:
        texts = [read_line(text) for text in bounded_lines(conversations_of(target))]
        if len(texts) != len(keys):
            raise InvalidOptionError(f"{conversations_of(target)} holds {len(texts)} conversations, not {len(keys)}")
    played = [Played(*each) for each in zip(complete.episodes, texts, strict=True)]
    kept = [_keyed(key, each) for key, each in zip(keys, played, strict=True) if not each.record.broken]
    head = header(replace(complete, episodes=()))
    write_whole(part_of(target), head + "\n" + "".join(kept))
    target.unlink()


def _kept(target: Path | None, empty: Evaluation) -> dict[tuple[int, int], Played]:
    """The episodes in the file of an unfinished run.

    Raises:
        InvalidOptionError: they are of another evaluation.
    """
    if target is None or not part_of(target).is_file():
        return {}
    lines = part_of(target).read_text(encoding="utf-8", errors="replace").splitlines()
    if lines and not (len(lines) == 1 and _is_beginning(lines[0], header(empty))):
        _check_same(part_of(target), lines[0], empty)
    return dict(_read(lines[1:]))


def _is_beginning(text: str, head: str) -> bool:
    """Whether a text is a header, cut or whole: of a run that has played nothing, nothing is lost."""
    try:
        return head.startswith(text) or json.loads(text)["format"] == FORMAT
    except (ValueError, TypeError, KeyError):
        return False


def has_begun(target: Path) -> bool:
    """Whether a result file is there, or that of an unfinished run with an episode."""
    part = part_of(target)
    return target.exists() or (part.is_file() and len(part.read_bytes().splitlines()) > 1)


def _check_same(path: Path, head: str, empty: Evaluation) -> None:
    """Raise `InvalidOptionError` naming what differs between a file's header and an evaluation."""
    try:
        there, here = (
            {**values, "details": chosen(values["details"])} for values in map(json.loads, (head, header(empty)))
        )
        if json.dumps(there, sort_keys=True) == json.dumps(here, sort_keys=True):
            return
        names = changed_facts(there, here)
    except (ValueError, AttributeError, KeyError, TypeError):
        names = "header"
    raise InvalidOptionError(f"{path} holds another evaluation (different: {names}); delete it or choose another file")


def changed_facts(there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """Names of the facts in which a file is of something else than what is played, with commas between them.

    Args:
        there, here: facts of the file, and of what is played; `details` are those about the agent.
    """
    named = sorted(name for name in here if name != "details" and there.get(name) != here[name])
    facts = differing([there["details"], here["details"]], chosen)
    return ", ".join([*named, *(f"details.{name}" for name in facts)])


def _keyed(key: tuple[int, int], played: Played) -> str:
    """The line of an episode in the file of an unfinished run."""
    values = {"key": list(key), "episode": json.loads(line(played.record)), "conversation": played.conversation}
    return json.dumps(values) + "\n"


def _read(lines: Sequence[str]) -> Iterator[tuple[tuple[int, int], Played]]:
    for text in lines:
        try:
            data = json.loads(text)
            index, repeat = data["key"]
            played = Played(read_record(data["episode"]), list(data["conversation"]))
        except (ValueError, TypeError, KeyError):
            continue  # A line cut by a kill; its episode is played again.
        if not played.record.broken:  # What broke is tried again.
            yield (index, repeat), played
