"""Worlds that tell what to do next, and others that seem to and do not."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from tests.evaluation.spelling import SpellingEnv, Words
from textagent_gym import Outcome, Task, TextEnv


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
