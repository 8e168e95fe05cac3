"""A game from beginning to end: drawn, measured, compiled."""

from __future__ import annotations

from dataclasses import dataclass

from textagent_gym.complexity import Complexity
from textagent_gym.domains.textworld.generation.compile import compile_story
from textagent_gym.domains.textworld.generation.draw import content_hash
from textagent_gym.domains.textworld.generation.goals import brief_goal
from textagent_gym.domains.textworld.generation.winnable import draw_and_measure
from textagent_gym.domains.textworld.inform import Fiction
from textagent_gym.domains.textworld.logic import GameLogic
from textagent_gym.domains.textworld.planner import Solution
from textagent_gym.domains.textworld.specs import Spec
from textagent_gym.errors import GenerationError


@dataclass(frozen=True, slots=True)
class BuiltGame:
    """A game that was kept, compiled.

    Attributes:
        story: bytes of the `.z8` file, the same on every machine; `None` where the game was not compiled.
        logic: facts that hold, and actions that can be done.
        fiction: text of the game; `None` where only the compiled game has it.
        solution: a shortest way to win.
        complexity: measured difficulty.
        objective: goal as TextWorld words it, every step told.
        brief: goal without the way to it, in one sentence.
        content: hash of the world and the goal, equal for games that differ in their descriptions at most.
    """

    story: bytes | None
    logic: GameLogic
    fiction: Fiction | None
    solution: Solution
    complexity: Complexity
    objective: str
    brief: str
    content: str


def build(spec: Spec, split: str, index: int, *, compiled: bool = True) -> BuiltGame:
    """The `index`-th game of a split of what `spec` asks for.

    Args:
        spec: what is asked for.
        split: name of the split.
        index: number of the game in the split.
        compiled: whether the game is compiled, which takes most of the time.

    Raises:
        InfeasibleDifficultyError: no game of that difficulty was found.
        GenerationError: no way to win the game was found, or Inform 7 did not compile it.
        MissingDependencyError: TextWorld is not installed.
    """
    drawn = draw_and_measure(spec, split, index)
    game, measured, fiction = drawn.game, drawn.measured, drawn.fiction
    if measured.solution is None:
        raise GenerationError("TextWorld made a game for which no way to win was found.")
    return BuiltGame(
        story=compile_story(game) if compiled or fiction is None else None,
        logic=measured.logic,
        fiction=fiction,
        solution=measured.solution,
        complexity=measured.complexity,
        objective=game.objective,
        brief=brief_goal(game),
        content=content_hash(game),
    )
