"""Function calls as JSON objects, `{"name": ..., "arguments": {...}}`, bare or as in an OpenAI message."""

from __future__ import annotations

import json
from collections.abc import Sequence

from textagent_gym.calls.tool import ActionError, Call, Tool


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
    except (ValueError, RecursionError) as error:
        raise ActionError('There is no JSON object; write {"name": ..., "arguments": {...}}.') from error
    if isinstance(value, dict) and isinstance(value.get("function"), dict):  # As in an OpenAI message.
        value = value["function"]
    name = value.get("name") if isinstance(value, dict) else None
    arguments = value.get("arguments", {}) if isinstance(value, dict) else {}
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError) as error:
            raise ActionError("The arguments are not a JSON object.") from error
    known = {tool.name: tool for tool in tools}
    if not isinstance(name, str) or name not in known:
        raise ActionError(f"There is no function {name!r}; there are {', '.join(known)}.")
    if not isinstance(arguments, dict):
        raise ActionError("The arguments are not a JSON object.")
    known[name].check(arguments)
    return Call(name, arguments)


def ask_for_functions(tools: Sequence[Tool]) -> str:
    """What tells a model to act by calling one of the tools, with all of them as JSON, one per line."""
    listed = "\n".join(json.dumps(tool.schema["function"]) for tool in tools)
    return f'call one of these functions, as a JSON object {{"name": ..., "arguments": {{...}}}}:\n{listed}'


def render_function(call: Call) -> str:
    """An action that makes a call; `parse_function` reads it back."""
    return json.dumps({"name": call.tool, "arguments": dict(call.arguments)})
