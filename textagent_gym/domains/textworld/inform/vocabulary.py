"""Words as the Z-machine's dictionary knows them, and the sentences that a game understands."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

_LENGTH = 9  # Units of a word that the dictionary compares; see `dictionary_form`.
_ONE_UNIT = frozenset("abcdefghijklmnopqrstuvwxyz")
_TWO_UNITS = frozenset("0123456789.,!?_#'\"/\\-:()")


@lru_cache(maxsize=65_536)
def dictionary_form(word: str) -> str:
    """As much of a word as the dictionary compares: a letter takes one of nine units, a digit two, others four.

    >>> dictionary_form("inventory2"), dictionary_form("type-2-keycard"), dictionary_form("cupboard;")
    ('inventory', 'type-2', 'cupboard')
    """
    if word.isascii() and word.isalpha():
        return word[:_LENGTH].lower()
    units, kept = 0, []
    for letter in word.lower():
        width = 1 if letter in _ONE_UNIT else 2 if letter in _TWO_UNITS else 4
        # Words are filled up with the unit that wide letters begin with, so one of these in the last place is not seen.
        if units >= _LENGTH - (width > 1):
            break
        units += width
        kept.append(letter)
    return "".join(kept)


@dataclass(frozen=True, slots=True)
class Token:
    """A part of a sentence: a word, or a noun phrase.

    Attributes:
        kind: "word", or what a noun phrase may be: "noun", "held", "multi", "multiheld", "multiexcept", "multiinside",
            "creature", "direction", "device"; "topic" for any words at all.
        words: words that will do; the first is named where it is left out. Empty for a noun phrase.
    """

    kind: str
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sentence:
    """What may follow a verb, and the action that it asks for.

    Attributes:
        tokens: parts in order.
        action: name of the action, in Inform's words.
        swapped: whether the second noun phrase is the action's first.
        nouns: number of parts that are not words.
    """

    tokens: tuple[Token, ...]
    action: str
    swapped: bool
    nouns: int

    def can_end_with(self, word: str | None) -> bool:
        """Whether a line that ends with a word can be this sentence; `None` where only the verb was typed.

        A preposition may be left out at the end of what was typed, but not where the sentence ends with it.
        """
        return not self.tokens or not self.tokens[-1].words or word in self.tokens[-1].words


@dataclass(frozen=True)
class Grammar:
    """Every sentence that a game understands.

    Attributes:
        sentences: sentences of each verb, in the order in which they are tried.
        prepositions: words that stand in a sentence after its verb.
    """

    sentences: dict[str, tuple[Sentence, ...]]
    prepositions: frozenset[str]


MULTIPLE = frozenset(("multi", "multiheld", "multiexcept", "multiinside"))
"""Kinds of noun phrases that may mean several things."""

_NOUN_PHRASES = MULTIPLE | {"noun", "held", "creature", "direction", "device", "topic"}

# A paragraph for each verb: its synonyms, then a line for each sentence. Noun phrases are in capitals, words that will
# do as well are joined by "/", and "<" marks a sentence whose second noun phrase is the action's first.
_STANDARD = """
take carry hold
inventory > taking inventory
all > taking all
each > taking all
everything > taking all
NOUN > removing
MULTI > taking
off NOUN > taking off
NOUN off > taking off
MULTIINSIDE from NOUN > removing
MULTIINSIDE off NOUN > removing

get
out/off/down/up > exiting
in/on > entering
all > taking all
each > taking all
everything > taking all
MULTI > taking
in/into/on/onto NOUN > entering
off/down NOUN > getting off
MULTIINSIDE from NOUN > removing

pick
up all > taking all
up each > taking all
up everything > taking all
up MULTI > taking
MULTI up > taking

stand
> exiting
up > exiting
on NOUN > entering

remove
HELD > taking off
MULTIINSIDE from NOUN > removing

shed doff disrobe
HELD > taking off

wear don
HELD > wearing

put
on HELD > wearing
HELD on > wearing
down MULTIHELD > dropping
MULTIHELD down > dropping
MULTIEXCEPT in/inside/into NOUN > inserting
MULTIEXCEPT on/onto NOUN > putting

insert
MULTIEXCEPT in/into NOUN > inserting

drop throw discard
MULTIHELD > dropping
HELD at/against NOUN > throwing
MULTIEXCEPT in/into/down NOUN > inserting
MULTIEXCEPT on/onto NOUN > putting

give pay offer feed
CREATURE HELD < giving
HELD to CREATURE > giving

show present display
CREATURE HELD < showing
HELD to CREATURE > showing

go walk run
> going
DIRECTION > going
NOUN > entering
into/in/inside/through NOUN > entering

inventory i inv
> taking inventory

look l
> looking
NOUN > examining
at NOUN > examining
inside/in/into/through NOUN > searching
under NOUN > looking under
up TOPIC in NOUN < consulting

consult
NOUN on/about TOPIC > consulting

open unwrap uncover
NOUN > opening
NOUN with HELD > unlocking

close shut cover
NOUN > closing
up NOUN > closing
off NOUN > switching off

enter cross
> entering
NOUN > entering

sit
on/in/inside NOUN > entering
on top of NOUN > entering

exit leave out
> exiting

examine x watch describe check
NOUN > examining

read
NOUN > examining
about TOPIC in NOUN < consulting
TOPIC in NOUN < consulting

yes y
> saying yes

no
> saying no

sorry
> saying sorry

search
NOUN > searching

wave
> waving hands
NOUN > waving

set adjust
NOUN to TOPIC > setting

pull drag
NOUN > pulling

push move shift clear press
NOUN > pushing
NOUN DIRECTION > pushing to
NOUN to DIRECTION > pushing to

turn rotate twist unscrew screw
NOUN > turning
NOUN on > switching on
on NOUN > switching on
NOUN off > switching off
off NOUN > switching off

switch
DEVICE > switching off
NOUN > switching on
on NOUN > switching on
NOUN on > switching on
NOUN off > switching off
off NOUN > switching off

lock
NOUN with HELD > locking

unlock
NOUN with HELD > unlocking

attack break smash hit fight torture wreck crack destroy murder kill punch thump
NOUN > attacking

wait z
> waiting

answer say shout speak
TOPIC to CREATURE < answering

tell
CREATURE about TOPIC > telling

ask
CREATURE for NOUN > asking for
CREATURE about TOPIC > asking

eat
HELD > eating

sleep nap
> sleeping

climb scale
NOUN > climbing
up/over NOUN > climbing

buy purchase
NOUN > buying

squeeze squash
NOUN > squeezing

swing
NOUN > swinging
on NOUN > swinging

wake awake awaken
> waking up
up > waking up
CREATURE > waking
CREATURE up > waking
up CREATURE > waking

kiss embrace hug
CREATURE > kissing

think
> thinking

smell sniff
> smelling
NOUN > smelling

listen
> listening
to NOUN > listening

hear
NOUN > listening

taste
NOUN > tasting

touch feel
NOUN > touching

rub shine polish sweep clean dust wipe scrub
NOUN > rubbing

tie attach fasten
NOUN to NOUN > tying

burn light
NOUN > burning

drink swallow sip
NOUN > drinking

cut slice prune chop
NOUN > cutting

jump skip hop
> jumping

goal
> telling the goal

help
> helping
"""

# What cooking games say of these verbs instead of the standard.
_COOKING = """
prepare
meal > preparing meal

drink swallow sip
NOUN > drinking carried

cut
NOUN > cutting

slice
NOUN with/using NOUN > slicing

dice
NOUN with/using NOUN > dicing

chop
NOUN with/using NOUN > chopping

cook
NOUN with/in/on/using NOUN > cooking
"""
_NOT_IN_COOKING = frozenset(("prune",))

# Words of sentences about the program, which no player can say; the parser takes them for prepositions all the same.
_PROGRAM_WORDS = """
on off print state option description inventory score moves commands version player id max_score endofobject
"""
_PROGRAM_VERBS = """
score quit q save restart restore verify version script transcript superbrief nouns pronouns notify print_state enable
disable tw-extra-infos tw-trace-actions restrict tw-print
"""
PROGRAM_VERBS = frozenset(dictionary_form(verb) for verb in _PROGRAM_VERBS.split())
"""Verbs about the program. They never reach a game as a command, but they are no answers to its questions."""


@cache
def grammar(cooking: bool) -> Grammar:
    """The sentences of a game, with those of cooking games or without."""
    sentences = _read(_STANDARD)
    if cooking:
        sentences = {verb: lines for verb, lines in sentences.items() if verb not in _NOT_IN_COOKING}
        sentences.update(_read(_COOKING))
    prepositions = {
        word for lines in sentences.values() for line in lines for token in line.tokens for word in token.words
    }
    return Grammar(sentences, frozenset(prepositions | {dictionary_form(word) for word in _PROGRAM_WORDS.split()}))


def _read(text: str) -> dict[str, tuple[Sentence, ...]]:
    read: dict[str, tuple[Sentence, ...]] = {}
    for paragraph in text.strip().split("\n\n"):
        verbs, *lines = paragraph.split("\n")
        sentences = tuple(_sentence(line) for line in lines)
        for verb in verbs.split():
            read[dictionary_form(verb)] = sentences
    return read


def _sentence(line: str) -> Sentence:
    swapped = "<" in line
    tokens, _, action = line.partition("<" if swapped else ">")
    parts = tuple(
        Token(word.lower())
        if word.lower() in _NOUN_PHRASES and word.isupper()
        else Token("word", tuple(dictionary_form(choice) for choice in word.split("/")))
        for word in tokens.split()
    )
    return Sentence(parts, action.strip(), swapped, sum(part.kind != "word" for part in parts))
