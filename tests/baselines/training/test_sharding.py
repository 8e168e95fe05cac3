"""Which processes may learn what, and the files for `accelerate launch`."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from accelerate.commands.config.config_args import ClusterConfig, load_config_from_file
from accelerate.commands.launch import _validate_launch_command, launch_command_parser
from accelerate.utils import DistributedType

from baselines import grpo, ppo
from baselines.training.sharding import check_distribution
from textagent_gym.errors import InvalidOptionError

FILES = sorted((Path(__file__).parents[3] / "baselines" / "accelerate").glob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_accelerate_reads_every_file_as_it_is_meant(file: Path) -> None:
    config = load_config_from_file(str(file))
    assert isinstance(config, ClusterConfig)
    whole = {"one_gpu": "NO", "ddp": "MULTI_GPU"}
    expected = whole.get(file.stem, "DEEPSPEED" if "deepspeed" in file.stem else "FSDP")
    assert config.distributed_type == DistributedType(expected)
    arguments = ["--config_file", str(file), "--num_processes", "2", "-m", "baselines.grpo"]
    asked, *_ = _validate_launch_command(launch_command_parser().parse_args(arguments))
    assert asked.num_processes == 2
    assert bool(asked.use_fsdp) == (expected == "FSDP")
    assert bool(asked.use_deepspeed) == (expected == "DEEPSPEED")
    if expected == "DEEPSPEED":
        assert int(asked.zero_stage) == int(file.stem[-1])
    if expected == "FSDP":
        assert int(asked.fsdp_version) == 2
        assert str(asked.fsdp_reshard_after_forward).lower() == str(file.stem == "fsdp_zero3").lower()


def test_there_is_a_file_for_each_size() -> None:
    assert [file.stem for file in FILES] == [
        "ddp",
        "deepspeed_zero1",
        "deepspeed_zero2",
        "deepspeed_zero3",
        "fsdp_zero2",
        "fsdp_zero3",
        "one_gpu",
    ]


@pytest.mark.parametrize(
    ("processes", "method", "changes", "message"),
    [
        ("MEGATRON_LM", grpo, {}, "distributed_type=MEGATRON_LM is not supported; FSDP"),
        ("FSDP 1", grpo, {}, "FSDP with fsdp_version=1 is not supported"),
        ("FSDP 2", ppo, {}, "learns a critic too: use DDP"),
        ("FSDP 2", grpo, {"lora_rank": 8}, "lora_rank=8"),
        ("FSDP 2", grpo, {"staleness": 1}, "staleness=1"),
        ("FSDP 2", grpo, {}, None),
        ("MULTI_GPU", ppo, {"lora_rank": 8}, None),
        ("MULTI_CPU", ppo, {}, None),
        ("NO", ppo, {}, None),
    ],
)
def test_what_processes_cannot_learn_is_refused_by_name(
    tmp_path: Path, processes: str, method: Any, changes: dict[str, Any], message: str | None
) -> None:
    config = method.Config(model="none", env="lights/Lights-v0", out=tmp_path, **changes)
    kind, _, version = processes.partition(" ")
    accelerator: Any = SimpleNamespace(distributed_type=DistributedType(kind), is_fsdp2=version == "2")
    if message is None:
        check_distribution(accelerator, config, method.method(config))
    else:
        with pytest.raises(InvalidOptionError, match=message):
            check_distribution(accelerator, config, method.method(config))


@pytest.mark.parametrize(
    "case",
    [
        (ppo, {}, {}, "distributed_type=DEEPSPEED divides one model"),
        (grpo, {"lora_rank": 8}, {}, "lora_rank=8"),
        (grpo, {"staleness": 1}, {}, "staleness=1"),
        (grpo, {}, {"zero_stage": 0}, "zero_stage=0 divides nothing"),
        (grpo, {}, {"offload_optimizer_device": "cpu"}, "offload_optimizer_device=cpu is not supported"),
        (grpo, {}, {"offload_param_device": "nvme"}, "offload_param_device=nvme is not supported"),
        (grpo, {}, {"deepspeed_config": {"bf16": {"enabled": True}}}, "bf16.enabled=true would round"),
        (grpo, {}, {"joined": 1}, "needs GPUs"),
        (grpo, {}, {}, None),
    ],
)
def test_what_deepspeed_cannot_learn_is_refused_by_name(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    case: tuple[Any, dict[str, Any], dict[str, Any], str | None],
) -> None:
    method, changes, settings, message = case
    config = method.Config(model="none", env="lights/Lights-v0", out=tmp_path, **changes)
    plugin = {"zero_stage": 2, "offload_optimizer_device": "none", "offload_param_device": "none", "joined": 2}
    plugin |= {"deepspeed_config": {}, **settings}
    accelerator: Any = SimpleNamespace(
        distributed_type=DistributedType.DEEPSPEED,
        is_fsdp2=False,
        num_processes=plugin.pop("joined"),
        deepspeed_plugin=SimpleNamespace(**plugin),
    )
    monkeypatch.setattr("torch.distributed.get_world_size", lambda: 2)
    if message is None:
        check_distribution(accelerator, config, method.method(config))
    else:
        with pytest.raises(InvalidOptionError, match=message):
            check_distribution(accelerator, config, method.method(config))
