"""A small world that keeps every promise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from textagent_gym import Complexity, Outcome, Task, TextEnv
from textagent_gym.knobs import Options, OptionsClass, knob
from textagent_gym.sources import GeneratedTasks
from textagent_gym.tasks import in_split

LETTERS = "abcdefghijklmnopqrst"


@dataclass(frozen=True, kw_only=True)
class WordOptions(Options):
    """What can be asked of this world."""

    length: int = knob(5, "number of letters", low=1, high=20, short="n", always=True, axis="solution_length")


class Words(GeneratedTasks[WordOptions, str]):
    """Words without end."""

    prefix = "Spelling"
    version = 1

    def _make(self, split: str, index: int) -> str:
        random = Random(f"{self.spec.length}/{split}/{index}")
        return next(word for word in iter(lambda: self._draw(random), "") if in_split(word, split))

    def _draw(self, random: Random) -> str:
        return "".join(random.choice(LETTERS) for _ in range(self.spec.length))

    def _measure(self, world: str) -> tuple[Complexity, int, str]:
        size = len(world)
        measured = Complexity(state_size=size, action_size=float(len(LETTERS)), solution_length=size, exact=True)
        return measured, size, ""


class SpellingEnv(TextEnv[Task]):
    """Spell a word; the world says which letter is next, in capitals."""

    source: type[Words] = Words
    default_max_turns = 30

    def __init__(self, length: int = 5, **kwargs: Any) -> None:
        self._source = self.source(WordOptions(length=length))
        super().__init__(self._source, **kwargs)
        self._spelt = 0

    @classmethod
    def declared_options(cls, given: Mapping[str, Any]) -> tuple[OptionsClass, ...]:
        return (WordOptions,)

    @property
    def word(self) -> str:
        return self._source.world(self.task)

    def _begin(self, task: Task) -> str:
        self._spelt = 0
        return (
            f"Spell a word of {len(self._source.world(task))} letters that begins with {self._source.world(task)[0]}."
        )

    def _act(self, action: str) -> Outcome:
        if action != f"write {self.word[self._spelt]}":
            return Outcome(f"No. {self._say()}", self._spelt, valid=False)
        self._spelt += 1
        return Outcome(self._say(), self._spelt, success=self._spelt == len(self.word))

    def _say(self) -> str:
        return "Done." if self._spelt == len(self.word) else f"Next comes {self.word[self._spelt]}."

    def _admissible_actions(self) -> tuple[str, ...]:
        return tuple(f"write {letter}" for letter in LETTERS)

    def _oracle(self) -> tuple[str, ...]:
        return tuple(f"write {letter}" for letter in self.word[self._spelt :])

    def _snapshot(self) -> object:
        return self._spelt

    def _restore(self, world: Any) -> None:
        self._spelt = world
