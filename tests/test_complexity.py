"""What was measured in a task, and what a planner answers."""

from __future__ import annotations

from textagent_gym import Complexity
from textagent_gym.planning import Plan


def test_what_was_not_measured_is_unknown_and_not_proven() -> None:
    assert Complexity().to_dict() == {
        "state_size": None,
        "action_size": None,
        "solution_length": None,
        "exact": False,
    }
    measured = Complexity(state_size=3, action_size=2.5, solution_length=4, exact=True)
    assert Complexity(**measured.to_dict()) == measured  # type: ignore[arg-type]


def test_a_plan_is_proven_unless_it_says_otherwise() -> None:
    assert Plan(("look",)) == Plan(("look",), exact=True) != Plan(("look",), exact=False)
