"""The whole conversation as the observation: as one text, or as chat messages."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import gymnasium
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from textagent_gym.errors import InvalidOptionError
from textagent_gym.spaces import UnicodeText, fit
from textagent_gym.wrappers.text_wrapper import TextWrapper, check_text

Message = dict[str, str]
_HISTORY_LENGTH = 1_048_576  # Characters of a history at most; the oldest turns go first.


class _Remembering(TextWrapper):
    """What both wrappers share: what was said, observations and actions in turn, which `snapshot` takes along."""

    _conversation: tuple[str, ...] = ()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; see the environment."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._conversation = (observation,)
        return self._shown(), info

    def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Act; see the environment."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._conversation = (*self._conversation, fit(str(action)), observation)
        return self._shown(), float(reward), terminated, truncated, info

    @abstractmethod
    def _shown(self) -> Any:
        """The conversation as an observation."""

    def _remembered(self) -> tuple[str, ...]:
        return self._conversation

    def _remember(self, remembered: tuple[str, ...]) -> None:
        self._conversation = remembered


class HistoryText(_Remembering, RecordConstructorArgs):
    """The conversation so far as one text: observations as they are, each action after a prompt sign.

    Args:
        env: a text environment.
        turns: number of turns that are kept, the last ones; `None` for all. The first observation, which states the
            goal, always stays.
        prompt: text before each action.

    Raises:
        InvalidOptionError: `turns` is less than 1, or the environment's observations are not text.

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
        check_text(env, "HistoryText")
        if turns is not None and turns < 1:
            raise InvalidOptionError(f"turns must be at least 1, or None, got {turns}")
        self._turns = turns
        self._prompt = prompt
        self.observation_space = UnicodeText(_HISTORY_LENGTH)

    def _shown(self) -> str:
        goal, *rest = self._conversation
        turns = list(zip(rest[::2], rest[1::2], strict=True))
        kept = turns if self._turns is None else turns[-self._turns :]
        parts = [f"{self._prompt}{action}\n{observation}" for action, observation in kept]
        left_out = len(turns) - len(kept)
        while len(parts) > 1 and len(goal) + sum(len(part) + 2 for part in parts) + 64 > _HISTORY_LENGTH:
            parts.pop(0)
            left_out += 1
        note = [f"[... earlier turns left out: {left_out} ...]"] if left_out else []
        return "\n\n".join((goal, *note, *parts))


class ChatMessages(_Remembering, RecordConstructorArgs):
    """The conversation so far as chat messages, dictionaries with `role` and `content`, ready for a chat model.

    Observations are the user's messages and actions the assistant's, as they were given: with an `ActionParser` inside,
    the whole answers. The observation space is a `spaces.Sequence` of `spaces.Dict`, an observation a tuple of
    dictionaries. Gymnasium has no shared memory for sequences: `AsyncVectorEnv` wants `shared_memory=False`.

    Args:
        env: a text environment.
        system: content of a system message at the beginning; none if empty.

    Raises:
        InvalidOptionError: the environment's observations are not text.

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
        check_text(env, "ChatMessages")
        self._system = system
        message = spaces.Dict({"role": UnicodeText(16), "content": UnicodeText(_HISTORY_LENGTH)})
        self.observation_space = spaces.Sequence(message)

    def _shown(self) -> tuple[Message, ...]:
        system = [{"role": "system", "content": self._system}] if self._system else []
        roles = ("user", "assistant")
        messages = [{"role": roles[i % 2], "content": text} for i, text in enumerate(self._conversation)]
        return (*system, *messages)
