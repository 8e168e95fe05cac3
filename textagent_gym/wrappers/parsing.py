"""The action in what a model says."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from textagent_gym.errors import InvalidOptionError
from textagent_gym.wrappers.saving import TextWrapper, check_text

Parser = Callable[[str], str | None]

_NO_ACTION = ""  # Played in the place of an action that could not be found: no world understands it.


def parse_tag(answer: str) -> str | None:
    """The text in the last `<action>...</action>`.

    >>> parse_tag("I need the key. <action> take key </action>")
    'take key'
    """
    # Tag by tag: a pattern for the pair would go through a megabyte of opening tags once for each of them.
    opened, found = None, None
    for tag in re.finditer("<(/?)action>", answer, re.IGNORECASE):
        if not tag[1]:
            opened = tag.end()
        elif opened is not None:
            found = answer[opened : tag.start()].strip()
            opened = None
    return found


def parse_last_line(answer: str) -> str | None:
    """The last line that is not empty."""
    lines = [line.strip() for line in answer.splitlines() if line.strip()]
    return lines[-1] if lines else None


def parse_react(answer: str) -> str | None:
    """The text after the last `Action:`, up to the line's end (Yao et al., 2022, "ReAct", arXiv 2210.03629).

    >>> parse_react("Thought: the door is locked.\\nAction: unlock door with key")
    'unlock door with key'
    """
    found: list[str] = re.findall(r"^[ \t]*Action[ \t]*:(.*)$", answer, re.MULTILINE | re.IGNORECASE)
    actions = [action.strip() for action in found if action.strip()]
    return actions[-1] if actions else None


PARSERS: dict[str, tuple[Parser, str]] = {
    "tag": (parse_tag, "Answer with <action>...</action>."),
    "last-line": (parse_last_line, "Answer with an action on the last line."),
    "react": (parse_react, "Answer with lines 'Thought: ...' and 'Action: ...'."),
}
"""By name: the parser, and what to say to an answer without an action."""


class ActionParser(TextWrapper, RecordConstructorArgs):
    """Finds the action in what a model says. An answer without one costs a turn and is told the format.

    It goes inside the wrappers that keep the conversation, so that they keep the whole answers.

    Args:
        env: a text environment.
        parser: "tag" (`<action>...</action>`), "last-line", "react" (`Action: ...`), a regular expression with one
            group, whose last match counts, or a function that returns the action or `None`.
        hint: what an answer without an action is told; "" for the world's own reply. By default a sentence that
            states the format, and the world's own reply for patterns and functions.

    Raises:
        InvalidOptionError: the parser is neither a name nor a pattern with one group, or observations are not text.

    Example:
        >>> env = ActionParser(gymnasium.make("lights/Lights-v0"), "tag")
        >>> _ = env.reset(options={"task_index": 0})
        >>> env.step("It is dark. <action>press red</action>")[0]
        'red: on, green: off, blue: off, white: off'
        >>> env.step("press white")[0]
        'Answer with <action>...</action>.'
    """

    def __init__(self, env: gymnasium.Env[str, str], parser: str | Parser = "tag", hint: str | None = None) -> None:
        RecordConstructorArgs.__init__(self, parser=parser, hint=hint)
        gymnasium.Wrapper.__init__(self, env)
        check_text(env, "ActionParser")
        self._parse, usual = _parser(parser)
        self._hint = usual if hint is None else hint

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Act; see the environment. `info["parsed_action"]` is what was played, `None` where nothing was found."""
        parsed = self._parse(action)
        observation, reward, terminated, truncated, info = self.env.step(_NO_ACTION if parsed is None else parsed)
        info = {**info, "parsed_action": parsed}
        if parsed is None:
            info["valid_action"] = False
            observation = self._hint or observation
        return observation, float(reward), terminated, truncated, info


def _parser(parser: str | Parser) -> tuple[Parser, str]:
    if callable(parser):
        return parser, ""
    if parser in PARSERS:
        return PARSERS[parser]
    try:
        pattern = re.compile(parser, re.DOTALL)
    except re.error as error:
        raise InvalidOptionError(
            f"parser={parser!r} is neither one of {', '.join(PARSERS)} nor a pattern: {error}"
        ) from error
    if pattern.groups != 1:
        raise InvalidOptionError(
            f"parser={parser!r} is none of {', '.join(PARSERS)}; as a pattern it needs one group, not {pattern.groups}"
        )

    def last_match(answer: str) -> str | None:
        found: list[str] = pattern.findall(answer)
        return found[-1].strip() if found else None

    return last_match, ""
