"""Tools that an action may call, and the languages in which a model names its action."""

from textagent_gym.calls.formats import (
    FORMATS,
    AnswerFormat,
    Format,
    parse_agentgym,
    parse_block,
    parse_call,
    parse_last_line,
    parse_react,
    parse_tag,
    parse_thinking,
)
from textagent_gym.calls.functions import ask_for_functions, parse_function, render_function
from textagent_gym.calls.tool import ActionError, Call, Parameter, Tool

__all__ = [
    "FORMATS",
    "ActionError",
    "AnswerFormat",
    "Call",
    "Format",
    "Parameter",
    "Tool",
    "ask_for_functions",
    "parse_agentgym",
    "parse_block",
    "parse_call",
    "parse_function",
    "parse_last_line",
    "parse_react",
    "parse_tag",
    "parse_thinking",
    "render_function",
]
