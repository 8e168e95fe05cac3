"""Which of several things is meant that fit the words equally well."""

from __future__ import annotations

from textagent_gym.domains.textworld.inform.descriptions import read_description
from textagent_gym.domains.textworld.inform.fiction import PLAYER
from textagent_gym.domains.textworld.inform.names import is_direction, search
from textagent_gym.domains.textworld.inform.problems import Problem
from textagent_gym.domains.textworld.inform.reading import ALL, ALL_WANTED, THEN, UNSET, Reading
from textagent_gym.domains.textworld.inform.vocabulary import MULTIPLE

UNDECIDED, SEVERAL, NONE = 0, 1, -1
"""What `choose` returns in place of an entity: the player must be asked, several were added, or there is none."""

# How likely a thing is meant, by the rules of the game.
_VERY_UNLIKELY, _POSSIBLE, _LIKELY, _VERY_LIKELY = 0, 2, 3, 4

# Points of a match; only what decides between things that a game of TextWorld can have.
_GOOD, _LIKELIHOOD, _VISIBLE, _BEST_PLACE, _NEXT_PLACE, _OTHER_PLACE = 1000, 1000, 105, 60, 40, 20
_NO_SCENERY = 10  # Inform's points of everything but directions.


def choose(reading: Reading, kind: str) -> int:
    """The entity that is meant by a noun phrase; or `UNDECIDED`, `SEVERAL` or `NONE`.

    Args:
        reading: command that is read.
        kind: kind of the noun phrase.
    """
    good = [entity for entity in reading.matches if _is_good(reading, entity, kind)]
    reading.scores = [_GOOD * (entity in good) for entity in reading.matches]
    described = reading.described
    if len(good) == 1:
        several = described.indefinite and described.plural and kind in MULTIPLE
        if not several or all_includes(reading, good[0]) is not False:
            return good[0]
    if kind == "creature" and not good:
        return reading.matches[0]
    if not described.indefinite:
        described.plural = False
    _score(reading)
    described = reading.described  # Looking for the second noun may have changed how the first is described.
    if not reading.matches:
        return NONE
    best = max(reading.scores)
    if not described.indefinite and reading.scores.count(best) == 1:
        return reading.matches[reading.scores.index(best)]
    if described.indefinite and described.plural:
        return _choose_several(reading, kind)
    if not described.indefinite and len(reading.matches) > 1:
        return UNDECIDED
    if len(reading.matches) == 1:
        reading.silent = True
    return reading.matches[reading.scores.index(best)]


def all_includes(reading: Reading, entity: int) -> bool | None:
    """Whether "all" includes an entity; `None` where no rule of the game says."""
    kind = reading.world.fiction.kinds[entity]
    if reading.action in ("taking", "taking off", "removing"):
        if kind in ("player", "direction", "door", "container", "supporter"):
            return False
        return False if reading.world.is_within(entity, PLAYER) else None
    if reading.action in ("dropping", "throwing", "inserting", "putting") and kind == "player":
        return False
    return None


def _choose_several(reading: Reading, kind: str) -> int:
    if kind not in MULTIPLE:
        reading.problem = Problem.SEVERAL
        return NONE
    wanted, count = reading.described.wanted, 0
    by_score = sorted(range(len(reading.matches)), key=lambda place: -reading.scores[place])
    for entity in (reading.matches[place] for place in by_score):
        if count >= wanted:
            break
        included = all_includes(reading, entity)
        if included is None:
            held = reading.world.holder(entity) == PLAYER
            must_be_held = kind in ("multiheld", "multiexcept")
            must_be_free = reading.action in ("taking", "removing")
            included = entity != PLAYER and (held or not must_be_held) and not (held and must_be_free)
        if included:
            reading.several.append(entity)
            count += 1
    if count < wanted < ALL_WANTED:
        reading.problem, reading.counted = Problem.TOO_FEW, count
        return NONE
    reading.several_as = kind
    return SEVERAL


def _is_good(reading: Reading, entity: int, kind: str) -> bool:
    """Whether an entity is an obvious choice for a kind of noun phrase."""
    holder = reading.world.holder(entity)
    if kind in ("held", "multiheld"):
        return holder == PLAYER
    if kind == "multi":
        return entity > PLAYER
    if kind == "multiexcept":
        return entity != reading.second
    if kind == "multiinside":
        return holder == reading.second if reading.second != UNSET else holder != PLAYER
    return kind == "creature" and entity == PLAYER


def _score(reading: Reading) -> None:
    """Score what fits the words by where it is and how likely it is meant; drop what is not as described."""
    world = reading.world
    held, here = _BEST_PLACE, _NEXT_PLACE
    if reading.action in ("taking", "removing"):
        held, here = here, held
    requirements = reading.described.whose
    kept: list[tuple[int, int]] = []
    for entity, good in zip(list(reading.matches), reading.scores, strict=True):
        holder = world.holder(entity)
        if not all(_meets(reading, holder, word) for word in requirements):
            continue
        score = good + _LIKELIHOOD * _likelihood(reading, entity)
        if entity != PLAYER:
            score += _VISIBLE
        if holder == PLAYER:
            score += held
        elif holder == world.room:
            score += here
        elif not is_direction(entity):
            score += _OTHER_PLACE
        if not is_direction(entity):
            score += _NO_SCENERY
        kept.append((entity, score))
    reading.matches = [entity for entity, _ in kept]
    reading.scores = [score for _, score in kept]


def _meets(reading: Reading, holder: int, word: str) -> bool:
    """Whether a thing in a place is as a word before its name says."""
    if word == "my":
        return holder == PLAYER
    if word == "that":
        return holder == reading.world.room
    if word == "it":
        return reading.memory.it != UNSET and holder == reading.memory.it
    return word == "unlit"


def _likelihood(reading: Reading, entity: int) -> int:
    """How likely an entity is meant, together with the other noun as far as it is known."""
    if reading.strategy == 0:
        reading.strategy = 1 if _find_seconds(reading) else 2
    if reading.count > 0:
        return _likely(reading, reading.inputs[0], entity)
    if reading.strategy == 2:
        return _likely(reading, entity, max(reading.second, 0))
    return max((_likely(reading, entity, second) for second in reading.seconds), default=0)


def _find_seconds(reading: Reading) -> bool:
    """Remember what the second noun can be, if the sentence has one after this part and words are left for it."""
    if reading.sentence is None:
        return False
    tokens = reading.sentence.tokens
    index = reading.index + 1
    while index < len(tokens) and tokens[index].kind == "word":
        index += 1
    kind = tokens[index].kind if index < len(tokens) else ""  # Words that are left over count as a noun too.
    if kind in ("topic", "direction", "device"):
        return False
    at = reading.at
    while not reading.finished and (reading.is_preposition(reading.peek()) or reading.peek() in ALL):
        reading.at += 1
    has_words = reading.peek() not in (None, THEN)
    if has_words:
        described = reading.described
        read_description(reading)
        reading.described = described
        saved = reading.match_length, reading.filter, reading.match_from, reading.matches
        reading.filter = ""
        search(reading, "player", "room", kind)
        reading.seconds = reading.matches
        reading.match_length, reading.filter, reading.match_from, reading.matches = saved
    reading.at = at
    return has_words


def _likely(reading: Reading, one: int, other: int) -> int:
    """How likely two nouns are meant together, by the rules of Inform and of TextWorld's games; 0 for no noun."""
    world, action = reading.world, reading.action
    swapped = reading.sentence is not None and reading.sentence.swapped
    noun, second = (other, one) if swapped else (one, other)
    if noun >= PLAYER and second > PLAYER and world.holder(second) == PLAYER:
        if action in ("slicing", "chopping", "dicing") and not world.has_trait(second, "sharp"):
            return _VERY_UNLIKELY
        if action == "cooking":
            return _VERY_UNLIKELY
    if action == "taking" and noun > PLAYER and world.holder(noun) == PLAYER:
        return _VERY_UNLIKELY
    named = [world.fiction.names[entity] in reading.heard for entity in (noun, second) if entity]
    if not all(named) or not named:
        return _POSSIBLE
    return _VERY_LIKELY if len(named) > 1 else _LIKELY
