"""Episodes that two environments play alike, step by step, for promises that compare them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from random import Random
from typing import Any

import gymnasium

from textagent_gym.core import TextEnv
from textagent_gym.errors import PlanningBudgetError
from textagent_gym.evaluation.subject import Subject

WALK = 30
"""Actions of an episode that is compared step by step."""

Step = tuple[str, float, bool, bool, dict[str, Any]]
"""What a reset or a step returns: observation, reward, terminated, truncated and `info`."""


def begin(env: gymnasium.Env[str, str], options: dict[str, Any] | None = None, seed: int | None = None) -> Step:
    observation, info = env.reset(seed=seed, options=options)
    return observation, 0.0, False, False, info


def do(env: gymnasium.Env[str, str], actions: Sequence[str]) -> tuple[Step, ...]:
    """What each action returns, until the episode ends."""
    steps: list[Step] = []
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(action)
        steps.append((observation, float(reward), terminated, truncated, info))
        if terminated or truncated:
            break
    return tuple(steps)


def walk(
    env: gymnasium.Env[str, str], options: dict[str, Any] | None, draw: Random, most: int, seed: int | None = None
) -> tuple[tuple[Step, ...], tuple[str, ...]]:
    """Begin a task and act; returns each step, the reset first, and the actions."""
    begun = begin(env, options, seed)
    steps, actions = proceed(env, draw, most)
    return (begun, *steps), actions


def proceed(env: gymnasium.Env[str, str], draw: Random, most: int) -> tuple[tuple[Step, ...], tuple[str, ...]]:
    """Act as the oracle does, at random, or in vain; returns what each step returned, and the actions."""
    steps: tuple[Step, ...] = ()
    actions: list[str] = []
    while len(actions) < most and not (steps and (steps[-1][2] or steps[-1][3])):
        actions.append(choose(env, draw))
        steps = (*steps, *do(env, actions[-1:]))
    return steps, tuple(actions)


def choose(env: gymnasium.Env[str, str], draw: Random) -> str:
    """An action: the oracle's, an admissible one, or one of no sense."""
    base, chance = env.unwrapped, draw.random()
    if isinstance(base, TextEnv):
        if chance < 0.4 and "oracle" in base.supports:
            plan = plan_of(base)
            if plan:
                return plan[0]
        commands = commands_of(env)
        if chance < 0.9 and commands:
            return draw.choice(commands)
    return draw.choice(("look", "wait a moment", "xyzzy"))


def plan_of(base: TextEnv[Any]) -> tuple[str, ...]:
    """The oracle's plan; none where the goal is out of reach, or the planner's budget does not last."""
    try:
        return base.oracle() or ()
    except PlanningBudgetError:
        return ()


def commands_of(env: gymnasium.Env[str, str]) -> tuple[str, ...]:
    """The admissible actions; none where the world does not list them."""
    base = env.unwrapped
    if not isinstance(base, TextEnv) or "admissible_actions" not in base.supports:
        return ()
    return base.admissible_actions()


def transcripts(subject: Subject, *, backwards: bool = False) -> list[list[str]]:
    """One episode per seed: its steps, then its actions.

    Args:
        subject: world that is played.
        backwards: whether the episode of the last seed is played first.
    """
    episodes = []
    with closing(subject.make()) as env:
        for seed in range(subject.seed, subject.seed + subject.tasks)[:: -1 if backwards else 1]:
            steps, actions = walk(env, None, Random(seed), WALK, seed=seed)
            episodes.append([*map(repr, steps), repr(actions)])
    return episodes[:: -1 if backwards else 1]
