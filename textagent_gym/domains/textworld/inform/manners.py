"""What Inform understands and TextWorld's games have no use for: most is refused, the rest changes nothing."""

from __future__ import annotations

from functools import partial

from textagent_gym.domains.textworld.inform.fiction import PLAYER
from textagent_gym.domains.textworld.inform.naming import that
from textagent_gym.domains.textworld.inform.turn import Rule, Turn
from textagent_gym.domains.textworld.inform.world import FIXED

_REFUSED = {
    "attacking": "Violence isn't the answer to this one.",
    "saying yes": "That was a rhetorical question.",
    "saying no": "That was a rhetorical question.",
    "burning": "This dangerous act would achieve little.",
    "waking up": "The dreadful truth is, this is not a dream.",
    "waking": "That seems unnecessary.",
    "thinking": "What a good idea.",
    "saying sorry": "Oh, don't apologise.",
    "swinging": "There's nothing sensible to swing here.",
    "drinking": "There's nothing suitable to drink here.",
    "tying": "You would achieve nothing by this.",
    "buying": "Nothing is on sale.",
    "climbing": "Little is to be achieved by that.",
    "sleeping": "You aren't feeling especially drowsy.",
    "taking all": "You have to be more specific!",
}
"""What is said to actions that are never done."""

_REPORTED = {
    "waiting": "Time passes.",
    "smelling": "You smell nothing unexpected.",
    "listening": "You hear nothing unexpected.",
    "tasting": "You taste nothing unexpected.",
    "jumping": "You jump on the spot.",
    "waving hands": "You wave.",
}
"""What is said to actions that are done and change nothing."""


def _refusing(text: str, turn: Turn, noun: int, second: int) -> bool:
    return turn.refuse(text)


def _reporting(text: str, turn: Turn, noun: int, second: int) -> bool:
    return turn.report(text)


def giving(turn: Turn, noun: int, second: int) -> bool:
    return turn.refuse(f"You can't give {turn.the(noun)} to yourself.")


def showing(turn: Turn, noun: int, second: int) -> bool:
    return turn.try_action("examining", noun)


def kissing(turn: Turn, noun: int, second: int) -> bool:
    return turn.refuse("You don't get much from that.")


def answering(turn: Turn, noun: int, second: int) -> bool:
    return turn.report("There is no reply.")


def telling(turn: Turn, noun: int, second: int) -> bool:
    return turn.refuse("You talk to yourself a while.")


def asking_for(turn: Turn, noun: int, second: int) -> bool:
    return turn.try_action("taking inventory")


def throwing(turn: Turn, noun: int, second: int) -> bool:
    if second != PLAYER:
        return turn.refuse("Futile.")
    return turn.refuse("You lack the nerve when it comes to the crucial moment.")


def touching(turn: Turn, noun: int, second: int) -> bool:
    return turn.report("You achieve nothing by this." if noun == PLAYER else "You feel nothing unexpected.")


def waving(turn: Turn, noun: int, second: int) -> bool:
    if turn.world.holder(noun) != PLAYER:
        return turn.refuse(f"But you aren't holding {that(noun)}.")
    return turn.report(f"You wave {turn.the(noun)}.")


def pulling(turn: Turn, noun: int, second: int) -> bool:
    if turn.fiction.kinds[noun] in FIXED:
        return turn.refuse("It is fixed in place.")
    if noun == PLAYER:
        return turn.refuse("You might not like that.")
    return turn.report("Nothing obvious happens.")


def pushing_to(turn: Turn, noun: int, second: int) -> bool:
    return turn.refuse(f"{turn.capital_the(noun)} cannot be pushed from place to place.")


def squeezing(turn: Turn, noun: int, second: int) -> bool:
    if noun == PLAYER:
        return turn.refuse("You might not like that.")
    return turn.report("You achieve nothing by this.")


def rubbing(turn: Turn, noun: int, second: int) -> bool:
    return turn.report(f"You rub {turn.the(noun)}.")


def setting(turn: Turn, noun: int, second: int) -> bool:
    return turn.refuse(f"No, you can't set {that(noun)} to anything.")


MANNERS: dict[str, Rule] = {
    **{action: partial(_refusing, text) for action, text in _REFUSED.items()},
    **{action: partial(_reporting, text) for action, text in _REPORTED.items()},
    "giving": giving,
    "showing": showing,
    "kissing": kissing,
    "answering": answering,
    "asking": answering,
    "telling": telling,
    "asking for": asking_for,
    "throwing": throwing,
    "touching": touching,
    "waving": waving,
    "pulling": pulling,
    "pushing": pulling,
    "turning": pulling,
    "pushing to": pushing_to,
    "squeezing": squeezing,
    "rubbing": rubbing,
    "setting": setting,
}
"""Rules of everything else by the names of their actions."""
