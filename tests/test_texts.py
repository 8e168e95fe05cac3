"""Long texts without their middle."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from textagent_gym.spaces import fit
from textagent_gym.texts import cut_middle, is_cut


@given(st.text(), st.integers(2, 30))
def test_a_cut_text_keeps_both_ends_and_counts_what_it_left_out(text: str, limit: int) -> None:
    cut = cut_middle(text, limit)
    if len(text) <= limit:
        assert cut == text
    else:
        assert cut.startswith(text[: limit // 2])
        assert cut.endswith(text[-(limit // 2) :])
        assert f"[... {len(text) - limit} characters left out ...]" in cut
        assert is_cut(cut)


@given(st.text(alphabet="ab \n"), st.integers(2, 10))
def test_words_are_kept_up_to_the_limit(text: str, limit: int) -> None:
    def count(text: str) -> int:
        return len(text.split())

    cut = cut_middle(text, limit, count, "words")
    head, notice, rest = cut.partition("\n[... ")
    if not notice:
        assert cut == text
        return
    tail = rest.partition("...]\n")[2]
    assert text.startswith(head)
    assert text.endswith(tail)
    # One character more, and an end has more than its half; of an odd number the beginning has the larger one.
    assert count(head) <= (limit + 1) // 2 < count(text[: len(head) + 1])
    assert count(tail) <= limit // 2 < count(text[len(text) - len(tail) - 1 :])


def test_lines_that_are_left_out_are_counted_where_that_is_asked_for() -> None:
    assert "[... 5 characters, 2 lines left out ...]" in cut_middle("ab1\n2\n3yz", 4, count_lines=True)


@given(st.text(max_size=300), st.integers(1, 120))
def test_what_is_fitted_into_a_space_fits(text: str, limit: int) -> None:
    assert len(fit(text, limit)) <= limit
    assert len(text) > limit or fit(text, limit) == text
