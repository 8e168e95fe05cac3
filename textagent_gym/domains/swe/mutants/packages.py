"""The repositories that tasks are made of: source distributions of real packages, and one of our own.

Only recipes are kept here: name, version and SHA-256. The code comes from the package index, once, and is checked.
"""

from __future__ import annotations

import compileall
import contextlib
import hashlib
import importlib.util
import io
import json
import os
import py_compile
import re
import shutil
import tarfile
import urllib.error
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from urllib.parse import urljoin

from textagent_gym.domains.swe.grading.pytest_runs import TestRun, run_tests
from textagent_gym.domains.swe.source_files import folders_of_tests, is_named_as_a_test, is_test
from textagent_gym.errors import InvalidOptionError, TextAgentError
from textagent_gym.files import cache_folder, whole_folder, write_whole
from textagent_gym.sandbox.base import ROOT, Changes, Sandbox

VERSION = 9
"""Version of what is prepared; raised whenever that changes."""
_TEST_SECONDS = 60.0  # For all tests of a package.

_OWN = Path(__file__).parent / "repositories"
_LEFT_OUT = (
    ".git",
    "__pycache__",
    ".benchmarks",
    ".venv",
    ".tox",
    "node_modules",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
)
_LONG_AGO = 946_684_800  # The date of all files, 2000-01-01.


class PackageError(TextAgentError, RuntimeError):
    """A package cannot be fetched, or is not what it should be."""


@dataclass(frozen=True, slots=True)
class Package:
    """A package.

    Attributes:
        name, version: name and version of the package.
        sources: folder with its code, below the root of the repository.
        lines: number of lines of its code.
        paths: folders that must be importable.
        sha256: hash of its source distribution.
        folder: folder of a package that is not a source distribution.
        parts: folders whose tests count and whose code gets the mistakes; empty for all folders. Agents see the whole
            repository either way.
    """

    name: str
    version: str
    sources: str
    lines: int
    paths: tuple[str, ...] = (".",)
    sha256: str = ""
    folder: str = ""
    parts: tuple[str, ...] = ()

    def counts(self, name: str) -> bool:
        """A file belongs to the parts that count."""
        return not self.parts or any(name.startswith(f"{part}/") for part in self.parts)

    @property
    def slug(self) -> str:
        """Name and version."""
        return f"{self.name}-{self.version}"


PACKAGES = {
    package.name: package
    for package in (
        Package("measures", "own", "measures", 239, folder=str(_OWN / "measures")),
        Package(
            "boltons",
            "26.2.0",
            "boltons",
            17389,
            sha256="d39cfd15c1a1c3bd4d705c82252fa9edb8e4f5e8cc039f8e39afac7b1b47e92c",
        ),
        Package(
            "cachetools",
            "8.0.1",
            "src/cachetools",
            1670,
            sha256="deb1d376d4d28c2f33f3e3058043b005e0af75c35c094bd54053e27d2906ad95",
            paths=("src", "."),
        ),
        Package(
            "inflection",
            "0.5.1",
            "inflection",
            426,
            sha256="1a29730d366e996aaacffb2f1f1cb9593dc38e2ddd30c91250c6dde09ea9b417",
        ),
        Package(
            "networkx",
            "3.6.1",
            "networkx",
            117226,
            sha256="26b7c357accc0c8cde558ad486283728b65b6a95d85ee1cd66bafab4c8168509",
            parts=tuple(
                f"networkx/{name}"  # The others' tests take a minute, too long for every grading.
                for name in (
                    "algorithms/assortativity",
                    "algorithms/bipartite",
                    "algorithms/centrality",
                    "algorithms/coloring",
                    "algorithms/components",
                    "algorithms/operators",
                    "algorithms/shortest_paths",
                    "algorithms/traversal",
                    "utils",
                )
            ),
        ),
        Package(
            "schema", "0.7.8", "schema", 961, sha256="e86cc08edd6fe6e2522648f4e47e3a31920a76e82cce8937535422e310862ab5"
        ),
        Package(
            "sqlparse",
            "0.6.1",
            "sqlparse",
            4398,
            sha256="ca722573f848ff2d30e40ea30f53a104b7dea7635ea9285891263eb2c58fb6e7",
        ),
        Package(
            "tabulate",
            "0.9.0",
            "tabulate",
            2721,
            sha256="0095b12bf5966de529c0feb1fa08671671b3368eec77d7ef7ab114be2c068b3c",
        ),
        Package(
            "tinydb", "4.9.0", "tinydb", 2249, sha256="6928b1fa785186bda7952a0ba05aaeedc883ede565ca9c7d608de44e5e75de70"
        ),
        Package(
            "toolz", "1.2.0", "toolz", 3805, sha256="9667a038e9d6ecba37995e26cb2f59ec6420b6ad8dd9677de59db9b956b08490"
        ),
        Package(
            "voluptuous",
            "0.15.2",
            "voluptuous",
            3076,
            sha256="6ffcab32c4d3230b4d2af3a577c87e1908a714a11f6f95570456b1849b0279aa",
        ),
        Package(
            "webcolors",
            "25.10.0",
            "src/webcolors",
            1284,
            sha256="62abae86504f66d0f6364c2a8520de4a0c47b80c03fc3a5f1815fedbef7c19bf",
            paths=("src", "."),
        ),
    )
}
"""By name."""


@dataclass(frozen=True)
class Repository:
    """A package, prepared: unpacked, and its tests run.

    Attributes:
        package: the package.
        root: folder of the unpacked package; nobody writes to it.
        compiled: folder with the tests' compiled files, which agents do not see.
        platform: platform of the sandbox in which the tests were run; see `Sandbox.platform`.
        tests: ids of the tests that pass, time after time.
        test_files: files of the tests.
        source_files: files of the code that gets mistakes, without tests.
    """

    package: Package
    root: Path
    compiled: Path
    platform: str
    tests: frozenset[str]
    test_files: tuple[str, ...]
    source_files: tuple[str, ...] = ()

    @cached_property
    def test_texts(self) -> dict[str, str]:
        """The test files by path."""
        return {name: (self.root / name).read_text(encoding="utf-8") for name in self.test_files}

    @cached_property
    def test_sources(self) -> dict[str, str]:
        """The test files and what else belongs to the tests, by path."""
        names = _files(self.root, "*.py")
        folders = folders_of_tests(names, self.package.sources)
        others = (name for name in names if is_test(name, folders))
        return {
            name: (self.root / name).read_text(encoding="utf-8", errors="replace") for name in others
        } | self.test_texts

    @cached_property
    def files(self) -> frozenset[str]:
        """All files by path."""
        return frozenset(_files(self.root))


def find(name: str) -> Package:
    """A package by name, or the repository in a folder, if the name is a path with a slash in it.

    Raises:
        InvalidOptionError: there is none.
    """
    if "/" in name:
        return from_folder(Path(name).expanduser().resolve())
    if name not in PACKAGES:
        known = ", ".join(PACKAGES)
        raise InvalidOptionError(f"package {name!r} does not exist; choose of {known}, or name a folder (with a slash)")
    return PACKAGES[name]


def from_folder(folder: Path) -> Package:
    """A repository of one's own: its code is the one folder with an `__init__.py` at the top or in `src`.

    Raises:
        InvalidOptionError: there is no such folder, or none or several in it.
    """
    tests = folders_of_tests(_files(folder))
    candidates = [
        path.parent
        for parent in (folder, folder / "src")
        for path in sorted(parent.glob("*/__init__.py"))
        if not is_test(str(path.relative_to(folder)), tests)
    ]
    if len(candidates) != 1:
        names = ", ".join(path.name for path in candidates) or "none"
        raise InvalidOptionError(f"{folder} should hold one package, at its top or in src; there is {names}")
    sources = str(candidates[0].relative_to(folder))
    lines = sum(path.read_bytes().count(b"\n") for path in candidates[0].rglob("*.py"))
    paths = ("src", ".") if sources.startswith("src/") else (".",)
    return Package(folder.name, "local", sources, lines, paths, folder=str(folder))


def prepare(package: Package, sandbox: Sandbox) -> Repository:
    """Fetch, unpack and test a package, once a machine and platform of the sandbox.

    Raises:
        PackageError: it cannot be fetched, or is not what it should be.
    """
    root = unpack(package)
    record = root.parent / f"{root.name}-{sandbox.platform}.json"
    if not record.is_file():
        measured = _measure(package, root, sandbox)
        write_whole(record, json.dumps(measured))
    return _read(package, root, sandbox.platform, str(record))


@lru_cache(maxsize=64)
def _read(package: Package, root: Path, platform: str, record: str) -> Repository:
    data = json.loads(Path(record).read_text(encoding="utf-8"))
    return Repository(
        package=package,
        root=root,
        compiled=_compiled(root),
        platform=platform,
        tests=frozenset(data["tests"]),
        test_files=tuple(data["test_files"]),
        source_files=_source_files(package, root),
    )


def unpack(package: Package) -> Path:
    """The folder of a package's files, fetched if need be."""
    folder = cache_folder() / "swe" / f"v{VERSION}" / "packages"
    root = folder / (f"{package.slug}-{_digest(Path(package.folder))}" if package.folder else package.slug)
    if root.is_dir() and _compiled(root).is_dir():
        return root
    with whole_folder(root) as part:
        if package.folder:
            left_out = shutil.ignore_patterns(*_LEFT_OUT)
            shutil.copytree(package.folder, part, dirs_exist_ok=True, ignore=left_out, ignore_dangling_symlinks=True)
        else:
            _extract(_fetch(package), part)
        date(part)
        compile_sources(part, part / package.sources)
    names = _files(root, "*.py")
    tests = folders_of_tests(names, package.sources)
    with whole_folder(_compiled(root)) as part:
        compile_tests(root, (name for name in names if is_test(name, tests)), part)
    return root


def _compiled(root: Path) -> Path:
    """The folder of the compiled tests of a repository."""
    return root.with_name(f"{root.name}-tests")


def compile_tests(root: Path, names: Iterable[str], folder: Path) -> None:
    """Compile some test files of a repository into another folder, laid out in the same way."""
    for name in names:
        target = importlib.util.cache_from_source(folder / name)
        with contextlib.suppress(py_compile.PyCompileError):
            py_compile.compile(str(root / name), target, dfile=f"{ROOT}/{name}", doraise=True)


def compile_sources(root: Path, folder: Path) -> None:
    """Compile the code in a folder of a repository, without its tests.

    A compiled file is used as long as its source has the same date and size. Nobody's edit has a date as long past as
    that of these files.
    """
    tests = folders_of_tests(_files(root, "*.py"))
    for path in folder.rglob("*.py"):
        if not is_test(str(path.relative_to(root)), tests):
            compileall.compile_file(str(path), quiet=2, stripdir=str(root), prependdir=ROOT)


def date(folder: Path) -> None:
    """Give everything in a folder, and itself, the same date."""
    for path in (*folder.rglob("*"), folder):
        os.utime(path, (_LONG_AGO, _LONG_AGO), follow_symlinks=False)


def _digest(folder: Path) -> str:
    """A short hash of a repository that may change under its name."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not set(_LEFT_OUT) & set(path.relative_to(folder).parts):
            digest.update(f"{path.relative_to(folder)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def _extract(archive: bytes, folder: Path) -> None:
    """Unpack a source distribution without its outermost folder; links and special files are left out."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar.getmembers():
            name = member.name.partition("/")[2]
            if name and (member.isfile() or member.isdir()) and ".." not in name.split("/"):
                target = folder / name
                if member.isdir():
                    target.mkdir(parents=True, exist_ok=True)
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                content = tar.extractfile(member)
                assert content is not None
                target.write_bytes(content.read())
                target.chmod(0o755 if member.mode & 0o100 else 0o644)


def _fetch(package: Package) -> bytes:
    """The source distribution, from the package index that pip uses (`PIP_INDEX_URL`, or PyPI)."""
    index = (os.environ.get("PIP_INDEX_URL") or "https://pypi.org/simple").rstrip("/")
    page = f"{index}/{package.name}/"
    wanted = f"{package.name}-{package.version}.tar.gz"
    try:
        with urllib.request.urlopen(page, timeout=60) as answer:
            links = re.findall(r'<a [^>]*href="([^"]+)"[^>]*>\s*([^<\s]+)\s*</a>', answer.read().decode())
        address = next((href for href, name in links if name == wanted), None)
        if address is None:
            raise PackageError(f"{wanted} is not in the index {index}")
        with urllib.request.urlopen(urljoin(page, address.partition("#")[0]), timeout=300) as answer:
            archive: bytes = answer.read()
    except (urllib.error.URLError, TimeoutError, OSError) as error:
        raise PackageError(
            f"{wanted} cannot be fetched from {index}: {error}. Tasks of the package 'measures' need no network."
        ) from error
    digest = hashlib.sha256(archive).hexdigest()
    if digest != package.sha256:
        raise PackageError(f"{wanted} has the SHA-256 {digest}, and should have {package.sha256}")
    return archive


def _files(folder: Path, pattern: str = "*") -> list[str]:
    """The files below a folder by path, sorted."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob(pattern) if path.is_file())


def _source_files(package: Package, root: Path) -> tuple[str, ...]:
    """The code of a package, without its tests."""
    names = _files(root, "*.py")
    tests = folders_of_tests(names, package.sources)
    code = (name for name in names if name == package.sources or name.startswith(f"{package.sources}/"))
    return tuple(name for name in code if package.counts(name) and not is_test(name, tests))


def _measure(package: Package, root: Path, sandbox: Sandbox) -> dict[str, object]:
    """Run the tests three times; what passes each time counts."""
    files = [name for name in _files(root, "*.py") if package.counts(name) and is_named_as_a_test(name)]
    runs = []
    for _ in range(3):
        runs.append(run_tests(sandbox, [root], {}, test_files=files, paths=package.paths))
        if runs[-1].forged or runs[-1].timed_out:
            why = runs[-1].forged or "they take too long"
            raise PackageError(f"the tests of {package.slug} do not run here: {why}")
    passed = frozenset.intersection(*(run.passed for run in runs))
    if not passed:
        raise PackageError(f"no test of {package.slug} passes here three times in a row")
    used = sorted({test.partition("::")[0] for test in passed})
    return {"tests": sorted(passed), "test_files": used}


def run_all(repository: Repository, sandbox: Sandbox, changed: Changes, maxfail: int = 0) -> TestRun:
    """Run all tests of a package with some files changed."""
    return run_tests(
        sandbox,
        [repository.compiled, repository.root],
        changed,
        test_files=repository.test_files,
        paths=repository.package.paths,
        maxfail=maxfail,
        explain=bool(maxfail),
        seconds=_TEST_SECONDS,
    )
