"""Replacements that bring a file to where it should be, checked against texts that hypothesis makes up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from textagent_gym.domains.swe.replacements import replacements
from textagent_gym.domains.swe.tasks import Hunk

LINES = st.lists(st.sampled_from(["a\n", "b\n", "\n", "x\u2028y\n", "z\r\n"]), max_size=12)


def applied(made: list[Hunk], text: str) -> str:
    for hunk in made:
        assert text.find(hunk.wrong) == text.rfind(hunk.wrong) >= 0
        before = text[: text.index(hunk.wrong)]
        assert before.count("\n") == hunk.line - 1
        assert not before or before.endswith("\n")
        text = text.replace(hunk.wrong, hunk.right)
    return text


@given(LINES.filter(bool), LINES, st.sampled_from(["", "end", "a"]), st.sampled_from(["", "end"]))
def test_any_text_becomes_any_other_by_one_replacement(
    now: list[str], right: list[str], end: str, right_end: str
) -> None:
    text, wanted = "".join(now) + end, "".join(right) + right_end
    if text == wanted:
        return
    made = replacements("f.py", text, wanted)
    assert len(made) == 1
    assert applied(made, text) == wanted


@given(st.data())
def test_a_replacement_for_each_place_that_is_left(data: st.DataObject) -> None:
    """Wherever the places lie, however alike the lines are, and whichever of them are repaired already."""
    right, task, hunks = "", "", []
    for _ in range(data.draw(st.integers(1, 3))):
        between = "".join(data.draw(LINES))
        right, task = right + between, task + between
        wrong, good = data.draw(st.tuples(LINES, LINES).filter(lambda pair: pair[0] != pair[1]).map(tuple))
        hunks.append(Hunk("f.py", "".join(wrong), "".join(good), task.count("\n") + 1))
        right, task = right + hunks[-1].right, task + hunks[-1].wrong
    after = "".join(data.draw(LINES))
    right, task = right + after, task + after
    text, left = task, len(hunks)
    while text and text != right:
        made = replacements("f.py", text, right, task, hunks)
        assert len(made) <= left
        assert applied(made, text) == right
        text, left = applied(made[:1], text), left - 1
