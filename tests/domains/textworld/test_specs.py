"""What can be asked of TextWorld."""

from __future__ import annotations

import pytest

from textagent_gym.domains.textworld.specs import make_spec
from textagent_gym.errors import InfeasibleDifficultyError, InvalidOptionError


@pytest.mark.parametrize(
    ("knobs", "error"),
    [
        ({"game": "chess"}, InvalidOptionError),
        ({"ambiguous_instructions": True}, InvalidOptionError),
        ({"quest_length": 4, "quest_breadth": 5}, InfeasibleDifficultyError),
        ({"quest_length": 2, "quest_breadth": 2}, InfeasibleDifficultyError),
        ({"quest_length": 5, "quest_breadth": 2, "parallel_quests": 2}, InfeasibleDifficultyError),
        ({"quest_length": 8, "quest_depth": 7}, InfeasibleDifficultyError),
        ({"romms": 3}, InvalidOptionError),
        ({"rooms": 0}, InvalidOptionError),
        ({"rooms": 2.5}, InvalidOptionError),
        ({"state_size": 2}, InvalidOptionError),
        ({"quest_length": 4, "solution_length": 4}, InvalidOptionError),
        ({"theme": "space"}, InvalidOptionError),
        ({"game": "simple", "rewards": "rich"}, InvalidOptionError),
        ({"game": "coin_collector", "level": 301}, InvalidOptionError),
        ({"game": "coin_collector", "level": 200}, InfeasibleDifficultyError),
        ({"game": "treasure_hunter", "level": 31}, InvalidOptionError),
        ({"game": "cooking", "recipe": 1, "take": 2}, InfeasibleDifficultyError),
        ({"game": "cooking", "rooms": 2}, InvalidOptionError),
        ({"game": "files", "path": "/nowhere"}, InvalidOptionError),
    ],
)
def test_a_wrong_request_says_what_exists(knobs: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        make_spec(**knobs)
