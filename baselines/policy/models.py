"""Policies: any causal language model of `transformers`, and a tiny one that is made on the spot."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from tokenizers import Tokenizer, decoders, pre_tokenizers, trainers
from tokenizers.models import BPE
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from textagent_gym.errors import InvalidOptionError

_DEVIATION = 0.1
"""Deviation of the tiny policy's first weights. With the usual 0.02, a model this narrow hardly begins to copy words
from what it reads in a few hundred updates (one-room cooking games, 150 updates: 1% success on held-out games against
30%)."""

_WORDS = 10
"""Number of words of a tokenizer, of which one must make a token: an empty one has a word or two that make none."""

_PAD, _END, _USER, _ASSISTANT, _SYSTEM = "<|pad|>", "<|end|>", "<|user|>", "<|assistant|>", "<|system|>"

# The generation block marks what an agent says, so that TRL trains on nothing else.
_CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] == 'assistant' %}"
    "<|assistant|>{% generation %}{{ message['content'] }}<|end|>{% endgeneration %}"
    "{% else %}"
    "{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}"
    "{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def load_policy(name_or_path: str, tokenizers: Any = AutoTokenizer) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A causal language model with weights of float32, and its tokenizer, from a local folder or a hub name.

    Many models are published in bfloat16, whose 8 bits of precision swallow updates as small as a learning rate of 1e-6
    makes them.

    Args:
        name_or_path: folder or hub name.
        tokenizers: class of `transformers` that loads the tokenizer.

    Raises:
        InvalidOptionError: the folder does not exist. A hub name has one slash at most, begins with neither "/" nor
            ".", and does not lie in a folder that is there. Or what is there is no such model, brings code of its own,
            lacks weights, or has no tokenizer.
    """
    path = Path(name_or_path)
    is_path = name_or_path.startswith(("/", ".", "~")) or name_or_path.count("/") > 1
    if (is_path or ("/" in name_or_path and path.parent.is_dir())) and not path.is_dir():
        raise InvalidOptionError(f"the folder {name_or_path} of the model does not exist")
    try:
        model, loaded = AutoModelForCausalLM.from_pretrained(
            name_or_path, dtype=torch.float32, trust_remote_code=False, output_loading_info=True
        )
        tokenizer: PreTrainedTokenizerBase = tokenizers.from_pretrained(name_or_path, trust_remote_code=False)
    except (ValueError, RuntimeError, SafetensorError) as error:
        raise InvalidOptionError(f"the model {name_or_path} cannot be loaded: {error}") from error
    if loaded["missing_keys"]:  # `transformers` fills them with random numbers, others each time.
        missing = ", ".join(sorted(loaded["missing_keys"]))
        raise InvalidOptionError(f"the model {name_or_path} cannot be loaded: it has no weights {missing:.300}")
    # Where its files are missing, `transformers` makes an empty one, for which every text is nothing.
    words = islice(tokenizer.get_vocab().keys() - tokenizer.get_added_vocab().keys(), _WORDS)
    if not any(tokenizer.encode(word, add_special_tokens=False) for word in words):
        raise InvalidOptionError(
            f"the model {name_or_path} has no tokenizer: what was loaded knows no word; is tokenizer.json missing?"
        )
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return model, tokenizer


def context_length(model: PreTrainedModel) -> int:
    """Largest number of tokens that a policy can read at once.

    Raises:
        InvalidOptionError: the model does not say how many, or forgets what lies behind a window: what it had cached
            would not be what it reads when it is trained.
    """
    config = model.config.get_text_config()
    name = model.config.name_or_path or type(model).__name__
    length = getattr(config, "max_position_embeddings", None)
    if length is None:
        raise InvalidOptionError(f"{name} has no max_position_embeddings, so it is not known what fits its context")
    kinds = getattr(config, "layer_types", None) or ()
    window = getattr(config, "sliding_window", None)
    if any(kind != "full_attention" for kind in kinds) or (not kinds and window is not None and window < length):
        raise InvalidOptionError(
            f"{name} does not attend to its whole context (sliding_window={window}); choose a model that does"
        )
    return int(length)


def room_before_action(context: int, max_action_tokens: int) -> int:
    """Largest number of tokens that can be read where an action shall fit too.

    Args:
        context: largest number of tokens that a policy can read at once.
        max_action_tokens: largest number of tokens per action.

    Raises:
        InvalidOptionError: an action leaves no room for anything else.
    """
    if max_action_tokens >= context:
        raise InvalidOptionError(
            f"max_action_tokens must be less than the policy's context of {context} tokens, got {max_action_tokens}"
        )
    return context - max_action_tokens


def make_tokenizer(texts: Iterable[str], vocabulary: int = 1_500) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer trained on `texts`, with a chat template. Any string has ids and comes back unchanged.

    Args:
        texts: texts to train on.
        vocabulary: largest number of tokens, of which 256 are single bytes.
    """
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = [_PAD, _END, _USER, _ASSISTANT, _SYSTEM]
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=_PAD,
        eos_token=_END,
        unk_token=_PAD,  # Never used, as every byte has an id; without it, a tokenizer that is loaded gets one more.
        extra_special_tokens=[_USER, _ASSISTANT, _SYSTEM],
        chat_template=_CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
        model_max_length=4_096,
    )


def make_tiny_policy(
    folder: Path, texts: Iterable[str], *, hidden: int = 128, layers: int = 3, heads: int = 4, seed: int = 0
) -> None:
    """Save a small Qwen2 with random weights, and a tokenizer trained on `texts`, as a folder for `load_policy`.

    Args:
        folder: folder to write to.
        texts: texts like those that the policy will read and write.
        hidden, layers, heads: size of the model.
        seed: seed of the random weights.
    """
    tokenizer = make_tokenizer(texts)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        intermediate_size=4 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=4_096,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        initializer_range=_DEVIATION,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen2ForCausalLM(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
