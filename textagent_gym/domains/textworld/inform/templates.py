"""Descriptions with Inform 7's substitutions in brackets: "[if the 17 is open]", "[a list of things in the 17]".

TextWorld's grammars use few of them. Entities are named by their numbers (see `fiction`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from textagent_gym.errors import GenerationError

SELF = 0
"""The entity that is described."""

Condition = tuple[tuple[str, int], ...]
"""Tests that must all hold: what is tested ("open", "closed", "locked", "filled", "empty"), and of which entity."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Text that depends on the state of the world: the first part whose condition holds."""

    parts: tuple[tuple[Condition, Template], ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """A list of what is in or on an entity; with articles or without."""

    holder: int
    articles: bool
    verb: bool


@dataclass(frozen=True, slots=True)
class Name:
    """The name of what is described."""


Template = tuple["str | Choice | Listing | Name", ...]

_BRACKETS = re.compile(r"\[([^\]]*)\]")
_ENTITY = r"(?:the )?(\d+)"
_LISTING = re.compile(rf"(a |is-are a )?list of things (?:in|on) {_ENTITY}")
_TESTS = (
    (re.compile(rf"{_ENTITY} is (open|closed|locked)"), None),
    (re.compile(r"()(open|closed|locked)"), None),
    (re.compile(rf"there is something (?:in|on) {_ENTITY}"), "filled"),
    (re.compile(rf"there is nothing (?:in|on) {_ENTITY}"), "empty"),
    (re.compile(rf"{_ENTITY} contains nothing"), "empty"),
    (re.compile(rf"{_ENTITY} is empty"), "empty"),
)


def read_template(text: str) -> Template:
    """A description, ready to be printed.

    Raises:
        GenerationError: it has a substitution that is not known here.

    >>> read_template("A chest. [if open]It is open.[otherwise]It is closed.[end if]")[0]
    'A chest. '
    """
    pieces = _BRACKETS.split(text)
    template, rest = _read(pieces, 0)
    if rest < len(pieces):
        raise GenerationError(f"a description has [{pieces[rest]}] without its beginning: {text!r}")
    return template


def _read(pieces: list[str], at: int) -> tuple[Template, int]:
    """Nodes from a piece on, up to the end of the part that it belongs to."""
    nodes: list[str | Choice | Listing | Name] = []
    while at < len(pieces):
        if at % 2 == 0:
            if pieces[at]:
                nodes.append(literal(pieces[at]))
            at += 1
            continue
        tag = pieces[at].strip().lower()
        if tag == "line break":
            nodes.append("\n")
        elif tag == "noun":
            nodes.append(Name())
        elif listing := _LISTING.fullmatch(tag):
            nodes.append(Listing(int(listing[2]), listing[1] is not None, listing[1] == "is-are a "))
        elif tag.startswith("if "):
            choice, at = _read_choice(pieces, at)
            nodes.append(choice)
        elif tag in ("otherwise", "else", "end if") or tag.startswith(("else if ", "otherwise if ")):
            break
        else:
            raise GenerationError(f"a description has the substitution [{tag}], which only the compiled game knows")
        at += 1
    return tuple(nodes), at


def _read_choice(pieces: list[str], at: int) -> tuple[Choice, int]:
    parts: list[tuple[Condition, Template]] = []
    tag = pieces[at].strip().lower()
    while at < len(pieces) and tag != "end if":
        condition = tag.removeprefix("else ").removeprefix("otherwise ")
        tests = _condition(condition.removeprefix("if ")) if condition.startswith("if ") else ()
        template, at = _read(pieces, at + 1)
        parts.append((tests, template))
        tag = pieces[at].strip().lower() if at < len(pieces) else "end if"
    return Choice(tuple(parts)), at


def _condition(text: str) -> Condition:
    tests: list[tuple[str, int]] = []
    for part in text.split(" and "):
        for pattern, name in _TESTS:
            if match := pattern.fullmatch(part.strip()):
                tests.append((name or match[2], int(match[1] or SELF)))
                break
        else:
            raise GenerationError(f"a description has the condition [if {text}], which only the compiled game knows")
    return tuple(tests)


def literal(text: str) -> str:
    """Inform's reading of what stands between quotation marks: line breaks, and quotation marks within."""
    text = re.sub(r"[ \t]*\n[ \t]*", "\n", text)
    text = re.sub(r"(?<!\n)\n(?!\n)", " ", text)
    return re.sub(r"(?<![0-9A-Za-z])'|'(?![0-9A-Za-z])", '"', text)
