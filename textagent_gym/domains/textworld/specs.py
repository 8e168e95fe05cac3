"""What can be asked of TextWorld: one frozen dataclass a kind of game, checked when it is made.

Each spec has a `slug`, the part of a task's id that says what was asked for; what is at its default is left out.
"""

from __future__ import annotations

import difflib
import os
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

from textagent_gym.errors import InfeasibleDifficultyError, InvalidOptionError

GUIDE_SPLIT = "guide-test"
"""The practitioner's guide's own test games (arXiv 2510.01132): seeds 1 to 100, as `tw-make` makes them."""

_MOST_ROOMS = 100  # A `.z8` story cannot hold more; TextWorld 1.7 no longer writes the format that could.


def _knob(default: Any, short: str, low: int | None = None, high: int | None = None) -> Any:
    """A field with its abbreviation in the slug and the range of its whole numbers."""
    return field(default=default, metadata={"short": short, "low": low, "high": high})


@dataclass(frozen=True, kw_only=True)
class Spec:
    """What all kinds share. Subclasses list their knobs; `slug` and the range checks are read off the fields."""

    kind: ClassVar[str]
    always: ClassVar[tuple[str, ...]] = ()  # Knobs that stand in the slug whatever their value.
    splits: ClassVar[tuple[str, ...]] = ("train", "validation", "test")

    def __post_init__(self) -> None:
        for knob in fields(self):
            _check(self.kind, knob, getattr(self, knob.name))

    @property
    def slug(self) -> str:
        """Short name of what is asked for, such as `custom-w2-o3-q4`."""
        parts = [self.kind]
        for knob in fields(self):
            value = getattr(self, knob.name)
            if knob.name in self.always or value != knob.default:
                parts.append(f"{knob.metadata['short']}{_spell(value)}")
        return "-".join(parts)

    @property
    def solution_length(self) -> int | None:
        """The length of the shortest solution that every game must have; `None` where it is only measured."""
        return None


@dataclass(frozen=True, kw_only=True)
class CustomSpec(Spec):
    """`tw-make custom`: rooms, objects and a quest, drawn at random.

    Args:
        rooms: rooms of the world.
        objects: objects of the world at least; a long quest can bring its own.
        quest_length: actions of the shortest solution, exactly.
        quest_breadth: number of sub-quests that the quest branches into.
        quest_depth: actions of a sub-quest at most; 0 for any number.
        parallel_quests: quests that share no goal.
        theme: vocabulary of the text, "house" or "basic".
        include_adj: name things with adjectives.
        blend_descriptions: join the descriptions of similar things in one sentence.
        only_last_action: the goal tells the last step only.
        blend_instructions: join consecutive steps of the goal in one sentence.
        entity_numbering: append numbers to names where names run out.
    """

    kind = "custom"
    always = ("rooms", "objects", "quest_length")
    splits = ("train", "validation", "test", GUIDE_SPLIT)

    rooms: int = _knob(2, "w", 1, _MOST_ROOMS)
    objects: int = _knob(3, "o", 1, 200)
    quest_length: int = _knob(4, "q", 1, 60)
    quest_breadth: int = _knob(1, "b", 1, 5)
    quest_depth: int = _knob(0, "d", 0, 60)
    parallel_quests: int = _knob(1, "p", 1, 5)
    theme: str = _knob("house", "theme=")
    include_adj: bool = _knob(False, "adj")
    blend_descriptions: bool = _knob(False, "blenddesc")
    only_last_action: bool = _knob(False, "last")
    blend_instructions: bool = _knob(False, "blend")
    entity_numbering: bool = _knob(False, "numbered")

    def __post_init__(self) -> None:
        super().__post_init__()
        _one_of("theme", self.theme, ("house", "basic"))
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

    Args:
        rewards: which sub-goals TextWorld scores, "sparse", "balanced" or "dense". Our rewards follow
            `reward_density`; this only chooses among upstream's three versions of the game.
        test: draw the food from the names kept for testing.
    """

    kind = "simple"
    splits = ("train", "validation", "test", GUIDE_SPLIT)

    rewards: str = _knob("sparse", "r=")
    test: bool = _knob(False, "test")

    def __post_init__(self) -> None:
        super().__post_init__()
        _one_of("rewards", self.rewards, ("sparse", "balanced", "dense"))


@dataclass(frozen=True, kw_only=True)
class CookingSpec(Spec):
    """`tw-make tw-cooking`: gather ingredients, cut and cook them as the cookbook says, eat the meal.

    Args:
        recipe: ingredients of the recipe.
        take: ingredients that must be found, at most `recipe`.
        rooms: places of the world, 1, 6, 9 or 12 (upstream's `go`).
        open: containers and doors are closed.
        cook: ingredients must be cooked.
        cut: ingredients must be cut.
        drop: hands are limited.
        recipe_seed: another recipe for each positive number.
        foods: upstream's split of the foods, "train", "valid" or "test"; "" for all of them.
    """

    kind = "cooking"
    always = ("recipe", "take", "rooms")

    recipe: int = _knob(1, "recipe", 1, 5)
    take: int = _knob(1, "take", 0, 5)
    rooms: int = _knob(1, "go")
    open: bool = _knob(False, "open")
    cook: bool = _knob(False, "cook")
    cut: bool = _knob(False, "cut")
    drop: bool = _knob(False, "drop")
    recipe_seed: int = _knob(0, "seed", 0, 2**31 - 1)
    foods: str = _knob("", "foods=")

    def __post_init__(self) -> None:
        super().__post_init__()
        _one_of("rooms", self.rooms, (1, 6, 9, 12))
        _one_of("foods", self.foods, ("", "train", "valid", "test"))
        if self.take > self.recipe:
            raise InfeasibleDifficultyError(f"take={self.take} is more than the recipe holds: at most {self.recipe}")
        if self.recipe_seed and not self.take:
            raise InfeasibleDifficultyError("recipe_seed needs ingredients that must be found: take=1 or more")


@dataclass(frozen=True, kw_only=True)
class CoinCollectorSpec(Spec):
    """`tw-make tw-coin_collector`: walk to the coin.

    Args:
        level: 1 to 300; the shortest way has `(level - 1) % 100 + 1` actions, and from level 101 (201) on the world has
            twice (three times) as many rooms.
    """

    kind = "coin_collector"
    always = ("level",)

    level: int = _knob(1, "level", 1, 300)

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

    Args:
        level: 1 to 30; from 11 on doors and containers are closed, from 21 on they are locked.
    """

    kind = "treasure_hunter"
    always = ("level",)

    level: int = _knob(1, "level", 1, 30)


@dataclass(frozen=True, kw_only=True)
class FilesSpec(Spec):
    """A folder of one's own `.z8` games, sorted by name. A `.json` beside a game made by TextWorld gives its logic.

    Args:
        path: the folder.
    """

    kind = "files"
    splits = ("all",)

    path: str = _knob("", "path=")

    def __post_init__(self) -> None:
        super().__post_init__()
        folder = Path(self.path).expanduser()
        if not self.path or not folder.is_dir():
            raise InvalidOptionError(f"path={self.path!r} is no folder; give the one that holds your .z8 games")
        if not any(folder.glob("*.z8")):
            others = ", and .ulx games cannot be played: neither TextWorld 1.7 nor its interpreter runs Glulx"
            raise InvalidOptionError(f"{folder} holds no .z8 games" + (others if any(folder.glob("*.ulx")) else ""))
        object.__setattr__(self, "path", os.path.abspath(folder))

    @property
    def slug(self) -> str:
        return "files"


SPECS: dict[str, type[Spec]] = {
    spec.kind: spec for spec in (CustomSpec, SimpleSpec, CookingSpec, CoinCollectorSpec, TreasureHunterSpec, FilesSpec)
}

_DEAD_UPSTREAM = {
    "ambiguous_instructions": "TextWorld 1.7 itself cannot make such games: its generator stops at an assertion",
}

_AXES: dict[str, dict[str, str]] = {
    "custom": {"state_size": "rooms", "action_size": "objects", "solution_length": "quest_length"},
    "cooking": {"state_size": "rooms", "solution_length": "recipe"},
    "coin_collector": {"solution_length": "level"},
    "treasure_hunter": {"solution_length": "level"},
}


def make_spec(game: str = "custom", **knobs: Any) -> Spec:
    """The spec of a kind of game.

    Args:
        game: "custom", "simple", "cooking", "coin_collector", "treasure_hunter" or "files".
        knobs: the fields of its spec, or the axes `state_size`, `action_size` and `solution_length` in their place.

    Raises:
        InvalidOptionError: there is no such kind, knob or value.
        InfeasibleDifficultyError: the values exclude each other.

    >>> make_spec("custom", state_size=4, objects=6, quest_length=8).slug
    'custom-w4-o6-q8'
    """
    if game not in SPECS:
        raise InvalidOptionError(f"game={game!r} does not exist; choose one of: {', '.join(SPECS)}")
    spec = SPECS[game]
    axes = _AXES.get(game, {})
    named: dict[str, Any] = {}
    for name, value in knobs.items():
        knob = axes.get(name, name)
        if knob in named:
            raise InvalidOptionError(f"{name} and {knob} are the same knob of game={game!r}: give one of them")
        named[knob] = value
    known = {knob.name for knob in fields(spec)}
    for name in named:
        if name in _DEAD_UPSTREAM:
            raise InvalidOptionError(f"{name} is not offered. {_DEAD_UPSTREAM[name]}.")
        if name not in known:
            options = sorted(known | set(axes))
            close = difflib.get_close_matches(name, options, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise InvalidOptionError(
                f"{name!r} is no option of TextWorld's game={game!r}.{hint} It has: {', '.join(options)}"
            )
    return spec(**named)


def _check(kind: str, knob: Field[Any], value: Any) -> None:
    """A knob's value has its type and lies in its range."""
    assert knob.default is not MISSING
    expected = type(knob.default)
    if type(value) is not expected:
        raise InvalidOptionError(f"{knob.name} must be of type {expected.__name__}, got {value!r}")
    low, high = knob.metadata["low"], knob.metadata["high"]
    if (low is not None and value < low) or (high is not None and value > high):
        raise InfeasibleDifficultyError(f"{knob.name}={value} is out of the range of game={kind!r}: {low} to {high}")


def _one_of(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    if value not in choices:
        raise InvalidOptionError(f"{name} must be one of {choices}, got {value!r}")


def _spell(value: Any) -> str:
    return "" if value is True else str(value)
