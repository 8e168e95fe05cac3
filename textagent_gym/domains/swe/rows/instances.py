"""Rows of the public data sets (SWE-Gym, SWE-bench and those of their form) as tasks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from textagent_gym.domains.swe.options import InstancesOptions
from textagent_gym.domains.swe.rows.patches import FilePatch, read_patch
from textagent_gym.domains.swe.rows.scripts import Row, completed
from textagent_gym.domains.swe.tasks import RepairComplexity, RepairTasks, RepairWorld
from textagent_gym.errors import InvalidOptionError, MissingDependencyError, UnknownTaskError
from textagent_gym.files import cache_folder, write_whole
from textagent_gym.tasks import Task, in_split

_FILES = (".jsonl", ".json", ".parquet")
_SPLITS = ("train", "validation", "test")
_NEEDED = ("instance_id", "repo", "problem_statement", "patch")
_OPTIONAL = ("base_commit", "version", "test_patch", "eval_script", "log_parser", "eval_type")
_IMAGE = ("image", "image_name", "docker_image")
_COMMAND = ("test_command", "test_cmd")
_FIELDS = (*_NEEDED, *_OPTIONAL, *_IMAGE, *_COMMAND, "FAIL_TO_PASS", "PASS_TO_PASS")


@dataclass(frozen=True, kw_only=True)
class InstanceWorld(RepairWorld):
    """The repository of an instance of a data set.

    Attributes:
        row: the instance, complete.
        files: changes of its own repair, file by file.
        test_files: paths that its tests' patch changes.
    """

    row: Row
    files: tuple[FilePatch, ...]
    test_files: frozenset[str]


class Instances(RepairTasks[InstanceWorld]):
    """Tasks from the rows of a data set.

    Args:
        rows: a `.jsonl`, `.json` or `.parquet` file, a folder with a copy of a data set, or the name of a data set for
            `datasets.load_dataset`, whose rows are fetched once and kept in the cache folder.
        images: scheme of the images' names where a row names no image: "swe-gym" or "swe-bench".
        divide: "id" deals the rows out to the splits by their ids and "repo" by their repositories, half of them for
            training; the name of a split puts all rows there, and there is no other split.
        dataset_split: split of the data set, where `rows` is the name of a data set.

    Raises:
        InvalidOptionError: there is no such file, or a row in it is not what it should be.
        MissingDependencyError: what reads such a file is not installed.
    """

    def __init__(
        self, rows: str, *, images: str = "swe-bench", divide: str = "id", dataset_split: str = "test"
    ) -> None:
        InstancesOptions(rows=rows, images=images, divide=divide, dataset_split=dataset_split)  # type: ignore[arg-type]
        self.rows = rows
        self.images = images
        self.divide = divide
        self.dataset_split = dataset_split
        if divide in _SPLITS:
            self.splits = (divide,)
        if is_file(rows):  # Read now, so that what is wrong with it is said now.
            _ = self._read

    def _ids(self, split: str) -> tuple[str, ...]:
        return tuple(self._read[place].instance_id for place in self._places[split])

    def _load(self, task_id: str, split: str, index: int) -> Task:
        return _task(self._by_id[task_id], split, index)

    def world(self, task: Task) -> InstanceWorld:
        """The repository of a task, with everything that its tests need.

        Raises:
            UnknownTaskError: there is no such row.
            InvalidOptionError: the row has no script, and none can be made.
            MissingDependencyError: swebench is not installed.
        """
        row = self._by_id.get(task.id)
        if row is None:
            raise UnknownTaskError(f"task {task.id!r:.200} does not exist here. {self._advice()}")
        return InstanceWorld(
            problem=row.problem_statement,
            fail_to_pass=row.fail_to_pass,
            pass_to_pass=row.pass_to_pass,
            row=completed(row, self.images),
            files=read_patch(row.patch),
            test_files=frozenset(path for file in read_patch(row.test_patch) for path in file.paths),
        )

    def _advice(self) -> str:
        return f"Ids are the instance ids of the rows in {self.rows}."

    @property
    def missing_data(self) -> str:
        """See `TaskSource`: rows that have a name only are fetched when the first task is asked for."""
        if is_file(self.rows) or _is_folder(self.rows) or _kept(self.rows, self.dataset_split).is_file():
            return ""
        return (
            f"The rows of {self.rows} are not on this machine. They are fetched when the first task is played, which "
            "needs a network. For a machine without a network, fetch them on another one with `hf download --repo-type "
            f"dataset {self.rows} --local-dir FOLDER`, and name the folder with `--set rows=FOLDER`."
        )

    @cached_property
    def _read(self) -> tuple[Row, ...]:
        if _is_folder(self.rows):
            return _checked(self.rows, _from_datasets(str(Path(self.rows).expanduser()), self.dataset_split))
        if is_file(self.rows):
            path = Path(self.rows).expanduser()
        else:
            path = _kept(self.rows, self.dataset_split)
            if not path.is_file():
                _fetch(self.rows, self.dataset_split, path)
        try:
            return _from_file(path, path.stat().st_mtime_ns)
        except OSError as error:
            raise InvalidOptionError(f"rows={self.rows!r} cannot be read: {error.strerror}") from error

    @cached_property
    def _by_id(self) -> dict[str, Row]:
        return {row.instance_id: row for row in self._read}

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        """Which rows are in a split."""
        if self.divide in self.splits:
            return {self.divide: list(range(len(self._read)))}
        contents = [row.repo if self.divide == "repo" else row.instance_id for row in self._read]
        return {
            split: [place for place, content in enumerate(contents) if in_split(content, split)]
            for split in self.splits
        }


def is_file(rows: str) -> bool:
    """The rows are in a file of this machine, by the name."""
    return rows.endswith(_FILES) or Path(rows).expanduser().is_file()


@lru_cache(maxsize=4)
def _from_file(path: Path, _changed: int) -> tuple[Row, ...]:
    return _checked(path.name, _records(path))


def _is_folder(rows: str) -> bool:
    """The rows are in a folder of this machine, as a copy of a data set is."""
    return bool(rows) and Path(rows).expanduser().is_dir()


def _kept(name: str, split: str) -> Path:
    """The file in which fetched rows of a data set are kept."""
    return cache_folder() / "swe" / "rows" / f"{quote(name.replace('/', '--'), safe='')}@{quote(split, safe='')}.jsonl"


def _fetch(name: str, split: str, path: Path) -> None:
    """Fetch the rows of a data set, and keep of them what is read.

    Raises:
        InvalidOptionError: there is no such data set or no network, or a row is not what it should be.
        MissingDependencyError: `datasets` is not installed.
    """
    records = list(_from_datasets(name, split))
    _checked(name, iter(records))
    lines = (json.dumps({field: record.get(field) for field in _FIELDS}) for _, record in records)
    write_whole(path, "".join(f"{line}\n" for line in lines))


def _from_datasets(name: str, split: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The rows of a data set, and where each is."""
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise MissingDependencyError("datasets", "swebench") from error
    try:
        records = load_dataset(name, split=split)
    except Exception as error:
        raise InvalidOptionError(
            f"rows={name!r} is no file ({', '.join(_FILES)}), and no data set with a split {split!r} that is available "
            f"here: {error}. Without a network, name a file of rows, or a folder with a copy of the data set."
        ) from error
    for number, record in enumerate(records, start=1):
        yield f"row {number}", record


def _records(path: Path) -> Iterator[tuple[str, object]]:
    """What a file holds, and where."""
    if path.suffix == ".parquet":
        try:
            from pyarrow import parquet
        except ImportError as error:
            raise MissingDependencyError("pyarrow", "swebench") from error
        try:
            table = parquet.read_table(path)
        except ValueError as error:  # What pyarrow raises is one.
            raise InvalidOptionError(f"{path.name} is no parquet file: {error}") from error
        for number, record in enumerate(table.to_pylist(), start=1):
            yield f"row {number}", record
        return
    with open(path, encoding="utf-8") as file:
        if path.suffix == ".json":
            try:
                held = json.load(file)
            except ValueError as error:
                raise InvalidOptionError(f"{path.name} is no JSON: {error}") from error
            if not isinstance(held, list):
                raise InvalidOptionError(f"{path.name} must hold a list of objects, one for each row")
            yield from ((f"row {number}", record) for number, record in enumerate(held, start=1))
            return
        for number, line in enumerate(file, start=1):
            if line.strip():
                try:
                    yield f"line {number}", json.loads(line)
                except ValueError as error:
                    raise InvalidOptionError(f"{path.name}, line {number}: no JSON: {error}") from error


def _checked(name: str, records: Iterator[tuple[str, object]]) -> tuple[Row, ...]:
    rows: dict[str, Row] = {}
    for place, record in records:
        where = f"{name}, {place}"
        if not isinstance(record, Mapping):
            raise InvalidOptionError(f"{where}: a row is an object, not {record!r:.60}")
        row = read_row(record, where)
        if row.instance_id in rows:
            raise InvalidOptionError(f"{where}: instance_id {row.instance_id!r} has been there before")
        rows[row.instance_id] = row
    if not rows:
        raise InvalidOptionError(f"{name} holds no rows")
    return tuple(rows.values())


def read_row(record: Mapping[str, Any], where: str = "the row") -> Row:
    """A row of a data set, as it is there.

    Raises:
        InvalidOptionError: a field is missing, or is not what it should be.
    """

    def text(field: str, *, needed: bool = False) -> str:
        value = record.get(field)
        if value is None or value == "":
            if needed:
                raise InvalidOptionError(f"{where}: field {field} is missing")
            return ""
        if not isinstance(value, str):
            raise InvalidOptionError(f"{where}: field {field} must be a string, got {value!r:.60}")
        return value

    values = {field: text(field, needed=True) for field in _NEEDED} | {field: text(field) for field in _OPTIONAL}
    fail_to_pass = _tests(record, "FAIL_TO_PASS", where)
    if not fail_to_pass:
        raise InvalidOptionError(f"{where}: field FAIL_TO_PASS is empty, so that nothing would decide")
    if not values["eval_script"]:
        for field in ("test_patch", "base_commit"):
            if not values[field]:
                raise InvalidOptionError(f"{where}: field {field} is missing, and there is no eval_script")
    return Row(
        **values,
        fail_to_pass=fail_to_pass,
        pass_to_pass=_tests(record, "PASS_TO_PASS", where),
        image=next(filter(None, map(text, _IMAGE)), ""),
        test_command=next(filter(None, map(text, _COMMAND)), ""),
        where=where,
    )


def _tests(record: Mapping[str, Any], field: str, where: str) -> tuple[str, ...]:
    """Ids of tests: a list, or one written as JSON."""
    value = record.get(field)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise InvalidOptionError(f"{where}: field {field} is no JSON: {error}") from error
    if not isinstance(value, list) or not all(isinstance(test, str) for test in value):
        raise InvalidOptionError(f"{where}: field {field} must be a list of strings, or one as JSON, got {value!r:.60}")
    return tuple(dict.fromkeys(value))


def _task(row: Row, split: str, index: int) -> Task:
    files = read_patch(row.patch)
    return Task(
        id=row.instance_id,
        split=split,
        index=index,
        complexity=RepairComplexity(
            solution_length=sum(max(1, file.hunks) for file in files) + 1,  # A command for each place, and to submit.
            files=len(files),
            hunks=sum(file.hunks for file in files),
            lines=sum(file.lines for file in files),
        ),
        milestones=len(row.fail_to_pass),
        task_type=row.repo,
    )
