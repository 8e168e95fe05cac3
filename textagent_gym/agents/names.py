"""Names of agents that say how an agent acts, and others that look like them."""

from __future__ import annotations

import unicodedata

CHECKED_AGENTS = ("random", "admissible-random", "oracle", "expert")
"""Agents that act equally wherever they play, so that whoever claims to be one can be checked."""
UNREADING_AGENTS = ("random", "oracle")
"""Those of them that read nothing, and so act equally also in worlds whose texts may differ from run to run."""
_ALIKE = {
    "a": "4@\u0430\u03b1\u0251\u1d00",
    "b": "68\u044c\u0299",
    "c": "(\u0441\u03f2\u1d04",
    "d": "\u0501\u1d05",
    "e": "3\u0435\u03b5\u1d07",
    "l": "1|/i\u0131\u0456\u03b9\u04cf\u026a\u029f",
    "m": "\u043c\u1d0d",
    "n": "\u043f\u03b7\u0274",
    "o": "0\u043e\u03bf\u03c3\u1d0f",
    "p": "\u0440\u03c1\u1d18",
    "r": "\u0433\u0280",
    "s": "5\u0455\ua731",
    "t": "7+\u0442\u03c4\u1d1b",
    "x": "\u0445\u03c7",
}
"""Digits, letters of Cyrillic and Greek, and small capitals that look like those of the agents' names."""
_LOOKS = str.maketrans({letter: latin for latin, letters in _ALIKE.items() for letter in letters})
_BLANK = "\u115f\u1160\u3164\uffa0"  # Letters of Hangul that cannot be seen.


_OTHER_SCRIPTS = {letter: latin for letter, latin in _LOOKS.items() if letter >= 128}


def _visible(name: str, signs: str = "") -> str:
    """The letters, digits and some signs of a name, without case, accents and what cannot be seen."""
    letters = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", name).casefold())
    return "".join(letter for letter in letters if (letter.isalnum() and letter not in _BLANK) or letter in signs)


def _letters(name: str, signs: str = "|@") -> str:
    """What a name looks like: its letters with lookalikes as Latin ones, also digits and some signs."""
    return _visible(name, signs).translate(_LOOKS).replace("rn", "m")


def reads_like(name: str, other: str) -> bool:
    """Whether two names differ in nothing but case, accents, spaces, signs and lookalikes of other scripts.

    >>> reads_like("Ada", "\u0410da "), reads_like("Team 1", "team-1"), reads_like("Team 6", "Team 8")
    (True, True, False)
    """
    return _visible(name).translate(_OTHER_SCRIPTS) == _visible(other).translate(_OTHER_SCRIPTS)


def _is_alike(name: str, known: str) -> bool:
    """Whether a name looks like another one, which is made of Latin letters.

    A letter of another script may look like any Latin one, unless most letters of the name are such letters.

    >>> _is_alike("exp\u0454rt", "expert"), _is_alike("exper+", "expert"), _is_alike("exports", "expert")
    (True, True, False)
    """
    there = _letters(known)
    return any(
        _reads_as(here, there) or _reads_as(here.replace("cl", "d"), there.replace("cl", "d"))
        for here in (_letters(name), _letters(name.replace("()", "o"), "|@(/+"))
    )


def _reads_as(here: str, there: str) -> bool:
    """Whether letters read as others."""
    strange = sum(not letter.isascii() for letter in here)
    same = all(letter == wanted or not letter.isascii() for letter, wanted in zip(here, there, strict=False))
    return len(here) == len(there) and 2 * strange <= len(here) and same


def resembled(name: str) -> str:
    """The agent of this suite that acts equally everywhere (`CHECKED_AGENTS`) and has this name or one that looks like
    it; "" for other names.

    >>> resembled("Oracle"), resembled("oracle of Delphi")
    ('oracle', '')
    """
    return next((known for known in CHECKED_AGENTS if _is_alike(name, known)), "")
