"""Our own worlds keep their promises."""

from __future__ import annotations

from typing import Any

import pytest

from textagent_gym.evaluation import certify


@pytest.mark.slow
@pytest.mark.parametrize(
    ("id", "kwargs", "harder"),
    [
        ("textagent/ALFWorld-v0", {}, {"receptacles": (8, 30), "objects": (10, 50), "solution_length": (4, 6)}),
        ("textagent/TextWorld-w2-o3-q4-v0", {}, None),
        ("textagent/TextWorldCoinCollector-v0", {"level": 3}, {"level": (3, 10)}),
    ],
)
def test_our_worlds_are_certified(id: str, kwargs: dict[str, Any], harder: Any) -> None:
    pytest.importorskip("textworld" if "TextWorld" in id else "gymnasium", reason="needs: the extra textworld")
    certificate = certify(id, kwargs=kwargs, tasks=3, strings=1_000, harder=harder)
    assert certificate.holds, certificate.report
