"""A method in a file of somebody else, as the page on methods shows it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from statistics import quantiles

import pytest
import torch

from baselines.credit.rollouts import rollouts_of
from baselines.policy.models import load_policy
from tests.baselines.credit.random_episodes import random_episodes
from tests.baselines.training.test_method import gradient_of, some_episodes
from tests.third_party.method import quantile_baseline
from textagent_gym.errors import InvalidOptionError

ROOT = Path(__file__).parents[2]
FILE = ROOT / "tests" / "third_party" / "method" / "quantile_baseline.py"
PAGE = ROOT / "docs" / "adding-a-method.md"


def test_the_page_shows_the_very_file_that_is_tested() -> None:
    included = re.findall(r'--8<-- "(.+?)"', PAGE.read_text(encoding="utf-8"))
    assert [ROOT / name for name in included] == [FILE]
    assert FILE.read_text(encoding="utf-8").count("\n") < 80


@pytest.mark.parametrize("quarter", [1, 2, 3])
def test_the_advantage_is_the_return_less_a_quantile_of_the_others(quarter: int) -> None:
    for seed in range(100):
        episodes = random_episodes(seed).trajectories
        advantages = quantile_baseline.quantile_baseline(rollouts_of(episodes), quarter / 4).advantages
        for number, episode in enumerate(episodes):
            others = [
                other.total_reward
                for place, other in enumerate(episodes)
                if other.group == episode.group and place != number
            ]
            expected = episode.total_reward - quantiles(others, n=4, method="inclusive")[quarter - 1]
            turns = len(episode.turns)
            assert advantages[number, :turns] == pytest.approx(expected, abs=1e-9)
            assert not advantages[number, turns:].any()


def test_a_quantile_out_of_range_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="quantile must be from 0 to 1, got 2"):
        quantile_baseline.Config(model="m", env="e", out=Path("o"), quantile=2)


def test_it_learns_from_the_group(tiny: Path, tmp_path: Path) -> None:
    method = quantile_baseline.method(quantile_baseline.Config(model="", env="", out=tmp_path))
    # Against the others' medians 0 and 0 the first episode of group 0 stands out; group 1 has no advantage.
    played = some_episodes([[1.0], [0.0], [0.0], [0.5], [0.5], [0.5]], [0, 0, 0, 1, 1, 1])
    both, metrics = gradient_of(tiny, tmp_path, method, played, max_gradient=1e9)
    alone, _ = gradient_of(tiny, tmp_path, method, played[:3], max_gradient=1e9)
    assert metrics["useful_groups"] == 1
    assert alone.abs().max() > 0
    # The other group teaches nothing, but its tokens count.
    share = sum(episode.sampled for episode in played[:3]) / sum(episode.sampled for episode in played)
    torch.testing.assert_close(both, alone * share, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_it_trains_from_the_command_line(tiny: Path, tmp_path: Path) -> None:
    script = f"import lights, runpy; lights.register(); runpy.run_path({str(FILE)!r}, run_name='__main__')"
    words = f"--model {tiny} --out run --env lights/Lights --set switches=2 max_turns=3 num_tasks=8"
    sizes = "--iterations 1 --groups 2 --group-size 4 --max-action-tokens 5 --quantile 0.25"
    done = subprocess.run(
        [sys.executable, "-c", script, *words.split(), *sizes.split()],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests/third_party/lights")))},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[0])["iteration"] == 1
    assert json.loads((tmp_path / "run" / "config.json").read_text())["quantile"] == 0.25
    load_policy(str(tmp_path / "run" / "policy"))


def test_a_group_of_one_is_refused_before_a_model_is_loaded(tmp_path: Path) -> None:
    config = quantile_baseline.Config(model="/nofolder", env="lights/Lights-v0", out=tmp_path / "run", group_size=1)
    with pytest.raises(ValueError, match="group_size=1"):
        quantile_baseline.run(config)
    assert not (tmp_path / "run").exists()
