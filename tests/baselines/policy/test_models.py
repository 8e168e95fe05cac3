"""Where policies are loaded from."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from transformers import BloomConfig, BloomForCausalLM

from baselines.policy.models import context_length, load_policy
from baselines.training.critic import load_critic
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


@pytest.mark.parametrize("missing", [["tokenizer.json"], ["tokenizer.json", "tokenizer_config.json"]])
def test_a_model_without_a_tokenizer_is_refused(tiny: Path, tmp_path: Path, missing: list[str]) -> None:
    folder = shutil.copytree(tiny, tmp_path / "model")
    for name in missing:
        (folder / name).unlink()
    with pytest.raises(InvalidOptionError, match=r"has no tokenizer: .* is tokenizer\.json missing\?"):
        load_policy(str(folder))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layer_types": ["full_attention", "sliding_attention"], "sliding_window": 16}, r"\(sliding_window=16\)"),
        ({"layer_types": None, "sliding_window": 16}, r"\(sliding_window=16\)"),
    ],
)
def test_models_that_forget_are_refused(tiny: Path, settings: dict[str, object], message: str) -> None:
    policy, _ = load_policy(str(tiny))
    assert context_length(policy) == 4096
    for name, value in settings.items():
        setattr(policy.config, name, value)
    with pytest.raises(InvalidOptionError, match=message):
        context_length(policy)


def test_a_model_that_does_not_say_what_it_can_read_is_refused() -> None:
    bloom = BloomForCausalLM(BloomConfig(vocab_size=8, hidden_size=8, n_layer=1, n_head=1))
    with pytest.raises(InvalidOptionError, match="BloomForCausalLM has no max_position_embeddings"):
        context_length(bloom)
