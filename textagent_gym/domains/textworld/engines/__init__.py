"""What plays a game: the face that every engine has, and the engine that runs the compiled game."""

from textagent_gym.domains.textworld.engines.engine import Engine, Reply
from textagent_gym.domains.textworld.engines.zmachine import ZMachine

__all__ = ["Engine", "Reply", "ZMachine"]
