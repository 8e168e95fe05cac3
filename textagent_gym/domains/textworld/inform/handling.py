"""Taking things, putting them somewhere, and working doors and containers."""

from __future__ import annotations

from textagent_gym.domains.textworld.inform.fiction import DIRECTIONS, FIRST_DIRECTION, PLAYER
from textagent_gym.domains.textworld.inform.naming import it_is_not, that
from textagent_gym.domains.textworld.inform.turn import Rule, Turn
from textagent_gym.domains.textworld.inform.world import FIXED

_DOWN = FIRST_DIRECTION + DIRECTIONS.index("down")
_CAPACITY = 100  # Things that a container or supporter can hold; Inform's default.


def before_opening(turn: Turn, noun: int, second: int) -> bool:
    if not turn.world.is_locked(noun):
        return True
    key = turn.fiction.key_of.get(noun, 0)
    if not key:
        return turn.refuse(f"The {turn.name(noun)} is welded shut.")
    return turn.refuse(f"You have to unlock the {turn.name(noun)} with the {turn.name(key)} first.")


def taking(turn: Turn, noun: int, second: int) -> bool:
    world = turn.world
    if noun == PLAYER:
        return turn.refuse("You are always self-possessed.")
    if world.holder(noun) == PLAYER:
        return turn.refuse("You already have that.")
    if turn.fiction.kinds[noun] in FIXED:
        return turn.refuse("That's fixed in place.")
    if world.is_full(PLAYER, turn.fiction.capacity):
        return turn.refuse("You're carrying too many things already.")
    source = world.holder(noun)
    world.move(noun, PLAYER)
    if source == world.room:
        return turn.report(f"You pick up {turn.the(noun)} from the ground.")
    return turn.report(f"You take {turn.the(noun)} from {turn.the(source)}.")


def removing(turn: Turn, noun: int, second: int) -> bool:
    holder = turn.world.holder(noun)
    if holder != second:
        return turn.refuse(f"But {it_is_not(noun)} there now.")
    if holder == PLAYER:
        return turn.try_action("taking off", noun)
    return turn.try_action("taking", noun)


def taking_off(turn: Turn, noun: int, second: int) -> bool:
    return turn.refuse(f"You aren't wearing {turn.the(noun)}.")


def wearing(turn: Turn, noun: int, second: int) -> bool:
    return turn.refuse(f"You can't wear {that(noun)}!")


def dropping(turn: Turn, noun: int, second: int) -> bool:
    world = turn.world
    if noun == PLAYER:
        return turn.refuse("You lack the dexterity.")
    if world.holder(noun) == world.room:
        return turn.refuse(f"{turn.capital_the(noun)} is already here.")
    if world.holder(noun) != PLAYER:
        return turn.refuse("You haven't got that.")
    world.move(noun, world.room)
    return turn.report(f"You drop {turn.the(noun)} on the ground.")


def putting(turn: Turn, noun: int, second: int) -> bool:
    return _place(turn, noun, second, "supporter")


def inserting(turn: Turn, noun: int, second: int) -> bool:
    return _place(turn, noun, second, "container")


def _place(turn: Turn, noun: int, second: int, kind: str) -> bool:
    world, on = turn.world, kind == "supporter"
    if second == _DOWN or second == world.holder(PLAYER):
        return turn.try_action("dropping", noun)
    if world.holder(noun) != PLAYER:
        return turn.demand(noun)
    if noun == second:
        return turn.refuse(f"You can't put something {'on top of' if on else 'inside'} itself.")
    is_kind = turn.fiction.kinds[second] == kind
    if not on and turn.fiction.kinds[second] == "container" and not world.is_open(second):
        return turn.refuse(f"{turn.capital_the(second)} is closed.")
    if not is_kind and on:
        return turn.refuse(f"Putting things on {turn.the(second)} would achieve nothing.")
    if not is_kind:
        return turn.refuse(f"{that(second).capitalize()} can't contain things.")
    if world.is_full(second, _CAPACITY):
        return turn.refuse(f"There is no more room {'on' if on else 'in'} {turn.the(second)}.")
    world.move(noun, second)
    if turn.several:
        return turn.report("Done.")
    return turn.report(f"You put {turn.the(noun)} {'on' if on else 'into'} {turn.the(second)}.")


def opening(turn: Turn, noun: int, second: int) -> bool:
    world = turn.world
    kind = turn.fiction.kinds[noun]
    if kind not in ("door", "container"):
        return turn.refuse(f"{it_is_not(noun).capitalize()} something you can open.")
    if world.is_open(noun):
        return turn.refuse("That's already open.")
    world.set("open", noun)
    if kind == "container" and world.count(noun):
        return turn.report(f"You open {turn.the(noun)}, revealing {turn.listed(noun)}.")
    return turn.report(f"You open {turn.the(noun)}.")


def closing(turn: Turn, noun: int, second: int) -> bool:
    if turn.fiction.kinds[noun] not in ("door", "container"):
        return turn.refuse(f"{it_is_not(noun).capitalize()} something you can close.")
    if not turn.world.is_open(noun):
        return turn.refuse("That's already closed.")
    turn.world.set("open", noun, False)
    return turn.report(f"You close {turn.the(noun)}.")


def locking(turn: Turn, noun: int, second: int) -> bool:
    world = turn.world
    if turn.fiction.kinds[noun] not in ("door", "container"):
        return turn.refuse(
            f"{that(noun).capitalize()} {'do' if noun == PLAYER else 'does'}n't seem to be something you can lock."
        )
    if world.is_locked(noun):
        return turn.refuse("That's locked at the moment.")
    if world.is_open(noun):
        return turn.refuse(f"First you would have to close {turn.the(noun)}.")
    if turn.fiction.key_of.get(noun, 0) != second:
        return turn.refuse("That doesn't seem to fit the lock.")
    world.set("locked", noun)
    return turn.report(f"You lock {turn.the(noun)}.")


def unlocking(turn: Turn, noun: int, second: int) -> bool:
    world = turn.world
    if turn.fiction.kinds[noun] not in ("door", "container"):
        return turn.refuse(
            f"{that(noun).capitalize()} {'do' if noun == PLAYER else 'does'}n't seem to be something you can unlock."
        )
    if not world.is_locked(noun):
        return turn.refuse("That's unlocked at the moment.")
    if turn.fiction.key_of.get(noun, 0) != second:
        return turn.refuse("That doesn't seem to fit the lock.")
    world.set("locked", noun, False)
    return turn.report(f"You unlock {turn.the(noun)}.")


def switching(turn: Turn, noun: int, second: int) -> bool:
    return turn.refuse(f"{it_is_not(noun).capitalize()} something you can switch.")


HANDLING: dict[str, Rule] = {
    "taking": taking,
    "removing": removing,
    "taking off": taking_off,
    "wearing": wearing,
    "dropping": dropping,
    "putting": putting,
    "inserting": inserting,
    "before opening": before_opening,
    "opening": opening,
    "closing": closing,
    "locking": locking,
    "unlocking": unlocking,
    "switching on": switching,
    "switching off": switching,
}
"""Rules of handling things by the names of their actions."""
