"""Where policies are loaded from."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from baselines.critic import load_critic
from baselines.models import load_policy
from textagent_gym.errors import InvalidOptionError


@pytest.mark.parametrize("name", ["/nofolder", "./nofolder", "runs/first/policy", "runs/policy"])
def test_a_folder_that_does_not_exist_is_named(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidOptionError, match=f"the folder {name} of the model does not exist"):
        load_policy(name)


def test_weights_that_are_trained_are_precise(tiny: Path, tmp_path: Path) -> None:
    policy, tokenizer = load_policy(str(tiny))
    policy.to(torch.bfloat16).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    for model in (load_policy(str(tmp_path))[0], load_critic(str(tmp_path))):
        assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
