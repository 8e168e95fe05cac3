"""The examples in the docstrings."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import textagent_gym

MODULES = [
    module.name
    for module in pkgutil.walk_packages(textagent_gym.__path__, "textagent_gym.")
    if not module.name.endswith(("__main__", "_autoload"))
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_are_true(name: str) -> None:
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert failed == 0


@pytest.mark.parametrize("package", ["textagent_gym.wrappers", "textagent_gym.vector"])
def test_every_public_class_shows_itself(package: str) -> None:
    module = importlib.import_module(package)
    classes = [thing for name in module.__all__ if isinstance(thing := getattr(module, name), type)]
    records = {"Received"}  # Shown by the pool that returns them.
    assert {thing.__name__ for thing in classes if ">>>" not in (thing.__doc__ or "")} <= records
