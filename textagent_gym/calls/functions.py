"""Function calls as JSON objects, `{"name": ..., "arguments": {...}}`, bare or as in an OpenAI message."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from textagent_gym.calls.tool import ActionError, Call, Tool

_DEEPEST = 100  # Levels of a call.


def parse_function(text: str, tools: Sequence[Tool]) -> Call:
    """The first JSON object of a text, as a call of one of the tools.

    Raises:
        ActionError: there is no object, or it is not a call that the tools allow.

    >>> parse_function('{"name": "submit", "arguments": {}}', [Tool("submit", "End.")]).tool
    'submit'
    """
    start = text.find("{")
    try:
        value, _ = json.JSONDecoder().raw_decode(text[start:] if start >= 0 else "")
        _check_depth(value)
    except (ValueError, RecursionError) as error:
        raise ActionError('There is no JSON object; write {"name": ..., "arguments": {...}}.') from error
    if isinstance(value, dict) and isinstance(value.get("function"), dict):  # As in an OpenAI message.
        value = value["function"]
    name = value.get("name") if isinstance(value, dict) else None
    arguments = value.get("arguments", {}) if isinstance(value, dict) else {}
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
            _check_depth(arguments)
        except (ValueError, RecursionError) as error:
            raise ActionError("The arguments are not a JSON object.") from error
    known = {tool.name: tool for tool in tools}
    if not isinstance(name, str) or name not in known:
        raise ActionError(f"There is no function {name!r}; there are {', '.join(known)}.")
    if not isinstance(arguments, dict):
        raise ActionError("The arguments are not a JSON object.")
    known[name].check(arguments)
    return Call(name, arguments)


def _check_depth(value: Any) -> None:
    """Raise `ValueError` for JSON so deep that whether it can be read depends on how deep in a program that is done."""
    level = [value]
    for _ in range(_DEEPEST):
        lists = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level = [inner for values in lists for inner in values]
    if level:
        raise ValueError(f"nested more than {_DEEPEST} levels deep")


def ask_for_functions(tools: Sequence[Tool]) -> str:
    """What tells a model to act by calling one of the tools, with all of them as JSON, one per line."""
    listed = "\n".join(json.dumps(tool.schema["function"]) for tool in tools)
    return f'call one of these functions, as a JSON object {{"name": ..., "arguments": {{...}}}}:\n{listed}'


def render_function(call: Call) -> str:
    """An action that makes a call; `parse_function` reads it back."""
    return json.dumps({"name": call.tool, "arguments": dict(call.arguments)})
