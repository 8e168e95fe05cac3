"""The space of text: any Unicode string up to a length, as a true `gymnasium.spaces.Text`.

`Text` wants its characters listed one by one, a million of them for Unicode, and flattens through that list.
`UnicodeText` keeps the interface and replaces the list by arithmetic on code points; Gymnasium's functions over spaces
(flatten, shared memory) dispatch on the class and are registered for it below, so `AsyncVectorEnv` works.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator, Sequence, Set
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.spaces.utils import flatdim, flatten, flatten_space, unflatten
from gymnasium.vector.utils.shared_memory import (
    create_shared_memory,
    read_from_shared_memory,
    write_to_shared_memory,
)
from numpy.typing import NDArray

from textagent_gym.errors import InvalidOptionError
from textagent_gym.texts import cut_middle, notice

MAX_LENGTH = 65_536
"""Characters in an observation at most; a longer one is cut in the middle (see `TextEnv`)."""


def fit(text: str, max_length: int = MAX_LENGTH) -> str:
    """Cut the middle out of a text that is too long for a space, and say so in its place.

    >>> fit("a" * 100 + "z" * 100, 60)
    'aaaaaaaaaaaaa\\n[... 175 characters left out ...]\\nzzzzzzzzzzzz'
    """
    if len(text) <= max_length:
        return text
    room = max(0, max_length - len(notice(len(text))))
    return cut_middle(text, room)[:max_length]


def check_text_spaces(env: gymnasium.Env[Any, Any]) -> None:
    """Refuse an environment whose observations or actions are not text.

    Raises:
        InvalidOptionError: a space is not a `gymnasium.spaces.Text`; the message names the environment and the space.
    """
    for kind, space in (("observation", env.observation_space), ("action", env.action_space)):
        if not isinstance(space, spaces.Text):
            name = env.spec.id if env.spec is not None else type(env.unwrapped).__name__
            raise InvalidOptionError(
                f"{name} is not a text environment: its {kind} space is {space}, not a gymnasium.spaces.Text"
            )


_END = -1  # Fills the places after the last character of a flattened text: no code point is negative.
_SAMPLED_CHARACTERS = "abcdefghijklmnopqrstuvwxyz ABCXYZ 0123456789 .,!?'\"-_()<>[]{}\\/\n\t éßøñçµ→✓ 你好 🙂"


class _EveryCharacter(Set[str]):
    """The set of all characters that a Python string can hold, without listing them."""

    def __contains__(self, character: object) -> bool:
        return isinstance(character, str) and len(character) == 1

    def __iter__(self) -> Iterator[str]:
        return map(chr, range(sys.maxunicode + 1))

    def __len__(self) -> int:
        return sys.maxunicode + 1


class UnicodeText(spaces.Text):
    """Any string of at most `max_length` characters, the empty one included.

    Args:
        max_length: largest length in characters (code points), at least 1.
        seed: seed of `sample`.

    Example:
        >>> space = UnicodeText()
        >>> "go north" in space, "" in space, "\\x00 \\U0001f642" in space, 3 in space
        (True, True, True, False)
        >>> isinstance(space, spaces.Text)
        True
    """

    def __init__(self, max_length: int = MAX_LENGTH, *, seed: int | np.random.Generator | None = None) -> None:
        super().__init__(max_length, min_length=0, charset="", seed=seed)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """A short random string: up to 32 characters, punctuation, accents, CJK and emoji among them."""
        if mask is not None or probability is not None:
            raise ValueError("UnicodeText.sample takes neither mask nor probability: its characters are not listed.")
        length = int(self.np_random.integers(0, min(32, self.max_length) + 1))
        return "".join(self.np_random.choice(list(_SAMPLED_CHARACTERS), size=length)) if length else ""

    def contains(self, x: Any) -> bool:
        """Whether `x` is a string that is not too long."""
        return isinstance(x, str) and len(x) <= self.max_length

    def __repr__(self) -> str:
        return f"UnicodeText({self.max_length})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnicodeText) and other.max_length == self.max_length

    __hash__ = None  # type: ignore[assignment]

    @property
    def character_set(self) -> Any:
        """All characters; a set that answers `in` and `len` without listing them."""
        return _EveryCharacter()

    @property
    def character_list(self) -> tuple[str, ...]:
        """All characters in the order of their code points (a million of them: prefer `character_set`)."""
        return tuple(_EveryCharacter())

    @property
    def characters(self) -> str:
        """All characters in one string (a million of them: prefer `character_set`)."""
        return "".join(_EveryCharacter())

    def character_index(self, char: str) -> np.int32:
        """The character's code point."""
        return np.int32(ord(char))


def _code_points(text: str, length: int) -> NDArray[np.int32]:
    """`text` as an int32 array of shape (length,), filled up with -1."""
    flat = np.full(length, _END, dtype=np.int32)
    flat[: len(text)] = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.int32)
    return flat


def _text(code_points: NDArray[np.int32]) -> str:
    ends = np.flatnonzero(code_points == _END)
    used = code_points[: ends[0]] if ends.size else code_points
    return used.astype("<i4").tobytes().decode("utf-32-le", "surrogatepass")


@flatdim.register(UnicodeText)
def _flatdim(space: UnicodeText) -> int:
    return space.max_length


@flatten_space.register(UnicodeText)
def _flatten_space(space: UnicodeText) -> spaces.Box:
    return spaces.Box(low=_END, high=sys.maxunicode, shape=(space.max_length,), dtype=np.int32)


@flatten.register(UnicodeText)
def _flatten(space: UnicodeText, x: str) -> NDArray[np.int32]:  # type: ignore[misc]
    return _code_points(x, space.max_length)


@unflatten.register(UnicodeText)
def _unflatten(space: UnicodeText, x: NDArray[np.int32]) -> str:  # type: ignore[misc]
    return _text(np.asarray(x, dtype=np.int32))


@create_shared_memory.register(UnicodeText)
def _create(space: UnicodeText, n: int = 1, ctx: Any = None) -> Any:
    import multiprocessing

    # One slot an env: its length in characters, then its code points.
    return (ctx or multiprocessing).Array(ctypes.c_int32, n * (space.max_length + 1))


class _SharedTexts(Sequence[str]):
    """The texts in a shared memory as they are now.

    `AsyncVectorEnv` reads its shared memory once, when it is made, and hands out deep copies of what it got: right for
    arrays, which are views, but a tuple of strings would stay as it was. So this is a view, and its copy is a tuple.
    """

    def __init__(self, slots: NDArray[np.int32]) -> None:
        self._slots = slots

    def __len__(self) -> int:
        return len(self._slots)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(self)[index]
        slot = self._slots[index]
        return _text(slot[1 : 1 + slot[0]])

    def __deepcopy__(self, memo: dict[int, Any]) -> tuple[str, ...]:
        return tuple(self)


@read_from_shared_memory.register(UnicodeText)
def _read(space: UnicodeText, shared_memory: Any, n: int = 1) -> _SharedTexts:
    slots = np.frombuffer(shared_memory.get_obj(), dtype=np.int32)
    return _SharedTexts(slots.reshape(n, space.max_length + 1))


@write_to_shared_memory.register(UnicodeText)
def _write(space: UnicodeText, index: int, values: str, shared_memory: Any) -> None:
    slots = np.frombuffer(shared_memory.get_obj(), dtype=np.int32).reshape(-1, space.max_length + 1)
    slots[index, 0] = len(values)
    slots[index, 1 : 1 + len(values)] = _code_points(values, len(values))
