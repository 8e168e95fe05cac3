"""Durations, sizes, numerals and ranges, read from text and written as text."""

from measures.durations import format_duration, parse_duration
from measures.intervals import Intervals
from measures.numerals import from_roman, ordinal, to_roman
from measures.sizes import format_size, parse_size

__all__ = [
    "Intervals",
    "format_duration",
    "format_size",
    "from_roman",
    "ordinal",
    "parse_duration",
    "parse_size",
    "to_roman",
]
