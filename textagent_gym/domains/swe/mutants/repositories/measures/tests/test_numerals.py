import pytest
from measures import from_roman, ordinal, to_roman

KNOWN = {
    1: "I",
    4: "IV",
    9: "IX",
    14: "XIV",
    40: "XL",
    90: "XC",
    400: "CD",
    944: "CMXLIV",
    1990: "MCMXC",
    3999: "MMMCMXCIX",
}


@pytest.mark.parametrize("number", KNOWN)
def test_to_roman(number):
    assert to_roman(number) == KNOWN[number]


@pytest.mark.parametrize("number", KNOWN)
def test_from_roman(number):
    assert from_roman(KNOWN[number]) == number


def test_there_and_back():
    for number in range(1, 4000, 7):
        assert from_roman(to_roman(number)) == number


@pytest.mark.parametrize("number", [0, -1, 4000])
def test_out_of_range(number):
    with pytest.raises(ValueError, match="no Roman numeral"):
        to_roman(number)


@pytest.mark.parametrize("text", ["IIII", "VX", "IC", "", "ABC"])
def test_unusual_forms(text):
    with pytest.raises(ValueError, match="not a Roman numeral"):
        from_roman(text)


def test_case_and_spaces():
    assert from_roman(" xiv ") == 14


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1, "1st"),
        (2, "2nd"),
        (3, "3rd"),
        (4, "4th"),
        (11, "11th"),
        (12, "12th"),
        (13, "13th"),
        (21, "21st"),
        (112, "112th"),
    ],
)
def test_ordinal(number, text):
    assert ordinal(number) == text


def test_ordinal_of_negative_numbers():
    assert ordinal(-1) == "-1st"
    assert ordinal(-11) == "-11th"
