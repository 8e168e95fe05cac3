"""What is asked for, and when it has been done: the rules of Minigrid's verifier, quirks included.

A clause is one thing to do; a sequence orders two of them, or two pairs. What has been done is a set of numbers, so
that a state of the search can hold it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

ClauseKind = Literal["goto", "open", "pickup", "putnext"]
Order = Literal["before", "after", "and"]


@dataclass(frozen=True, slots=True)
class Clause:
    """One thing to do.

    Attributes:
        kind: "goto" ends in front of a target, "open" opens one, "pickup" picks one up, "putnext" drops one next to
            one of `fixed`.
        number: number of the clause or sequence in its instruction, from 0.
        targets: numbers of the things that will do.
        fixed: numbers of the things to put a target next to.
        strict: whether opening or picking up anything else ends the episode as a failure.
    """

    kind: ClauseKind
    number: int
    targets: tuple[int, ...]
    fixed: tuple[int, ...] = ()
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Sequence:
    """Two instructions.

    Attributes:
        order: "before" is `A, then B`, "after" is `A after you B`, "and" leaves the order open.
        number: number of the clause or sequence in its instruction, from 0.
        first, second: instructions in the order in which they have to be done.
        strict: whether doing the second first ends the episode as a failure.
    """

    order: Order
    number: int
    first: Instruction
    second: Instruction
    strict: bool = False


Instruction = Clause | Sequence


def clauses(instruction: Instruction) -> Iterator[Clause]:
    """The things to do, in the order in which they have to be done."""
    if isinstance(instruction, Clause):
        yield instruction
    else:
        yield from clauses(instruction.first)
        yield from clauses(instruction.second)


def startable(instruction: Instruction, done: frozenset[int]) -> Iterator[Clause]:
    """Clauses that can be done next."""
    if instruction.number in done:
        return
    if isinstance(instruction, Clause):
        yield instruction
    elif instruction.order == "and":
        yield from startable(instruction.first, done)
        yield from startable(instruction.second, done)
    elif is_done(instruction.first, done):
        yield from startable(instruction.second, done)
    else:
        yield from startable(instruction.first, done)


def is_done(instruction: Instruction, done: frozenset[int]) -> bool:
    """Whether every clause of an instruction has been done."""
    return all(clause.number in done for clause in clauses(instruction))
