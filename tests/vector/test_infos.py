"""Batched infos, beside Gymnasium's."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv
from hypothesis import given
from hypothesis import strategies as st

from tests.vector.test_vector_env import same
from textagent_gym.vector.infos import batch_infos

VALUES = {
    "turn": st.integers(-5, 5),
    "success": st.booleans(),
    "progress": st.floats(0, 1),
    "exact": st.floats(0, 1).map(np.float32),
    "task": st.text(max_size=3),
    "admissible_actions": st.lists(st.text(max_size=3), max_size=3).map(tuple),
    "oracle_action": st.none() | st.text(max_size=2),
    "final_obs": st.text(max_size=3),
    "array": st.lists(st.integers(0, 9), min_size=2, max_size=2).map(np.array),
}
INFOS = st.fixed_dictionaries({}, optional={**VALUES, "nested": st.fixed_dictionaries({}, optional=VALUES)})


@given(st.lists(st.none() | INFOS, min_size=1, max_size=4))
def test_the_batch_is_the_one_that_gymnasium_makes(infos: list[dict[str, Any] | None]) -> None:
    theirs: dict[str, Any] = {}
    envs = VectorEnv()
    envs.num_envs = len(infos)
    for slot, info in enumerate(infos):
        theirs = theirs if info is None else envs._add_info(theirs, info, slot)
    ours = batch_infos({slot: info for slot, info in enumerate(infos) if info is not None}, len(infos))
    assert same(ours, theirs)
