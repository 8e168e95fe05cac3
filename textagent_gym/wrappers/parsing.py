"""The action in what a model says."""

from __future__ import annotations

import re
from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from textagent_gym.calls import FORMATS, Format
from textagent_gym.errors import InvalidOptionError
from textagent_gym.wrappers.text_wrapper import TextWrapper, check_text

_NO_ACTION = ""  # Played in the place of an action that could not be found: no world understands it.


class ActionParser(TextWrapper, RecordConstructorArgs):
    """Finds the action in what a model says. An answer without one costs a turn and is told the format.

    It goes inside the wrappers that keep the conversation, so that they keep the whole answers.

    Args:
        env: a text environment.
        parser: "tag" (`<action>...</action>`), "last-line", "react" (`Action: ...`), a regular expression with one
            group, whose last match counts, or a function that returns the action or `None`.
        hint: reply to an answer without an action; "" for the world's own reply. By default a sentence that
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

    def __init__(self, env: gymnasium.Env[str, str], parser: str | Format = "tag", hint: str | None = None) -> None:
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


def _parser(parser: str | Format) -> tuple[Format, str]:
    if callable(parser):
        return parser, ""
    if parser in FORMATS:
        return FORMATS[parser]
    try:
        pattern = re.compile(parser, re.DOTALL)
    except re.error as error:
        raise InvalidOptionError(
            f"parser={parser!r} is neither one of {', '.join(FORMATS)} nor a pattern: {error}"
        ) from error
    if pattern.groups != 1:
        raise InvalidOptionError(
            f"parser={parser!r} is none of {', '.join(FORMATS)}; as a pattern it needs one group, not {pattern.groups}"
        )

    def last_match(answer: str) -> str | None:
        matches: list[str] = pattern.findall(answer)
        return matches[-1].strip() if matches else None

    return last_match, ""
