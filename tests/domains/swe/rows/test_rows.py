"""Rows of the public data sets: read, completed, played and graded; and our own tasks as such rows."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import pickle
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from tests.domains.swe.conftest import bash
from tests.sandbox.conftest import open_sandbox
from textagent_gym.domains.swe.mutants.tasks import BuiltTasks
from textagent_gym.domains.swe.rows.instances import Instances, InstanceWorld, read_row
from textagent_gym.domains.swe.rows.patches import FilePatch, read_patch
from textagent_gym.domains.swe.rows.scripts import Row, completed, eval_script, image_name
from textagent_gym.domains.swe.toolbox import TOOLBOX
from textagent_gym.errors import InvalidOptionError, MissingDependencyError, UnknownTaskError
from textagent_gym.sandbox import SandboxError
from textagent_gym.tasks import Task

BENCH, GYM = "textagent/SWE-bench-v0", "textagent/SWE-Gym-v0"
PATCH = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
TESTS = (
    "diff --git a/test_a.py b/test_a.py\nnew file mode 100644\n--- /dev/null\n+++ b/test_a.py\n@@ -0,0 +1 @@\n+pass\n"
)


def record(number: int = 1, **fields: Any) -> dict[str, Any]:
    """A row as the public data sets have it."""
    return {
        "instance_id": f"owner__name-{number}",
        "repo": "owner/name",
        "base_commit": "0" * 40,
        "version": "1.0",
        "problem_statement": "It does not work.",
        "patch": PATCH,
        "test_patch": TESTS,
        "FAIL_TO_PASS": '["test_a.py::test_x[a b]"]',
        "PASS_TO_PASS": ["test_a.py::test_y"],
        **fields,
    }


# Reading.


def test_a_patch_says_which_files_it_touches() -> None:
    patch = (
        "diff --git a/old.py b/new.py\nsimilarity index 90%\nrename from old.py\nrename to new.py\n"
        "--- a/old.py\n+++ b/new.py\n@@ -1,3 +1,3 @@ def f():\n a\n--- a/b\n+++ b/b\n c\n@@ -9 +9,2 @@\n-d\n+e\n+f\n"
        "\\ No newline at end of file\n"
        'diff --git "a/\\303\\274.py" "b/\\303\\274.py"\ndeleted file mode 100644\n'
        '--- "a/\\303\\274.py"\n+++ /dev/null\n'
        "@@ -1 +0,0 @@\n-x\n"
        "diff --git a/a b.png b/a b.png\nindex 1..2 100644\nBinary files a/a b.png and b/a b.png differ\n"
    )
    assert read_patch(patch) == (
        FilePatch("old.py", "new.py", 2, 5),
        FilePatch("\N{LATIN SMALL LETTER U WITH DIAERESIS}.py", None, 1, 1),
        FilePatch("a b.png", "a b.png"),
    )
    assert read_patch("--- a/x\t2020\n+++ b/x\t2020\n@@ -1 +1 @@\n-a\n+b\n") == (FilePatch("x", "x", 1, 2),)
    assert read_patch("") == ()


def write(path: Path, records: list[dict[str, Any]]) -> Path:
    """A file of rows, of the kind that its name says."""
    if path.suffix == ".parquet":
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        parquet.write_table(pyarrow.Table.from_pylist(records), path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(records))
    else:
        path.write_text("\n".join(json.dumps(one) for one in records) + "\n\n")
    return path


@pytest.mark.parametrize("kind", ["jsonl", "json", "parquet"])
def test_rows_are_the_same_from_every_kind_of_file(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("swebench")
    path = write(tmp_path / f"rows.{kind}", [record(number) for number in range(40)])
    source = Instances(str(path))
    sizes = [source.size(split) for split in source.splits]
    assert sum(sizes) == 40
    assert all(sizes)
    task = source.find("owner__name-7")
    assert source.task(task.split, task.index) == task
    world = source.world(task)
    assert (world.problem, world.fail_to_pass) == ("It does not work.", ("test_a.py::test_x[a b]",))
    assert (world.test_files, task.milestones, task.task_type) == ({"test_a.py"}, 1, "owner/name")
    assert (task.complexity.state_size, task.complexity.solution_length) == (None, 2)
    with pytest.raises(UnknownTaskError, match="owner__name-99"):
        source.find("owner__name-99")
    with pytest.raises(UnknownTaskError, match="from 0 to 39"):
        Instances(str(path), divide="test").task("test", 40)


def test_a_task_is_measured_without_swebench_and_is_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "swebench.harness.log_parsers.python", None)
    source = Instances(str(write(tmp_path / "rows.jsonl", [record(1), record(2)])), divide="test")
    task = source.task("test", 1)
    assert type(task) is Task
    assert pickle.loads(pickle.dumps(task)) == task == source.find(task.id)
    with pytest.raises(MissingDependencyError):
        source.world(task)


def test_a_row_of_another_file_has_no_world_here(tmp_path: Path) -> None:
    source = Instances(str(write(tmp_path / "rows.jsonl", [record(1)])), divide="test")
    other = Instances(str(write(tmp_path / "other.jsonl", [record(2)])), divide="test")
    with pytest.raises(UnknownTaskError, match="owner__name-2"):
        source.world(other.task("test", 0))


def test_rows_are_dealt_out_by_id_by_repository_or_all_to_one_split(tmp_path: Path) -> None:
    rows = [record(number, repo=f"owner/{number % 9}") for number in range(60)]
    path = str(write(tmp_path / "rows.jsonl", rows))
    by_id, by_repo, alone = Instances(path), Instances(path, divide="repo"), Instances(path, divide="test")
    assert by_id.splits == by_repo.splits == ("train", "validation", "test")
    assert alone.splits == ("test",)
    assert alone.size("test") == 60
    found = {
        split: {by_repo.task(split, index).task_type for index in range(by_repo.size(split))}
        for split in by_repo.splits
    }
    assert sum(len(repos) for repos in found.values()) == 9
    with pytest.raises(InvalidOptionError, match="split='train' does not exist"):
        alone.size("train")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"instance_id": None}, "line 2: field instance_id is missing"),
        ({"patch": 3}, "line 2: field patch must be a string, got 3"),
        ({"FAIL_TO_PASS": "[1"}, "line 2: field FAIL_TO_PASS is no JSON"),
        ({"PASS_TO_PASS": [1]}, "line 2: field PASS_TO_PASS must be a list of strings"),
        ({"PASS_TO_PASS": None}, "line 2: field PASS_TO_PASS must be a list of strings"),
        ({"FAIL_TO_PASS": []}, "line 2: field FAIL_TO_PASS is empty"),
        ({"test_patch": ""}, "line 2: field test_patch is missing, and there is no eval_script"),
        ({"instance_id": "owner__name-1"}, "line 2: instance_id 'owner__name-1' has been there before"),
    ],
    ids=str,
)
def test_a_bad_row_is_named_by_file_line_and_field(tmp_path: Path, fields: dict[str, Any], said: str) -> None:
    path = write(tmp_path / "rows.jsonl", [record(1), record(2, **fields)])
    with pytest.raises(InvalidOptionError, match=r"^rows\.jsonl, ") as raised:
        gymnasium.make(BENCH, rows=str(path))
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("rows.jsonl", "{", "rows.jsonl, line 1: no JSON"),
        ("rows.jsonl", "[]\n", "line 1: a row is an object"),
        ("rows.jsonl", "", "holds no rows"),
        ("rows.json", "{}", "must hold a list"),
        ("rows.json", "{", "is no JSON"),
        ("rows.parquet", "x", "is no parquet file"),
    ],
)
def test_a_file_that_is_none_of_rows_says_so(tmp_path: Path, name: str, text: str, said: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidOptionError, match=said):
        Instances(str(tmp_path / name))


@pytest.mark.parametrize(
    "options",
    [
        {"rows": "/no/such/file.jsonl"},
        {"images": "swe-smith"},
        {"divide": "colour"},
        {"grading_timeout": 0},
        {"split": "train"},
        {"tools": "magic"},
    ],
    ids=str,
)
def test_a_wrong_option_says_what_exists(tmp_path: Path, options: dict[str, Any]) -> None:
    path = write(tmp_path / "rows.jsonl", [record()])
    with pytest.raises(InvalidOptionError):
        gymnasium.make(BENCH, **{"rows": str(path), **options})


def test_a_split_that_gets_no_row_is_an_error_and_not_an_empty_environment(tmp_path: Path) -> None:
    path = str(write(tmp_path / "rows.jsonl", [record()]))
    source = Instances(path)
    empty = next(split for split in source.splits if not source.size(split))
    with pytest.raises(InvalidOptionError, match=f"divide='{empty}'"):
        gymnasium.make(GYM, rows=path, split=empty)


def test_a_data_set_of_datasets_is_read_when_it_is_needed(tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    pytest.importorskip("swebench")
    write(tmp_path / "train.jsonl", [record(number) for number in range(3)])
    source = Instances(str(tmp_path), divide="train", dataset_split="train")
    assert source.task("train", 2).id == "owner__name-2"
    missing = Instances(str(tmp_path), divide="test", dataset_split="dev")
    with pytest.raises(InvalidOptionError, match="no data set with a split 'dev'"):
        missing.size("test")


def test_rows_of_a_name_are_fetched_once_and_read_without_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets = pytest.importorskip("datasets")
    pytest.importorskip("swebench")
    monkeypatch.setenv("TEXTAGENT_CACHE", str(tmp_path))
    rows = [record(number, test_cmd="pytest -x", created_at=object()) for number in range(3)]
    asked = []

    def load(name: str, split: str) -> list[dict[str, Any]]:
        asked.append((name, split))
        return rows

    monkeypatch.setattr(datasets, "load_dataset", load)
    first, second, other = (Instances("some/rows", divide="test", dataset_split=split) for split in ("dev", "dev", "x"))
    assert all("some/rows are not on this machine" in source.missing_data for source in (first, second, other))
    assert asked == []
    assert first.size("test") == 3
    monkeypatch.setattr(datasets, "load_dataset", None)
    assert (first.missing_data, second.missing_data) == ("", "")
    assert [second.task("test", index) for index in range(3)] == [first.task("test", index) for index in range(3)]
    assert second.world(second.task("test", 2)).row.test_command == "pytest -x"
    assert asked == [("some/rows", "dev")]
    assert other.missing_data


def test_info_answers_without_the_rows_and_says_how_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("swebench")
    from textagent_gym.cli.main import main

    monkeypatch.setenv("TEXTAGENT_CACHE", str(tmp_path))
    monkeypatch.setitem(sys.modules, "datasets", None)  # Nobody asks for the rows.
    with pytest.raises(SystemExit, match="0"):
        main(["info", "SWE-bench"])
    printed = " ".join(capsys.readouterr().out.split())
    assert "The rows of SWE-bench/SWE-bench_Verified are not on this machine." in printed
    assert "--set rows=FOLDER" in printed
    assert "command_timeout" in printed


def test_info_answers_where_no_engine_can_show_the_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("swebench")
    from textagent_gym.cli.main import main

    path = write(tmp_path / "rows.jsonl", [record(1)])
    with pytest.raises(SystemExit, match="0"):
        main(["info", "SWE-bench", "--set", f"rows={path}", "--set", "divide=test", "--set", "split=test"])
    printed = " ".join(capsys.readouterr().out.split())
    assert "split test: 1 tasks" in printed
    assert "Task 0 cannot be shown here: " in printed  # No engine is here, or none has its image.


# Making complete.


def test_what_a_row_says_itself_wins() -> None:
    pytest.importorskip("swebench")
    own = {"eval_script": "echo", "log_parser": "parse_log_django", "eval_type": "fail_only"}
    for field in ("image", "image_name", "docker_image"):
        row = completed(read_row(record(**own, **{field: "mine:1"})), "swe-gym")
        assert (row.image, row.eval_script, row.log_parser, row.eval_type) == ("mine:1", *own.values())
    row = completed(read_row(record()), "swe-gym")
    assert row.image == image_name("owner__name-1", "swe-gym") == "xingyaoww/sweb.eval.x86_64.owner_s_name-1:latest"
    assert (row.log_parser, row.eval_type) == ("parse_log_pytest_v2", "pass_and_fail")
    assert completed(read_row(record(repo="sympy/sympy")), "swe-bench").log_parser == "parse_log_sympy"


def test_swebench_reads_a_completed_row() -> None:
    pytest.importorskip("swebench")
    from swebench.harness.utils import make_test_spec

    row = completed(read_row(record()), "swe-bench")
    spec = make_test_spec(row.to_dict())
    assert spec.FAIL_TO_PASS == ["test_a.py::test_x[a b]"]
    assert "SWEBENCH_TEST_EXIT_CODE=$?\n: '>>>>> End Test Output'" in spec.eval_script
    assert subprocess.run(["bash", "-n"], input=spec.eval_script, text=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("fields", "command"),
    [
        ({}, "python -m pytest -rA test_a.py"),
        ({"test_cmd": "pytest -n0 -rA"}, "pytest -n0 -rA test_a.py"),
        ({"repo": "sympy/sympy"}, "bin/test -C --verbose test_a.py"),
        (
            {"repo": "django/django", "test_patch": TESTS.replace("test_a.py", "tests/mail/test_a.py")},
            "./tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1 mail.test_a",
        ),
        (
            {"repo": "python/mypy", "test_patch": TESTS.replace("+pass", "+[case testOne]")},
            "python -m pytest -rA -k testOne",
        ),
    ],
    ids=str,
)
def test_the_command_of_a_row_without_a_script(fields: dict[str, Any], command: str) -> None:
    lines = eval_script(read_row(record(**fields))).splitlines()
    start = lines.index(": '>>>>> Start Test Output'")
    assert lines[start + 1].endswith(command)
    assert lines[start + 2] == ": '>>>>> End Test Output'"


def test_a_row_whose_tests_nobody_can_run_says_so() -> None:
    row = read_row(record(test_patch=TESTS.replace("test_a.py", "data.json")), "rows.jsonl, line 5")
    with pytest.raises(InvalidOptionError, match=r"rows\.jsonl, line 5: test_patch holds no tests"):
        eval_script(row)


def test_a_patch_cannot_end_its_own_place_in_the_script() -> None:
    script = eval_script(read_row(record(test_patch=TESTS.replace("+pass", "+END_OF_PATCH"))))
    assert "<<'END_OF_PATCH_'\n" in script


def log(*lines: str, status: int = 0) -> str:
    return "\n".join(
        ("+ : '>>>>> Start Test Output'", *lines, "+ : '>>>>> End Test Output'", f">>>>> Test Exit Code: {status}")
    )


@pytest.mark.parametrize(
    ("printed", "resolved", "repaired", "broken"),
    [
        (log("PASSED test_a.py::test_x[a b]", "PASSED test_a.py::test_y"), True, 1, 0),
        (log("PASSED test_a.py::test_x[a b]", "FAILED test_a.py::test_y - no", status=1), False, 1, 1),
        (log("FAILED test_a.py::test_x[a b] - no", "PASSED test_a.py::test_y", status=1), False, 0, 0),
        (log("PASSED test_a.py::test_x[a b]", "SKIPPED test_a.py::test_y"), True, 1, 0),
        (log("PASSED test_a.py::test_x[a b]"), False, 1, 1),
    ],
)
def test_what_swebench_makes_of_a_log(printed: str, resolved: bool, repaired: int, broken: int) -> None:
    pytest.importorskip("swebench")
    from textagent_gym.domains.swe.rows.reports import read_log

    grade = read_log(completed(read_row(record()), "swe-bench"), printed)
    assert grade is not None
    assert (grade.resolved, len(grade.repaired), len(grade.broken)) == (resolved, repaired, broken)
    assert grade.credit == (repaired if not broken else 0)


@pytest.mark.parametrize(
    "printed",
    [
        log("PASSED test_a.py::test_x[a b]", "PASSED test_a.py::test_y", status=3),
        "PASSED test_a.py::test_x[a b]\nPASSED test_a.py::test_y",
        log("python: No module named pytest", status=1),
        "",
    ],
)
def test_what_is_no_outcome_of_a_test_is_no_grade(printed: str) -> None:
    pytest.importorskip("swebench")
    from textagent_gym.domains.swe.rows.reports import read_log

    assert read_log(completed(read_row(record()), "swe-bench"), printed) is None


def first_world(rows: str) -> InstanceWorld:
    source = Instances(rows, divide="test")
    return source.world(source.task("test", 0))


def test_what_is_missing_is_named_with_the_extra_that_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("swebench.harness.log_parsers.python", "datasets", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    write(tmp_path / "rows.jsonl", [record()])
    (tmp_path / "rows.parquet").write_text("")
    for rows in ("rows.jsonl", "rows.parquet", ""):
        with pytest.raises(MissingDependencyError, match=r"textagent-gym\[swebench\]"):
            first_world(str(tmp_path / rows))


# Playing, in containers.


@pytest.fixture(scope="module")
def container_image() -> str:
    """An image with bash, git and Python."""
    pytest.importorskip("swebench")
    image = os.environ.get("TEXTAGENT_SWE_IMAGE")
    if not image:
        pytest.skip("TEXTAGENT_SWE_IMAGE names no image with bash, git and Python 3.11 or later")
    open_sandbox("docker").close()
    from textagent_gym.sandbox.container import connect, prepared, present

    engine = connect("docker")
    return prepared(engine, present(engine, image), TOOLBOX)


BEFORE = {
    "shop/__init__.py": "",
    "shop/price.py": "def total(prices):\n    return sum(prices) + 1\n\n\ndef mean(prices):\n    return 0\n",
    "shop/old.py": "x = 1\n",
    "shop/data/names": "a\n",
    "setup.cfg": "[shop]\nversion = 1\n",
    "bin/tool": "#!/bin/sh\necho 1\n",
    "tests/test_price.py": "from shop.price import total\n\n\ndef test_nothing():\n    assert total([-1]) == 0\n",
}
AFTER = {
    **BEFORE,
    "shop/price.py": (
        "def total(prices):\n    return sum(prices)\n\n\ndef mean(prices):\n    return total(prices) / len(prices)\n"
    ),
    "shop/names.py": "NAMES = ['a']\n",
    "setup.cfg": "[shop]\nversion = 2\n",
    "bin/tool": "#!/bin/sh\necho 2\n",
}
del AFTER["shop/old.py"]
HIDDEN = {
    "tests/test_price.py": (
        "import os, subprocess\nimport pytest\nfrom shop.price import mean, total\n\n\n"
        "def test_nothing():\n    assert total([]) in (0, 1)\n\n\n"
        "@pytest.mark.parametrize('prices', [[1], [1, 2]], ids=['one  price', 'two - prices'])\n"
        "def test_total(prices):\n    assert total(prices) == sum(prices)\n\n\n"
        "def test_tool():\n    assert subprocess.run(['bin/tool'], capture_output=True).stdout == b'2\\n'\n"
    ),
    "tests/test_new.py": (
        "import os\nfrom shop.price import mean\n\n\ndef test_mean():\n    assert mean([1, 3]) == 2\n\n\n"
        "def test_files():\n    from shop.names import NAMES\n    assert not os.path.exists('shop/old.py')\n"
    ),
}


@pytest.fixture(scope="module")
def shop(container_image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Row]:
    """A row as the older data sets have them, without a script, of a repository with what repositories have."""
    from textagent_gym.sandbox.container import connect

    tree = tmp_path_factory.mktemp("shop") / "testbed"

    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
        done = subprocess.run(["git", *identity, *arguments], cwd=tree, check=True, capture_output=True, text=True)
        return done.stdout

    def put(files: dict[str, str]) -> None:
        for name, text in files.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(text)

    def difference() -> str:
        git("add", "--all")
        patch = git("diff", "--cached", "HEAD")
        git("reset", "--quiet", "--hard")
        return patch

    put(BEFORE)
    (tree / "bin/tool").chmod(0o755)
    (tree / "alias").symlink_to("tests")
    (tree / "link.py").symlink_to("tests/test_price.py")
    git("init", "--quiet")
    git("add", "--all")
    git("commit", "--quiet", "--message=As it is")
    put(AFTER)
    (tree / "shop/old.py").unlink()
    patch = difference()
    put(HIDDEN)
    test_patch = difference()

    engine = connect("docker")
    context = io.BytesIO()
    # The image is prepared for another user; these variables make it an image like those of the data sets.
    recipe = (
        f"FROM {container_image}\nCOPY testbed /testbed\n"
        "ENV PATH=/opt/textagent/bin:/usr/local/bin:/usr/bin:/bin PYTHONPATH=/testbed:/opt/textagent/packages\n"
    ).encode()
    with tarfile.open(fileobj=context, mode="w") as tar:
        member = tarfile.TarInfo("Dockerfile")
        member.size = len(recipe)
        tar.addfile(member, io.BytesIO(recipe))
        tar.add(tree, "testbed")
    context.seek(0)
    image, _ = engine.images.build(fileobj=context, custom_context=True, tag="textagent-swe/test-shop", rm=True)
    fail_to_pass = [
        "tests/test_new.py::test_files",
        "tests/test_new.py::test_mean",
        "tests/test_price.py::test_tool",
        "tests/test_price.py::test_total[one",  # As older data sets cut them.
    ]
    yield read_row(
        record(
            base_commit=git("rev-parse", "HEAD").strip(),
            patch=patch,
            test_patch=test_patch,
            image=str(image.id),
            FAIL_TO_PASS=json.dumps(fail_to_pass),
            PASS_TO_PASS=["tests/test_price.py::test_nothing"],
        )
    )
    engine.images.remove(image.id, force=True)


@pytest.fixture
def play(
    shop: Row, tmp_path: Path, make: Callable[..., gymnasium.Env[str, str]]
) -> Callable[..., gymnasium.Env[str, str]]:
    """Makes environments of the shop that have begun."""
    path = write(tmp_path / "rows.jsonl", [shop.to_dict() | {"eval_script": "", "log_parser": "", "eval_type": ""}])

    def one(**options: Any) -> gymnasium.Env[str, str]:
        env = make(BENCH, rows=str(path), **options)
        env.reset(options={"task_index": 0})
        return env

    return one


def follow_the_oracle(env: gymnasium.Env[str, str]) -> tuple[float, dict[str, Any]]:
    """One action of a new plan at a time, as an agent does that is told the next one."""
    total, info = 0.0, {}
    for _ in range(20):
        plan = env.unwrapped.oracle()
        _, reward, terminated, _, info = env.step(plan[0])
        assert info["valid_action"], plan[0]
        total += float(reward)
        if terminated:
            break
    return total, info


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"tools": "all", "reward_density": "dense"},
        {"tools": "all", "action_format": "editor"},
        {"reward_at": "turn", "reward_density": 0.5},
    ],
    ids=str,
)
def test_the_rows_own_repair_is_worth_everything(play, options: dict[str, Any]) -> None:
    env = play(**options)
    total, info = follow_the_oracle(env)
    assert info["success"], env.unwrapped.last_grade
    assert total == pytest.approx(1.0)
    assert env.unwrapped.oracle() == ()


def test_a_row_without_an_outcome_even_for_its_own_repair_is_broken_and_not_lost(
    shop: Row, tmp_path: Path, make: Callable[..., gymnasium.Env[str, str]]
) -> None:
    path = write(tmp_path / "rows.jsonl", [shop.to_dict() | {"eval_script": "echo there is no pytest"}])
    env = make(BENCH, rows=str(path), reward_density="dense")
    env.reset(options={"task_index": 0})
    env.step(bash("echo '# better' >>shop/price.py"))
    _, reward, terminated, truncated, info = env.step(bash("submit"))
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert "the outcome of a test" in info["broken"]


def test_the_oracle_finds_its_way_from_anywhere_and_says_where_the_tools_cannot(play) -> None:
    env = play()
    env.step(
        bash("rm -r shop; echo 'x = (' >zz.py; rm link.py; echo 1 >link.py; git commit -qam x; sed -i s/1/3/ bin/tool")
    )
    total, info = follow_the_oracle(env)
    assert info["success"], env.unwrapped.last_grade
    assert total == 1.0
    assert play(tools="edit").unwrapped.oracle() is None  # A file has to be removed, and another to be made.


def test_what_the_agent_reads_and_where_it_is(play) -> None:
    env = play()
    said, info = env.reset()
    assert said.startswith("It does not work.")
    assert info["task"] == "owner__name-1"
    assert (info["complexity"].state_size, info["complexity"].solution_length) == (None, 6)
    assert env.step(bash("pwd; git status --short; id -u; ls tests"))[0] == "/testbed\n0\ntest_price.py"
    assert "passed" in env.step(bash("python -m pytest -q -p no:cacheprovider"))[0]
    env.unwrapped.command_timeout = 1.0  # For this command alone: those above take longer on a busy machine.
    assert env.step(bash("cd shop; sleep 100"))[0].startswith("[The command was ended after 1 seconds")
    env.unwrapped.command_timeout = 60.0
    assert env.step(bash("pwd; ls /sys/class/net"))[0] == "/testbed\nlo"


@pytest.mark.parametrize(
    ("command", "credit", "broken"),
    [
        ("true", 0, 0),
        ("echo 'def test_x(): pass' >tests/test_new.py", 0, 0),
        ("echo 'def test_x(): pass' >tests/test_price.py; git commit -qam x", 0, 0),
        ("echo 'def pytest_collection_modifyitems(items): items[:] = []' >conftest.py", 0, 0),
        ("printf '[pytest]\\naddopts = --co\\n' >pytest.ini; printf 'raise SystemExit' >sitecustomize.py", 0, 0),
        ("rm link.py; printf 'def test_nothing(): pass\\n' >link.py", 0, 0),  # Not written through the link.
        ("rm alias; mkdir alias; echo 'def test_mean(): pass' >alias/test_new.py; echo 1 >alias/x.py", 0, 0),
        (": >$'\\xff.py'; : >$'a\\nb.py'", 0, 0),
        ("sed -i 's/ + 1//' shop/price.py", 1, 0),
        (
            "sed -i 's/ + 1//' shop/price.py; rm -r shop/data; echo 1 >shop/data; rm alias; mkdir alias; : >alias/a",
            1,
            0,
        ),
        ("sed -i 's/echo 1/echo 2/' bin/tool", 1, 0),
        ("sed -i 's/ + 1//; s/return 0/return 2/' shop/price.py; mkdir x; : >x/empty.py; printf '\\0\\377' >x/b", 2, 0),
        ("sed -i 's/return 0/return 2/; s/ + 1/ + 5/' shop/price.py", 0, 1),
        ("rm -r shop; echo >shop", 0, 1),
    ],
)
def test_only_source_files_count_and_partial_repairs_in_part(play, command: str, credit: int, broken: int) -> None:
    env = play(reward_density="dense")
    env.step(bash(command))
    said, reward, terminated, _, info = env.step(bash("submit"))
    grade = env.unwrapped.last_grade
    assert (grade.credit, len(grade.broken)) == (credit, broken) if grade else credit == 0, grade
    assert reward == pytest.approx(credit / 4)
    assert (terminated, info["success"]) == (True, False)
    assert said.startswith("Submitted.")


def test_nothing_runs_where_nothing_has_been_changed(play) -> None:
    env = play(reward_at="turn")
    env.step(bash("ls; touch tests/test_x.py"))
    env.step(bash("submit"))
    assert env.unwrapped._graded == {}, (env.unwrapped._graded, env.unwrapped._left_out)
    assert env.unwrapped._grader is None


def test_tests_that_do_not_end_are_worth_nothing(play) -> None:
    env = play(grading_timeout=3.0)
    env.step(env.unwrapped.oracle()[0])
    env.step(bash("echo 'import time; time.sleep(60)' >>shop/price.py"))
    said, reward, *_ = env.step(bash("submit"))
    assert reward == 0.0
    assert "did not end in time" in said


def test_what_is_printed_decides_which_is_what_the_documentation_says(play) -> None:
    """The limit of reading logs: code under test can print what swebench looks for, and end the process."""
    env = play()
    tests = (*env.unwrapped.world.fail_to_pass, *env.unwrapped.world.pass_to_pass)
    printed = "\\n".join(f"PASSED {test}" for test in tests)
    forger = (
        "import contextlib, os\n"
        "for number in range(30):\n"
        f"    with contextlib.suppress(OSError): os.write(number, b'\\n{printed}\\n')\n"
        "os._exit(0)\n"
    )
    env.step(bash(f"cat >shop/price.py <<'EOF'\n{forger}EOF"))
    assert env.step(bash("submit"))[1] == 1.0


def test_a_sandbox_without_images_and_an_image_that_is_nowhere_say_so(shop: Row, tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", [shop.to_dict(), record(2, image="nobody.invalid/nothing:1")])
    for options, index in (({"sandbox": "process"}, 0), ({"sandbox": "docker"}, 1)):
        env = gymnasium.make(BENCH, rows=str(path), **options)
        with pytest.raises(SandboxError):
            env.reset(options={"task_index": index})
        env.close()


# Our own tasks as rows.


@pytest.fixture(scope="module")
def exported(container_image: str, tasks: BuiltTasks, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tasks as rows, with images."""
    from textagent_gym.domains.swe.rows.export import export_rows

    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    open_sandbox("auto").close()
    export_rows(tasks, [tasks.task("train", index) for index in (0, 1)], path, base=container_image)
    return path


def test_our_tasks_play_as_rows(exported: Path) -> None:
    env = gymnasium.make(BENCH, rows=str(exported), reward_density="dense")
    for index in range(2):
        env.reset(options={"task_index": index})
        row = env.unwrapped.world.row
        assert row.log_parser == "parse_log_pytest_v2"
        for test in row.fail_to_pass:
            file, _, name = test.partition("[")[0].partition("::")
            define = f"def {name.rpartition('::')[2]}("
            search = f"grep -s '{define}' {file}; git log --all -p -- {file} | grep '{define}'; true"
            assert env.step(bash(search))[0] == "[no output]"
        total, info = follow_the_oracle(env)
        assert info["success"], env.unwrapped.last_grade
        assert total == pytest.approx(1.0)
    env.close()


@pytest.mark.slow
def test_swebenchs_own_harness_resolves_the_repair_and_nothing_else(exported: Path, tmp_path: Path) -> None:
    first, second = (json.loads(line) for line in exported.read_text().splitlines())
    useless = "diff --git a/x.txt b/x.txt\nnew file mode 100644\n--- /dev/null\n+++ b/x.txt\n@@ -0,0 +1 @@\n+x\n"
    predictions = [
        {"instance_id": row["instance_id"], "model_name_or_path": "m", "model_patch": patch}
        for row, patch in ((first, first["patch"]), (second, useless))
    ]
    (tmp_path / "predictions.json").write_text(json.dumps(predictions))
    harness = [sys.executable, "-m", "swebench.harness.run_evaluation", "--max_workers", "2", "-id", "r"]
    done = subprocess.run(
        [*harness, "-d", str(exported), "-p", "predictions.json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "m.r.json").read_text())
    assert report["resolved_ids"] == [first["instance_id"]]
    assert report["unresolved_ids"] == [second["instance_id"]]


def test_only_tests_are_exported_whose_names_swebench_can_read() -> None:
    pytest.importorskip("swebench")
    from textagent_gym.domains.swe.rows.export import readable

    good = ("t.py::a", "t.py::a[b c]", "t.py::a[FAILED]")
    assert readable([*good, "t.py::a[b  c]", "t.py::a[b - c]", "t.py::a[3m]x", "t.py::a[b ]"]) == (
        *good,
        "t.py::a[b ]",
    )


def test_the_command_line_writes_rows(tasks: BuiltTasks, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("swebench")
    from textagent_gym.cli.main import main

    open_sandbox("auto").close()
    out = tmp_path / "below" / "rows.jsonl"
    with pytest.raises(SystemExit, match="0"):
        main(["swe", "rows", "--packages", "measures", "--count", "1", "--out", str(out)])
    source = Instances(str(out), divide="test")
    row = source.world(source.task("test", 0)).row
    assert row.instance_id.startswith("textagent__measures-own-")
    assert dataclasses.replace(row, where="").to_dict() == json.loads(out.read_text())
    with pytest.raises(SystemExit, match="2"):
        main(["swe", "rows"])
    assert "--out" in capsys.readouterr().err
