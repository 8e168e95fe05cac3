"""ALFWorld as an environment, and its data."""

from __future__ import annotations

import http.server
import pickle
import threading
import warnings
import zipfile
from functools import partial
from pathlib import Path

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import RecordEpisodeStatistics

from textagent_gym.domains.alfworld import data as alfworld_data
from textagent_gym.domains.alfworld.data import COUNTS, DIGESTS, OfficialGames, find_games
from textagent_gym.domains.alfworld.download import download
from textagent_gym.domains.alfworld.game import TASK_TYPES
from textagent_gym.errors import InvalidOptionError, MissingDataError, UnknownTaskError

ID = "textagent/ALFWorld-official-v0"


@pytest.fixture
def make(folder: str):
    return partial(gymnasium.make, ID, data=folder, split="valid_seen", disable_env_checker=True)


def solve(env: gymnasium.Env[str, str]) -> list[float]:
    rewards, ended = [], False
    while not ended:
        _, reward, ended, truncated, info = env.step(env.unwrapped.oracle()[0])  # type: ignore[attr-defined]
        assert not truncated
        assert info["valid_action"]
        rewards.append(reward)
    assert info["success"]
    return rewards


def test_gymnasiums_checker_finds_nothing_to_warn_of(make) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make().unwrapped)


def test_instructions_use_the_words_of_the_game() -> None:
    env = gymnasium.make("textagent/ALFWorld-v0", dialect="put", instructions="observation")
    observation, info = env.reset(seed=0)
    assert observation.startswith(info["instructions"])
    assert "put OBJECT in/on RECEPTACLE" in observation
    assert "move OBJECT" not in observation


@pytest.mark.parametrize("name", TASK_TYPES.values())
def test_every_type_is_won_by_the_oracle_and_returns_one_at_every_density(make, name: str) -> None:
    for density in (0.0, 0.5, 1.0):
        env = make(task_types=(name,), reward_density=density)
        observation, info = env.reset(seed=3)
        assert "Your task is to: " in observation
        assert "Welcome" not in observation
        assert info["complexity"].exact
        rewards = solve(env)
        assert sum(rewards) == 1.0
        assert len(rewards) == info["complexity"].solution_length
        assert min(rewards) >= 0.0


def test_milestones_are_reached_one_after_the_other(make) -> None:
    env = make(task_types=("heat",), reward_density="dense")
    env.reset(options={"task_index": 0})
    assert progress_of(env) == [0.25, 0.5, 0.5, 0.75, 0.75, 1.0]


def progress_of(env: gymnasium.Env[str, str]) -> list[float]:
    """Progress after each action of the optimal plan."""
    plan = env.unwrapped.oracle()  # type: ignore[attr-defined]
    return [env.step(command)[-1]["progress"] for command in plan]


def test_looking_at_something_has_milestones_for_the_thing_and_for_the_lamp(make) -> None:
    env = make(task_types=("look",), reward_density="dense")
    env.reset(options={"task_index": 0})
    # The desk, on which both are; the lamp that is used; the thing that is held.
    assert progress_of(env) == [0.5, 0.75, 1.0]
    env.reset(options={"task_index": 0})
    desk, lamp, thing = env.unwrapped.oracle()
    assert [env.step(command)[-1]["progress"] for command in (desk, thing, lamp)] == [0.5, 0.75, 1.0]


def test_the_second_of_two_things_has_the_milestones_of_the_first(make) -> None:
    env = make(task_types=("two",), reward_density="dense")
    env.reset(options={"task_index": 0})
    assert progress_of(env) == pytest.approx([2 / 6, 3 / 6, 3 / 6, 4 / 6, 4 / 6, 5 / 6, 5 / 6, 1.0])


def test_a_time_out_returns_less_than_a_win(make) -> None:
    env = make(reward_density="dense", max_turns=3, task_types=("heat",))
    env.reset(seed=0)
    total, truncated = 0.0, False
    while not truncated:
        _, reward, terminated, truncated, info = env.step(env.unwrapped.oracle()[0])
        assert not terminated
        total += reward
    assert 0.0 < total < 1.0
    assert not info["success"]


def test_a_snapshot_brings_everything_back(make) -> None:
    env = make(infos=("admissible_actions",)).unwrapped
    env.reset(seed=1)
    plan = env.oracle()
    env.step(plan[0])
    token = pickle.loads(pickle.dumps(env.snapshot()))
    expected = [env.step(command) for command in plan[1:]]
    for _ in range(2):
        env.restore(token)
        assert [env.step(command) for command in plan[1:]] == expected


@pytest.mark.slow  # It needs the extra `reference`, which `make test` does not install.
def test_the_reference_engine_says_the_same(make) -> None:
    pytest.importorskip("alfworld", reason='needs: pip install "textagent-gym[reference]"')
    episodes = []
    for engine in ("native", "reference"):
        env = make(engine=engine, observation_format="upstream", infos=("admissible_actions",), reward_density="dense")
        steps = [env.reset(options={"task_index": 2})]
        for command in ("dance", "look", *env.unwrapped.oracle()):
            steps.append(env.step(command))
        episodes.append(steps)
    assert episodes[0] == episodes[1]
    assert episodes[0][0][0].startswith("-= Welcome to TextWorld, ALFRED! =-")
    env.reset(options={"task_index": 2})
    env.step("look")
    token = env.unwrapped.snapshot()  # Upstream cannot save a state: what was played is played again.
    after = env.step("inventory")
    env.unwrapped.restore(token)
    assert env.step("inventory") == after


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("dance", "no command"),
        ("go to moon 1", "There is no moon 1"),
        ("open countertop 1", "You are not at the countertop 1"),
        ("take apple 1 from countertop 1", "not at the countertop 1"),
        ("go to", "What to go to?"),
        ("use", "Use what?"),
        ("examine apple 1", "neither"),
        ("slice", "hold a knife"),
    ],
)
def test_informative_feedback_says_why_nothing_happened(make, command: str, said: str) -> None:
    answers = []
    for feedback in ("upstream", "informative"):
        env = make(feedback=feedback, task_types=("heat",))
        env.reset(options={"task_index": 0})
        observation, _, _, _, info = env.step(command)
        assert not info["valid_action"]
        answers.append(observation)
    assert answers[0] == "Nothing happens."
    assert said in answers[1]


def test_gymnasiums_wrappers_and_vectors_work(make, folder: str) -> None:
    env = RecordEpisodeStatistics(make(reward_density="dense"))
    env.reset(seed=0)
    ended = False
    while not ended:
        _, _, ended, _, info = env.step(env.unwrapped.oracle()[0])
    assert info["episode"]["r"] == pytest.approx(1.0)
    for mode in ("sync", "async"):
        many = gymnasium.make_vec(ID, 2, mode, data=folder, split="valid_seen")
        observations, _ = many.reset(seed=1)
        assert all("Your task is to" in text for text in observations)
        assert many.step(("look", "inventory"))[0][1] == "You are not carrying anything."
        many.close()


def test_the_splits_are_the_official_ones(games: OfficialGames) -> None:
    for split, digest in DIGESTS.items():
        ids = games.ids(split)
        assert len(ids) == len(set(ids)) == COUNTS[split]
        assert list(ids) == sorted(ids)
        assert games.content_hash(split) == digest


def test_ids_lead_back_to_their_task(make) -> None:
    tasks = make().unwrapped.tasks
    task = tasks.task("valid_seen", 7)
    assert tasks.find(task.id) == task
    for wrong in ("ALFWorld/valid_seen/nothing", "ALFWorld/test/x", "TextWorld/custom/train/0", ""):
        with pytest.raises(UnknownTaskError):
            tasks.find(wrong)
    with pytest.raises(UnknownTaskError):
        tasks.task("valid_seen", 140)


@pytest.mark.parametrize(
    "wrong",
    [
        {"task_types": ("fly",)},
        {"engine": "fast"},
        {"feedback": "loud"},
        {"dialect": "throw"},
        {"split": "test"},
        {"engine": "reference", "dialect": "put"},
    ],
)
def test_a_wrong_option_says_what_exists(make, wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidOptionError):
        make(**wrong)


def test_missing_games_are_said_to_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    with pytest.raises(MissingDataError, match="textagent-gym data alfworld"):
        gymnasium.make(ID)


@pytest.fixture
def release(games: OfficialGames, tmp_path: Path) -> Path:
    """An archive in the form of the release, with two games of a split, one that is not played, and something else."""
    path = tmp_path / "web" / "release.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        first, second = games.ids("valid_seen")[:2]
        for game_id in (first, second):
            text = alfworld_data.json.dumps(games.read(game_id))
            archive.writestr(f"json_2.1.1/{game_id}/game.tw-pddl", text)
            archive.writestr(f"json_2.1.1/{game_id}/traj_data.json", "{}")
        sliced = "valid_seen/pick_and_place_simple-AppleSliced-None-Fridge-1/trial_T1/game.tw-pddl"
        archive.writestr(f"json_2.1.1/{sliced}", text)
        archive.writestr("../../evil/game.tw-pddl", "evil")
    return path


def test_a_release_is_downloaded_checked_and_played(games: OfficialGames, release: Path, tmp_path: Path) -> None:
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(release.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        target = tmp_path / "games"
        lines = download(target, f"{address}/release.zip")
        with pytest.raises(MissingDataError, match="cannot be fetched"):
            download(tmp_path / "other", f"{address}/nothing.zip")
        with pytest.raises(MissingDataError, match="no archive"):
            download(tmp_path / "other", f"{address}/")
        server.shutdown()
    assert lines == [
        "valid_seen: 2 games, the release has 140, not the games compared (another release?)",
        f"They are in {target}.",
    ]
    assert not list(tmp_path.rglob("evil")) or all(target in path.parents for path in tmp_path.rglob("evil"))
    assert not list(target.glob(".download-*"))
    unpacked = find_games(str(target))
    assert unpacked.ids("valid_seen") == games.ids("valid_seen")[:2]
    env = gymnasium.make(ID, data=str(target), split="valid_seen")
    env.reset(options={"task_index": 1})
    solve(env)
