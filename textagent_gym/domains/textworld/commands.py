"""The commands of a game: which strings reach it at all, and which do something now. Every engine shares them.

Inform's own commands about the program (`save` and `script` write files into the current folder, `restart` and `quit`
ask questions and then hear nothing else) are no part of a world, several commands in one are more than a turn, and no
text has bytes that an interpreter cannot take. An engine is sent what `playable` passes, and `UNKNOWN_VERB` instead of
anything else.
"""

from __future__ import annotations

import re
from functools import lru_cache

from textagent_gym.domains.textworld.logic import GameLogic

UNKNOWN_VERB = "xyzzy"
"""A command that every game refuses, by saying that it does not recognise the verb."""

LONGEST_COMMAND = 180
"""Characters of a command: Frotz reads 198 bytes and Inform fewer words than that; no command of a game comes near."""

# Words that make Inform act on files or on the program, wherever they stand ("me, save" saves).
_PROGRAM_WORDS = frozenset(
    ("save", "restore", "restart", "quit", "q", "script", "noscript", "unscript", "transcript", "undo", "verify")
)
# Verbs about the program, harmless elsewhere in a sentence, where they may be part of a name ("the long knife").
_PROGRAM_VERBS = frozenset(
    (
        *("again", "g", "oops", "o", "version", "score", "notify", "pronouns", "nouns", "verbose", "long", "brief"),
        *("normal", "superbrief", "short", "restrict", "print_state", "enable", "disable", "then"),
    )
)
_REMEMBERED = 8_192  # Commands, and states of games, whose answers are kept: a few MB.
_WORD_LENGTH = 9  # The Z-machine's dictionary compares no more characters of a word.
_PROGRAM_WORD_STEMS = frozenset(word[:_WORD_LENGTH] for word in _PROGRAM_WORDS)
_PROGRAM_VERB_STEMS = frozenset(word[:_WORD_LENGTH] for word in _PROGRAM_VERBS)


def playable(command: str) -> str | None:
    """The command in the form that goes to the game, or `None` if it must not go there.

    Printable ASCII in one sentence passes, without the full stop at its end; commands about the program, several
    commands in one, control characters and anything that is too long do not.

    >>> playable("  Take the   lamp. "), playable("go north. take lamp"), playable("me, save"), playable("\\x00")
    ('take the lamp', None, None, None)
    """
    return _playable(command) if len(command) <= 4 * LONGEST_COMMAND else None


@lru_cache(maxsize=_REMEMBERED)
def _playable(command: str) -> str | None:
    text = " ".join(command.lower().split(" ")).strip()
    text = re.sub(r" {2,}", " ", text).rstrip(". ")
    if not text or len(text) > LONGEST_COMMAND or not text.isascii() or not text.isprintable():
        return None
    if re.search(r'[.,;:"\\<>\[\]]', text):
        return None
    words = re.findall(r"[a-z0-9_']+(?:-[a-z0-9_']+)*", text)
    stems = [word[:_WORD_LENGTH] for word in words]
    if not stems or any(stem in _PROGRAM_WORD_STEMS or stem.startswith("tw-") for stem in stems):
        return None
    return None if stems[0] in _PROGRAM_VERB_STEMS or "then" in stems else text


@lru_cache(maxsize=_REMEMBERED)
def admissible_commands(logic: GameLogic, state: int) -> tuple[str, ...]:
    """What a player could type now so that something is done or told, sorted; empty once the game has ended.

    Args:
        logic: logic of the game.
        state: facts that hold.
    """
    if logic.ended(state):
        return ()
    return tuple(sorted({action.command for action in logic.applicable(state) if state & action.also == action.also}))


def listed_commands(logic: GameLogic, state: int) -> tuple[str, ...]:
    """What TextWorld lists as admissible now: `admissible_commands`, and some that the compiled game refuses.

    Args:
        logic: logic of the game.
        state: facts that hold.
    """
    if logic.ended(state):
        return ()
    return tuple(sorted({action.command for action in logic.applicable(state)}))
