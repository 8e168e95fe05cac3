"""Minigrid's bot as an expert: it plans by what the agent has seen, and explores for the rest.

It keeps a level of Minigrid in step with the episode. What it cannot solve it gives up: for some levels the bot plans
without end, or breaks an assertion of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrid.envs.babyai.core.roomgrid_level import RoomGridLevel
from minigrid.utils.baby_ai_bot import BabyAIBot

from textagent_gym.domains.babyai.commands import PRIMITIVE, Command
from textagent_gym.domains.babyai.construction import world_of
from textagent_gym.domains.babyai.grid import State

MOST_PLANS = 2_000
"""Subgoals that the bot may look at for one action, before it counts as caught in a loop."""
_NAMES = {action: text for text, action in PRIMITIVE.items()}
_GIVEN_UP = "turn left"


class BotStuckError(Exception):
    """The bot plans without end."""


class _Stack(list[Any]):
    """The bot's subgoals, with a bound on how often they are looked at."""

    reads = 0

    def __getitem__(self, index: Any) -> Any:
        self.reads += 1
        if self.reads > MOST_PLANS:
            raise BotStuckError
        return super().__getitem__(index)


class BotExpert:
    """Plays an episode with Minigrid's bot.

    Args:
        level: the task's level, just begun; it is played along.
        parse: function from a moment and an action to what the action stands for.
        write: function from a primitive command to an action.

    Attributes:
        given_up: whether the bot has failed; it then turns on the spot.
    """

    def __init__(
        self, level: RoomGridLevel, parse: Callable[[State, str], Command], write: Callable[[str], str]
    ) -> None:
        self.given_up = False
        self._level, self._parse, self._write = level, parse, write
        self._state = State(world_of(level))
        self._bot = BabyAIBot(level)
        self._stack = self._bot.stack = _Stack(self._bot.stack)
        self._next: int | None = None

    def observe(self, action: str | None, observation: str) -> None:
        """See `Expert`."""
        if action is None:
            self._replan(None)
            return
        for primitive in self._parse(self._state, action).actions:
            if self._state.status != "continue":
                break
            self._state.step(primitive)
            self._level.step(primitive)
            self._replan(primitive)

    def action(self) -> str:
        """See `Expert`."""
        return self._write(_GIVEN_UP if self._next is None else _NAMES.get(self._next, _GIVEN_UP))

    def _replan(self, action: int | None) -> None:
        if self.given_up or self._state.status != "continue":
            return
        self._stack.reads = 0
        try:
            self._next = int(self._bot.replan(action))
        except Exception:  # noqa: BLE001 (the bot gives up by whatever it trips over)
            self.given_up, self._next = True, None
