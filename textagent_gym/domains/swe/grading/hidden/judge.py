"""The chance of somebody who is paid without a repair: computed for a forger who knows all but the right answers.

The forger knows the source with its mistake, the statement, every test that can be seen, the suite's own source, and in
the tested process the text of each probe, what the mistaken code answers to it, and which of its answers are wrong.
Whatever it says must be right for every version with other input and for one original, which is what the least pay
takes. It has rules that turn what it knows into answers. It is given the rule that serves it best for all versions
together, and elsewhere one chance in ten of following another that happens to be right. An answer that no rule offers
counts as one in a thousand, and one in ten thousand is the least chance that there is a rule for everything which
nobody has thought of here.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import math
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from textagent_gym.domains.swe.grading.hidden.answers import OddWordsError, Seen, value
from textagent_gym.domains.swe.grading.hidden.edits import Edit, asked, learnt
from textagent_gym.domains.swe.grading.hidden.versions import Version
from textagent_gym.domains.swe.grading.hidden.witness import words

UNKNOWN = 1e-3
"""Chance of an answer that no rule offers."""
UNKNOWN_RULE = 1e-4
"""Chance of a rule that nobody has thought of here, and that is right about all versions at once."""
MOST_GRADINGS = 50
"""Of an episode: a forger gets no more guesses than that."""
MOST_CHANCE = 0.01 / MOST_GRADINGS
"""A task is served only where the chance of a forger is below this in each grading: below 1 in 100 in an episode."""
_MOST_GUESSES = 60  # Of one rule at one place; the n-th counts 1/n, so later ones hardly count.
_DEEPEST_CHANGE = 3  # Levels of a list below which nothing is changed.
_ANOTHER_RULE = 0.1  # Chance of following the right rule where it is not the one that serves best elsewhere.
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|-?\d+\.?\d*")
_EXCEPTION = re.compile(r"\b[A-Z]\w*(?:Error|Exception|Warning|Exit|Iteration)\b")

_LITERALS = (ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.UnaryOp)
_NOTHING = object()

Guess = Any
"""An answer in the witness's words."""


@dataclass(frozen=True)
class Knowledge:
    """What a forger knows of a task.

    Attributes:
        statement: statement of the problem.
        visible: texts that the forger can read, above all the tests that are not hidden.
    """

    statement: str
    visible: tuple[str, ...] = ()


@dataclass(frozen=True)
class Assessment:
    """What a forger can make of one version.

    Attributes:
        is_original: whether the version is the test itself.
        is_wrong: whether the code with the mistake answers wrongly.
        odds: chance of each rule that could answer rightly; empty where nothing needs to be changed.
    """

    is_original: bool
    is_wrong: bool
    odds: Mapping[str, float]

    @cached_property
    def least(self) -> float:
        """Chance in 0..1 of a right answer for somebody whose rule elsewhere is of no use here."""
        return max(max(self.odds.values()) * _ANOTHER_RULE, UNKNOWN) if self.is_wrong else 1.0

    def chance(self, rule: str) -> float:
        """Chance in 0..1 that somebody who follows a rule elsewhere answers this version rightly."""
        return max(self.odds.get(rule, 0.0), self.least)


def assess(version: Version, mistaken: Seen, siblings: Sequence[Seen | None], known: Knowledge) -> Assessment:
    """What a forger can make of a version.

    Args:
        version: version with the right answers.
        mistaken: events that the code with the mistake makes a witness see.
        siblings: the same where operations go another way; see the module `siblings`.
        known: knowledge of the forger.
    """
    if version.is_right(mistaken):
        return Assessment(version.is_original, False, {})
    odds = _odds(version, mistaken, known)
    odds |= {f"sibling {number}": 1.0 for number, seen in enumerate(siblings) if version.is_right(seen)}
    return Assessment(version.is_original, True, odds)


def chance(assessments: Sequence[Assessment], mistakes: int = 1) -> float:
    """Chance in 0..1 that a forger is paid anything for one of a task's mistakes, in one grading."""
    return Reach(assessments, mistakes).chance()


class Reach:
    """How far each rule gets with some versions.

    Args:
        assessments: assessments of the versions.
        mistakes: number of the task's mistakes, which share the chance of a rule that nobody has thought of: it counts
            once per task.
    """

    def __init__(self, assessments: Iterable[Assessment], mistakes: int = 1) -> None:
        self._unknown_rule = UNKNOWN_RULE / mistakes
        self._variants: list[Assessment] = []
        self._originals: list[Assessment] = []
        for each in assessments:
            (self._originals if each.is_original else self._variants).append(each)
        rules = {rule for each in (*self._variants, *self._originals) for rule in each.odds}
        self._rules = dict.fromkeys((*sorted(rules), "none of them"), 1.0)
        for rule in self._rules:
            best = max((each.chance(rule) for each in self._originals), default=1.0)
            self._rules[rule] = best * math.prod(each.chance(rule) for each in self._variants)

    def chance(self, another: Assessment | None = None) -> float:
        """Chance in 0..1 that a forger is paid anything, in one grading; with another variant, if one is given."""
        if another is None:
            return max(self._unknown_rule, *self._rules.values())
        none = self._rules["none of them"]  # What a rule has reached that no version so far knows.
        known = (self._rules.get(rule, none) * another.chance(rule) for rule in another.odds)
        return max(self._unknown_rule, max(self._rules.values()) * another.least, *known)


def _odds(version: Version, seen: Seen, known: Knowledge) -> dict[str, float]:
    """For each rule that could answer a version rightly, its chance to."""
    places = _wrong_places(version, seen)
    if places is None:
        return {"unknown": UNKNOWN}
    exceptions = list(dict.fromkeys(_EXCEPTION.findall("\n".join((known.statement, *known.visible)))))
    per_place: list[dict[str, float]] = []
    for place in places:
        chances: dict[str, float] = {}
        theirs = seen.events[place][1:] if _aligned(version, seen, place) else ()
        for rule, guesses in _guesses(version, place, theirs, known, exceptions):
            tried = itertools.islice(_different(guesses), _MOST_GUESSES)
            rank = next((n for n, guess in enumerate(tried) if version.fits(place, guess)), None)
            if rank is not None:
                chances[rule] = max(chances.get(rule, 0.0), 1.0 / (rank + 1))
        per_place.append(chances)
    # Which of several truths to turn round, the forger does not know.
    truths = [event[1] for event in seen.events if type(event[-1]) is bool or type(event[1]) is bool]
    turned = sum(type(seen.events[place][1]) is bool for place in places if _aligned(version, seen, place))
    hesitation = 0.5 ** min(turned, len(truths) - turned)
    rules = {rule for chances in per_place for rule in chances}
    result = {rule: math.prod(chances.get(rule, 0.0) for chances in per_place) for rule in rules}
    result["a rule for each place"] = math.prod(max(chances.values(), default=UNKNOWN) for chances in per_place)
    return {rule: max(odds * hesitation, UNKNOWN) for rule, odds in result.items() if odds > 0} or {"unknown": UNKNOWN}


def _aligned(version: Version, seen: Seen, place: int) -> bool:
    return place < len(seen.events) and seen.events[place][0] == version.events[place][0]


def _wrong_places(version: Version, seen: Seen) -> list[int] | None:
    """The places where the mistaken code's answers are wrong; `None` where nobody could guess the end."""
    if version.end not in ("passed", seen.end):
        return None
    places = []
    for place in range(len(version.events)):
        if not (_aligned(version, seen, place) and version.fits(place, seen.events[place][1:])):
            places.append(place)
    return places or [len(version.events) - 1] if version.events else None


def _guesses(
    version: Version,
    place: int,
    theirs: Sequence[Guess],
    known: Knowledge,
    exceptions: Sequence[str],
) -> Iterator[tuple[str, Iterable[list[Guess]]]]:
    """Answers that rules offer for one place, each with the words of the whole event."""
    event = version.events[place]
    operator = version.sites[event[0]]
    if operator == "raises":
        named = [_full_name(name) for name in exceptions]
        common = ["builtins.ValueError", "builtins.TypeError", "builtins.KeyError", "builtins.IndexError"]
        messages = [literal for literal in _literals(known.statement) if isinstance(literal, str)] or [""]
        joined = " ".join(messages)
        for name in dict.fromkeys((*named, *common)):
            yield f"raise {name}", [[[name], joined]]
        yield "raise nothing", ([[[], ""]])
        return
    width = (
        1
        if version.is_original and not operator.startswith("both") and len(event) != 2 + len(theirs)
        else len(event) - 1
    )
    width = len(theirs) or width
    if len(theirs) == 3 and operator.startswith("both"):
        truth, left, right = theirs
        yield "not what is compared", [[not truth, left, right]]
        for verdict in (True, False):
            yield f"the left side is the right one, {verdict}", [[verdict, right, right]]
            yield f"the right side is the left one, {verdict}", [[verdict, left, left]]
    for rule, values in _values(version, theirs, known):
        yield rule, _fill(values, theirs, width)


def _edited(edit: Edit, each: Any) -> Any:
    try:
        return edit(each)
    except Exception:  # noqa: BLE001 (an edit may be for other kinds of values)
        return _NOTHING


def _full_name(name: str) -> str:
    import builtins

    return f"builtins.{name}" if hasattr(builtins, name) else name


def _fill(values: Iterable[Guess], theirs: Sequence[Guess], width: int) -> Iterator[list[Guess]]:
    """Events in which one word after another is replaced by a guess; all of them by it, too."""
    for guess in values:
        for place in range(width):
            if len(theirs) == width:
                yield [*theirs[:place], guess, *theirs[place + 1 :]]
        yield [guess] * width
        if width > 1:
            yield [True, *[guess] * (width - 1)]


def _values(version: Version, theirs: Sequence[Guess], known: Knowledge) -> Iterator[tuple[str, Iterable[Guess]]]:
    """Values that rules offer in the place of others."""
    inputs = _literals(version.text)
    for number, each in enumerate(asked(known.statement)):
        yield f"asked for {number}", [words(each)]
    yield "the statement", _literals(known.statement)
    yield "an input", inputs
    for place in (0, 1, 2, -1):
        for word in inputs[place : place + 1 or None]:
            yield from _alone_and_held(f"input {place}", word)
            with contextlib.suppress(OddWordsError):
                for rule, near in _near(value(word)):
                    yield from _alone_and_held(f"input {place}, {rule}", words(near))
    yield "a table", [other for text in known.visible for other in _beside(text, tuple(map(repr, inputs)))]
    for word in (True, False, None, "", words(0), words(1), ["l"], ["t"], ["d"], words(-1), words(2)):
        yield f"always {word}", [word]
    yield "a literal of a visible test", [literal for text in known.visible for literal in _literals(text)]
    real: list[Any] = []
    for word in theirs:
        try:
            real.append(value(word))
        except OddWordsError:
            continue
    for number, edit in enumerate(learnt(known.statement)):
        edited = [_edited(edit, each) for each in real]
        yield f"learnt {number}", [words(each) for each in edited if each is not _NOTHING]
    changed: dict[str, list[Guess]] = {}
    for each in real:
        for rule, near in _near(each):
            changed.setdefault(rule, []).append(words(near))
    yield from changed.items()


def _alone_and_held(rule: str, word: Guess) -> Iterator[tuple[str, Iterable[Guess]]]:
    """A word, and lists and tuples that hold the word alone."""
    yield from ((rule, [word]), (f"{rule}, in a list", [["l", word]]), (f"{rule}, in a tuple", [["t", word]]))


def _near(each: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Values near one, each by a rule that could be followed everywhere."""
    match each:
        case bool():
            yield "turned round", not each
        case int() | float():
            yield from (("turned round", -each), ("one more", each + 1), ("one less", each - 1), ("two more", each + 2))
            yield from (("two less", each - 2), ("doubled", each * 2), ("halved", each / 2), ("nothing", 0))
        case str():
            yield from (("turned round", each[::-1]), ("one more", each + "s"), ("without the last", each[:-1]))
            yield from (("without the first", each[1:]), ("small", each.lower()), ("large", each.upper()))
            yield from (("capital", each.capitalize()), ("titled", each.title()), ("swapped", each.swapcase()))
            yield from (
                ("trimmed", each.strip()),
                ("blanks", each.replace("_", " ")),
                ("lines", each.replace("-", "_")),
            )
            yield from (("no blanks", each.replace(" ", "")), ("nothing", ""), ("dashes", each.replace("_", "-")))
            yield from (("first small", each[:1].lower() + each[1:]), ("first large", each[:1].upper() + each[1:]))
        case list() | tuple():
            kind = type(each)
            yield from (("turned round", each[::-1]), ("without the last", each[:-1]), ("without the first", each[1:]))
            yield "nothing", kind()
            with contextlib.suppress(TypeError):
                yield "sorted", kind(sorted(each))
            for place in (0, -1) if each and depth < _DEEPEST_CHANGE else ():
                for rule, near in _near(each[place], depth + 1):
                    other = list(each)
                    other[place] = near
                    yield f"{rule} at {place}", kind(other)
            yield from _everywhere(each, kind) if depth < _DEEPEST_CHANGE else ()


def _everywhere(each: list[Any] | tuple[Any, ...], kind: type) -> Iterator[tuple[str, Any]]:
    """All elements changed by one rule, or the first of each of them."""
    changed = [dict(_near(element, _DEEPEST_CHANGE - 1)) for element in each[:_MOST_GUESSES]]
    for rule in set.intersection(*map(set, changed)) if len(changed) == len(each) > 0 else ():
        yield f"{rule} everywhere", kind(element[rule] for element in changed)


@lru_cache(maxsize=256)
def _literals(text: str) -> tuple[Guess, ...]:
    """The literals of a text in the witness's words: as code where it parses, and by their looks."""
    values = [_value(node) for piece in _pieces(text) for node in ast.walk(piece) if isinstance(node, _LITERALS)]
    for quoted in _QUOTED.findall(text):
        with contextlib.suppress(ValueError, SyntaxError):
            values.append(ast.literal_eval(quoted))
    return tuple(_different(words(each) for each in values if each is not _NOTHING))


def _value(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError):
        return _NOTHING


@lru_cache(maxsize=256)
def _rows(text: str) -> tuple[tuple[Guess, ...], ...]:
    """What stands together in the tables of a text."""
    rows: list[list[Any]] = []
    for piece in _pieces(text):
        for node in ast.walk(piece):
            if isinstance(node, ast.Tuple | ast.List) and 1 < len(node.elts) < 8:
                rows.append([_value(element) for element in node.elts])
            elif isinstance(node, ast.Dict):
                rows += [[_value(k), _value(v)] for k, v in zip(node.keys, node.values, strict=True) if k is not None]
            elif isinstance(node, ast.Compare | ast.Call):
                rows.append([_value(part) for part in ast.walk(node) if isinstance(part, _LITERALS)][:8])
    return tuple(tuple(words(each) for each in row if each is not _NOTHING) for row in rows)


@lru_cache(maxsize=1024)
def _beside(text: str, inputs: tuple[str, ...]) -> tuple[Guess, ...]:
    """What stands in a row with something that is asked about."""
    asked = set(inputs)
    return tuple(
        other for row in _rows(text) if asked & set(map(repr, row)) for other in row if repr(other) not in asked
    )


def _pieces(text: str) -> Iterator[ast.AST]:
    """A text, or those of its lines that are code."""
    try:
        yield ast.parse(text)
        return
    except (SyntaxError, ValueError):
        pass
    for line in text.splitlines():
        with contextlib.suppress(SyntaxError, ValueError), warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            yield ast.parse(line.strip().removeprefix("#").strip())


def _different(values: Iterable[Any]) -> Iterator[Any]:
    """Values without repetitions."""
    seen = set()
    for each in values:
        key = repr(each)
        if key not in seen:
            seen.add(key)
            yield each
