"""What a line means: at once where it is plain, else by the parser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textagent_gym.domains.textworld.inform.parser import Command, Parser
from textagent_gym.domains.textworld.inform.plain import read_plain
from textagent_gym.domains.textworld.inform.questions import UnansweredError
from textagent_gym.domains.textworld.inform.reading import Memory
from textagent_gym.domains.textworld.inform.world import World


class Understanding(NamedTuple):
    """What was understood of a line; the attributes after `command` are those of `Parser`.

    Attributes:
        command: what the player asks for; `None` if the line means nothing, or more must be typed.
        text: line that was read, with the answers to questions put where they belong.
        asked: whether more must be typed; `reply` is the question.
    """

    command: Command | None
    text: str
    typed: str
    note: str = ""
    reply: str = ""
    rest: str | None = None
    asked: bool = False


def understand(world: World, memory: Memory, lines: Sequence[str]) -> Understanding:
    """What a command means.

    Args:
        world: world in which it was typed; nothing in it is changed.
        memory: what is remembered; it is changed, but not where more must be typed.
        lines: what was typed: the command, then answers to questions.
    """
    if len(lines) == 1:
        command = read_plain(world, memory, lines[0])
        if command is not None:
            return Understanding(command, lines[0], lines[0])
    before, parser = memory.kept, Parser(world, memory, lines)
    try:
        command = parser.parse()
    except UnansweredError:
        memory.recall(before)
        return Understanding(None, parser.text, parser.typed, parser.note, parser.reply, asked=True)
    return Understanding(command, parser.text, parser.typed, parser.note, parser.reply, parser.rest)
