"""Games from nothing: drawn by TextWorld's generator, measured by our planner, compiled by Inform 7.

    spec, split, index --draw--> game --measure--> logic, solution, complexity
                                      --compile_story--> .z8

`draw` keeps the first game that its own solution wins, and `build` does all three. Whatever else an engine needs to
know of a game can be read from what `draw` returns.
"""

from textagent_gym.domains.textworld.generation.build import BuiltGame, build
from textagent_gym.domains.textworld.generation.compile import compile_story
from textagent_gym.domains.textworld.generation.draw import (
    GUIDE_GAMES,
    REVISION,
    VERSION,
    content_hash,
    content_of,
    draw_as_made,
)
from textagent_gym.domains.textworld.generation.fiction import tell, tell_if_known
from textagent_gym.domains.textworld.generation.goals import brief_goal
from textagent_gym.domains.textworld.generation.grounding import ground
from textagent_gym.domains.textworld.generation.measure import Measured, measure
from textagent_gym.domains.textworld.generation.upstream import textworld_generator, textworld_package
from textagent_gym.domains.textworld.generation.winnable import draw, wins

__all__ = [
    "GUIDE_GAMES",
    "REVISION",
    "VERSION",
    "BuiltGame",
    "Measured",
    "brief_goal",
    "build",
    "compile_story",
    "content_hash",
    "content_of",
    "draw",
    "draw_as_made",
    "ground",
    "measure",
    "tell",
    "tell_if_known",
    "textworld_generator",
    "textworld_package",
    "wins",
]
