"""The entries that the repository carries."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import astuple
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import pytest

from baselines import grpo
from baselines.command_line import read_config
from benchmarks.reference_entries import ENTRIES, SUITES, TINY, Settings, main, players
from conftest import DAY
from tests.domains.alfworld.conftest import folder as official_games  # noqa: F401 (entries of its games need it)
from tests.domains.scienceworld.conftest import simulator  # noqa: F401 (entries of ScienceWorld need it)
from textagent_gym.evaluation import SUITES as PUBLISHED
from textagent_gym.evaluation import load_result, suite_of, verify_result
from textagent_gym.evaluation.results import digests, summary_of
from textagent_gym.evaluation.statistics import mean_interval
from textagent_gym.leaderboard import build, check_entry, find_results
from textagent_gym.leaderboard.trust import note_trust, read_ledger

FOLDERS = find_results(ENTRIES)
NAMES = frozenset(PUBLISHED)
"""Suites of this package; tests add others."""
CEILINGS = {
    **dict.fromkeys(("textcraft-agentgym-v1", "textcraft-agentgym-v2"), 270 / 274),
    **dict.fromkeys(("babyai-agentgym-v1", "babyai-agentgym-v2"), 115 / 120),
}
"""Success of the oracle where tasks need more turns than the protocol has: of Minecraft's goals, three need more than
20 and one more than 30; for five of BabyAI's tasks, no plan of 20 actions is found."""
LARGEST = 60_000_000
"""Bytes of all entries. It is text, of which a clone carries less than half: git compresses it."""
SAMPLES = {
    "swe": 23,
    **{"scienceworld-core": 11, "scienceworld-agentgym": 11},
    **{"scienceworld": 7, "textworld-harder": 7},
    **{"babyai-core": 7, "babyai-state-size": 7, "babyai-solution-length": 7, "babyai-agentgym": 7},
}
"""Distance between the episodes of a result that are played again, in suites that would take minutes, by the beginning
of their names; in software engineering always the same ones, and elsewhere others each day. It has no divisor in common
with the numbers of ScienceWorld's sorts of tasks, 30 and 23, which take turns, nor with that of the tasks of a level of
BabyAI's, 3."""


def get_ready(suite: str, request: pytest.FixtureRequest) -> None:
    """Skip the test where what a suite needs is not on this machine."""
    if suite.startswith("scienceworld"):
        request.getfixturevalue("simulator")
    if suite.startswith("alfworld-official"):
        folder = request.getfixturevalue("official_games")
        request.getfixturevalue("monkeypatch").setenv("ALFWORLD_DATA", folder)


def name_of(folder: Path) -> str:
    return folder.relative_to(ENTRIES).as_posix()


@pytest.mark.parametrize("suite", [*SUITES, *TINY])
def test_every_agent_that_can_play_has_an_entry(suite: str, request: pytest.FixtureRequest) -> None:
    get_ready(suite, request)
    expected = {ENTRIES / suite / player for player in players(suite_of(suite))}
    assert expected <= set(FOLDERS)


def test_every_suite_has_entries_but_those_that_need_other_data() -> None:
    elsewhere = {"alfworld-official-v1"}  # Half of its games, those in unseen rooms, were not at hand.
    assert NAMES - {*SUITES, *TINY} == elsewhere


def test_all_entries_are_small_enough_for_a_repository() -> None:
    assert sum(path.stat().st_size for path in ENTRIES.rglob("*") if path.is_file()) < LARGEST


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_an_entry_lies_where_it_belongs(folder: Path) -> None:
    result = load_result(folder)
    assert folder.parent.name == result.suite.name
    assert folder.name.startswith(result.agent) or (folder.name == "tiny" and result.agent.startswith("model:"))


def distance(suite: str) -> int:
    """See `SAMPLES`; 0 for a suite of which every episode is played again, as of those of a minute."""
    return 0 if "-quick-" in suite else next((each for name, each in SAMPLES.items() if suite.startswith(name)), 0)


def without_version(suite: str) -> str:
    return suite.rpartition("-v")[0]


@pytest.mark.slow
@pytest.mark.parametrize("suite", sorted({without_version(folder.parent.name) for folder in FOLDERS}))
def test_the_entries_of_a_suite_are_right(suite: str, request: pytest.FixtureRequest) -> None:
    """Those of all its versions in one process, which makes and plans every task once."""
    get_ready(suite, request)
    today = int(os.environ[DAY])
    for folder in FOLDERS:
        name = folder.parent.name
        if without_version(name) != suite:
            continue
        if folder.name == "tiny":
            entry = check_entry(folder, model=TINY[name][0] / "policy")
            assert entry.trust == ("replayed", "recomputed") == read_ledger(ENTRIES)[entry.digest]
        elif every := distance(name):
            # Tasks of software engineering are made by running tests: those that other tests have made take no time.
            offset = 0 if suite.startswith("swe") else today % every
            assert verify_result(folder, every=every, offset=offset).mismatches == (), folder
        else:
            expected = "replayed, texts may differ" if suite.startswith("swe") else "replayed"
            assert check_entry(folder).trust == (expected,), folder


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_the_oracle_is_the_ceiling_and_random_play_the_floor(folder: Path) -> None:
    result = load_result(folder)
    share = sum(episode.success for episode in result.episodes) / len(result.episodes)
    if result.agent == "oracle":
        assert share == CEILINGS.get(result.suite.name, 1.0)
    if result.agent == "random":
        assert share == 0.0


@pytest.mark.slow
def test_a_suite_that_is_played_anew_gives_the_same_files_and_leaves_the_others_alone(tmp_path: Path) -> None:
    (tmp_path / "results" / "others").mkdir(parents=True)
    suites = ("textcraft-quick-v2", "babyai-tiny-v1")
    for _ in range(2):
        main(Settings(out=tmp_path / "results", suites=suites))
    assert {path.name for path in tmp_path.iterdir()} == {"results"}
    assert {path.name for path in (tmp_path / "results").iterdir()} == {*suites, "others", "trust.json"}
    for folder in find_results(tmp_path / "results"):
        assert load_result(folder) == load_result(ENTRIES / folder.relative_to(tmp_path / "results"))


def test_summaries_are_computed_anew_from_the_episodes_and_keep_what_was_proven(tmp_path: Path) -> None:
    shutil.copytree(ENTRIES / "textcraft-tiny-v2", tmp_path / "textcraft-tiny-v2")
    tiny = tmp_path / "textcraft-tiny-v2" / "tiny"
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    (tiny / "summary.json").write_text("{}")
    note_trust(tmp_path, sha256(b"{}").hexdigest(), ["replayed", "recomputed"])
    main(Settings(out=tmp_path, suites=("textcraft-tiny-v2",), summaries=True))
    assert {path: path.read_bytes() for path in files} == files
    assert read_ledger(tmp_path) == {sha256(files[tiny / "summary.json"]).hexdigest(): ("replayed", "recomputed")}


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_the_summary_of_an_entry_is_that_of_its_episodes(folder: Path) -> None:
    result = load_result(folder)
    there = json.loads((folder / "summary.json").read_text())
    assert there.pop("files") == digests(folder, result.suite)
    assert there == summary_of(result)


@pytest.mark.parametrize("suite", TINY)
def test_a_tiny_policy_plays_the_tasks_of_its_recipe(suite: str) -> None:
    run, sampling = TINY[suite]
    recipe = read_config(grpo.Config, ["--config", f"{run.name}/tiny/grpo.yaml"])
    (part,) = suite_of(suite).parts
    of_training = {"num_tasks", "reward_density"}  # They change nothing of what a policy reads.
    settings = {name: value for name, value in recipe.set.items() if name not in of_training}
    assert (recipe.env, settings) == (part.env, {**part.kwargs, "max_turns": part.max_turns})
    assert (recipe.max_action_tokens, recipe.hints) == (sampling.max_action_tokens, sampling.hints)
    assert recipe.eval_tasks == part.tasks


DENSITIES = [folder for folder in FOLDERS if "-reward-density-" in folder.parent.name]


@pytest.mark.parametrize("folder", DENSITIES, ids=name_of)
def test_the_density_of_rewards_changes_returns_alone(folder: Path) -> None:
    sparse, half, dense = load_result(folder).evaluations.values()
    played = [[(e.task, e.actions, e.success) for e in evaluation.episodes] for evaluation in (sparse, half, dense)]
    assert played[0] == played[1] == played[2]
    returns = [sum(e.total_reward for e in evaluation.episodes) for evaluation in (sparse, half, dense)]
    assert returns[0] == sum(e.success for e in sparse.episodes)
    if folder.name == "admissible-random":
        assert min(returns[1:]) > returns[0]


def test_views_of_babyai_differ_in_the_number_of_actions_and_in_nothing_else_that_is_measured() -> None:
    sizes = []
    for evaluation in load_result(ENTRIES / "babyai-action-size-v1" / "oracle").evaluations.values():
        measured = [episode.complexity or {} for episode in evaluation.episodes]
        assert {(each["state_size"], each["solution_length"], each["exact"]) for each in measured} == {(8, 3, True)}
        sizes.append(mean_interval([each["action_size"] for each in measured]))
    assert all(fewer.high < more.low for fewer, more in pairwise(sizes))


@pytest.mark.parametrize(
    ("games", "missing"),
    [
        ("no games", "ALFWorld's official games are not in .*textagent-gym data alfworld"),
        ("too few", "part valid_seen has 140 tasks, and split 'valid_seen' holds 0 here: data are missing"),
    ],
)
def test_an_entry_whose_data_are_not_here_is_left_out_and_says_what_is_missing(
    games: str, missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / games))
    (tmp_path / "too few" / "valid_seen").mkdir(parents=True)
    for suite in ("alfworld-official-seen-v1", "textcraft-quick-v2"):
        shutil.copytree(ENTRIES / suite / "oracle", tmp_path / "results" / suite)
    entries, left_out = build(tmp_path / "results", tmp_path / "site", episodes=0)
    assert [entry.result.suite.name for entry in entries] == ["textcraft-quick-v2"]
    ((folder, (reason,)),) = map(astuple, left_out)
    assert folder == "alfworld-official-seen-v1"
    assert re.match(f"it cannot be checked here: {missing}", reason)
