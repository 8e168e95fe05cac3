"""What `certify` prints of a broken promise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import pytest

from textagent_gym.evaluation.certificate import certify
from textagent_gym.evaluation.promises import any_string_is_survived


class SaysMore(gymnasium.Env[str, str]):
    """Answers with a text that its space may not hold."""

    action_space = gymnasium.spaces.Text(100)

    def __init__(self, said: Any) -> None:
        self.observation_space = gymnasium.spaces.Text(5, min_length=2, charset="abc")
        self._said = said

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        return "abc", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        return self._said, 0.0, False, False, {}


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    gymnasium.register("more/SaysMore-v0", entry_point=f"{__name__}:SaysMore")
    yield
    del gymnasium.registry["more/SaysMore-v0"]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("ab…c", "it holds '…', which the space's charset lacks"),
        ("a" * 7, "it has 7 characters, and the space allows 2 to 5"),
        ("a", "it has 1 characters, and the space allows 2 to 5"),
        (7, "it is 7, and the space Text(2, 5, charset=abc)"),
    ],
)
def test_what_is_wrong_with_an_observation_outside_its_space_is_told(said: Any, reason: str) -> None:
    certificate = certify("more/SaysMore-v0", kwargs={"said": said}, promises=(any_string_is_survived,), apart=False)
    (finding,) = certificate.findings
    assert finding.what.startswith("the observation after ")
    assert finding.what.endswith(f" is not in its space: {reason}")
