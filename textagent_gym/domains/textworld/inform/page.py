"""What a game prints, with Inform's rules of when a line or a paragraph ends.

Inform keeps two things in mind while it prints: whether something was said since the last paragraph break, and how the
last break came about. Every rule that runs may end a paragraph by them, so the number of line breaks in a reply depends
on which rules ran, whether or not they printed anything. The names are those of the Inform 7 template `Printing`.
"""

from __future__ import annotations

_COMPLETED, _SKIP_BEFORE_PROMPT, _NO_SKIP_AFTER_ALL, _CONTENT_EXPECTED = 1, 2, 4, 16


class Page:
    """The text of one turn.

    Attributes:
        said: whether something was said since the last paragraph break.
    """

    __slots__ = ("_parts", "_reported", "_state", "said")

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._reported = -1
        self.said = False
        self._state = 0

    @property
    def text(self) -> str:
        """Everything printed so far."""
        return "".join(self._parts)

    def put(self, text: str) -> None:
        """Print text as it is, which does not count as something said."""
        self._parts.append(text)

    def say(self, text: str) -> None:
        """Say something; a line ends with its sentence."""
        self._state &= ~_CONTENT_EXPECTED
        self.said = True
        self._parts.append(text)
        if text[-1:] in (".", "!", "?"):
            self._parts.append("\n")

    def say_part(self, text: str) -> None:
        """Say something that does not end the line."""
        self._state &= ~_CONTENT_EXPECTED
        self.said = True
        self._parts.append(text)

    def complain(self, text: str) -> None:
        """Say why a command is not understood, or ask for more; the text has its own line breaks."""
        self._parts.append(text)
        self.said = True

    def report(self) -> None:
        """End a turn: the compiled game prints points and turns for TextWorld to read.

        TextWorld cuts out everything from the first report of a line to the last, so of several commands in a line only
        the first one is read.
        """
        if self._reported < 0:
            self._reported = len(self._parts)
        del self._parts[self._reported :]
        self.said = True
        self.divide()

    def clear(self) -> None:
        """Forget what was said and how the last paragraph ended."""
        self.said = False
        self._state = 0

    def divide(self) -> None:
        """End the paragraph if something was said in it."""
        if self.said:
            self._parts.append("\n")
            self.said = False
            self._state = (self._state | _COMPLETED) & ~(_SKIP_BEFORE_PROMPT | _NO_SKIP_AFTER_ALL)
        self._state |= _CONTENT_EXPECTED

    def run_on(self) -> None:
        """Continue the same paragraph."""
        self.said = False
        self._state |= _SKIP_BEFORE_PROMPT | _NO_SKIP_AFTER_ALL

    def run_on_after_heading(self) -> None:
        """Continue the same paragraph after the name of a room."""
        self.said = False
        self._state |= _SKIP_BEFORE_PROMPT

    def break_before_room(self) -> None:
        """The break between a way that was gone and the description of the room."""
        if not self._state & _COMPLETED:
            self._parts.append("\n")
        self.clear()

    def prompt(self) -> None:
        """The prompt, after a break where one is due."""
        if self.said or self._state & (_SKIP_BEFORE_PROMPT | _NO_SKIP_AFTER_ALL) == _SKIP_BEFORE_PROMPT:
            self._parts.append("\n")
        self._parts.append(">")
        self.clear()
