"""ScienceWorld: experiments of a primary school, in text.

What others may use: the environment, its options, the source of its tasks, and the simulator.
"""

from textagent_gym.domains.scienceworld.env import ScienceWorldEnv
from textagent_gym.domains.scienceworld.gold import GoldPath, gold_path
from textagent_gym.domains.scienceworld.server import MissingJavaError, Server, stop_idle
from textagent_gym.domains.scienceworld.tasks import ScienceWorldOptions, ScienceWorldTasks

__all__ = [
    "GoldPath",
    "MissingJavaError",
    "ScienceWorldEnv",
    "ScienceWorldOptions",
    "ScienceWorldTasks",
    "Server",
    "gold_path",
    "stop_idle",
]
