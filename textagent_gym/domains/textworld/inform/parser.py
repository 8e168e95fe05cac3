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

from textagent_gym.domains.textworld.inform.descriptions import read_description
from textagent_gym.domains.textworld.inform.fiction import FIRST_DIRECTION, PLAYER
from textagent_gym.domains.textworld.inform.names import is_direction
from textagent_gym.domains.textworld.inform.nouns import NounPhrases
from textagent_gym.domains.textworld.inform.problems import MeaninglessError, Problem
from textagent_gym.domains.textworld.inform.questions import Questions, RetypedError, UnansweredError
from textagent_gym.domains.textworld.inform.reading import (
    AGAIN,
    SEVERAL_THINGS,
    THEN,
    TOPIC,
    UNSET,
    Description,
    Memory,
    Reading,
    split_words,
)
from textagent_gym.domains.textworld.inform.vocabulary import Sentence, Token, grammar
from textagent_gym.domains.textworld.inform.wording import complaint, said
from textagent_gym.domains.textworld.inform.world import World

_BETWEEN_COMMANDS = frozenset((",", THEN))
_HEARD_TOPICS = frozenset(("asking", "answering", "telling"))  # Actions whose topic counts as a noun.


@dataclass(frozen=True, slots=True)
class Command:
    """What the player asks for.

    Attributes:
        action: name of the action.
        nouns: the nouns, as far as there are any: entities, 0 for `several`, 1 for a topic.
        several: the things that are meant by "all" or a list.
        topic: words that something is said or looked up about.
    """

    action: str
    nouns: tuple[int, ...]
    several: tuple[int, ...]
    topic: tuple[str, ...] = ()


class Parser:
    """Reads one command.

    Args:
        world: world in which it is typed; nothing in it is changed.
        memory: what is remembered; it is changed.
        lines: what was typed: the command, then answers to questions.

    Attributes:
        reply: question that waits for an answer, or what is wrong with the command.
        note: text that tells what was taken for granted, printed before the action.
        rest: what is left of the line after the command: the next command; `None` if there is none.
        typed: line that "again" repeats from now on; "" if it is still the one before.
    """

    def __init__(self, world: World, memory: Memory, lines: Sequence[str]) -> None:
        self.reply = ""
        self.note = ""
        self.rest: str | None = None
        self.typed = ""
        self._world = world
        self._reading = Reading(world, memory, grammar(world.fiction.cooking))
        self._questions = Questions(self._reading, lines)
        self._nouns = NounPhrases(self._reading, self._questions)

    @property
    def text(self) -> str:
        """The line that was read, with the answers to questions put where they belong."""
        return self._reading.text

    def parse(self) -> Command | None:
        """The command; `None` if it means nothing, and then `reply` says why.

        Raises:
            UnansweredError: more must be typed; `reply` is the question.
        """
        self._reading.type(self._questions.next_line())
        while True:
            try:
                return self._parse()
            except RetypedError:
                continue
            except UnansweredError:
                self.reply = self._questions.question
                raise
            except MeaninglessError as error:
                said_of_it = complaint(self._reading, error.problem)
                self.reply = f"{said_of_it}\n" if said_of_it else ""
                return None
            finally:
                if self._reading.filter is not None:
                    self._reading.memory.limited_to = self._reading.filter

    def _parse(self) -> Command:
        reading = self._reading
        reading.verb = reading.words[0] if reading.words else ""
        if not reading.verb:
            raise MeaninglessError(Problem.STUCK)
        if reading.verb == ",":
            raise MeaninglessError(Problem.COMMA_FIRST)
        if reading.verb in AGAIN:
            reading.type(self.typed)
            raise RetypedError
        self.typed = reading.text
        sentences = reading.grammar.sentences.get(reading.verb)
        command = self._direction_alone() if sentences is None else None
        if command is not None:
            return command
        if "," in reading.words:
            self._address(is_verb=sentences is not None)
        if sentences is None:
            raise MeaninglessError(Problem.VERB)
        reading.worst, reading.saw_list, reading.pronoun = Problem.STUCK, False, (None, 0)
        last = reading.words[-1] if len(reading.words) > 1 else None
        for sentence in sentences:
            if not sentence.can_end_with(last):
                continue
            command = self._try(sentence)
            if command is not None:
                return command
            reading.worst = max(reading.worst, reading.problem)
            if reading.takes_all == 2 and reading.problem == Problem.NOTHING:
                break
        raise MeaninglessError(reading.worst)

    def _direction_alone(self) -> Command | None:
        """The command of a line that begins with a direction, if it does."""
        reading = self._reading
        reading.at, reading.described.indefinite, reading.filter = 1, False, ""
        reading.sentence, reading.action, reading.count, reading.second = None, "going", 0, UNSET
        reading.index = 0
        meant = self._nouns.find("compass", "", "")
        if not is_direction(meant):
            return None
        self._end_command()
        return Command("going", (meant,), ())

    def _end_command(self) -> None:
        """Keep what follows a command in the line."""
        reading = self._reading
        if reading.sentence is not None and 0 < reading.memory.cut_at[0] <= len(reading.words):
            reading.at = reading.memory.cut_at[0]
        if not reading.finished and reading.peek() not in _BETWEEN_COMMANDS:
            raise MeaninglessError(Problem.TOO_LONG)
        self.rest = reading.next_command()

    def _address(self, *, is_verb: bool) -> None:
        """Read a line such as "me, jump" from its comma on; nobody but the player can be spoken to.

        Args:
            is_verb: whether the first word is a verb, so that the comma may stand in a list.
        """
        reading = self._reading
        comma = reading.words.index(",") + 1
        reading.at, reading.described, reading.lookahead = 1, Description(), Token("held")
        reading.sentence, reading.action, reading.count, reading.second = None, "", 0, UNSET
        person = PLAYER if reading.addressed else self._nouns.find("player", "room", "creature")
        if person not in (0, PLAYER):
            reading.memory.blamed = person
            raise MeaninglessError(Problem.DEAF)
        if person == PLAYER and reading.at == comma:
            rest = reading.after(comma + 1)
            if reading.words[comma:] and reading.words[comma] in AGAIN:
                raise MeaninglessError(Problem.REPEATED_TO)
            reading.addressed = True
            reading.change(rest)
            raise RetypedError
        if not is_verb:
            raise MeaninglessError(Problem.UNSPOKEN if person else Problem.NOBODY)

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
        reading.pattern, reading.problem, reading.topic = [], Problem.STUCK, []

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
        if reading.filter is None:
            reading.filter = reading.memory.limited_to
        if index < len(tokens) and tokens[index].kind == "noun":
            read_description(reading)
            reading.count, reading.inputs[0], reading.index = 1, 0, index
            meant = self._nouns.find("room", "player", "noun", ask=False)
            reading.count = 0
            if meant >= FIRST_DIRECTION:
                reading.second = meant
        return True

    def _complete(self, sentence: Sentence) -> Command | None:
        """The command, now that every part of a sentence has been found."""
        reading = self._reading
        if not reading.finished and reading.peek() not in _BETWEEN_COMMANDS:
            reading.memory.understood = tuple(reading.pattern[: reading.index])
            reading.problem = Problem.TOO_LONG
            return None
        if not reading.finished:
            reading.leave_cut()
        first, second = reading.inputs
        if reading.count >= 1 and first == SEVERAL_THINGS and not self._revise(second):
            reading.problem, reading.nothing_to = Problem.NOTHING, reading.action
            return None
        if reading.count > 1 and second == SEVERAL_THINGS and not self._revise(first):
            reading.problem = Problem.NOTHING
            return None
        if (reading.count > 1 and first and second and self._contradicts(first, second)) or (
            reading.takes_all == 2 and first == PLAYER
        ):
            reading.nothing_to = reading.action
            raise MeaninglessError(Problem.NOTHING)
        if reading.inferred_from is not None:
            self.note = f"({' '.join(said(reading, reading.pattern[reading.inferred_from : reading.index]))})\n"
        nouns = reading.inputs[: reading.count]
        if sentence.swapped:
            nouns.reverse()
        if nouns and nouns[0] >= FIRST_DIRECTION:
            reading.notice(nouns[0])
        self._end_command()
        return Command(sentence.action, tuple(nouns), tuple(reading.several), tuple(reading.topic))

    def _contradicts(self, first: int, second: int) -> bool:
        """Whether a single thing is excluded by the other noun, where several were looked for."""
        holder = self._world.holder
        if self._reading.several_as == "multiexcept":
            return first == second
        return self._reading.several_as == "multiinside" and holder(first) != second and holder(second) != first

    def _revise(self, other: int) -> bool:
        """Throw out of several things what the other noun excludes; whether any are left."""
        reading = self._reading
        if reading.several_as == "multiexcept":
            reading.several = [thing for thing in reading.several if thing != other]
        elif reading.several_as == "multiinside":
            reading.several = [thing for thing in reading.several if self._world.holder(thing) == other]
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
        meant = self._nouns.read(kind)
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
        reading.topic = split_words(reading.text)[start - 1 : reading.at - 1]
        if reading.action in _HEARD_TOPICS:
            self._add_input(TOPIC)
            return True
        return word is not None or after is None
