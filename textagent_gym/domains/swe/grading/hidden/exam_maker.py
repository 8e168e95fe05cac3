"""Makes the versions of a task's hidden tests, and finds out what is right, with the right code in the sandbox."""

from __future__ import annotations

import ast
import json
import random
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from textagent_gym.domains.swe.grading.hidden.answers import OddWordsError, Seen, Told, holds, is_approximate, value
from textagent_gym.domains.swe.grading.hidden.asking import Asker, Trees
from textagent_gym.domains.swe.grading.hidden.assessment import assess
from textagent_gym.domains.swe.grading.hidden.edited import EDITS, edit_rule
from textagent_gym.domains.swe.grading.hidden.exam import Exam, Group, Kept
from textagent_gym.domains.swe.grading.hidden.judge import Assessment, Reach, chance
from textagent_gym.domains.swe.grading.hidden.probes import Probe, Source, make_probe
from textagent_gym.domains.swe.grading.hidden.rules import Knowledge
from textagent_gym.domains.swe.grading.hidden.variants import merged, variants
from textagent_gym.domains.swe.grading.hidden.versions import Version
from textagent_gym.domains.swe.grading.pytest_runs import RUNNER, TIMED_OUT, question, run_tests
from textagent_gym.sandbox.base import Changes, Sandbox, SandboxError

_ENOUGH = 1e-4  # Chance of a forger at which no further variants are looked for; all mistakes of a task share it.
_CANDIDATES = (60, 300)  # Variants that are tried for a test; the second number where the first is not enough.
_MOST_EDITED = 1000  # Probes with edited input that are asked for the variants of a test.
_WITH_FIXTURES = 12  # The same where pytest has to run each of them.
_EDITED_WITH_FIXTURES = 2  # Tests whose input is edited, where pytest has to run each of them.
_MOST_SOURCES = 4  # Tests whose variants are tried.
_MOST_ROWS = 60  # Kept rows of a test with parameters.
_MOST_VARIANTS = 60  # Variants of a mistake that are asked.
_LEAST_VARIANTS = 6  # Asked even where fewer leave a forger no more than `_ENOUGH`.
_UNTOUCHED_VARIANTS = 6  # That the mistake leaves alone: who changes every answer is wrong there.
_MOST_TOGETHER = 10  # Variants of a test that are asked in one process.
_SECONDS = 60.0  # For pytest to collect the tests of a package; to run all of them, five times as many.
_BOTH = (0, 1)
_LEAST_SECONDS = 20.0  # For each question of a grading, on a machine that may have other things to do.
_SLOWER = 10.0  # How much longer than measured here a question, or a grading, may take.
_LEAST_TOTAL = 60.0  # Seconds for a whole grading; most take 0.2 to 3.


@dataclass(frozen=True)
class Mistake:
    """One of a task's mistakes.

    Attributes:
        tests: ids of the tests that notice the mistake.
        statement: words in which the agent is told of the mistake.
    """

    tests: tuple[str, ...]
    statement: str


class Maker:
    """Makes versions of one task's hidden tests.

    Args:
        sandboxes: two sandboxes to run the tests in. What differs between these, such as addresses in memory, is
            nobody's right answer.
        trees: trees with the right and with the mistaken code.
        texts: the test files by path.
    """

    def __init__(self, sandboxes: tuple[Sandbox, Sandbox], trees: Trees, texts: Mapping[str, str]) -> None:
        self._sandboxes = sandboxes
        self._trees = trees
        self._asker = Asker(sandboxes, trees)
        self._texts = texts
        self._edits: tuple[str, ...] = ()

    def make(self, tests: Sequence[str], known: Knowledge, mistakes: int) -> Group:
        """Versions of hidden tests: the originals that can be told in words, and others until nobody can guess them.

        Args:
            tests: ids of the tests that notice one of the task's mistakes.
            known: knowledge of the forger.
            mistakes: number of the task's mistakes.
        """
        originals: list[tuple[_Candidate, Probe]] = []
        for test, described in self.describe(tests).items():
            parts = self._original(test, described)
            if parts is None:
                continue
            version, probe, mistaken = parts
            edits = tuple(EDITS) if not version.fixtures or len(originals) < _EDITED_WITH_FIXTURES else ()
            (others,) = self._asker.run_otherwise(version, [version.text], [version.events], [mistaken], edits)
            original = _Candidate(version, probe, mistaken, others, assess(version, mistaken, known, others=others))
            if original.assessment.is_wrong:  # Else all that it asks is decided in the process of the tested code.
                originals.append((original, probe))
        if not originals:
            return Group((), 1.0)
        # No other edit is of use to a forger, who needs the right answer to an original.
        useful = {rule for original, _ in originals for odds in original.assessment.places.values() for rule in odds}
        self._edits = tuple(name for name in EDITS if edit_rule(name) in useful)
        first = [original.assessment for original, _ in originals]
        sources = list({each.version.function: (each.version, probe) for each, probe in reversed(originals)}.values())
        steady: list[tuple[Version, Sequence[_Candidate]]] = []
        for count in _CANDIDATES:
            candidates = [
                each for source in sources[:_MOST_SOURCES] for each in self._candidates(*source, known, count)
            ]
            chosen = _choose(first, candidates, mistakes)
            steady = [each for together in _together(chosen) for each in self._steady(together, known)]
            assessed = [*first, *(each.assessment for _, members in steady for each in members)]
            if chance(assessed, mistakes) <= _ENOUGH / mistakes:
                break
        versions = [original.version for original, _ in originals] + [version for version, _ in steady]
        return Group(tuple(versions), chance(assessed, mistakes))

    def keep(self, tests: Sequence[str]) -> list[Kept]:
        """Rows of hidden tests that pass with the mistake and without, as far as they can be told in words."""
        every_kept = []
        described = self.describe(tests)
        for function in dict.fromkeys(test.partition("[")[0] for test in described):
            rows = [test for test in described if test.partition("[")[0] == function][:_MOST_ROWS]
            probes = [self._probes(test, described[test]) for test in rows]
            pairs = [(version, keyed) for version, _, keyed in filter(None, probes) if not version.fixtures]
            if not pairs:
                continue
            like = pairs[0][0]
            keys = self._asker.ask(like, [keyed.text for _, keyed in pairs], right=True)
            versions = [
                replace(version, events=seen.events)
                for (version, _), seen in zip(pairs, keys, strict=True)
                if seen is not None and seen.end == "passed" and not _wordless(version, seen)
            ]
            for right, where in ((True, 0), (True, 1), (False, 0)):
                texts = [version.text for version in versions]
                answers = self._asker.ask(like, texts, right=right, where=where) if versions else []
                versions = [v for v, seen in zip(versions, answers, strict=True) if v.is_right(seen)]
            if versions:
                every_kept.append(Kept(tuple(versions)))
        return every_kept

    def describe(self, tests: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The parameters and fixtures of tests.

        Raises:
            SandboxError: pytest does not collect them in time.
        """
        if not tests:
            return {}
        files = sorted({test.partition("::")[0] for test in tests})
        wanted = {"kind": "describe", "tests": list(tests), "files": files, "paths": list(self._trees.paths)}
        asked = question({**wanted, "seconds": _SECONDS})
        written: Changes = {name: self._texts[name].encode() for name in files}
        (answer,) = self._sandboxes[0].ask(self._trees.layers, written, program=RUNNER, questions=[asked])
        if answer is None or answer == TIMED_OUT:
            names = ", ".join(files)
            raise SandboxError(f"pytest does not collect {names} in {_SECONDS:.0f} s: the machine may be busy")
        descriptions = json.loads(answer or b"{}")
        return {test: descriptions[test] for test in tests if test in descriptions}

    def _seen(self, version: Version, *, right: bool, where: int = 0) -> Seen:
        return self._asker.ask(version, [version.text], right=right, where=where)[0] or Seen("nothing", ())

    def _probes(
        self, test: str, described: Mapping[str, Any], exposed: Collection[int] = ()
    ) -> tuple[Version, Probe, Probe] | None:
        """A test as a version without answers, its probe, and the probe that sees what is expected."""
        file, _, name = test.partition("::")
        parameters, fixtures, suffix = described["parameters"], described["fixtures"], described["suffix"]
        if not all(map(_is_literal, parameters.values())) or (parameters and suffix):
            return None
        source = Source(file, self._texts, tuple(name.partition("[")[0].split("::")))
        probe = make_probe(source, parameters, fixtures=fixtures, exposed=exposed)
        keyed = make_probe(source, parameters, fixtures=fixtures, exposed=exposed, with_keys=True)
        if probe is None or keyed is None:
            return None
        version = Version(test, True, file, probe.text, probe.owner, bool(fixtures or suffix), probe.sites, suffix)
        return version, probe, keyed

    def _original(self, test: str, described: Mapping[str, Any]) -> tuple[Version, Probe, Seen] | None:
        """A hidden test as it is; `None` where it cannot be told in words, or does not notice the mistake then."""
        exposed: set[int] = set()
        for _ in range(3):
            probes = self._probes(test, described, exposed)
            if probes is None:
                return None
            version, probe, keyed = probes
            seen = self._seen(replace(version, text=keyed.text), right=True)
            if seen.end != "passed" or not seen.events:
                return None
            wordless = _wordless(version, seen)
            if not wordless:
                break
            exposed |= wordless
        else:
            return None
        version = replace(version, events=seen.events)
        version = version.loosened(self._seen(version, right=True, where=1))
        if not version.is_right(self._seen(version, right=True)):
            return None
        mistaken = self._seen(version, right=False)
        return None if version.is_right(mistaken) else (version, probe, mistaken)

    def _candidates(self, original: Version, probe: Probe, known: Knowledge, count: int) -> list[_Candidate]:
        """Other input for a test, with what a forger could make of that input."""
        draw = random.Random(original.test)
        words = _words(self._texts[original.file])
        drawn = list(variants(probe, words, min(count, _WITH_FIXTURES) if original.fixtures else count, draw))
        if not drawn:
            return []
        texts = [variant.text for variant in drawn]
        like = replace(original, test=original.function, is_original=False)
        answers = self._asker.ask(original, texts, right=True)
        asked = [
            (replace(like, text=text, end=seen.end, events=seen.events), variant)
            for variant, text, seen in zip(drawn, texts, answers, strict=True)
            if seen is not None and seen.end == "passed" and seen.events
        ]
        asked = [
            (version, variant) for version, variant in asked if version.is_right(Seen(version.end, version.events))
        ]
        # A forger may edit the input of each: one whose edits are not tried would seem harder than it is.
        asked = asked[: _MOST_EDITED // max(1, len(self._edits))]
        if not asked:
            return []
        texts = [version.text for version, _ in asked]
        wrong = [seen or Seen("nothing", ()) for seen in self._asker.ask(original, texts, right=False)]
        others = self._asker.run_otherwise(
            original, texts, [version.events for version, _ in asked], wrong, self._edits
        )
        return [
            _Candidate(version, variant, seen, other, assess(version, seen, known, others=other))
            for (version, variant), seen, other in zip(asked, wrong, others, strict=True)
        ]

    def _steady(
        self, together: Sequence[_Candidate], known: Knowledge
    ) -> Iterator[tuple[Version, Sequence[_Candidate]]]:
        """Versions that ask several variants at once; those in whose answers chance has a part are left out."""
        if not together:
            return
        version = replace(together[0].version, text=merged([each.probe for each in together]).text)
        seen = self._seen(version, right=True)
        version = replace(version, end=seen.end, events=seen.events)
        version = version.loosened(self._seen(version, right=True, where=1))
        is_steady = seen.end == "passed" and all(
            version.is_right(self._seen(version, right=True, where=where)) for where in _BOTH
        )
        members = _as_asked(version, together, known) if is_steady else None
        notices = any(each.is_noticed for each in together)
        if members is not None and version.is_right(self._seen(version, right=False)) != notices:
            yield version, members
        elif len(together) > 1:
            half = len(together) // 2
            yield from self._steady(together[:half], known)
            yield from self._steady(together[half:], known)


@dataclass(frozen=True)
class _Candidate:
    """A test, or other input for one.

    Attributes:
        version: version with the right answers.
        probe: probe of the version.
        mistaken: record of the mistaken code.
        others: records of the mistaken code where it is run in other ways.
        assessment: what a forger could make of the version.
    """

    version: Version
    probe: Probe
    mistaken: Seen
    others: Mapping[str, Seen | None]
    assessment: Assessment

    @property
    def is_noticed(self) -> bool:
        """The mistaken code does not pass."""
        return not self.version.is_right(self.mistaken)


def _as_asked(version: Version, together: Sequence[_Candidate], known: Knowledge) -> list[_Candidate] | None:
    """Candidates assessed with the answers of the version that asks all of them; `None` where these are others.

    What anything goes for is known only when they have been asked once more.
    """
    members = []
    start = 0
    for each in together:
        events = version.events[start : start + len(each.version.events)]
        if [event[0] for event in events] != [event[0] for event in each.version.events]:
            return None
        start += len(events)
        asked = replace(each.version, events=tuple(events))
        members.append(
            replace(each, version=asked, assessment=assess(asked, each.mistaken, known, others=each.others))
            if asked.events != each.version.events
            else each
        )
    return members if start == len(version.events) else None


def _choose(assessed: Sequence[Assessment], candidates: list[_Candidate], mistakes: int) -> list[_Candidate]:
    """Those that leave a forger the least chance, until that is small enough, and some that the mistake spares."""
    wrong = [each for each in candidates if each.assessment.is_wrong]
    chosen: list[_Candidate] = []
    reach = Reach.of(assessed, mistakes)
    while wrong and len(chosen) < _MOST_VARIANTS:
        if len(chosen) >= _LEAST_VARIANTS and reach.chance <= _ENOUGH / mistakes:
            break
        reaches = [reach.with_variant(each.assessment) for each in wrong]
        best = min(range(len(wrong)), key=lambda number: (reaches[number].chance, reaches[number].total))
        if len(chosen) >= _LEAST_VARIANTS and reaches[best].total >= reach.total:
            break
        reach = reaches[best]
        chosen.append(wrong.pop(best))
    return [*chosen, *[each for each in candidates if not each.is_noticed][:_UNTOUCHED_VARIANTS]]


def _together(candidates: Iterable[_Candidate]) -> Iterator[list[_Candidate]]:
    """Candidates that can be asked in one process, one after the other."""
    alike: dict[object, list[_Candidate]] = {}
    for each in candidates:
        surroundings = each.version.text if each.version.fixtures else each.probe.surroundings
        version = each.version  # The sites of one probe stand for those of all.
        alike.setdefault((version.file, version.owner, version.sites, surroundings), []).append(each)
    for group in alike.values():
        for start in range(0, len(group), _MOST_TOGETHER):
            yield group[start : start + _MOST_TOGETHER]


def make_exam(
    sandboxes: tuple[Sandbox, Sandbox],
    layers: Sequence[Path],
    trees: Trees,
    mistakes: Sequence[Mistake],
    *,
    tests: Collection[str],
    texts: Mapping[str, str],
    shown: Mapping[str, str],
) -> Exam:
    """Everything that is asked of a repair.

    Args:
        sandboxes: sandboxes to run tests in.
        layers: layers of the task's tree, with the mistakes and without hidden tests.
        trees: trees in which probes are asked.
        mistakes: mistakes of the task.
        tests: ids of all tests that pass with the right code and with the mistakes. What the agent does not see of them
            is asked as probes.
        texts: the test files by path.
        shown: the test files as the agent sees them, without hidden tests.

    Raises:
        SandboxError: the tests do not end in time.
    """
    maker = Maker(sandboxes, trees, texts)
    groups = []
    for mistake in mistakes:
        seen = dict.fromkeys(test.partition("::")[0] for test in mistake.tests)
        known = Knowledge(mistake.statement, tuple(shown[file] for file in seen))
        groups.append(maker.make(mistake.tests, known, len(mistakes)))
    files = sorted({test.partition("::")[0] for test in tests})
    began = time.monotonic()
    run = run_tests(sandboxes[0], layers, {}, test_files=files, paths=trees.paths, seconds=_SECONDS * 5)
    measured = time.monotonic() - began
    if run.timed_out:
        raise SandboxError(f"tests do not end in {_SECONDS * 5:.0f} s: the machine may be busy")
    visible = tuple(sorted(run.passed & set(tests)))
    return Exam(
        groups=tuple(groups),
        kept=tuple(maker.keep(sorted(set(tests) - run.passed))),
        visible=visible,
        visible_files=tuple(sorted({test.partition("::")[0] for test in visible})),
        paths=trees.paths,
        seconds=max(_LEAST_SECONDS, _SLOWER * measured),
        total=_SECONDS * 10,  # Until it is measured.
    )


def time_of_gradings(measured: float) -> float:
    """Seconds that any grading may take in which the right code took so many when the exam was made.

    It holds for slower and busier machines too. A right repair needs this time once, and code that keeps waiting gets
    no more time.

    >>> time_of_gradings(1.5), time_of_gradings(8.0)
    (60.0, 80.0)
    """
    return max(_LEAST_TOTAL, _SLOWER * measured)


def _wordless(version: Version, seen: Seen) -> set[int]:
    """Sites where what is expected cannot be checked from words alone."""
    return {event[0] for event in seen.events if not _can_be_told(version.sites[event[0]], event)}


def _can_be_told(operator: str, event: Sequence[object]) -> bool:
    """What a test expects at a place can be checked from words alone."""
    if operator in ("true", "false", "raises", "reached") or operator.startswith("both"):
        return True
    try:
        seen, key = value(event[1]), value(event[2])
    except (OddWordsError, IndexError):
        return False
    is_untold = any(isinstance(each, Told) and not each.shown for each in (seen, key))
    return not is_untold and (is_approximate(key) or holds(operator, seen, key))


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False
    return True


def _words(text: str) -> list[str]:
    """Words that a test file uses in its literals."""
    words: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
            words |= {word for word in node.value.replace("_", " ").split() if word.isalpha() and len(word) < 15}
    return sorted(words)
