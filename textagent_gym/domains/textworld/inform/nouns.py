"""Noun phrases: what a name, or a list of names, means."""

from __future__ import annotations

from textagent_gym.domains.textworld.inform.choices import NONE, SEVERAL, all_includes, choose
from textagent_gym.domains.textworld.inform.descriptions import DESCRIPTORS, read_description
from textagent_gym.domains.textworld.inform.fiction import FIRST_DIRECTION, PLAYER
from textagent_gym.domains.textworld.inform.names import ME, PRONOUNS, search
from textagent_gym.domains.textworld.inform.problems import Problem
from textagent_gym.domains.textworld.inform.questions import Questions
from textagent_gym.domains.textworld.inform.reading import (
    ALL_WANTED,
    CONNECTIVES,
    EXCEPTIONS,
    SEVERAL_THINGS,
    THEN,
    UNSET,
    Description,
    Reading,
)
from textagent_gym.domains.textworld.inform.vocabulary import MULTIPLE

_AFTER_NOUNS = CONNECTIVES | {THEN, None}  # What may follow the last noun of a sentence; None is the end.


class NounPhrases:
    """Reads the noun phrases of one command.

    Args:
        reading: command that is read.
        questions: questions about it.
    """

    def __init__(self, reading: Reading, questions: Questions) -> None:
        self._reading = reading
        self._questions = questions
        self._start = 0  # Where the noun begins that is read.
        self._wanted = 0  # Number of things that were meant, before the number was read as a part of a name.

    def read(self, kind: str) -> int | None:
        """What a noun phrase or a list of them means: an entity, 0 for several; `None` if it does not fit."""
        reading = self._reading
        reading.silent = False
        several, adding, single = False, True, 0
        self._wanted, again = 0, False
        while True:
            before = len(reading.several)
            meant = self._read_noun(kind, again=again)
            if meant is None:
                return None
            if meant == SEVERAL and several:
                added, reading.several = reading.several[before:], reading.several[:before]
                for thing in added:
                    self._combine(thing, adding)
            elif meant == SEVERAL:
                several = True
            elif several:
                self._combine(meant, adding)
            else:
                single = meant
            reading.at = reading.match_from + reading.match_length
            connective = reading.next() if reading.peek() in CONNECTIVES else None
            again = False
            if connective is not None and kind in MULTIPLE:
                adding = not adding if connective in EXCEPTIONS else adding
                if not several:
                    reading.several, several = [single], True
                reading.silent, reading.inferred_from = True, None
                continue
            if connective is not None and not reading.saw_list:
                reading.problem = Problem.SEVERAL
            elif several or not self._has_too_few(kind):
                break
            if not self._fails_as_plural():
                return None
            again = True
        if several:
            reading.several_as = kind
            return SEVERAL_THINGS
        return single

    def _has_too_few(self, kind: str) -> bool:
        """Whether a single thing was found where a number of them was asked for."""
        reading, described = self._reading, self._reading.described
        if not (described.indefinite and described.plural):
            return False
        if kind in ("multiexcept", "multiinside"):
            reading.several_as = kind
        if not 1 < described.wanted < ALL_WANTED:
            return False
        reading.counted, reading.problem = 1, Problem.TOO_FEW
        return True

    def _fails_as_plural(self) -> bool:
        """Whether a noun that does not fit is read again, with its number as a part of a name; it is next then."""
        reading = self._reading
        described = reading.described
        if reading.allows_plurals and described.guessed:
            self._wanted = described.wanted
            reading.allows_plurals, reading.at = False, self._start
            return True
        if (described.wanted > 0 or self._wanted > 0) and not reading.saw_list:
            reading.problem = Problem.SEVERAL
        return False

    def _combine(self, thing: int, adding: bool) -> None:
        several = self._reading.several
        if adding and thing not in several:
            several.append(thing)
        elif not adding and thing in several:
            several.remove(thing)

    def _read_noun(self, kind: str, *, again: bool) -> int | None:
        """What one name means: an entity or `SEVERAL`; `None` if nothing fits.

        Args:
            kind: kind of the noun phrase.
            again: whether it is read once more, because it does not fit as a plural.
        """
        reading = self._reading
        if not again:
            if not self._knows_pronoun():
                return None
            self._start, reading.allows_plurals = reading.at, True
        read_description(reading)
        while True:
            meant = self._find_noun(kind)
            if meant:
                return meant
            if reading.described.ambiguous:
                # A word before the name may be part of it.
                reading.described = Description()
                reading.at = self._start
                continue
            self._note_problem(kind)
            if not self._fails_as_plural():
                return None
            read_description(reading)

    def _knows_pronoun(self) -> bool:
        """Whether the next word is no pronoun, or one that stands for something."""
        reading = self._reading
        word = reading.peek()
        reading.pronoun = (word, PLAYER) if word in ME else (None, 0)
        if word in PRONOUNS:
            reading.pronoun = (word, reading.memory.it if word == "it" else UNSET)
            if reading.pronoun[1] == UNSET and word not in DESCRIPTORS:
                reading.told_pronoun = reading.pronoun
                reading.problem = Problem.VAGUE
                return False
        return True

    def _find_noun(self, kind: str) -> int:
        """What the next words mean: an entity, `SEVERAL`, or 0; the reason is not noted yet."""
        reading = self._reading
        if kind == "held":
            return self.find("player", "room", kind)
        meant = self.find("room", "player", kind)
        if reading.described.wanted == ALL_WANTED and meant == 0 and not reading.matches:
            meant = SEVERAL
        if kind in MULTIPLE and not reading.saw_list:
            if reading.worst == Problem.SEVERAL:
                reading.worst = Problem.STUCK
            reading.saw_list = True
        if meant >= FIRST_DIRECTION:
            if reading.match_length == 0 and reading.described.ambiguous:
                return 0
            if kind == "creature" and meant != PLAYER:
                reading.problem = Problem.INANIMATE
                reading.described.ambiguous = False
                return 0
        return meant

    def _note_problem(self, kind: str) -> None:
        """Remember why the next words mean nothing; the position is past the word that did not fit."""
        reading = self._reading
        if kind == "creature" and reading.problem == Problem.INANIMATE:
            return
        if reading.problem == Problem.SEVERAL and reading.saw_list and kind != "held":
            reading.problem = Problem.STUCK
        reading.problem = max(reading.problem, self._unseen())

    def _unseen(self) -> Problem:
        reading = self._reading
        assert reading.sentence is not None
        reading.at -= 1
        word = reading.next()
        if word is None or word != reading.pronoun[0]:
            return Problem.UNSEEN
        if reading.peek() is not None and reading.index + 1 >= len(reading.sentence.tokens):
            return Problem.UNSEEN
        if reading.sentence.tokens[reading.index].kind in ("direction", "device"):
            return Problem.OUT_OF_CONTEXT
        reading.told_pronoun = reading.pronoun
        return Problem.GONE

    def find(self, one: str, other: str, kind: str, *, ask: bool = True) -> int:
        """What the next words mean: an entity, 0 for nothing, `SEVERAL` for several that were added.

        Args:
            one: place to look in first: "room", "player" or "compass".
            other: place to look in then.
            kind: kind of the noun phrase.
            ask: whether the player may be asked.

        Raises:
            UnansweredError: the player was asked, and the answer is not there yet.
        """
        reading = self._reading
        search(reading, one, other, kind)
        reading.at = reading.match_from + reading.match_length
        if not reading.matches:
            reading.at += 1
            return 0
        if reading.match_from <= len(reading.words):
            if len(reading.matches) == 1:
                return reading.matches[0]
            if reading.lookahead is None and reading.peek() not in _AFTER_NOUNS:
                return 0
        if len(reading.matches) == 1:
            chosen = reading.matches[0]
            described = reading.described
            if described.indefinite and described.plural and all_includes(reading, chosen) is False:
                return 0
        else:
            chosen = choose(reading, kind)
            if chosen in (NONE, SEVERAL):
                return max(chosen, 0)
        if chosen:
            if not reading.silent:
                if reading.inferred_from is None:
                    reading.inferred_from = reading.index
                reading.note_part(chosen)
            return chosen
        if not ask:
            return reading.matches[0]
        return (
            self._questions.ask_for_more(kind)
            if reading.match_from > len(reading.words)
            else self._questions.ask_which(kind)
        )
