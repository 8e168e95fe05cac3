"""Labels: what an expert would do in each state that an episode visits, and the conversations that teach it.

An expert that answers from any state can be asked about the states of a policy's own episode. The history stays as the
policy made it; only the action of the labelled turn is replaced. So each turn in which the policy did something else
ends a conversation of its own, and all turns in which it did as the label says share the conversation that was played
(o: observation, a: action, l: label where it differs; what is learned is in brackets):

    played          o1 a1 o2 a2 o3 a3
    rows            o1 [a1] o2 a2 o3 [a3]           turns 1 and 3 have the label that was played
                    o1 a1 o2 [l2]                   turn 2 has another one

Every label is learned once, behind the ids that the policy had read and sampled when it was asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from baselines.envs.labelled import LABEL, Labelled
from baselines.policy.chat import ChatFormat
from baselines.rollout.trajectory import Trajectory, Turn
from textagent_gym.evaluation import play_until_whole

if TYPE_CHECKING:
    from baselines.rollout import EpisodeRequest

NOT_LEARNED = -100
"""Label of a token that is not learned, as PyTorch's cross entropy and TRL have it."""

Row = dict[str, list[int]]
"""A conversation as TRL takes it: `input_ids`, and `labels`, which are `NOT_LEARNED` or the id of the same place."""


class _LabelFollower:
    """An agent that does what the labels say, and stops where there is none."""

    name = "labels"

    def reset(self, seed: int) -> None:
        """A new episode begins; nothing is drawn at random."""

    def act(self, observation: str, info: dict[str, Any]) -> str | None:
        """The label."""
        label: str | None = info[LABEL]
        return label


def demonstrate(env: Labelled, chat: ChatFormat, request: EpisodeRequest, *, longest: int) -> Trajectory | None:
    """An episode of the expert, in the ids that a policy would have read and sampled.

    Args:
        env: environment with labels.
        chat: format of the conversation.
        request: episode to be played; nothing is sampled.
        longest: number of ids after which a conversation is cut, as a policy's context would cut it.

    Returns:
        the episode, without turns where the expert has no first answer; `None` if the world broke each time.
    """
    episode = play_until_whole(env, _LabelFollower(), options=request.options, seed=request.seed or 0)
    if episode.broken:
        return None
    instructions = str(episode.beginning.get("instructions", ""))
    first = episode.observations[0]
    prompt = chat.opening(first, "" if instructions in first else instructions)
    turns: list[Turn] = []
    length = 0
    for turn, (_, following) in zip(episode.turns, pairwise(episode.observations), strict=True):
        action = chat.reply(turn.action)
        length += len(prompt) + len(action)
        if turns and length > longest:
            break
        scores = (0.0,) * len(action)
        turns.append(
            Turn(
                tuple(prompt),
                tuple(action),
                scores,
                turn.reward,
                turn.action,
                turn.observation,
                turn.valid,
                label=turn.action,
            )
        )
        prompt = chat.following(following)
    return Trajectory(
        tuple(turns),
        request.group,
        task=episode.info.get("task"),
        success=episode.success,
        terminated=episode.terminated,
        truncated=episode.truncated,
        overflow=len(turns) < len(episode.turns),
        last_observation=episode.observations[len(turns)],
    )


def first_labels(turns: Sequence[Turn], limit: int) -> list[Turn]:
    """The turns of an episode up to the one with the last label that the limit allows."""
    kept: list[Turn] = []
    for turn in turns:
        if limit == 0:
            break
        kept.append(turn)
        limit -= turn.label is not None
    return kept


def rows_of(turns: Sequence[Turn], chat: ChatFormat) -> list[Row]:
    """The conversations that teach the labels of an episode, each label once; see the top of this file."""
    ids: list[int] = []
    labels: list[int] = []
    end = 0  # Of the last action that is learned in the conversation that was played.
    rows: list[Row] = []
    for turn in turns:
        ids += turn.prompt
        labels += [NOT_LEARNED] * len(turn.prompt)
        wanted = None if turn.label is None else chat.reply(turn.label)
        played = wanted == list(turn.action)
        if wanted is not None and not played:
            rows.append({"input_ids": ids + wanted, "labels": [NOT_LEARNED] * len(ids) + wanted})
        ids += turn.action
        labels += turn.action if played else [NOT_LEARNED] * len(turn.action)
        end = len(ids) if played else end
    return [{"input_ids": ids[:end], "labels": labels[:end]}, *rows] if end else rows
