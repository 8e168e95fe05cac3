"""The words before a name: articles, possessives, numbers, "all"."""

from __future__ import annotations

from textagent_gym.domains.textworld.inform.reading import ALL, ALL_WANTED, THEN, Description, Reading

_OWNERS = {
    "my": "my", "this": "my", "these": "my", "that": "that", "those": "that",
    "his": "him", "her": "her", "their": "them", "its": "it",
}  # fmt: skip
_LIGHT = {"lit": "lit", "lighted": "lit", "unlit": "unlit"}
_REQUIREMENTS = _OWNERS | _LIGHT
_ARTICLES = frozenset(("the", "a", "an", "some"))
OTHER = frozenset(("another", "other"))
"""Words that stand before a name where any thing of that name will do."""

DESCRIPTORS = _ARTICLES | frozenset(_REQUIREMENTS)
"""Words that stand before a name; some may be pronouns as well."""


def read_description(reading: Reading) -> None:
    """Read what stands before a name; what it says stands in `reading.described`."""
    described = reading.described = Description()
    if reading.finished:
        return
    goes_on = True
    while goes_on:
        word = reading.next()
        goes_on = False
        if word in DESCRIPTORS:
            goes_on = described.ambiguous = True
            described.indefinite |= word != "the"
            if word in _REQUIREMENTS:
                described.whose |= {_REQUIREMENTS[word]}
        if word in OTHER:
            goes_on = described.indefinite = True
        if word in ALL:
            goes_on = described.indefinite = described.plural = True
            described.wanted = ALL_WANTED
            if reading.takes_all == 1:
                reading.takes_all = 2
        goes_on |= reading.allows_plurals and _read_number(reading, described)
        if goes_on and reading.next() != "of":
            reading.at -= 1
    reading.at -= 1


def _read_number(reading: Reading, described: Description) -> bool:
    """Take the word that was read for the number of things that are meant, if it is one and others follow."""
    if reading.peek() in (None, THEN):
        return False
    number = reading.number_at(reading.at - 1)
    if number > 0:
        described.indefinite = True
    if number > 1:
        described.plural = described.guessed = True
        described.wanted, described.number_at = number, reading.at - 1
    return number > 0
