"""TextWorld: text adventures in generated houses, as long as was asked for.

What others may use: the environment, the specs of its games, and the sources of its tasks.
"""

from textagent_gym.domains.textworld.env import TextWorldEnv
from textagent_gym.domains.textworld.specs import GUIDE_SPLIT, SPECS, FilesSpec, Spec, TellingOptions, make_spec
from textagent_gym.domains.textworld.store import StoredGame
from textagent_gym.domains.textworld.tasks import FileTasks, TextWorldTasks

__all__ = [
    "GUIDE_SPLIT",
    "SPECS",
    "FileTasks",
    "FilesSpec",
    "Spec",
    "StoredGame",
    "TellingOptions",
    "TextWorldEnv",
    "TextWorldTasks",
    "make_spec",
]
