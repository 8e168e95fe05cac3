"""Mistakes, packages and recipes."""

from __future__ import annotations

import ast
import hashlib
import io
import tarfile
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.program import run
from textagent_gym.domains.swe.mutants import packages
from textagent_gym.domains.swe.mutants.assembly import is_servable
from textagent_gym.domains.swe.mutants.builder import build
from textagent_gym.domains.swe.mutants.hiding import hide, hide_with_tables
from textagent_gym.domains.swe.mutants.mutations import KINDS, mutations
from textagent_gym.domains.swe.mutants.packages import PACKAGES, Package, PackageError, from_folder, prepare, unpack
from textagent_gym.domains.swe.mutants.recipe import read_recipe
from textagent_gym.domains.swe.mutants.tasks import BuiltTasks
from textagent_gym.errors import InvalidOptionError
from textagent_gym.sandbox import Sandbox
from textagent_gym.tasks import TaskSource, in_split

SOURCE = '''"""Text — not changed."""

def pick(items, first=0, *, last=None, ok=True):
    """Text."""
    found = []
    for number, item in enumerate(items):
        if number < first or not item:
            continue
        if last is not None and number >= last:
            break
        found.append(item.lower().strip("é"))
    total = len(found) * 2 + 1
    total += 1
    try:
        value = max(found[0], found[1:3], key=len)
    except (ValueError, IndexError):
        value = -1
    except KeyError:
        raise
    return [x for x in found if x in items] if ok else {"a": total % 7, "b": value}
'''


def test_every_kind_of_mistake_is_made_and_changes_one_place() -> None:
    found = mutations(SOURCE)
    assert len(KINDS) >= 12
    assert {mutation.kind for mutation in found} == set(KINDS)
    before = ast.dump(ast.parse(SOURCE))
    for mutation in found:
        text = mutation.apply(SOURCE)
        assert text != SOURCE
        assert text.startswith(SOURCE[: mutation.start])
        assert text.endswith(SOURCE[mutation.end :])
        if mutation.parses(SOURCE):
            assert ast.dump(ast.parse(text)) != before or mutation.kind == "negation"
    assert sum(mutation.parses(SOURCE) for mutation in found) / len(found) > 0.9
    assert not any(mutation.start < SOURCE.index("def pick") for mutation in found)


def test_hidden_tests_are_cut_out() -> None:
    source = (
        "import x\n\n\n@x.y\ndef test_a():\n    pass\n\n\n"
        "class B:\n    def test_c(self):\n        assert 1\n\n    def d(self):\n        pass\n"
    )
    assert hide(source, {"test_a"}) == source.replace("@x.y\ndef test_a():\n    pass\n", "")
    assert "test_c" not in hide(source + "\n\nclass D(B):\n    pass\n", {"D::test_c"})
    cut = hide(source, {"B::test_c", "test_a"})
    assert "test_c" not in cut
    assert "test_a" not in cut
    ast.parse(cut)


TABLES = """import pytest

PAIRS = (("cow", "kine"), ("cat", "cats"), ("ox", "oxen"))
ONE = {1: "I", 4: "IV"}
OURS = [1, 2]
ALSO = OURS + [3]
NOBODYS = 5


def made():
    return ALSO


@pytest.mark.parametrize("one, many", PAIRS)
def test_a(one, many):
    assert made() and ONE[4]


@pytest.mark.parametrize("one, many", PAIRS)
def test_b(one, many):
    assert one in many


def test_c():
    for number, text in ONE.items():
        assert number
"""


def test_what_hidden_tests_alone_read_goes_with_them_and_so_do_rows_of_theirs() -> None:
    rows = [{"one": "'cow'", "many": "'kine'"}, {"one": "'ox'", "many": "'oxen'"}]
    text = hide_with_tables(TABLES, {"test_a"}, rows)
    assert 'PAIRS = (("cat", "cats"),)' in text
    assert not any(word in text for word in ("OURS", "ALSO", "made", "test_a", "kine", "oxen"))
    assert all(word in text for word in ("NOBODYS", '4: "IV"', "test_b", "test_c"))
    assert hide_with_tables(TABLES, {"test_a"}, [{"number": "4"}]).count("IV") == 0
    assert 'ONE = {4: "IV"}' in hide_with_tables(TABLES, {"test_a"}, [{"number": "1"}])
    assert "PAIRS = ()" in hide_with_tables(TABLES, {"test_a"}, [*rows, {"one": "'cat'", "many": "'cats'"}])
    assert hide_with_tables(TABLES, {"test_b"}, ()) == hide(TABLES, {"test_b"})  # Others read all of its tables.
    assert "ONE" in hide_with_tables(TABLES, {"test_a"}, ())
    assert "PAIRS" not in hide_with_tables(TABLES, {"test_a", "test_b"}, ())


def test_building_is_deterministic_and_matches_the_recipes_of_the_suite(sandbox: Sandbox) -> None:
    repository = prepare(PACKAGES["measures"], sandbox)
    recipes, tally = build(repository, sandbox, 2, accept=lambda recipe: is_servable(recipe, repository, "auto"))
    text = (Path(packages.__file__).parent / "recipes.jsonl").read_text()
    known = {recipe.key: recipe for recipe in map(read_recipe, text.splitlines())}
    assert [replace(known[recipe.key], id=recipe.id) for recipe in recipes] == recipes
    assert tally.kept == 2
    assert tally.tried >= 2


def test_recipes_name_no_test() -> None:
    text = (Path(packages.__file__).parent / "recipes.jsonl").read_text()
    recipes = [read_recipe(line) for line in text.splitlines()]
    assert len(recipes) == len({recipe.key for recipe in recipes}) == len({recipe.id for recipe in recipes}) >= 100
    assert len({recipe.package for recipe in recipes}) == len(PACKAGES)
    assert len({recipe.mutation.kind for recipe in recipes}) >= 12
    for recipe in recipes:
        assert 1 <= len(recipe.fail_to_pass) <= 10
        assert recipe.symptoms
        for test in recipe.fail_to_pass:
            assert test.split("::")[-1].partition("[")[0] not in recipe.symptoms


def test_a_repository_of_ones_own(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    (folder / "src" / "sums").mkdir(parents=True)
    (folder / "src" / "sums" / "__init__.py").write_text(
        "def checksum(text):\n    total = 7\n    for place, letter in enumerate(text, 1):\n"
        "        total = (total * 31 + place * ord(letter)) % 9973\n    return total\n"
    )
    (folder / "tests").mkdir()
    (folder / "tests" / "test_sums.py").write_text(
        "from sums import checksum\n\n\ndef test_words():\n    assert checksum('abc') == 8937\n\n\n"
        "def test_nothing():\n    assert checksum('') == 7\n"
    )
    out = tmp_path / "recipes.jsonl"
    done = run("swe", "build", "--packages", str(folder), "--count", "2", "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert len(out.read_text().splitlines()) == 2
    again = out.read_text()
    assert run("swe", "build", "--packages", str(folder), "--count", "2", "--out", str(out)).returncode == 0
    assert out.read_text() == again
    source = BuiltTasks((str(folder),), recipes=out)  # Ids are drawn by chance, and with them the splits.
    split = next(split for split in source.splits if source.size(split))
    settings = ("--set", f"packages={folder}", "--set", f"recipes={out}", "--set", f"split={split}")
    played = run("eval", "SWE", "--agent", "oracle", *settings)
    assert played.returncode == 0, played.stderr
    assert "1.000" in played.stdout


def test_a_split_without_tasks_says_which_ones_have_some(tmp_path: Path) -> None:
    lines = (Path(packages.__file__).parent / "recipes.jsonl").read_text().splitlines()
    (line, split) = next(
        (line, split)
        for line in lines
        if read_recipe(line).package.startswith("measures")
        for split in TaskSource.splits[1:]
        if in_split(read_recipe(line).id, split)
    )
    (tmp_path / "recipes.jsonl").write_text(f"{line}\n")
    settings = ("--set", "packages=measures", "--set", f"recipes={tmp_path}/recipes.jsonl", "--set", "split=train")
    played = run("eval", "SWE", "--agent", "random", *settings)
    assert played.returncode == 2
    assert f"split 'train' holds no tasks here; choose of: {split}\n" in played.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("swe", "build"), "--out"),
        (("swe", "build", "--packages", "nothing", "--out", "/tmp/x"), "does not exist"),
        (("swe", "build", "--packages", "measures", "--out", "/dev/null/x"), "cannot be written: Not a directory"),
        (("swe", "fetch", "--packages", "measures", "--sandbox", "prison"), "choose of auto"),
        (("swe", "build", "--packages", "measures", "--count", "0", "--out", "/tmp/x"), "at least 1"),
    ],
)
def test_wrong_arguments(arguments: tuple[str, ...], said: str) -> None:
    done = run(*arguments)
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_folders_that_are_no_repository(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="there is none"):
        from_folder(tmp_path)


def archive(files: dict[str, str]) -> bytes:
    """A source distribution."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(f"thing-1.0/{name}")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
        link = tarfile.TarInfo("thing-1.0/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    return buffer.getvalue()


def test_packages_are_fetched_from_the_index_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = archive({"thing/__init__.py": "x = 1\n", "../../escape.py": "", "tests/test_x.py": ""})
    (tmp_path / "simple" / "thing").mkdir(parents=True)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "thing-1.0.tar.gz").write_bytes(content)
    page = '<a href="../../files/thing-1.0.tar.gz#sha256=00">thing-1.0.tar.gz</a>'
    (tmp_path / "simple" / "thing" / "index.html").write_text(page)
    monkeypatch.setenv("TEXTAGENT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "simple").as_uri())
    fetch = urllib.request.urlopen

    def index(address: str, timeout: float) -> object:
        return fetch(f"{address}index.html" if address.endswith("/") else address, timeout=timeout)

    monkeypatch.setattr(urllib.request, "urlopen", index)
    good = Package("thing", "1.0", "thing", 1, sha256=hashlib.sha256(content).hexdigest())
    root = unpack(good)
    assert sorted(str(path.relative_to(root)) for path in root.rglob("*.py")) == [
        "tests/test_x.py",
        "thing/__init__.py",
    ]
    assert not (root / "link").exists()
    root.rename(tmp_path / "moved")
    with pytest.raises(PackageError, match="SHA-256"):
        unpack(Package("thing", "1.0", "thing", 1, sha256="0" * 64))
    with pytest.raises(PackageError, match="not in the index"):
        unpack(Package("thing", "2.0", "thing", 1, sha256="0" * 64))
    with pytest.raises(PackageError, match="measures"):
        unpack(Package("other", "2.0", "other", 1, sha256="0" * 64))
