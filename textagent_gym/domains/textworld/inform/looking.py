"""Looking: at rooms, at things, at what is carried; and what the game tells of itself."""

from __future__ import annotations

from textagent_gym.domains.textworld.inform.fiction import FIRST_ENTITY, PLAYER
from textagent_gym.domains.textworld.inform.turn import Rule, Turn

_HELP = (
    ("look", "describe the current room"),
    ("goal", "print the goal of this game"),
    ("inventory", "print player's inventory"),
    ("go <dir>", "move the player north, east, south or west"),
    ("examine ...", "examine something more closely"),
    ("eat ...", "eat edible food"),
    ("open ...", "open a door or a container"),
    ("close ...", "close a door or a container"),
    ("drop ...", "drop an object on the floor"),
    ("take ...", "take an object that is on the floor"),
    ("put ... on ...", "place an object on a supporter"),
    ("take ... from ...", "take an object from a container or a supporter"),
    ("insert ... into ...", "place an object into a container"),
    ("lock ... with ...", "lock a door or a container with a key"),
    ("unlock ... with ...", "unlock a door or a container with a key"),
)


def describe_room(turn: Turn) -> None:
    """The room's name, description, and what lies on its floor."""
    world, page = turn.world, turn.page
    room = world.room
    page.say_part(turn.fiction.names[room])
    page.put("\n")
    page.run_on_after_heading()
    page.say_part(turn.print_template(turn.fiction.descriptions[room - FIRST_ENTITY], room))
    page.put("\n")
    page.divide()
    turn.notice_last()
    if world.count(room):
        page.say(f"There is {turn.listed(room)} on the floor.")


def looking(turn: Turn, noun: int, second: int) -> bool:
    describe_room(turn)
    return True


def examining(turn: Turn, noun: int, second: int) -> bool:
    kind = turn.fiction.kinds[noun]
    paragraphs = []
    if kind == "direction":
        return turn.carry_out("You see nothing unexpected in that direction.")
    if kind == "player":
        paragraphs.append("As good-looking as ever.")
    elif turn.fiction[noun].description:
        paragraphs.append(turn.print_template(turn.fiction.descriptions[noun - FIRST_ENTITY], noun))
    shows = kind == "supporter" or (kind == "container" and turn.world.is_open(noun))
    if shows and turn.world.count(noun):
        paragraphs.append(_contents(turn, noun))
    elif shows and kind == "container" and not paragraphs:
        paragraphs.append(f"{turn.capital_the(noun)} is empty.")
    for paragraph in paragraphs or [f"You see nothing special about {turn.the(noun)}."]:
        turn.page.say_part(paragraph)
        turn.page.put("\n")
        turn.page.divide()
    return True


def looking_under(turn: Turn, noun: int, second: int) -> bool:
    return turn.carry_out("You find nothing of interest.")


def searching(turn: Turn, noun: int, second: int) -> bool:
    kind = turn.fiction.kinds[noun]
    if kind not in ("container", "supporter"):
        return turn.refuse("You find nothing of interest.")
    if kind == "container" and not turn.world.is_open(noun):
        return turn.refuse(f"You can't see inside, since {turn.the(noun)} is closed.")
    if turn.world.count(noun):
        return turn.carry_out(_contents(turn, noun))
    if kind == "container":
        return turn.carry_out(f"{turn.capital_the(noun)} is empty.")
    return turn.carry_out(f"There is nothing on {turn.the(noun)}.")


def taking_inventory(turn: Turn, noun: int, second: int) -> bool:
    if not turn.world.count(PLAYER):
        return turn.carry_out("You are carrying nothing.")
    return turn.carry_out(f"You are carrying: {turn.listed(PLAYER)}.")


def consulting(turn: Turn, noun: int, second: int) -> bool:
    return turn.report(f"You discover nothing of interest in {turn.the(noun)}.")


def telling_the_goal(turn: Turn, noun: int, second: int) -> bool:
    turn.page.say_part(turn.fiction.objective)
    turn.page.divide()
    return True


def helping(turn: Turn, noun: int, second: int) -> bool:
    turn.page.say_part("Available commands:\n")
    for command, meaning in _HELP:
        turn.page.say_part(f"  {command + ':':<21}{meaning}\n")
    turn.page.divide()
    return True


def _contents(turn: Turn, holder: int) -> str:
    """A sentence on what is in a container or on a supporter."""
    where = "In" if turn.fiction.kinds[holder] == "container" else "On"
    return f"{where} {turn.the(holder)} {turn.is_or_are(turn.world.count(holder))} {turn.listed(holder)}."


LOOKING: dict[str, Rule] = {
    "looking": looking,
    "examining": examining,
    "looking under": looking_under,
    "searching": searching,
    "taking inventory": taking_inventory,
    "consulting": consulting,
    "telling the goal": telling_the_goal,
    "helping": helping,
}
"""Rules of looking by the names of their actions."""
