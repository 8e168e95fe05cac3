"""Weights that are divided among processes (FSDP2, DeepSpeed), and those who need them whole.

    policy, divided    updates        every process computes the same number of passes
    actor, whole       everything else that reads the policy: the generator, log-probabilities before the update, saving

The actor is a copy, one per process; it takes the policy's weights before each iteration and each evaluation. Where
weights are not divided it is the policy itself.
"""

from __future__ import annotations

import copy
import os
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import DistributedType
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.utils._pytree import tree_map

from baselines.credit.method import Method
from baselines.settings.config import TrainerConfig
from baselines.training import zero
from textagent_gym.errors import InvalidOptionError


def joins_on_cpus() -> bool:
    """Whether accelerate must be told to join processes on CPUs, which it does of itself on GPUs only.

    Without GPUs it joins none that divide weights or moments.
    """
    divided = zero.is_launched() or os.environ.get("ACCELERATE_USE_FSDP", "false").lower() == "true"
    return not divided and not torch.accelerator.is_available()


def check_distribution(accelerator: Accelerator, config: TrainerConfig, method: Method) -> None:
    """Refuse what cannot be learned by processes of this kind.

    Raises:
        InvalidOptionError: the processes were started together and are not joined; they are of an unknown kind or those
            of FSDP1; or something is divided that must not be.
    """
    started = int(os.environ.get("WORLD_SIZE", "1"))
    if started > 1 and accelerator.num_processes == 1:
        raise InvalidOptionError(
            f"{started} processes were started that accelerate has not joined: each would be a run of its own. On CPUs "
            "it joins those of DDP only (accelerate launch --config_file baselines/accelerate/ddp.yaml)"
        )
    kind = accelerator.distributed_type
    fsdp1 = kind == DistributedType.FSDP and not accelerator.is_fsdp2
    if kind not in (DistributedType.NO, DistributedType.FSDP, DistributedType.DEEPSPEED, *_WHOLE) or fsdp1:
        name = "FSDP with fsdp_version=1" if fsdp1 else kind.value
        raise InvalidOptionError(
            f"distributed_type={name} is not supported; FSDP with fsdp_version=2 divides the same "
            "(accelerate launch --config_file baselines/accelerate/fsdp_zero3.yaml)"
        )
    if kind == DistributedType.DEEPSPEED:
        zero.check_zero(accelerator)
    if not divides(accelerator):
        return
    if method.critic is not None:
        raise InvalidOptionError(
            f"distributed_type={kind.value} divides one model, and this method learns a critic too: use DDP"
        )
    if config.staleness:
        raise InvalidOptionError("staleness=1: the policy that plays ahead would need its weights whole: use DDP")
    if config.lora_rank:
        raise InvalidOptionError(
            f"lora_rank={config.lora_rank}: distributed_type={kind.value} would divide what adapters leave small: "
            "use DDP"
        )


def divides(accelerator: Accelerator) -> bool:
    """Whether the processes divide anything but the episodes; then all of them make the same number of passes."""
    return bool(accelerator.is_fsdp2) or zero.uses_zero(accelerator)


def divides_weights(accelerator: Accelerator) -> bool:
    """Whether no process holds the weights that it learns whole."""
    return bool(accelerator.is_fsdp2) or zero.zero_stage(accelerator) == 3


_WHOLE = (DistributedType.MULTI_CPU, DistributedType.MULTI_GPU, DistributedType.MULTI_XPU, DistributedType.MULTI_NPU)
"""Kinds of processes that hold all weights each (DDP)."""


def make_whole_copy(accelerator: Accelerator, policy: Any) -> Any | None:
    """A copy of the policy, made before its weights are divided; `None` if they will not be."""
    return copy.deepcopy(policy).to(accelerator.device).eval() if divides_weights(accelerator) else None


@torch.no_grad()
def gather_weights(accelerator: Accelerator, policy: Any, whole_copy: Any) -> None:
    """Give the copy the weights of the policy, one tensor after the other; all processes call it."""
    gather = zero.whole_weight if zero.uses_zero(accelerator) else whole
    targets = dict(whole_copy.named_parameters())
    for name, weight in accelerator.unwrap_model(policy).named_parameters():
        targets[name].copy_(gather(weight))


def whole_state(optimizer: Any) -> dict[str, Any]:
    """State of an optimizer whose tensors are whole, as that of a single process; all processes call it."""
    state: dict[str, Any] = tree_map(whole, optimizer.state_dict())
    return state


def load_whole_state(optimizer: Any, state: dict[str, Any]) -> None:
    """Load what `whole_state` returned, divided as the optimizer's weights are."""
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    divided = {
        number: {name: _like(weights[number], value) for name, value in moments.items()}
        for number, moments in state["state"].items()
    }
    optimizer.load_state_dict({**state, "state": divided})


def whole(value: Any) -> Any:
    """A tensor with all its numbers, or any other value as it is; all processes call it."""
    return value.full_tensor() if isinstance(value, DTensor) else value


def _like(weight: torch.Tensor, value: Any) -> Any:
    """The value, divided as the weight is, if it has a number for each of its."""
    if not isinstance(weight, DTensor) or value.shape != weight.shape:
        return value
    value = value.to(weight.device_mesh.device_type)
    return distribute_tensor(value, weight.device_mesh, weight.placements, src_data_rank=None)
