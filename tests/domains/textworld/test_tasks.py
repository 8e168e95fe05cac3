"""Ids lead to games, and a split says when it has few of them."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from textagent_gym import repetition
from textagent_gym.domains.textworld import store
from textagent_gym.domains.textworld.generation import content_hash, draw
from textagent_gym.domains.textworld.specs import GUIDE_SPLIT, make_spec
from textagent_gym.domains.textworld.tasks import TextWorldTasks
from textagent_gym.errors import UnknownTaskError
from textagent_gym.repetition import RepetitionWarning


def test_a_small_split_says_how_many_games_it_has(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The games are drawn and not compiled, which takes the most and changes nothing here.
    monkeypatch.setattr(repetition, "IN_A_ROW", 8)
    spec = make_spec("coin_collector", level=1)
    played = store.load(spec, "train", 0)
    contents = [content_hash(draw(spec, "train", index)) for index in range(50)]
    assert played.content == contents[0]
    monkeypatch.setattr(store, "load", lambda spec, split, index, **_: replace(played, content=contents[index]))
    tasks = TextWorldTasks(spec)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RepetitionWarning)
        for index in (*range(50), *range(50)):
            tasks.task("train", index)
    assert len(caught) == 1
    different = int(re.search(r"are (\d+) different", str(caught[0].message))[1])  # type: ignore[index]
    assert 3 <= different <= len(set(contents)) < 30


def test_a_small_split_of_rooms_says_so_and_a_large_one_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from textagent_gym.domains.alfworld.generator import RoomSpec
    from textagent_gym.domains.alfworld.tasks import RoomTasks

    monkeypatch.setattr(repetition, "IN_A_ROW", 2)
    small = RoomSpec(receptacles=3, objects=1, candidates=1, room="bathroom", task_types=("pick",))
    for spec, warned in ((RoomSpec(), []), (small, [RepetitionWarning])):
        tasks = RoomTasks(spec)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for index in range(30 if not warned else 300):
                tasks.task("train", index)
        assert [warning.category for warning in caught] == warned


def test_ids_lead_back_to_their_task() -> None:
    tasks = TextWorldTasks(make_spec("custom", rooms=1, objects=2, quest_length=2))
    task = tasks.task("train", 1)
    assert task.id == "TextWorld/v1/custom-w1-o2-q2/train/1"
    assert tasks.find(task.id) == task
    wrong_ids = ("TextWorld/v1/custom-w2-o2-q2/train/1", "TextWorld/v1/custom-w1-o2-q2/train/01", "x", task.id + "/")
    for wrong in (*wrong_ids, task.id.replace("/v1/", "/v0/")):
        with pytest.raises(UnknownTaskError):
            tasks.find(wrong)
    with pytest.raises(UnknownTaskError):
        tasks.task(GUIDE_SPLIT, 100)
