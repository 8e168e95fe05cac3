"""What a world tells while the oracle's plan is known: each text, and what could be done when it was read."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from random import Random
from typing import Any

from textagent_gym.core import TextEnv
from textagent_gym.evaluation.subject import Subject
from textagent_gym.evaluation.walks import WALK, choose, commands_of, plan_of

_WALKS = 10  # Walks per task, at most: some end after a turn or two.
_ASKED = ("admissible_actions", "oracle_action")  # What `infos` asks for.


@dataclass(frozen=True, slots=True)
class Passage:
    """A text that a world has told: of what kind, and when.

    Attributes:
        kind: name of the text in a message.
        task: id of the task.
        text: the text; or the admissible actions in their order.
        plan: the oracle's plan.
        commands: admissible actions; none where the world does not list them.
        done: the last actions.
        after_action: whether it answers an action; what is told before is the goal.
        past: everything that was done before in the episode.
    """

    kind: str
    task: str
    text: str | tuple[str, ...]
    plan: tuple[str, ...]
    commands: frozenset[str]
    done: tuple[str, ...]
    after_action: bool
    past: frozenset[str]


def passages_in(subject: Subject, env: TextEnv[Any], index: int) -> Iterator[Passage]:
    """What is told of a task: in an episode of the oracle, and in walks of `WALK` turns or `_WALKS` episodes in all."""
    yield from _passages(subject, env, index, None)
    turns = 0
    for number in range(_WALKS):
        turns += yield from _passages(subject, env, index, Random(subject.seed + index + number * subject.tasks))
        if turns >= WALK:
            break


def _passages(subject: Subject, env: TextEnv[Any], index: int, draw: Random | None) -> Generator[Passage, None, int]:
    """What is told in an episode of the oracle, or in a walk, and a turn later again; returns the number of turns."""
    observation, info = env.reset(seed=subject.seed, options=subject.options(index))
    before: dict[str, str] = {}
    done: tuple[str, ...] = ()
    ended = False
    while not ended and (draw is None or len(done) < WALK):
        plan, commands = plan_of(env), frozenset(commands_of(env))
        texts = {"the observation": observation, **_texts(info)}
        if plan:
            passage = partial(Passage, task=env.task.id, plan=plan, commands=commands, past=frozenset(done))
            for kind, text in texts.items():
                yield passage(kind, text=text, done=done[-1:], after_action=bool(done))
            for kind, text in before.items():
                yield passage(f"{kind} of the turn before", text=text, done=done[-2:], after_action=True)
            if listed := info.get("admissible_actions"):
                yield passage("the order of info['admissible_actions']", text=tuple(listed), done=(), after_action=True)
        elif draw is None:
            break
        before = texts if done else {}
        action = plan[0] if draw is None else choose(env, draw)
        observation, _, terminated, truncated, info = env.step(action)
        done, ended = (*done, action), terminated or truncated
    return len(done)


def _texts(info: Mapping[str, Any]) -> dict[str, str]:
    """The texts in an `info`, by what they are called in a message; lists of texts are one."""
    known = {name: value for name, value in info.items() if name not in _ASKED}
    texts = {f"info[{name!r}]": ", ".join(_texts_in(value)) for name, value in known.items()}
    return {**texts, "the keys of info": ", ".join(known)}


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.decode(errors="replace")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts_in(key)
            yield from _texts_in(item)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _texts_in(item)
    elif is_dataclass(value) and not isinstance(value, type):
        yield from _texts_in([getattr(value, each.name) for each in fields(value)])
