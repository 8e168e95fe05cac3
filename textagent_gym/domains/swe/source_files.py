"""What in a repository is a test, and what an agent's changes are worth: the one place that says so.

Protected is what decides on tests *in the task's own tree*: its tests, whatever lies in its folders of tests, and
everywhere the settings of pytest, start-up files, compiled files, and what tools keep for themselves, `.git` above all.
A module of the agent's own is source by whatever name, as long as it is in none of these places and takes none of them.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from textagent_gym.sandbox.base import Changes
from textagent_gym.sandbox.changes import ReadingOrder

_TEST_NAME = re.compile(r"(^|/)(test_[^/]*|[^/]*_test|tests)\.py$")
_TEST_FOLDERS = ("test", "tests")
_UNKNOWN_TEST_FOLDERS = (*_TEST_FOLDERS, "testing")
_SETTINGS = (
    "conftest", "conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "setup.cfg",
    "pyproject.toml", ".coveragerc", "sitecustomize", "sitecustomize.py", "usercustomize", "usercustomize.py", "*.pth",
)  # fmt: skip
PRODUCT_FOLDERS = (".git", ".hg", ".svn", "__pycache__", ".pytest_cache")
"""Folders that tools keep for themselves, which nobody has to look into."""
READING_ORDER = ReadingOrder(
    first=("*.py",),
    last=(
        *("*.o", "*.obj", "*.a", "*.so", "*.d", "*.class", "*.log", "*.tmp"),
        *("build", "dist", "target", "node_modules", "venv", "env", "site-packages", ".?*", "*.egg-info"),
    ),
)
"""A package that was moved counts, also where a build or an environment has left more files than are read."""
_PRODUCTS = (*PRODUCT_FOLDERS, "*.pyc", "*.pyo", "*.so", "*.dist-info", "*.egg-info")
_A_SETTING = re.compile("|".join(fnmatch.translate(name) for name in _SETTINGS))
_A_PRODUCT = re.compile("|".join(fnmatch.translate(name) for name in _PRODUCTS))
_LONGEST_NAME = 200  # Characters of a name in a sentence; a path may have thousands.


class SourceChanges(NamedTuple):
    """What an agent has changed.

    Attributes:
        counted: changes of source files.
        left_out: a sentence for each other change that somebody may have meant to count.
    """

    counted: Changes
    left_out: tuple[str, ...] = ()


def is_named_as_a_test(name: str) -> bool:
    """A file that pytest takes for a test by its name.

    >>> is_named_as_a_test("pkg/test_a.py"), is_named_as_a_test("pkg/a_test.py"), is_named_as_a_test("pkg/testing.py")
    (True, True, False)
    """
    return bool(_TEST_NAME.search(name))


def is_product(name: str) -> bool:
    """A file that tools make for themselves, such as `.git/HEAD`: nobody's source, wherever it is."""
    return any(_A_PRODUCT.match(part) for part in name.lower().split("/"))


def folders_of_tests(files: Iterable[str], sources: str | None = None) -> frozenset[str]:
    """The folders of a repository that are there for its tests.

    These are the folders "test" and "tests" in or below which there is a test, and outside of the code every other
    folder with a test in it. A folder that only has such a name holds code.

    Args:
        files: files of the repository.
        sources: folder of the repository's code; `None` if it is not known.

    >>> files = ["a/x.py", "a/testing/y.py", "a/tests/io/test_x.py", "checks/test_y.py", "test_z.py"]
    >>> sorted(folders_of_tests(files, "a"))
    ['a/tests', 'checks']
    """
    test_folders: set[str] = set()
    for name in files:
        if is_named_as_a_test(name):
            folders = list(_parents(name))
            test_folders.update(folder for folder in folders if folder.rpartition("/")[2].lower() in _TEST_FOLDERS)
            if folders and sources is not None and not _is_around(folders[-1], sources):
                test_folders.add(folders[-1])
    return frozenset(test_folders)


def _is_around(folder: str, sources: str) -> bool:
    """A folder lies in the code, or the code in it."""
    return f"{folder}/".startswith(f"{sources}/") or f"{sources}/".startswith(f"{folder}/")


def is_test(name: str, folders: Collection[str]) -> bool:
    """A file of a repository belongs to its tests.

    Args:
        name: path of the file.
        folders: `folders_of_tests` of the repository.
    """
    return (
        is_named_as_a_test(name)
        or name.rpartition("/")[2] == "conftest.py"
        or any(parent in folders for parent in _parents(name))
    )


def source_changes(
    changes: Changes,
    test_files: Iterable[str] = (),
    tree_files: Iterable[str] | None = None,
    *,
    sources: str | None = None,
) -> SourceChanges:
    """What counts of an agent's changes.

    The task's tree with these changes is a tree: no file lies below another one's name, and none in the place of a
    folder that stays.

    Args:
        changes: changes of the agent.
        test_files: test files of the task, hidden ones included.
        tree_files: files of the task's own tree; `None` if they are not known, and then whatever is named like a test
            is one.
        sources: folder of the code, which lets tests be known by where they are.

    >>> changes = {"a.py": b"", "tests/b.py": b"", "conftest.py": b"", ".git/HEAD": b"", "a_test.py": b""}
    >>> sorted(source_changes(changes, ["tests/test_a.py"], ["a.py", "tests/test_a.py"]).counted)
    ['a.py', 'a_test.py']
    >>> source_changes(changes).left_out[-1]
    'a_test.py belongs to the tests, which stay as they are.'
    """
    known = None if tree_files is None else frozenset(tree_files)
    tree = known or frozenset()
    tests = frozenset((*test_files, *filter(is_named_as_a_test, tree)))
    folders = folders_of_tests(tree | tests, sources)

    def is_protected(name: str) -> bool:
        if known is None and (is_named_as_a_test(name) or _is_among_tests(name)):
            return True
        # A module hides a folder of its name, and a package a module.
        places = {
            other for place in (name, *_parents(name)) for other in (place, f"{place}.py", place.removesuffix(".py"))
        }
        return not (folders.isdisjoint(places) and tests.isdisjoint(places))

    counted: Changes = {}
    left_out: list[str] = []
    for name, content in changes.items():
        if is_product(name):
            continue
        if any(_A_SETTING.match(part) for part in name.lower().split("/")):
            left_out.append(f"{_shown(name)} is a setting or a start-up file, and these stay as they are.")
        elif is_protected(name):
            left_out.append(f"{_shown(name)} belongs to the tests, which stay as they are.")
        else:
            counted[name] = content
    out_of_place = list(_out_of_place(counted, tree))
    for name in out_of_place:
        del counted[name]
    return SourceChanges(
        counted,
        (*(f"{_shown(name)} is in the place of a file or folder that stays." for name in out_of_place), *left_out),
    )


def _is_among_tests(name: str) -> bool:
    """A file that probably belongs to tests, in a tree that nobody knows."""
    return any(part.lower() in _UNKNOWN_TEST_FOLDERS for part in name.split("/"))


def _out_of_place(changes: Changes, tree: Collection[str]) -> Iterator[str]:
    """Written files that cannot be in the tree together with what else is there, outermost first."""
    files = {name for name in tree if changes.get(name, b"") is not None}
    folders = {folder for name in files for folder in _parents(name)}
    for name in sorted((name for name, content in changes.items() if content is not None), key=_depth):
        if name in folders or any(parent in files for parent in _parents(name)):
            yield name
        else:
            files.add(name)


def _depth(name: str) -> tuple[int, str]:
    return name.count("/"), name


def _parents(name: str) -> Iterator[str]:
    """The folders of a file, outermost first.

    >>> list(_parents("a/b/c.py"))
    ['a', 'a/b']
    """
    place = name.find("/")
    while place >= 0:
        yield name[:place]
        place = name.find("/", place + 1)


def _shown(name: str) -> str:
    """A name on one line."""
    text = name if name.isprintable() else ascii(name)[1:-1]
    return text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}..."
