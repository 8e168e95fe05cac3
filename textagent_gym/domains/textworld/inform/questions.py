"""Questions that the parser asks, and the answers."""

from __future__ import annotations

from collections.abc import Sequence

from textagent_gym.domains.textworld.inform.choices import SEVERAL
from textagent_gym.domains.textworld.inform.fiction import FIRST_DIRECTION
from textagent_gym.domains.textworld.inform.naming import definite
from textagent_gym.domains.textworld.inform.reading import ALL, MOST_WORDS, Reading, split_words
from textagent_gym.domains.textworld.inform.vocabulary import MULTIPLE, PROGRAM_VERBS, dictionary_form
from textagent_gym.domains.textworld.inform.wording import so_far


class UnansweredError(Exception):
    """The parser has asked a question, and the answer is not typed yet."""


class RetypedError(Exception):
    """The line has changed and is read from its beginning."""


class Questions:
    """What is asked about one command.

    Args:
        reading: command that is read.
        lines: what was typed: the command, then answers to questions.

    Attributes:
        question: question that waits for an answer; "" where none does.
    """

    def __init__(self, reading: Reading, lines: Sequence[str]) -> None:
        self.question = ""
        self._reading = reading
        self._lines = list(lines)

    def next_line(self) -> str:
        """The next line that was typed.

        Raises:
            UnansweredError: it is not typed yet.
        """
        if not self._lines:
            raise UnansweredError
        self.question = ""
        return self._lines.pop(0)

    def ask_which(self, kind: str) -> int:
        """Ask which of several things is meant, and read the line again with the answer, or add all of them."""
        reading = self._reading
        names = [definite(reading.world, entity, "") for entity in reading.matches]
        self.question = f"Which do you mean, {', '.join(names[:-1])} or {names[-1]}?\n"
        while True:
            answer = self.next_line()
            first = dictionary_form(split_words(answer)[0])
            if first not in ALL:
                break
            if kind in MULTIPLE:
                reading.several += reading.matches
                return SEVERAL
            self.question = "Sorry, you can only have one item here. Which exactly?"
        if self._is_command(answer):
            reading.type(answer)
        else:
            reading.insert(answer, reading.match_from)
        raise RetypedError

    def ask_for_more(self, kind: str) -> int:
        """Ask for a noun that is missing, and read the line again with the answer at its end."""
        reading = self._reading
        self.question = f"{'Whom' if kind == 'creature' else 'What'} do you want to {so_far(reading)}?\n"
        answer = self.next_line()
        if self._is_command(answer):
            reading.type(answer)
            raise RetypedError
        between: list[str] = []
        if reading.inferred_from is not None:
            for part in reading.pattern[reading.inferred_from : reading.index]:
                if isinstance(part, str):
                    between.append(part)
                elif part is not None and part >= FIRST_DIRECTION:
                    reading.notice(part)
                    between += ["it"] if part == reading.memory.it else []
        reading.append(" ".join((*between, answer)))
        raise RetypedError

    def _is_command(self, answer: str) -> bool:
        """Whether an answer is a command of its own: it begins with a verb, or speaks to somebody."""
        words = split_words(answer)[:MOST_WORDS]
        verb = dictionary_form(words[0])
        return "," in words or verb in self._reading.grammar.sentences or verb in PROGRAM_VERBS
