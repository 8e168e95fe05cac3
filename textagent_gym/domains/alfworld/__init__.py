"""ALFWorld: a household robot in one room, in text.

What others may use: the environments, what can be asked of them, the sources of their tasks, and the engine with its
planner.
"""

from textagent_gym.domains.alfworld.data import OfficialGames, find_games
from textagent_gym.domains.alfworld.engine import State
from textagent_gym.domains.alfworld.env import ALFWorldEnv, ALFWorldOfficialEnv, ALFWorldRoomEnv
from textagent_gym.domains.alfworld.game import TASK_TYPES, Game, read_game
from textagent_gym.domains.alfworld.generator import RoomSpec
from textagent_gym.domains.alfworld.planner import solve
from textagent_gym.domains.alfworld.searcher import Searcher
from textagent_gym.domains.alfworld.tasks import ExplorationComplexity, OfficialOptions, OfficialTasks, RoomTasks

__all__ = [
    "TASK_TYPES",
    "ALFWorldEnv",
    "ALFWorldOfficialEnv",
    "ALFWorldRoomEnv",
    "ExplorationComplexity",
    "Game",
    "OfficialGames",
    "OfficialOptions",
    "OfficialTasks",
    "RoomSpec",
    "RoomTasks",
    "Searcher",
    "State",
    "find_games",
    "read_game",
    "solve",
]
