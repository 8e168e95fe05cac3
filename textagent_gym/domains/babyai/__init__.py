"""BabyAI: instructions in rooms of which only a part is seen, in text.

What others may use: the environments, what can be asked of them, the source of their tasks, and the rules with their
planner.
"""

from textagent_gym.domains.babyai.env import BabyAIEnv, BabyAIGridEnv, BabyAILevelEnv
from textagent_gym.domains.babyai.grid import State, World, view
from textagent_gym.domains.babyai.levels import LEVELS, GridSpec, LevelSpec
from textagent_gym.domains.babyai.planner import solve
from textagent_gym.domains.babyai.tasks import BabyAITasks, GridComplexity

__all__ = [
    "LEVELS",
    "BabyAIEnv",
    "BabyAIGridEnv",
    "BabyAILevelEnv",
    "BabyAITasks",
    "GridComplexity",
    "GridSpec",
    "LevelSpec",
    "State",
    "World",
    "solve",
    "view",
]
