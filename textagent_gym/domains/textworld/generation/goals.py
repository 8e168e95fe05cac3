"""The goal of a drawn game in one sentence."""

from __future__ import annotations

from typing import Any

_STATES = {
    "in": ("the {0}", "in the {1}"),
    "on": ("the {0}", "on the {1}"),
    "at": ("the {0}", "in the {1}"),
    "open": ("the {0}", "open"),
    "closed": ("the {0}", "closed"),
    "locked": ("the {0}", "locked"),
    "eaten": ("the {0}", "eaten"),
    "consumed": ("the {0}", "eaten"),
}


def brief_goal(game: Any) -> str:
    """The goal without the way to it, in one sentence, from the quests that must be completed.

    A quest is completed once its condition has held after a turn, whether or not it still holds later. Where there are
    several they need never hold together, and the sentence says so.
    """
    names = {name: info.name or name for name, info in game.infos.items()}
    wishes: list[tuple[str, str]] = []
    for quest in game.quests:
        if quest.optional or not quest.win_events:
            continue
        event = quest.win_events[0]
        # The last action's own effect is the goal; what it only needed (being in the room, say) is not.
        facts = event.actions[-1].added if event.actions else event.condition.preconditions
        unlocked = (
            {fact.arguments for fact in event.actions[-1].removed if fact.name == "locked"} if event.actions else set()
        )
        for fact in sorted(facts, key=str):
            arguments = [names.get(variable.name, variable.name) for variable in fact.arguments]
            if fact.name == "in" and fact.arguments[-1].type == "I":
                wish = ("you", f"carrying the {arguments[0]}")
            elif fact.name == "at" and fact.arguments[0].type == "P":
                wish = ("you", f"in the {arguments[1]}")
            elif fact.name == "closed" and fact.arguments in unlocked:
                wish = (f"the {arguments[0]}", "unlocked")
            elif fact.name in _STATES:
                thing, state = _STATES[fact.name]
                wish = (thing.format(*arguments), state.format(*arguments))
            else:
                continue
            if wish not in wishes:
                wishes.append(wish)
    if not wishes:
        return "Your goal: win the game."
    if sum(1 for quest in game.quests if not quest.optional and quest.win_events) == 1:
        return f"Your goal: {' and '.join(f'{thing} must be {state}' for thing, state in wishes)}."
    once = ", ".join(f"{thing} {'have' if thing == 'you' else 'has'} been {state}" for thing, state in wishes)
    return f"Your goal is reached when each of these has come about at some time, in whatever order: {once}."
