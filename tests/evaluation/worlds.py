"""A small world that keeps every promise, and one that breaks each."""

from __future__ import annotations

import itertools
import os
import string
from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import gymnasium

from textagent_gym import Complexity, Outcome, Task, TextEnv
from textagent_gym.errors import PlanningBudgetError
from textagent_gym.knobs import Options, OptionsClass, knob
from textagent_gym.sources import GeneratedTasks
from textagent_gym.tasks import in_split

LETTERS = "abcdefghijklmnopqrst"


@dataclass(frozen=True, kw_only=True)
class WordOptions(Options):
    """What can be asked of this world."""

    length: int = knob(5, "number of letters", low=1, high=20, short="n", always=True, axis="solution_length")


class Words(GeneratedTasks[WordOptions, str]):
    """Words without end."""

    prefix = "Spelling"
    version = 1

    def _make(self, split: str, index: int) -> str:
        random = Random(f"{self.spec.length}/{split}/{index}")
        return next(word for word in iter(lambda: self._draw(random), "") if in_split(word, split))

    def _draw(self, random: Random) -> str:
        return "".join(random.choice(LETTERS) for _ in range(self.spec.length))

    def _measure(self, world: str) -> tuple[Complexity, int, str]:
        size = len(world)
        measured = Complexity(state_size=size, action_size=float(len(LETTERS)), solution_length=size, exact=True)
        return measured, size, ""


class SpellingEnv(TextEnv[Task]):
    """Spell a word; the world says which letter is next, in capitals."""

    source: type[Words] = Words
    default_max_turns = 30

    def __init__(self, length: int = 5, **kwargs: Any) -> None:
        self._source = self.source(WordOptions(length=length))
        super().__init__(self._source, **kwargs)
        self._spelt = 0

    @classmethod
    def declared_options(cls, given: Mapping[str, Any]) -> tuple[OptionsClass, ...]:
        return (WordOptions,)

    @property
    def word(self) -> str:
        return self._source.world(self.task)

    def _begin(self, task: Task) -> str:
        self._spelt = 0
        return (
            f"Spell a word of {len(self._source.world(task))} letters that begins with {self._source.world(task)[0]}."
        )

    def _act(self, action: str) -> Outcome:
        if action != f"write {self.word[self._spelt]}":
            return Outcome(f"No. {self._say()}", self._spelt, valid=False)
        self._spelt += 1
        return Outcome(self._say(), self._spelt, success=self._spelt == len(self.word))

    def _say(self) -> str:
        return "Done." if self._spelt == len(self.word) else f"Next comes {self.word[self._spelt]}."

    def _admissible_actions(self) -> tuple[str, ...]:
        return tuple(f"write {letter}" for letter in LETTERS)

    def _oracle(self) -> tuple[str, ...]:
        return tuple(f"write {letter}" for letter in self.word[self._spelt :])

    def _snapshot(self) -> object:
        return self._spelt

    def _restore(self, world: Any) -> None:
        self._spelt = world


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


class Talkative(SpellingEnv):
    """It tells what to do."""

    def _begin(self, task: Task) -> str:
        return f"{super()._begin(task)} You could " + ", then ".join(self._plan(task)) + "."

    def _plan(self, task: Task) -> list[str]:
        return [f"write {letter}" for letter in self._source.world(task)]


class TalkativeInfo(SpellingEnv):
    """It tells what to do beside the observation."""

    def _info(self) -> dict[str, Any]:
        return {**super()._info(), "hint": " ".join(self._oracle())}


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


class TalkativeList(SpellingEnv):
    """It tells what to do beside the observation, in a list."""

    def _info(self) -> dict[str, Any]:
        return {**super()._info(), "memory": {"plan": list(self._oracle())}}


class Hinting(SpellingEnv):
    """Every text but the first tells what to do next."""

    def _say(self) -> str:
        return f"{super()._say()} {self._hint()}"

    def _hint(self) -> str:
        return "" if self._spelt == len(self.word) else self._told(self._oracle()[0])

    def _told(self, right: str) -> str:
        return f"Hint: {right}."

    def _drawn(self) -> Random:
        """Equal in equal moments."""
        return Random(f"{self.task.id}/{len(self._actions)}/{self._spelt}")


class HintingInfo(SpellingEnv):
    """It tells what to do next beside the observation."""

    def _info(self) -> dict[str, Any]:
        return {**super()._info(), "notes": {"next": list(self._oracle()[:1])}}


class HintingTwo(Hinting):
    """It tells the next two commands."""

    def _told(self, right: str) -> str:
        return f"Hint: {' and '.join(self._oracle()[:2])}."


class HintingEarly(Hinting):
    """It tells what will be next after the next command."""

    def _told(self, right: str) -> str:
        return f"Later: {'nothing' if len(self._oracle()) < 2 else self._oracle()[1]}."


class HintingSometimes(Hinting):
    """Every second text tells what to do next."""

    def _told(self, right: str) -> str:
        return super()._told(right) if len(self._actions) % 2 else "No hint."


class HintingLoudly(Hinting):
    """It tells what to do next in capitals, with an article."""

    def _told(self, right: str) -> str:
        return right.replace(" ", " the ").upper()


class HintingAmongDecoys(Hinting):
    """It tells what to do next beside one or two other commands."""

    def _told(self, right: str) -> str:
        decoys = self._drawn().sample(self._admissible_actions(), 2)
        return f"Try one of {', '.join(sorted({right, *decoys}))}."


class HintingInAList(Hinting):
    """It lists all commands, and says then which one it is."""

    def _told(self, right: str) -> str:
        return f"You can {', '.join(self._admissible_actions())}. Best is {right}."


class Shouting(Hinting):
    """It lists all commands, and puts the right one in capitals."""

    def _told(self, right: str) -> str:
        return f"You can {', '.join(each.upper() if each == right else each for each in self._admissible_actions())}."


class Starring(Hinting):
    """It lists all commands, with a star beside the right one."""

    def _told(self, right: str) -> str:
        return "\n".join(f"{'*' if each == right else '-'} {each}" for each in self._admissible_actions())


class FirstInText(Hinting):
    """It lists all commands, the right one first."""

    def _told(self, right: str) -> str:
        others = [each for each in self._admissible_actions() if each != right]
        return f"You can {', '.join((right, *self._drawn().sample(others, len(others))))}."


class ThirdInText(Hinting):
    """It lists all commands, the right one in the third place."""

    place = 2

    def _told(self, right: str) -> str:
        others = [each for each in self._admissible_actions() if each != right]
        listed = self._drawn().sample(others, len(others))
        listed[self.place : self.place] = [right]
        return f"You can {', '.join(listed)}."


class FourthToLastInText(ThirdInText):
    """It lists all commands, the right one in the fourth place from the end."""

    place = -3


class TellingKeys(SpellingEnv):
    """It tells what to do next by a key."""

    def _info(self) -> dict[str, Any]:
        return {**super()._info(), "notes": dict.fromkeys(self._oracle()[:1], 1)}


class TellingBytes(SpellingEnv):
    """It tells what to do next in bytes."""

    def _info(self) -> dict[str, Any]:
        return {**super()._info(), "notes": b"".join(each.encode() for each in self._oracle()[:1])}


class TellingByName(SpellingEnv):
    """It tells what to do next by the name of a fact."""

    def _info(self) -> dict[str, Any]:
        return {**super()._info(), **dict.fromkeys(self._oracle()[:1], True)}


class Reporting(SpellingEnv):
    """It tells everything that was done, and so leaves out what was not."""

    def _say(self) -> str:
        return f"{super()._say()} Done: {', '.join(self._actions)}."


class Blank(Hinting):
    """It lists all commands, and marks the right one by what cannot be seen."""

    before, between, after = "", " ", ""

    def _told(self, right: str) -> str:
        commands = self._admissible_actions()
        marked = f"{self.before}{right.replace(' ', self.between)}{self.after}"
        return "You can\n" + "\n".join(f"- {marked if each == right else each}" for each in commands)


class BlankBefore(Blank):
    before = " "


class TabBefore(Blank):
    before = "\t"


class BlankAfter(Blank):
    after = " "


class BlankBetween(Blank):
    between = "  "


class WideBetween(Blank):
    between = "\u00a0"


class HiddenBefore(Blank):
    before = "\u200b"


class HiddenAfter(Blank):
    after = "\u2060"


class HiddenBetween(Blank):
    between = " \u200d"


class LastInText(Hinting):
    """It lists all commands, the right one last."""

    def _told(self, right: str) -> str:
        others = [each for each in self._admissible_actions() if each != right]
        return f"You can {', '.join((*self._drawn().sample(others, len(others)), right))}."


class FirstInInfo(SpellingEnv):
    """The first admissible action is the right one."""

    def _admissible_actions(self) -> tuple[str, ...]:
        return tuple(sorted(super()._admissible_actions(), key=lambda each: each != self._oracle()[0]))


class LeavingOut(Hinting):
    """It names all commands but the right one."""

    def _told(self, right: str) -> str:
        return f"Do not {' or '.join(each for each in self._admissible_actions() if each != right)}."


class HintingWithoutActions(Hinting):
    """It tells what to do next, and lists no admissible actions."""

    _admissible_actions = TextEnv._admissible_actions


class TellingIds(SpellingEnv):
    """What it calls its tasks holds the solution."""

    def _info(self) -> dict[str, Any]:
        letters = "/".join(f"write-{letter}" for letter in self.word)
        return {**super()._info(), "task": f"{self.task.id}/{letters}"}


class OneStep(SpellingEnv):
    """Its tasks take one action, which the first text tells."""

    def __init__(self, length: int = 1, **kwargs: Any) -> None:
        super().__init__(length, **kwargs)

    def _begin(self, task: Task) -> str:
        return f"{super()._begin(task)} (write {self._source.world(task)})"


class Listing(Hinting):
    """Every text lists what can be done, as it always does."""

    def _told(self, right: str) -> str:
        return f"You can {', '.join(self._admissible_actions())}."


class ListingBackwards(Hinting):
    """Every text lists what can be done, in an order of its own."""

    def _told(self, right: str) -> str:
        return f"You can {', '.join(self._admissible_actions()[::-1])}."


class ListingAnyhow(Hinting):
    """Every text lists what can be done, in an order that is drawn."""

    def _told(self, right: str) -> str:
        return f"You can {', '.join(self._drawn().sample(self._admissible_actions(), 20))}."


class NamingAnything(Hinting):
    """Every text names two commands that are drawn."""

    def _told(self, right: str) -> str:
        return f"You could {' or '.join(self._drawn().sample(self._admissible_actions(), 2))}."


class Reminding(Hinting):
    """Every text tells how the word ends."""

    def _told(self, right: str) -> str:
        return f"At last you will write {self.word[-1]}."


class Doubled(Words):
    """Words in which each letter follows itself."""

    def _draw(self, random: Random) -> str:
        return "".join(letter * 2 for letter in super()._draw(random))[: self.spec.length]


class Echoing(SpellingEnv):
    """It repeats what was done, which is often what is next."""

    source = Doubled

    def _act(self, action: str) -> Outcome:
        outcome = super()._act(action)
        return replace(outcome, observation=f"You {action}. {outcome.observation}")


class EchoingWithoutActions(Echoing):
    """It lists no admissible actions."""

    _admissible_actions = TextEnv._admissible_actions


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
    for kind in globals().copy().values()
    if isinstance(kind, type) and issubclass(kind, SpellingEnv | Plain)
}


def register() -> None:
    """Register the worlds as spelling/NAME-v0."""
    for name in WORLDS:
        gymnasium.register(f"spelling/{name}-v0", entry_point=f"{__name__}:{name}", max_episode_steps=None)
