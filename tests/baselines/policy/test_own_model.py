"""What the page on models says of them: what is refused, and how much memory they take."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from baselines import sft
from baselines.policy.chat import ChatFormat
from baselines.policy.models import load_policy
from baselines.rollout import TransformersGenerator
from baselines.rollout.backend import Prompt
from baselines.rollout.trajectory import collate, rows_of
from tests.baselines.rollout.test_rollout import collect, whole_log_probs
from textagent_gym.errors import InvalidOptionError

PAGE = Path(__file__).parents[3] / "docs" / "adding-a-model.md"
FAMILIES = {
    "llama": (
        LlamaForCausalLM,
        LlamaConfig(
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            max_position_embeddings=1_024,
        ),
    ),
    "gpt2": (GPT2LMHeadModel, GPT2Config(n_embd=32, n_layer=2, n_head=2)),
}


def on_the_page(message: str) -> str:
    """A message, which the page must hold."""
    assert f"`{message}" in PAGE.read_text(encoding="utf-8")
    return message


@pytest.mark.parametrize("family", FAMILIES)
def test_another_family_samples_as_it_is_trained(family: str, tiny: Path, tmp_path: Path) -> None:
    tokenizer = load_policy(str(tiny))[1]
    kind, config = FAMILIES[family]
    config.vocab_size, config.initializer_range = len(tokenizer), 0.1
    config.bos_token_id = config.eos_token_id = tokenizer.eos_token_id
    torch.manual_seed(0)
    kind(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    trajectories, model = collect(tmp_path, episodes=6)
    batch = collate(rows_of(trajectories))
    with torch.no_grad():
        logits = model(input_ids=batch.ids, attention_mask=batch.attention_mask).logits
    difference = (whole_log_probs(logits, batch.ids) - batch.log_probs) * batch.action_mask
    assert difference.abs().max() < 1e-4


@pytest.mark.parametrize(
    "template",
    [
        # Thoughts are dropped as soon as another message follows.
        "{% for m in messages %}{{ m['role'] }}:"
        "{% if loop.last and m['role'] == 'assistant' %}<think></think>{% endif %}"
        "{{ m['content'] }}<|end|>{% endfor %}",
        # Another token ends a message.
        "{% for m in messages %}{{ m['role'] }}:{{ m['content'] }}<|pad|>{% endfor %}",
        # Nothing ends a message.
        "{% for m in messages %}{{ m['role'] }}:{{ m['content'] }}{% endfor %}",
    ],
)
def test_a_template_that_does_not_only_append_is_refused(template: str, tiny: Path) -> None:
    tokenizer = load_policy(str(tiny))[1]
    tokenizer.chat_template = template
    message = on_the_page("the chat template rewrites earlier messages or does not end an assistant's message with")
    with pytest.raises(InvalidOptionError, match=message):
        ChatFormat(tokenizer)


@pytest.mark.parametrize("missing", ["chat_template", "eos_token"])
def test_a_tokenizer_without_a_part_is_refused(missing: str, tiny: Path) -> None:
    tokenizer = load_policy(str(tiny))[1]
    setattr(tokenizer, missing, None)
    with pytest.raises(InvalidOptionError, match=on_the_page(f"the tokenizer has no {missing}")):
        ChatFormat(tokenizer)


def test_a_model_that_is_not_causal_is_refused(tmp_path: Path) -> None:
    T5ForConditionalGeneration(
        T5Config(vocab_size=9, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
    ).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=on_the_page("Unrecognized configuration class")):
        load_policy(str(tmp_path))


def test_sft_refuses_a_template_without_a_generation_block(tiny: Path, demos: Path, tmp_path: Path) -> None:
    model, tokenizer = load_policy(str(tiny))
    tokenizer.chat_template = tokenizer.chat_template.replace("{% generation %}", "").replace("{% endgeneration %}", "")
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    ChatFormat(tokenizer)
    with pytest.raises(ValueError, match=on_the_page("The chat template is not training-compatible")):
        sft.make_trainer(sft.Config(model=str(tmp_path), demos=demos, out=tmp_path / "out"))


def test_the_defaults_of_the_page_are_those_of_a_chat(tiny: Path, tmp_path: Path) -> None:
    ChatFormat(load_policy(str(tiny))[1]).save(tmp_path)
    saved = json.loads((tmp_path / "chat.json").read_text())
    assert saved == {"system": "", "instructed": True, "format": "plain", "memory": "whole", "memory_turns": 8}


def test_training_takes_sixteen_bytes_per_parameter(tiny: Path) -> None:
    model = load_policy(str(tiny))[0]
    optimizer = torch.optim.AdamW(model.parameters())
    model(input_ids=torch.tensor([[5, 6, 7]]), labels=torch.tensor([[5, 6, 7]])).loss.backward()
    optimizer.step()
    moments = [state[name] for state in optimizer.state.values() for name in ("exp_avg", "exp_avg_sq")]
    held = [*model.parameters(), *(parameter.grad for parameter in model.parameters()), *moments]
    assert sum(tensor.nbytes for tensor in held) == 16 * model.num_parameters()


def test_the_cache_takes_what_the_formula_says(tiny: Path) -> None:
    model, tokenizer = load_policy(str(tiny))
    generator = TransformersGenerator(model.eval(), tokenizer.eos_token_id, slots=3, max_action_tokens=1)
    generator.generate([Prompt(slot, (5, 6, 7, 8), fresh=True, seed=slot) for slot in range(3)])
    config = model.config
    per_token = 8 * config.num_hidden_layers * config.num_key_value_heads
    per_token *= config.hidden_size // config.num_attention_heads
    assert sum(layer.keys.nbytes + layer.values.nbytes for layer in generator._cache.layers) == 3 * 4 * per_token
