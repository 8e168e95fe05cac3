"""Every exception a user can meet. Each says what was wrong, what was expected and what to type next."""

from __future__ import annotations


class TextAgentError(Exception):
    """Base class of every error raised on purpose by `textagent_gym`."""


class MissingDependencyError(TextAgentError, ImportError):
    """A world needs a package of an extra that is not installed; the message holds the exact `pip install` line."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f'{package!r} is not installed. Install it with: pip install "textagent-gym[{extra}]"')
        self.package = package
        self.extra = extra

    def __reduce__(self) -> tuple[type[MissingDependencyError], tuple[str, str]]:
        return type(self), (self.package, self.extra)


class MissingDataError(TextAgentError, FileNotFoundError):
    """Data that a world needs are not on this machine; the message says how to get them."""


class InvalidOptionError(TextAgentError, ValueError):
    """A keyword argument or reset option has a name or a value that does not exist."""


class InfeasibleDifficultyError(TextAgentError, ValueError):
    """No task with the difficulty asked for exists, or none was found within the bounded number of draws."""


class UnknownTaskError(TextAgentError, LookupError):
    """A task id or index that this source of tasks does not hold."""


class GenerationError(TextAgentError, RuntimeError):
    """The tools that build a world failed on a task; the message holds what they printed."""


class UnsupportedOperationError(TextAgentError, NotImplementedError):
    """The domain cannot do this (for example: no oracle for a game without its logic)."""


class WorldBrokenError(TextAgentError, RuntimeError):
    """A world has failed through no fault of the agent's: a sandbox is gone, a server does not answer, ...

    A world raises it. In `step`, the episode is truncated and `info["broken"]` holds the message; in `reset`, a fresh
    world is tried once, and the error raised if that fails too.
    """


class AgentError(TextAgentError, RuntimeError):
    """An agent cannot answer, through no fault of its policy: its server does not answer, refuses the key, ...

    The episode is `broken`: it is played again, and then counts neither as won nor as lost.
    """


class AgentFailedError(TextAgentError, RuntimeError):
    """An agent cannot play at all: its own code raises, or its server cannot be reached or refuses every call.

    The evaluation ends; what has been played is kept.
    """


class PlanningBudgetError(TextAgentError, RuntimeError):
    """No plan was found before the planner's budget was spent. The goal may still be within reach."""


class WorkerError(TextAgentError, RuntimeError):
    """A worker of a vector environment failed in a way that replacing it does not mend.

    `slot` is the number of the environment concerned, where it is a single one.
    """

    def __init__(self, message: str, slot: int | None = None) -> None:
        super().__init__(message)
        self.slot = slot

    def __reduce__(self) -> tuple[type[WorkerError], tuple[str, int | None]]:
        return type(self), (str(self), self.slot)
