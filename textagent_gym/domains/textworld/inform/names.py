"""Which things the words of a noun phrase can mean: everything in reach whose name fits best."""

from __future__ import annotations

from collections.abc import Sequence

from textagent_gym.domains.textworld.inform.fiction import FIRST_DIRECTION, PLAYER, Phrases
from textagent_gym.domains.textworld.inform.reading import UNSET, Description, Reading
from textagent_gym.domains.textworld.inform.world import ALL_DIRECTIONS

ME = frozenset(("me", "myself", "self"))
"""Words for the player."""

PRONOUNS = frozenset(("it", "him", "her", "them"))
"""Words for what was named before."""

_NAMELESS = ME | {"it"}  # Words that can mean anything, whatever it is called.


def is_direction(entity: int) -> bool:
    """Whether a number is that of a direction."""
    return FIRST_DIRECTION <= entity < PLAYER


def search(reading: Reading, one: str, other: str, kind: str) -> None:
    """Match the words from the position on with everything in reach; the best matches stand in `reading.matches`.

    Args:
        reading: command that is read.
        one: place to look in first: "room", "player" or "compass".
        other: place to look in then.
        kind: kind of the noun phrase.
    """
    reading.match_length, reading.matches, reading.match_from = 0, [], reading.at
    world = reading.world
    if one == "compass":
        for direction in ALL_DIRECTIONS:
            _match(reading, direction)
        return
    if kind == "multiinside" and reading.second != UNSET:
        if world.is_see_through(reading.second):
            _search_within(reading, world.contents(reading.second), UNSET)
        return
    if kind != "creature" and one == "room" and _may_be_direction(reading):
        for direction in ALL_DIRECTIONS:
            _match(reading, direction)
    places = {"room": world.room, "player": PLAYER}
    _search_within(reading, world.contents(places[one]), places[other])
    _search_within(reading, world.contents(places[other]), UNSET)


def _may_be_direction(reading: Reading) -> bool:
    """Whether a name begins with a word for a direction, or with one that can mean anything."""
    if reading.described.indefinite:
        return False
    word = reading.peek()
    return word is None or word in _NAMELESS or word in reading.world.fiction.words_of_directions


def _search_within(reading: Reading, things: tuple[int, ...], closed: int) -> None:
    world = reading.world
    for thing in things:
        _match(reading, thing)
        if thing != closed and world.contents(thing) and world.is_see_through(thing):
            _search_within(reading, world.contents(thing), closed)


def _match(reading: Reading, entity: int) -> None:
    """Match the words from where the noun phrase begins with the names of an entity."""
    if reading.filter and (reading.filter == "device" or not is_direction(entity)):
        return
    if not reading.described.indefinite and reading.match_from <= len(reading.words):
        first = reading.words[reading.match_from - 1]
        fiction = reading.world.fiction
        if first not in fiction.phrases[entity] and first not in _NAMELESS and fiction.kinds[entity] != "food":
            return
    if reading.match_from <= len(reading.words) and _is_pronoun_of(reading, entity, reading.match_from):
        _add(reading, entity, 1)
    reading.at = reading.match_from
    number_at = reading.described.number_at
    if _fits(reading, entity) and number_at and reading.match_from != number_at:
        # A number is part of the name after all.
        reading.at = number_at
        if _fits(reading, entity):
            reading.match_from = number_at
            reading.described = Description()
        reading.at = reading.match_from


def _is_pronoun_of(reading: Reading, entity: int, position: int) -> bool:
    word = reading.words[position - 1]
    return (word in ME and entity == PLAYER) or (word == "it" and entity == reading.memory.it)


def _fits(reading: Reading, entity: int) -> bool:
    """Whether words from the position on are a name of an entity; where none are left, every name fits."""
    if reading.finished:
        _add(reading, entity, 0)
        return True
    length = _name_length(reading, entity)
    if length == 0 and _is_pronoun_of(reading, entity, reading.at):
        length = 1
    if length == 0 and not reading.described.indefinite:
        return False
    _add(reading, entity, length)
    return length > 0


def _name_length(reading: Reading, entity: int) -> int:
    """Number of words from the position on that can be a name of an entity, which may tell how a food was prepared."""
    phrases = reading.world.fiction.phrases[entity]
    states = reading.world.shown_states(entity)
    words, best = reading.words, 0
    for with_states in (True, False) if states else (False,):
        best = max(best, phrase_length(phrases, words, reading.at - 1, states if with_states else ()))
    return best


def phrase_length(phrases: Phrases, words: Sequence[str], start: int, states: tuple[str, ...] = ()) -> int:
    """Number of words that phrases cover, one after another.

    Args:
        phrases: what something may be called.
        words: words of a line, as the dictionary knows them.
        start: number of words before the first that counts.
        states: words that may stand between phrases.
    """
    at = start
    while at < len(words):
        if words[at] in states:
            at += 1
            continue
        for phrase in phrases.get(words[at], ()):
            if tuple(words[at : at + len(phrase)]) == phrase:
                at += len(phrase)
                break
        else:
            break
    return at - start


def _add(reading: Reading, entity: int, quality: int) -> None:
    """Remember an entity if no other one fits more words."""
    if quality < reading.match_length:
        return
    if quality > reading.match_length:
        reading.match_length, reading.matches = quality, []
    elif entity in reading.matches:
        return
    reading.matches.append(entity)
