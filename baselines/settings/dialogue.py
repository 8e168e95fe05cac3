"""How a policy converses: the format of its answers, and what it reads again of earlier turns. It loads no torch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, get_args

from baselines.settings.config import AnswerFormatName, MemoryKind, check_at_least
from textagent_gym.calls import FORMATS, ActionError
from textagent_gym.errors import InvalidOptionError
from textagent_gym.vector import Wrap
from textagent_gym.wrappers import ActionParser

CHAT_FILE = "chat.json"
"""File in a policy's folder that holds the chat settings it was trained with."""


@dataclass(frozen=True, slots=True)
class Dialogue:
    """Format and memory of a policy's conversations; saved with it.

    Attributes:
        format: "plain" (the answer is the action), or a name of `textagent_gym.calls.FORMATS`.
        memory: what the policy reads again of earlier turns; see `rollout/memory.py`.
        memory_turns: largest number of earlier turns that "window" and "turn" show, at least 1.

    Raises:
        InvalidOptionError: a value is out of its range, or thoughts are to be dropped in a format without any.
    """

    format: AnswerFormatName = "plain"
    memory: MemoryKind = "whole"
    memory_turns: int = 8

    def __post_init__(self) -> None:
        for name, known in (("format", AnswerFormatName), ("memory", MemoryKind)):
            if getattr(self, name) not in get_args(known):
                raise InvalidOptionError(
                    f"{name} must be one of {', '.join(get_args(known))}, got {getattr(self, name)!r}"
                )
        check_at_least("memory_turns", self.memory_turns, 1)
        if self.memory == "no-thoughts" and self.format == "plain":
            raise InvalidOptionError(
                "memory='no-thoughts' needs a format with thoughts, such as format='think'; "
                "with format='plain' the whole answer is the action"
            )

    @property
    def wrappers(self) -> tuple[Wrap, ...]:
        """Wrappers of the environment that tell the format and find the actions."""
        return () if self.format == "plain" else (partial(ActionParser, parser=self.format),)

    def action(self, answer: str) -> str:
        """The action in an answer; the whole answer where there is none."""
        if self.format == "plain":
            return answer
        try:
            return FORMATS[self.format].parse(answer)
        except ActionError:
            return answer

    def without_thoughts(self, answer: str) -> str:
        """An answer that says the same action and nothing else; the whole answer where it has no action."""
        return answer if self.format == "plain" else FORMATS[self.format].without_thoughts(answer)


def dialogue_of(
    policy: str,
    format: AnswerFormatName | None = None,
    memory: MemoryKind | None = None,
    memory_turns: int | None = None,
) -> Dialogue:
    """The dialogue of a policy, as it was saved with it; that of `Dialogue` for a hub name.

    Args:
        policy: folder or hub name of the policy.
        format, memory, memory_turns: values in the place of the saved ones; `None` keeps those.
    """
    path = Path(policy) / CHAT_FILE
    saved = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    asked: dict[str, Any] = {"format": format, "memory": memory, "memory_turns": memory_turns}
    chosen = {name: saved.get(name) if value is None else value for name, value in asked.items()}
    return Dialogue(**{name: value for name, value in chosen.items() if value is not None})


def check_plain(dialogue: Dialogue) -> None:
    """Refuse a dialogue that is not that of demonstrations: plain actions, and all that was said.

    Raises:
        InvalidOptionError: it has another format or memory.
    """
    if (dialogue.format, dialogue.memory) != ("plain", "whole"):
        raise InvalidOptionError(
            f"demonstrations have format='plain' and memory='whole', and the policy has format={dialogue.format!r} "
            f"and memory={dialogue.memory!r}"
        )
