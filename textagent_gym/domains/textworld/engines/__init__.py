"""What plays a game: the face that every engine has, the engine that runs the compiled game, and the one that does not."""

from textagent_gym.domains.textworld.engines.engine import Engine, Reply
from textagent_gym.domains.textworld.engines.native import Native
from textagent_gym.domains.textworld.engines.zmachine import ZMachine

__all__ = ["Engine", "Native", "Reply", "ZMachine"]
