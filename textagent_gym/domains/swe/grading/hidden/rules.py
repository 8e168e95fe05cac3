"""The rules that a forger has: from what can be known of a question to an answer.

Each rule is one concrete choice, such as "the first literal of the expression, with dashes", so that whoever follows it
for one question follows it for all. What a rule costs is its prior: how likely a forger is to choose it.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, permutations
from typing import Any

from textagent_gym.domains.swe.grading.hidden.answers import Told
from textagent_gym.domains.swe.grading.hidden.edits import asked, learnt
from textagent_gym.domains.swe.grading.hidden.literals import Inputs, Row, literals, rows
from textagent_gym.domains.swe.grading.hidden.near import near, near_pair

UNKNOWN = 1e-3
"""Chance of an answer that no rule offers."""
UNNAMED_EXCEPTION = 1e-2
"""Prior of an exception that no text names which a forger can read: a package has fewer kinds than a hundred."""
_EXCEPTION = re.compile(r"\b[A-Z]\w*(?:Error|Exception|Warning|Exit|Iteration|Invalid)\b")
_COMMON = ("ValueError", "TypeError", "KeyError", "IndexError", "AttributeError")
_CONSTANTS: Row = (True, False, None, "", 0, 1, [], (), {}, frozenset(), -1, 2)
_MOST_TRIED = 60
"""Answers of one list that are tried at one place; the n-th has a prior of 1/n, so later ones hardly count."""
_MOST_EDITS = 30
"""Edits of a statement that are tried on inputs as well as on answers; few statements teach so many."""
_FIRST = (0, 1, 2, -1)
"""Places of inputs from which answers are computed: the first three and the last."""
_OBJECTS = (Told("object", "", True), Told("object", "", False))


@dataclass(frozen=True)
class Knowledge:
    """What a forger knows of a task.

    Attributes:
        statement: statement of the problem.
        visible: texts that the forger can read, above all the tests that are not hidden.
    """

    statement: str
    visible: tuple[str, ...] = ()

    @cached_property
    def exceptions(self) -> Mapping[str, int]:
        """Ranks of exceptions by their names without modules: the statement's first, then the most frequent."""
        names = list(dict.fromkeys(_EXCEPTION.findall(self.statement)))
        frequent = [name for text in self.visible for name in _EXCEPTION.findall(text)]
        names += sorted(set(frequent), key=lambda name: (-frequent.count(name), name))
        return {name: rank for rank, name in enumerate(dict.fromkeys((*names, *_COMMON)))}

    @cached_property
    def constants(self) -> Mapping[str, tuple[float, Any]]:
        """Priors and values of the constants that a forger can think of, by how they are written."""
        priors: dict[str, tuple[float, Any]] = {repr(each): (1.0, each) for each in _CONSTANTS}
        statement = (*asked(self.statement), *literals(self.statement))
        for texts in (statement, [each for text in self.visible for each in literals(text)]):
            for rank, each in enumerate(texts):
                priors.setdefault(repr(each), (max(1.0 / (rank + 1), UNKNOWN), each))
        return priors

    @cached_property
    def messages(self) -> tuple[str, ...]:
        """Messages that an exception could be given: all that the statement quotes, and each text of the tests."""
        quoted = " ".join(each for each in literals(self.statement) if isinstance(each, str))
        return (quoted, *(each for text in self.visible for each in literals(text) if isinstance(each, str)))

    @cached_property
    def edits(self) -> tuple[Any, ...]:
        """Edits that the statement teaches."""
        return learnt(self.statement)


@dataclass(frozen=True)
class Question:
    """One word of an answer that is wrong.

    Attributes:
        mistaken: value that the mistaken code gives; `NOTHING_SEEN` where it gives none.
        beside: values of the other words of the same answer.
        elsewhere: values that the mistaken code gives at other sites and turns, by where that is.
        around: values of variables, parts of the expression and messages that can be read when it is asked, by name.
        neighbours: values that the function's neighbours give for the same arguments, by name.
        site: number of the site.
        turn: number of times that the site has answered before, as in a loop.
        turns: number of times that the site answers.
        inputs: literals of the probe.
    """

    mistaken: Any
    beside: tuple[Any, ...]
    elsewhere: Mapping[str, Any]
    around: Mapping[str, Any]
    neighbours: Mapping[str, Any]
    site: int
    turn: int
    turns: int
    inputs: Inputs


NOTHING_SEEN = Told("nothing", "", None)
Answer = tuple[str, float, Any]
"""The name of a rule, its prior, and its answer."""


def answers(question: Question, known: Knowledge) -> Iterator[Answer]:
    """Answers of all rules but the constants; see `Knowledge.constants`."""
    if question.mistaken is not NOTHING_SEEN:
        yield "as it is", 1.0, question.mistaken
        yield from _changed("", question.mistaken, known, _MOST_EDITS)
    for place, value in enumerate(question.beside):
        yield f"word {place} beside it", 1.0, value
        yield from ((f"word {place} beside it, {rule}", 1.0, changed) for rule, changed in near(value))
    for place_elsewhere, value in question.elsewhere.items():
        yield f"what is seen at {place_elsewhere}", 1.0, value
    for name, value in (*question.around.items(), *question.neighbours.items()):
        yield name, 1.0, value
        yield from ((f"{name}, {rule}", 1.0, changed) for rule, changed in near(value))
    by_place = {
        "of the expression": question.inputs.of_site.get(question.site, ()),
        "of the function": question.inputs.of_function,
        "of its turn": _of_turn(question),
        "of what is prepared": question.inputs.of_preparation,
    }
    for which, given in by_place.items():
        yield from _from_inputs(which, given, question.mistaken, known)
    yield from _from_tables(question, known)
    for number, each in enumerate(_OBJECTS):
        yield f"some object {number}", 1.0, each


def _changed(head: str, value: Any, known: Knowledge, most: int) -> Iterator[Answer]:
    """What comes of a value by edits that the statement teaches, and by simple ones."""
    for number, edit in enumerate(known.edits[:most]):
        with contextlib.suppress(Exception):
            yield f"{head}learnt {number}", 1.0, edit(value)
    for rule, changed in near(value):
        yield head + rule, 1.0, changed


def _from_inputs(which: str, given: Row, mistaken: Any, known: Knowledge) -> Iterator[Answer]:
    for place, value in enumerate(given[:_MOST_TRIED]):
        yield f"input {place} {which}", 1.0 / (place + 1), value
    first = {place: given[place] for place in _FIRST if -len(given) <= place < len(given)}
    for place, value in first.items():
        name = f"input {place} {which}"
        yield name, 1.0, value
        yield f"{name}, in a list", 1.0, [value]
        yield f"{name}, in a tuple", 1.0, (value,)
        yield from _changed(f"{name}, ", value, known, _MOST_EDITS)
        if mistaken is not NOTHING_SEEN:
            yield from ((f"{rule} of the answer and {name}", 1.0, each) for rule, each in near_pair(mistaken, value))
            yield from ((f"{rule} of {name} and the answer", 1.0, each) for rule, each in near_pair(value, mistaken))
    for one, other in permutations(first, 2):
        for rule, each in near_pair(first[one], first[other]):
            yield f"{rule} of inputs {one} and {other} {which}", 1.0, each
    yield f"all inputs {which}, in a list", 1.0, list(given)
    yield f"all inputs {which}, in a tuple", 1.0, tuple(given)


def _of_turn(question: Question) -> Row:
    """What stands, in a table of the function that has a row for each answer of a site, in the row of this answer."""
    tables = (table for table in question.inputs.tables if len(table) == question.turns > 1)
    return tuple(each for table in tables for each in table[question.turn])


def _from_tables(question: Question, known: Knowledge) -> Iterator[Answer]:
    """What stands beside an input in the tables of the visible tests."""
    given = dict.fromkeys(map(repr, (*question.inputs.of_site.get(question.site, ()), *question.inputs.of_function)))
    together = (row for text in known.visible for each in given for row in rows(text).get(each, ()))
    others = (other for row in together for other in row if repr(other) not in given)
    for rank, other in enumerate(islice(others, _MOST_TRIED)):
        yield f"a table, {rank}", 1.0 / (rank + 1), other


def exceptions(name: str, known: Knowledge) -> float:
    """Prior of saying that an exception of some name was raised; the name holds its module."""
    rank = known.exceptions.get(name.rpartition(".")[2])
    return UNNAMED_EXCEPTION if rank is None else max(1.0 / (rank + 1), UNNAMED_EXCEPTION)
