"""Texts that a world must survive as actions."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from random import Random

_STRANGE = (
    *("", " ", "\n", "\t", "\0", "\r\n", "\x1b[2J", "\u202e", "\ufeff", "\ud800", "%s%n{0}", "../../etc/passwd"),
    *(
        "quit",
        "restart",
        "save",
        "restore",
        "undo",
        "help",
        "0",
        "-1",
        "1e999",
        "null",
        "{}",
        "[]",
        "{",
        "\\",
        "'",
        '"',
    ),
    *('{"name": "act", "arguments": 3}', '{"name": null}', "```bash\n", "<action>", "look. look. look", "all", "it"),
)


def strange_text(draw: Random, known: Sequence[str]) -> str:
    """A random string: of any characters, of known texts cut and joined, of words that programs mind; or a long one."""
    kind = draw.random()
    if kind < 0.3:
        return "".join(chr(draw.randrange(sys.maxunicode + 1)) for _ in range(draw.randrange(40)))
    if kind < 0.5:
        return "".join(chr(draw.randrange(128)) for _ in range(draw.randrange(60)))
    if kind < 0.6:
        return draw.choice(_STRANGE)
    if kind < 0.62:
        return (draw.choice(known) or "x") * draw.randrange(1, 100)
    words = draw.choice(known).split(" ")
    draw.shuffle(words)
    text = " ".join([*words[: draw.randrange(8)], draw.choice(_STRANGE)])
    return text.upper() if kind > 0.9 else text
