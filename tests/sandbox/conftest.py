"""The sandboxes that this machine can have."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from textagent_gym.sandbox import SANDBOXES, Limits, Sandbox, SandboxError, make_sandbox
from textagent_gym.sandbox.choose import SAFE


def open_sandbox(name: str, limits: Limits | None = None) -> Sandbox:
    """A sandbox that works. Where there is none, the test is skipped, unless `TEXTAGENT_TEST_SANDBOXES` asks for it."""
    try:
        box = make_sandbox(name, limits)
        box.begin((), {})  # An engine may be here, and no image for it.
        return box
    except SandboxError as error:
        if name in os.environ.get("TEXTAGENT_TEST_SANDBOXES", "").split():
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="module", params=list(SANDBOXES))
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """Each kind of sandbox."""
    box = open_sandbox(request.param)
    yield box
    box.close()


@pytest.fixture(scope="module", params=[*SAFE, "ray"])
def safe_sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """Each kind of sandbox that keeps an agent in."""
    box = open_sandbox(request.param)
    yield box
    box.close()
