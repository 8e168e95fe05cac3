"""What plays by what it reads."""

from __future__ import annotations

from typing import Protocol


class Expert(Protocol):
    """Plays an episode by what it reads, like any agent; it may also watch somebody else play and be asked in between.

    `observe` is called with everything that is said, in order.
    """

    def observe(self, action: str | None, observation: str) -> None:
        """Read what was said: after an action, or at the beginning (`None`)."""
        ...

    def action(self) -> str:
        """What to do next."""
        ...
