"""What actions do and say: Inform's standard rules, and those that TextWorld adds to them."""

from __future__ import annotations

from textagent_gym.domains.textworld.inform.food import FOOD
from textagent_gym.domains.textworld.inform.handling import HANDLING
from textagent_gym.domains.textworld.inform.looking import LOOKING
from textagent_gym.domains.textworld.inform.manners import MANNERS
from textagent_gym.domains.textworld.inform.moving import MOVING
from textagent_gym.domains.textworld.inform.page import Page
from textagent_gym.domains.textworld.inform.parser import Command
from textagent_gym.domains.textworld.inform.reading import Memory
from textagent_gym.domains.textworld.inform.turn import Outline, Rule, Turn
from textagent_gym.domains.textworld.inform.world import World

RULES: dict[str, Rule] = LOOKING | MOVING | HANDLING | FOOD | MANNERS
"""What every action does, by its name; and under "before" and its name, what is looked at before anything else."""


def look_around(world: World, memory: Memory, page: Page) -> None:
    """Describe the room in which a game begins."""
    Turn(world, memory, page, RULES, traced=False).try_action("looking")


def carry_out(
    command: Command, text: str, world: World, memory: Memory, page: Page, *, outline: Outline | None = None
) -> list[str]:
    """Do what a command asks for.

    Args:
        command: what the parser has understood.
        text: line that was typed.
        world: world that is changed.
        memory: what the parser remembers; "it" stands for what was named last.
        page: what is printed.
        outline: what the text leaves open; `None` where it is written out.

    Returns:
        the actions that succeeded, as the compiled game's trace words them.
    """
    turn = Turn(world, memory, page, RULES, text, outline=outline)
    if 0 not in command.nouns:
        turn.try_action(command.action, *command.nouns)
        # In the trace, parentheses mark an action that runs inside another one. The words of a topic may have some too.
        return [] if any("(" in word or ")" in word for word in command.topic) else turn.events
    if not command.several:
        page.say("Nothing to do!")
        return turn.events
    turn.several, room = True, world.room
    for thing in command.several:
        page.run_on()
        turn.try_action(command.action, *(noun or thing for noun in command.nouns), announced=thing)
        if world.room != room:
            break
    return turn.events
