"""Versions of a hidden test, each with what the right code makes a witness see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from textagent_gym.domains.swe.grading.hidden.answers import Seen, Told, holds, is_true, raised_as_expected, same, value

MESSAGES = ("contains", "contains not", "in", "not in")
"""Operators by which tests look into texts: there, one text of the right code is as good as another."""
_SCALAR = str | bool | None
"""Words that are what they say: two of them need no reading to be compared."""
ANYTHING = ["*"]
"""Stands for words that are not always the same with the right code."""


@dataclass(frozen=True)
class Version:
    """One version of a hidden test: the test itself, or the same with other input.

    Attributes:
        test: id of the hidden test that it decides on; for other input, id of the test's function.
        is_original: whether it is the test itself; what that asserts has to hold. With other input, everything has to
            be as the right code has it.
        file: file of the test.
        text: text of the probe, a whole module.
        owner: class of the test, or "".
        fixtures: whether pytest has to run it.
        suffix: end of the test's id, where its fixtures have parameters, or "".
        sites: operators of the sites; see `probes.Probe`.
        end, events: record of what the right code makes a witness see. For an original, what is expected stands there
            too.
    """

    test: str
    is_original: bool
    file: str
    text: str
    owner: str
    fixtures: bool
    sites: tuple[str, ...]
    suffix: str = ""
    end: str = "passed"
    events: tuple[tuple[Any, ...], ...] = ()

    @property
    def function(self) -> str:
        """Id of the test function."""
        return self.test.partition("[")[0]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """What `to_dict` made."""
        lists = {"sites": tuple(data["sites"]), "events": tuple(tuple(event) for event in data["events"])}
        return cls(**{**data, **lists})

    def is_right(self, seen: Seen | None) -> bool:
        """What a process says that it saw is what the right code makes one see."""
        if seen is None or seen.end != self.end or [e[0] for e in seen.events] != [e[0] for e in self.events]:
            return False
        return all(self.fits(place, event[1:]) for place, event in enumerate(seen.events))

    def loosened(self, seen: Seen) -> Version:
        """The same where anything goes for words that the right code has once seen in another way."""
        if [event[0] for event in seen.events] != [event[0] for event in self.events]:
            return self
        events = []
        for mine, theirs in zip(self.events, seen.events, strict=True):
            operator = self.sites[mine[0]]
            is_free = operator.startswith("both") or not (self.is_original or operator == "raises")
            pairs = list(zip(mine[1:], theirs[1:], strict=False)) if is_free and len(mine) == len(theirs) else []
            changed = [ANYTHING if not self._is_same(operator, [ours], [other]) else ours for ours, other in pairs]
            events.append((mine[0], *changed) if changed else mine)
        return replace(self, events=tuple(events))

    def fits(self, place: int, words: Sequence[Any]) -> bool:
        """Some words would be right at one place.

        Args:
            place: index in `events`.
            words: words of that event, without the number of its site.
        """
        site, *mine = self.events[place]
        check = self._holds if self.is_original else self._is_same
        try:
            return check(self.sites[site], mine, words)
        except Exception:  # noqa: BLE001 (whatever comparing a stranger's words raises, they are wrong)
            return False

    def raised_rightly(self, right: Sequence[Any], words: Sequence[Any]) -> bool:
        """Some words of what was raised would be right where others are."""
        try:
            return (self._holds if self.is_original else self._is_same)("raises", right, words)
        except Exception:  # noqa: BLE001 (the same)
            return False

    def _holds(self, operator: str, mine: Sequence[Any], theirs: Sequence[Any]) -> bool:
        """What a test asserts is true of what was seen."""
        if operator == "reached":
            return True
        if operator in ("true", "false"):
            return is_true(value(theirs[0])) == (operator == "true")
        if operator == "raises":
            return raised_as_expected((theirs[0], theirs[1]), mine[2], mine[3])
        if operator.startswith("both"):
            return theirs[0] is True and self._is_same(operator, mine, theirs)
        return holds(operator, value(theirs[0]), value(mine[1]))

    def _is_same(self, operator: str, mine: Sequence[Any], theirs: Sequence[Any]) -> bool:
        """The same was seen."""
        if operator == "raises":
            return list(mine[0][:1]) == list(theirs[0][:1])
        if len(mine) != len(theirs):
            return False
        for words, their_words in zip(mine, theirs, strict=True):
            if words == ANYTHING:
                continue
            if isinstance(words, _SCALAR) and isinstance(their_words, _SCALAR) and operator not in MESSAGES:
                if words != their_words:
                    return False
                continue
            ours, other = value(words), value(their_words)
            if isinstance(ours, Told) and not ours.shown:
                if not isinstance(other, Told) or ours.is_true is not other.is_true:
                    return False
            elif not (operator in MESSAGES and isinstance(ours, str) and isinstance(other, str)) and not same(
                ours, other
            ):
                return False
        return True
