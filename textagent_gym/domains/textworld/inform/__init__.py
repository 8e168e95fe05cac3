"""A game of TextWorld as Inform 7 would run it, without Inform 7: its text, its world, its parser and its rules.

    Fiction     everything that never changes: rooms, things, names, descriptions, quests
    World       where things are, and in which state
    understand  from what is typed to an action: by the parser, or at once where a line is in the game's own words
    carry_out   from an action to changes of the world, and words
    end_turn    from changes of the world to quests, points and the end of the game
    Page        from words to a text with the right line breaks

Nothing here knows of engines, stored games or TextWorld's package.
"""

from textagent_gym.domains.textworld.inform.endings import FINAL_ANSWER, begin, end_turn, last_words
from textagent_gym.domains.textworld.inform.fiction import PLAYER, Fiction
from textagent_gym.domains.textworld.inform.naming import listed_closely
from textagent_gym.domains.textworld.inform.page import Page
from textagent_gym.domains.textworld.inform.reading import AGAIN, Kept, Memory, split_words
from textagent_gym.domains.textworld.inform.rules import carry_out, look_around
from textagent_gym.domains.textworld.inform.turn import Blank, Outline
from textagent_gym.domains.textworld.inform.understanding import understand
from textagent_gym.domains.textworld.inform.world import World, beginning, last_thing, move

__all__ = [
    "AGAIN",
    "FINAL_ANSWER",
    "PLAYER",
    "Blank",
    "Fiction",
    "Kept",
    "Memory",
    "Outline",
    "Page",
    "World",
    "begin",
    "beginning",
    "carry_out",
    "end_turn",
    "last_thing",
    "last_words",
    "listed_closely",
    "look_around",
    "move",
    "split_words",
    "understand",
]
