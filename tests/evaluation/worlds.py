"""Worlds that each break a promise, and their registration."""

from __future__ import annotations

import itertools
import os
import string
from dataclasses import replace
from random import Random
from typing import Any

import gymnasium

from tests.evaluation import telling_worlds
from tests.evaluation.spelling import LETTERS, SpellingEnv, Words
from textagent_gym import Outcome, Task
from textagent_gym.errors import PlanningBudgetError


class Puzzling(SpellingEnv):
    """Beside the shortest way, its planner's budget does not last."""

    def _oracle(self) -> tuple[str, ...]:
        if self.observation.startswith("No"):
            raise PlanningBudgetError("no plan was found within 1 state")
        return super()._oracle()


class LongWay(SpellingEnv):
    """Its oracle hesitates."""

    def _oracle(self) -> tuple[str, ...]:
        return super()._oracle() if self.observation.startswith("No") else ("hm", *super()._oracle())


class LostOracle(SpellingEnv):
    """Its oracle does not know the way."""

    def _oracle(self) -> tuple[str, ...]:
        return ("write z",)


class Underpaid(SpellingEnv):
    """A solved episode returns less than 1.0."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        observation, reward, *rest = super().step(action)
        return observation, reward * 0.999, *rest


class WageForNothing(SpellingEnv):
    """Whoever waits is paid for it."""

    def _act(self, action: str) -> Outcome:
        return Outcome("A gift.", 1, valid=False) if action == "" else super()._act(action)


class WonByNothing(SpellingEnv):
    """Whoever waits has won."""

    def _act(self, action: str) -> Outcome:
        return Outcome("", success=True) if action == "" else super()._act(action)


class Generous(SpellingEnv):
    """Any long text wins."""

    def _act(self, action: str) -> Outcome:
        return Outcome("Whatever.", success=True) if len(action) > 20 else super()._act(action)


class Hashed(SpellingEnv):
    """What it says depends on the hash seed of the process."""

    def _say(self) -> str:
        return f"{super()._say()} {hash(self.word) % 1000}"


class Forgetful(SpellingEnv):
    """What it says depends on how often it has spoken."""

    spoken = itertools.count()

    def _say(self) -> str:
        return f"{super()._say()} This is text {next(self.spoken)}."


class Unreliable(SpellingEnv):
    """A snapshot is of the beginning."""

    def _restore(self, world: Any) -> None:
        self._spelt = 0


class Sticky(SpellingEnv):
    """Something stays from one episode to the next, so that a replay is another episode."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._wrong = 0

    def _act(self, action: str) -> Outcome:
        outcome = super()._act(action)
        self._wrong += not outcome.valid
        return replace(outcome, observation=f"{outcome.observation} {self._wrong} mistakes so far.")

    def _snapshot(self) -> object:
        return self._spelt, self._wrong

    def _restore(self, world: Any) -> None:
        self._spelt, self._wrong = world


class Fragile(SpellingEnv):
    """Some strings are too much."""

    def _act(self, action: str) -> Outcome:
        action.encode()
        return super()._act(action)


class Leaving(SpellingEnv):
    """Some strings end the program, as if all were well."""

    def _act(self, action: str) -> Outcome:
        if action == "quit":
            raise SystemExit(0)
        return super()._act(action)


class Vanishing(SpellingEnv):
    """Some strings end the process, as if all were well."""

    def _act(self, action: str) -> Outcome:
        if action == "quit":
            os._exit(0)
        return super()._act(action)


class Unmakeable(SpellingEnv):
    """Making it ends the process, as if all were well."""

    def __init__(self, length: int = 5, **kwargs: Any) -> None:
        os._exit(0)


class Absent(SpellingEnv):
    """It ends the program before it says anything."""

    def _begin(self, task: Task) -> str:
        raise SystemExit(0)


class NotANumber(SpellingEnv):
    """Some rewards are none."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        observation, reward, *rest = super().step(action)
        return observation, float("nan") if "{" in action else reward, *rest


class Dense(SpellingEnv):
    """What it says depends on what it pays."""

    def _say(self) -> str:
        return super()._say() + (" Good." if self.reward_density else "")


class Consoling(SpellingEnv):
    """An episode that was not solved may return as much as one that was."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        observation, reward, *rest = super().step(action)
        return observation, 1.0 if self.reward_density == 1.0 else reward, *rest


class Waged(SpellingEnv):
    """Where only success should pay, mistakes do, too."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        observation, reward, *rest = super().step(action)
        return observation, 0.01 if observation.startswith("No") and action else reward, *rest


class Overpaid(SpellingEnv):
    """Who makes a mistake first is paid twice for success."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        failed = self.observation.startswith("No")
        observation, reward, *rest = super().step(action)
        return observation, reward + 1.0 if rest[2]["success"] and failed else reward, *rest

    def _say(self) -> str:
        return f"No. {super()._say()}" if self._mistaken else super()._say()

    def _begin(self, task: Task) -> str:
        self._mistaken = False
        return super()._begin(task)

    def _act(self, action: str) -> Outcome:
        self._mistaken = self._mistaken or action != f"write {self.word[self._spelt]}"
        return super()._act(action)


class Ordered(SpellingEnv):
    """What it says depends on the episodes that it has played before."""

    played = 0

    def _begin(self, task: Task) -> str:
        self.played += 1
        return f"{super()._begin(task)} This is episode {self.played}."


class SameWords(Words):
    """Every split has the same words."""

    def _make(self, split: str, index: int) -> str:
        return super()._make("train", index)


class Overlapping(SpellingEnv):
    """Splits are not disjoint."""

    source = SameWords


class ShortWords(Words):
    """Asking for more gives as much as before."""

    def _draw(self, random: Random) -> str:
        return "".join(random.choice(LETTERS) for _ in range(5))


class NoHarder(SpellingEnv):
    """Its knob turns nothing."""

    source = ShortWords


class EasyWords(Words):
    """Long words are spelt by anybody."""

    def _draw(self, random: Random) -> str:
        return super()._draw(random) if self.spec.length <= 5 else "a" * self.spec.length + super()._draw(random)


class Easier(SpellingEnv):
    """Longer words are easier: every letter is right."""

    def _act(self, action: str) -> Outcome:
        known = len(self.word) > 5 and action.startswith("write ")
        return super()._act(f"write {self.word[self._spelt]}" if known else action)


class Unpicklable(SpellingEnv):
    """What it has played is forgotten in a pickle."""

    def __reduce__(self) -> tuple[Any, ...]:
        return super().__reduce__()[:2]


class Alone(SpellingEnv):
    """Two of them get into each other's way."""

    begun: list[str] = []  # noqa: RUF012 (shared on purpose)

    def _begin(self, task: Task) -> str:
        self.begun.append(task.id)
        return super()._begin(task)

    def _say(self) -> str:
        return f"{super()._say()} {self.begun[-1]}"


class Loose(SpellingEnv):
    """Its observations are not in its space."""

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        observation, info = super().reset(**kwargs)
        return observation.encode(), info


class Plain(gymnasium.Env[str, str]):
    """A text environment of somebody else, without tasks."""

    observation_space = gymnasium.spaces.Text(100, charset=string.printable)
    action_space = gymnasium.spaces.Text(100, charset=string.printable)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self._number = str(self.np_random.integers(1000))
        return "guess a number", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        won = action == self._number
        return "yes" if won else "no", float(won), won, False, {"success": won}


WORLDS = {
    kind.__name__: kind
    for kind in (*globals().copy().values(), *vars(telling_worlds).values())
    if isinstance(kind, type) and issubclass(kind, SpellingEnv | Plain)
}


def register() -> None:
    """Register the worlds as spelling/NAME-v0."""
    for name, kind in WORLDS.items():
        gymnasium.register(f"spelling/{name}-v0", entry_point=f"{kind.__module__}:{name}", max_episode_steps=None)
