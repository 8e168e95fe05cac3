"""Limits to the length of observations, in characters or in a model's tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Sized
from pathlib import Path
from typing import Any, Protocol

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from textagent_gym.errors import InvalidOptionError, MissingDependencyError
from textagent_gym.spaces import fit
from textagent_gym.texts import cut_middle
from textagent_gym.wrappers.text_wrapper import TextWrapper, check_text


class TransformersTokenizer(Protocol):
    """What is used of a tokenizer of `transformers`."""

    def tokenize(self, text: str) -> Sized:
        """The tokens of a text, special ones left out."""


Tokenizer = str | TransformersTokenizer | Callable[[str], Sized]


class ObservationLimit(TextWrapper, RecordConstructorArgs):
    """Cuts the middle out of observations that are too long, and says in its place how much is missing.

    The beginning and the end stay, each half of the limit: the goal stands in the one, the last reply in the other.

    Args:
        env: a text environment.
        characters: largest number of characters per observation, the notice not counted; `None` for no limit.
        tokens: largest number of tokens per observation, the notice not counted; `None` for no limit.
        tokenizer: counter of the tokens: a function from a text to something with a length (`tokenizer.tokenize`,
            `encoding.encode`), a tokenizer of `transformers`, or the name of one: a folder with a `tokenizer.json`, or
            a model of the Hugging Face hub. `None` counts words. Only a name survives in a spec as JSON.

    Raises:
        InvalidOptionError: a limit is less than 2, a tokenizer without a limit, or observations that are not text.
        MissingDependencyError: a tokenizer's name, and `tokenizers` is not installed.

    Example:
        >>> env = ObservationLimit(gymnasium.make("lights/Lights-v0"), characters=20)
        >>> env.reset(options={"task_index": 0})[0]
        'Turn on al\\n[... 45 characters left out ...]\\nwhite: off'
        >>> env = ObservationLimit(gymnasium.make("lights/Lights-v0"), tokens=6)
        >>> env.reset(options={"task_index": 0})[0]
        'Turn on all \\n[... 7 tokens left out ...]\\n off, white: off'
    """

    def __init__(
        self,
        env: gymnasium.Env[str, str],
        characters: int | None = None,
        tokens: int | None = None,
        tokenizer: Tokenizer | None = None,
    ) -> None:
        RecordConstructorArgs.__init__(self, characters=characters, tokens=tokens, tokenizer=tokenizer)
        gymnasium.Wrapper.__init__(self, env)
        check_text(env, "ObservationLimit")
        for name, limit in (("characters", characters), ("tokens", tokens)):
            if limit is not None and limit < 2:
                raise InvalidOptionError(f"{name} must be at least 2, or None, got {limit!r}")
        if tokenizer is not None and tokens is None:
            raise InvalidOptionError("tokenizer counts tokens: say how many with tokens=...")
        self._characters = characters
        self._tokens = tokens
        self._count = _counter(tokenizer)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin an episode; see the environment."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._cut(observation), info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Act; see the environment."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._cut(observation), float(reward), terminated, truncated, info

    def _cut(self, observation: str) -> str:
        if self._tokens is not None:
            observation = cut_middle(observation, self._tokens, self._count, "tokens")
        if self._characters is not None:
            observation = cut_middle(observation, self._characters)
        return fit(observation)


def _counter(tokenizer: Tokenizer | None) -> Callable[[str], int]:
    if tokenizer is None:
        return lambda text: len(re.findall(r"\S+", text))
    if isinstance(tokenizer, str):
        loaded = _load(tokenizer)
        return lambda text: len(loaded.encode(text, add_special_tokens=False))
    split: Any = getattr(tokenizer, "tokenize", tokenizer)
    return lambda text: len(split(text))


def _load(name: str) -> Any:
    """A tokenizer by name, without `transformers` and so without torch."""
    try:
        from tokenizers import Tokenizer as HuggingFaceTokenizer
    except ImportError as error:
        raise MissingDependencyError("tokenizers", "train") from error
    file = Path(name) / "tokenizer.json"
    return HuggingFaceTokenizer.from_file(str(file)) if file.is_file() else HuggingFaceTokenizer.from_pretrained(name)
