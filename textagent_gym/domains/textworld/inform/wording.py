"""What the parser says of a command: as far as it was understood, and why it means nothing."""

from __future__ import annotations

from collections.abc import Sequence

from textagent_gym.domains.textworld.inform.fiction import FIRST_DIRECTION
from textagent_gym.domains.textworld.inform.names import is_direction
from textagent_gym.domains.textworld.inform.naming import definite
from textagent_gym.domains.textworld.inform.problems import SENTENCES, Problem
from textagent_gym.domains.textworld.inform.reading import NUMBERS, SEVERAL_THINGS, TOPIC, UNSET, Reading
from textagent_gym.domains.textworld.inform.world import World

_SPOKEN_VERBS = {
    "i": "take inventory", "inv": "take inventory", "inventory": "take inventory",
    "l": "look", "x": "examine", "z": "wait",
}  # fmt: skip


def so_far(reading: Reading) -> str:
    """The command as far as it was understood."""
    verb = _SPOKEN_VERBS.get(reading.verb, reading.verb)
    return " ".join((verb, *said(reading, reading.pattern[: reading.index])))


def said(reading: Reading, pattern: Sequence[str | int | None]) -> list[str]:
    """Parts of a sentence as they were understood, in words."""
    spoken = []
    for part in pattern:
        if isinstance(part, str):
            spoken.append(part)
        elif part == SEVERAL_THINGS:
            spoken.append("those things")
        elif part == TOPIC:
            spoken.append("that")
        elif part is not None:
            names = reading.world.fiction.names
            spoken.append(names[part] if is_direction(part) else definite(reading.world, part, ""))
    return spoken


def complaint(reading: Reading, problem: Problem) -> str:
    """What the player is told of a command that means nothing."""
    pronoun, meant = reading.told_pronoun
    if problem == Problem.TOO_LONG:
        go = "(go) " if reading.sentence is None else ""
        reading.pattern, reading.index = list(reading.memory.understood), len(reading.memory.understood)
        return f"I only understood you as far as wanting to {go}{so_far(reading)}."
    if problem == Problem.GONE and meant != UNSET:
        blamed = reading.memory.blamed
        noun = definite(reading.world, blamed, "") if blamed else "nothing"
        return f"You can't see '{pronoun}' ({noun}) at the moment."
    if problem in (Problem.GONE, Problem.VAGUE):
        return f"I'm not sure what '{pronoun}' refers to."
    if problem == Problem.NOTHING and reading.nothing_to == "removing":
        holder = reading.inputs[1]
        if holder < FIRST_DIRECTION:  # Several things: Inform finds no words.
            return ""
        reading.memory.blamed = holder
        return _nothing_in(reading.world, holder)
    if problem == Problem.DEAF:
        return f"You can't talk to {definite(reading.world, reading.memory.blamed, '')}."
    if problem == Problem.TOO_FEW:
        words = {number: word for word, number in reversed(NUMBERS.items())}
        count = f"Only {words[reading.counted]}" if reading.counted else "None"
        return f"{count} of those {'is' if reading.counted <= 1 else 'are'} available."
    return SENTENCES[problem]


def _nothing_in(world: World, holder: int) -> str:
    """Why nothing can be taken from somewhere."""
    kind = world.fiction.kinds[holder]
    name = definite(world, holder, "", capital=True)
    if kind == "player":
        return "You seem to belong to yourself."
    if kind not in ("container", "supporter"):
        return "That can't contain things."
    if kind == "container" and not world.is_open(holder):
        return f"{name} isn't open."
    return SENTENCES[Problem.NOTHING] if world.contents(holder) else f"{name} is empty."
