"""Five slow steps of TextWorld's generator, done quickly with the same result, and two that fail, mended.

Each game of a challenge parses the challenge's rules and grammars again, and compiles a first version only to play the
walkthrough on it and learn which actions complete which quest. Here the rules are parsed once per process, and the
walkthrough is played on TextWorld's own `GameProgression`. The search for a quest checks every constraint on every fact
at every step, which takes minutes in a large world; here only constraints that a new fact could break are looked at.
A world finds out what its facts mean after each room that is filled; here once. Whether part of a quest's actions could
be left out is asked with a copy of all facts for each part; here with the facts that its actions mention.
The games that come out are the same to the last letter. Joining the steps of a goal (`blend_instructions`) ends in a
`KeyError` where an action is not tied to a room; here such an action is not joined with its neighbours. Joining the
doors of a room in one sentence (`blend_descriptions`) ends in an `AttributeError`, because the function that lists them
is handed the things' descriptions in place of the game that holds them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

_knowledge: dict[Any, Any] = {}


@contextmanager
def patched_upstream() -> Iterator[None]:
    """Within it, TextWorld makes the games of its challenges several times as fast.

    It may be nested, but not be used by two threads at once.
    """
    from textworld.generator import chaining, text_generation
    from textworld.generator.data import KnowledgeBase
    from textworld.generator.maker import GameMaker
    from textworld.logic import State

    if GameMaker.set_walkthrough is _set_walkthrough:
        yield
        return
    chainer, is_sequence, list_names = (
        chaining._Chainer,
        text_generation.is_seq,
        text_generation.obj_list_to_prop_string,
    )
    applicable = State.is_sequence_applicable
    load, set_walkthrough = KnowledgeBase.__dict__["load"], GameMaker.set_walkthrough

    def load_once(*arguments: Any, **keywords: Any) -> Any:
        key = (arguments, tuple(sorted(keywords.items())))
        if key not in _knowledge:
            _knowledge[key] = load.__get__(None, KnowledgeBase)(*arguments, **keywords)
        return _knowledge[key]

    def is_sequence_or_not(actions: Any, game: Any) -> Any:
        try:
            return is_sequence(actions, game)
        except KeyError:
            return False, text_generation.MergeAction()

    def list_names_of(objs: Any, property: str, game: Any, *arguments: Any, **keywords: Any) -> Any:
        holder = game if hasattr(game, "infos") else SimpleNamespace(infos=game)
        return list_names(objs, property, holder, *arguments, **keywords)

    KnowledgeBase.load = staticmethod(load_once)
    text_generation.obj_list_to_prop_string = list_names_of
    text_generation.is_seq = is_sequence_or_not
    GameMaker.set_walkthrough = _set_walkthrough
    chaining._Chainer = _quick_chainer(chainer)
    State.is_sequence_applicable = _is_sequence_applicable
    try:
        yield
    finally:
        KnowledgeBase.load = load
        GameMaker.set_walkthrough = set_walkthrough
        chaining._Chainer = chainer
        State.is_sequence_applicable = applicable
        text_generation.is_seq = is_sequence
        text_generation.obj_list_to_prop_string = list_names


def _is_sequence_applicable(state: Any, actions: Any) -> bool:
    """`State.is_sequence_applicable` without a copy of all facts, which takes most of the time."""
    changed: dict[Any, bool] = {}
    for action in actions:
        if len(set(action.preconditions)) < len(action.preconditions):
            return False
        for fact in action.preconditions:
            holds = changed.get(fact)
            if not (fact in state.facts_with_signature(fact.signature) if holds is None else holds):
                return False
        changed.update(dict.fromkeys(action.preconditions, False))
        changed.update(dict.fromkeys(action.postconditions, True))
    return True


def _quick_chainer(chainer: Any) -> Any:
    """TextWorld's search for a quest, looking at the constraints of new facts only."""

    class QuickChainer(chainer):  # type: ignore[misc]
        _before: Any = None

        def apply(self, node: Any, action: Any) -> Any:
            self._before = node.state  # It respects the constraints, as every state before it.
            return super().apply(node, action)

        def check_state(self, state: Any) -> bool:
            types = state._logic.types
            for fact in [fact for fact in state.facts if not self._before.is_fact(fact)]:
                for constraint in self.constraints:
                    for predicate in constraint.preconditions:
                        if predicate.name == fact.name and len(predicate.parameters) == len(fact.arguments):
                            mapping = _bind(predicate, fact, types)
                            if mapping is not None and any(True for _ in state.all_assignments(constraint, mapping)):
                                return False
            return True

    return QuickChainer


def quick_world() -> Any:
    """TextWorld's `World`, which finds out what its facts mean once they are all there, not after each room."""
    from textworld.generator.world import World

    class QuickWorld(World):  # type: ignore[misc]
        _sorted: list[Any] | None = None
        _is_filled = True

        @property
        def facts(self) -> list[Any]:
            if self._sorted is None:
                self._sorted = sorted(
                    self._state.facts,
                    key=lambda fact: (fact.name, [(variable.name, variable.type) for variable in fact.arguments]),
                )
            return self._sorted

        def add_facts(self, facts: list[Any]) -> None:
            self._sorted = None
            self._state.add_facts(facts)
            if self._is_filled:
                self._update()

        def populate(self, *arguments: Any, **keywords: Any) -> Any:
            self._is_filled = False
            try:
                return super().populate(*arguments, **keywords)
            finally:
                self._is_filled = True
                self._update()

    return QuickWorld


def _bind(predicate: Any, fact: Any, types: Any) -> dict[Any, Any] | None:
    """The predicate's placeholders bound to the fact's arguments, or `None` if they do not fit."""
    mapping: dict[Any, Any] = {}
    for placeholder, variable in zip(predicate.parameters, fact.arguments, strict=True):
        if mapping.get(placeholder, variable) != variable:
            return None
        if placeholder not in mapping and variable in mapping.values():
            return None  # Different placeholders always stand for different entities.
        if not types.get(variable.type).is_subtype_of(types.get(placeholder.type)):
            return None
        mapping[placeholder] = variable
    return mapping


def _set_walkthrough(maker: Any, commands: list[str]) -> None:
    """`GameMaker.set_walkthrough` without a compiled game: which actions complete which event of the maker's quests."""
    from textworld.generator.game import GameProgression
    from textworld.generator.inform7 import Inform7Game

    game = maker.build()
    inform7, progression = Inform7Game(game), GameProgression(game)
    originals = [event for quest in maker.quests for event in quest.win_events]
    followed = [event for quest in progression.quest_progressions for event in quest.win_events]
    actions: list[Any] = []
    last: Any = None
    for number, command in enumerate(commands, start=1):
        before = [event.triggered for event in followed]
        valid = progression.valid_actions
        named = dict(zip(inform7.gen_commands_from_actions(valid), valid, strict=True))
        if command in named:
            last = named[command]
            progression.update(last)
        # A command without effect repeats the last action in TextWorld's records; some games' texts depend on it.
        actions.append(last)
        for original, event, was_triggered in zip(originals, followed, before, strict=True):
            if event.triggered and not was_triggered:
                original.actions = list(actions)
                original.commands = commands[:number]
