"""What a forger can make of one version of a hidden test: at which places it has to answer, and which rules do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from textagent_gym.domains.swe.grading.hidden.answers import OddWordsError, Seen, Told, holds, is_true, same, value
from textagent_gym.domains.swe.grading.hidden.around import AROUND, NEIGHBOURS, values_around
from textagent_gym.domains.swe.grading.hidden.continued import HOLE
from textagent_gym.domains.swe.grading.hidden.judge import ANOTHER_RULE, AS_IT_IS, Assessment, Place
from textagent_gym.domains.swe.grading.hidden.literals import inputs
from textagent_gym.domains.swe.grading.hidden.rules import (
    NOTHING_SEEN,
    UNKNOWN,
    Knowledge,
    Question,
    answers,
    exceptions,
)
from textagent_gym.domains.swe.grading.hidden.versions import ANYTHING, MESSAGES, Version

_MOST_CONSTANTS = 60
"""Constants that are tried where more than one value would be right; where one is, it is looked up among all."""
_MOST_SITES = 20
"""Other sites whose answers are tried at one; few tests have more, and a table of results is told otherwise."""
_FREE = ("mistaken", "continued")
"""Ways in which the mistaken code is run that cost a forger no choice: it knows where nothing is answered."""
_SEQUENCE = -1
"""Stands for a site where the question is which sites are reached, and how often."""


def assess(
    version: Version, mistaken: Seen, known: Knowledge, *, others: Mapping[str, Seen | None] | None = None
) -> Assessment:
    """What a forger can make of a version.

    Args:
        version: version with the right answers.
        mistaken: events that the code with the mistake makes a witness see.
        known: knowledge of the forger.
        others: events of the same code where the forger has it run in another way: behind exceptions, with each
            question put twice or looked around, with edited input, or with operations done otherwise; see the modules
            `continued`, `around`, `edited` and `siblings`.
    """
    runs = {"mistaken": mistaken, **{name: seen for name, seen in (others or {}).items() if seen is not None}}
    read = {name: _by_turn(runs.pop(name).events) for name in (AROUND, NEIGHBOURS) if name in runs}
    events = {name: _by_turn(seen.events) for name, seen in runs.items()}
    right = _by_turn(version.events)
    wrong = {name: _wrong_words(version, right, seen) for name, seen in events.items()}
    free = [name for name in _FREE if name in runs]
    if any(not wrong[name] and events[name].keys() == right.keys() for name in free):
        return Assessment(version.is_original, {})
    best = min(free, key=lambda name: len(wrong[name]))
    places: dict[Place, dict[str, float]] = {}
    truths = _truths(version, wrong[best])
    for site, word in sorted({(site, word) for site, _, word in wrong[best]} | truths):
        is_truth = (site, word) in truths
        odds = _odds(version, (site, word), right, events[best], read=read, known=known, is_truth=is_truth)
        for name in runs:
            if not any((site, word) == (each[0], each[2]) for each in wrong[name]):
                odds[AS_IT_IS if name == best else name] = 1.0
        places[version.function, site, word] = odds
    expected = list(range(len(version.sites)))
    if [event[0] for event in version.events] != expected and events[best].keys() != right.keys():
        sequence = tuple(event[0] for event in version.events)
        places[version.function, _SEQUENCE, 0] = {f"always {sequence}": ANOTHER_RULE}
    return Assessment(version.is_original, places)


_Turn = tuple[int, int]
"""A site, and how often it has answered before."""
_Events = Mapping[_Turn, tuple[Any, ...]]


def _by_turn(events: Sequence[tuple[Any, ...]]) -> dict[_Turn, tuple[Any, ...]]:
    """The words of events."""
    turns: dict[int, int] = defaultdict(int)
    words = {}
    for site, *given in events:
        words[site, turns[site]] = tuple(given)
        turns[site] += 1
    return words


def _words_that_count(version: Version, site: int, words: Sequence[Any]) -> range:
    """Indices of the words of an event that have to be right."""
    operator = version.sites[site]
    if operator == "raises":
        return range(1)
    if version.is_original and not operator.startswith("both"):
        return range(0 if operator == "reached" else 1)
    return range(len(words))


def _wrong_words(version: Version, right: _Events, seen: _Events) -> set[tuple[int, int, int]]:
    """Sites, turns and words where what was seen is wrong."""
    wrong = set()
    for (site, turn), words in right.items():
        theirs = seen.get((site, turn), ())
        for word in _words_that_count(version, site, words):
            if not _is_right(version, site, word, words, theirs):
                wrong.add((site, turn, word))
    if all(word == 0 for _, _, word in wrong):
        return wrong
    # The verdict of a comparison follows from its sides, for whoever has these.
    sides = {(site, turn) for site, turn, word in wrong if word > 0}
    return {each for each in wrong if each[2] or each[:2] not in sides or not version.sites[each[0]].startswith("both")}


def _is_right(version: Version, site: int, word: int, words: Sequence[Any], theirs: Sequence[Any]) -> bool:
    """One word of what was seen is right."""
    if version.sites[site] == "reached":
        return bool(theirs)
    if version.sites[site] == "raises":
        return len(theirs) > 1 and version.raised_rightly(words, theirs)
    if word >= len(theirs) or _read(theirs[word]) is NOTHING_SEEN:
        return False
    return _check(version, site, word, words)(_read(theirs[word]))


def _truths(version: Version, wrong: Iterable[tuple[int, int, int]]) -> set[tuple[int, int]]:
    """Sites and words whose answers are truths: which of them are wrong, a forger does not know."""
    with_wrong_sides = {site for site, _, word in wrong if word > 0}
    return {
        (site, word)
        for site, *words in version.events
        for word in _words_that_count(version, site, words)
        if type(words[word]) is bool and not (word == 0 and site in with_wrong_sides)
    }


def _odds(
    version: Version,
    place: tuple[int, int],
    right: _Events,
    seen: _Events,
    *,
    read: Mapping[str, _Events],
    known: Knowledge,
    is_truth: bool,
) -> dict[str, float]:
    """The rules that answer rightly at one place, each time that it is asked.

    A rule for truths has to leave those that are right already: nobody sees which these are.
    """
    site, word = place
    turns = [turn for number, turn in right if number == site]
    asked = [turn for turn in turns if word < len(right[site, turn])]
    changed = [
        turn for turn in asked if not _is_right(version, site, word, right[site, turn], seen.get((site, turn), ()))
    ]
    odds: dict[str, float] | None = None
    for turn in asked if is_truth else changed:
        words, theirs = right[site, turn], seen.get((site, turn), ())
        if version.sites[site] == "raises":
            fitting = _raising(version, words, theirs, known)
        else:
            beside = tuple(_read(each) for number, each in enumerate(theirs) if number != word)
            mistaken = _read(theirs[word]) if word < len(theirs) else NOTHING_SEEN
            elsewhere = _elsewhere(seen, site, turn)
            near = {name: values_around(seen_there.get((site, turn), ())) for name, seen_there in read.items()}
            question = Question(
                mistaken,
                beside,
                elsewhere,
                near.get(AROUND, {}),
                near.get(NEIGHBOURS, {}),
                site,
                turn,
                len(turns),
                inputs(version.text),
            )
            expected = _read(_expected(version, site, words)[word])
            fitting = _fitting(question, _check(version, site, word, words), expected, known, odds)
        odds = fitting if odds is None else {rule: prior for rule, prior in odds.items() if rule in fitting}
        if not odds:
            break
    odds = odds or {}
    if is_truth and changed:
        odds[f"turned round at {changed}"] = max(0.5 ** min(len(changed), len(turns) - len(changed)), UNKNOWN)
    return odds


def _elsewhere(seen: _Events, site: int, turn: int) -> dict[str, Any]:
    """The first answers at other sites, and those of the same site before and after."""
    first = [(number, words) for (number, other_turn), words in seen.items() if other_turn == 0 and number != site]
    values = {f"site {number}": _read(words[0]) for number, words in first[:_MOST_SITES] if words}
    for name, near in (("the turn before", (site, turn - 1)), ("the turn after", (site, turn + 1))):
        if seen.get(near):
            values[name] = _read(seen[near][0])
    return values


def _fitting(
    question: Question,
    fits: Callable[[Any], bool],
    right: Any,
    known: Knowledge,
    among: Container[str] | None,
) -> dict[str, float]:
    """The rules whose answers to one question are right; of those in `among`, unless it is `None`."""
    odds: dict[str, float] = {}
    for rule, prior, answer in answers(question, known):
        if (among is None or rule in among) and odds.get(rule, 0.0) < prior and fits(answer):
            odds[rule] = prior
    if fits(right):
        written = repr(right)
        odds[f"always {written}"] = known.constants[written][0] if written in known.constants else UNKNOWN
    for written, (prior, constant) in islice(known.constants.items(), _MOST_CONSTANTS):
        rule = f"always {written}"
        if (among is None or rule in among) and fits(constant):
            odds[rule] = max(prior, odds.get(rule, 0.0))
    return odds


def _raising(version: Version, words: Sequence[Any], theirs: Sequence[Any], known: Knowledge) -> dict[str, float]:
    """The rules that say rightly what was raised: one exception, whatever it was, or none."""
    kinds = words[2] if version.is_original else words[0][:1]
    was_raised = bool(theirs) and bool(theirs[0])
    if not kinds:
        return {"raise nothing": 1.0, **({"raise the other way": 1.0} if was_raised else {})}
    messages = (*([theirs[1]] if len(theirs) > 1 else []), *known.messages)
    odds = {}
    for kind in kinds:
        fits = any(version.raised_rightly(words, [[kind], message]) for message in messages)
        odds[f"raise {kind}"] = exceptions(kind, known) * (1.0 if fits else UNKNOWN)
        if fits and not was_raised:
            odds["raise the other way"] = exceptions(kind, known)
    return odds


def _expected(version: Version, site: int, words: Sequence[Any]) -> Sequence[Any]:
    """Words that would be right."""
    if version.is_original and not version.sites[site].startswith("both"):
        return words[1:] if len(words) > 1 and version.sites[site] not in ("true", "false") else words
    return words


def _check(version: Version, site: int, word: int, words: Sequence[Any]) -> Callable[[Any], bool]:
    """Whether a value would be right as one word of an event, where the others are."""
    operator = version.sites[site]
    ours = _read(words[word])
    if operator == "raises":
        return lambda theirs: False
    if version.is_original and not operator.startswith("both"):
        if operator in ("true", "false"):
            return lambda theirs: is_true(theirs) == (operator == "true")
        key = _read(words[1]) if len(words) > 1 else None
        return lambda theirs: holds(operator, theirs, key)
    if words[word] == ANYTHING:
        return lambda theirs: True
    if isinstance(ours, Told) and not ours.shown:
        return lambda theirs: isinstance(theirs, Told) and ours.is_true is theirs.is_true
    if operator in MESSAGES and isinstance(ours, str):
        return lambda theirs: isinstance(theirs, str)
    if isinstance(ours, str) or ours is None:
        return lambda theirs: type(theirs) is type(ours) and theirs == ours
    return lambda theirs: _is_same(ours, theirs)


def _is_same(ours: Any, theirs: Any) -> bool:
    try:
        return same(ours, theirs)
    except Exception:  # noqa: BLE001 (whatever comparing values of any kind raises, they differ)
        return False


def _read(words: Any) -> Any:
    if words == list(HOLE):
        return NOTHING_SEEN
    try:
        return value(words)
    except OddWordsError:
        return Told("odd", "", None)
