"""The whole conversation as the observation: as one text, or as chat messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from textagent_gym.core import TextEnv
from textagent_gym.errors import UnsupportedOperationError
from textagent_gym.spaces import UnicodeText

Message = dict[str, str]
_HISTORY_LENGTH = 1_048_576  # Characters of a history at most; the oldest turns go first.


class _Conversation:
    """Observations and actions in turn; its moments can be saved beside the environment's."""

    def __init__(self) -> None:
        self.said: tuple[str, ...] = ()

    def begin(self, observation: str) -> None:
        self.said = (observation,)

    def add(self, action: str, observation: str) -> None:
        self.said = (*self.said, action, observation)


class _Remembering(gymnasium.Wrapper[Any, str, str, str]):
    """What both wrappers share: a conversation that `snapshot` and `restore` take along."""

    _conversation: _Conversation

    def snapshot(self) -> Any:
        """Save the environment's moment and the conversation; see `TextEnv.snapshot`."""
        return self._base().snapshot(), self._conversation.said

    def restore(self, token: Any) -> None:
        """Go back to what `snapshot` returned; see `TextEnv.restore`."""
        moment, said = token
        self._base().restore(moment)
        self._conversation.said = said

    def _base(self) -> TextEnv[Any]:
        base = self.env.unwrapped
        if not isinstance(base, TextEnv):
            raise UnsupportedOperationError(f"{type(base).__name__} cannot save a state.")
        return base


class HistoryText(_Remembering, RecordConstructorArgs):
    """The conversation so far as one text: observations as they are, each action after a prompt sign.

    Args:
        env: a text environment.
        turns: keep the last so many turns; `None` for all. The first observation, which states the goal, always stays.
        prompt: before each action.

    Example:
        >>> env = HistoryText(gymnasium.make("lights/Lights-v0"))
        >>> env.reset(options={"task_index": 0})[0]
        'Turn on all 4 lights.\\nred: off, green: off, blue: off, white: off'
        >>> print(env.step("press red")[0])
        Turn on all 4 lights.
        red: off, green: off, blue: off, white: off
        <BLANKLINE>
        > press red
        red: on, green: off, blue: off, white: off
    """

    def __init__(self, env: gymnasium.Env[str, str], turns: int | None = None, prompt: str = "> ") -> None:
        RecordConstructorArgs.__init__(self, turns=turns, prompt=prompt)
        gymnasium.Wrapper.__init__(self, env)
        if turns is not None and turns < 1:
            raise ValueError(f"turns must be at least 1, or None, got {turns}")
        self._conversation = _Conversation()
        self._turns = turns
        self._prompt = prompt
        self.observation_space = UnicodeText(_HISTORY_LENGTH)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin an episode; see the environment."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._conversation.begin(observation)
        return self._text(), info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Act; see the environment."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._conversation.add(action, observation)
        return self._text(), float(reward), terminated, truncated, info

    def _text(self) -> str:
        goal, *rest = self._conversation.said
        turns = list(zip(rest[::2], rest[1::2], strict=True))
        kept = turns if self._turns is None else turns[-self._turns :]
        parts = [f"{self._prompt}{action}\n{observation}" for action, observation in kept]
        left_out = len(turns) - len(kept)
        while parts and len(goal) + sum(len(part) + 2 for part in parts) + 64 > _HISTORY_LENGTH:
            parts.pop(0)
            left_out += 1
        note = [f"[... {left_out} turns left out ...]"] if left_out else []
        return "\n\n".join((goal, *note, *parts))


class ChatMessages(_Remembering, RecordConstructorArgs):
    """The conversation so far as chat messages, dictionaries with `role` and `content`, ready for a chat model.

    Observations are the user's messages and actions the assistant's. The observation space is a `spaces.Sequence` of
    `spaces.Dict`.

    Args:
        env: a text environment.
        system: content of a system message at the beginning; none if empty.

    Example:
        >>> env = ChatMessages(gymnasium.make("lights/Lights-v0"), system="Answer with one action.")
        >>> [message["role"] for message in env.reset(seed=0)[0]]
        ['system', 'user']
        >>> [message["role"] for message in env.step("press red")[0]]
        ['system', 'user', 'assistant', 'user']
    """

    def __init__(self, env: gymnasium.Env[str, str], system: str = "") -> None:
        RecordConstructorArgs.__init__(self, system=system)
        gymnasium.Wrapper.__init__(self, env)
        self._conversation = _Conversation()
        self._system = system
        message = spaces.Dict({"role": UnicodeText(16), "content": UnicodeText(_HISTORY_LENGTH)})
        self.observation_space = spaces.Sequence(message)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Sequence[Message], dict[str, Any]]:
        """Begin an episode; see the environment."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._conversation.begin(observation)
        return self._messages(), info

    def step(self, action: str) -> tuple[Sequence[Message], float, bool, bool, dict[str, Any]]:
        """Act; see the environment."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._conversation.add(action[:_HISTORY_LENGTH], observation)
        return self._messages(), float(reward), terminated, truncated, info

    def _messages(self) -> tuple[Message, ...]:
        system = [{"role": "system", "content": self._system}] if self._system else []
        roles = ("user", "assistant")
        said = [{"role": roles[i % 2], "content": text} for i, text in enumerate(self._conversation.said)]
        return (*system, *said)
