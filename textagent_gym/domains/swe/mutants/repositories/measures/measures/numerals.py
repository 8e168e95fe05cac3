"""Roman numerals and ordinals."""

_ROMAN = [
    (1000, "M"),
    (900, "CM"),
    (500, "D"),
    (400, "CD"),
    (100, "C"),
    (90, "XC"),
    (50, "L"),
    (40, "XL"),
    (10, "X"),
    (9, "IX"),
    (5, "V"),
    (4, "IV"),
    (1, "I"),
]


def to_roman(number):
    """A number from 1 to 3999 as a Roman numeral."""
    if not 0 < number < 4000:
        raise ValueError(f"no Roman numeral for {number}")
    digits = []
    for value, numeral in _ROMAN:
        while number >= value:
            digits.append(numeral)
            number -= value
    return "".join(digits)


def from_roman(text):
    """The number that a Roman numeral stands for; only the usual form is accepted."""
    text = text.strip().upper()
    values = {numeral: value for value, numeral in _ROMAN if len(numeral) == 1}
    total = 0
    previous = 0
    for letter in reversed(text):
        if letter not in values:
            raise ValueError(f"not a Roman numeral: {text}")
        value = values[letter]
        if value < previous:
            total -= value
        else:
            total += value
            previous = value
    if total == 0 or to_roman(total) != text:
        raise ValueError(f"not a Roman numeral: {text}")
    return total


def ordinal(number):
    """A number with its ending, such as "2nd"."""
    last_two = abs(number) % 100
    if 11 <= last_two <= 13:
        ending = "th"
    else:
        ending = {1: "st", 2: "nd", 3: "rd"}.get(last_two % 10, "th")
    return f"{number}{ending}"
