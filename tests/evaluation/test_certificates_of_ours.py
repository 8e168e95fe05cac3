"""Our own worlds keep their promises, and the page of certificates says what is found."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from benchmarks.certificates import (
    KNOWN,
    LARGE,
    NEEDS,
    OUT,
    SORTS,
    STRINGS,
    Row,
    certified_on,
    page,
    read_page,
    row_of,
    strings_in_ci,
    tasks_of,
)
from conftest import DAY
from tests.domains.alfworld.conftest import folder as official_games  # noqa: F401 (one id needs its games)
from textagent_gym.evaluation.promises import PROMISES


def test_every_id_has_a_certificate_or_says_what_it_needs_and_no_promise_is_broken() -> None:
    rows = read_page(OUT)
    assert set(rows) == set(KNOWN)
    for id, row in rows.items():
        assert bool(row.cells) == (id not in NEEDS), row
        if row.cells:
            assert row.cells[:2] == (str(tasks_of(id)), str(STRINGS))
            assert len(row.cells) == 2 + len(PROMISES)
            assert set(row.cells[2:]) <= {"kept", "n/a"}
            assert len(row.reasons) == row.cells.count("n/a")


def test_the_page_names_the_promises_as_they_are_now() -> None:
    made_again = "python -m benchmarks.certificates --missing"
    assert page(read_page(OUT)) == OUT.read_text(encoding="utf-8"), f"its words are written anew by: {made_again}"


def test_the_page_says_what_is_not_found() -> None:
    assert "What is not found: a world that tells the next command in other words than its own" in page({})
    assert "one that\na secret word solves" in page({})
    assert "not easier for random play" in page({})


def test_the_page_says_which_ids_are_not_certified_in_every_run_of_ci() -> None:
    assert {*LARGE, *SORTS} <= {*KNOWN}
    assert f"all but {len(LARGE)} large ones and the 30 sorts of ScienceWorld's tasks" in page({})
    days = [certified_on(day) for day in range(35)]
    assert {id for day in days for id in day} == {*KNOWN} - {*NEEDS}
    assert {len(day) for day in days} == {len(KNOWN) - len(NEEDS) - (len(LARGE) - 1) - 24}
    assert all(len(set(day)) == len(day) for day in days)


def test_a_page_is_read_as_it_was_written(tmp_path: Path) -> None:
    rows = {
        "textagent/A-v0": Row("textagent/A-v0", ("3", "10", "kept", "n/a"), ("a: b: not applicable, it has `none`",)),
        "textagent/B-v0": Row("textagent/B-v0", (), ("not checked, it needs data",)),
    }
    (tmp_path / "page.md").write_text(page(rows))
    assert read_page(tmp_path / "page.md") == rows


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("id", certified_on(int(os.environ[DAY])))
def test_the_page_says_what_is_found(id: str, request: pytest.FixtureRequest) -> None:
    # Processes that other tests started know no folder from the environment of now.
    kwargs = {"data": request.getfixturevalue("official_games")} if "ALFWorld-official" in id else {}
    if "TextWorld" in id:
        pytest.importorskip("textworld", reason="needs: the extra textworld")
    if "ScienceWorld" in id and shutil.which("java") is None and not os.environ.get("TEXTAGENT_TEST_JAVA"):
        pytest.skip("java is not installed")
    row, noted = row_of(id, strings_in_ci(id), **kwargs), read_page(OUT)[id]
    assert (row.cells[2:], row.reasons) == (noted.cells[2:], noted.reasons)
