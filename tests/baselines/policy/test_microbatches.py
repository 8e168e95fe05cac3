"""Which rows go through a model together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from baselines.policy.microbatches import pack


@given(lengths=st.lists(st.integers(1, 500), max_size=60), tokens=st.integers(1, 3_000))
def test_every_row_goes_once_within_the_bounds(lengths: list[int], tokens: int) -> None:
    microbatches = pack(lengths, tokens)
    assert sorted(row for rows in microbatches for row in rows) == list(range(len(lengths)))
    for rows in microbatches:
        computed = len(rows) * max(lengths[row] for row in rows)
        assert len(rows) == 1 or computed <= tokens
        assert computed - sum(lengths[row] for row in rows) <= 0.05 * computed


def test_equal_rows_fill_the_microbatches() -> None:
    assert [len(rows) for rows in pack([100] * 10, 400)] == [4, 4, 2]
