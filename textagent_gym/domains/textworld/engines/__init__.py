"""What plays a game: the face that every engine has, one that runs the compiled game, and one that needs none."""

from textagent_gym.domains.textworld.engines.engine import Engine, Reply
from textagent_gym.domains.textworld.engines.native import Native
from textagent_gym.domains.textworld.engines.zmachine import ZMachine

ENGINES: dict[str, type[Engine]] = {"reference": ZMachine, "native": Native}
"""Engines by the names under which they can be asked for."""

__all__ = ["ENGINES", "Engine", "Native", "Reply", "ZMachine"]
