"""What `test_processes.py` runs in one process and in two: an update with nothing to learn in one of them, and a run.

python two_processes.py POLICY OUT [fsdp_zero2 | fsdp_zero3 | deepspeed_zero1 | deepspeed_zero2 | deepspeed_zero3]
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from accelerate import PartialState
from accelerate.commands.launch import _validate_launch_command, launch_command_parser
from accelerate.utils import DistributedType
from accelerate.utils.launch import prepare_deepspeed_cmd_env, prepare_multi_gpu_env
from torch.distributed.tensor import DTensor

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "third_party" / "lights")]

import gymnasium  # noqa: E402
import lights  # noqa: E402

from baselines import gigpo, grpo, ppo, vineppo  # noqa: E402
from baselines.credit.losses import DivergedError, Losses  # noqa: E402
from baselines.credit.method import Forward  # noqa: E402
from baselines.rollout.trajectory import Trajectory, Turn  # noqa: E402
from baselines.settings.config import PolicyConfig  # noqa: E402
from baselines.training import trainer  # noqa: E402

torch.set_num_threads(1)
if "lights/Lights-v0" not in gymnasium.registry:
    lights.register()


def trajectories(case: str) -> list[Trajectory]:
    """Ten episodes, of which the last five (the second process's) earn the same, so that they have no advantage.

    In the case "openings" the others begin with one prompt, so that one process alone has an opening to read.
    """
    random = np.random.default_rng(0)
    opening = tuple(int(i) for i in random.integers(5, 200, size=12))
    played = []
    for number in range(10):
        turns = []
        for turn in range(1 + number % 3):
            prompt, action = (tuple(int(i) for i in random.integers(5, 200, size=3 + number)) for _ in range(2))
            if case == "openings" and turn == 0:
                prompt = opening
            log_probs = tuple(float(x) for x in -5 - random.random(len(action)))
            reward = float(random.random()) if number < 5 else 0.0
            fresh = turn > 0 and number < 4  # The first process has more rows than the second one.
            turns.append(Turn(prompt, action, log_probs, reward, "", "", fresh=fresh))
        played.append(Trajectory(tuple(turns), group=number // 5))
    return played


def update(basis: grpo.Config) -> None:
    """Write the weights of each process after one update."""
    for case, aggregation in (("token", "token"), ("sequence", "sequence"), ("openings", "token")):
        config = replace(basis, out=basis.out.parent / case, aggregation=aggregation, kl=0.0, scale=False)
        method = grpo.method(config)
        run = trainer._Run(config, method, ExitStack())
        everything = trajectories(case)
        processes, process = run.accelerator.num_processes, run.accelerator.process_index
        mine = everything[process * 10 // processes : (process + 1) * 10 // processes]
        metrics = trainer.update(run.learner, method, config, mine, seed=0)
        weights = run.acting_policy().state_dict()
        divided = any(
            isinstance(weight, DTensor) or hasattr(weight, "ds_tensor") for weight in run.learner.policy.parameters()
        )
        torch.save(
            {"metrics": metrics, "weights": weights, "divided": divided},
            basis.out.parent / f"{case}-{process}.pt",
        )


def diverge(basis: grpo.Config) -> None:
    """Write what an update does whose loss is finite and whose gradient is not."""
    config = replace(basis, out=basis.out.parent / "diverged")
    method = grpo.method(config)

    def loss(forward: Forward) -> Losses:
        losses = method.loss(forward)
        return replace(losses, policy=losses.policy + (forward.log_probs * 0).sqrt())

    run = trainer._Run(config, replace(method, loss=loss), ExitStack())
    before = {name: weight.clone() for name, weight in run.acting_policy().state_dict().items()}
    try:
        trainer.update(run.learner, run.method, config, trajectories("token"), seed=0)
        error = ""
    except DivergedError as diverged:
        error = str(diverged)
    after = run.acting_policy().state_dict()
    unchanged = all(torch.equal(before[name], weight) for name, weight in after.items())
    outcome = {"error": error, "unchanged": unchanged}
    torch.save(outcome, basis.out.parent / f"diverged-{run.accelerator.process_index}.pt")


def divide(file: str) -> None:
    """Divide among the processes what `accelerate launch` would with a file of `baselines/accelerate`.

    Accelerate divides on GPUs only, so it is told that these are.
    """
    arguments = ["--config_file", str(ROOT / "baselines" / "accelerate" / f"{file}.yaml"), "--num_processes", "2"]
    asked, *_ = _validate_launch_command(launch_command_parser().parse_args([*arguments, __file__]))
    if asked.use_deepspeed:
        asked.deepspeed_fields_from_accelerate_config = ""  # As `accelerate launch` begins.
        import deepspeed

        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False  # It would be compiled for a minute.
        kind, (_, variables) = DistributedType.DEEPSPEED, prepare_deepspeed_cmd_env(asked)
    else:
        kind, variables = DistributedType.MULTI_GPU, prepare_multi_gpu_env(asked)
    divided = ("FSDP_", "ACCELERATE_USE_FSDP", "ACCELERATE_DEEPSPEED_", "ACCELERATE_USE_DEEPSPEED")
    os.environ.update({name: value for name, value in variables.items() if name.startswith(divided)})
    PartialState(cpu=True)
    os.environ["ACCELERATE_USE_CPU"] = "false"
    PartialState._shared_state["distributed_type"] = kind


def main(policy: Path, out: Path, *, divided: bool) -> None:
    """Write the weights of each process after the update, and some runs."""
    basis = grpo.Config(
        model=str(policy),
        env="lights/Lights-v0",
        set={"switches": 2, "max_turns": 3, "reward_density": "dense", "num_tasks": 8},
        out=out / "run",
        iterations=2,
        groups=3,
        group_size=4,
        slots=6,
        max_action_tokens=5,
        learning_rate=1e-3,
        microbatch=50,
        kl=0.1,
        eval_every=1,
        eval_tasks=5,
    )
    update(basis)
    grpo.run(basis)
    if divided:  # What is divided is one model, of methods without a critic.
        for iterations in (1, 2):
            grpo.run(replace(basis, out=out / "resumed", iterations=iterations))
        grpo.run(replace(basis, out=out / "begun"))
        diverge(basis)
        return
    grpo.run(replace(basis, out=out / "begun", iterations=1))
    grpo.run(replace(basis, out=out / "resampled", kl=0.0, resample=1, iterations=1))
    curricula = {
        "horizon": (1, 3),
        "horizon_every": 1,
        "difficulty": ("switches=1", "switches=2"),
        "difficulty_every": 1,
        "mixture": [{"env": basis.env, "set": {"switches": 3, "max_turns": 2}, "weight": 0.5}],
    }
    grpo.run(replace(basis, out=out / "curricula", kl=0.0, **curricula))
    shared = {name: value for name, value in vars(basis).items() if name in PolicyConfig.__dataclass_fields__}
    ppo.run(ppo.Config(**{**shared, "out": out / "ppo", "critic_warmup": 1, "kl_in": "reward"}))
    gigpo.run(gigpo.Config(**{**shared, "out": out / "gigpo"}))
    vineppo.run(vineppo.Config(**{**shared, "out": out / "vineppo", "branches": 2}))


if __name__ == "__main__":
    for file in sys.argv[3:]:
        divide(file)
    main(Path(sys.argv[1]), Path(sys.argv[2]), divided=len(sys.argv) > 3)
