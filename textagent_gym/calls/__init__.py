"""Tools that an action may call, and the languages in which a model names its action."""

from textagent_gym.calls.formats import FORMATS, Format, parse_block, parse_last_line, parse_react, parse_tag
from textagent_gym.calls.functions import parse_function, render_function
from textagent_gym.calls.tool import ActionError, Call, Parameter, Tool

__all__ = [
    "FORMATS",
    "ActionError",
    "Call",
    "Format",
    "Parameter",
    "Tool",
    "parse_block",
    "parse_function",
    "parse_last_line",
    "parse_react",
    "parse_tag",
    "render_function",
]
