"""What things are called, with articles, and lists of them."""

from __future__ import annotations

from collections.abc import Sequence

from textagent_gym.domains.textworld.inform.fiction import PLAYER, Fiction
from textagent_gym.domains.textworld.inform.world import RAW, UNCUT, World, lying

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
    cutting, cooking = world.cutting(entity), world.cooking(entity)
    words = [] if cutting == UNCUT else [cutting]
    if world.has("needs_cooking", entity):
        words.append("raw")
    elif world.has("burned", entity):
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
    return _with_article(world.fiction, entity, name(world, entity, action, listed=listed))


def _with_article(fiction: Fiction, entity: int, plain: str) -> str:
    if fiction.kinds[entity] in ("door", "player"):
        return plain
    article = fiction[entity].article if entity > PLAYER else ""
    return f"{article or ('an' if plain[:1] in _VOWELS else 'a')} {plain}"


def listed(world: World, holder: int, action: str, *, articles: bool = True) -> str:
    """The things that are in or on something, in a row; those that lie on the floor of a room are not told closely."""
    things: Sequence[int] = world.contents[holder]
    closely = world.fiction.kinds[holder] != "room"
    if not closely:
        things = lying(world.fiction, things)
    named = indefinite if articles else name
    return joined([named(world, thing, action, listed=closely) for thing in things])


def listed_by_name(fiction: Fiction, holder: int, things: Sequence[int], *, articles: bool = True) -> str:
    """What `listed` returns in games whose things always have the same names.

    Args:
        fiction: the game.
        holder: what they are in or on, or the room.
        things: all that is there.
        articles: whether they are named with articles.
    """
    if fiction.kinds[holder] == "room":
        things = lying(fiction, things)
    names = fiction.names
    return joined([_with_article(fiction, thing, names[thing]) if articles else names[thing] for thing in things])


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
