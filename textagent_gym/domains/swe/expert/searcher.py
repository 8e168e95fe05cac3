"""An expert that searches: it makes the problem happen, finds the code that it runs through, and tries repairs.

It knows what any agent knows: the statement, and what commands print. With programs that it sends to the sandbox (see
`trial`) it puts the statement's expression into the tests that can be seen until that fails in the statement's words,
ranks functions by how few passing tests run through them (as in spectrum-based fault localisation, Abreu et al. 2007,
"On the Accuracy of Spectrum-based Fault Localization"), reads them, and tries what would undo a mistake of one token
(see `repairs`). It keeps the repair with which the problem is gone and the visible tests still pass.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any

from textagent_gym.calls import Call
from textagent_gym.domains.swe.expert.repairs import Repair, repairs
from textagent_gym.domains.swe.tools import ActionFormat, render
from textagent_gym.texts import is_cut

_FOLDER = '"${TMPDIR:-/tmp}/search"'
_MODULES = ("__init__", "runs", "problem", "places", "__main__")
_BODY = re.compile(r"in the comments:\n\n(.*)\n\nFind the cause", re.DOTALL)
_OPERATOR = re.compile(r"unsupported operand type\(s\) for (\S+):")
_RAISED = re.compile(r"^    # (\w+)(?::|$)", re.MULTILINE)
_READ = 7_000  # Characters that an observation shows for certain; a longer one is cut in the middle.
_ODD = 2.0  # Without a problem to run, code is repaired that looks like a mistake,
_NAMED = 0.7  # or that the statement names.

Plan = Generator[Call, str, None]


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a statement says: a line that should hold, and what happens instead."""

    line: str
    outcome: tuple[str, ...]


def expectations(statement: str) -> tuple[Expectation, ...]:
    """What a statement says should hold; nothing where it says so in other words.

    >>> expectations("... in the comments:\\n\\n    assert f(1) == 2\\n    # assert 3 == 2\\n\\nFind the cause.")
    (Expectation(line='assert f(1) == 2', outcome=('assert 3 == 2',)),)
    """
    body = _BODY.search(statement)
    stated = []
    for part in body[1].split("\n\n") if body else ():
        lines = [line.strip() for line in part.splitlines() if re.match(r"    \S", line)]
        expected = [line for line in lines if not line.startswith("#")]
        outcome = tuple(line.removeprefix("#").strip() for line in lines if line.startswith("#"))
        if lines:
            stated.append(Expectation(expected[0] if expected else "", outcome))
    return tuple(stated)


Place = tuple[str, int, int, float]
"""File, first line, last line, and how likely the mistake is there."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A repair of a place."""

    place: Place
    repair: Repair

    def listed(self, blind: bool = False) -> list[Any]:
        """As the program in the sandbox takes it; blindly, how odd the code is comes first."""
        file, first, last, worth = self.place
        worth = 1 + worth / 100 if blind else worth
        repair = self.repair
        return [file, first, last, repair.start, repair.end, repair.text, round(repair.weight * worth, 4)]


@dataclass(frozen=True, slots=True)
class Tried:
    """A repair with which the visible tests pass.

    Attributes:
        candidate: the repair.
        share: share of the problem that is gone.
        value: likelihood of the repair before it was tried.
    """

    candidate: Candidate
    share: float
    value: float


@dataclass(slots=True)
class Searcher:
    """Plays one episode; see the module. It may also watch somebody else play, and be asked at any time.

    Args:
        action_format: format of its actions.
        turns: largest number of turns that it takes.
        attempts: largest number of commands that try repairs.
        seconds: seconds that a command may take, of which the programs use two thirds.
    """

    action_format: ActionFormat = "bash"
    turns: int = 50
    attempts: int = 4
    seconds: float = 60.0
    has_repaired: bool = False
    """Whether a repair has been kept."""
    problem: dict[str, Any] = field(default_factory=dict)
    """How well the problem was made to happen."""
    _plan: Plan | None = None
    _next: Call = field(default_factory=lambda: Call("submit"))
    _taken: int = 0
    _left: int = 0

    def observe(self, action: str | None, observation: str) -> None:
        """Read what was said: after an action, or at the beginning (`None`)."""
        if action is None:
            self._plan = self._search(observation)
            self._taken, self._left = 0, self.attempts
            self._next = next(self._plan, Call("submit"))
        elif self._plan is not None:
            is_ours = action == self.action()
            self._taken += 1
            if is_ours:
                try:
                    self._next = self._plan.send(observation)
                except StopIteration:
                    self._next = Call("submit")

    def action(self) -> str:
        """What to do next."""
        call = self._next if self._taken < self.turns - 1 else Call("submit")
        return render(call, self.action_format)

    def _search(self, statement: str) -> Plan:
        """What to do, from beginning to end; it is sent what each command printed."""
        body = _BODY.search(statement)
        stated = expectations(statement)
        if stated and all(one.outcome and one.outcome[0].startswith("NotImplementedError") for one in stated):
            yield Call("submit")  # Nobody can guess what has never been written.
            return
        yield _sending()
        asked = [[one.line, one.outcome] for one in stated if one.line]
        self.problem = _answer((yield self._asking("reproduce", {"expected": asked})))
        where = _answer((yield self._asking("locate", {"text": body[1] if body else statement})))
        named = set(_OPERATOR.findall(statement))
        raised = set(_RAISED.findall(statement))
        read: list[Candidate] = []
        best: Tried | None = None
        for batch in _batches(where):
            candidates = _candidates(batch, _texts((yield _reading(batch))), named, raised)
            read += candidates
            if self.problem.get("tests"):
                best = yield from self._attempt(candidates, best)
            if self._left < 2 or (best is not None and best.share == 1):
                break
        if best is None:
            odd = [one for one in read if one.repair.weight >= _ODD or one.place[-1] >= _NAMED]
            best = yield from self._attempt(odd, None, blind=True)
        if best is not None:
            answer = _answer((yield self._asking("keep", {"repair": best.candidate.listed()})))
            self.has_repaired = bool(answer.get("kept"))
        yield Call("submit")

    def _attempt(
        self, candidates: Sequence[Candidate], best: Tried | None, *, blind: bool = False
    ) -> Generator[Call, str, Tried | None]:
        """Try repairs, and return the best of all so far; blindly, only the visible tests decide."""
        skip = 0
        while skip < len(candidates) and self._left > (0 if blind else 1):  # The last one is for a blind try.
            self._left -= 1
            listed = [candidate.listed(blind) for candidate in candidates]
            request = {"repairs": listed, "skip": skip, "blind": blind}
            answer = _answer((yield self._asking("attempt", request)))
            for number, share, value in _rows(answer, "improvements", (int, float, float)):
                if 0 <= number < len(candidates) and (best is None or (share, value) > (best.share, best.value)):
                    best = Tried(candidates[number], share, value)
            done = answer.get("done")
            skip += done if isinstance(done, int) else 0
            if not isinstance(done, int) or done < 1 or (best is not None and best.share == 1):
                break
        return best

    def _asking(self, command: str, request: dict[str, Any]) -> Call:
        """Run one of the programs."""
        text = json.dumps({**request, "seconds": self.seconds * 2 / 3}).replace("`", "\\u0060")
        return _shell(f"(cd {_FOLDER} && python -m trial {command}) <<'END_OF_REQUEST'\n{text}\nEND_OF_REQUEST")


def _shell(command: str) -> Call:
    return Call("shell", {"command": command})


def _sending() -> Call:
    """Bring the programs into the sandbox."""
    parts = [f"mkdir -p {_FOLDER}/trial"]
    for name in _MODULES:
        text = files("textagent_gym.domains.swe.expert").joinpath("trial", f"{name}.py").read_text(encoding="utf-8")
        parts.append(f"cat > {_FOLDER}/trial/{name}.py <<'END_OF_FILE'\n{text}END_OF_FILE")
    return _shell("\n".join(parts))


def _answer(printed: str) -> dict[str, Any]:
    """What a program answered; nothing where it did not."""
    match = re.search(r"^ANSWER (\{.*\})$", printed, re.MULTILINE)
    try:
        answer = json.loads(match[1]) if match else {}
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _rows(answer: dict[str, Any], name: str, kinds: tuple[type, ...]) -> list[list[Any]]:
    """A table in an answer; what is not a row of these kinds is left out."""
    table = answer.get(name)
    rows = [row for row in table if isinstance(row, list) and len(row) == len(kinds)] if isinstance(table, list) else []
    return [row for row in rows if all(isinstance(value, kind | int) for value, kind in zip(row, kinds, strict=True))]


def _batches(answer: dict[str, Any]) -> list[list[Place]]:
    """Places that can be read together in one turn, most likely first."""
    batches: list[list[Place]] = [[]]
    room = _READ
    for file, first, last, size, worth in _rows(answer, "places", (str, int, int, int, float)):
        if size > _READ:
            continue
        if size + 100 > room:
            batches.append([])
            room = _READ
        batches[-1].append((str(file), first, last, worth))
        room -= size + 100
    return [batch for batch in batches if batch]


def _reading(batch: Sequence[Place]) -> Call:
    """Show the lines of some places."""
    parts = [
        f"echo '<<< {number}'; sed -n '{first},{last}p' \"$TESTBED\"/'{file}'; echo '>>>'"
        for number, (file, first, last, _) in enumerate(batch)
    ]
    return _shell("\n".join(parts))


def _texts(printed: str) -> dict[int, str]:
    """The lines of places by their number."""
    sections = re.findall(r"^<<< (\d+)\n(.*?\n)>>>$", printed, re.MULTILINE | re.DOTALL)
    return {int(number): text for number, text in sections if not is_cut(text)}


def _candidates(batch: Sequence[Place], read: dict[int, str], named: set[str], raised: set[str]) -> list[Candidate]:
    """What to try in some places; operators that the statement names and errors that should be caught come first."""
    candidates = []
    for number, place in enumerate(batch):
        code = read.get(number, "")
        for repair in repairs(code):
            is_named = code[repair.start : repair.end] in named
            is_caught = (
                bool(raised & set(re.findall(r"\w+", repair.text))) and "Error" in code[repair.start : repair.end]
            )
            weight = repair.weight + _ODD if is_named or is_caught else repair.weight
            candidates.append(Candidate(place, replace(repair, weight=weight)))
    return candidates
