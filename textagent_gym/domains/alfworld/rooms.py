"""What is usual in ALFWorld's rooms: the table `rooms.json`, which `fit_rooms` fits to the training games."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

PROCESSORS = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}
"""Kind of receptacle that each process needs."""


@cache
def room_table() -> dict[str, Any]:
    """The table: "rooms" by kind of room, "receptacles" and "objects" by kind of thing."""
    text = files("textagent_gym.domains.alfworld").joinpath("rooms.json").read_text(encoding="utf-8")
    return json.loads(text)  # type: ignore[no-any-return]


def kind(name: str) -> str:
    """What a thing is: its name without its number."""
    return name.rpartition(" ")[0]
