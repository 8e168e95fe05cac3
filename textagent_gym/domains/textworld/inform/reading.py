"""What is known of a command while it is read.

Inform's parser keeps this in global variables, some of which outlive the sentence that is tried, or the noun phrase;
what a command means depends on that, so it stands in one place here too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, cast

from textagent_gym.domains.textworld.inform.fiction import PLAYER
from textagent_gym.domains.textworld.inform.problems import Problem
from textagent_gym.domains.textworld.inform.vocabulary import Grammar, Sentence, Token, dictionary_form
from textagent_gym.domains.textworld.inform.world import World

MOST_WORDS = 15  # Of a line; the compiled game's buffer has no more.
_MOST_LETTERS = 120  # Of a line into which an answer has been put. A longer one is read as it was typed.

ALL = frozenset(("all", "each", "every", "everythin", "both"))
"""Words for everything that is there."""

EXCEPTIONS = frozenset(("but", "except"))
"""Words that take what follows out of a list."""

CONNECTIVES = EXCEPTIONS | {"and", ","}
"""Words between the names of a list."""

THEN = "then"
"""The word between two commands; a full stop is read as this word."""

AGAIN = frozenset(("again", "g"))
"""Words that repeat the line before."""

_WORD = re.compile(r'[.,"]|[^ .,"]+')

SEVERAL_THINGS, TOPIC = 0, 1
"""What a noun phrase stands for that is no entity."""

UNSET = -1
"""What a pronoun stands for that stands for nothing yet, and a second noun that is not known yet."""

ALL_WANTED = 32_767
"""The number of things that are meant by "all"."""

_NAMES_OF_NUMBERS = """
one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen twenty twenty-one twenty-two twenty-three twenty-four twenty-five twenty-six twenty-seven twenty-eight
twenty-nine thirty
"""
NUMBERS = {dictionary_form(word): number for number, word in reversed([*enumerate(_NAMES_OF_NUMBERS.split(), start=1)])}
"""Numbers by their words; of two words that the dictionary does not tell apart, the first counts."""
_LARGEST_NUMBER = 10_000  # What any number of more than four digits counts as.
_NO_NUMBER = -1000


Kept = tuple[int, tuple[str | int | None, ...], int, bool, str, tuple[int, int]]
"""The values of a memory."""

_AT_FIRST: Kept = (UNSET, (), 0, False, "", (0, 0))
_VALUES = len(_AT_FIRST)


def _remembered(index: int) -> Any:
    """A property of `Memory`, which notes when it is looked at and when it is changed."""

    def look(memory: Memory) -> Any:
        if index not in memory.written:
            memory.looked[index - _VALUES] = None
        return memory.values[index]

    def write(memory: Memory, value: Any) -> None:
        memory.written.add(index)
        memory.values[index] = value

    return property(look, write)


class Memory:
    """What is remembered from one command to the next.

    Args:
        kept: values that are remembered.

    Attributes:
        it: what "it" stands for, or `UNSET`.
        understood: parts of the last command that had too many words, as far as they were understood.
        blamed: entity that the last complaint was about, until a command is understood; or 0.
        listed_many: whether the last list that began with "is" or "are" had several things; an empty one conjugates
            its verb like the list before.
        limited_to: kind of entities that the last noun phrase was limited to, or "" for any; a command that begins
            with reading its second noun heeds it.
        cut_at: word and letter at which the next line is taken to end, or 0; a line such as "take all. look" leaves
            this behind where "all" means nothing.
        values: these, in this order, as in `kept`.
        looked: values that mattered, in order, counted from the last one (-1); see `World`, which may share this.
        written: numbers of the values that were changed.
    """

    it: int = _remembered(0)
    understood: tuple[str | int | None, ...] = _remembered(1)
    blamed: int = _remembered(2)
    listed_many: bool = _remembered(3)
    limited_to: str = _remembered(4)
    cut_at: tuple[int, int] = _remembered(5)

    def __init__(self, kept: Kept = _AT_FIRST) -> None:
        self.values: list[Any] = list(kept)
        self.looked: dict[int, None] = {}
        self.written: set[int] = set()

    @property
    def kept(self) -> Kept:
        """The values, from which another memory like this can be made."""
        return cast("Kept", tuple(self.values))

    def recall(self, kept: Kept) -> None:
        """Remember what was kept, and nothing else."""
        for index in sorted(self.written):  # What was kept follows from what was there before.
            self.looked[index - _VALUES] = None
        self.values = list(kept)


def split_words(text: str) -> list[str]:
    """Words of a line as they were typed; commas, full stops and quotation marks are words of their own.

    >>> split_words('take it, then say "x".')
    ['take', 'it', ',', 'then', 'say', '"', 'x', '"', '.']
    """
    return _WORD.findall(text)


def dictionary_words(text: str) -> list[str]:
    """Words of a line as the dictionary knows them; a full stop is read as "then".

    >>> dictionary_words("Examine cupboards. Look")
    ['examine', 'cupboards', 'then', 'look']
    """
    return [THEN if word == "." else dictionary_form(word) for word in split_words(text)]


@dataclass
class Description:
    """What the words before a name say.

    Attributes:
        indefinite: whether anything will do that fits.
        plural: whether several things are meant.
        wanted: number of things that are meant; 0 where it is not said.
        guessed: whether that number may be part of a name.
        ambiguous: whether a word may be part of the name after all.
        whose: requirements: "my", "that", "lit", "unlit", or the pronoun of an owner.
        number_at: position of the number, or 0.
    """

    indefinite: bool = False
    plural: bool = False
    wanted: int = 0
    guessed: bool = False
    ambiguous: bool = False
    whose: frozenset[str] = frozenset()
    number_at: int = 0


@dataclass
class Reading:
    """A command that is being read. Positions of words count from 1.

    Attributes:
        world: world in which it was typed; nothing in it is changed.
        memory: what is remembered.
        grammar: sentences that the game understands.
        text: line as it was typed, with the answers to questions.
        words: its words, as the dictionary knows them.
        heard: line as far as these words.
        addressed: whether the line began by speaking to the player.
        at: position of the next word.
        verb: first word.
        sentence: sentence that is tried; `None` for a direction alone.
        action: action of the sentence.
        index: part of the sentence that is tried.
        lookahead: part after it.
        pattern: what was understood of each part: a word, an entity, 0 for several, 1 for a topic.
        inputs: nouns that were found.
        count: number of them that belong to this sentence.
        several: things that are meant where one noun means several.
        several_as: kind of the noun phrase that means several.
        topic: words that something is said or looked up about.
        second: second noun, if it could be told before the first was read; else `UNSET`.
        inferred_from: first part that was taken for granted, or `None`.
        silent: whether what is taken for granted is not told.
        allows_plurals: whether numbers are read as numbers of things.
        saw_list: whether a noun phrase of a sentence could mean several.
        takes_all: 1 where "take all" may be read, 2 where "all" was.
        described: what the words before the name say.
        filter: only entities of this kind are meant: "direction", "device" or, with "", any; `None` before the first
            noun phrase.
        matches: entities that fit the words equally well.
        scores: points of each of them.
        match_from: position where the name begins.
        match_length: number of words of the name.
        strategy: way in which choices are made: 0 for undecided, 1 together with the second noun, 2 alone.
        seconds: what the second noun may be.
        pronoun: pronoun that was read, and what it stands for.
        told_pronoun: pronoun that the player is told of.
        problem: what is wrong with the sentence.
        worst: what is wrong with the sentence that came furthest.
        counted: number of things that were found where more were wanted.
        nothing_to: action for which nothing was found.
    """

    world: World
    memory: Memory
    grammar: Grammar
    text: str = ""
    words: list[str] = field(default_factory=list)
    heard: str = ""
    addressed: bool = False
    at: int = 1
    verb: str = ""
    sentence: Sentence | None = None
    action: str = ""
    index: int = 0
    lookahead: Token | None = None
    pattern: list[str | int | None] = field(default_factory=list)
    inputs: list[int] = field(default_factory=lambda: [0, 0])
    count: int = 0
    several: list[int] = field(default_factory=list)
    several_as: str = ""
    topic: list[str] = field(default_factory=list)
    second: int = UNSET
    inferred_from: int | None = None
    silent: bool = False
    allows_plurals: bool = True
    saw_list: bool = False
    takes_all: int = 0
    described: Description = field(default_factory=Description)
    filter: str | None = None
    matches: list[int] = field(default_factory=list)
    scores: list[int] = field(default_factory=list)
    match_from: int = 0
    match_length: int = 0
    strategy: int = 0
    seconds: list[int] = field(default_factory=list)
    pronoun: tuple[str | None, int] = (None, 0)
    told_pronoun: tuple[str | None, int] = (None, 0)
    problem: Problem = Problem.STUCK
    worst: Problem = Problem.STUCK
    counted: int = 0
    nothing_to: str = ""

    def type(self, text: str) -> None:
        """Read a new line, in which nobody is spoken to yet."""
        self.addressed = False
        self.change(text)

    def change(self, text: str) -> None:
        """Read the line again from its beginning, with other words."""
        self.text = text
        words = dictionary_words(self.text)
        self.words = words[:MOST_WORDS]
        self.heard = self.text if len(words) <= MOST_WORDS else " ".join(split_words(self.text)[:MOST_WORDS])
        cut = self.memory.cut_at[0]
        if 0 < cut <= len(self.words):
            self.memory.cut_at = cut, self._start(cut)

    def insert(self, text: str, position: int) -> None:
        """Put words before a word of the line."""
        at = self._start(position)
        self.change(f"{self.text[:at]}{text} {self.text[at:]}"[:_MOST_LETTERS])

    def append(self, text: str) -> None:
        """Put words behind the line; what does not fit into Inform's buffer is lost, if the line itself does."""
        line = f"{self.text} {text}"
        self.change(line[:_MOST_LETTERS] if len(self.text) < _MOST_LETTERS - 1 else line)

    def after(self, position: int) -> str:
        """The line from a word on."""
        return self.text[self._start(position) :]

    def next_command(self) -> str | None:
        """The rest of the line, after blanks for what was read, or `None`; "again" leaves what was read instead."""
        (word, letter), self.memory.cut_at = self.memory.cut_at, (0, 0)
        if self.finished:
            return self._blank(0, letter) if word else None
        if self.at >= len(self.words):
            return None
        if self.words[self.at] in AGAIN:
            return self._blank(self._start(self.at), self._start(self.at + 2))
        return self._blank(0, self._start(self.at + 1))

    def _blank(self, start: int, end: int) -> str:
        return self.text[:start] + " " * (end - start) + self.text[end:]

    def leave_cut(self) -> None:
        """Remember where the line is cut, which the line after it does not forget."""
        self.memory.cut_at = self.at, self._start(self.at)

    def _start(self, position: int) -> int:
        """Where a word begins in the line; its end for words past the last one."""
        starts = [match.start() for match in _WORD.finditer(self.text)]
        return starts[position - 1] if position <= min(len(starts), MOST_WORDS) else len(self.text)

    @property
    def finished(self) -> bool:
        """Whether every word has been read."""
        return self.at > len(self.words)

    def peek(self) -> str | None:
        """The next word, which is not read yet."""
        return self.words[self.at - 1] if 1 <= self.at <= len(self.words) else None

    def next(self) -> str | None:
        """The next word, or `None` past the last one; the position moves on in any case."""
        self.at += 1
        return self.words[self.at - 2] if 1 < self.at <= len(self.words) + 1 else None

    def is_preposition(self, word: str | None) -> bool:
        """Whether a word can stand after a verb in some sentence."""
        return word is not None and word in self.grammar.prepositions

    def number_at(self, position: int) -> int:
        """The number that a word stands for; a negative one if it stands for none."""
        word = self.words[position - 1]
        if word in NUMBERS:
            return NUMBERS[word]
        digits = split_words(self.text)[position - 1]
        if not digits.isdecimal():
            return _NO_NUMBER
        return _LARGEST_NUMBER if len(digits) > len("9999") else int(digits)

    def notice(self, entity: int) -> None:
        """Let "it" stand for an entity."""
        if entity != PLAYER:
            self.memory.it = entity

    def note_part(self, part: str | int | None) -> None:
        """Remember what was understood of the part of the sentence that is tried."""
        self.pattern += [None] * (self.index + 1 - len(self.pattern))
        self.pattern[self.index] = part
