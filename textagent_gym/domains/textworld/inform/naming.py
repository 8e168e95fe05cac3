"""What things are called, with articles, and lists of them."""

from __future__ import annotations

from collections.abc import Sequence

from textagent_gym.domains.textworld.inform.fiction import PLAYER, Fiction
from textagent_gym.domains.textworld.inform.world import COOKED, CUT, RAW, UNCUT, World, lying

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
    return _prepared(world.fiction, entity, world.states(entity)) if world.fiction.kinds[entity] == "food" else plain


def _prepared(fiction: Fiction, entity: int, states: frozenset[str]) -> str:
    """The name of a food with the words that tell how it was prepared."""
    words = [cut for cut in CUT if cut != UNCUT and cut in states]
    if "needs_cooking" in states:
        words.append("raw")
    elif "burned" in states:
        words.append("burned")
    else:
        words += [cooked for cooked in COOKED if cooked != RAW and cooked in states]
    return " ".join((*words, fiction.names[entity]))


def is_told_closely(fiction: Fiction, holder: int, action: str) -> bool:
    """Whether a list of what is in a place tells how food was prepared: on the floor only where an action looks."""
    return fiction.kinds[holder] != "room" or action in _LOOKING_CLOSELY


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
    things: Sequence[int] = world.contents(holder)
    closely = world.fiction.kinds[holder] != "room"
    if not closely:
        things = lying(world.fiction, things)
    named = indefinite if articles else name
    return joined([named(world, thing, action, listed=closely) for thing in things])


def listed_closely(
    fiction: Fiction, holder: int, things: Sequence[int], states: Sequence[frozenset[str]], *, articles: bool = True
) -> str:
    """What `listed` returns where food is named as it was prepared.

    Args:
        fiction: the game.
        holder: what they are in or on, or the room.
        things: all that is there.
        states: states of each, in a game with the rules of cooking.
        articles: whether they are named with articles.
    """
    names = {thing: fiction.names[thing] for thing in things}
    for thing, known in zip(things, states, strict=False):
        if fiction.kinds[thing] == "food":
            names[thing] = _prepared(fiction, thing, known)
    if fiction.kinds[holder] == "room":
        things = lying(fiction, things)
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
