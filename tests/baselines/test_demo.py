"""The main job, at a tiny size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from baselines import demo
from textagent_gym.evaluation import load, replay

TINY = demo.Config(
    train_tasks=2, test_tasks=2, test_episodes=2, random_episodes=4, demos=2, sft_epochs=1.0, rl_iterations=1
)


@pytest.mark.slow
def test_a_run_leaves_everything_and_is_not_done_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = replace(TINY, out=tmp_path / "run")
    page = demo.run(config)
    text = page.read_text()
    for said in ("random", "SFT + RL", "oracle", "data:image/png;base64,", "Possible actions: "):
        assert said in text
    for name in ("curves.png", "demos.jsonl", "sft/fine-tuning/metrics.jsonl", "grpo/metrics.jsonl", "config.json"):
        assert (config.out / name).stat().st_size > 0
    for name, episodes in (("random", 4), ("sft", 4), ("sft+rl", 4), ("oracle", 2)):
        result = load(config.out / f"{name}.jsonl")
        assert len(result.episodes) == episodes
        assert replay(result) == []
    policy = config.out / "grpo" / "policy" / "model.safetensors"
    trained = policy.stat().st_mtime_ns
    assert demo.run(config) == page
    assert policy.stat().st_mtime_ns == trained
    with pytest.raises(ValueError, match=r"other settings \(seed\)"):
        demo.run(replace(config, seed=1))
    assert "2 held-out games" in capsys.readouterr().out
