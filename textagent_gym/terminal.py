"""Text as it may be shown at a terminal, where some characters are commands."""

from __future__ import annotations

_C0 = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\n\t"}
_C1 = {code: f"\\x{code:02x}" for code in range(0x80, 0xA0)}
_DIRECTIONS = {
    code: f"\\u{code:04x}" for code in (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
}
_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\N{REPLACEMENT CHARACTER}")
_ONE_LINE = {ord("\n"): "␊", ord("\t"): "␉", 0x2028: "\\u2028", 0x2029: "\\u2029"}
_VISIBLE: dict[int, int | str] = {**_C0, 0x7F: "\N{SYMBOL FOR DELETE}", **_C1, **_DIRECTIONS, **_SURROGATES}


def visible(text: str) -> str:
    """A text in which nothing moves the cursor, changes the terminal or the direction of writing.

    Control characters other than line ends and tabs become pictures of themselves, or escapes where there are none;
    half a surrogate pair, which no terminal can be sent, becomes a replacement character.

    >>> visible("a\\tb\\x1b[2J\\x9b1m\\u202e")
    'a\\tb␛[2J\\\\x9b1m\\\\u202e'
    """
    return text.translate(_VISIBLE)


def one_line(text: str, longest: int = 300) -> str:
    """A text of a stranger as it may be shown in one line: visible, without line ends, and bounded.

    >>> one_line("red\\x1b[31m", 4), one_line("one\\ntwo")
    ('red␛…', 'one␊two')
    """
    return visible(text if len(text) <= longest else text[:longest] + "…").translate(_ONE_LINE)
