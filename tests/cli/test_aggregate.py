"""Several runs of one method."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import gymnasium
import pytest

from tests.cli.program import call
from tests.evaluation.results import LIGHTS, SUITE
from textagent_gym.agents import make_agent
from textagent_gym.evaluation import (
    SUITES,
    evaluate,
    evaluate_suite,
    interquartile_mean,
    load,
    load_result,
    save,
    summarize,
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Results of one suite; the agents stand for policies of four seeds."""
    folder = tmp_path_factory.mktemp("runs")
    agents = ("random", "admissible-random", "admissible-random", "oracle")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SUITES, SUITE.name, SUITE)
        for number, agent in enumerate(agents):
            evaluate_suite(SUITE, agent, folder / str(number))
    return [folder / str(number) for number in range(len(agents))]


@pytest.fixture(autouse=True)
def _suite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SUITES, SUITE.name, SUITE)


def rows(printed: str, measure: str) -> list[str]:
    """The numbers of a measure, row by row: that of all parts first."""
    return re.findall(rf"{measure} +(.*?) *\n", printed)


class Tempered:
    """The random agent with a setting."""

    name = "tempered"

    def __init__(self, temperature: float, env: gymnasium.Env[str, str]) -> None:
        self.details = {"temperature": temperature, "base_url": f"http://{temperature}"}
        player = make_agent("random", env)
        self.reset, self.act = player.reset, player.act


def test_settings_in_which_agents_of_one_name_differ_are_named(tmp_path: Path) -> None:
    for number, temperature in enumerate((0.0, 0.0, 1.0)):
        evaluate_suite(SUITE, partial(Tempered, temperature), tmp_path / str(number))
    same, other = (call("aggregate", str(tmp_path / "0"), str(tmp_path / each)).stdout for each in ("1", "2"))
    assert "only you know" not in same
    assert "Runs of agents that differ in temperature: only you know that they are of one method." in other


def test_runs_are_values_and_parts_are_strata(runs: list[Path]) -> None:
    done = call("aggregate", *map(str, runs))
    assert done.returncode == 0, done.stderr
    assert "4 runs in lights-test-v1" in done.stdout
    assert "Runs of 3 agents (random, admissible-random, oracle): only you know" in done.stdout
    assert "only you know" not in call("aggregate", str(runs[1]), str(runs[2])).stdout
    for measure, name in (("success", "success"), ("return", "total_reward"), ("turns", "turns")):
        values = [
            [getattr(summarize(load_result(run).evaluations[part.name].episodes), name).mean for run in runs]
            for part in SUITE.parts
        ]
        means = [sum(run) / len(run) for run in zip(*values, strict=True)]
        shown = rows(done.stdout, measure)
        assert len(shown) == 3
        expected = f"{sum(means) / 4:.3f}", f"{min(means):.3f} to {max(means):.3f}", str(interquartile_mean(values))
        assert tuple(re.split(r"  +", shown[0])) == expected
        assert shown[1].endswith(str(interquartile_mean(values[:1])))


def test_a_result_file_has_one_part(tmp_path: Path) -> None:
    honest = evaluate(LIGHTS, "admissible-random", tasks=4)
    for number in range(2):
        save(honest, tmp_path / f"{number}.jsonl")
    done = call("aggregate", str(tmp_path / "0.jsonl"), str(tmp_path / "1.jsonl"))
    assert "2 runs in lights/Lights-v0, split train" in done.stdout
    assert len(rows(done.stdout, "success")) == 1
    broken = replace(honest.episodes[0], broken="the server is gone", terminated=False, truncated=True, success=False)
    save(replace(honest, episodes=(broken, *honest.episodes[1:])), tmp_path / "2.jsonl")
    done = call("aggregate", str(tmp_path / "0.jsonl"), str(tmp_path / "2.jsonl"))
    assert "Broken episodes, which do not count: 1." in done.stdout
    save(replace(honest, episodes=(broken,) * 4), tmp_path / "3.jsonl")
    save(replace(honest, episodes=(honest.episodes[0],) * 4), tmp_path / "4.jsonl")
    done = call("aggregate", str(tmp_path / "3.jsonl"), str(tmp_path / "4.jsonl"))
    assert (done.returncode, "a run has no episodes to summarize (4 whose world broke)" in done.stderr) == (2, True)


def test_names_that_look_alike_are_shown_as_codes_and_long_ones_are_cut(tmp_path: Path) -> None:
    honest = evaluate(LIGHTS, "oracle", tasks=2)
    for number, name in enumerate(("oracle", "\u043eracle", "x" * 10_000)):
        save(replace(honest, agent=name), tmp_path / f"{number}.jsonl")
    files = [str(tmp_path / f"{number}.jsonl") for number in range(3)]
    told = call("aggregate", *files).stdout
    assert f"Runs of 3 agents (oracle, \\u043eracle, {'x' * 80}\u2026)" in told
    told = " ".join(call("compare", *files[:2]).stdout.split())
    assert "\\u043eracle (second) against oracle (first)" in told
    assert len(call("compare", *files[1:]).stdout) < 3000


def test_a_part_that_broke_as_a_whole_is_compared_with_nothing(runs: list[Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(runs[0], tmp_path / "r"))
    path = folder / f"{SUITE.parts[1].name}.jsonl"
    part = load(path)
    broken = [replace(each, broken="gone", terminated=False, truncated=True, success=False) for each in part.episodes]
    save(replace(part, episodes=tuple(broken)), path)
    done = call("compare", str(folder), str(runs[3]))
    assert done.returncode == 0, done.stderr
    cells = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.strip()}
    assert (cells["all"][0], cells[SUITE.parts[1].name]) == ("4", ["0"])


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("0", "one run says nothing of others: name the results of two runs at least"),
        ("00", "a result is named twice: each run counts once"),
        ("0x", "x.jsonl is of lights/Lights-v0, split train, and"),
    ],
)
def test_what_is_no_runs_of_one_method_is_refused(names: str, said: str, runs: list[Path]) -> None:
    folder = runs[0].parent
    save(evaluate(LIGHTS, "random", tasks=1), folder / "x.jsonl")
    done = call("aggregate", *(str(folder / ("x.jsonl" if name == "x" else name)) for name in names))
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
