"""What an agent reads of what a game prints: the text without the game's own bookkeeping, and the goal as it was asked.

The words that end a game are TextWorld's own. They stand here once, for whoever reads them and for whoever cuts them.
"""

from __future__ import annotations

import re
from functools import lru_cache

_REMEMBERED = 8_192  # Replies whose plain text is kept, of some hundred characters each.

WON = "*** The End ***"
"""What a game prints when it ends well."""

LOST = "*** You lost! ***"
"""What a game prints when it ends badly."""

_STATUS_LINE = re.compile(r"\n?>?[ ]{2,}-= [^\n]* =-\s?-?\d+/-?\d+\s*$")
_PROMPT = re.compile(r"\n>\s*$")
_BLANKS_AT_END = re.compile(r"[ \t]+\n")
_EMPTY_LINES = re.compile(r"\n{3,}")
_BANNER = re.compile(r"\A.*\$\$[^\n]*\n", re.DOTALL)
_ENDING = re.compile(rf"\s*({re.escape(WON)}|{re.escape(LOST)}).*$", re.DOTALL)
_SCORE_NOTICE = re.compile(r"\n*Your score has just gone (up|down) by [^\n]*\n?")


def plain(printed: str) -> str:
    """A reply as a person would read it: no status line, prompt, score notice or question what to do next."""
    last_line = max(0, printed.rstrip().rfind("\n"))
    edge = _STATUS_LINE.search(printed, last_line)
    return readable(printed[: edge.start()] if edge else printed)


@lru_cache(maxsize=_REMEMBERED)
def readable(text: str) -> str:
    """A reply without a status line as a person would read it; see `plain`."""
    text = _PROMPT.sub("\n", text)
    if "Your score" in text:
        text = _SCORE_NOTICE.sub("\n", text)
    if "***" in text:
        text = _ENDING.sub(lambda match: f"\n\n{match[1]}", text)
    if " \n" in text or "\t\n" in text:
        text = _BLANKS_AT_END.sub("\n", text)
    if "\n\n\n" in text:
        text = _EMPTY_LINES.sub("\n\n", text)
    return text.strip()


@lru_cache(maxsize=_REMEMBERED)
def plain_opening(printed: str) -> str:
    """The first text of a game without the banner that spells TextWorld's name in `$` signs."""
    return _BANNER.sub("", plain(printed)).strip()


def reword_goal(text: str, objective: str, wording: str) -> str:
    """A text in which the goal is told in other words.

    Args:
        text: text that may tell the goal.
        objective: goal as the game words it.
        wording: words that replace them; "" leaves the goal out.
    """
    # Inform prints a line break for each of the goal's own.
    return text.replace(objective.strip(), wording)
