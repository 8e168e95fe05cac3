"""The logic of a game as data."""

from __future__ import annotations

import json

import pytest

from tests.domains.textworld.kinds import KINDS, UpstreamGame
from textagent_gym.domains.textworld.generation import ground
from textagent_gym.domains.textworld.logic import GameLogic
from textagent_gym.domains.textworld.specs import Spec


@pytest.mark.parametrize("spec", KINDS, ids=lambda spec: spec.slug)
def test_the_logic_survives_json(spec: Spec, upstream_game: UpstreamGame) -> None:
    logic = ground(upstream_game(spec, 1)[0])
    written = logic.to_dict()
    assert GameLogic.from_dict(json.loads(json.dumps(written))).to_dict() == written
    with pytest.raises(ValueError, match="format"):
        GameLogic.from_dict({"format": 0})
