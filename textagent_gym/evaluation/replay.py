"""Check a result file by playing its actions again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from textagent_gym.errors import TextAgentError
from textagent_gym.evaluation.episode import Episode, play_until_whole
from textagent_gym.evaluation.records import EpisodeRecord, Evaluation, record
from textagent_gym.evaluation.untrusted import spec_from_file


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Something in a result file that is not what happens here.

    Attributes:
        episode: position of the episode in the file, from 0; `None` for the file as a whole.
        task: id of its task; "" for the file as a whole.
        what: description of the difference, in words.
    """

    episode: int | None
    task: str
    what: str


class _Recorded:
    """Does what was recorded, and stops where the record ends."""

    name = "recorded"

    def __init__(self, actions: tuple[str, ...]) -> None:
        self._actions = actions
        self._next = 0

    def reset(self, seed: int) -> None:
        """Begin with the first action again."""
        self._next = 0

    def act(self, observation: str, info: dict[str, Any]) -> str | None:
        """The next recorded action."""
        if self._next == len(self._actions):
            return None
        self._next += 1
        return self._actions[self._next - 1]


def replay(
    evaluation: Evaluation, progress: Callable[[int], None] | None = None, *, spec: EnvSpec | None = None
) -> list[Mismatch]:
    """Play every recorded action again and compare; an empty list says that the file is right.

    Every task must be there, in the order of the split, as often as the header says. Who acted, `seconds` and `tokens`
    cannot be checked; nor can an episode whose world broke, which counts neither as won nor as lost.

    Args:
        evaluation: file to check.
        progress: called with the number of episodes checked so far.
        spec: environment to play in; by default the file's own, as far as it is safe to make (see `spec_from_file`).

    Raises:
        InvalidOptionError: the environment cannot be made, or should not be for a file of somebody else.
    """
    if spec is None:
        spec, _ = spec_from_file(evaluation.spec)
    env: gymnasium.Env[str, str] = gymnasium.make(spec)
    mismatches = [Mismatch(None, "", what) for what in _gaps(evaluation, str(getattr(env.unwrapped, "split", "")))]
    try:
        for number, expected in enumerate(evaluation.episodes):
            index, repeat = divmod(number, max(1, evaluation.repeats))
            if expected.broken:
                what = ""
            elif expected.seed != evaluation.seed + repeat:
                what = f"its seed is {expected.seed}, not {evaluation.seed + repeat}"
            else:
                what = _difference(env, expected, index, compare_texts=not spec.nondeterministic)
            if what:
                mismatches.append(Mismatch(number, expected.task, what))
            if progress is not None:
                progress(number + 1)
    finally:
        env.close()
    return mismatches


def _gaps(evaluation: Evaluation, split: str) -> list[str]:
    """What is wrong with the file as a whole."""
    gaps = []
    asked = evaluation.tasks * evaluation.repeats
    if evaluation.tasks < 1 or evaluation.repeats < 1:
        gaps.append(f"{evaluation.tasks} tasks with {evaluation.repeats} episodes each are no evaluation")
    elif len(evaluation.episodes) != asked:
        gaps.append(f"{len(evaluation.episodes)} episodes are recorded, and {asked} were asked for")
    if evaluation.split != split:
        gaps.append(f"split {evaluation.split!r} is recorded, and the environment plays {split!r}")
    return gaps


def _difference(env: gymnasium.Env[str, str], expected: EpisodeRecord, index: int, *, compare_texts: bool) -> str:
    """What went otherwise, in words; empty if nothing did."""
    if len(expected.actions) != len(expected.rewards) or not (expected.actions or expected.stopped):
        return f"{len(expected.actions)} actions but {len(expected.rewards)} rewards are recorded"
    agent = _Recorded(expected.actions)
    try:
        episode = play_until_whole(env, agent, options={"task_index": index}, seed=expected.seed)
    except (TextAgentError, gymnasium.error.Error) as error:
        return f"it cannot be played: {error}"
    if episode.broken:
        return f"it could not be checked: {episode.broken}"
    return _difference_of(episode, expected, compare_texts=compare_texts)


def _difference_of(episode: Episode, expected: EpisodeRecord, *, compare_texts: bool) -> str:
    """What an episode has that its record has not, in words."""
    now = record(episode, expected.seed)
    for turn, (reward, recorded) in enumerate(zip(now.rewards, expected.rewards, strict=False), start=1):
        if reward != recorded:
            return f"action {turn} earned {reward}, and {recorded} is recorded"
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
        return "the agent read something else than is recorded"
    return ""
