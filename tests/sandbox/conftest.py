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


def opened(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """The sandbox that is asked for."""
    box = open_sandbox(request.param)
    yield box
    box.close()


sandbox = pytest.fixture(opened, scope="module", params=KINDS, name="sandbox")
"""Each kind of sandbox."""
safe_sandbox = pytest.fixture(
    opened, scope="module", params=[name for name in KINDS if name not in UNSAFE], name="safe_sandbox"
)
"""Each kind of sandbox that keeps an agent in."""
