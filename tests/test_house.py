"""The rules of the house that can be checked by reading: who may import whom, what a docstring holds, how it is worded.

Nothing is imported here but what the last tests of imports need, so a breach is found in every file, also in those
whose libraries are not installed.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from textagent_gym.registration import REGISTRATIONS, WORLDS

ROOT = Path(__file__).parents[1]
SUITE = "textagent_gym"
TRAINERS = "baselines"
FLOORS = ("foundation", "domains", "wrappers", "vector", "agents", "evaluation", "leaderboard", "cli")
"""From the ground up: each imports from those below. Whatever has no name here is part of the foundation."""
ROOMS = ("settings", "envs", "policy", "rollout", "credit", "evaluation", "training", "executables")
"""Folders of the trainers from the ground up: each imports from those below. The files at the top are executables."""
TRAINING_LIBRARIES = {"torch", "transformers", "trl", "accelerate", "peft", "vllm", TRAINERS}
WORLD_LIBRARIES = {
    *(module for world in WORLDS for module in world.modules),
    *("alfworld", "docker", "ray", "datasets", "playwright", "openai"),
}
SECTIONS = ("Description", "Actions", "Observations", "Rewards", "Difficulty", "Registered ids")


@dataclass(frozen=True)
class Source:
    """One file of ours, read once.

    Attributes:
        path: Path from the root of the checkout.
        tree: Syntax tree of the file.
        lines: Lines of the file.
    """

    path: str
    tree: ast.Module
    lines: tuple[str, ...]

    @property
    def module(self) -> str:
        """Dotted name; a package's is that of its folder."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @property
    def floor(self) -> str:
        """Name of the floor in which the file lives; `baselines` for a trainer."""
        parts = self.module.split(".")
        return TRAINERS if parts[0] == TRAINERS else floor_of(self.module)

    def imports(self) -> Iterator[tuple[int, str]]:
        """Line and dotted name of every module or member that the file imports, also inside functions."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


@cache
def sources() -> tuple[Source, ...]:
    files = [path for folder in (SUITE, TRAINERS) for path in sorted((ROOT / folder).rglob("*.py"))]
    ours = [path for path in files if "repositories" not in path.parts]  # Packages that agents repair are not ours.
    texts = {path: path.read_text(encoding="utf-8") for path in ours}
    return tuple(
        Source(path.relative_to(ROOT).as_posix(), ast.parse(text), tuple(text.splitlines()))
        for path, text in texts.items()
    )


@cache
def modules() -> frozenset[str]:
    return frozenset(source.module for source in sources())


def module_of(name: str) -> str:
    """The module that an imported name lives in: `a.b.C` is found in `a.b`."""
    return name if name in modules() else name.rpartition(".")[0]


def floor_of(name: str) -> str:
    parts = name.split(".")
    if parts[1:] == ["__main__"]:  # The command line, as `python -m` runs it.
        return "cli"
    return parts[1] if len(parts) > 1 and parts[1] in FLOORS else "foundation"


def imports_of_ours() -> Iterator[tuple[Source, int, str]]:
    """Every import of the suite's own modules, by the suite or by the trainers."""
    for source in sources():
        yield from ((source, line, name) for line, name in source.imports() if name.split(".")[0] == SUITE)


def report(breaches: list[str]) -> None:
    """Fail if there is a breach, and list them all."""
    assert not breaches, "\n" + "\n".join(breaches)


# Imports.


def test_imports_point_down() -> None:
    breaches = []
    for source, line, name in imports_of_ours():
        here, there = source.floor, floor_of(name)
        if here not in (TRAINERS, there) and FLOORS.index(there) >= FLOORS.index(here):
            breaches.append(f"{source.path}:{line}: {here} may not import {name}")
    report(breaches)


def test_worlds_never_import_each_other() -> None:
    breaches = [
        f"{source.path}:{line}: imports {name}"
        for source, line, name in imports_of_ours()
        if source.floor == floor_of(name) == "domains" and name.split(".")[2] != source.module.split(".")[2]
    ]
    report(breaches)


def test_packages_have_no_cycles() -> None:
    def package(module: str) -> str:
        parts = module.split(".")
        return ".".join(parts[: 3 if parts[1:2] == ["domains"] else 2])

    graph: dict[str, set[str]] = {}
    for source, _, name in imports_of_ours():
        here, there = package(source.module), package(module_of(name))
        graph.setdefault(here, set()).update({there} - {here})
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_trainers_import_down() -> None:
    def room(module: str) -> int:
        parts = module.split(".")
        return ROOMS.index(parts[1] if len(parts) > 1 and parts[1] in ROOMS else "executables")

    breaches = [
        f"{source.path}:{line}: {ROOMS[room(source.module)]} may not import {name}"
        for source in sources()
        if source.floor == TRAINERS and source.module != TRAINERS
        for line, name in source.imports()
        if name.split(".")[0] == TRAINERS and room(name) > room(source.module)
    ]
    report(breaches)


def test_every_folder_of_the_trainers_is_a_room() -> None:
    folders = {
        source.module.split(".")[1] for source in sources() if source.path.count("/") > 1 and source.floor == TRAINERS
    }
    assert folders == set(ROOMS) - {"executables"}


def test_vector_environments_know_nothing_of_worlds() -> None:
    allowed = (f"{SUITE}.vector", f"{SUITE}.errors", f"{SUITE}.ray_cluster")
    breaches = [
        f"{source.path}:{line}: imports {name}"
        for source, line, name in imports_of_ours()
        if source.floor == "vector" and not name.startswith(allowed)
    ]
    report(breaches)


def test_the_suite_never_imports_what_trains() -> None:
    breaches = [
        f"{source.path}:{line}: imports {name}"
        for source in sources()
        if source.floor != TRAINERS
        for line, name in source.imports()
        if name.split(".")[0] in TRAINING_LIBRARIES
    ]
    report(breaches)


def test_trainers_use_the_public_face() -> None:
    """A trainer imports from `textagent_gym`, from a module right under it, or what a package lists in `__all__`."""
    faces = {
        source.module: {name.value for node in ast.walk(source.tree) if is_face(node) for name in node.value.elts}
        for source in sources()
        if source.path.endswith("__init__.py")
    }
    breaches = []
    for source, line, name in imports_of_ours():
        if source.floor != TRAINERS:
            continue
        module, _, member = name.rpartition(".")
        listed = module not in faces or member in faces[module] or name in modules()
        if module.count(".") > 1 or (name in modules() and name.count(".") > 1) or member.startswith("_") or not listed:
            breaches.append(f"{source.path}:{line}: {name} is not on the face of {'.'.join(name.split('.')[:2])}")
    report(breaches)


def is_face(node: ast.AST) -> Any:
    return isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets)


def test_importing_the_suite_loads_no_worlds_library() -> None:
    code = "import textagent_gym, gymnasium, sys; gymnasium.spec('textagent/TextWorld-v0'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = set(done.stdout.split())
    assert "textagent_gym.registration" in loaded
    assert not loaded & (WORLD_LIBRARIES | TRAINING_LIBRARIES)
    assert not any(floor_of(name) != "foundation" for name in loaded if name.startswith(f"{SUITE}."))


# Docstrings.


@cache
def world_classes() -> dict[str, ast.ClassDef]:
    """Classes of the worlds by `module:name`, and by name alone for bases."""
    found: dict[str, ast.ClassDef] = {}
    for source in sources():
        if source.floor == "domains":
            for node in source.tree.body:
                if isinstance(node, ast.ClassDef):
                    found[f"{source.module}:{node.name}"] = found[node.name] = node
    return found


def page(node: ast.ClassDef) -> str:
    """Docstrings of a class and of its bases among the worlds, the base's first, as the documentation shows them."""
    names = [ast.unparse(base).partition("[")[0] for base in node.bases]
    bases = [page(world_classes()[name]) for name in names if name in world_classes()]
    return "\n".join([*bases, ast.get_docstring(node) or ""])


@pytest.mark.parametrize("entry_point", sorted({str(registration.entry_point) for registration in REGISTRATIONS}))
def test_the_page_of_a_world_has_its_sections_in_order(entry_point: str) -> None:
    headings = re.findall(r"^## (.+)$", page(world_classes()[entry_point]), re.M)
    assert tuple(heading for heading in headings if heading in SECTIONS) == SECTIONS


def test_every_registered_id_is_on_the_page_of_its_world() -> None:
    """Ids that differ in numbers only, such as `TextWorld-w2-o3-q4-v0`, are told by their pattern."""
    missing = []
    for registration in REGISTRATIONS:
        pattern = re.sub(r"(?<=-[woq])\d+", "#", registration.id)
        text = page(world_classes()[str(registration.entry_point)]).partition("## Registered ids")[2]
        if f"`{registration.id}`" not in text and pattern not in re.sub(r"(?<=-[woq])[A-Z]\b", "#", text):
            missing.append(registration.id)
    assert not missing


# English. Each rule: what is not said, and what is said instead.

PHRASES = {
    r"\bcan(?:not)? be had\b": "is available, is not available",
    r"(?<!there\s)\b(?:is|are) none\b": "is not a ..., there is no ...",
    r"\bof it\b": "name the thing",
    r"\b(?:go|goes|going|went) on\b": "continue, resume",
    r"\b(?:one|lines?|times|messages?|bytes|tokens|seconds|episodes|requests|executable) an? "
    r"(?:method|line|episode|token|task|turn|environment|game|worker|processor|core|second|step|row|file)\b": "per",
    r"\bin the place of it\b": "instead",
}
FIELD = re.compile(r"^(?P<indent> +)(?P<name>\*{0,2}\w+): (?P<text>\S.*)$")
SECTION = re.compile(r"^ *(?:Args|Attributes):$")
NOT_A_NOUN = re.compile(r"(?:of|for|from|see|how|where|which|who|put|as|by|to|if|when)\b", re.I)
NAMELESS = {"found", "said", "made", "told", "own"}
FILE_NAMES = {
    *("utils", "helpers", "common", "misc", "manager", "handler"),
    *("saving", "quick", "choose", "keeper", "reasons", "requests"),
}


def texts(source: Source) -> Iterator[tuple[int, str]]:
    """Every docstring, also that of a constant or of a field, and every `help=`: line on which it begins, and text."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value
        elif isinstance(node, ast.keyword) and node.arg == "help" and isinstance(node.value, ast.Constant):
            yield node.value.lineno, str(node.value.value)


def wrong_phrases(text: str) -> Iterator[tuple[int, str]]:
    """Offset of the line and the complaint, for every phrase that is not said."""
    for pattern, better in PHRASES.items():
        for match in re.finditer(pattern.replace(" ", r"\s+"), text, re.I):
            yield text.count("\n", 0, match.start()), f'"{" ".join(match[0].split())}": {better}'


def wrong_fields(text: str) -> Iterator[tuple[int, str]]:
    """Offset and complaint for every line under `Args` or `Attributes` that does not begin with a noun."""
    indent = ""
    for offset, line in enumerate(text.splitlines()):
        field = FIELD.match(line)
        if SECTION.match(line):
            indent = "pending"
        elif indent and not line.strip():
            indent = ""
        elif indent and field and (indent == "pending" or field["indent"] == indent):
            indent = field["indent"]
            if NOT_A_NOUN.match(field["text"]):
                yield offset, f'"{field["name"]}: {field["text"][:40]}": begin with a noun that stands alone'


def test_docstrings_and_help_texts_say_what_can_be_read_once() -> None:
    breaches = [
        f"{source.path}:{line + offset}: {complaint}"
        for source in sources()
        for line, text in texts(source)
        for offset, complaint in (*wrong_phrases(text), *wrong_fields(text))
    ]
    report(breaches)


@pytest.mark.parametrize(
    ("text", "complaints"),
    [
        ("One line per episode; no more is available.", 0),
        ("One line an episode.", 1),
        ("The rest of\n    it.", 1),
        ("Sampling.\n\n    Args:\n        temperature: Of the sampling.\n        seed: Seed.\n", 1),
        ("Args:\n        seed: Seed, or\n            where: none.\n\n    Raises:\n        X: of no kind.\n", 0),
    ],
)
def test_a_phrase_is_recognised(text: str, complaints: int) -> None:
    assert len([*wrong_phrases(text), *wrong_fields(text)]) == complaints


def test_variables_and_files_are_named_by_what_they_are() -> None:
    breaches = [
        f"{source.path}:{node.lineno}: {name!r} names nothing"
        for source in sources()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Name | ast.arg)
        for name in [node.id if isinstance(node, ast.Name) else node.arg]
        if name in NAMELESS and (isinstance(node, ast.arg) or isinstance(node.ctx, ast.Store))
    ]
    breaches += [f"{source.path}:1: a file's name" for source in sources() if Path(source.path).stem in FILE_NAMES]
    report(breaches)


def test_a_number_has_a_word_on_what_it_bounds() -> None:
    breaches = []
    for source in sources():
        for node, after in pairwise([*source.tree.body, None]):
            if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Constant):
                continue
            if isinstance(node.value.value, bool | str | None) or not isinstance(node.targets[0], ast.Name):
                continue
            told = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            near = source.lines[max(0, node.lineno - 2) : node.end_lineno]
            if not told and not any("#" in line for line in near):
                breaches.append(f"{source.path}:{node.lineno}: {node.targets[0].id} has no word on why this value")
    report(breaches)
