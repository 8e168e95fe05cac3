import pytest
from measures import format_duration, parse_duration
from measures.durations import unit_of


def test_seconds():
    assert parse_duration("45s") == 45


def test_several_parts():
    assert parse_duration("1h 30m") == 5400


def test_words():
    assert parse_duration("2 days, 3 hours and 1 minute") == 183660


def test_weeks():
    assert parse_duration("1w") == 7 * 86400


def test_fractions():
    assert parse_duration("1.5h") == 5400
    assert parse_duration("0.25s") == 0.25


def test_clock_with_hours():
    assert parse_duration("1:02:03") == 3723


def test_clock_without_hours():
    assert parse_duration("12:30") == 750


def test_clock_with_too_many_minutes():
    with pytest.raises(ValueError, match="not a time"):
        parse_duration("0:75:00")


def test_clock_with_too_many_seconds():
    with pytest.raises(ValueError, match="not a time"):
        parse_duration("10:60")


def test_negative():
    assert parse_duration("-2m") == -120


def test_negative_with_a_space():
    assert parse_duration("- 10s") == -10


def test_whole_numbers_are_integers():
    assert isinstance(parse_duration("2.0m"), int)


@pytest.mark.parametrize("text", ["", "   "])
def test_empty(text):
    with pytest.raises(ValueError, match="empty"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["abc", "5", "1h foo", "h1"])
def test_nonsense(text):
    with pytest.raises(ValueError):
        parse_duration(text)


@pytest.mark.parametrize(
    ("name", "unit"), [("Hours", "h"), ("hr", "h"), ("mins", "m"), ("s", "s"), ("sec", "s"), ("DAY", "d")]
)
def test_units(name, unit):
    assert unit_of(name) == unit


def test_unknown_unit():
    with pytest.raises(ValueError, match="fortnight"):
        unit_of("fortnights")


def test_format():
    assert format_duration(5400) == "1h 30m"


def test_format_zero():
    assert format_duration(0) == "0s"


def test_format_weeks():
    assert format_duration(694861) == "1w 1d 1h 1m 1s"


def test_format_with_largest_unit():
    assert format_duration(90000, largest="h") == "25h"
    assert format_duration(7200, largest="m") == "120m"


def test_format_some_parts():
    assert format_duration(93784, parts=2) == "1d 2h"


def test_format_negative():
    assert format_duration(-61) == "-1m 1s"


def test_there_and_back():
    for seconds in (1, 59, 60, 3599, 86400, 700000):
        assert parse_duration(format_duration(seconds)) == seconds
