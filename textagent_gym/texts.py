"""Long texts without their middle, and the one notice that says so; two texts where they differ."""

from __future__ import annotations

from collections.abc import Callable

_END = " left out ...]"


def notice(amount: int, unit: str = "characters", lines: int | None = None) -> str:
    """What stands in the place of the middle.

    >>> notice(120, "bytes").strip()
    '[... 120 bytes left out ...]'
    >>> notice(120, lines=3).strip()
    '[... 120 characters, 3 lines left out ...]'
    """
    return f"\n[... {amount} {unit}{'' if lines is None else f', {lines} lines'}{_END}\n"


def is_cut(text: str) -> bool:
    """Whether a text holds the notice that a part was left out.

    >>> is_cut(cut_middle("abcdef", 4)), is_cut("abcdef")
    (True, False)
    """
    return _END in text


def cut_middle(
    text: str, limit: int, count: Callable[[str], int] = len, unit: str = "characters", *, count_lines: bool = False
) -> str:
    """The longest beginning and end of a text that have half of a limit each, and a notice between them.

    Args:
        text: any text; one within the limit is returned as it is.
        limit: units that are kept at most, the notice apart.
        count: number of units in a text, which grows with the text.
        unit: name of what is counted, for the notice.
        count_lines: whether the notice says how many ends of lines were left out too.

    >>> cut_middle("a" * 50 + "z" * 50, 8)
    'aaaa\\n[... 92 characters left out ...]\\nzzzz'
    >>> cut_middle("one two three four five", 2, lambda text: len(text.split()), "words")
    'one \\n[... 3 words left out ...]\\n five'
    """
    total = count(text)
    if total <= limit:
        return text
    if count is len:
        head, tail = (limit + 1) // 2, limit // 2
    else:
        head = _longest(len(text), (limit + 1) // 2, lambda length: count(text[:length]))
        tail = _longest(len(text) - head, limit // 2, lambda length: count(text[len(text) - length :]))
    end = len(text) - tail
    return text[:head] + notice(total - limit, unit, text.count("\n", head, end) if count_lines else None) + text[end:]


def _longest(most: int, limit: int, count: Callable[[int], int]) -> int:
    """The largest length up to `most` whose count is within the limit, by bisection: counts grow with the length."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if count(middle) <= limit:
            low = middle
        else:
            high = middle - 1
    return low


def excerpts(one: str, other: str, before: int = 20, longest: int = 80) -> tuple[str, str]:
    """What two texts say where they begin to differ.

    Args:
        one, other: texts that are not equal.
        before: number of characters that are shown before the difference.
        longest: number of characters that are shown in all.

    >>> excerpts("the lamp is on the red table", "the lamp is on the blue table", before=4, longest=9)
    ('...the red t', '...the blue ')
    """
    shorter = min(len(one), len(other))
    differs = next((place for place in range(shorter) if one[place] != other[place]), shorter)
    start = max(0, differs - before)
    left_out = "..." if start else ""
    return f"{left_out}{one[start : start + longest]}", f"{left_out}{other[start : start + longest]}"
