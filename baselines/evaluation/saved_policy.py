"""Saved policies that anybody may have written, loaded from nothing but what their digest is of.

Whoever has committed to a policy by its digest could else say afterwards what it is: `transformers` reads many other
files that a configuration names. So the files that are needed are put apart, and of settings those that count.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from huggingface_hub import constants
from safetensors import safe_open
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel, PreTrainedTokenizerFast
from transformers.utils import logging

from baselines.policy.chat import ChatFormat, chat_of
from baselines.policy.models import context_length, load_policy
from baselines.settings.dialogue import CHAT_FILE
from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation import policy_files
from textagent_gym.terminal import one_line

STOPS = (KeyboardInterrupt, SystemExit, GeneratorExit)
"""What is somebody's wish to end, and no failure of a library, of which one raises what is no `Exception`."""
_LONGEST_REASON = 1_000  # Characters of what a library says.
_WEIGHTS = (".safetensors", ".safetensors.index.json")
_TEMPLATES = "additional_chat_templates/"
_MODEL_FILES = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "added_tokens.json",
    "chat_template.jinja",
    CHAT_FILE,
)
"""Files that a policy is loaded from as they are, beside its weights."""
_PACKED = 16  # Largest number of weights that lie in one number of a file.
_TOKENIZER_FILES = ("tokenizer_config.json", "special_tokens_map.json")
_TOKENIZER_SETTINGS = frozenset(
    {"added_tokens_decoder", "additional_special_tokens", "chat_template", "clean_up_tokenization_spaces"}
    | {"extra_special_tokens", "model_max_length", "model_specific_special_tokens", "split_special_tokens"}
)
"""What of a tokenizer's settings counts, beside its named tokens. Many others name files, in ways that a list of them
would not end; and what makes ids of words stands in tokenizer.json."""
_ELSEWHERE = {
    "attribute_map": "names of its own",
    "configuration_files": "other files",
    "transformers_weights": "weights",
}
"""What a config.json may not name: it could mean any file of the machine, or hide what is looked for here."""


def load_saved(folder: str) -> tuple[PreTrainedModel, ChatFormat, int]:
    """The policy of a folder, its chat, and the length of its context, from nothing but files that its digest is of.

    Args:
        folder: folder of the policy, whoever has written it.

    Raises:
        InvalidOptionError: they cannot be loaded, whatever a stranger has written into them.
    """
    with TemporaryDirectory() as alone:
        try:
            _put_apart(policy_files(folder), Path(alone))
            with _quietly_offline():
                _check_size(Path(alone))
                # Other classes of tokenizers read other files, too, and not what stands in tokenizer.json alone.
                model, tokenizer = load_policy(alone, PreTrainedTokenizerFast)
            configured = [part for part in model.modules() if hasattr(part, "config")]
            _check_attention(getattr(part.config, "_attn_implementation", None) for part in configured)
            return model, chat_of(alone, tokenizer), context_length(model)
        except STOPS:
            raise
        except BaseException as error:  # Libraries raise what they like, and one of them panics.
            reason = f"{error}" if isinstance(error, InvalidOptionError) else f"{type(error).__name__}: {error}"
            reason = one_line(reason.replace(alone, folder), _LONGEST_REASON)
            raise InvalidOptionError(f"the policy cannot be loaded: {reason}") from error


def _put_apart(files: Mapping[str, Path], alone: Path) -> None:
    """Put what a policy is loaded from into a folder of its own.

    Args:
        files: files of the policy by their names.
        alone: empty folder.

    Raises:
        InvalidOptionError: they do not suffice, or ask for others.
    """
    if "tokenizer.json" not in files:
        raise InvalidOptionError("it has no tokenizer.json; a tokenizer's save_pretrained writes one")
    for name, path in files.items():
        if name in _MODEL_FILES or name.startswith(_TEMPLATES) or ("/" not in name and name.endswith(_WEIGHTS)):
            link = alone / name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path.resolve())
        elif name in _TOKENIZER_FILES:
            settings = json.loads(path.read_bytes())
            kept = {name: value for name, value in settings.items() if _is_kept(name, value)}
            (alone / name).write_text(json.dumps(kept), encoding="utf-8")
    for name, value in _named(json.loads(files["config.json"].read_bytes())):
        if name.endswith("attn_implementation"):
            _check_attention([value])
        if name in _ELSEWHERE:
            raise InvalidOptionError(f"its config.json names {_ELSEWHERE[name]} ({name})")


def _check_size(alone: Path) -> None:
    """Raise `InvalidOptionError` for a model that is far larger than its weights.

    It would fill the memory before anybody sees that they are missing. Packed weights are a few times smaller.
    """
    there = 0
    for path in alone.glob("*.safetensors"):
        with safe_open(path, "pt") as file:
            there += sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
    with torch.device("meta"):
        config = AutoConfig.from_pretrained(alone, trust_remote_code=False)
        model = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    asked = sum(each.numel() for each in model.parameters())
    if asked > _PACKED * there:
        raise InvalidOptionError(f"its config.json asks for {asked:,} weights, and it has {there:,}")


def _is_kept(name: str, value: Any) -> bool:
    """Whether a setting of a tokenizer counts."""
    return name in _TOKENIZER_SETTINGS or (name.endswith("_token") and isinstance(value, str | dict))


def _check_attention(asked: Iterable[Any]) -> None:
    """Raise `InvalidOptionError` for other attention than that of PyTorch: the hub has code for it."""
    for value in asked:
        if value not in (None, "eager", "sdpa"):
            raise InvalidOptionError(f"its config.json asks for attention of {value!r:.100}")


def _named(values: Any) -> Iterator[tuple[str, Any]]:
    """Every name in JSON values, with its value, however deep."""
    if isinstance(values, dict):
        yield from values.items()
    if isinstance(values, dict | list):
        for value in values.values() if isinstance(values, dict) else values:
            yield from _named(value)


@contextmanager
def _quietly_offline() -> Iterator[None]:
    """Let no library ask the hub for what a stranger's configuration names, or show at the terminal what is in it."""
    before, loud = constants.HF_HUB_OFFLINE, logging.get_verbosity()
    constants.HF_HUB_OFFLINE = True
    logging.set_verbosity(logging.CRITICAL)
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
        logging.set_verbosity(loud)
