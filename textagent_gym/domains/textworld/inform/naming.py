"""What things are called, with articles, and lists of them."""

from __future__ import annotations

from collections.abc import Sequence

from textagent_gym.domains.textworld.inform.fiction import PLAYER
from textagent_gym.domains.textworld.inform.world import RAW, UNCUT, World

_LOOKING_CLOSELY = frozenset(("looking", "examining", "taking inventory"))
_VOWELS = frozenset("aeiouAEIOU")


def name(world: World, entity: int, action: str, *, listed: bool = False) -> str:
    """The name of an entity without an article.

    Args:
        world: state of the world.
        entity: its number.
        action: action that runs; some name food as it was prepared.
        listed: whether it stands in a list of contents, where food is named so as well.
    """
    plain = world.fiction.names[entity]
    if not world.fiction.cooking or not (listed or action in _LOOKING_CLOSELY):
        return plain
    if world.fiction.kinds[entity] != "food":
        return plain
    cutting, cooking = world.cutting.get(entity, UNCUT), world.cooking.get(entity, RAW)
    words = [] if cutting == UNCUT else [cutting]
    if ("needs_cooking", entity) in world.flags:
        words.append("raw")
    elif ("burned", entity) in world.flags:
        words.append("burned")
    elif cooking != RAW:
        words.append(cooking)
    return " ".join((*words, plain))


def definite(world: World, entity: int, action: str, *, capital: bool = False) -> str:
    """The name with "the", which doors do without; the player is "you"."""
    kind = world.fiction.kinds[entity]
    if kind == "player":
        return "You" if capital else "yourself"
    if kind == "door":
        return name(world, entity, action)
    return f"{'The' if capital else 'the'} {name(world, entity, action)}"


def indefinite(world: World, entity: int, action: str, *, listed: bool = False) -> str:
    """The name with "a", "an" or an article of its own; doors do without."""
    plain = name(world, entity, action, listed=listed)
    if world.fiction.kinds[entity] in ("door", "player"):
        return plain
    article = world.fiction[entity].article if entity > PLAYER else ""
    return f"{article or ('an' if plain[:1] in _VOWELS else 'a')} {plain}"


def that(entity: int) -> str:
    """The pronoun that stands for an entity: the player is "you", everything else "that"."""
    return "you" if entity == PLAYER else "that"


def that_is(entity: int) -> str:
    """The pronoun with its verb, at the beginning of a sentence."""
    return "You're" if entity == PLAYER else "That's"


def it_is_not(entity: int) -> str:
    """The pronoun with its verb, denied."""
    return "you aren't" if entity == PLAYER else "it isn't"


def joined(names: Sequence[str]) -> str:
    """Names in a row: "a, b and c".

    >>> joined(["a key", "a lamp", "an egg"]), joined([])
    ('a key, a lamp and an egg', 'nothing')
    """
    if not names:
        return "nothing"
    return " and ".join([*([", ".join(names[:-1])] if len(names) > 1 else []), names[-1]])
