import pytest
from measures import Intervals


def test_parse():
    assert list(Intervals.parse("1-3,7")) == [1, 2, 3, 7]


def test_parse_ignores_spaces_and_empty_parts():
    assert str(Intervals.parse(" 1 - 3 , , 5 ")) == "1-3,5"


@pytest.mark.parametrize("text", ["a", "1-", "-3", "1-b"])
def test_parse_nonsense(text):
    with pytest.raises(ValueError, match="not a range"):
        Intervals.parse(text)


def test_backward_range():
    with pytest.raises(ValueError, match="2 comes before 5"):
        Intervals.parse("5-2")


def test_overlapping_ranges_merge():
    assert str(Intervals([(1, 4), (3, 8)])) == "1-8"


def test_touching_ranges_merge():
    assert str(Intervals([(1, 2), (3, 4)])) == "1-4"
    assert str(Intervals([(3, 4), (1, 2)])) == "1-4"


def test_separate_ranges_stay():
    assert str(Intervals([(1, 2), (4, 5)])) == "1-2,4-5"


def test_add_one():
    found = Intervals()
    found.add(5)
    assert list(found) == [5]


def test_add_bridges_a_gap():
    found = Intervals([(1, 2), (6, 7)])
    found.add(3, 5)
    assert str(found) == "1-7"


def test_remove_from_the_middle():
    found = Intervals([(1, 9)])
    found.remove(4, 6)
    assert str(found) == "1-3,7-9"


def test_remove_one():
    found = Intervals([(1, 3)])
    found.remove(2)
    assert list(found) == [1, 3]


def test_remove_everything():
    found = Intervals([(2, 3), (5, 6)])
    found.remove(1, 10)
    assert len(found) == 0


def test_remove_across_intervals():
    found = Intervals([(1, 4), (6, 9)])
    found.remove(3, 7)
    assert str(found) == "1-2,8-9"


def test_contains():
    found = Intervals([(1, 3)])
    assert 1 in found
    assert 3 in found
    assert 0 not in found
    assert 4 not in found


def test_length():
    assert len(Intervals([(1, 3), (10, 10)])) == 4


def test_gaps():
    assert Intervals([(1, 2), (5, 6), (9, 9)]).gaps() == [(3, 4), (7, 8)]


def test_equality():
    assert Intervals([(1, 4)]) == Intervals([(1, 2), (3, 4)])
    assert Intervals() != "no intervals"


def test_representation():
    assert repr(Intervals([(1, 2)])) == "Intervals.parse('1-2')"
