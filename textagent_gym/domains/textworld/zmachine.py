"""A Z-machine session that an agent cannot upset: one story, commands in, clean prose and events out.

The interpreter is Frotz, through `jericho`. What an agent types reaches it only after `playable`: bytes that Frotz
cannot take crash the process, and Inform's own commands about the program (`save` and `script` write files into the
current folder, `restart` and `quit` ask questions and then hear nothing else) are no part of a world. Whatever gets
through all the same is recognised by the trace of Inform's actions and taken back.
"""

from __future__ import annotations

import re
import warnings
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from textagent_gym.errors import GenerationError, MissingDependencyError

NOT_UNDERSTOOD = "That's not a verb I recognise."
"""Inform's reply to a verb that does not exist; the reply to everything that is not played."""

_LONGEST_COMMAND = 180  # Frotz reads 198 bytes and Inform fewer words than that; no command of a game comes near.
_KEPT_OPENINGS = 512  # Stories whose first moment is remembered (60 KB each), so that a reset need not replay it.

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
_WORD_LENGTH = 9  # The Z-machine's dictionary compares no more characters of a word.
_PROGRAM_WORD_STEMS = frozenset(word[:_WORD_LENGTH] for word in _PROGRAM_WORDS)
_PROGRAM_VERB_STEMS = frozenset(word[:_WORD_LENGTH] for word in _PROGRAM_VERBS)

# What Inform calls its actions about the program; the trace tells which action really ran.
_PROGRAM_EVENT = re.compile(
    r"^((saving|restoring|restarting|quitting) the game|verifying the story|preferring |requesting the |reporting "
    r"|switching (the story transcript|score notification)|tracing the actions"
    r"|turning o(n|ff) the (print|extra|restrict)|printing the (id|entire))"
)
_QUESTION = re.compile(r"Are you sure you want to|Please answer yes or no|Please give one of the answers")

_VERSION = 8  # Of the Z-machine; TextWorld compiles to no other.
_HEADER = 0x40  # Bytes of a story's header, which its checksum leaves out.

_TRACE = re.compile(r"\[[^]]+\]\n?")
_EXTRA_INFO = re.compile(r"<(score|moves)>\n.*?</\1>", re.DOTALL)
_STATUS_LINE = re.compile(r"\n?>?[ ]{2,}-= [^\n]* =-\s?-?\d+/-?\d+\s*$")
_BANNER = re.compile(r"\A.*\$\$[^\n]*\n", re.DOTALL)
_ENDING = re.compile(r"\s*\*\*\* (The End|You lost!) \*\*\*.*$", re.DOTALL)
_SCORE_NOTICE = re.compile(r"\n*Your score has just gone (up|down) by [^\n]*\n?")


@dataclass(frozen=True, slots=True)
class Reply:
    """What the story answered.

    Attributes:
        raw: the interpreter's output, trace included.
        events: Inform's actions that succeeded, in order, such as "opening the chest".
        won: whether the story ended well.
        lost: whether the story ended badly.
        meddled: whether an action about the program ran, or it asks a question about itself: take the turn back.
    """

    raw: str
    events: tuple[str, ...]
    won: bool
    lost: bool
    meddled: bool


@dataclass(frozen=True, slots=True)
class Opening:
    """The first moment of a story: its first text and the interpreter's state, shared by all who play it."""

    raw: str
    state: Any


def playable(command: str) -> str | None:
    """The command in the form that goes to the interpreter, or `None` if it must not go there.

    Printable ASCII in one sentence passes, without the full stop at its end; commands about the program, several
    commands in one, control characters and anything that is too long do not.

    >>> playable("  Take the   lamp. "), playable("go north. take lamp"), playable("me, save"), playable("\\x00")
    ('take the lamp', None, None, None)
    """
    if len(command) > 4 * _LONGEST_COMMAND:
        return None
    text = " ".join(command.lower().split(" ")).strip()
    text = re.sub(r" {2,}", " ", text).rstrip(". ")
    if not text or len(text) > _LONGEST_COMMAND or not text.isascii() or not text.isprintable():
        return None
    if re.search(r'[.,;:"\\<>\[\]]', text):
        return None
    words = re.findall(r"[a-z0-9_']+(?:-[a-z0-9_']+)*", text)
    stems = [word[:_WORD_LENGTH] for word in words]
    if not stems or any(stem in _PROGRAM_WORD_STEMS or stem.startswith("tw-") for stem in stems):
        return None
    return None if stems[0] in _PROGRAM_VERB_STEMS or "then" in stems else text


def plain(raw: str) -> str:
    """A reply as a person would read it: no trace, status line, prompt, score notice or question what to do next."""
    text = _STATUS_LINE.sub("", _EXTRA_INFO.sub("", _TRACE.sub("", raw)))
    text = re.sub(r"\n>\s*$", "\n", text)
    text = _SCORE_NOTICE.sub("\n", text)
    text = _ENDING.sub(lambda match: f"\n\n*** {match.group(1)} ***", text)
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \t]+\n", "\n", text)).strip()


def plain_opening(raw: str) -> str:
    """The first text of a story without the banner that spells its name in `$` signs."""
    return _BANNER.sub("", plain(raw)).strip()


def upstream_feedback(raw: str) -> str:
    """The text that TextWorld's own environment returns: traces and extra infos cut out, everything else as it is."""
    return _TRACE.sub("", re.sub(r"<(moves|score)>\n(.*)</\1>", "", raw, flags=re.DOTALL))


def check_story(story: str) -> None:
    """Read a story's header, because Frotz ends the whole process when it is handed something else.

    Raises:
        GenerationError: the file is not a whole `.z8` story; the message says what is wrong with it.
    """
    try:
        content = Path(story).read_bytes()
    except OSError as error:
        raise GenerationError(f"{story} cannot be read: {error.strerror}") from error
    if len(content) < _HEADER or content[0] != _VERSION:
        raise GenerationError(f"{story} is not a story of the Z-machine's version {_VERSION}")
    length = int.from_bytes(content[0x1A:0x1C], "big") * 8
    if not _HEADER <= length <= len(content):
        raise GenerationError(f"{story} is cut off: {len(content)} of {length} bytes are there")
    if sum(content[_HEADER:length]) % 0x10000 != int.from_bytes(content[0x1C:0x1E], "big"):
        raise GenerationError(f"{story} is damaged: its checksum is not the one in its header")


class ZMachine:
    """Plays one story at a time. Not shared between threads; every env has its own interpreter.

    Raises:
        MissingDependencyError: `jericho` is not installed.
    """

    _openings: OrderedDict[str, Opening] = OrderedDict()  # noqa: RUF012 (shared on purpose, guarded by the lock)
    _openings_lock = Lock()

    def __init__(self) -> None:
        try:
            import jericho
        except ImportError as error:
            raise MissingDependencyError("jericho", "textworld") from error
        self._jericho = jericho
        self._frotz: Any = None
        self._story = ""

    def start(self, story: str, *, trace: bool = True) -> str:
        """Begin a story from its first moment and return its first text, as the interpreter gave it.

        Args:
            story: path of a `.z8` file; the same path must always hold the same story.
            trace: whether the story was made by TextWorld and can report the actions that run.

        Raises:
            GenerationError: the file is no story that the interpreter can play.
        """
        if story != self._story:
            self._load(story)
        with self._openings_lock:
            opening = self._openings.get(story)
        if opening is None:
            opening = self._first_moment(trace)
            with self._openings_lock:
                self._openings[story] = opening
                while len(self._openings) > _KEPT_OPENINGS:
                    self._openings.popitem(last=False)
        else:
            self.restore(opening.state)
        return opening.raw

    def send(self, command: str) -> Reply:
        """Play a command that `playable` has passed."""
        raw: str = self._frotz.step(command)[0]
        traced = [tag.strip()[1:-1] for tag in _TRACE.findall(raw)]
        # A bracketed number marks an action that runs inside another one; only the outer one is a turn.
        outer = [event for event in traced if "(" not in event and ")" not in event]
        succeeded = " - succeeded"
        events = tuple(event[: event.index(succeeded)] for event in outer if succeeded in event)
        won, lost = "*** The End ***" in raw, "*** You lost! ***" in raw
        meddled = any(_PROGRAM_EVENT.match(event) for event in outer) or bool(_QUESTION.search(raw))
        return Reply(raw, events, won, lost, meddled and not won and not lost)

    def save(self) -> Any:
        """The interpreter's whole state (about 60 KB), for `restore`; it is never written to and can be shared."""
        return self._frotz.get_state()

    def restore(self, state: Any) -> None:
        """Go back to what `save` returned, in the same story."""
        self._frotz.set_state(state)

    def close(self) -> None:
        """Give the interpreter's memory back; `start` begins anew."""
        self._frotz = None
        self._story = ""

    def _load(self, story: str) -> None:
        self._story = ""
        check_story(story)
        with warnings.catch_warnings():
            # Jericho knows the scores of some published games and warns of every other story.
            warnings.simplefilter("ignore")
            try:
                if self._frotz is None:
                    self._frotz = self._jericho.FrotzEnv(story, seed=1)
                else:
                    self._frotz.close()  # Otherwise the memory of the story before is never given back.
                    self._frotz._cache.clear()  # It would keep every story that it has ever read.
                    self._frotz.load(story, seed=1)
            except (OSError, ValueError) as error:
                raise GenerationError(f"{story} cannot be played: {error}") from error
        self._story = story

    def _first_moment(self, trace: bool) -> Opening:
        raw: str = self._frotz.reset()[0]
        if trace:
            # In the order of TextWorld's own environment: the very first texts depend on it.
            for request in ("tw-extra-infos moves", "tw-extra-infos score", "tw-trace-actions"):
                self._frotz.step(request)
        return Opening(raw, self._frotz.get_state())
