"""Where an agent's commands run: one face, several ways of keeping them in."""

from textagent_gym.sandbox.base import (
    Changes,
    Limits,
    Question,
    Result,
    Sandbox,
    SandboxError,
    TreeChanges,
)
from textagent_gym.sandbox.choose import SANDBOXES, make_sandbox

__all__ = [
    "SANDBOXES",
    "Changes",
    "Limits",
    "Question",
    "Result",
    "Sandbox",
    "SandboxError",
    "TreeChanges",
    "make_sandbox",
]
