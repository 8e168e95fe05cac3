"""What can be asked of TextWorld: one spec per kind of game, and how much of a game is told."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from textagent_gym.errors import InfeasibleDifficultyError, InvalidOptionError
from textagent_gym.knobs import Options, check_names, knob
from textagent_gym.options import TextEnvKwargs

Kind = Literal["custom", "simple", "cooking", "coin_collector", "treasure_hunter", "files"]

GUIDE_SPLIT = "guide-test"
"""The practitioner's guide's own test games (arXiv 2510.01132): seeds 1 to 100, as `tw-make` makes them."""

_MOST_ROOMS = 100  # A `.z8` story cannot hold more; TextWorld 1.7 no longer writes the format that could.
_LARGEST_SEED = 2**31 - 1  # TextWorld's own bound.


@dataclass(frozen=True, kw_only=True)
class TellingOptions(Options):
    """Which kind of game is played, how its goal is told, and by what it is played. None of them changes a game."""

    game: Kind = knob("custom", "kind of game; each has knobs of its own")
    goal: Literal["detailed", "brief", "none"] = knob(
        "detailed", "detail of the goal: each step, what shall hold in the end, or nothing"
    )
    engine: Literal["native", "reference"] = knob(
        "native", "player of the game: its text and rules, which need no compiler, or the compiled game"
    )


@dataclass(frozen=True, kw_only=True)
class Spec(Options):
    """What all kinds of games share.

    Attributes:
        splits: names of the splits, the default first.
        impossible: knobs of `tw-make` that are not offered, and why not.
    """

    splits: ClassVar[tuple[str, ...]] = ("train", "validation", "test")
    impossible: ClassVar[Mapping[str, str]] = {}

    @property
    def solution_length(self) -> int | None:
        """Length of the shortest solution that every game must have; `None` where it is only measured."""
        return None


@dataclass(frozen=True, kw_only=True)
class CustomSpec(Spec):
    """`tw-make custom`: rooms, objects and a quest, drawn at random."""

    kind = "custom"
    splits = ("train", "validation", "test", GUIDE_SPLIT)
    impossible: ClassVar[Mapping[str, str]] = {
        "ambiguous_instructions": "TextWorld 1.7 itself cannot make such games: its generator stops at an assertion"
    }

    rooms: int = knob(2, "number of rooms", low=1, high=_MOST_ROOMS, short="w", always=True)
    objects: int = knob(
        3, "least number of objects; a long quest can bring its own", low=1, high=200, short="o", always=True
    )
    quest_length: int = knob(
        4, "actions of the shortest solution, exactly",
        low=1, high=60, short="q", always=True, axis="solution_length",
    )  # fmt: skip
    quest_breadth: int = knob(1, "number of sub-quests that the quest branches into", low=1, high=5, short="b")
    quest_depth: int = knob(0, "largest number of actions of a sub-quest; 0 for any", low=0, high=60, short="d")
    parallel_quests: int = knob(1, "number of quests that share no goal", low=1, high=5, short="p")
    theme: Literal["house", "basic"] = knob("house", "vocabulary of the text", short="theme=")
    include_adj: bool = knob(False, "whether names of things have adjectives", short="adj")
    blend_descriptions: bool = knob(False, "whether descriptions of similar things share a sentence", short="blenddesc")
    only_last_action: bool = knob(False, "whether the goal tells the last step only", short="last")
    blend_instructions: bool = knob(False, "whether consecutive steps of the goal share a sentence", short="blend")
    entity_numbering: bool = knob(False, "whether names have numbers where names run out", short="numbered")

    def __post_init__(self) -> None:
        super().__post_init__()
        # Sub-quests branch off before the last action of all, so two or more need one action that is not their own.
        least = self.parallel_quests * (self.quest_breadth + (self.quest_breadth > 1))
        if self.quest_length < least:
            raise InfeasibleDifficultyError(
                f"quest_length={self.quest_length} is too short for parallel_quests={self.parallel_quests} with "
                f"quest_breadth={self.quest_breadth}: at least {least}"
            )
        # A branch begins after the last action of all.
        most = self.parallel_quests * (self.quest_depth + (self.quest_breadth - 1) * (self.quest_depth - 1))
        if self.quest_depth and self.quest_length > most:
            raise InfeasibleDifficultyError(
                f"quest_length={self.quest_length} does not fit into quest_breadth={self.quest_breadth} sub-quests of "
                f"quest_depth={self.quest_depth} actions: at most {most}"
            )

    @property
    def solution_length(self) -> int:
        return self.quest_length


@dataclass(frozen=True, kw_only=True)
class SimpleSpec(Spec):
    """`tw-make tw-simple`: cook the right food in a house of six rooms.

    `rewards` chooses among upstream's three versions of the game; our rewards follow `reward_density`.
    """

    kind = "simple"
    splits = ("train", "validation", "test", GUIDE_SPLIT)

    rewards: Literal["sparse", "balanced", "dense"] = knob(
        "sparse", "sub-goals that TextWorld itself scores", short="r="
    )
    test: bool = knob(False, "whether the food has one of the names kept for testing", short="test")


@dataclass(frozen=True, kw_only=True)
class CookingSpec(Spec):
    """`tw-make tw-cooking`: gather ingredients, cut and cook them as the cookbook says, eat the meal."""

    kind = "cooking"

    recipe: int = knob(1, "number of ingredients of the recipe", low=1, high=5, short="recipe", always=True)
    take: int = knob(
        1, "number of ingredients that must be found, at most `recipe`", low=0, high=5, short="take", always=True
    )
    rooms: Literal[1, 6, 9, 12] = knob(1, "number of rooms (upstream's `go`)", short="go", always=True)
    open: bool = knob(False, "whether containers and doors are closed", short="open")
    cook: bool = knob(False, "whether ingredients must be cooked", short="cook")
    cut: bool = knob(False, "whether ingredients must be cut", short="cut")
    drop: bool = knob(False, "whether only a few things can be carried", short="drop")
    recipe_seed: int = knob(0, "number of the recipe; 0 for any", low=0, high=_LARGEST_SEED, short="seed")
    foods: Literal["", "train", "valid", "test"] = knob(
        "", 'upstream\'s split of the foods; "" for all', short="foods="
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.take > self.recipe:
            raise InfeasibleDifficultyError(f"take={self.take} is more than the recipe holds: at most {self.recipe}")
        if self.recipe_seed and not self.take:
            raise InfeasibleDifficultyError("recipe_seed needs ingredients that must be found: take=1 or more")


@dataclass(frozen=True, kw_only=True)
class CoinCollectorSpec(Spec):
    """`tw-make tw-coin_collector`: walk to the coin.

    The shortest way has `(level - 1) % 100 + 1` actions, and from level 101 (201) on the world has twice (three times)
    as many rooms. Levels 151 to 200 and 234 to 300 would have more rooms than TextWorld 1.7 makes.
    """

    kind = "coin_collector"

    level: int = knob(1, "upstream's level", low=1, high=233, short="level", always=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        rooms = ((self.level - 1) // 100 + 1) * ((self.level - 1) % 100 + 1)
        if rooms > _MOST_ROOMS:
            raise InfeasibleDifficultyError(
                f"level={self.level} has {rooms} rooms, and TextWorld 1.7 makes games of at most {_MOST_ROOMS}: "
                "choose a level of 1 to 100, 101 to 150 or 201 to 233"
            )


@dataclass(frozen=True, kw_only=True)
class TreasureHunterSpec(Spec):
    """`tw-make tw-treasure_hunter`: take the object that is asked for, not the other one.

    From level 11 on doors and containers are closed, from level 21 on they are locked.
    """

    kind = "treasure_hunter"

    level: int = knob(1, "upstream's level", low=1, high=30, short="level", always=True)


@dataclass(frozen=True, kw_only=True)
class FilesSpec(Spec):
    """A folder of one's own `.z8` games, sorted by name. A `.json` beside a game made by TextWorld gives its logic."""

    kind = "files"
    splits = ("all",)

    path: str = knob("", "folder of the games")

    def __post_init__(self) -> None:
        super().__post_init__()
        folder = Path(self.path).expanduser()
        if not self.path or not folder.is_dir():
            raise InvalidOptionError(f"path={self.path!r} is not a folder; give the one that holds your .z8 games")
        if not any(folder.glob("*.z8")):
            others = ", and .ulx games cannot be played: neither TextWorld 1.7 nor its interpreter runs Glulx"
            raise InvalidOptionError(f"{folder} holds no .z8 games" + (others if any(folder.glob("*.ulx")) else ""))
        object.__setattr__(self, "path", os.path.abspath(folder))


SPECS: dict[str, type[Spec]] = {
    spec.kind: spec for spec in (CustomSpec, SimpleSpec, CookingSpec, CoinCollectorSpec, TreasureHunterSpec, FilesSpec)
}


class TextWorldOptions(TextEnvKwargs, total=False):
    """Keyword arguments of `TextWorldEnv`, for editors; each `game` has those of its spec."""

    game: Kind
    goal: Literal["detailed", "brief", "none"]
    engine: Literal["native", "reference"]
    rooms: int
    objects: int
    quest_length: int
    solution_length: int
    quest_breadth: int
    quest_depth: int
    parallel_quests: int
    theme: Literal["house", "basic"]
    include_adj: bool
    blend_descriptions: bool
    only_last_action: bool
    blend_instructions: bool
    entity_numbering: bool
    rewards: Literal["sparse", "balanced", "dense"]
    test: bool
    recipe: int
    take: int
    open: bool
    cook: bool
    cut: bool
    drop: bool
    recipe_seed: int
    foods: Literal["", "train", "valid", "test"]
    level: int
    path: str


def make_spec(game: str = "custom", **given: Any) -> Spec:
    """The spec of a kind of game.

    Args:
        game: "custom", "simple", "cooking", "coin_collector", "treasure_hunter" or "files".
        given: knobs of its spec; what `TextEnv` and `TellingOptions` take is left to them.

    Raises:
        InvalidOptionError: there is no such kind, knob or value.
        InfeasibleDifficultyError: the values exclude each other.

    >>> make_spec("custom", rooms=4, objects=6, solution_length=8).slug
    'custom-w4-o6-q8'
    """
    spec = SPECS[TellingOptions(game=game).game]  # type: ignore[arg-type]  # Checked there.
    for name in given:
        if name in spec.impossible:
            raise InvalidOptionError(f"{name} is not offered. {spec.impossible[name]}.")
    check_names(f"TextWorld's game={game!r}", given, spec, TellingOptions)
    return spec.of(given)
