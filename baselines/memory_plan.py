"""Memory that training takes on one device, by calculation; nothing is loaded but a model's configuration.

    python -m baselines.memory_plan --model Qwen/Qwen2.5-1.5B-Instruct --context 16384 --precision bfloat16 \\
        --lora-rank 16 --gradient-checkpointing --device 24

    weights          all of float32, what is learned and what is not
    gradients        of what is learned
    optimizer        the two moments of Adam
    copies           of the weights, in the precision of the matrix products
    activations      what the forward pass keeps for the backward pass, at the largest number of tokens in a microbatch
    logits           of the sampled tokens, and what their log-probabilities and gradients take
    cache            keys and values of the conversations that are played

Parameters are counted in the model without its memory (torch's device "meta"). What a layer keeps per token is what
autograd is seen to keep for one layer of the same width. The cache is freed before the update, so the peak is the
larger of the two; what plays ahead (`--staleness 1`) takes its own at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from baselines.command_line import let_waiting_threads_sleep
from baselines.settings.config import Precision, check_above_zero, check_at_least
from textagent_gym.errors import InvalidOptionError

if TYPE_CHECKING:
    import torch
    from transformers import PretrainedConfig

_FLOAT32 = 4  # Bytes of a number.
_LOGITS = 3
"""Copies of the sampled tokens' logits that are alive at once in float32: the logits, the same over the temperature,
and their gradient. In lower precision the head's output is a further half."""
_SHORT, _LONG = 128, 256
"""Numbers of tokens of the two forward passes whose difference is what a token keeps."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """Memory of training on one device. Values are those of the trainers' settings of the same names."""

    model: str
    """Folder or hub name of the policy; only its configuration is read."""
    context: int = 16_384
    """Number of tokens of the longest conversation."""
    microbatch: int = 8_192
    """Number of tokens that go through the model at once; a longer conversation goes by itself."""
    sampled: float = 0.1
    """Share of the tokens of a conversation that the policy samples."""
    slots: int = 64
    """Number of conversations played at once."""
    played: int | None = None
    """Number of tokens of a conversation that is played, on average; by default the context."""
    lora_rank: int = 0
    """Rank of low-rank adapters; 0 learns all weights."""
    gradient_checkpointing: bool = False
    """Whether the update computes what is inside of the layers twice instead of keeping it."""
    precision: Precision = "float32"
    """Precision of the matrix products."""
    device: float | None = None
    """Memory of the device in GiB; the plan then says whether it is enough."""

    def __post_init__(self) -> None:
        for name in ("context", "microbatch", "slots"):
            check_at_least(name, getattr(self, name), 1)
        check_at_least("lora_rank", self.lora_rank, 0)
        if self.played is not None:
            check_at_least("played", self.played, 1)
        if not 0 < self.sampled <= 1:
            raise InvalidOptionError(f"sampled must be above 0 and at most 1, got {self.sampled}")
        if self.device is not None:
            check_above_zero("device", self.device)


@dataclass(frozen=True, slots=True)
class Plan:
    """Memory in bytes.

    Attributes:
        weights, gradients, optimizer, copies, activations, logits: see the module.
        cache: keys and values of all conversations that are played at once.
        parameters: number of parameters.
        learned: number of those that are learned.
        per_token: bytes that one token of a microbatch keeps until the backward pass.
        cache_per_token: bytes of the keys and values of one token.
    """

    weights: int
    gradients: int
    optimizer: int
    copies: int
    activations: int
    logits: int
    cache: int
    parameters: int
    learned: int
    per_token: int
    cache_per_token: int

    @property
    def update(self) -> int:
        """Peak of an update."""
        return self.weights + self.gradients + self.optimizer + self.copies + self.activations + self.logits

    @property
    def generation(self) -> int:
        """Peak of generation with `transformers`, when no gradient is there."""
        return self.weights + self.optimizer + self.cache

    @property
    def peak(self) -> int:
        """Peak of an iteration."""
        return max(self.update, self.generation)


def plan(model: PretrainedConfig, config: Config) -> Plan:
    """The memory that a policy with a model's configuration takes while it is trained.

    Args:
        model: configuration of a causal language model.
        config: settings of the training.
    """
    text = model.get_text_config()
    layers = int(text.num_hidden_layers)
    parameters, learned, widest = _count(model, config.lora_rank)
    half = config.precision == "bfloat16"
    inside, between = _kept_per_token(model, config)
    tokens = max(config.context, config.microbatch)
    # With checkpointing the backward pass computes the inside of one layer at a time again.
    per_token = layers * (between if config.gradient_checkpointing else inside)
    beside = inside if config.gradient_checkpointing else between
    activations = tokens * (per_token + beside)
    head = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    # Positions turn keys in float32, whatever the products are computed in; values stay as they are.
    number = layers * int(text.num_key_value_heads) * int(head)
    cache_per_token = number * (_FLOAT32 + (2 if half else _FLOAT32))
    sampled = int(config.sampled * tokens)
    return Plan(
        weights=_FLOAT32 * parameters,
        gradients=_FLOAT32 * learned,
        optimizer=2 * _FLOAT32 * learned,
        copies=0 if not half else 2 * (widest if config.gradient_checkpointing else parameters),
        activations=activations,
        logits=int(sampled * int(text.vocab_size) * (_LOGITS * _FLOAT32 + (2 if half else 0))),
        cache=config.slots * (config.context if config.played is None else config.played) * cache_per_token,
        parameters=parameters,
        learned=learned,
        per_token=per_token,
        cache_per_token=cache_per_token,
    )


def _count(model: PretrainedConfig, lora_rank: int) -> tuple[int, int, int]:
    """Number of parameters, of those that are learned, and of the largest part: the embeddings, or one layer."""
    import torch
    from transformers import AutoModelForCausalLM

    from baselines.policy.adapters import add_adapters, learned_weights

    with torch.device("meta"):
        policy = AutoModelForCausalLM.from_config(model, dtype=torch.float32)
        if lora_rank:
            add_adapters(policy, lora_rank, alpha=1.0)
    parameters = sum(weight.numel() for weight in policy.parameters())
    learned = sum(weight.numel() for weight in learned_weights(policy).values())
    embeddings = policy.get_input_embeddings().weight.numel()
    layer = (parameters - embeddings) // int(model.get_text_config().num_hidden_layers)
    return parameters, learned, max(embeddings, layer)


def _kept_per_token(model: PretrainedConfig, config: Config) -> tuple[int, int]:
    """Bytes that autograd keeps per token inside of a layer, and for what goes from layer to layer."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    from baselines.policy.adapters import add_adapters

    one = AutoConfig.for_model(**{**model.get_text_config().to_dict(), "vocab_size": 8, "pad_token_id": None})
    kept = []
    for layers in (1, 2):
        one.num_hidden_layers = layers
        if getattr(one, "layer_types", None):
            one.layer_types = one.layer_types[:1] * layers
        policy = AutoModelForCausalLM.from_config(one, dtype=torch.float32)
        if config.lora_rank:
            add_adapters(policy, config.lora_rank, alpha=1.0)
        policy.train()
        with torch.autocast("cpu", torch.bfloat16, enabled=config.precision == "bfloat16"):
            short, long = (_kept(policy, tokens) for tokens in (_SHORT, _LONG))
        kept.append((long - short) // (_LONG - _SHORT))
    return kept[1] - kept[0], int(one.hidden_size) * _FLOAT32


def _kept(policy: Any, tokens: int) -> int:
    """Bytes that a forward pass keeps for the backward pass beside the weights."""
    import torch

    weights = {weight.untyped_storage().data_ptr() for weight in policy.parameters()}
    storages: dict[int, int] = {}
    alive = []  # A storage that was freed could give its address to another one.

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            storages[storage.data_ptr()] = storage.nbytes()
        alive.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = policy(input_ids=torch.zeros((1, tokens), dtype=torch.int64), use_cache=False, logits_to_keep=1)
    del output
    return sum(storages.values())


def describe(planned: Plan, device: float | None = None) -> str:
    """The plan as lines of text.

    Args:
        planned: the plan.
        device: memory of the device in GiB.
    """
    gib = 2**30
    parts = ("weights", "gradients", "optimizer", "copies", "activations", "logits", "cache")
    lines = [f"parameters    {planned.parameters:,}, of which {planned.learned:,} are learned"]
    lines += [f"{name:<13} {getattr(planned, name) / gib:8.2f} GiB" for name in parts]
    lines += [
        f"kept          {planned.per_token / 2**10:8.0f} KiB per token of an update",
        f"cached        {planned.cache_per_token / 2**10:8.0f} KiB per token of a conversation",
        f"update        {planned.update / gib:8.2f} GiB",
        f"generation    {planned.generation / gib:8.2f} GiB",
    ]
    if device is not None:
        answer = "is enough" if planned.peak <= device * gib else "is not enough"
        lines.append(f"a device of {device:g} GiB {answer}")
    return "\n".join(lines)


def main() -> None:
    """Print the plan that the command line asks for."""
    let_waiting_threads_sleep()
    import tyro
    from transformers import AutoConfig

    try:
        config = tyro.cli(Config, prog="python -m baselines.memory_plan", description=__doc__)
        planned = plan(AutoConfig.from_pretrained(config.model), config)
    except (InvalidOptionError, OSError) as error:
        raise SystemExit(str(error)) from None
    print(describe(planned, config.device))


if __name__ == "__main__":
    main()
