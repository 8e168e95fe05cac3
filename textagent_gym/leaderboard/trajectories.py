"""Episodes to step through: played again, with what the world knew before each action."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import gymnasium

from textagent_gym.core import TextEnv
from textagent_gym.errors import PlanningBudgetError
from textagent_gym.evaluation import EpisodeRecord, Part, play_until_whole
from textagent_gym.evaluation.episode import base_of
from textagent_gym.evaluation.records import bounded_lines, conversations_of, read_line
from textagent_gym.evaluation.results import make_part, records_of
from textagent_gym.knobs import AXES
from textagent_gym.leaderboard.conversations import remarks_of
from textagent_gym.leaderboard.entries import Entry
from textagent_gym.terminal import visible

LONGEST_TEXT = 20_000
"""Characters of one text that are shown: about ten screens."""
MOST_TURNS = 500
"""Turns of an episode that are shown: ten times the budget of a usual one."""
MOST_ACTIONS = 300
"""Admissible actions of a turn that are shown; more cannot be read."""


class _Recorded:
    """Does what was recorded, and notes what the world knows before each action.

    Args:
        env: environment that is played.
        actions: recorded actions.
    """

    name = "recorded"

    def __init__(self, env: gymnasium.Env[str, str], actions: tuple[str, ...]) -> None:
        self._base = base_of(env)
        self._actions = actions
        self.moments: list[dict[str, Any]] = []
        self.played: list[str | None] = []

    def reset(self, seed: int) -> None:
        """Begin with the first action again."""
        self.moments, self.played = [], []

    def act(self, observation: str, info: dict[str, Any]) -> str | None:
        """The next recorded action."""
        if self.moments:
            self.played.append(info.get("parsed_action"))
        if len(self.moments) == len(self._actions):
            return None
        self.moments.append(_moment(self._base))
        return self._actions[len(self.moments) - 1]


def _moment(base: TextEnv[Any]) -> dict[str, Any]:
    """What the world knows now: its admissible actions, and the optimal plan's next action and length, if it can."""
    moment: dict[str, Any] = {"admissible": None, "oracle": None, "left": None}
    if "admissible_actions" in base.supports:
        moment["admissible"] = base.admissible_actions()
    if "oracle" in base.supports:
        try:
            plan = base.oracle()
        except PlanningBudgetError:
            return moment
        moment["oracle"] = plan[0] if plan else None
        moment["left"] = None if plan is None else len(plan)
    return moment


def trajectories(entry: Entry, most: int) -> Iterator[tuple[Part, int, dict[str, Any]]]:
    """The first episodes of each part, as values of JSON; those whose world broke are left out.

    Args:
        entry: result that was verified.
        most: number of episodes per part.

    Yields:
        the part, the position of the episode in it, and what the viewer shows.
    """
    for part in entry.result.suite.parts:
        episodes = entry.result.evaluations[part.name].episodes[:most]
        conversations = bounded_lines(conversations_of(records_of(entry.folder, part)))
        with closing(make_part(part, entry.result.details)) as env:
            for number, (record, conversation) in enumerate(zip(episodes, conversations, strict=False)):
                if not record.broken:
                    yield part, number, _trajectory(env, record, remarks_of(read_line(conversation)))


def _trajectory(
    env: gymnasium.Env[str, str], record: EpisodeRecord, remarks: Sequence[dict[str, str]]
) -> dict[str, Any]:
    agent = _Recorded(env, record.actions[:MOST_TURNS])
    episode = play_until_whole(env, agent, options={"task": record.task}, seed=record.seed)
    played = [*agent.played, episode.info.get("parsed_action")]
    actions: dict[str, int] = {}
    turns = []
    for turn, moment, parsed, written in zip(episode.turns, agent.moments, played, remarks, strict=False):
        admissible = moment["admissible"]
        turns.append(
            {
                "observation": bounded(turn.observation),
                "answer": bounded(turn.action),
                "action": None if parsed is None else bounded(parsed),
                "reward": round(turn.reward, 6),
                "valid": turn.valid,
                "admissible": None
                if admissible is None
                else [actions.setdefault(bounded(action), len(actions)) for action in admissible[:MOST_ACTIONS]],
                "number": None if admissible is None else len(admissible),
                "oracle": None if moment["oracle"] is None else bounded(moment["oracle"]),
                "left": moment["left"],
                **{name: bounded(text) for name, text in written.items()},
            }
        )
    return {
        "task": bounded(record.task),
        "type": bounded(record.task_type),
        "instructions": bounded(str(episode.beginning.get("instructions", ""))),
        "actions": list(actions),
        "turns": turns,
        "cut": max(0, record.turns - MOST_TURNS),
        "last": bounded(episode.last_observation),
        "ending": ending(record),
        "return": round(record.total_reward, 6),
        "complexity": {name: record.complexity.get(name) for name in AXES} if record.complexity else {},
        "tokens": record.tokens,
    }


def bounded(text: str) -> str:
    """A text as the viewer shows it: terminal codes and marks of direction are visible, and it is not too long."""
    if len(text) > LONGEST_TEXT:
        text = f"{text[:LONGEST_TEXT]}\n[{len(text) - LONGEST_TEXT} more characters]"
    return visible(text)


def ending(record: EpisodeRecord) -> str:
    """How an episode ended, in a word or two."""
    if record.broken:
        return "broke"
    if record.success:
        return "solved"
    if record.stopped:
        return f"stopped: {bounded(record.stopped)[:40]}"
    return "turns ran out" if record.truncated else "lost"
