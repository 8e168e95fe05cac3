"""How actions are worded, in worlds that take commands or function calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from textagent_gym.knobs import Options, knob


@dataclass(frozen=True, kw_only=True)
class ActionOptions(Options):
    """How actions are worded."""

    action_format: Literal["commands", "functions"] = knob(
        "commands", 'wording of actions, "commands" or "functions", which are calls as JSON objects'
    )
