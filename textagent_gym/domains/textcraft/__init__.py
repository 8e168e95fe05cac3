"""TextCraft: crafting by recipes, in text.

What others may use: the environments, what can be asked of them, the sources of their tasks, and the rules with their
planner.
"""

from textagent_gym.domains.textcraft.book import Game, Ingredient, Recipe, RecipeBook
from textagent_gym.domains.textcraft.engine import State
from textagent_gym.domains.textcraft.env import TextCraftEnv, TextCraftGraphEnv, TextCraftMinecraftEnv
from textagent_gym.domains.textcraft.generator import GraphSpec
from textagent_gym.domains.textcraft.minecraft import read_book
from textagent_gym.domains.textcraft.planner import solve
from textagent_gym.domains.textcraft.tasks import CraftingComplexity, GraphTasks, MinecraftOptions, MinecraftTasks

__all__ = [
    "CraftingComplexity",
    "Game",
    "GraphSpec",
    "GraphTasks",
    "Ingredient",
    "MinecraftOptions",
    "MinecraftTasks",
    "Recipe",
    "RecipeBook",
    "State",
    "TextCraftEnv",
    "TextCraftGraphEnv",
    "TextCraftMinecraftEnv",
    "read_book",
    "solve",
]
