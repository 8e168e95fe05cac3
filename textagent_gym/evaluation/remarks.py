"""What an agent's model wrote beside its actions: the agent's own word, kept with a conversation and never checked."""

from __future__ import annotations

import json
from typing import Any

REMARKS = ("reasoning", "text", "call", "ended")
"""Keys of a message that hold them: reasoning as a server tells it, text beside the call of a function, name and
arguments of this call as they were written (as JSON), and how an answer ended that is not whole."""
LONGEST_REMARK = 20_000
"""Characters of a remark that are kept: about ten screens, as much as the viewer shows of a text."""
MOST_REMARKS = 2**19
"""Bytes of an episode's remarks that are kept: 400 episodes of them fit into a file that is read."""


def kept_remarks(remarks: Any, room: int) -> tuple[dict[str, str], int]:
    """What is kept of an agent's remarks on an action, and the room that is left after it.

    Args:
        remarks: texts by name; whatever is no text of a known name is left out.
        room: number of bytes that the episode may still hold of them, written as JSON.

    >>> kept_remarks({"reasoning": "It is dark.", "text": "", "mood": "fine"}, room=100)
    ({'reasoning': 'It is dark.'}, 87)
    >>> kept_remarks({"text": "Nobody has room for this."}, room=20)
    ({}, 20)
    """
    kept: dict[str, str] = {}
    for name in REMARKS:
        text = remarks.get(name) if isinstance(remarks, dict) else None
        if not isinstance(text, str) or not text:
            continue
        if len(text) > LONGEST_REMARK:
            end = f"\n[of {len(text)} characters]"
            text = text[: LONGEST_REMARK - len(end)] + end
        size = len(json.dumps(text))
        if size <= room:
            kept[name], room = text, room - size
    return kept, room


def without_remarks(messages: Any) -> Any:
    """JSON values of a conversation without remarks; as they are where these are not as `kept_remarks` keeps them."""
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        return messages
    size = 0
    for message in messages:
        for name in REMARKS:
            if name in message:
                text = message[name]
                if message.get("role") != "assistant" or not isinstance(text, str):
                    return messages
                if not 0 < len(text) <= LONGEST_REMARK:
                    return messages
                size += len(json.dumps(text))
    if size > MOST_REMARKS:
        return messages
    return [{key: value for key, value in message.items() if key not in REMARKS} for message in messages]
