"""What a command means, as Inform's parser understands it.

The sentences of the verb are tried one after the other. A noun phrase is matched with everything that can be reached;
where several things fit equally well, scores decide, then the player is asked. If no sentence fits, the error of the one
that came furthest is told. This follows the Inform 6 parser that is part of Inform 7 (template `Parser`), whose
variables keep their names here where the field knows them by these names.

A question ends the turn; its answer is the next line. So a parse is a function of the world and of the lines typed
since the last command that was understood: the engine keeps them and parses them again with the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from textagent_gym.domains.textworld.inform.fiction import FIRST_DIRECTION, PLAYER
from textagent_gym.domains.textworld.inform.naming import definite
from textagent_gym.domains.textworld.inform.vocabulary import Sentence, Token, dictionary_form, grammar
from textagent_gym.domains.textworld.inform.world import ALL_DIRECTIONS, World

_MOST_WORDS = 15  # Of a line; the rest is not read.
_MOST_LETTERS = 120

_ALL = frozenset(("all", "each", "every", "everythin", "both"))
_BUT = frozenset(("but", "except"))
_CONNECTIVES = _BUT | {"and"}
_ME = frozenset(("me", "myself", "self"))
_PRONOUNS = ("it", "him", "her", "them")
_ARTICLES = frozenset(("the", "a", "an", "some"))
_POSSESSIVES = {
    "my": "my", "this": "my", "these": "my", "that": "that", "those": "that",
    "his": "him", "her": "her", "their": "them", "its": "it",
}  # fmt: skip
_LIGHT = {"lit": True, "lighted": True, "unlit": False}
_DESCRIPTORS = _ARTICLES | frozenset(_POSSESSIVES) | frozenset(_LIGHT)
_OTHER = frozenset(("another", "other"))
_NUMBERS = {
    word: number
    for number, word in enumerate(
        (
            *("one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen").split(),
            *("sixteen seventeen eighteen nineteen twenty").split(),
        ),
        start=1,
    )
}
_NUMBERS |= {
    dictionary_form(f"twenty-{word}"): 20 + number for word, number in list(_NUMBERS.items()) if number < 10
} | {"thirty": 30}
_LARGEST_NUMBER = 10_000

_VERBS_THAT_MAY_BE_NAMES = frozenset(("long", "short", "normal", "brief", "full", "verbose"))
_PROGRAM_VERBS = frozenset(
    """score quit q save restart restore verify version script transcript superbrief short verbose long brief normal
    nouns pronouns notify print_sta enable disable tw-extra tw-trace restrict tw-print""".split()
)

_SPOKEN_VERBS = {
    "i": "take inventory", "inv": "take inventory", "inventory": "take inventory",
    "l": "look", "x": "examine", "z": "wait",
}  # fmt: skip

_MULTI = frozenset(("multi", "multiheld", "multiexcept", "multiinside"))
ALL_WANTED = 32_767
_NOT_SET = -1  # A pronoun that stands for nothing.


class Problem(IntEnum):
    """Why no sentence fits. Of several problems, the highest is told."""

    STUCK = 1
    UP_TO = 2
    NUMBER = 3
    INANIMATE = 4
    UNSEEN = 5
    TOO_LITTLE = 6
    NOT_HELD = 7
    MULTIPLE = 8
    MULTIPLE_TWICE = 9
    VAGUE = 10
    EXCEPTED = 11
    VERB = 12
    SCENERY = 13
    GONE = 14
    JUNK_AFTER = 15
    TOO_FEW = 16
    NOTHING = 17
    OUT_OF_CONTEXT = 18


@dataclass(frozen=True, slots=True)
class Command:
    """What the player asks for.

    Attributes:
        action: name of the action.
        nouns: the nouns, as far as there are any: entities, 0 for `several`, 1 for a topic.
        several: the things that are meant by "all" or a list.
    """

    action: str
    nouns: tuple[int, ...]
    several: tuple[int, ...]


class NeedLine(Exception):
    """The parser has asked a question and the answer is not typed yet."""


class _Reparse(Exception):
    """The words have changed and are read from the beginning."""


class _Failed(Exception):
    """The command means nothing.

    Args:
        problem: what is told.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem


@dataclass
class Memory:
    """What the parser remembers from one command to the next.

    Attributes:
        it: what "it" stands for, or -1.
        understood: as far as a command was understood that had too many words.
    """

    it: int = _NOT_SET
    understood: tuple[str | int | None, ...] = ()


@dataclass
class _Descriptors:
    """What the words before a name say about it.

    Attributes:
        indefinite: whether any thing will do that fits.
        plural: whether several things are meant.
        wanted: number of things that are meant; 0 where it was not said.
        guessed: whether that number may be part of a name.
        ambiguous: whether a word may be part of the name after all.
        whose: requirements: "my", "that", "lit", "unlit" or an owner's pronoun.
        number_at: position of the number, or 0.
    """

    indefinite: bool = False
    plural: bool = False
    wanted: int = 0
    guessed: bool = False
    ambiguous: bool = False
    whose: list[str] = field(default_factory=list)
    number_at: int = 0


class Parser:
    """Reads one command.

    Args:
        world: world in which it is typed; nothing in it is changed.
        memory: what is remembered; it is changed.
        lines: what was typed: the command, then answers to questions.

    Attributes:
        asked: text of the question that waits for an answer, or of the error.
        note: text that tells what was taken for granted, printed before the action.
    """

    def __init__(self, world: World, memory: Memory, lines: Sequence[str]) -> None:
        self.world = world
        self.memory = memory
        self.asked = ""
        self.note = ""
        self._lines = list(lines)
        self._fiction = world.fiction
        self._grammar = grammar(world.fiction.cooking)
        self._words: list[str] = []
        self._text = ""
        self._starts: list[int] = []
        self._combining = 0
        self._seconds: list[int] = []
        self._descriptors = _Descriptors()
        self._pronoun: tuple[str | None, int] = (None, 0)
        self._told_pronoun: tuple[str | None, int] = (None, 0)
        self._lookahead: Token | None = None
        self._matches: list[int] = []
        self._scores: list[int] = []
        self._multi_had = self._multi_wanted = 0
        self._verb = ""
        self._inferred_go = False
        self._action = ""
        self._inputs = [0, 0]
        self._parameters = 0
        self._pattern: list[str | int | None] = []
        self._pattern_end = 0
        self._line: Sentence | None = None
        self._several: list[int] = []
        self._match_length = self._match_from = 0
        self._filter = ""
        self._advance_warning = -1
        self._at = 1
        self._allow_plurals = True
        self._take_all = self._looked = 0
        self._multi_flag = self._dont_infer = False
        self._best = self._etype = Problem.STUCK
        self._multi_context = self._nothing_to = ""
        self._inferred_from: int | None = None

    @property
    def text(self) -> str:
        """The words that were read, with the answers to questions put where they belong."""
        return self._text

    def parse(self) -> Command | None:
        """The command; `None` if it means nothing, and then `asked` says why.

        Raises:
            NeedLine: the parser has asked for more; `asked` is the question.
        """
        self._set_text(self._next_line())
        while True:
            try:
                return self._parse()
            except _Reparse:
                continue
            except _Failed as failure:
                self.asked = self._error(failure.problem)
                return None

    # The words of the line. Positions count from 1, as in Inform.

    def _next_line(self) -> str:
        if not self._lines:
            raise NeedLine
        return self._lines.pop(0)[:_MOST_LETTERS]

    def _set_text(self, text: str) -> None:
        self._text = text[:_MOST_LETTERS]
        self._words, self._starts = [], []
        at = 0
        for word in self._text.split(" "):
            if word and len(self._words) < _MOST_WORDS:
                self._words.append(dictionary_form(word))
                self._starts.append(at)
            at += len(word) + 1

    def _next(self) -> str | None:
        """The next word, or `None` past the last one; the position moves on in any case."""
        self._at += 1
        return self._words[self._at - 2] if 1 < self._at <= len(self._words) + 1 else None

    def _is_preposition(self, word: str | None) -> bool:
        return word is not None and word in self._grammar.prepositions

    # The whole command.

    def _parse(self) -> Command:
        self._verb = self._words[0] if self._words else ""
        self._inferred_go = False
        self._nothing_to = ""
        self._combining = 0  # Kept during one parse, as Inform does.
        sentences = self._grammar.sentences.get(self._verb)
        if sentences is None:
            return self._direction_alone()
        self._best = Problem.STUCK
        self._multi_flag = False
        self._pronoun = (None, 0)
        for sentence in sentences:
            command = self._try(sentence)
            if command is not None:
                return command
            self._best = max(self._best, self._etype)
            if self._take_all == 2 and self._etype == Problem.NOTHING:
                break
        raise _Failed(self._best)

    def _direction_alone(self) -> Command:
        self._at = 1
        self._descriptors.indefinite = False
        self._filter, self._parameters, self._action = "", 0, "going"
        self._line = None
        self._advance_warning = -1
        found = self._match_domain("compass", "", "")
        if found and FIRST_DIRECTION <= found < PLAYER:
            if self._at > len(self._words):
                return Command("going", (found,), ())
            self._inferred_go = True
            raise _Failed(Problem.UP_TO)
        raise _Failed(Problem.VERB)

    def _try(self, sentence: Sentence) -> Command | None:
        """The command if a sentence fits, else `None`."""
        self._line = sentence
        self._action = sentence.action
        self._reset_line()
        self._at = 2
        failed = self._look_ahead(sentence)
        self._take_all = int(
            any(token.kind == "multi" for token in sentence.tokens[: self._looked])
            and sentence.nouns == 1
            and sentence.action == "taking"
        )
        if failed:
            return None
        self._reset_line()
        if not self._ends_with_its_preposition(sentence):
            return None
        self._at = 2
        for index, token in enumerate((*sentence.tokens, None)):
            self._pattern = [*self._pattern[:index], None]
            self._pattern_end = index
            self._lookahead = sentence.tokens[index + 1] if index + 1 < len(sentence.tokens) else None
            if token is None:
                return self._complete(sentence)
            if not self._parse_token(token, index):
                return None
        raise AssertionError  # The end of the sentence returns.

    def _reset_line(self) -> None:
        self._inferred_from = None
        self._parameters = 0
        self._several = []
        self._multi_context = ""
        self._pattern = []
        self._etype = Problem.STUCK

    def _ends_with_its_preposition(self, sentence: Sentence) -> bool:
        if not sentence.tokens or sentence.tokens[-1].kind != "word":
            return True
        return len(self._words) > 1 and self._words[-1] in sentence.tokens[-1].words

    def _look_ahead(self, sentence: Sentence) -> bool:
        """Learn from the second noun what the first can be; whether the sentence cannot fit."""
        self._advance_warning = -1
        self._descriptors.indefinite = False
        nouns = 0
        for index, token in enumerate(sentence.tokens):
            nouns += token.kind != "word"
            self._looked = index + 1
            if not (token.kind == "multiexcept" or (token.kind == "multiinside" and nouns == 1)):
                continue
            at = index + 1
            if at < len(sentence.tokens) and sentence.tokens[at].kind == "word":
                word = self._next()
                while not (self._at > len(self._words) or self._is_preposition(word)):
                    word = self._next()
                if self._at <= len(self._words):
                    while True:
                        if word in sentence.tokens[at].words:
                            at += 1
                        else:
                            word = self._next()
                            while not (self._at >= len(self._words) or self._is_preposition(word)):
                                word = self._next()
                            if self._is_preposition(word):
                                continue
                            return True
                        if self._at <= len(self._words):
                            word = self._next()
                        if at >= len(sentence.tokens) or sentence.tokens[at].kind != "word":
                            break
                self._at -= 1
                if at < len(sentence.tokens) and sentence.tokens[at].kind == "noun":
                    problem = self._read_descriptors(plurals=False)
                    if problem:
                        self._etype = problem
                    self._parameters, self._inputs[0] = 1, 0
                    self._pattern_end = at
                    found = self._match_domain("room", "player", "noun", ask=False)
                    self._parameters = 0
                    if found >= FIRST_DIRECTION:
                        self._advance_warning = found
            break
        return False

    def _complete(self, sentence: Sentence) -> Command | None:
        """The command, now that every part of a sentence has been found."""
        if self._at <= len(self._words):
            self.memory.understood = tuple(self._pattern[: self._pattern_end])
            self._etype = Problem.UP_TO
            return None
        first, second = self._inputs
        if self._parameters >= 1 and first == 0:
            problem = self._revise(second)
            if problem:
                self._nothing_to = self._action
                self._etype = problem
                return None
        if self._parameters >= 2:
            if second == 0:
                problem = self._revise(first)
                if problem:
                    self._etype = problem
                    return None
            elif first and (
                (self._multi_context == "multiexcept" and first == second)
                or (
                    self._multi_context == "multiinside"
                    and self.world.holder[first] != second
                    and self.world.holder[second] != first
                )
            ):
                self._nothing_to = self._action
                raise _Failed(Problem.NOTHING)
        if self._take_all == 2 and first == PLAYER:
            raise _Failed(Problem.NOTHING)
        if self._inferred_from is not None:
            inferred = self._pattern[self._inferred_from : self._pattern_end]
            self.note = f"({' '.join(self._parts_said(inferred))})\n"
        nouns = self._inputs[: self._parameters]
        if sentence.swapped and len(nouns) == 2:
            nouns.reverse()
        if nouns and nouns[0] >= FIRST_DIRECTION:
            self._notice(nouns[0])
        return Command(sentence.action, tuple(nouns), tuple(self._several))

    def _notice(self, entity: int) -> None:
        if entity != PLAYER:
            self.memory.it = entity

    def _revise(self, second: int) -> Problem | None:
        """Throw out of several things what the other noun excludes."""
        holder = self.world.holder
        if self._multi_context == "multiexcept":
            self._several = [thing for thing in self._several if thing != second]
        elif self._multi_context == "multiinside":
            self._several = [thing for thing in self._several if holder[thing] == second]
        if self._multi_context == "multi" and self._action == "taking" and self._take_all == 2:
            self._several = [thing for thing in self._several if self._in_room(thing)]
        return None if self._several else Problem.NOTHING

    def _in_room(self, thing: int) -> bool:
        return not FIRST_DIRECTION <= thing < PLAYER

    # One part of a sentence.

    def _parse_token(self, token: Token, index: int) -> bool:
        """Whether the next words fit; the noun is added to the inputs."""
        self._filter = ""
        if token.kind == "word":
            return self._parse_word(token, index)
        if token.kind == "topic":
            return self._parse_topic(index)
        kind = token.kind
        if kind in ("direction", "device"):
            self._filter, kind = kind, "noun"
        found = self._parse_noun(kind)
        if found is None:
            return False
        self._add_input(found, index)
        return True

    def _add_input(self, found: int, index: int) -> None:
        self._inputs[self._parameters] = found
        self._parameters += 1
        self._pattern[index] = found

    def _parse_word(self, token: Token, index: int) -> bool:
        assert self._line is not None
        if self._at > len(self._words):
            if self._inferred_from is None:
                if self._parameters >= self._wanted:
                    return False
                self._inferred_from = index
            self._pattern[index] = token.words[0]
            return True
        word = self._next()
        self._pattern[index] = word
        return word in token.words

    @property
    def _wanted(self) -> int:
        """Number of nouns that the sentence has; a topic that is no noun does not count once it was read."""
        assert self._line is not None
        topics = sum(1 for token in self._line.tokens if token.kind == "topic")
        return self._line.nouns - (topics if self._action not in ("asking", "answering", "telling") else 0)

    def _parse_topic(self, index: int) -> bool:
        assert self._line is not None
        after = self._line.tokens[index + 1] if index + 1 < len(self._line.tokens) else None
        start = self._at
        word = self._next()
        while word is not None and not (after is not None and word in after.words):
            word = self._next()
        self._at -= 1
        if self._at == start:
            return False
        if self._action in ("asking", "answering", "telling"):
            self._add_input(1, index)
            return True
        return not (word is None and after is not None)

    def _parse_noun(self, kind: str) -> int | None:
        """What a noun phrase means: an entity, 0 for several; `None` if it does not fit."""
        allows_several = kind in _MULTI
        several, adding = False, True
        self._dont_infer = False
        single = 0
        before_wanted = 0
        while True:  # One name of a list.
            word = self._peek()
            self._pronoun = (None, 0)
            if word in _PRONOUNS:
                meant = self.memory.it if word == "it" else _NOT_SET
                self._pronoun = (word, meant)
                if meant == _NOT_SET and word not in _DESCRIPTORS:
                    self._told_pronoun = self._pronoun
                    self._etype = Problem.VAGUE
                    return None
            if word in _ME:
                self._pronoun = (word, PLAYER)
            self._allow_plurals = True
            start = self._at
            problem = self._read_descriptors(plurals=allows_several)
            while True:  # One reading of the words before it.
                if kind == "held":
                    found = self._match_domain("player", "room", kind)
                    if found == 0:
                        if self._descriptors.ambiguous:
                            self._descriptors = _Descriptors()
                            self._at = start
                            continue
                        self._etype = self._cannot_see()
                    else:
                        single = found
                        break
                else:
                    before = len(self._several)
                    found = self._match_domain("room", "player", kind)
                    if self._descriptors.wanted == ALL_WANTED and found == 0 and not self._matches:
                        found = 1
                    if allows_several and not self._multi_flag:
                        if self._best == Problem.MULTIPLE:
                            self._best = Problem.STUCK
                        self._multi_flag = True
                    if found == 0:
                        if self._descriptors.ambiguous:
                            self._descriptors = _Descriptors()
                            self._at = start
                            continue
                        if self._etype == Problem.MULTIPLE and self._multi_flag:
                            self._etype = Problem.STUCK
                        self._etype = self._cannot_see()
                    elif found == 1:
                        if several:
                            new, self._several = self._several[before:], self._several[:before]
                            for thing in new:
                                self._combine(thing, adding)
                        several = True
                        break
                    else:
                        if self._match_length == 0 and self._descriptors.ambiguous:
                            self._descriptors = _Descriptors()
                            self._at = start
                            continue
                        if kind == "creature" and found != PLAYER:
                            self._etype = Problem.INANIMATE
                        else:
                            if several:
                                self._combine(found, adding)
                            else:
                                single = found
                            break
                # Nothing fits.
                if self._allow_plurals and self._descriptors.guessed:
                    before_wanted = self._descriptors.wanted
                    self._allow_plurals = False
                    self._at = start
                    self._read_descriptors(plurals=allows_several)
                    continue
                if (self._descriptors.wanted > 0 or before_wanted > 0) and not self._multi_flag:
                    self._etype = Problem.MULTIPLE
                return None
            del problem
            self._at = self._match_from + self._match_length
            word = self._next()
            if word not in _CONNECTIVES:
                self._at -= 1
                break
            if not allows_several:
                if self._multi_flag:
                    break
                self._etype = Problem.MULTIPLE
                return None
            if word in _BUT:
                adding = not adding
            if not several:
                self._several = [single]
                several = True
            self._dont_infer = True
            self._inferred_from = None
        if several:
            self._multi_context = kind
            return 0
        if self._descriptors.indefinite and self._descriptors.plural:
            if kind in ("multiexcept", "multiinside"):
                self._multi_context = kind
            if 1 < self._descriptors.wanted < ALL_WANTED:
                self._multi_had, self._multi_wanted = 1, self._descriptors.wanted
                self._etype = Problem.TOO_FEW
                if not self._multi_flag:
                    self._etype = Problem.MULTIPLE
                return None
        return single

    def _peek(self) -> str | None:
        return self._words[self._at - 1] if 1 <= self._at <= len(self._words) else None

    def _combine(self, thing: int, adding: bool) -> None:
        if adding and thing not in self._several:
            self._several.append(thing)
        elif not adding and thing in self._several:
            self._several.remove(thing)

    def _read_descriptors(self, *, plurals: bool) -> Problem | None:
        """Read what stands before a name: articles, possessives, "all", numbers."""
        del plurals  # Inform hands it over and does not look at it.
        found = self._descriptors = _Descriptors()
        if self._at > len(self._words):
            return None
        reading = True
        while reading:
            word = self._next()
            reading = False
            if word in _DESCRIPTORS:
                reading = True
                found.ambiguous = True
                if word != "the":
                    found.indefinite = True
                if word in _POSSESSIVES:
                    found.whose.append(_POSSESSIVES[word])
                elif word in _LIGHT:
                    found.whose.append("lit" if _LIGHT[word] else "unlit")
            if word in _OTHER:
                reading = found.indefinite = True
            if word in _ALL:
                reading = found.indefinite = found.plural = True
                found.wanted = ALL_WANTED
                if self._take_all == 1:
                    self._take_all = 2
            if self._allow_plurals:
                has_more = self._next() is not None
                self._at -= 1
                number = self._number_at(self._at - 1) if has_more else 0
                if number == 1:
                    reading = found.indefinite = True
                elif number > 1:
                    reading = found.indefinite = found.plural = found.guessed = True
                    found.wanted = number
                    found.number_at = self._at - 1
            if reading and self._next() != "of":
                self._at -= 1
        self._at -= 1
        return None

    def _number_at(self, at: int) -> int:
        """The number that a word stands for, or a negative one."""
        word = self._words[at - 1]
        if word in _NUMBERS:
            return _NUMBERS[word]
        end = self._starts[at] if at < len(self._starts) else len(self._text)
        digits = self._text[self._starts[at - 1] : end].strip()
        if not digits.isdecimal():
            return -1000
        return _LARGEST_NUMBER if len(digits) > 4 else int(digits)

    def _cannot_see(self) -> Problem:
        """The problem of a noun phrase that fits nothing; the position is past the word that did not fit."""
        self._at -= 1
        word = self._next()
        problem = Problem.UNSEEN
        if word is not None and word == self._pronoun[0]:
            following = self._peek()
            index = self._pattern_end + 1
            assert self._line is not None
            if following is None or index < len(self._line.tokens):
                if self._line.tokens[self._pattern_end].kind in ("direction", "device"):
                    problem = Problem.OUT_OF_CONTEXT
                else:
                    self._told_pronoun = self._pronoun
                    problem = Problem.GONE
        return max(self._etype, problem)

    # What a name can mean.

    def _match_domain(self, one: str, other: str, kind: str, *, ask: bool = True) -> int:
        """What the next words mean: an entity, 0 for nothing, 1 for several that were added.

        Args:
            one: where to look first: "room", "player" or "compass".
            other: where to look then.
            kind: kind of the token.
            ask: whether the player may be asked.

        Raises:
            NeedLine: the player was asked, and the answer is not there yet.
        """
        self._match_length, self._matches, self._match_from = 0, [], self._at
        self._search_scope(one, other, kind)
        self._at = self._match_from + self._match_length
        if not self._matches:
            self._at += 1
            return 0
        if self._match_from <= len(self._words):
            if len(self._matches) == 1:
                return self._matches[0]
            if self._at <= len(self._words) and self._peek() not in _CONNECTIVES and self._lookahead is None:
                return 0
        chosen = 0
        if len(self._matches) == 1:
            chosen = self._matches[0]
            if self._descriptors.indefinite and self._descriptors.plural and self._all_includes(chosen) is False:
                return 0
        else:
            chosen = self._adjudicate(kind)
            if chosen == -1:
                return 0
            if chosen == 1:
                return 1
        if chosen:
            if not self._dont_infer:
                if self._inferred_from is None:
                    self._inferred_from = self._pattern_end
                while len(self._pattern) <= self._pattern_end:
                    self._pattern.append(None)
                self._pattern[self._pattern_end] = chosen
            return chosen
        if not ask:
            return self._matches[0]
        if self._match_from > len(self._words):
            self._ask_for_more(kind)
        return self._ask_which(kind)

    def _ask_which(self, kind: str) -> int:
        names = [definite(self.world, entity, "") for entity in self._matches]
        who = "Who" if all(entity == PLAYER for entity in self._matches) else "Which"
        self.asked = f"{who} do you mean, {', '.join(names[:-1])} or {names[-1]}?\n"
        while True:
            answer = self._next_line()
            first = dictionary_form(answer.split(" ")[0])
            if first not in _ALL:
                break
            if kind in _MULTI:
                self.asked = ""
                self._several += self._matches
                return 1
            self.asked = "Sorry, you can only have one item here. Which exactly?\n"
        self.asked = ""
        if self._is_verb(first):
            self._set_text(answer)
        else:
            at = self._starts[self._match_from - 1]
            self._set_text(f"{self._text[:at]}{answer} {self._text[at:]}")
        raise _Reparse

    def _ask_for_more(self, kind: str) -> None:
        self.asked = f"{'Whom' if kind == 'creature' else 'What'} do you want to {self._command_so_far()}?\n"
        answer = self._next_line()
        self.asked = ""
        if self._is_verb(dictionary_form(answer.split(" ")[0])):
            self._set_text(answer)
            raise _Reparse
        glue: list[str] = []
        if self._inferred_from is not None:
            for part in self._pattern[self._inferred_from : self._pattern_end]:
                if isinstance(part, str):
                    glue.append(part)
                elif part is not None and part >= FIRST_DIRECTION:
                    self._notice(part)
                    if part == self.memory.it:
                        glue.append("it")
        self._set_text(" ".join((self._text, *glue, answer)))
        raise _Reparse

    def _is_verb(self, word: str) -> bool:
        is_verb = word in self._grammar.sentences or word in _PROGRAM_VERBS
        return is_verb and word not in _VERBS_THAT_MAY_BE_NAMES

    # Which things can be meant, and how well their names fit.

    def _search_scope(self, one: str, other: str, kind: str) -> None:
        world = self.world
        if one == "compass":
            for direction in ALL_DIRECTIONS:
                self._match_name(direction)
            return
        if kind == "multiinside" and self._advance_warning != -1:
            if world.is_see_through(self._advance_warning):
                self._search_within(world.contents[self._advance_warning], nosearch=0)
            return
        if kind != "creature" and not self._descriptors.indefinite and one == "room":
            for direction in ALL_DIRECTIONS:
                self._match_name(direction)
        inside = {"room": world.room, "player": PLAYER}
        self._search_within(world.contents[inside[one]], nosearch=inside[other])
        self._search_within(world.contents[inside[other]], nosearch=0)

    def _search_within(self, things: tuple[int, ...], nosearch: int) -> None:
        for thing in things:
            self._match_name(thing)
            if thing != nosearch and self.world.contents[thing] and self.world.is_see_through(thing):
                self._search_within(self.world.contents[thing], nosearch)

    def _match_name(self, entity: int) -> None:
        """Match the words from where the noun phrase begins with the names of an entity."""
        if self._filter and (self._filter == "device" or not FIRST_DIRECTION <= entity < PLAYER):
            return
        if self._match_from <= len(self._words):
            word = self._words[self._match_from - 1]
            if (word in _ME and entity == PLAYER) or (word == "it" and entity == self.memory.it):
                self._add_match(entity, 1)
        self._at = self._match_from
        if self._try_name(entity) and self._descriptors.number_at and self._match_from != self._descriptors.number_at:
            self._at = self._descriptors.number_at
            if self._try_name(entity):
                self._match_from = self._descriptors.number_at
                self._descriptors = _Descriptors()
            self._at = self._match_from

    def _try_name(self, entity: int) -> bool:
        if self._at > len(self._words):
            self._add_match(entity, 0)
            return True
        length = self._name_length(entity)
        if length == 0:
            word = self._words[self._at - 1]
            if (word in _ME and entity == PLAYER) or (word == "it" and entity == self.memory.it):
                length = 1
            elif not self._descriptors.indefinite:
                return False
        elif "directions"[:9] in self._words[self._at - 1 : self._at - 1 + length]:
            if not self._allow_plurals:
                length = 0
            else:
                if not self._descriptors.indefinite:
                    self._descriptors.indefinite, self._descriptors.wanted = True, 0
                self._descriptors.plural = True
                self._descriptors.wanted = self._descriptors.wanted or ALL_WANTED
        self._add_match(entity, length)
        return length > 0

    def _name_length(self, entity: int) -> int:
        """Number of words from the position on that can be a name of an entity."""
        phrases = self._fiction.phrases[entity]
        states = self.world.shown_states(entity)
        best = 0
        for with_states in (True, False) if states else (False,):
            at = self._at - 1
            while True:
                if with_states and at < len(self._words) and self._words[at] in states:
                    at += 1
                    continue
                for phrase in phrases:
                    if tuple(self._words[at : at + len(phrase)]) == phrase:
                        at += len(phrase)
                        break
                else:
                    break
            best = max(best, at - self._at + 1)
        return best

    def _add_match(self, entity: int, quality: int) -> None:
        if quality < self._match_length:
            return
        if quality > self._match_length:
            self._match_length, self._matches = quality, []
        elif entity in self._matches:
            return
        self._matches.append(entity)

    # Which of several things is meant.

    def _all_includes(self, entity: int) -> bool | None:
        """Whether "all" includes an entity; `None` where no rule says."""
        kind = self._fiction.kinds[entity]
        if self._action in ("taking", "taking off", "removing"):
            if kind in ("player", "direction", "door", "container", "supporter"):
                return False
            return False if self.world.is_within(entity, PLAYER) else None
        if self._action in ("dropping", "throwing", "inserting", "putting") and kind == "player":
            return False
        return None

    def _adjudicate(self, kind: str) -> int:
        """The entity that is meant; 0 if that cannot be said, 1 for several that were added, -1 for none."""
        world, wanted = self.world, self._descriptors
        good = [entity for entity in self._matches if self._is_good(entity, kind)]
        self._scores = [1000 * (entity in good) for entity in self._matches]
        if len(good) == 1:
            several = wanted.indefinite and wanted.plural and kind in _MULTI
            if not several or self._all_includes(good[0]) is not False:
                return good[0]
        if kind == "creature" and not good:
            return self._matches[0]
        if not wanted.indefinite:
            wanted.plural = False
        self._score_matches()
        wanted = self._descriptors  # Looking for the second noun may have changed how the first is described.
        if not self._matches:
            return -1
        if not wanted.indefinite:
            best = max(self._scores)
            if self._scores.count(best) == 1:
                return self._matches[self._scores.index(best)]
        in_order = [
            entity for _, _, entity in sorted((-s, i, e) for i, (s, e) in enumerate(zip(self._scores, self._matches, strict=True)))
        ]
        if wanted.indefinite and wanted.plural:
            if kind not in _MULTI:
                self._etype = Problem.MULTIPLE
                return -1
            count = 0
            for entity in in_order:
                if count >= wanted.wanted:
                    break
                included = self._all_includes(entity)
                if included is None:
                    included = entity != PLAYER
                    if kind in ("multiheld", "multiexcept") and world.holder[entity] != PLAYER:
                        included = False
                    if self._action in ("taking", "removing") and world.holder[entity] == PLAYER:
                        included = False
                if included:
                    self._several.append(entity)
                    count += 1
            if count < wanted.wanted < ALL_WANTED:
                self._etype = Problem.TOO_FEW
                self._multi_wanted, self._multi_had = wanted.wanted, count
                return -1
            self._multi_context = kind
            return 1
        if not wanted.indefinite and len(self._matches) > 1:
            best = max(self._scores)
            if self._scores.count(best) > 1:
                return 0
        if len(self._matches) == 1:
            self._dont_infer = True
        return in_order[0]

    def _is_good(self, entity: int, kind: str) -> bool:
        """Whether an entity is an obvious choice for a noun phrase."""
        holder = self.world.holder[entity]
        if kind in ("held", "multiheld"):
            return holder == PLAYER
        if kind == "multi":
            return entity > PLAYER
        if kind == "multiexcept":
            return entity != self._advance_warning
        if kind == "multiinside":
            return holder == self._advance_warning if self._advance_warning != -1 else holder != PLAYER
        return kind == "creature" and entity == PLAYER

    def _score_matches(self) -> None:
        """Score what fits the words equally well by where it is, and drop what is not as described."""
        world = self.world
        held, here = (40, 60) if self._action in ("taking", "removing") else (60, 40)
        kept: list[tuple[int, int]] = []
        for entity, score in zip(list(self._matches), self._scores, strict=True):
            holder = world.holder[entity]
            if not all(self._is_described(entity, holder, word) for word in set(self._descriptors.whose)):
                continue
            is_direction = FIRST_DIRECTION <= entity < PLAYER
            if entity != PLAYER:
                score += 100 + 5
            if holder == PLAYER:
                score += held
            elif holder == world.room:
                score += here
            elif not is_direction:
                score += 20
            score += 1000 * self._likelihood(entity)
            if not is_direction:
                score += 10
            kept.append((entity, score))
        self._matches = [entity for entity, _ in kept]
        self._scores = [score for _, score in kept]

    def _is_described(self, entity: int, holder: int, word: str) -> bool:
        if word == "my":
            return holder == PLAYER
        if word == "that":
            return holder == self.world.room
        if word == "unlit":
            return True
        if word == "it":
            return self.memory.it not in (_NOT_SET, 0) and holder == self.memory.it
        return False

    def _likelihood(self, entity: int) -> int:
        """How likely a noun is meant, 0 to 4, together with what the other noun can be."""
        if self._combining == 0:
            self._combining = 1 if self._find_second_nouns() else 2
        if self._parameters > 0:
            return self._likely(self._inputs[0], entity)
        if self._combining == 2:
            return self._likely(entity, max(self._advance_warning, 0))
        best = 0
        for second in self._seconds:
            best = max(best, self._likely(entity, second))
            if best == 4:
                break
        return best

    def _find_second_nouns(self) -> bool:
        """Remember what the second noun of the sentence can be, if it is typed already."""
        if self._line is None:
            return False
        tokens = self._line.tokens
        index = self._pattern_end + 1
        while index < len(tokens) and tokens[index].kind == "word":
            index += 1
        if index >= len(tokens) or tokens[index].kind in ("topic", "direction", "device"):
            return False
        at = self._at
        while self._at <= len(self._words):
            word = self._peek()
            if self._is_preposition(word) or word in _ALL:
                self._at += 1
                continue
            described = self._descriptors
            self._read_descriptors(plurals=False)
            self._descriptors = described
            saved = (self._match_length, self._filter, self._match_from, self._matches)
            self._match_length, self._matches, self._filter, self._match_from = 0, [], "", self._at
            self._search_scope("player", "room", tokens[index].kind)
            self._seconds = self._matches
            self._match_length, self._filter, self._match_from, self._matches = saved
            self._at = at
            return True
        self._at = at
        return False

    def _likely(self, one: int, other: int) -> int:
        """TextWorld's and Inform's rules of what the player means: 4 for very likely, 0 for very unlikely."""
        assert self._line is not None
        world, action = self.world, self._action
        noun, second = (other, one) if self._line.swapped else (one, other)
        if second > PLAYER and world.holder[second] == PLAYER and noun >= PLAYER:
            if action in ("slicing", "chopping", "dicing") and not world.has_trait(second, "sharp"):
                return 0
            if action == "cooking":
                return 0
        if action == "taking" and noun > PLAYER and world.holder[noun] == PLAYER:
            return 0
        names = self._fiction.names
        if noun and not second:
            return 3 if names[noun] in self._text else 2
        if second and not noun:
            return 3 if names[second] in self._text else 2
        return 4 if noun and second and names[noun] in self._text and names[second] in self._text else 2

    # What the parser says.

    def _command_so_far(self) -> str:
        """The command as far as it was understood."""
        verb = _SPOKEN_VERBS.get(self._verb, self._verb)
        return " ".join((verb, *self._parts_said(self._pattern[: self._pattern_end])))

    def _parts_said(self, pattern: Sequence[str | int | None]) -> list[str]:
        said = []
        for part in pattern:
            if isinstance(part, str):
                said.append(part)
            elif part == 0:
                said.append("those things")
            elif part == 1:
                said.append("that")
            elif part is not None:
                is_direction = FIRST_DIRECTION <= part < PLAYER
                said.append(self._fiction.names[part] if is_direction else definite(self.world, part, ""))
        return said

    def _error(self, problem: Problem) -> str:
        if problem == Problem.UP_TO:
            self._pattern = list(self.memory.understood)
            self._pattern_end = len(self._pattern)
            go = "(go) " if self._inferred_go else ""
            return f"I only understood you as far as wanting to {go}{self._command_so_far()}.\n"
        if problem == Problem.GONE and self._told_pronoun[1] != _NOT_SET:
            return f"You can't see '{self._told_pronoun[0]}' (nothing) at the moment.\n"
        if problem in (Problem.GONE, Problem.VAGUE):
            return f"I'm not sure what '{self._told_pronoun[0]}' refers to.\n"
        if problem == Problem.NOTHING:
            return self._nothing_error()
        if problem == Problem.TOO_FEW:
            count = "None" if self._multi_had == 0 else f"Only {_in_words(self._multi_had)}"
            return f"{count} of those {'is' if self._multi_had == 1 else 'are'} available.\n"
        return _ERRORS[problem] + "\n"

    def _nothing_error(self) -> str:
        holder = self._inputs[1]
        if self._nothing_to == "removing" and holder >= FIRST_DIRECTION:
            name = definite(self.world, holder, "", capital=True)
            kind = self._fiction.kinds[holder]
            if kind == "player":
                return "You seem to belong to yourself.\n"
            if kind not in ("container", "supporter"):
                return "That can't contain things.\n"
            if kind == "container" and not self.world.is_open(holder):
                return f"{name} isn't open.\n"
            if not self.world.contents[holder]:
                return f"{name} is empty.\n"
        return "There are none at all available!\n"


_ERRORS = {
    Problem.STUCK: "I didn't understand that sentence.",
    Problem.NUMBER: "I didn't understand that number.",
    Problem.INANIMATE: "You can only do that to something animate.",
    Problem.UNSEEN: "You can't see any such thing.",
    Problem.TOO_LITTLE: "You seem to have said too little!",
    Problem.NOT_HELD: "You aren't holding that!",
    Problem.MULTIPLE: "You can't use multiple objects with that verb.",
    Problem.MULTIPLE_TWICE: "You can only use multiple objects once on a line.",
    Problem.EXCEPTED: "You excepted something not included anyway!",
    Problem.VERB: "That's not a verb I recognise.",
    Problem.SCENERY: "That's not something you need to refer to in the course of this game.",
    Problem.JUNK_AFTER: "I didn't understand the way that finished.",
    Problem.OUT_OF_CONTEXT: "That noun did not make sense in this context.",
}


def _in_words(number: int) -> str:
    words = {value: word for word, value in _NUMBERS.items()}
    return words.get(number, str(number))
