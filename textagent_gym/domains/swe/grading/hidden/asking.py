"""Has the right and the mistaken code asked by probes, the mistaken one also as a forger could have it asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textagent_gym.domains.swe.grading.hidden.answers import Seen
from textagent_gym.domains.swe.grading.hidden.around import (
    AGAIN,
    AROUND,
    NEIGHBOURS,
    asked_again,
    looked_around,
    neighbours_asked,
)
from textagent_gym.domains.swe.grading.hidden.continued import continued
from textagent_gym.domains.swe.grading.hidden.edited import edit_rule, edited
from textagent_gym.domains.swe.grading.hidden.exam import ask_probes, read_answer
from textagent_gym.domains.swe.grading.hidden.siblings import SIBLINGS, has_siblings
from textagent_gym.domains.swe.grading.hidden.versions import Version
from textagent_gym.domains.swe.grading.pytest_runs import RUNNER
from textagent_gym.sandbox.base import Changes, Sandbox

_TOGETHER = 64  # Probes that are asked in one process.
_START = 10.0  # Seconds for a process to begin.
_EACH = 1.0  # Seconds for a probe.
_EACH_EDITED = 0.3  # The same for one whose input is edited, which may make the code wait.
_PATIENCE = 8.0  # How much longer a probe may take that is asked again since its time was up: the machine may be busy.
_HOPELESS = 3  # Probes of a kind whose time is up then too, after which no other of this kind is asked again.

_Events = Sequence[tuple[Any, ...]]


@dataclass(frozen=True)
class Trees:
    """The trees in which probes are asked.

    Attributes:
        layers: layers of the right code.
        mistakes: files of the mistaken code.
        paths: folders that are importable, below the root.
    """

    layers: tuple[Path, ...]
    mistakes: Changes
    paths: tuple[str, ...]


class Asker:
    """Asks probes.

    Args:
        sandboxes: two sandboxes to ask in.
        trees: trees with the right and with the mistaken code.
    """

    def __init__(self, sandboxes: tuple[Sandbox, Sandbox], trees: Trees) -> None:
        self._sandboxes = sandboxes
        self._trees = trees
        self._hopeless: Counter[tuple[bool, float]] = Counter()

    def ask(
        self, version: Version, texts: Sequence[str], *, right: bool, where: int = 0, each: float = _EACH
    ) -> list[Seen | None]:
        """What probes of one kind see, many in one process unless pytest has to run them.

        One whose time is up is asked again, and given more: else what is true of the code would depend on how busy the
        machine is.
        """
        answers = self._ask_once(version, texts, right=right, where=where, each=each)
        for number, seen in enumerate(answers):
            if _is_late(seen) and self._hopeless[right, each] < _HOPELESS:
                again = self._ask_once(version, [texts[number]], right=right, where=where, each=each * _PATIENCE)
                self._hopeless[right, each] += _is_late(again[0])
                answers[number] = again[0]
        return answers

    def _ask_once(
        self, version: Version, texts: Sequence[str], *, right: bool, where: int, each: float
    ) -> list[Seen | None]:
        size = 1 if version.fixtures else _TOGETHER
        parts = [texts[start : start + size] for start in range(0, len(texts), size)]
        limit = 0.0 if version.fixtures else each
        asked = [ask_probes(version, part, self._trees.paths, each * len(part) + _START, each=limit) for part in parts]
        files: Changes = {} if right else self._trees.mistakes
        answers = list(self._sandboxes[where].ask(self._trees.layers, files, program=RUNNER, questions=asked))
        seen: list[Seen | None] = []
        for part, answer in zip(parts, answers, strict=True):
            together = read_answer(answer)
            if len(together) == len(part):
                seen += together
            elif len(part) == 1:
                seen.append(None)
            else:  # One of them took all the time, or all together said more than an answer may hold.
                alone = (self._ask_once(version, [text], right=right, where=where, each=each) for text in part)
                seen += [one for (one,) in alone]
        return seen

    def run_otherwise(
        self,
        like: Version,
        texts: Sequence[str],
        right: Sequence[_Events],
        mistaken: Sequence[Seen],
        edits: Sequence[str],
    ) -> list[dict[str, Seen | None]]:
        """What the mistaken code makes a witness see where a forger has it run in another way.

        Args:
            like: version of the kind of all texts.
            texts: texts of probes.
            right: events of the right code, for each text.
            mistaken: record of the mistaken code, for each text.
            edits: names of the edits of the input that are tried.
        """
        others: list[dict[str, Seen | None]] = [{} for _ in texts]
        ended = [
            number
            for number, (mine, theirs) in enumerate(zip(right, mistaken, strict=True))
            if theirs.end != "passed" or [event[0] for event in mine] != [event[0] for event in theirs.events]
        ]
        if ended:
            behind = self.ask(like, [continued(texts[number]) for number in ended], right=False)
            for number, seen in zip(ended, behind, strict=True):
                others[number]["continued"] = seen
        rewritten = {
            AGAIN: [continued(asked_again(text)) for text in texts],
            AROUND: [continued(looked_around(text)) for text in texts],
            NEIGHBOURS: [continued(neighbours_asked(text)) for text in texts],
        }
        for number, sibling in enumerate(SIBLINGS if has_siblings(like) else ()):
            rewritten[f"sibling {number}"] = [text + sibling for text in texts]
        for name, changed in rewritten.items():
            for other, seen in zip(others, self.ask(like, changed, right=False), strict=True):
                other[name] = seen
        inputs = list(_edited(texts, edits))
        asked = [continued(text) for _, _, text in inputs]
        answers = self.ask(like, asked, right=False, each=_EACH_EDITED) if inputs else []
        for (number, name, _), seen in zip(inputs, answers, strict=True):
            others[number][edit_rule(name)] = seen
        return others


def _is_late(seen: Seen | None) -> bool:
    """The time was up, or nothing is said at all."""
    return seen is None or seen.end == "builtins.TimeoutError"


def _edited(texts: Sequence[str], edits: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """The texts of probes with edited input, each with its number and the name of the edit, where that changes it."""
    for number, text in enumerate(texts):
        for name in edits:
            changed = edited(text, name)
            if changed != text:
                yield number, name, changed
