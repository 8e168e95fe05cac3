"""Results whose actions are the oracle's or the expert's: a sign, not a proof, that these have played.

Whoever plays well does what the oracle does wherever only one action is best. So what counts are turns with a choice:
where k >= 2 admissible actions lead equally far from the goal, among them the reference's, and the agent has taken one
of them. An agent that does not know the reference takes its very action with probability 1/k; the number of times that
it does is then a sum of independent trials with these probabilities, and the p-value is the probability of at least as
many. A policy that was trained on the oracle's demonstrations has its habits, and is flagged, too.

A world that has an expert but no oracle knows no distance to the goal, so nobody knows which actions are as good, and
chance has no number. There, whole long episodes are compared: of ways of many actions to a goal there are many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec

from textagent_gym.core import Snapshot, TextEnv
from textagent_gym.errors import TextAgentError
from textagent_gym.evaluation.episode import base_of
from textagent_gym.evaluation.records import EpisodeRecord, Evaluation
from textagent_gym.evaluation.trust import RECOMPUTED

SIGNIFICANT = 0.001
"""Largest p-value of a copy: of a thousand honest results, one or two are flagged."""
_MOST_TURNS = 100  # Turns that are looked at: every admissible action of each is tried, which takes a plan each time.
_LONG = 20  # Actions of an episode that is compared as a whole: short ones may have one good way.
_MOST_EPISODES = 10  # Episodes that are compared as a whole.
_NEEDS = {"admissible_actions", "oracle", "snapshot"}


@dataclass(frozen=True, slots=True)
class Copy:
    """How often an agent has done the very same as a reference, where others were as good.

    Attributes:
        reference: "oracle" or "expert".
        turns: number of turns with a choice.
        agreed: number of these in which the agent did the same.
        expected: number that chance would give.
        p_value: probability of at least as many by chance.
    """

    reference: str
    turns: int
    agreed: int
    expected: float
    p_value: float

    def __str__(self) -> str:
        return (
            f"its actions are the {self.reference}'s in {self.agreed} of {self.turns} turns in which others were as "
            f"good, and chance would give {self.expected:.1f} (p = {self.p_value:.2g})"
        )


@dataclass(frozen=True, slots=True)
class EpisodeCopy:
    """How many long episodes are, action by action, those of the expert, in a world without an oracle.

    Attributes:
        episodes: number of solved episodes of at least 20 actions.
        same: number of these whose every action is the expert's.
        actions: number of actions in the latter.
    """

    episodes: int
    same: int
    actions: int

    def __str__(self) -> str:
        return (
            f"every action is the expert's in {self.same} of {self.episodes} long episodes ({self.actions} actions); "
            "this world does not tell how many others were as good"
        )


def find_copies(evaluation: Evaluation, spec: EnvSpec) -> list[Copy | EpisodeCopy]:
    """References whose very actions an agent has taken more often than chance allows (p at most `SIGNIFICANT`).

    The first turns of solved episodes are looked at. Where the world has an expert but no oracle, two long episodes
    that are the expert's are a copy. It is empty for worlds with neither, or in which equal actions may have other
    results.

    Args:
        evaluation: result, whose episodes a replay has confirmed.
        spec: environment that was played.
    """
    with closing(gymnasium.make(spec)) as env, closing(gymnasium.make(spec)) as other:
        base, twin = base_of(env), base_of(other)
        if "oracle" not in base.supports and base.supports >= {"expert", "snapshot"} and not spec.nondeterministic:
            copy = _expert_episodes(env, base, evaluation)
            return [copy] if copy.same > 1 else []
        if not base.supports >= _NEEDS or not base.deterministic or spec.nondeterministic:
            return []
        references = ["oracle", *(["expert"] if "expert" in base.supports else [])]
        chances: dict[str, list[float]] = {name: [] for name in references}
        agreed = dict.fromkeys(references, 0)
        looked = 0
        for number, episode in enumerate(evaluation.episodes):
            if not episode.success or episode.broken or looked >= _MOST_TURNS:
                continue
            index = evaluation.first + number // evaluation.repeats
            for moment, action, wanted in _turns(env, base, episode, index):
                looked += 1
                if looked > _MOST_TURNS:
                    break
                for name, k, same in _choices(twin, moment, action, wanted):
                    chances[name].append(1 / k)
                    agreed[name] += same
    copies = [
        Copy(name, len(some), agreed[name], sum(some), tail(some, agreed[name]))
        for name, some in chances.items()
        if some
    ]
    return [copy for copy in copies if copy.p_value <= SIGNIFICANT]


def worded(flags: Sequence[str], trust: Sequence[str]) -> tuple[str, ...]:
    """Flags as a reader should take them: a policy whose tokens were computed again has played, however it plays.

    Args:
        flags: sentences about copies.
        trust: levels of trust that were proven.
    """
    if RECOMPUTED not in trust:
        return tuple(flags)
    return tuple(f"{flag} Its tokens were computed again: it is the policy that plays like this." for flag in flags)


def labelled(flags: Sequence[str], trust: Sequence[str]) -> tuple[str, ...]:
    """Flags as a command prints them (see `worded`): only a note where tokens were computed again."""
    label = "Note" if RECOMPUTED in trust else "Flag"
    return tuple(f"{label}: {flag}" for flag in worded(flags, trust))


def _expert_episodes(env: gymnasium.Env[str, str], base: TextEnv[Any], evaluation: Evaluation) -> EpisodeCopy:
    """The long episodes of a result, compared with the expert's."""
    long = [
        (evaluation.first + number // evaluation.repeats, episode)
        for number, episode in enumerate(evaluation.episodes)
        if episode.success and not episode.broken and episode.turns >= _LONG
    ][:_MOST_EPISODES]
    same = [episode.turns for index, episode in long if _is_experts(env, base, episode, index)]
    return EpisodeCopy(len(long), len(same), sum(same))


def _is_experts(env: gymnasium.Env[str, str], base: TextEnv[Any], episode: EpisodeRecord, index: int) -> bool:
    """Whether every action that the world was sent in an episode is the expert's."""
    env.reset(seed=episode.seed, options={"task_index": index})
    expert, last = base.expert(), None
    for answer in episode.actions:
        expert.observe(last, base.observation)
        wanted = expert.action()
        env.step(answer)
        last = base.snapshot().actions[-1]
        if folded(last) != folded(wanted):
            return False
    return True


def tail(chances: Sequence[float], count: int) -> float:
    """Probability that at least `count` of independent trials succeed.

    >>> tail([0.5, 0.5], 2), tail([0.2, 0.7], 0)
    (0.25, 1.0)
    """
    if count <= 0:
        return 1.0
    distribution = np.ones(1)
    for chance in chances:
        distribution = np.convolve(distribution, (1 - chance, chance))
    return float(min(1.0, distribution[count:].sum()))


def folded(action: str) -> str:
    """An action without what most worlds do not mind: case, and spaces.

    >>> folded(" Take  LAMP ")
    'take lamp'
    """
    return " ".join(action.casefold().split())


def _turns(
    env: gymnasium.Env[str, str], base: TextEnv[Any], episode: EpisodeRecord, index: int
) -> Iterator[tuple[Snapshot, str, dict[str, str]]]:
    """Each moment of an episode, the action that the world was sent, and those of the references."""
    env.reset(seed=episode.seed, options={"task_index": index})
    expert = base.expert() if "expert" in base.supports else None
    last: str | None = None
    for answer in episode.actions:
        wanted = {}
        try:
            plan = base.oracle()
        except TextAgentError:  # The planner's budget is spent.
            return
        if plan:
            wanted["oracle"] = plan[0]
        if expert is not None:
            expert.observe(last, base.observation)
            wanted["expert"] = expert.action()
        moment = base.snapshot()
        env.step(answer)
        last = base.snapshot().actions[-1]
        yield moment, last, wanted


def _choices(
    twin: TextEnv[Any], moment: Snapshot, action: str, wanted: dict[str, str]
) -> Iterator[tuple[str, int, bool]]:
    """The references whose action has equals: its name, the number of equals, and whether the agent did the same."""
    twin.restore(moment)
    distances = {each: _distance_after(twin, moment, each) for each in twin.admissible_actions()}
    # Whoever writes the reference's action in other letters or with other spaces has taken it.
    action = {folded(each): each for each in distances}.get(folded(action), action)
    for name, reference in wanted.items():
        equal = [each for each, distance in distances.items() if distance == distances.get(reference)]
        if reference in distances and action in equal and len(equal) > 1:
            yield name, len(equal), action == reference


def _distance_after(twin: TextEnv[Any], moment: Snapshot, action: str) -> int | None:
    """Number of actions to the goal after another one; `None` where it is out of reach or not known."""
    twin.restore(moment)
    twin.step(action)
    try:
        plan = twin.oracle()
    except TextAgentError:
        return None
    return None if plan is None else len(plan)
