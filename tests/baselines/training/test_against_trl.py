"""The gradient of a whole update, from sampled tokens and rewards to the policy's weights, against TRL's trainers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
import torch
from accelerate import Accelerator
from transformers import PreTrainedModel
from trl import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer

from baselines import grpo, rloo
from baselines.credit.method import Method
from baselines.policy.models import load_policy
from baselines.rollout.trajectory import Trajectory, Turn
from baselines.settings.config import TrainerConfig
from baselines.training.scoring import read_log_probs
from baselines.training.update import Learner, update

GROUP = 4
LONGEST = 24  # Tokens per completion in TRL, and divisor of "constant" here.
CPU = torch.device("cpu")
SEEDS = range(3)

Weights = dict[str, torch.Tensor]


def episodes(seed: int, turns: int) -> list[Trajectory]:
    """Four groups side by side, as TRL has them; a group begins with the same prompt."""
    random = np.random.default_rng(seed)

    def tokens(most: int) -> tuple[int, ...]:
        return tuple(random.integers(5, 200, random.integers(1, most)).tolist())

    played = []
    for group in range(4):
        opening = tokens(9)
        for member in range(GROUP):
            sampled = [tokens(7) for _ in range(random.integers(1, turns + 1))]
            prompts = [opening, *(tokens(5) for _ in sampled[1:])]
            rewards = random.normal(size=len(sampled))
            if group == 0:  # Two episodes are as good as the mean: without an advantage, but counted.
                rewards = np.array([0.0] * (len(sampled) - 1) + [(1.0, -1.0, 0.0, 0.0)[member]])
            if group == 3:  # Nobody did better: a group without any advantage.
                rewards = np.array([0.0] * (len(sampled) - 1) + [0.5])
            played.append(
                Trajectory(
                    tuple(
                        Turn(prompt, action, (0.0,) * len(action), float(reward), "", "")
                        for prompt, action, reward in zip(prompts, sampled, rewards, strict=True)
                    ),
                    group,
                )
            )
    return played


def move(model: PreTrainedModel, seed: int) -> None:
    """Change the weights a little, as updates do."""
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.01 * torch.randn(parameter.shape, generator=random))


def gradients(model: Any) -> Weights:
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


@dataclass
class Recorder:
    """An optimizer that notes the gradients instead of using them."""

    model: Any
    noted: list[Weights] = field(default_factory=list)

    def step(self) -> None:
        self.noted.append(gradients(self.model))

    def zero_grad(self) -> None:
        self.model.zero_grad()


def ours(tiny: Path, config: TrainerConfig, method: Method, played: list[Trajectory]) -> Weights:
    """Gradient of one update from all episodes, which the policy sampled before it moved."""
    policy = load_policy(str(tiny))[0]
    move(policy, 1)
    scored = []
    for trajectory, row in zip(played, read_log_probs(policy.eval(), played, 1.0, 100, CPU), strict=True):
        at, turns = 0, []
        for turn in trajectory.turns:
            begin = at + len(turn.prompt)
            at = begin + len(turn.action)
            turns.append(Turn(turn.prompt, turn.action, tuple(row[begin:at].tolist()), turn.reward, "", ""))
        scored.append(Trajectory(tuple(turns), trajectory.group))
    move(policy, 2)
    recorder = Recorder(policy)
    reference = load_policy(str(tiny))[0].eval() if method.reference else None
    learner = Learner(Accelerator(cpu=True), policy, recorder, Recorder(policy), reference=reference)
    update(learner, method, config, scored, seed=0)
    assert len(recorder.noted) == 1
    return recorder.noted[0]


def theirs(make: Callable[[list[Trajectory]], Any], played: list[Trajectory]) -> Weights:
    """The same of a trainer of TRL: its advantages, its loss, its backward pass."""
    trainer = make(played)
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = 1
    move(trainer.model, 1)
    inputs = trainer._generate_and_score_completions([{"prompt": ""}] * len(played))
    move(trainer.model, 2)
    trainer._compute_loss(trainer.model, inputs).backward()
    return gradients(trainer.model)


def completion(trajectory: Trajectory) -> tuple[list[int], list[int], list[int]]:
    """The first prompt; everything after it; and which of that was sampled."""
    first, *others = trajectory.turns
    ids, mask = list(first.action), [1] * len(first.action)
    for turn in others:
        ids += [*turn.prompt, *turn.action]
        mask += [0] * len(turn.prompt) + [1] * len(turn.action)
    return list(first.prompt), ids, mask


def make_trainer(
    cls: Any, config_cls: Any, tiny: Path, out: Path, **settings: Any
) -> Callable[[list[Trajectory]], Any]:
    """A trainer of TRL that is given the completions and the rewards."""

    def make(played: list[Trajectory]) -> Any:
        prompts, ids, masks = (list(column) for column in zip(*map(completion, played), strict=True))

        class Given(cls):  # type: ignore[misc]
            def _generate(self, _: Any) -> Any:
                if cls is RLOOTrainer:
                    return prompts, ids, [""] * len(ids)
                return prompts, ids, masks, [""] * len(ids), None, {}, None, None

            def _calculate_rewards(self, *_: Any) -> torch.Tensor:
                return torch.tensor([[trajectory.total_reward] for trajectory in played])

        model, tokenizer = load_policy(str(tiny))
        args = config_cls(
            output_dir=str(out),
            per_device_train_batch_size=len(played),
            num_generations=GROUP,
            steps_per_generation=2,  # So that the old log-probabilities are those before the policy moved.
            max_completion_length=LONGEST,
            use_cpu=True,
            bf16=False,
            report_to=[],
            gradient_checkpointing=False,
            **settings,
        )
        return Given(
            model=model,
            reward_funcs=lambda completions, **_: [0.0] * len(completions),
            args=args,
            train_dataset=datasets.Dataset.from_dict({"prompt": ["a"] * 2 * len(played)}),
            processing_class=tokenizer,
        )

    return make


def settings(tiny: Path, out: Path) -> dict[str, Any]:
    """One update from all episodes; microbatches of different lengths; no bound on the gradient."""
    return {
        "model": str(tiny),
        "env": "",
        "out": out,
        "minibatches": 1,
        "microbatch": 100,
        "max_gradient": 1e9,
        "max_action_tokens": LONGEST,
    }


def assert_same(mine: Weights, other: Weights) -> None:
    assert mine.keys() == other.keys()
    assert max(float(gradient.abs().max()) for gradient in mine.values()) > 1e-2
    for name, gradient in mine.items():
        torch.testing.assert_close(
            gradient, other[name], rtol=1e-5, atol=2e-6, msg=lambda text, name=name: f"{name}: {text}"
        )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("mine", "other"),
    [
        ({"aggregation": "sequence"}, {"loss_type": "grpo"}),
        ({"aggregation": "token", "kl": 0.1}, {"loss_type": "bnpo", "beta": 0.1, "use_bias_correction_kl": False}),
        ({"aggregation": "constant", "scale": False}, {"loss_type": "dr_grpo", "scale_rewards": "none"}),
        ({"aggregation": "sequence", "loss": "gspo"}, {"loss_type": "grpo", "importance_sampling_level": "sequence"}),
    ],
    ids=["grpo", "bnpo-kl", "dr_grpo", "gspo"],
)
def test_the_gradient_of_grpo_over_many_turns_is_trls(
    tiny: Path, tmp_path: Path, mine: dict[str, Any], other: dict[str, Any], seed: int
) -> None:
    config = grpo.Config(**settings(tiny, tmp_path), clip_low=0.1, clip_high=0.15, **mine)
    make = make_trainer(
        GRPOTrainer, GRPOConfig, tiny, tmp_path, epsilon=0.1, epsilon_high=0.15, **{"beta": 0.0, **other}
    )
    played = episodes(seed, turns=4)
    assert_same(ours(tiny, config, grpo.method(config), played), theirs(make, played))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kl", [0.0, 0.1])
def test_the_gradient_of_rloo_is_trls(tiny: Path, tmp_path: Path, kl: float, seed: int) -> None:
    config = rloo.Config(**settings(tiny, tmp_path), clip_low=0.2, clip_high=0.3, kl=kl)
    make = make_trainer(RLOOTrainer, RLOOConfig, tiny, tmp_path, epsilon=0.2, epsilon_high=0.3, beta=kl)
    played = episodes(seed, turns=1)  # TRL's RLOO knows no second turn.
    assert_same(ours(tiny, config, rloo.method(config), played), theirs(make, played))
