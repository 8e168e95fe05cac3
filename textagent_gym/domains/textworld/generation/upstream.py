"""TextWorld's own package, and the conditions under which its generator is used here."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

from textagent_gym.domains.textworld.generation.upstream_patches import patched_upstream
from textagent_gym.errors import MissingDependencyError

_lock = RLock()  # TextWorld's generator uses global state, and so do the patches.


def textworld_package() -> Any:
    """The `textworld` package.

    Raises:
        MissingDependencyError: it is not installed.
    """
    try:
        import textworld as package
        import textworld.challenges
        import textworld.generator
    except ImportError as error:
        raise MissingDependencyError("textworld", "textworld") from error
    return package


@contextmanager
def textworld_generator() -> Iterator[Any]:
    """The `textworld` package, patched, without its warnings of what it has always done, and for this thread alone.

    Raises:
        MissingDependencyError: it is not installed.
    """
    package = textworld_package()
    with _lock, warnings.catch_warnings(), patched_upstream():
        warnings.simplefilter("ignore")
        yield package
