"""Conversations as token ids, turn by turn, for any tokenizer with a chat template.

A context grows only at its end: the ids of what has been said are kept as they are, and each new observation adds the
ids of its own part of the template. So the ids that the policy read and sampled are the ids that it is trained on. What
is to be read otherwise (a memory that leaves something out, see `rollout/memory.py`) begins a context anew.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypedDict, cast

from transformers import PreTrainedTokenizerBase

from baselines.settings.dialogue import CHAT_FILE, Dialogue, dialogue_of
from textagent_gym.errors import InvalidOptionError

_TODAY = datetime(2026, 1, 1, tzinfo=UTC)
"""What templates that ask for the time are told, in training as in evaluation: else a policy would read something else
every day."""
_PLACEHOLDER = "so be it"
"""Stands in for an earlier action, to find the part of the template that a new message adds."""


_REMEMBERED = 4_096
"""Largest number of texts whose ids are remembered: episodes of a group read the same opening, and often equal replies.
"""


class Message(TypedDict):
    """A message of a conversation."""

    role: str
    content: str


@dataclass(frozen=True)
class ChatFormat:
    """The chat template of a tokenizer.

    Args:
        tokenizer: tokenizer with a `chat_template` and an end-of-sequence token that ends an assistant's message.
        system: system message of every conversation, before the environment's instructions; none if empty.
        instructed: whether the environment's instructions stand in the system message.
        dialogue: format of the answers and memory of the conversation.

    Raises:
        InvalidOptionError: the tokenizer has no chat template, or its template rewrites earlier messages.
    """

    tokenizer: PreTrainedTokenizerBase
    system: str = ""
    instructed: bool = True
    dialogue: Dialogue = field(default_factory=Dialogue)

    def __post_init__(self) -> None:
        if not getattr(self.tokenizer, "chat_template", None):
            raise InvalidOptionError("the tokenizer has no chat_template; use an instruction-tuned model or set one")
        if self.tokenizer.eos_token_id is None:
            raise InvalidOptionError("the tokenizer has no eos_token, which ends an action")
        if self.dialogue.format != "plain" and not self.instructed:
            raise InvalidOptionError(
                f"format={self.dialogue.format!r} is told in the instructions, and this policy was trained without them"
            )
        self.following("a first look")

    @property
    def end_id(self) -> int:
        """Id of the token that ends an action."""
        return int(self.tokenizer.eos_token_id)

    def opening(self, observation: str, instructions: str = "") -> list[int]:
        """Ids of the conversation up to the first action; `instructions` say how to act in the environment."""
        return self.conversation([_user(observation)], instructions)

    def conversation(self, messages: list[Message], instructions: str = "") -> list[int]:
        """Ids of a conversation that ends with an observation, up to the next action."""
        instructions = instructions if self.instructed else ""
        return self._ids(self._render([*self._system(instructions), *messages], True))

    def following(self, observation: str) -> list[int]:
        """Ids that a further observation adds after an action's end token, up to the next action."""
        return list(self._following(observation))

    def _read_following(self, observation: str) -> list[int]:
        before, head = self._before
        after = self._render([*before, _user(observation)], True)
        if not after.startswith(head):
            raise InvalidOptionError(
                "the chat template rewrites earlier messages or does not end an assistant's message with "
                f"{self.tokenizer.eos_token!r}, so a conversation cannot be continued token by token"
            )
        return self._ids(after[len(head) :])

    def reply(self, action: str) -> list[int]:
        """Ids of an action that somebody else gives, its end token included, as a policy would have to sample them."""
        return [*self._ids(action), self.end_id]

    def save(self, folder: Path) -> None:
        """Keep the tokenizer and the chat settings with a policy."""
        self.tokenizer.save_pretrained(folder)
        settings = {"system": self.system, "instructed": self.instructed, **asdict(self.dialogue)}
        (folder / CHAT_FILE).write_text(json.dumps(settings), encoding="utf-8")

    def text(self, ids: list[int]) -> str:
        """What a list of sampled ids says, without special tokens."""
        return str(self.tokenizer.decode(ids, skip_special_tokens=True)).strip()

    @cached_property
    def _before(self) -> tuple[list[Message], str]:
        """A conversation with one action, and how it is rendered up to and with the action's end token."""
        before = [*self._system(), _user("?"), Message(role="assistant", content=_PLACEHOLDER)]
        head, placeholder, _ = self._render(before, False).rpartition(_PLACEHOLDER)
        return before, head + placeholder + str(self.tokenizer.eos_token) if placeholder else "\0"

    def _system(self, instructions: str = "") -> list[Message]:
        content = "\n\n".join(part for part in (self.system, instructions) if part)
        return [Message(role="system", content=content)] if content else []

    def _render(self, messages: list[Message], prompt: bool) -> str:
        conversation = cast("list[dict[str, str]]", messages)
        with _seeded():
            rendered: Any = self.tokenizer.apply_chat_template(
                conversation, tokenize=False, add_generation_prompt=prompt, strftime_now=_TODAY.strftime
            )
        return str(rendered)

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenize(text))

    @cached_property
    def _tokenize(self) -> Callable[[str], list[int]]:
        return lru_cache(_REMEMBERED)(self._read_ids)

    @cached_property
    def _following(self) -> Callable[[str], list[int]]:
        return lru_cache(_REMEMBERED)(self._read_following)

    def _read_ids(self, text: str) -> list[int]:
        # Half a character, which JSON in an agent's answer can hold, has no ids.
        whole = text.encode("utf-8", "replace").decode("utf-8")
        return list(self.tokenizer(whole, add_special_tokens=False)["input_ids"])


_chance = threading.Lock()
"""Held while the state of chance is another one: of two threads, the second would keep what the first has seeded."""


@contextmanager
def _seeded() -> Iterator[None]:
    """Let chance take the same course in each block: a template may ask for it."""
    with _chance:
        state = random.getstate()
        random.seed(0)
        try:
            yield
        finally:
            random.setstate(state)


def _user(content: str) -> Message:
    return Message(role="user", content=content)


def chat_of(
    policy: str, tokenizer: PreTrainedTokenizerBase, system: str | None = None, dialogue: Dialogue | None = None
) -> ChatFormat:
    """The chat of a policy, with the settings that it was saved with; those of `ChatFormat` for a hub name.

    Args:
        policy: folder or hub name.
        tokenizer: tokenizer of the policy.
        system: system message in the place of the saved one; `None` keeps that.
        dialogue: dialogue in the place of the saved one; `None` keeps that.
    """
    path = Path(policy) / CHAT_FILE
    settings = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    chosen = settings.get("system", "") if system is None else system
    return ChatFormat(tokenizer, chosen, settings.get("instructed", True), dialogue or dialogue_of(policy))
