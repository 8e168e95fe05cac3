import pytest
from measures import format_size, parse_size


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("12", 12),
        ("12 B", 12),
        ("1kB", 1000),
        ("1 KiB", 1024),
        ("1.5 MB", 1500000),
        ("2MiB", 2097152),
        ("3 g", 3 * 10**9),
    ],
)
def test_parse(text, count):
    assert parse_size(text) == count


def test_parse_separators():
    assert parse_size("1,000 B") == 1000
    assert parse_size("1_000_000") == 1000000


def test_parse_without_leading_digit():
    assert parse_size(".5 kB") == 500


def test_parse_ignores_case():
    assert parse_size("1 kib") == parse_size("1 KIB") == 1024


def test_parse_unknown_unit():
    with pytest.raises(ValueError, match="unknown unit: XB"):
        parse_size("1 XB")


def test_parse_nonsense():
    with pytest.raises(ValueError, match="not a size"):
        parse_size("big")


def test_format_bytes():
    assert format_size(999) == "999 B"


def test_format_decimal():
    assert format_size(1500) == "1.5 kB"


def test_format_binary():
    assert format_size(1536, binary=True) == "1.5 KiB"


def test_format_exact_unit():
    assert format_size(1000) == "1 kB"
    assert format_size(1024**2, binary=True) == "1 MiB"


def test_format_digits():
    assert format_size(1234567, digits=2) == "1.23 MB"
    assert format_size(1234567, digits=0) == "1 MB"


def test_format_largest_unit():
    assert format_size(5 * 10**15) == "5000 TB"


def test_format_negative():
    assert format_size(-2000) == "-2 kB"


def test_format_drops_zeros():
    assert format_size(1200, digits=3) == "1.2 kB"
    assert format_size(100000, digits=0) == "100 kB"
