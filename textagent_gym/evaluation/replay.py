"""Check a result file by playing its actions again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import gymnasium

from textagent_gym.evaluation.records import EpisodeRecord, Evaluation


@dataclass(frozen=True, slots=True)
class Mismatch:
    """An episode that went otherwise when it was played again."""

    episode: int
    task: str
    what: str


def replay(evaluation: Evaluation, progress: Callable[[EpisodeRecord], None] | None = None) -> list[Mismatch]:
    """Play every recorded action again and compare rewards and ending; an empty list says that the file is right.

    Args:
        evaluation: what to check.
        progress: called after each episode.
    """
    env = gymnasium.make(evaluation.env, **evaluation.kwargs)
    mismatches = []
    try:
        for number, record in enumerate(evaluation.episodes):
            what = _difference(env, record)
            if what:
                mismatches.append(Mismatch(number, record.task, what))
            if progress is not None:
                progress(record)
    finally:
        env.close()
    return mismatches


def _difference(env: gymnasium.Env[str, str], record: EpisodeRecord) -> str:
    """What went otherwise, in words; empty if nothing did."""
    if len(record.actions) != len(record.rewards) or not record.actions:
        return f"{len(record.actions)} actions but {len(record.rewards)} rewards are recorded"
    _, info = env.reset(seed=record.seed, options={"task": record.task})
    ended, invalid = (False, False), 0
    for turn, (action, reward) in enumerate(zip(record.actions, record.rewards, strict=True), start=1):
        if any(ended):
            return f"the episode ended after {turn - 1} actions, and {len(record.actions)} are recorded"
        _, found, terminated, truncated, info = env.step(action)
        ended = (terminated, truncated)
        invalid += not info.get("valid_action", True)
        if float(found) != reward:
            return f"action {turn} earned {found}, and {reward} is recorded"
    expected = (record.terminated, record.truncated, record.success, record.invalid_actions)
    if (*ended, bool(info.get("success", False)), invalid) != expected:
        return f"it ended with terminated, truncated = {ended} and success = {info.get('success')}, not as recorded"
    return ""
