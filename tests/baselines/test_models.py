"""Where policies are loaded from."""

from __future__ import annotations

from pathlib import Path

import pytest

from baselines.models import load_policy
from textagent_gym.errors import InvalidOptionError


@pytest.mark.parametrize("name", ["/nofolder", "./nofolder", "runs/first/policy", "runs/policy"])
def test_a_folder_that_does_not_exist_is_named(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidOptionError, match=f"the folder {name} of the model does not exist"):
        load_policy(name)
