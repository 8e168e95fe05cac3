"""DeepSpeed's engine: gradients, Adam's moments and weights that it divides among processes (ZeRO-1, 2 and 3).

    stage 1    whole weights, whole gradients, divided moments
    stage 2    whole weights, divided gradients, divided moments
    stage 3    everything divided; see `training.sharding` for those who need the weights whole

Accelerate's wrapper of the engine makes the update inside of the last backward pass. Here the engine is called by
itself, so that nothing is updated before all processes know that the loss is finite. The engine clips, and makes no
update if the norm of the gradient is not finite.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import DistributedType

from baselines.settings.config import TrainerConfig
from textagent_gym.errors import InvalidOptionError

_MOMENTS = ("exp_avg", "exp_avg_sq")  # As Adam names them, per weight.


def is_launched() -> bool:
    """Whether `accelerate launch` has been told to use DeepSpeed, asked before there is an `Accelerator`."""
    return os.environ.get("ACCELERATE_USE_DEEPSPEED", "false").lower() == "true"


def uses_zero(accelerator: Accelerator) -> bool:
    """Whether the processes are those of DeepSpeed."""
    return bool(accelerator.distributed_type == DistributedType.DEEPSPEED)


def zero_stage(accelerator: Accelerator) -> int:
    """Stage of ZeRO; 0 where the processes are not those of DeepSpeed."""
    return int(accelerator.deepspeed_plugin.zero_stage) if uses_zero(accelerator) else 0


def check_zero(accelerator: Accelerator) -> None:
    """Refuse settings of DeepSpeed that a run could not resume from, that round the weights or that share nothing.

    Raises:
        InvalidOptionError: it names the setting.
    """
    plugin = accelerator.deepspeed_plugin
    if torch.distributed.get_world_size() != accelerator.num_processes:
        raise InvalidOptionError("distributed_type=DEEPSPEED needs GPUs: accelerate joins no processes on CPUs for it")
    if plugin.zero_stage not in (1, 2, 3):
        raise InvalidOptionError(f"zero_stage={plugin.zero_stage} divides nothing: use 1, 2 or 3, or DDP")
    for name in ("offload_optimizer_device", "offload_param_device"):
        device = getattr(plugin, name)
        if device not in (None, "none"):
            raise InvalidOptionError(f"{name}={device} is not supported: use none")
    for name in ("fp16", "bf16"):
        if plugin.deepspeed_config.get(name, {}).get("enabled") is True:
            raise InvalidOptionError(f"{name}.enabled=true would round the weights: use --precision bfloat16")


def keep_loading_whole(accelerator: Accelerator) -> None:
    """Let `transformers` load weights as without DeepSpeed; for stage 3 it would divide them before they are copied."""
    if uses_zero(accelerator):
        from transformers.integrations.deepspeed import unset_hf_deepspeed_config

        unset_hf_deepspeed_config()


def prepare_engine(
    accelerator: Accelerator, policy: Any, optimizer: torch.optim.Optimizer, config: TrainerConfig
) -> Any:
    """The policy and its optimizer as one engine of DeepSpeed.

    Args:
        accelerator: the processes.
        policy: model that learns, with whole weights.
        optimizer: optimizer of its weights; its learning rate is the engine's.
        config: settings of the run.
    """
    accelerator.deepspeed_plugin.deepspeed_config.update(
        train_micro_batch_size_per_gpu=1,  # It is asked for, and nothing follows from it: losses are divided here.
        gradient_accumulation_steps=1,
        gradient_clipping=config.max_gradient,
        bf16={"enabled": False},
        torch_autocast={
            "enabled": config.precision == "bfloat16",
            "dtype": "bfloat16",
            "lower_precision_safe_modules": [],  # Those whose gradients would be sent in bfloat16.
        },
    )
    engine, _ = accelerator.prepare(policy, optimizer)
    return engine


def backward(engine: Any, loss: torch.Tensor, *, last: bool) -> None:
    """The backward pass of a microbatch; `last` for the last one of an update."""
    engine.set_gradient_accumulation_boundary(last)
    engine.backward(loss)


def step(engine: Any) -> float:
    """Clip and update, unless the gradient is not finite; the norm of the gradient before, infinite in that case."""
    engine.step()
    return float(engine.get_global_grad_norm())


def whole_weight(weight: torch.Tensor) -> torch.Tensor:
    """A copy of a weight with all its numbers; all processes call it."""
    from deepspeed.runtime.zero import GatheredParameters

    with GatheredParameters([weight]):
        return weight.detach().clone()


def whole_state(engine: Any) -> dict[str, Any]:
    """State of the optimizer as a single process would have it (`AdamW.state_dict`); all processes call it."""
    from deepspeed.utils import safe_get_full_optimizer_state

    adam = engine.optimizer.optimizer
    weights = _learned(engine)
    (group,) = adam.param_groups
    settings = {name: value for name, value in group.items() if name != "params"}
    steps = [adam.state[part]["step"] for part in _parts(engine) if part in adam.state]
    state = {
        number: {"step": steps[0].clone(), **{name: safe_get_full_optimizer_state(weight, name) for name in _MOMENTS}}
        for number, weight in enumerate(weights)
        if steps
    }
    return {"state": state, "param_groups": [{**settings, "params": list(range(len(weights)))}]}


def load_whole_state(engine: Any, state: dict[str, Any]) -> None:
    """Load what `whole_state` returned, or what `AdamW.state_dict` did in a single process."""
    adam = engine.optimizer.optimizer
    (group,), (saved,) = adam.param_groups, state["param_groups"]
    group.update({name: value for name, value in saved.items() if name != "params"})
    if not state["state"]:
        return
    for part in _parts(engine):
        adam.state[part] = {
            "step": state["state"][0]["step"].clone(),
            **{name: torch.zeros_like(part) for name in _MOMENTS},
        }
    for weight, moments in zip(_learned(engine), state["state"].values(), strict=True):
        for name in _MOMENTS:
            _keep_share(engine, weight, moments[name], name)


def _keep_share(engine: Any, weight: Any, value: torch.Tensor, name: str) -> None:
    """Keep of a moment the share of this process."""
    if hasattr(weight, "ds_id"):  # Stage 3: equal parts, the last of them padded.
        from deepspeed.utils import safe_set_local_optimizer_state

        size, rank = weight.ds_tensor.numel(), torch.distributed.get_rank()
        share = torch.zeros(size, dtype=value.dtype, device=weight.ds_tensor.device)
        numbers = value.flatten()[rank * size : (rank + 1) * size]
        share[: len(numbers)] = numbers
        safe_set_local_optimizer_state(weight, share, name)
        return
    from deepspeed.utils import safe_set_full_optimizer_state

    engine.optimizer._lazy_init_hp_params_optimizer_state()  # As its first update does.
    safe_set_full_optimizer_state(weight, value, name)


def _learned(engine: Any) -> list[Any]:
    return [weight for weight in engine.module.parameters() if weight.requires_grad]


def _parts(engine: Any) -> Iterator[torch.Tensor]:
    """The flat weights that this process updates, which Adam's state belongs to."""
    optimizer = engine.optimizer
    divided = hasattr(optimizer, "fp32_partitioned_groups_flat")
    yield from optimizer.fp32_partitioned_groups_flat if divided else optimizer.single_partition_of_fp32_groups
