"""Openings that are read once per update, against rows that are read whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import Accelerator

from baselines import grpo
from baselines.policy.microbatches import pack
from baselines.policy.models import load_policy
from baselines.rollout.trajectory import Row, Trajectory, Turn, collate, rows_of
from baselines.training.openings import read_openings
from baselines.training.scoring import batch_log_probs
from baselines.training.update import Learner, update
from tests.baselines.training.test_scoring import FAMILIES, gradients, naive_log_probs
from tests.baselines.training.test_whole_update import Recorder

CPU = torch.device("cpu")
TEMPERATURE = 0.7
OPENINGS = (19, 30, 24, 30)  # Lengths of the groups' first prompts.


def episodes(members: int = 4) -> list[Trajectory]:
    """Groups of episodes that begin equally, side by side, and two that begin as no other."""
    random = np.random.default_rng(1)

    def tokens(count: int) -> tuple[int, ...]:
        return tuple(random.integers(5, 200, count).tolist())

    played = []
    for group, length in enumerate((*OPENINGS, 17, 21)):
        opening = tokens(length)
        for _ in range(members if group < len(OPENINGS) else 1):
            prompts = [opening, *(tokens(int(random.integers(1, 5))) for _ in range(random.integers(0, 3)))]
            actions = [tokens(int(random.integers(1, 6))) for _ in prompts]
            turns = [
                Turn(prompt, action, (0.0,) * len(action), float(random.normal()), "", "")
                for prompt, action in zip(prompts, actions, strict=True)
            ]
            played.append(Trajectory(tuple(turns), group))
    return played


def read_in_microbatches(model: Any, rows: list[Row], tokens: int) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Log-probabilities of all rows, and the gradients of a loss that weighs every token differently."""
    whole = collate(rows)
    weights = torch.arange(whole.ids.numel()).view(whole.ids.shape) / whole.ids.numel()
    found = torch.zeros(whole.ids.shape)
    model.zero_grad()
    openings = read_openings(model, rows, tokens, CPU)
    microbatches = pack([len(row.ids) - openings.length(row) for row in rows], tokens - openings.columns)
    assert len(microbatches) > 3
    for number, places in enumerate(microbatches):
        some = [rows[place] for place in places]
        batch = collate(some)
        opened = openings.before(some, len(some), last=number + 1 == len(microbatches))
        log_probs = batch_log_probs(model, batch, TEMPERATURE, opened)
        width = log_probs.shape[1]
        found[places, :width] = log_probs.detach()
        (log_probs * weights[places, :width]).sum().backward()
    return found, {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("tokens", [96, 140, 260])
@pytest.mark.parametrize("family", ["llama", "gpt2", "cohere"])
def test_log_probs_and_gradients_are_those_of_rows_that_are_read_whole(family: str, tokens: int) -> None:
    torch.manual_seed(0)
    model = FAMILIES[family]().eval()
    rows = rows_of(episodes())
    # Smaller budgets have space for two of the four openings.
    assert read_openings(model, rows, tokens, CPU).tokens == {96: 18 + 23, 140: 18 + 29, 260: 18 + 29 + 23 + 29}[tokens]
    mine, my_gradients = read_in_microbatches(model, rows, tokens)
    expected = naive_log_probs(model, collate(rows))
    torch.testing.assert_close(mine, expected, rtol=1e-6, atol=2e-6)
    for name, gradient in gradients(model, expected).items():
        largest = max(1.0, float(gradient.abs().max()))
        torch.testing.assert_close(my_gradients[name], gradient, rtol=1e-6, atol=2e-6 * largest)


def test_layers_that_forget_and_activations_that_are_computed_again_share_nothing(tiny: Path) -> None:
    rows = rows_of(episodes())
    assert read_openings(FAMILIES["gemma2"](), rows, 1_000, CPU).columns == 0
    model = load_policy(str(tiny))[0].train()
    assert read_openings(model, rows, 1_000, CPU).columns > 0
    model.gradient_checkpointing_enable()
    assert read_openings(model, rows, 1_000, CPU).columns == 0


def test_rows_that_begin_differently_share_nothing(tiny: Path) -> None:
    model = load_policy(str(tiny))[0]
    assert read_openings(model, rows_of(episodes(members=1)), 1_000, CPU).before([], 1) is None


def test_an_update_reads_each_opening_once_and_counts_its_padding(tiny: Path, tmp_path: Path) -> None:
    policy = load_policy(str(tiny))[0]
    read: list[torch.Tensor] = []
    policy.get_input_embeddings().register_forward_pre_hook(lambda _, inputs: read.append(inputs[0]))
    config = grpo.Config(model=str(tiny), env="", out=tmp_path, minibatches=1, microbatch=300)
    played = [trajectory for trajectory in episodes() if trajectory.group < len(OPENINGS)]
    learner = Learner(Accelerator(cpu=True), policy, Recorder([policy]), Recorder([]))
    metrics = update(learner, grpo.method(config), config, played, seed=0)
    assert [tuple(ids.shape) for ids in read[:3]] == [(2, 29), (1, 23), (1, 18)]
    shared = sum(length - 1 for length in OPENINGS)
    tokens = sum(len(trajectory.ids) for trajectory in played) - 3 * shared
    assert metrics["padding"] == pytest.approx(1 - tokens / sum(ids.numel() for ids in read))
    assert 0 < metrics["padding"] <= 0.05
