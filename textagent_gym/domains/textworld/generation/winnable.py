"""Which of the games that are drawn is kept: the first one that its own shortest solution wins.

Names can hide one another. Where a "locker" stands beside a "Canadian limited edition locker", the game answers "take
key from locker" with a question, so a solution that is right by the game's logic cannot be typed. The next candidate
has other names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from textagent_gym.domains.textworld.commands import playable
from textagent_gym.domains.textworld.generation.draw import candidates
from textagent_gym.domains.textworld.generation.fiction import tell_if_known
from textagent_gym.domains.textworld.generation.measure import Measured, measure
from textagent_gym.domains.textworld.generation.upstream import textworld_generator
from textagent_gym.domains.textworld.inform import (
    Fiction,
    Memory,
    Page,
    World,
    beginning,
    carry_out,
    end_turn,
    understand,
)
from textagent_gym.domains.textworld.specs import GUIDE_SPLIT, Spec


@dataclass(frozen=True, slots=True)
class Drawn:
    """A game that is kept.

    Attributes:
        game: TextWorld's own object, not compiled yet.
        measured: logic, a shortest solution, and difficulty.
        fiction: text of the game; `None` where only the compiled game has it.
    """

    game: Any
    measured: Measured
    fiction: Fiction | None


def draw_and_measure(spec: Spec, split: str, index: int) -> Drawn:
    """The `index`-th game of a split of what `spec` asks for, with what was found out to choose it.

    The games of the guide are what they are, whether or not their solutions can be typed.

    Raises:
        InfeasibleDifficultyError: no such game was found.
        MissingDependencyError: TextWorld is not installed.
    """
    with textworld_generator() as textworld:
        drawn = (Drawn(game, measure(game), tell_if_known(game)) for game in candidates(textworld, spec, split, index))
        return next(one for one in drawn if split == GUIDE_SPLIT or _can_be_won(one))


def draw(spec: Spec, split: str, index: int) -> Any:
    """The game of `draw_and_measure` alone."""
    return draw_and_measure(spec, split, index).game


def wins(fiction: Fiction, commands: Sequence[str]) -> bool:
    """Whether commands win a game as they are typed, without a question on the way."""
    world, memory = World(fiction, beginning(fiction)), Memory()
    for typed in commands:
        heard = understand(world, memory, (playable(typed),))
        if heard.command is None:
            return False
        page = Page()
        carry_out(heard.command, heard.text, world, memory, page)
        end_turn(world, page)
    return world.ending == "won"


def _can_be_won(drawn: Drawn) -> bool:
    """Whether nothing is known that keeps a game from being won."""
    solution, fiction = drawn.measured.solution, drawn.fiction
    return solution is None or fiction is None or wins(fiction, solution.commands)
