"""The examples in docstrings (pytest runs them where they stand)."""

from __future__ import annotations

import importlib

import pytest


@pytest.mark.parametrize("package", ["textagent_gym.wrappers", "textagent_gym.vector"])
def test_every_public_class_shows_itself(package: str) -> None:
    module = importlib.import_module(package)
    classes = [thing for name in module.__all__ if isinstance(thing := getattr(module, name), type)]
    described = {"Received", "TextWrapper"}  # A record, and a base class: shown by those that use them.
    assert {thing.__name__ for thing in classes if ">>>" not in (thing.__doc__ or "")} <= described
