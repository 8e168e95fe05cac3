"""What counts of an agent's changes: source files, wherever they are and however they are named."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.program import run
from textagent_gym.domains.swe.mutants.packages import from_folder, unpack
from textagent_gym.domains.swe.mutants.recipe import read_recipe
from textagent_gym.domains.swe.source_files import folders_of_tests, is_test, source_changes
from textagent_gym.sandbox import Changes
from textagent_gym.tasks import in_split

TREE = (
    "README.md",
    "pyproject.toml",
    "conftest.py",
    "measures/__init__.py",
    "measures/sizes.py",
    "measures/testing/rigs.py",
    "measures/inner/tests/test_inner.py",
    "measures/inner/tests/data.json",
    "tests/__init__.py",
    "tests/helpers.py",
    "tests/unit/test_sizes.py",
    "checks/rules.py",
    "checks/test_rules.py",
    "test_all.py",
)
TESTS = ("tests/unit/test_sizes.py", "test_all.py", "checks/test_rules.py", "measures/inner/tests/test_inner.py")


def counted(changes: Changes) -> Changes:
    return source_changes(changes, TESTS, TREE, sources="measures").counted


@pytest.mark.parametrize(
    "name",
    [
        "measures/sizes.py",
        "measures/testing/helper.py",
        "measures/testing/rigs.py",
        "measures/tests/helper.py",
        "measures/self_test.py",
        "measures/test_bench.py",
        "x_test.py",
        "test_all_of_it.py",
        "measures/tests.py",
        "measures/inner/tested.py",
        "measures/data/tox/ini.txt",
        "README.md",
        "\udcff.py",
        "a name\nwith a line end.py",
    ],
)
def test_source_counts_whatever_its_name(name: str) -> None:
    assert counted({name: b"x = 1\n"}) == {name: b"x = 1\n"}
    assert source_changes({name: b""}, TESTS, TREE, sources="measures").left_out == ()


@pytest.mark.parametrize(
    "name",
    [
        *TESTS,
        "tests/new.py",
        "tests/__init__.py",
        "tests/unit/deep/er.py",
        "checks/rules.py",
        "measures/inner/tests/data.json",
        "conftest.py",
        "measures/conftest.py",
        "Conftest.py",
        "pyproject.toml",
        "pyproject.toml/x.py",
        "measures/pytest.ini",
        "tox.ini",
        "setup.cfg/a/b.py",
        "sitecustomize.py",
        "sitecustomize/__init__.py",
        "usercustomize.py",
        "evil.pth",
        "test_all.py/__init__.py",
        "tests",
        "checks",
        "measures/inner/tests",
        "tests.py",
        "measures/inner/tests.py",
        "test_all/__init__.py",
        "conftest/__init__.py",
    ],
)
@pytest.mark.parametrize("content", [b"x = 1\n", None])
def test_what_decides_on_tests_stays_and_the_agent_is_told(name: str, content: bytes | None) -> None:
    found = source_changes({name: content}, TESTS, TREE, sources="measures")
    assert found.counted == {}
    assert len(found.left_out) == 1
    assert found.left_out[0].startswith(name)


@pytest.mark.parametrize(
    "name", [".git/HEAD", "a/__pycache__/x.pyc", "x.pyc", "a.so", ".pytest_cache/x", "x.egg-info/y"]
)
def test_what_tools_make_does_not_count_and_is_not_worth_a_word(name: str) -> None:
    assert source_changes({name: b""}, TESTS, TREE) == ({}, ())


def test_a_folder_may_become_a_file_and_a_file_a_folder() -> None:
    package = [name for name in TREE if name.startswith("measures/") and "inner" not in name]
    tree = [name for name in TREE if "inner" not in name]
    changes: Changes = {**dict.fromkeys(package), "measures": b"", "README.md": None, "README.md/x.py": b""}
    assert source_changes(changes, TESTS, tree, sources="measures").counted == changes


def test_nothing_lies_below_another_files_name() -> None:
    assert counted({"measures": b"", "measures/sizes.py": None}) == {"measures/sizes.py": None}
    assert counted({"README.md/x.py": b""}) == {}
    assert counted({"a": b"", "a/b.py": b"", "a/b.py/c.py": b""}) == {"a": b""}


PARTS = st.sampled_from(
    ["measures", "tests", "checks", "sizes.py", "test_all.py", "conftest.py", "a", "b.py", "README.md", "inner", ".git"]
)
NAMES = st.lists(PARTS, min_size=1, max_size=4).map("/".join) | st.sampled_from(TREE)


@given(st.dictionaries(NAMES, st.none() | st.just(b"changed"), max_size=12))
def test_the_tree_stays_a_tree_and_its_tests_what_they_are(changes: Changes) -> None:
    allowed, left_out = source_changes(changes, TESTS, TREE, sources="measures")
    assert allowed.items() <= changes.items()
    tree: Changes = dict.fromkeys(TREE, b"")
    for name, content in allowed.items():
        if content is None:
            tree.pop(name, None)
        else:
            tree[name] = content
    assert not any(other.startswith(f"{name}/") for name in tree for other in tree)
    folders = folders_of_tests(TREE, "measures")
    for name in TREE:
        if is_test(name, folders) or name == "pyproject.toml":
            assert tree[name] == b""
    assert source_changes(allowed, TESTS, TREE, sources="measures").counted == allowed
    assert all(sentence.isprintable() for sentence in left_out)


@given(st.dictionaries(st.text(min_size=1), st.none() | st.binary(), max_size=5))
def test_any_name_is_taken(changes: Changes) -> None:
    for tree in (None, TREE):
        source_changes(changes, TESTS, tree)


def write(folder: Path, files: dict[str, str]) -> Path:
    """A repository."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


RIGS = "def add(a, b):\n    return a + b\n\n\ndef sign(a):\n    return -1 if a < 0 else 1\n"
CHECKS = (
    "from adder.testing.rigs import add, sign\nfrom values import THREE\n\n\n"
    "def test_add():\n    assert add(1, 2) == THREE\n\n\n"
    "def test_sign():\n    assert sign(-3) == -1\n\n\ndef test_zero():\n    assert sign(0) == 1\n"
)


@pytest.mark.slow
def test_code_in_a_folder_that_is_named_like_tests_is_code(tmp_path: Path) -> None:
    files = {
        "src/adder/__init__.py": "",
        "src/adder/testing/__init__.py": "",
        "src/adder/testing/rigs.py": RIGS,
        "checks/values.py": "THREE = 3\n",
        "checks/test_rigs.py": CHECKS,
    }
    folder = write(tmp_path / "mine", files)
    package = from_folder(folder)
    assert package.sources == "src/adder"
    root = unpack(package)
    compiled = {path.name.partition(".")[0] for path in root.rglob("*.pyc")}
    assert compiled == {"__init__", "rigs"}
    out = tmp_path / "recipes.jsonl"
    done = run("swe", "build", "--packages", str(folder), "--count", "3", "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert "src/adder/testing/rigs.py" in out.read_text()
    # Their ids are drawn by chance, and decide which split they are in.
    splits = {
        split
        for line in out.read_text().splitlines()
        for split in ("train", "validation", "test")
        if in_split(read_recipe(line).id, split)
    }
    settings = ("--set", f"packages={folder}", "--set", f"recipes={out}", "--set", f"split={splits.pop()}")
    played = run("eval", "SWE", "--agent", "oracle", *settings)
    assert played.returncode == 0, played.stderr
    assert "1.000" in played.stdout
