"""The space of text."""

from __future__ import annotations

import multiprocessing

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import create_shared_memory, read_from_shared_memory, write_to_shared_memory
from hypothesis import given
from hypothesis import strategies as st

from textagent_gym import UnicodeText
from textagent_gym.errors import InvalidOptionError
from textagent_gym.spaces import check_text_spaces

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=64)  # Lone surrogates too.
SPACE = UnicodeText(64)


@given(ANY_TEXT)
def test_every_string_is_in_the_space_and_survives_flattening(text: str) -> None:
    assert text in SPACE
    flat = spaces.flatten(SPACE, text)
    assert flat in spaces.flatten_space(SPACE)
    assert flat.shape == (spaces.flatdim(SPACE),)
    assert spaces.unflatten(SPACE, flat) == text


@given(st.lists(ANY_TEXT, min_size=3, max_size=3))
def test_every_string_survives_shared_memory(texts: list[str]) -> None:
    memory = create_shared_memory(SPACE, n=3, ctx=multiprocessing)
    for index, text in enumerate(texts):
        write_to_shared_memory(SPACE, index, text, memory)
    view = read_from_shared_memory(SPACE, memory, n=3)
    assert tuple(view) == tuple(texts)
    assert len(view) == 3
    assert view[1:] == tuple(texts[1:])


def test_samples_are_in_the_space_and_follow_the_seed() -> None:
    first, second = UnicodeText(seed=1), UnicodeText(seed=1)
    for _ in range(50):
        sample = first.sample()
        assert sample in first
        assert sample == second.sample()


def test_what_is_too_long_or_no_string_is_not_in_the_space() -> None:
    assert "a" * 65 not in SPACE
    assert np.zeros(3) not in SPACE
    assert isinstance(SPACE, gymnasium.spaces.Text)
    assert UnicodeText(3) != UnicodeText(4)
    assert "🙂" in SPACE.character_set


def test_an_environment_without_text_is_refused_by_name() -> None:
    check_text_spaces(gymnasium.make("lights/Lights-v0"))
    with pytest.raises(InvalidOptionError, match="CartPole-v1 is not a text environment: its observation space"):
        check_text_spaces(gymnasium.make("CartPole-v1"))
