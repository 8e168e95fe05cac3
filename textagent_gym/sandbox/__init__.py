"""Where untrusted commands run: one contract, several ways of keeping them in.

Importing the package registers the suite's own kinds, in the order in which "auto" tries them.
"""

from textagent_gym.sandbox import bubblewrap, cluster, container, process
from textagent_gym.sandbox.base import Changes, Limits, Question, Result, Sandbox, SandboxError, TreeChanges
from textagent_gym.sandbox.changes import BY_NAME, ReadingOrder
from textagent_gym.sandbox.registry import (
    SandboxKind,
    check_sandbox_name,
    is_safe,
    keeps_nothing_in,
    make_sandbox,
    register_sandbox,
    sandbox_kind,
    sandbox_kinds,
    sandbox_names,
)
from textagent_gym.sandbox.toolbox import Toolbox

__all__ = [
    "BY_NAME",
    "Changes",
    "Limits",
    "Question",
    "ReadingOrder",
    "Result",
    "Sandbox",
    "SandboxError",
    "SandboxKind",
    "Toolbox",
    "TreeChanges",
    "bubblewrap",
    "check_sandbox_name",
    "cluster",
    "container",
    "is_safe",
    "keeps_nothing_in",
    "make_sandbox",
    "process",
    "register_sandbox",
    "sandbox_kind",
    "sandbox_kinds",
    "sandbox_names",
]
