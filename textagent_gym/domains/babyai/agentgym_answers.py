"""What AgentGym answers to commands that change nothing, and its list of those that can be given.

The commands are ours, which are a little more than AgentGym's: `toggle` opens boxes, and `pick up` alone takes
what is in front. What AgentGym does not know, it does not recognize.
"""

from __future__ import annotations

from textagent_gym.domains.babyai.commands import WALKS, admissible, named_things
from textagent_gym.domains.babyai.grid import CLOSED, LOCKED, NOWHERE, OPEN, WALL, State, view

CHECK = "check available actions"
"""AgentGym's command that lists the others; whatever holds the word `check` does."""
NOT_RECOGNIZED = "The action is not recognized. Please check valid actions."
NO_CHANGE = "No change in state."


def available_actions(state: State, size: int | None) -> str:
    """The answer to `check available actions`."""
    listed = [text.replace("pick up ", "pickup ") for text in admissible(state, size)]
    return "You can take the following actions: " + ", ".join([*listed, CHECK])


def refusal(state: State, text: str, size: int | None) -> str | None:
    """The answer to a command that is refused; `None` where AgentGym tries it and shows once more what is seen.

    Args:
        state: moment of the episode.
        text: normalized command, one that cannot be carried out.
        size: width and depth of the view; `None` for the primitive set.
    """
    front = state.cells[state.front]
    kind = state.world.things[front].kind if front >= 0 else ""
    if not text:
        return NO_CHANGE
    if text == "move forward":
        blocked = front == WALL or kind == "box"
        return "There is a barrier in front of you, you can't move forward." if blocked else None
    if text == "drop":
        if state.carrying == NOWHERE:
            return "You cannot drop the object, as you are not carrying anything."
        return None if kind == "door" else "You cannot drop the object, as there is already an object in front of you."
    verb = next((verb for verb in WALKS if text.startswith(f"{verb} ")), None)
    if verb is None or size is None:
        return NOT_RECOGNIZED
    target = next((each for each in named_things(state, view(state, size)) if f"{verb} {each.name}" == text), None)
    if target is None:
        return NOT_RECOGNIZED
    if verb == "go to" and state.front == target.seen.cell:
        return NO_CHANGE
    reason = _reason(state, verb, target.thing)
    return f"You cannot {verb.replace('pick up', 'pickup')} {target.name}, as {reason}" if reason else NOT_RECOGNIZED


def _reason(state: State, verb: str, thing: int) -> str:
    """Why a walk cannot be made; "" where AgentGym has no such walk."""
    no_way = "there is no path leading to it."
    if verb == "go to":
        return no_way
    if verb == "pick up":
        return "" if state.world.is_door[thing] or state.carrying != NOWHERE else no_way
    if not state.world.is_door[thing]:
        return ""
    door = state.doors[thing]
    if verb == "go through":
        return {OPEN: no_way, CLOSED: "it is closed. You should toggle it first.", LOCKED: ""}[door]
    if door != LOCKED:
        return no_way if door == CLOSED else ""
    held = state.world.things[state.carrying] if state.carrying != NOWHERE else None
    if held is None or held.kind != "key":
        return "you are not carrying a key."
    if held.color != state.world.things[thing].color:
        return "the color of the key you are carrying does not match the color of door."
    return no_way
