"""Tasks as files of the reference implementation, from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.program import run
from textagent_gym.evaluation import evaluate


@pytest.mark.slow  # It needs the extra `reference`, which `make test` does not install.
def test_exported_games_are_upstreams(tmp_path: Path) -> None:
    alfred = pytest.importorskip("alfworld.agents.environment.alfred_tw_env")
    assert run("export", "ALFWorld", "--tasks", "3", "--out", str(tmp_path)).returncode == 0
    config = {
        "env": {"goal_desc_human_anns_prob": 0, "task_types": [1, 2, 3, 4, 5, 6]},
        "dataset": {"data_path": str(tmp_path / "train"), "num_train_games": -1},
    }
    theirs = alfred.AlfredTWEnv(config, train_eval="train")
    assert len(theirs.game_files) == 3
    ours = evaluate(
        "textagent/ALFWorld-official-v0", "expert", tasks=9, kwargs={"data": str(tmp_path), "split": "train"}
    )
    assert [episode.success for episode in ours.episodes] == [True] * 3
