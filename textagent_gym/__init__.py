"""Gymnasium environments over text for multi-turn language agents, with measured difficulty."""

from textagent_gym.complexity import Complexity
from textagent_gym.core import Outcome, Snapshot, StepInfo, TextEnv
from textagent_gym.options import TextEnvKwargs
from textagent_gym.registration import register_all
from textagent_gym.spaces import UnicodeText
from textagent_gym.tasks import Task, TaskSource

__version__ = "0.1.0"
__all__ = [
    "Complexity",
    "Outcome",
    "Snapshot",
    "StepInfo",
    "Task",
    "TaskSource",
    "TextEnv",
    "TextEnvKwargs",
    "UnicodeText",
    "register_all",
]

register_all()
