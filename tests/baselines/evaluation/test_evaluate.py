"""Evaluation of a policy, and that its records hold when they are played again."""

from __future__ import annotations

from pathlib import Path

import pytest

from baselines.evaluation.evaluate import evaluate_policy
from baselines.policy.chat import ChatFormat
from baselines.policy.models import load_policy
from textagent_gym.evaluation import load, replay, save

ENV, KWARGS = "lights/Lights-v0", {"switches": 3, "max_turns": 4}


def policy(tiny: Path, folder: Path, *, system: str = "", context: int | None = None) -> str:
    model, tokenizer = load_policy(str(tiny))
    if context is not None:
        model.config.max_position_embeddings = context
    model.save_pretrained(folder)
    ChatFormat(tokenizer, system).save(folder)
    return str(folder)


def test_a_policy_is_evaluated_with_the_system_message_it_was_trained_with(tiny: Path, tmp_path: Path) -> None:
    folder = policy(tiny, tmp_path, system="Press switches.")
    _, tokenizer = load_policy(folder)
    for system, expected in (
        (None, "<|system|>Press switches.\n\nEach turn,"),
        ("Go.", "<|system|>Go.\n\nEach turn,"),
        ("", "<|system|>Each turn,"),
    ):
        _, collection = evaluate_policy(folder, ENV, KWARGS, tasks=1, max_action_tokens=3, system=system)
        assert tokenizer.decode(collection.trajectories[0].ids).startswith(expected)


@pytest.mark.parametrize("context", [None, 90])
def test_records_hold_when_they_are_played_again(tiny: Path, tmp_path: Path, context: int | None) -> None:
    folder = policy(tiny, tmp_path / "policy", context=context)
    evaluation, collection = evaluate_policy(folder, ENV, KWARGS, tasks=6, episodes=2, slots=4, max_action_tokens=4)
    cut = [trajectory.overflow for trajectory in collection.trajectories]
    assert any(cut) == (context is not None)
    for record, overflow in zip(evaluation.episodes, cut, strict=True):
        assert (record.terminated or record.truncated) != overflow
    assert all(record.complexity["state_size"] == 3 for record in evaluation.episodes)
    save(evaluation, tmp_path / "result.jsonl")
    assert replay(load(tmp_path / "result.jsonl")) == []


def test_equal_seeds_give_equal_evaluations(tiny: Path) -> None:
    def actions(seed: int, slots: int) -> list[tuple[str, ...]]:
        evaluation, _ = evaluate_policy(
            str(tiny), ENV, KWARGS, tasks=3, episodes=2, slots=slots, max_action_tokens=4, seed=seed
        )
        return [record.actions for record in evaluation.episodes]

    assert actions(0, 6) == actions(0, 2)
    assert actions(0, 6) != actions(1, 6)
    assert len(set(actions(0, 6))) == 6
