"""What an agent reads of what a game prints."""

from __future__ import annotations

import pytest

from textagent_gym.domains.textworld.prose import LOST, WON, plain, plain_opening, reword_goal


@pytest.mark.parametrize(
    ("printed", "text"),
    [
        ("You open the safe.\n\n\n\n>    -= Shower =-0/3", "You open the safe."),
        ("You take it.\n\nYour score has just gone up by one point.\n\n>", "You take it."),
        (f"Not bad.\n\n\n   {WON}\n\nYou scored 1 out of 1.\nWould you like to QUIT?\n> ", f"Not bad.\n\n{WON}"),
        (f"Not bad.\n\n   {LOST}\n\nWould you like to RESTART?", f"Not bad.\n\n{LOST}"),
        ("A room.  \n\n\n\nA door.\n", "A room.\n\nA door."),
    ],
)
def test_bookkeeping_is_cut_out_of_a_reply(printed: str, text: str) -> None:
    assert plain(printed) == text


def test_the_banner_is_cut_out_of_the_first_text() -> None:
    assert plain_opening("\n\n  ________ $$$$\n $$ / $$$\n\nWelcome!\n\n-= Hall =-\n\n>   -= Hall =-0/0") == (
        "Welcome!\n\n-= Hall =-"
    )


def test_a_goal_is_told_in_other_words_or_not_at_all() -> None:
    text = "Open the safe.\n\n-= Hall =-"
    assert reword_goal(text, "Open the safe.\n", "Your goal: the safe must be open.") == (
        "Your goal: the safe must be open.\n\n-= Hall =-"
    )
    assert reword_goal(text, "Open the safe.", "") == "\n\n-= Hall =-"
    assert reword_goal(text, "Eat the apple.", "Your goal: eat.") == text
