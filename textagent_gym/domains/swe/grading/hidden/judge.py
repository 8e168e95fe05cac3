"""The chance of somebody who is paid without a repair: computed for a forger who knows all but the right answers.

The forger knows the source with its mistake, the statement, every test that can be seen, the suite's own source, and in
the tested process the text of each probe, what the mistaken code answers to it, also behind an exception, and which of
its answers are wrong. Whatever it says must be right for every version with other input and for one original, which is
what the least pay takes. That a probe has passed it can say for nothing.

It has rules that turn what it knows into answers. For each place of a test function that asks something it chooses
one, once, and follows it in all versions. It is given the rule that serves it best for all places together, and one
chance in ten of another for each place where that is of no use. Where its rule fails in a version, it has one chance in
ten of another that happens to be right there. An answer that no rule offers counts as one in a thousand, be it the same
in all versions or in one, and one in ten thousand is the least chance that there is a rule for everything which nobody
has thought of here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

from textagent_gym.domains.swe.grading.hidden.rules import UNKNOWN

UNKNOWN_RULE = 1e-4
"""Chance of a rule that nobody has thought of here, and that is right about all versions at once."""
MOST_GRADINGS = 50
"""Gradings of an episode: a forger gets no more guesses than that."""
MOST_CHANCE = 0.01 / MOST_GRADINGS
"""A task is served only where the chance of a forger is below this in each grading: below 1 in 100 in an episode."""
ANOTHER_RULE = 0.1
"""Chance of following the right rule at a place, or in a version, where it is not the best one elsewhere."""
AS_IT_IS = "as it is"
"""The rule to say what the mistaken code says: free, wherever it is right."""
Place = tuple[str, int, int]
"""A test function, a site in it, and a word of what is seen there."""
Odds = Mapping[str, float]
"""Priors of rules, by name."""


@dataclass(frozen=True)
class Assessment:
    """What a forger can make of one version.

    Attributes:
        is_original: whether the version is the test itself.
        places: places where the code with the mistake answers wrongly, and the rules that answer rightly there; empty
            where nothing needs to be known.
    """

    is_original: bool
    places: Mapping[Place, Odds]

    @property
    def is_wrong(self) -> bool:
        """Somebody who says what the mistaken code says, and that all has passed, is wrong."""
        return bool(self.places)


@dataclass(frozen=True)
class _Reached:
    """How far rules get at one place.

    Attributes:
        by_rule: chance, for each rule that is of use there, that it is right in all versions.
        none: the same for a rule that no version so far knows.
    """

    by_rule: Mapping[str, float] = field(default_factory=dict)
    none: float = 1.0

    def with_odds(self, odds: Odds) -> _Reached:
        """The same with another version."""
        least = max(ANOTHER_RULE * max(odds.values(), default=0.0), UNKNOWN)
        by_rule = {rule: reached * (1.0 if rule in odds else least) for rule, reached in self.by_rule.items()}
        by_rule |= {rule: self.none for rule in odds if rule not in by_rule}
        none = self.none * least
        return _Reached({rule: reached for rule, reached in by_rule.items() if reached > none}, none)


_Table = Mapping[Place, _Reached]


class Reach:
    """How far a forger gets with some versions.

    Args:
        tables: what is reached with the variants and one of the originals, for each of these.
        priors: priors of all rules.
        mistakes: number of the task's mistakes, which share the chance of a rule that nobody has thought of: it counts
            once per task.
    """

    def __init__(self, tables: Sequence[_Table], priors: Odds, mistakes: int) -> None:
        self._tables = tables
        self._priors = priors
        self._mistakes = mistakes

    @classmethod
    def of(cls, assessments: Iterable[Assessment], mistakes: int = 1) -> Self:
        """That of some versions."""
        every = list(assessments)
        priors = {rule: prior for each in every for odds in each.places.values() for rule, prior in odds.items()}
        variants: _Table = {}
        for each in every:
            variants = variants if each.is_original else _with(variants, each)
        originals = [each for each in every if each.is_original]
        return cls([_with(variants, each) for each in originals] or [variants], priors, mistakes)

    def with_variant(self, variant: Assessment) -> Reach:
        """The same with another variant."""
        priors = {rule: prior for odds in variant.places.values() for rule, prior in odds.items()}
        return Reach([_with(table, variant) for table in self._tables], {**priors, **self._priors}, self._mistakes)

    @cached_property
    def chance(self) -> float:
        """Chance in 0..1 that a forger is paid anything, in one grading."""
        return min(1.0, max(UNKNOWN_RULE / self._mistakes, *(max(self._chances(table)) for table in self._tables)))

    @cached_property
    def total(self) -> float:
        """The chances of all rules together: what tells more of two variants that leave the largest as it is."""
        return sum(sum(self._chances(table)) for table in self._tables)

    def _chances(self, table: _Table) -> list[float]:
        """Chances of each rule that is followed wherever it is of use, and of none."""
        elsewhere = {}
        for place, reached in table.items():
            others = (self._priors[rule] * each for rule, each in reached.by_rule.items())
            as_it_is = reached.by_rule.get(AS_IT_IS, 0.0)
            elsewhere[place] = max(reached.none, as_it_is, ANOTHER_RULE * max(others, default=0.0))
        gains: dict[str, float] = {}
        for place, reached in table.items():
            for rule, each in reached.by_rule.items():
                if each > elsewhere[place]:
                    gains[rule] = gains.get(rule, self._priors[rule]) * each / elsewhere[place]
        base = math.prod(elsewhere.values())
        return [base, *(base * gain for gain in gains.values())]


def _with(table: _Table, assessment: Assessment) -> _Table:
    added = {place: table.get(place, _Reached()).with_odds(odds) for place, odds in assessment.places.items()}
    return {**table, **added}


def chance(assessments: Iterable[Assessment], mistakes: int = 1) -> float:
    """Chance in 0..1 that a forger is paid anything for one of a task's mistakes, in one grading."""
    return Reach.of(assessments, mistakes).chance
