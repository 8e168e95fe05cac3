"""Commands in a game's own words, understood without the parser.

Most of what is typed is what a game lists: "take red apple from low table". Such a line has one meaning wherever its
things are in reach and nothing else in reach fits their words as well. The meaning is found once for each game; only
the places of a few things are left to be looked at in every situation. Whatever is not settled so goes to the parser,
which would have come to the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

from textagent_gym.domains.textworld.inform.descriptions import DESCRIPTORS, OTHER
from textagent_gym.domains.textworld.inform.fiction import (
    DIRECTIONS,
    FIRST_DIRECTION,
    FIRST_ENTITY,
    PLAYER,
    Fiction,
)
from textagent_gym.domains.textworld.inform.names import ME, PRONOUNS, phrase_length
from textagent_gym.domains.textworld.inform.parser import Command
from textagent_gym.domains.textworld.inform.reading import (
    AGAIN,
    ALL,
    CONNECTIVES,
    MOST_WORDS,
    NUMBERS,
    THEN,
    Memory,
    dictionary_words,
)
from textagent_gym.domains.textworld.inform.vocabulary import grammar
from textagent_gym.domains.textworld.inform.world import COOKED, CUT, World

_WITHOUT_NOUN = {"look": "looking", "inventory": "taking inventory"}
_WITH_NOUN = {
    "examine": "examining", "take": "removing", "drop": "dropping", "open": "opening", "close": "closing",
    "eat": "eating",
}  # fmt: skip
_WITH_TWO = {
    "take": ("from", "removing"), "put": ("on", "putting"), "insert": ("into", "inserting"),
    "lock": ("with", "locking"), "unlock": ("with", "unlocking"),
}  # fmt: skip
# And in games with the rules of cooking:
_COOKING_WITHOUT_NOUN = {"prepare meal": "preparing meal"}
_COOKING_WITH_NOUN = {"drink": "drinking carried"}
_COOKING_WITH_TWO = {
    "cook": ("with", "cooking"), "slice": ("with", "slicing"), "dice": ("with", "dicing"),
    "chop": ("with", "chopping"),
}  # fmt: skip

# Words that mean something of their own where a name begins, and nothing after that: how many, of which.
_FIRST = frozenset((*NUMBERS, *DESCRIPTORS, *OTHER, "of"))

_REMEMBERED = 65_536  # Lines of all games together, of less than half a KB each.


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What a line means where its things are in reach and its rivals are not.

    Attributes:
        command: the command.
        rivals: things that fit the words of a noun as well as what it means.
        inside: whether the first noun must lie directly in or on the second.
        understood: what the parser remembers of a shorter command that the line begins with, or `None`.
    """

    command: Command
    rivals: tuple[int, ...] = ()
    inside: bool = False
    understood: tuple[int, ...] | None = None


def read_plain(world: World, memory: Memory, line: str) -> Command | None:
    """The command that a line means; `None` where the parser must decide.

    Args:
        world: world in which it was typed.
        memory: what is remembered; where a command is returned, it is changed as the parser would have changed it.
        line: what was typed, as no answer to a question.
    """
    meaning = _meaning(world.fiction, line)
    if meaning is None or memory.cut_at != (0, 0):
        return None
    nouns = meaning.command.nouns
    for noun in nouns:
        if noun > PLAYER and not _is_in_reach(world, noun):
            return None
    for rival in meaning.rivals:
        if _is_in_reach(world, rival):
            return None
    if meaning.inside and (world.holder(nouns[0]) != nouns[1] or not world.is_see_through(nouns[1])):
        return None
    if nouns:
        memory.it = nouns[0]
    if line not in _WITHOUT_NOUN:
        memory.limited_to = "direction" if meaning.command.action == "going" else ""
    if meaning.understood is not None:
        memory.understood = meaning.understood
    return meaning.command


def _is_in_reach(world: World, entity: int) -> bool:
    holder = world.holder(entity)
    while holder != PLAYER:  # The room does not matter to what is carried.
        if holder == world.room:
            return True
        if not world.is_see_through(holder):
            return False
        holder = world.holder(holder)
    return True


@lru_cache(maxsize=_REMEMBERED)
def _meaning(fiction: Fiction, line: str) -> _Meaning | None:
    """What a line means in a game, as far as that can be told without a situation."""
    words = dictionary_words(line)
    if len(words) > MOST_WORDS:
        return None
    alone, with_noun, with_two = _forms(fiction.cooking)
    if line in alone:
        return _Meaning(Command(alone[line], (), ()))
    verb, _, rest = line.partition(" ")
    if verb == "go":
        if rest not in DIRECTIONS:
            return None
        return _Meaning(Command("going", (FIRST_DIRECTION + DIRECTIONS.index(rest),), ()), understood=())
    name = _plain_names(fiction).get(rest)
    if verb in with_noun and name is not None:
        rivals = _rivals(fiction, name, words, 1)
        return None if rivals is None else _Meaning(Command(with_noun[verb], (name.entity,), ()), rivals)
    if verb not in with_two:
        return None
    preposition, action = with_two[verb]
    first, _, second = rest.partition(f" {preposition} ")
    return _meaning_with_two(fiction, action, first, second, words)


@cache
def _forms(cooking: bool) -> tuple[dict[str, str], dict[str, str], dict[str, tuple[str, str]]]:
    """Actions of lines without a noun; of verbs with a noun; and of verbs with two, with the word between the nouns."""
    if not cooking:
        return _WITHOUT_NOUN, _WITH_NOUN, _WITH_TWO
    return _WITHOUT_NOUN | _COOKING_WITHOUT_NOUN, _WITH_NOUN | _COOKING_WITH_NOUN, _WITH_TWO | _COOKING_WITH_TWO


def _meaning_with_two(fiction: Fiction, action: str, first: str, second: str, words: list[str]) -> _Meaning | None:
    names = _plain_names(fiction)
    if first not in names or second not in names:
        return None
    name, other = names[first], names[second]
    nouns = name.entity, other.entity
    rivals = _rivals(fiction, name, words, 1)
    other_rivals = _rivals(fiction, other, words, len(words) - other.length)
    if rivals is None or other_rivals is None:
        return None
    # "take" alone is tried first.
    removing = action == "removing"
    understood = nouns[:1] if removing else None
    return _Meaning(Command(action, nouns, ()), rivals + other_rivals, inside=removing, understood=understood)


class _Name(NamedTuple):
    """A thing with the number of words of its name."""

    entity: int
    length: int


def _rivals(fiction: Fiction, name: _Name, words: list[str], at: int) -> tuple[int, ...] | None:
    """Other things that fit as many words from a position on as a name; `None` if its thing fits others than the name.

    Args:
        fiction: the game.
        name: the name.
        words: words of the line, none of which tells how a food was prepared.
        at: number of words before the name.
    """
    noun, length = name
    if phrase_length(fiction.phrases[noun], words, at) != length:
        return None
    return tuple(
        entity
        for entity in _by_first_word(fiction)[words[at]]
        if entity != noun and phrase_length(fiction.phrases[entity], words, at) >= length
    )


@lru_cache(maxsize=256)
def _by_first_word(fiction: Fiction) -> dict[str, list[int]]:
    """Rooms and things that can be called by a phrase that begins with a word, by this word."""
    by_word: dict[str, list[int]] = {}
    for entity in range(FIRST_ENTITY, len(fiction.kinds)):
        for word in fiction.phrases[entity]:
            by_word.setdefault(word, []).append(entity)
    return by_word


@lru_cache(maxsize=256)
def _plain_names(fiction: Fiction) -> dict[str, _Name]:
    """Things by their names, where no word of the name can be anything else than a part of a name."""
    special = _special_words(fiction.cooking) | fiction.words_of_directions
    names: dict[str, _Name] = {}
    for entity in range(FIRST_ENTITY, len(fiction.kinds)):
        name = fiction.names[entity]
        words = dictionary_words(name) if fiction.kinds[entity] != "room" else []
        if words and words[0] not in _FIRST and not words[0].isdecimal() and special.isdisjoint(words):
            names[name.lower()] = _Name(entity, len(words))
    return names


@cache
def _special_words(cooking: bool) -> frozenset[str]:
    """Words that have a meaning of their own in a command."""
    return frozenset().union(
        grammar(cooking).prepositions - {"of", "meal"}, ALL, CONNECTIVES, ME, PRONOUNS, AGAIN, COOKED, CUT, (THEN, '"')
    )  # fmt: skip
