"""The commands of a game: which strings reach it at all, and which do something now. Every engine shares them.

Inform's own commands about the program (`save` and `script` write files into the current folder, `restart` and `quit`
ask questions and then hear nothing else) are no part of a world, and an interpreter cannot take every byte. An engine
is sent what `playable` returns.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import lru_cache, reduce
from operator import or_

from textagent_gym.domains.textworld.logic import Action, GameLogic

UNKNOWN_VERB = "xyzzy"
"""A command that every game refuses, by saying that it does not recognise the verb."""

LONGEST_COMMAND = 180
"""Characters of a command: Frotz reads 198 bytes and Inform fewer words than that; no command of a game comes near."""

# Words that make Inform act on files or on the program, wherever they stand ("me, save" saves).
_PROGRAM_WORDS = frozenset(
    ("save", "restore", "restart", "quit", "script", "noscript", "unscript", "transcript", "undo", "verify")
)
# Verbs about the program, harmless elsewhere in a sentence, where they may be part of a name ("the long knife").
_PROGRAM_VERBS = frozenset(
    (
        *("q", "oops", "o", "version", "score", "notify", "pronouns", "nouns", "verbose", "long", "brief"),
        *("normal", "superbrief", "short", "restrict", "print_state", "enable", "disable"),
    )
)
_REMEMBERED = 8_192  # Commands, and rooms of all games together, of which something is kept.
_LISTS = 512  # Lists of commands in a room, or about a thing in it, that are kept, of less than half a KB each.
_PLACES = frozenset(("at", "in", "on"))  # Facts that say where a thing is.
_WORD_LENGTH = 9  # The Z-machine's dictionary compares no more characters of a word.
_PROGRAM_WORD_STEMS = frozenset(word[:_WORD_LENGTH] for word in _PROGRAM_WORDS)
_PROGRAM_VERB_STEMS = frozenset(word[:_WORD_LENGTH] for word in _PROGRAM_VERBS)
_VERB = re.compile(r'(?:^|[.,]|(?<= )then(?= ))[ .,]*([^ .,"]+)')
_WORD = re.compile(r"[a-z0-9_']+(?:-[a-z0-9_']+)*")


def playable(command: str) -> str:
    """The line that goes to the game for a command: the command itself, or `UNKNOWN_VERB` if it must not go there.

    Commands about the program, backslashes and control characters do not go there. A letter beyond ASCII goes as "?",
    because no word of a game has one, and what is longer than `LONGEST_COMMAND` is cut there.

    >>> playable("  Take the   lamp. "), playable("go north. take lamp"), playable("me, save"), playable("\\x00")
    ('take the lamp.', 'go north. take lamp', 'xyzzy', 'xyzzy')
    """
    return _playable(command.strip(" ")[:LONGEST_COMMAND])


@lru_cache(maxsize=_REMEMBERED)
def _playable(command: str) -> str:
    text = (command if command.isascii() else re.sub(r"[^\x00-\x7f]", "?", command)).lower()
    text = re.sub(r" {2,}", " ", text).strip()
    if "\\" in text or not text.isprintable():
        return UNKNOWN_VERB
    words = _WORD.findall(text)
    if not _PROGRAM_WORD_STEMS.isdisjoint(_stems(words)) or any(word.startswith("tw-") for word in words):
        return UNKNOWN_VERB
    return text if _PROGRAM_VERB_STEMS.isdisjoint(_stems(_VERB.findall(text))) else UNKNOWN_VERB


def _stems(words: list[str]) -> list[str]:
    """Words as far as the dictionary compares them."""
    return [word[:_WORD_LENGTH] for word in words]


def admissible_commands(logic: GameLogic, state: int) -> tuple[str, ...]:
    """What a player could type now so that something is done or told, sorted; empty once the game has ended.

    Args:
        logic: logic of the game.
        state: facts that hold.
    """
    return _choices(logic, state & logic.rooms).admissible(state)


def listed_commands(logic: GameLogic, state: int) -> tuple[str, ...]:
    """What TextWorld lists as admissible now: `admissible_commands`, and some that the compiled game refuses.

    Args:
        logic: logic of the game.
        state: facts that hold.
    """
    if logic.ended(state):
        return ()
    return tuple(sorted({action.command for action in logic.applicable(state)}))


def forget() -> None:
    """Forget which commands are admissible where, and what goes to a game for a line."""
    _choices.cache_clear()
    _playable.cache_clear()


@lru_cache(maxsize=_REMEMBERED)
def _choices(logic: GameLogic, room: int) -> _Choices:
    return _Choices(logic, room)


class _Choices:
    """The commands that can be admissible in a room, in parts.

    Each part is about one thing, and depends on few facts: where the thing is, and what is open. So the list of a state
    that nobody has met is put together from lists that are known.

    Args:
        logic: logic of the game.
        room: the fact that says that the player is there.
    """

    def __init__(self, logic: GameLogic, room: int) -> None:
        self._logic = logic
        parts: dict[str, list[Action]] = defaultdict(list)
        for action in logic.in_room(room):
            parts[_thing(logic, action)].append(action)
        self._parts = [_Part(actions) for actions in parts.values()]
        self._facts = reduce(or_, (part.facts for part in self._parts), logic.required | logic.lost_bit)
        self._known: dict[int, tuple[str, ...]] = {}

    def admissible(self, state: int) -> tuple[str, ...]:
        """The admissible commands, sorted; none once the game has ended."""
        facts = state & self._facts
        commands = self._known.get(facts)
        if commands is None:
            listed: list[str] = []
            if not self._logic.ended(facts):
                for part in self._parts:
                    listed += part.admissible(facts)
            listed.sort()  # Sorted lists one after the other: that is quick.
            commands = tuple(dict.fromkeys(listed))
            _remember(self._known, facts, commands)
        return commands


class _Part:
    """The commands about one thing in a room.

    Attributes:
        facts: facts that they depend on.
    """

    __slots__ = ("_actions", "_known", "facts")

    def __init__(self, actions: list[Action]) -> None:
        self._actions = [(action.needs | action.also, action.command) for action in actions]
        self._known: dict[int, tuple[str, ...]] = {}
        self.facts = reduce(or_, (needs for needs, _ in self._actions), 0)

    def admissible(self, state: int) -> tuple[str, ...]:
        facts = state & self.facts
        commands = self._known.get(facts)
        if commands is None:
            commands = tuple(sorted([command for needs, command in self._actions if facts & needs == needs]))
            _remember(self._known, facts, commands)
        return commands


def _thing(logic: GameLogic, action: Action) -> str:
    """What is carried, lies somewhere or is taken in an action; "" for none."""
    needs = action.needs & ~logic.rooms
    while needs:
        fact = logic.facts[(needs & -needs).bit_length() - 1]
        if fact[0] in _PLACES:
            return fact[1]
        needs &= needs - 1
    return ""


def _remember(known: dict[int, tuple[str, ...]], facts: int, commands: tuple[str, ...]) -> None:
    if len(known) >= _LISTS:
        known.clear()
    known[facts] = commands
