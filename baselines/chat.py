"""Conversations as token ids, turn by turn, for any tokenizer with a chat template.

A conversation grows only at its end: the ids of what has been said are kept as they are, and each new observation adds
the ids of its own part of the template. So the ids that the policy read and sampled are the ids that it is trained on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedTokenizerBase

_SAID = "so be it"  # Stands in for what was said before, to find the part of the template that a new message adds.


@dataclass(frozen=True)
class ChatFormat:
    """The chat template of a tokenizer.

    Args:
        tokenizer: with a `chat_template` and an end-of-sequence token that ends an assistant's message.
        system: message at the beginning of every conversation; none if empty.

    Raises:
        ValueError: the tokenizer has no chat template, or its template rewrites earlier messages.
    """

    tokenizer: PreTrainedTokenizerBase
    system: str = ""

    def __post_init__(self) -> None:
        if not getattr(self.tokenizer, "chat_template", None):
            raise ValueError("the tokenizer has no chat_template; use an instruction-tuned model or set one")
        if self.tokenizer.eos_token_id is None:
            raise ValueError("the tokenizer has no eos_token, which ends an action")
        self.following("a first look")

    @property
    def end_id(self) -> int:
        """Id of the token that ends an action."""
        return int(self.tokenizer.eos_token_id)

    def opening(self, observation: str) -> list[int]:
        """Ids of the conversation up to the first action."""
        return self._ids(self._render([*self._system(), _user(observation)], True))

    def following(self, observation: str) -> list[int]:
        """Ids that a further observation adds after an action's end token, up to the next action."""
        before = [*self._system(), _user("?"), {"role": "assistant", "content": _SAID}]
        said = self._render(before, False)
        after = self._render([*before, _user(observation)], True)
        end = self.tokenizer.eos_token
        head = said[: said.rfind(_SAID) + len(_SAID)]
        if _SAID not in said or not after.startswith(head + end):
            raise ValueError(
                "the chat template rewrites earlier messages or does not end an assistant's message with "
                f"{end!r}, so a conversation cannot be continued token by token"
            )
        return self._ids(after[len(head + end) :])

    def text(self, ids: list[int]) -> str:
        """What a list of sampled ids says, without special tokens."""
        return str(self.tokenizer.decode(ids, skip_special_tokens=True)).strip()

    def _system(self) -> list[dict[str, str]]:
        return [{"role": "system", "content": self.system}] if self.system else []

    def _render(self, messages: list[dict[str, str]], prompt: bool) -> str:
        rendered: Any = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=prompt)
        return str(rendered)

    def _ids(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])


def _user(content: str) -> dict[str, str]:
    return {"role": "user", "content": content}
