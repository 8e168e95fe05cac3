"""Finds the action in what a model says: tags, last line, ReAct, and blocks of code."""

from __future__ import annotations

import re
from collections.abc import Callable

from textagent_gym.calls.tool import ActionError

Format = Callable[[str], str | None]
"""Takes an answer; returns the action, or `None` where the answer has none."""

_BLOCK = re.compile(r"```(?:bash|sh|shell)?[ \t]*\n(.*?)\n?```", re.DOTALL)


def parse_tag(answer: str) -> str | None:
    """The text in the last `<action>...</action>`.

    >>> parse_tag("I need the key. <action> take key </action>")
    'take key'
    """
    # Tag by tag: a pattern for the pair would go through a megabyte of opening tags once for each of them.
    opened, action = None, None
    for tag in re.finditer("<(/?)action>", answer, re.IGNORECASE):
        if not tag[1]:
            opened = tag.end()
        elif opened is not None:
            action = answer[opened : tag.start()].strip()
            opened = None
    return action


def parse_last_line(answer: str) -> str | None:
    """The last line that is not empty."""
    lines = [line.strip() for line in answer.splitlines() if line.strip()]
    return lines[-1] if lines else None


def parse_react(answer: str) -> str | None:
    """The text after the last `Action:`, up to the line's end (Yao et al., 2022, "ReAct", arXiv 2210.03629).

    >>> parse_react("Thought: the door is locked.\\nAction: unlock door with key")
    'unlock door with key'
    """
    lines: list[str] = re.findall(r"^[ \t]*Action[ \t]*:(.*)$", answer, re.MULTILINE | re.IGNORECASE)
    actions = [line.strip() for line in lines if line.strip()]
    return actions[-1] if actions else None


def parse_block(answer: str) -> str:
    """The command in the only code block of an answer; an answer without a block is a command as it stands.

    Raises:
        ActionError: there are several blocks, one that does not end, or no command.

    >>> parse_block("I look around.\\n```bash\\nls\\n```")
    'ls'
    """
    blocks = _BLOCK.findall(answer)
    if len(blocks) > 1:
        raise ActionError(f"There are {len(blocks)} blocks; write one command per turn.")
    if not blocks and "```" in answer:
        raise ActionError("The block does not end; write ```bash, the command, and ``` on lines of their own.")
    command = str(blocks[0] if blocks else answer).strip()
    if not command:
        raise ActionError("There is no command; write one in a block that begins with ```bash.")
    return command


FORMATS: dict[str, tuple[Format, str]] = {
    "tag": (parse_tag, "Answer with <action>...</action>."),
    "last-line": (parse_last_line, "Answer with an action on the last line."),
    "react": (parse_react, "Answer with lines 'Thought: ...' and 'Action: ...'."),
}
"""By name: how the action is found, and what to say to an answer without one."""
