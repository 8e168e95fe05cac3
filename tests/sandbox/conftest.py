"""The sandboxes that this machine can have."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from textagent_gym.domains.swe.toolbox import TOOLBOX
from textagent_gym.sandbox import Limits, Sandbox, SandboxError, make_sandbox, sandbox_kinds

KINDS = tuple(kind.name for kind in sandbox_kinds())
SAFE = tuple(kind.name for kind in sandbox_kinds() if kind.safe and not kind.wraps)
ENGINES = tuple(kind.name for kind in sandbox_kinds() if kind.images and not kind.wraps)
UNSAFE = tuple(kind.name for kind in sandbox_kinds() if not kind.safe)


def open_sandbox(name: str, limits: Limits | None = None) -> Sandbox:
    """A sandbox that works. Where there is none, the test is skipped, unless `TEXTAGENT_TEST_SANDBOXES` asks for it."""
    try:
        box = make_sandbox(name, limits, TOOLBOX)
        box.begin((), {})  # An engine may be here, and no image for it.
        return box
    except SandboxError as error:
        if name in os.environ.get("TEXTAGENT_TEST_SANDBOXES", "").split():
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="module", params=KINDS)
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """Each kind of sandbox."""
    box = open_sandbox(request.param)
    yield box
    box.close()


@pytest.fixture(scope="module", params=[name for name in KINDS if name not in UNSAFE])
def safe_sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """Each kind of sandbox that keeps an agent in."""
    box = open_sandbox(request.param)
    yield box
    box.close()
