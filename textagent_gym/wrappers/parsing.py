"""The action in what a model says."""

from __future__ import annotations

import re
from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from textagent_gym.calls import FORMATS, ActionError, Format
from textagent_gym.errors import InvalidOptionError
from textagent_gym.spaces import fit
from textagent_gym.wrappers.text_wrapper import TextWrapper, check_text

_NO_ACTION = ""  # Played in the place of an action that could not be found: no world understands it.


class ActionParser(TextWrapper, RecordConstructorArgs):
    """Tells a model in which format to answer, and finds its action. An answer without one costs a turn.

    How to answer follows the world's instructions, in `info["instructions"]` and where the first observation holds
    them. The reply to an answer without an action says what is wrong with it. The wrapper goes inside the wrappers that
    keep the conversation, so that they keep the whole answers.

    Args:
        env: a text environment.
        parser: name of a format of `calls.FORMATS`, a regular expression with one group, whose last match counts, or a
            function that returns the action or `None`. Only a name adds to the instructions.
        hint: reply to an answer without an action; "" for the world's own reply. By default a sentence that says what
            is wrong: the format's, the `ActionError` of a function, or else the world's own reply.

    Raises:
        InvalidOptionError: the parser is neither a name nor a pattern with one group, or observations are not text.

    Example:
        >>> env = ActionParser(gymnasium.make("lights/Lights-v0"), "tag")
        >>> env.reset(options={"task_index": 0})[1]["instructions"].splitlines()[-1]
        'Answer with one action in <action>...</action>; you may think before it.'
        >>> env.step("It is dark. <action>press red</action>")[0]
        'red: on, green: off, blue: off, white: off'
        >>> env.step("press white")[0]
        'Answer with <action>...</action>.'
    """

    def __init__(self, env: gymnasium.Env[str, str], parser: str | Format = "tag", hint: str | None = None) -> None:
        RecordConstructorArgs.__init__(self, parser=parser, hint=hint)
        gymnasium.Wrapper.__init__(self, env)
        check_text(env, "ActionParser")
        self._find, self._usual, self._instructions = _parser(parser)
        self._hint = hint

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin an episode; see the environment."""
        observation, info = self.env.reset(seed=seed, options=options)
        if not self._instructions:
            return observation, info
        worlds = str(info.get("instructions", ""))
        both = f"{worlds}\n\n{self._instructions}" if worlds else self._instructions
        if worlds and worlds in observation:
            observation = fit(observation.replace(worlds, both, 1))
        return observation, {**info, "instructions": both}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Act; see the environment. `info["parsed_action"]` is what was played, `None` where nothing was found."""
        parsed, wrong = None, self._usual
        try:
            parsed = self._find(action)
        except ActionError as error:
            wrong = str(error)
        observation, reward, terminated, truncated, info = self.env.step(_NO_ACTION if parsed is None else parsed)
        info = {**info, "parsed_action": parsed}
        if parsed is None:
            info["valid_action"] = False
            observation = fit(wrong if self._hint is None else self._hint) or observation
        return observation, float(reward), terminated, truncated, info


def _parser(parser: str | Format) -> tuple[Format, str, str]:
    """How the action is found, the reply where there is none, and the instructions."""
    if callable(parser):
        return parser, "", ""
    if parser in FORMATS:
        known = FORMATS[parser]
        return known.find, known.hint, known.instructions
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

    return last_match, "", ""
