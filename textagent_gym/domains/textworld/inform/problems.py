"""Why a command means nothing, and how the player is told."""

from __future__ import annotations

from enum import IntEnum


class Problem(IntEnum):
    """What is wrong with a command. Of the problems of several sentences, the highest is told."""

    STUCK = 1
    TOO_LONG = 2
    INANIMATE = 4
    UNSEEN = 5
    SEVERAL = 8
    VAGUE = 10
    VERB = 12
    GONE = 14
    TOO_FEW = 16
    NOTHING = 17
    OUT_OF_CONTEXT = 19
    REPEATED_TO = 20
    COMMA_FIRST = 21
    NOBODY = 22
    DEAF = 23
    UNSPOKEN = 24


SENTENCES = {
    Problem.STUCK: "I didn't understand that sentence.",
    Problem.INANIMATE: "You can only do that to something animate.",
    Problem.UNSEEN: "You can't see any such thing.",
    Problem.SEVERAL: "You can't use multiple objects with that verb.",
    Problem.VERB: "That's not a verb I recognise.",
    Problem.NOTHING: "There are none at all available!",
    Problem.OUT_OF_CONTEXT: "That noun did not make sense in this context.",
    Problem.REPEATED_TO: 'To repeat a command like "frog, jump", just say "again", not "frog, again".',
    Problem.COMMA_FIRST: "You can't begin with a comma.",
    Problem.NOBODY: "You seem to want to talk to someone, but I can't see whom.",
    Problem.UNSPOKEN: 'To talk to someone, try "someone, hello" or some such.',
}
"""What is said to the problems that need no more than a sentence."""


class MeaninglessError(Exception):
    """The command means nothing.

    Args:
        problem: what is told.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.name)
        self.problem = problem
