"""The draw of mistakes in our own code."""

from __future__ import annotations

import ast

import pytest

from tests.mutations import AREAS, FEWEST_PER_FILE, ROOT, difference, draw


@pytest.mark.parametrize("name", AREAS)
def test_the_files_and_the_tests_of_an_area_exist(name: str) -> None:
    area = AREAS[name]
    assert all(any(ROOT.glob(pattern)) for pattern in area.files)
    paths = [test.removeprefix("--deselect=").partition("::")[0] for test in area.tests if "tests/" in test]
    assert paths
    assert all((ROOT / path).exists() for path in paths)


def test_equal_seeds_draw_equal_mutants_that_are_python_and_differ_from_the_file() -> None:
    mutants = draw(ROOT, ("texts", "knobs"), 1)
    assert mutants == draw(ROOT, ("texts", "knobs"), 1) != draw(ROOT, ("texts", "knobs"), 2)
    assert {mutant.path for mutant in mutants} == {f"textagent_gym/{name}.py" for name in ("knobs", "spaces", "texts")}
    assert len(mutants) >= 3 * FEWEST_PER_FILE
    assert len({mutant.key for mutant in mutants}) == len(mutants)
    for mutant in mutants:
        source = (ROOT / mutant.path).read_text(encoding="utf-8")
        ast.parse(mutant.mutation.apply(source))
        assert difference(mutant, source).count("\n-") >= 1
