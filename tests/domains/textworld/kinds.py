"""One game of each kind, to compare engines and planners on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textagent_gym.domains.textworld.specs import Spec, make_spec

UpstreamGame = Callable[[Spec, int], tuple[Any, str]]
"""What the fixture `upstream_game` is: from a spec and a seed to TextWorld's game and the path of its story."""

KINDS = [
    make_spec("custom", rooms=2, objects=3, quest_length=4),
    make_spec("custom", rooms=4, objects=8, quest_length=8),
    make_spec("simple", rewards="dense"),
    make_spec("cooking", recipe=2, take=2, rooms=6, open=True, cook=True, cut=True),
    make_spec("cooking", recipe=1, take=1, rooms=1, drop=True),
    make_spec("coin_collector", level=105),
    make_spec("treasure_hunter", level=15),
]
