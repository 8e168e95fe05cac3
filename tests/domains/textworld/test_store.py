"""Games on disk are whole, are kept within bounds, and may be one's own."""

from __future__ import annotations

import errno
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import gymnasium
import pytest

from textagent_gym.domains.textworld import store
from textagent_gym.domains.textworld.env import CompiledGameWarning
from textagent_gym.domains.textworld.specs import make_spec
from textagent_gym.errors import GenerationError, InvalidOptionError, UnsupportedOperationError

SMALLEST = make_spec("custom", rooms=1, objects=2, quest_length=2)


def test_a_damaged_game_is_made_again(cache: Path) -> None:
    spec = make_spec("custom", rooms=1, objects=2, quest_length=2)
    game = store.load(spec, "train", 0)
    whole = game.story.read_bytes()
    for damage in (b"", b"nonsense"):
        game.story.write_bytes(damage)
        store.forget()
        assert store.load(spec, "train", 0).story.read_bytes() == whole
    assert store.size()[0] == 1
    assert store.clear() == 1
    assert store.size() == (0, 0)


def test_games_that_changed_places_are_noticed(cache: Path) -> None:
    first, second = (store.load(SMALLEST, "train", index).story.parent for index in (0, 1))
    stories = [(folder / "game.z8").read_bytes() for folder in (first, second)]
    first.rename(first.with_name("aside"))
    second.rename(first)
    first.with_name("aside").rename(second)
    store.forget()
    assert [store.load(SMALLEST, "train", index).story.read_bytes() for index in (0, 1)] == stories


def test_a_file_in_the_place_of_a_games_folder_is_replaced(cache: Path) -> None:
    folder = store.load(SMALLEST, "train", 0).story.parent
    shutil.rmtree(folder)
    folder.write_text("a file")
    store.forget()
    assert store.load(SMALLEST, "train", 0).story.is_file()


def test_a_cache_that_cannot_be_written_names_its_path(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, content: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(
            GenerationError, match=r"train/0 cannot be written: No space left on device.*TEXTAGENT_CACHE"
        ):
            store.load(SMALLEST, "train", 0)
    assert not list(cache.rglob(".building-*"))
    blocked = cache / "blocked"
    blocked.write_text("a file")
    monkeypatch.setenv("TEXTAGENT_CACHE", str(blocked))
    with pytest.raises(GenerationError, match="blocked"):
        store.load(SMALLEST, "train", 0)


def test_the_cache_keeps_the_games_that_were_used_last(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "SWEEP", 1)
    monkeypatch.setenv("TEXTAGENT_CACHE_GAMES", "3")
    for index in range(3):
        record = store.load(SMALLEST, "train", index).story.with_name("game.json")
        os.utime(record, (index, index))
    store.forget()
    solution = store.load(SMALLEST, "train", 0).solution  # Used again, so the second is now the oldest.
    store.load(SMALLEST, "train", 3)
    assert store.size()[0] == 3
    assert [store.is_stored(SMALLEST, "train", index) for index in range(4)] == [True, False, True, True]
    assert store.load(SMALLEST, "train", 1).story.is_file()
    assert store.load(SMALLEST, "train", 0).solution == solution
    monkeypatch.setenv("TEXTAGENT_CACHE_GAMES", "many")
    with pytest.raises(InvalidOptionError, match="TEXTAGENT_CACHE_GAMES"):
        store.load(SMALLEST, "train", 4)


@pytest.mark.parametrize("damage", ["empty", "cut", "text", "random", "changed"])
def test_a_damaged_story_of_ones_own_is_an_error_and_not_the_end_of_the_process(
    upstream_game, tmp_path: Path, damage: str
) -> None:
    story = bytearray(Path(upstream_game(make_spec("custom"), 1)[1]).read_bytes())
    changed = bytearray(story)
    changed[len(story) // 2] ^= 0xFF
    content = {
        "empty": b"",
        "cut": bytes(story[: len(story) // 2]),
        "text": b"no story\n" * 1000,
        "random": random.Random(0).randbytes(100_000),
        "changed": bytes(changed),
    }[damage]
    (tmp_path / "a.z8").write_bytes(content)
    (tmp_path / "b.z8").write_bytes(story)
    code = (
        "import gymnasium, sys\n"
        "from textagent_gym.errors import GenerationError\n"
        "env = gymnasium.make('textagent/TextWorld-v0', game='files', path=sys.argv[1])\n"
        "try:\n    env.reset(options={'task_index': 0})\n"
        "except GenerationError as error:\n    print('a.z8' in str(error))\n"
        "print(len(env.reset(options={'task_index': 1})[0]) > 100)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.split() == ["True", "True"], done.stderr


def _load(_: int) -> str:
    return str(store.load(make_spec("custom", rooms=1, objects=2, quest_length=2), "train", 0).solution)


def test_many_processes_may_want_the_same_game_at_once(cache: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        assert len(set(pool.map(_load, range(6)))) == 1
    assert not list(cache.rglob(".building-*"))


def test_ones_own_games_are_played_with_and_without_their_description(upstream_game, tmp_path: Path) -> None:
    _, story = upstream_game(make_spec("custom"), 1)
    shutil.copy(story, tmp_path / "b.z8")
    shutil.copy(Path(story).with_suffix(".json"), tmp_path / "b.json")
    shutil.copy(story, tmp_path / "a.z8")
    env = gymnasium.make("textagent/TextWorld-v0", game="files", path=str(tmp_path)).unwrapped
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, info = env.reset(options={"task": "TextWorld/files/b.z8"})
    assert info["complexity"].solution_length == 4
    for action in env.oracle():
        *_, info = env.step(action)
    assert info["success"]
    with pytest.warns(CompiledGameWarning, match=r"a\.z8 is played as compiled"):
        _, info = env.reset(options={"task_index": 0})
    assert info["complexity"].solution_length is None
    with pytest.raises(UnsupportedOperationError, match="json"):
        env.oracle()
    env.step("take type J keycard from mantle")
