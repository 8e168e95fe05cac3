"""What a command means, as Inform's parser understands it.

The sentences of the verb are tried one after the other. A noun phrase is matched with everything in reach (`names`);
where several things fit equally well, points decide (`choices`), then the player is asked. If no sentence fits, the
problem of the one that came furthest is told. This follows the Inform 6 parser in Inform 7's template `Parser`.

A question ends the turn; its answer is the next line. So a parse is a function of the world and of the lines typed
since the last command that was understood: an engine keeps them, and parses them again with the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textagent_gym.domains.textworld.inform.choices import NONE, SEVERAL, all_includes, choose
from textagent_gym.domains.textworld.inform.descriptions import DESCRIPTORS, read_description
from textagent_gym.domains.textworld.inform.fiction import FIRST_DIRECTION, PLAYER
from textagent_gym.domains.textworld.inform.names import ME, is_direction, search
from textagent_gym.domains.textworld.inform.naming import definite
from textagent_gym.domains.textworld.inform.problems import SENTENCES, MeaninglessError, Problem
from textagent_gym.domains.textworld.inform.reading import (
    ALL,
    ALL_WANTED,
    CONNECTIVES,
    MOST_LETTERS,
    NUMBERS,
    UNSET,
    Description,
    Memory,
    Reading,
)
from textagent_gym.domains.textworld.inform.vocabulary import (
    MULTIPLE,
    PROGRAM_VERBS,
    Sentence,
    Token,
    dictionary_form,
    grammar,
)
from textagent_gym.domains.textworld.inform.world import World

_PRONOUNS = frozenset(("it", "him", "her", "them"))
_SPOKEN_VERBS = {
    "i": "take inventory", "inv": "take inventory", "inventory": "take inventory",
    "l": "look", "x": "examine", "z": "wait",
}  # fmt: skip
_HEARD_TOPICS = frozenset(("asking", "answering", "telling"))  # Actions whose topic counts as a noun.

_SEVERAL_THINGS, _TOPIC = 0, 1  # What a noun phrase stands for that is no entity.


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


class UnansweredError(Exception):
    """The parser has asked a question, and the answer is not typed yet."""


class _RetypedError(Exception):
    """The line has changed and is read from its beginning."""


class Parser:
    """Reads one command.

    Args:
        world: world in which it is typed; nothing in it is changed.
        memory: what is remembered; it is changed.
        lines: what was typed: the command, then answers to questions.

    Attributes:
        reply: question that waits for an answer, or what is wrong with the command.
        note: text that tells what was taken for granted, printed before the action.
    """

    def __init__(self, world: World, memory: Memory, lines: Sequence[str]) -> None:
        self.reply = ""
        self.note = ""
        self._lines = list(lines)
        self._world = world
        self._reading = Reading(world, memory, grammar(world.fiction.cooking))

    @property
    def text(self) -> str:
        """The line that was read, with the answers to questions put where they belong."""
        return self._reading.text

    def parse(self) -> Command | None:
        """The command; `None` if it means nothing, and then `reply` says why.

        Raises:
            UnansweredError: more must be typed; `reply` is the question.
        """
        self._reading.type(self._next_line())
        while True:
            try:
                return self._parse()
            except _RetypedError:
                continue
            except MeaninglessError as error:
                self.reply = self._complaint(error.problem) + "\n"
                return None

    def _next_line(self) -> str:
        if not self._lines:
            raise UnansweredError
        self.reply = ""
        return self._lines.pop(0)[:MOST_LETTERS]

    def _parse(self) -> Command:
        reading = self._reading
        reading.verb = reading.words[0] if reading.words else ""
        sentences = reading.grammar.sentences.get(reading.verb)
        if sentences is None:
            return self._direction_alone()
        reading.worst, reading.saw_list, reading.pronoun = Problem.STUCK, False, (None, 0)
        for sentence in sentences:
            command = self._try(sentence)
            if command is not None:
                return command
            reading.worst = max(reading.worst, reading.problem)
            if reading.takes_all == 2 and reading.problem == Problem.NOTHING:
                break
        raise MeaninglessError(reading.worst)

    def _direction_alone(self) -> Command:
        reading = self._reading
        reading.at, reading.described.indefinite, reading.filter = 1, False, ""
        reading.sentence, reading.action, reading.count, reading.second = None, "going", 0, UNSET
        reading.index = 0
        meant = self._find("compass", "", "")
        if not is_direction(meant):
            raise MeaninglessError(Problem.VERB)
        if not reading.finished:
            raise MeaninglessError(Problem.TOO_LONG)
        return Command("going", (meant,), ())

    # Sentences.

    def _try(self, sentence: Sentence) -> Command | None:
        """The command if a sentence fits, else `None`, and `reading.problem` says why."""
        reading = self._reading
        reading.sentence, reading.action = sentence, sentence.action
        self._begin_sentence()
        reading.at = 2
        if not self._look_ahead(sentence):
            return None
        self._begin_sentence()
        if not self._ends_right(sentence):
            return None
        reading.at = 2
        for index, token in enumerate(sentence.tokens):
            reading.index = index
            reading.note_part(None)
            reading.lookahead = sentence.tokens[index + 1] if index + 1 < len(sentence.tokens) else None
            if not self._fits(token):
                return None
        reading.index = len(sentence.tokens)
        return self._complete(sentence)

    def _begin_sentence(self) -> None:
        reading = self._reading
        reading.inferred_from, reading.count, reading.several, reading.several_as = None, 0, [], ""
        reading.pattern, reading.problem = [], Problem.STUCK

    def _ends_right(self, sentence: Sentence) -> bool:
        """Whether the last word is the one with which a sentence ends, if it ends with one."""
        if not sentence.tokens or sentence.tokens[-1].kind != "word":
            return True
        words = self._reading.words
        return len(words) > 1 and words[-1] in sentence.tokens[-1].words

    def _look_ahead(self, sentence: Sentence) -> bool:
        """Learn from the second noun what the first can be; whether the sentence can fit at all."""
        reading = self._reading
        reading.second, reading.described.indefinite, reading.takes_all = UNSET, False, 0
        nouns, lists = 0, False
        can_fit = True
        for index, token in enumerate(sentence.tokens):
            nouns += token.kind != "word"
            lists |= token.kind == "multi"
            if token.kind == "multiexcept" or (token.kind == "multiinside" and nouns == 1):
                can_fit = self._read_second(sentence, index + 1)
                break
        reading.takes_all = int(lists and sentence.nouns == 1 and sentence.action == "taking")
        return can_fit

    def _read_second(self, sentence: Sentence, index: int) -> bool:
        """Find the words before the second noun, and what it can be; whether the sentence can fit."""
        reading, tokens = self._reading, sentence.tokens
        if index >= len(tokens) or tokens[index].kind != "word":
            return True
        word = reading.next()
        while not reading.finished and not reading.is_preposition(word):
            word = reading.next()
        over = reading.finished
        while not over and index < len(tokens) and tokens[index].kind == "word":
            if word in tokens[index].words:
                index += 1
                word = word if reading.finished else reading.next()
                continue
            word = reading.next()
            while reading.at < len(reading.words) and not reading.is_preposition(word):
                word = reading.next()
            if not reading.is_preposition(word):
                return False
        reading.at -= 1
        if index < len(tokens) and tokens[index].kind == "noun":
            read_description(reading)
            reading.count, reading.inputs[0], reading.index = 1, 0, index
            meant = self._find("room", "player", "noun", ask=False)
            reading.count = 0
            if meant >= FIRST_DIRECTION:
                reading.second = meant
        return True

    def _complete(self, sentence: Sentence) -> Command | None:
        """The command, now that every part of a sentence has been found."""
        reading = self._reading
        if not reading.finished:
            reading.memory.understood = tuple(reading.pattern[: reading.index])
            reading.problem = Problem.TOO_LONG
            return None
        first, second = reading.inputs
        if reading.count >= 1 and first == _SEVERAL_THINGS and not self._revise(second):
            reading.problem, reading.nothing_to = Problem.NOTHING, reading.action
            return None
        if reading.count > 1 and second == _SEVERAL_THINGS and not self._revise(first):
            reading.problem = Problem.NOTHING
            return None
        if (reading.count > 1 and first and second and self._contradicts(first, second)) or (
            reading.takes_all == 2 and first == PLAYER
        ):
            reading.nothing_to = reading.action
            raise MeaninglessError(Problem.NOTHING)
        if reading.inferred_from is not None:
            self.note = f"({' '.join(self._said(reading.pattern[reading.inferred_from : reading.index]))})\n"
        nouns = reading.inputs[: reading.count]
        if sentence.swapped:
            nouns.reverse()
        if nouns and nouns[0] >= FIRST_DIRECTION:
            reading.notice(nouns[0])
        return Command(sentence.action, tuple(nouns), tuple(reading.several))

    def _contradicts(self, first: int, second: int) -> bool:
        """Whether a single thing is excluded by the other noun, where several were looked for."""
        holder = self._world.holder
        if self._reading.several_as == "multiexcept":
            return first == second
        return self._reading.several_as == "multiinside" and holder[first] != second and holder[second] != first

    def _revise(self, other: int) -> bool:
        """Throw out of several things what the other noun excludes; whether any are left."""
        reading = self._reading
        if reading.several_as == "multiexcept":
            reading.several = [thing for thing in reading.several if thing != other]
        elif reading.several_as == "multiinside":
            reading.several = [thing for thing in reading.several if self._world.holder[thing] == other]
        elif reading.several_as == "multi" and reading.takes_all == 2:
            reading.several = [thing for thing in reading.several if not is_direction(thing)]
        return bool(reading.several)

    # Parts of a sentence.

    def _fits(self, token: Token) -> bool:
        """Whether the next words are what a part of a sentence stands for; a noun is added to the inputs."""
        reading = self._reading
        reading.filter = ""
        if token.kind == "word":
            return self._fits_word(token)
        if token.kind == "topic":
            return self._fits_topic()
        kind = token.kind
        if kind in ("direction", "device"):
            reading.filter, kind = kind, "noun"
        meant = self._read_nouns(kind)
        if meant is None:
            return False
        self._add_input(meant)
        return True

    def _add_input(self, meant: int) -> None:
        reading = self._reading
        reading.inputs[reading.count] = meant
        reading.count += 1
        reading.note_part(meant)

    def _fits_word(self, token: Token) -> bool:
        reading = self._reading
        if reading.finished:
            if reading.inferred_from is None:
                if reading.count >= self._nouns_wanted():
                    return False
                reading.inferred_from = reading.index
            reading.note_part(token.words[0])
            return True
        word = reading.next()
        reading.note_part(word)
        return word in token.words

    def _nouns_wanted(self) -> int:
        """Number of nouns of the sentence, without topics that have been read and are no nouns."""
        sentence = self._reading.sentence
        assert sentence is not None
        if sentence.action in _HEARD_TOPICS:
            return sentence.nouns
        return sentence.nouns - sum(token.kind == "topic" for token in sentence.tokens[: self._reading.index])

    def _fits_topic(self) -> bool:
        reading = self._reading
        after, start = reading.lookahead, reading.at
        word = reading.next()
        while word is not None and not (after is not None and word in after.words):
            word = reading.next()
        reading.at -= 1
        if reading.at == start:
            return False
        if reading.action in _HEARD_TOPICS:
            self._add_input(_TOPIC)
            return True
        return word is not None or after is None

    def _read_nouns(self, kind: str) -> int | None:
        """What a noun phrase or a list of them means: an entity, 0 for several; `None` if it does not fit."""
        reading = self._reading
        reading.silent = False
        several, adding, single = False, True, 0
        while True:
            before = len(reading.several)
            meant = self._read_noun(kind)
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
            if reading.peek() not in CONNECTIVES:
                break
            word = reading.next()
            if kind not in MULTIPLE:
                if reading.saw_list:
                    break
                reading.problem = Problem.SEVERAL
                return None
            adding = adding if word == "and" else not adding
            if not several:
                reading.several, several = [single], True
            reading.silent, reading.inferred_from = True, None
        return self._conclude(kind, single, several)

    def _conclude(self, kind: str, single: int, several: bool) -> int | None:
        """What a list of nouns means once its end is reached."""
        reading = self._reading
        if several:
            reading.several_as = kind
            return _SEVERAL_THINGS
        described = reading.described
        if described.indefinite and described.plural:
            if kind in ("multiexcept", "multiinside"):
                reading.several_as = kind
            if 1 < described.wanted < ALL_WANTED:
                reading.counted = 1
                reading.problem = Problem.TOO_FEW if reading.saw_list else Problem.SEVERAL
                return None
        return single

    def _combine(self, thing: int, adding: bool) -> None:
        several = self._reading.several
        if adding and thing not in several:
            several.append(thing)
        elif not adding and thing in several:
            several.remove(thing)

    def _read_noun(self, kind: str) -> int | None:
        """What one name means: an entity or `SEVERAL`; `None` if nothing fits."""
        reading = self._reading
        if not self._knows_pronoun():
            return None
        start = reading.at
        reading.allows_plurals = True
        wanted = 0
        read_description(reading)
        while True:
            meant = self._find_noun(kind)
            if meant:
                return meant
            if reading.described.ambiguous:
                # A word before the name may be part of it.
                reading.described = Description()
                reading.at = start
                continue
            self._note_problem(kind)
            if not (reading.allows_plurals and reading.described.guessed):
                break
            # So may a number.
            wanted = reading.described.wanted
            reading.allows_plurals, reading.at = False, start
            read_description(reading)
        if (reading.described.wanted > 0 or wanted > 0) and not reading.saw_list:
            reading.problem = Problem.SEVERAL
        return None

    def _knows_pronoun(self) -> bool:
        """Whether the next word is no pronoun, or one that stands for something."""
        reading = self._reading
        word = reading.peek()
        reading.pronoun = (word, PLAYER) if word in ME else (None, 0)
        if word in _PRONOUNS:
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
            return self._find("player", "room", kind)
        meant = self._find("room", "player", kind)
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

    # Names, and questions about them.

    def _find(self, one: str, other: str, kind: str, *, ask: bool = True) -> int:
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
            if not reading.finished and reading.peek() not in CONNECTIVES and reading.lookahead is None:
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
        return self._ask_for_more(kind) if reading.match_from > len(reading.words) else self._ask_which(kind)

    def _ask_which(self, kind: str) -> int:
        """Ask which of several things is meant, and read the line again with the answer, or add all of them."""
        reading = self._reading
        names = [definite(self._world, entity, "") for entity in reading.matches]
        self.reply = f"Which do you mean, {', '.join(names[:-1])} or {names[-1]}?\n"
        while True:
            answer = self._next_line()
            first = dictionary_form(answer.split(" ")[0])
            if first not in ALL:
                break
            if kind in MULTIPLE:
                reading.several += reading.matches
                return SEVERAL
            self.reply = "Sorry, you can only have one item here. Which exactly?"
        if self._is_verb(first):
            reading.type(answer)
        else:
            reading.insert(answer, reading.match_from)
        raise _RetypedError

    def _ask_for_more(self, kind: str) -> int:
        """Ask for a noun that is missing, and read the line again with the answer at its end."""
        reading = self._reading
        self.reply = f"{'Whom' if kind == 'creature' else 'What'} do you want to {self._so_far()}?\n"
        answer = self._next_line()
        if self._is_verb(dictionary_form(answer.split(" ")[0])):
            reading.type(answer)
            raise _RetypedError
        between: list[str] = []
        if reading.inferred_from is not None:
            for part in reading.pattern[reading.inferred_from : reading.index]:
                if isinstance(part, str):
                    between.append(part)
                elif part is not None and part >= FIRST_DIRECTION:
                    reading.notice(part)
                    between += ["it"] if part == reading.memory.it else []
        reading.type(" ".join((reading.text, *between, answer)))
        raise _RetypedError

    def _is_verb(self, word: str) -> bool:
        return word in self._reading.grammar.sentences or word in PROGRAM_VERBS

    # What the parser says.

    def _so_far(self) -> str:
        """The command as far as it was understood."""
        reading = self._reading
        verb = _SPOKEN_VERBS.get(reading.verb, reading.verb)
        return " ".join((verb, *self._said(reading.pattern[: reading.index])))

    def _said(self, pattern: Sequence[str | int | None]) -> list[str]:
        spoken = []
        for part in pattern:
            if isinstance(part, str):
                spoken.append(part)
            elif part == _SEVERAL_THINGS:
                spoken.append("those things")
            elif part == _TOPIC:
                spoken.append("that")
            elif part is not None:
                names = self._world.fiction.names
                spoken.append(names[part] if is_direction(part) else definite(self._world, part, ""))
        return spoken

    def _complaint(self, problem: Problem) -> str:
        reading = self._reading
        pronoun, meant = reading.told_pronoun
        if problem == Problem.TOO_LONG:
            go = "(go) " if reading.sentence is None else ""
            reading.pattern, reading.index = list(reading.memory.understood), len(reading.memory.understood)
            return f"I only understood you as far as wanting to {go}{self._so_far()}."
        if problem == Problem.GONE and meant != UNSET:
            return f"You can't see '{pronoun}' (nothing) at the moment."
        if problem in (Problem.GONE, Problem.VAGUE):
            return f"I'm not sure what '{pronoun}' refers to."
        if problem == Problem.NOTHING and reading.nothing_to == "removing" and reading.inputs[1] >= FIRST_DIRECTION:
            return self._nothing_in(reading.inputs[1])
        if problem == Problem.TOO_FEW:
            words = {number: word for word, number in reversed(NUMBERS.items())}
            count = f"Only {words[reading.counted]}" if reading.counted else "None"
            return f"{count} of those {'is' if reading.counted <= 1 else 'are'} available."
        return SENTENCES[problem]

    def _nothing_in(self, holder: int) -> str:
        """Why nothing can be taken from somewhere."""
        kind = self._world.fiction.kinds[holder]
        name = definite(self._world, holder, "", capital=True)
        if kind == "player":
            return "You seem to belong to yourself."
        if kind not in ("container", "supporter"):
            return "That can't contain things."
        if kind == "container" and not self._world.is_open(holder):
            return f"{name} isn't open."
        return SENTENCES[Problem.NOTHING] if self._world.contents[holder] else f"{name} is empty."
