"""Going through exits and doors, and into what nobody can go into."""

from __future__ import annotations

from textagent_gym.domains.textworld.inform.fiction import DIRECTIONS, FIRST_DIRECTION, PLAYER
from textagent_gym.domains.textworld.inform.looking import describe_room
from textagent_gym.domains.textworld.inform.naming import that_is
from textagent_gym.domains.textworld.inform.turn import Rule, Turn
from textagent_gym.domains.textworld.inform.world import NOWHERE

_OUTSIDE = FIRST_DIRECTION + DIRECTIONS.index("outside")
_PLACES = {"stand": "stand on", "sit": "sit down on", "lie": "lie down on"}
"""What is said to be impossible, by a word of the command."""


def before_going(turn: Turn, noun: int, second: int) -> bool:
    door = _way(turn, noun)[1]
    if door and not turn.world.is_open(door):
        return turn.refuse(f"You have to open the {turn.name(door)} first.")
    return True


def _way(turn: Turn, noun: int) -> tuple[int, int]:
    kind = turn.fiction.kinds[noun]
    if kind == "direction":
        return turn.world.way(noun)
    return turn.world.way_through(noun) if kind == "door" else (NOWHERE, 0)


def going(turn: Turn, noun: int, second: int) -> bool:
    room, _ = _way(turn, noun)
    if room == NOWHERE:
        return turn.refuse("You can't go that way.")
    turn.world.enter(room)
    turn.page.break_before_room()
    outer, turn.action = turn.action, "looking"
    describe_room(turn)
    turn.action = outer
    return True


def entering(turn: Turn, noun: int, second: int) -> bool:
    kind = turn.fiction.kinds[noun]
    if kind in ("door", "direction"):
        return turn.try_action("going", noun)
    if turn.world.is_within(PLAYER, noun) and noun != PLAYER:
        return turn.refuse(f"But you're already in {turn.the(noun)}.")
    place = next((place for word, place in _PLACES.items() if word in turn.text.split()), "enter")
    return turn.refuse(f"{that_is(noun)} not something you can {place}.")


def exiting(turn: Turn, noun: int, second: int) -> bool:
    if (turn.world.room, _OUTSIDE) in turn.fiction.ways:
        return turn.try_action("going", _OUTSIDE)
    return turn.refuse("But you aren't in anything at the moment.")


def getting_off(turn: Turn, noun: int, second: int) -> bool:
    return turn.refuse(f"But you aren't on {turn.the(noun)} at the moment.")


MOVING: dict[str, Rule] = {
    "before going": before_going,
    "going": going,
    "entering": entering,
    "exiting": exiting,
    "getting off": getting_off,
}
"""Rules of moving by the names of their actions."""
