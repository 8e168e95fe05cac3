"""From a spec and a seed to a TextWorld game that is as difficult as was asked.

TextWorld draws a chain of actions of the length asked for, but the shortest solution of the game that comes out can be
much shorter. Here a chain is grown whose shortest solution has that length (see `quests`). Logic comes first and text
second, because the search takes milliseconds and text does not. What is drawn is a candidate: `winnable` keeps the
first one whose solution can be typed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from textagent_gym.domains.textworld.generation.quests import QuestShape, grow_quests
from textagent_gym.domains.textworld.generation.text import Texts, quick_grammar
from textagent_gym.domains.textworld.generation.upstream import textworld_generator
from textagent_gym.domains.textworld.generation.upstream_patches import quick_world
from textagent_gym.domains.textworld.specs import (
    GUIDE_SPLIT,
    CoinCollectorSpec,
    CookingSpec,
    CustomSpec,
    SimpleSpec,
    Spec,
    TreasureHunterSpec,
)
from textagent_gym.errors import InfeasibleDifficultyError
from textagent_gym.sources import seed_bytes
from textagent_gym.tasks import in_split

VERSION = 1
"""Part of every task id; raised whenever ids would give other games."""

REVISION = 2
"""Raised whenever only games that could not be won as planned are replaced, or a shorter solution of some is found: ids
stay, and the cache begins anew."""

GUIDE_GAMES = 100
"""Test games of the practitioner's guide: `tw-make`'s seeds 1 to 100."""

_GROWTHS = 12  # Worlds in which quests are grown before a request counts as infeasible.
_TEXTS = 64  # Draws of the text of one world, until it belongs to the split.
_GUIDE_BREADTH = 5  # Most sub-quests of a quest by `tw-make`'s default.


def candidates(textworld: Any, spec: Spec, split: str, index: int) -> Iterator[Any]:
    """Games that can be the `index`-th of a split of what `spec` asks for, in the order in which they are preferred.

    Args:
        textworld: what `textworld_generator` gives; the caller keeps it open.
        spec: what is asked for.
        split: name of the split.
        index: number of the game in the split.

    Raises:
        InfeasibleDifficultyError: there are no more.
    """
    if split == GUIDE_SPLIT:
        yield draw_as_made(spec, index + 1)
    elif isinstance(spec, CustomSpec):
        yield from map(_in_fixed_order, _custom_games(textworld, spec, split, index))
    else:
        yield from map(_in_fixed_order, _challenge_games(textworld, spec, split, index))


def draw_as_made(spec: Spec, seed: int) -> Any:
    """The game that `tw-make` makes with a seed and its own defaults, as it is.

    Raises:
        MissingDependencyError: TextWorld is not installed.
    """
    with textworld_generator() as textworld:
        if not isinstance(spec, CustomSpec):
            return _in_fixed_order(_challenge(textworld, spec, seed))
        options = _options(textworld, spec, seed)
        options.chaining.min_length = options.chaining.max_length = options.chaining.max_depth = spec.quest_length
        options.chaining.max_breadth = _GUIDE_BREADTH
        if spec.quest_breadth > 1:
            options.chaining.min_breadth = options.chaining.max_breadth = spec.quest_breadth
        return _in_fixed_order(textworld.generator.make_game(options))


def _in_fixed_order(game: Any) -> Any:
    """The game, with nothing left whose order changes from process to process."""
    for quest in game.quests:  # Some challenges keep these in sets.
        quest.fail_events = sorted(quest.fail_events, key=lambda event: sorted(map(str, event.condition.preconditions)))
    return game


def _seed(*parts: object) -> int:
    """A seed for TextWorld, which takes 0 to 65,634 four times over; here one number that it draws those from."""
    return int.from_bytes(seed_bytes(VERSION, *parts)[:4], "big") % (2**31)


def _options(textworld: Any, spec: Spec, seed: int) -> Any:
    options = textworld.GameOptions()
    options.seeds = seed
    if isinstance(spec, CustomSpec):
        options.kb = textworld.generator.data.KnowledgeBase.default()
        options.nb_rooms, options.nb_objects = spec.rooms, spec.objects
        options.nb_parallel_quests = spec.parallel_quests
        grammar = options.grammar
        grammar.theme = spec.theme
        grammar.include_adj = spec.include_adj
        grammar.blend_descriptions = spec.blend_descriptions
        grammar.only_last_action = spec.only_last_action
        grammar.blend_instructions = spec.blend_instructions
        grammar.allowed_variables_numbering = spec.entity_numbering
    return options


def _custom_games(textworld: Any, spec: CustomSpec, split: str, index: int) -> Iterator[Any]:
    """Draw worlds until quests as long as asked are found in one, then draw their text."""
    for attempt in range(_GROWTHS):
        options = _options(textworld, spec, _seed(spec.slug, split, index, attempt))
        rngs = options.rngs
        world = quick_world().from_map(textworld.generator.make_map(spec.rooms, rng=rngs["map"]))
        world.set_player_room()
        shape = QuestShape(
            length=spec.quest_length,
            breadth=spec.quest_breadth,
            depth=spec.quest_depth,
            parallel=spec.parallel_quests,
            # Quests bring no more objects than were asked for, if there are some that do not.
            objects=spec.objects if attempt < _GROWTHS // 2 else None,
        )
        quests = grow_quests(world, options.kb, rngs["quest"], shape)
        if quests is None:
            continue
        _populate(world, spec.objects, rngs["objects"])
        texts = Texts(world, quests)
        for text in range(_TEXTS):
            rng = textworld.generator.RandomState(_seed(spec.slug, split, index, attempt, text))
            game = texts.draw(quick_grammar()(options.grammar, rng), lambda drawn: in_split(content_of(drawn), split))
            if game is not None:
                yield game
    raise InfeasibleDifficultyError(
        f"quest_length={spec.quest_length} was not reached with rooms={spec.rooms} and objects={spec.objects} in "
        f"{_GROWTHS} draws. Ask for a shorter quest, fewer sub-quests, or more rooms."
    )


def _populate(world: Any, objects: int, rng: Any) -> None:
    """Add things that the quest does not need until there are as many as asked for."""
    there = sum(1 for entity in world.entities if entity.type not in {"r", "d", "I", "P"})
    if objects > there:
        world.populate(objects - there, rng=rng)


def _challenge_games(textworld: Any, spec: Spec, split: str, index: int) -> Iterator[Any]:
    failure: Exception | None = None
    drawn = 0
    for attempt in range(_TEXTS):
        try:
            game = _challenge(textworld, spec, _seed(spec.slug, split, index, attempt))
        except textworld.generator.QuestGenerationError as error:  # The map of this seed is too small, for instance.
            failure = error
            continue
        drawn += 1
        if in_split(content_of(game), split):
            yield game
    if failure is not None and not drawn:
        raise InfeasibleDifficultyError(f"{spec.slug}: {failure}") from failure
    raise InfeasibleDifficultyError(
        f"{spec.slug} has too few different games to keep {split!r} apart from the other splits; choose another split"
    )


def _challenge(textworld: Any, spec: Spec, seed: int) -> Any:
    """A game of one of TextWorld's challenges, as `tw-make` makes it."""
    settings: dict[str, Any]
    if isinstance(spec, SimpleSpec):
        settings = {"rewards": spec.rewards, "goal": "detailed", "test": spec.test}
    elif isinstance(spec, CookingSpec):
        settings = {
            **{name: getattr(spec, name) for name in ("recipe", "take", "open", "cook", "cut", "drop", "recipe_seed")},
            "go": spec.rooms,
            "split": spec.foods,
        }
    elif isinstance(spec, CoinCollectorSpec | TreasureHunterSpec):
        settings = {"level": spec.level}
    else:
        raise TypeError(f"{spec.kind} is no challenge")
    try:
        return textworld.challenges.CHALLENGES[f"tw-{spec.kind}"][1](
            settings=settings, options=_options(textworld, spec, seed)
        )
    except ValueError as error:  # As numpy refuses to choose among no preparations.
        if str(error) != "high <= 0":
            raise
        reason = "an ingredient of this seed cannot be eaten without cooking it; allow cook=True, or leave out cut=True"
        raise textworld.generator.QuestGenerationError(reason) from error


def content_of(game: Any) -> str:
    """What decides which split a game belongs to: facts, names and goal."""
    names = {name: info.name for name, info in game.infos.items()}
    facts = sorted(
        " ".join((fact.name, *(names.get(v.name) or v.name for v in fact.arguments))) for fact in game.world.facts
    )
    goals = sorted(
        " ".join((fact.name, *(names.get(v.name) or v.name for v in fact.arguments)))
        for quest in game.quests
        for event in quest.win_events
        for fact in event.condition.preconditions
    )
    return "\n".join((*facts, "", *goals))


def content_hash(game: Any) -> str:
    """Hash of what decides which split a game belongs to."""
    return hashlib.sha256(content_of(game).encode()).hexdigest()
