"""Quests are the ones that TextWorld's own search and the planner would give, found faster."""

from __future__ import annotations

import random
from itertools import islice
from typing import Any

import numpy as np
import pytest

from textagent_gym.domains.textworld.generation import draw, lengths, quests, textworld_generator
from textagent_gym.domains.textworld.generation.backchaining import Chainer, Facts, Step
from textagent_gym.domains.textworld.generation.backward_rules import GOALS, RESTRICTED, rules_of
from textagent_gym.domains.textworld.generation.draw import content_of
from textagent_gym.domains.textworld.generation.patterns import fill
from textagent_gym.domains.textworld.generation.upstream_patches import quick_world
from textagent_gym.domains.textworld.specs import make_spec

textworld = pytest.importorskip("textworld")


def empty_world(seed: int, rooms: int) -> Any:
    options = textworld.GameOptions()
    options.seeds = seed
    return textworld.generator.make_world(rooms, nb_objects=0, rngs=options.rngs)


def shown(step: Any) -> tuple[str, list[tuple[str, ...]], int, int, int]:
    """A step of TextWorld's search."""
    facts = sorted((fact.name, *fact.names) for fact in step.action.preconditions)
    return step.action.name, facts, step.depth, step.breadth, step.length


def shown_here(step: Step) -> tuple[str, list[tuple[str, ...]], int, int, int]:
    """The same of ours."""
    assert step.rule is not None
    return step.name, sorted(fill(step.rule.pattern.needs, step.entities)), step.depth, step.breadth, step.length


@pytest.mark.parametrize("seed", range(8))
def test_steps_back_are_textworlds_own_in_its_own_order(seed: int) -> None:
    from textworld.generator import chaining
    from textworld.generator.data import KnowledgeBase

    choices = random.Random(seed)
    rooms, length, breadth = choices.choice([1, 3, 8, 12]), choices.choice([6, 12]), choices.choice([1, 2, 3])
    kb, world = KnowledgeBase.default(), empty_world(seed, rooms)
    options = chaining.ChainingOptions()
    options.kb, options.rng = kb, np.random.RandomState(seed)
    options.backward = options.create_variables = True
    options.restricted_types = set(RESTRICTED)
    options.rules_per_depth = [kb.rules.get_matching(GOALS[0], exclude=list(GOALS[1]))]
    options.max_length = options.max_depth = length
    options.max_breadth = breadth
    upstream = chaining._Chainer(world.state, options)
    facts, rng = Facts(rules_of(kb), world.state.facts), np.random.RandomState(seed)
    ours = Chainer(rules_of(kb), facts, rng, max_length=length, max_depth=length, max_breadth=breadth)
    theirs, here = upstream.root(), ours.root(facts.mask(facts.start))
    compared = 0
    while True:
        backtracks, most = choices.random() < 0.3 and theirs.length, choices.choice([1, 3, 100])
        expected = list(islice((upstream.backtrack if backtracks else upstream.chain)(theirs), most))
        steps = list(islice((ours.backtrack if backtracks else ours.chain)(here), most))
        assert [shown_here(step) for step in steps] == [shown(step) for step in expected]
        assert [set(facts.propositions(step.state)) for step in steps] == [set(step.state.facts) for step in expected]
        assert [facts.action(step) for step in steps] == [step.action.inverse() for step in expected]
        assert rng.randint(2**31) == options.rng.randint(2**31)
        compared += len(steps)
        if not steps:
            break
        number = choices.randrange(len(steps))
        theirs, here = expected[number], steps[number]
    assert compared


def test_a_step_is_taken_where_the_planner_finds_nothing_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bool] = []
    quick = quests._Search._is_longer

    def both(search: quests._Search, step: Step) -> bool:
        longer = quick(search, step)
        assert longer == (search._planned(step) == search.length + step.length)
        compared.append(longer)
        return longer

    monkeypatch.setattr(quests._Search, "_is_longer", both)
    for knobs in ({"quest_length": 12}, {"quest_breadth": 2}, {"parallel_quests": 2}):
        draw(make_spec("custom", **{"rooms": 4, "objects": 6, "quest_length": 8, **knobs}), "train", 0)
    assert True in compared
    assert False in compared


def test_what_takes_long_is_left_to_the_planner(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = make_spec("custom", rooms=4, objects=6, quest_length=8)
    expected = content_of(draw(spec, "train", 0))
    planned: list[int | None] = []
    plan = quests._Search._planned

    def noted(search: quests._Search, step: Step) -> int | None:
        planned.append(plan(search, step))
        return planned[-1]

    monkeypatch.setattr(lengths, "_STATES", 0)
    monkeypatch.setattr(quests._Search, "_planned", noted)
    assert content_of(draw(spec, "train", 0)) == expected
    assert planned


def test_actions_that_only_undo_others_are_the_same_as_the_search_finds() -> None:
    with textworld_generator():
        from textworld.generator.data import KnowledgeBase

        found = lengths.forward_rules(rules_of(KnowledgeBase.default())).undoing
    assert found == {"drop", "put", "insert", "close/c", "close/d", "lock/c", "lock/d"}


@pytest.mark.parametrize("seed", range(3))
def test_worlds_are_filled_as_textworld_fills_them(seed: int) -> None:
    expected = empty_world(seed, 6)
    expected.populate(12, rng=np.random.RandomState(seed))
    options = textworld.GameOptions()
    options.seeds = seed
    world = quick_world().from_map(textworld.generator.make_map(6, rng=options.rngs["map"]))
    world.set_player_room()
    world.populate(12, rng=np.random.RandomState(seed))

    def described(one: Any) -> list[object]:
        held = [(entity.id, entity.related_facts, [held.id for held in entity.content]) for entity in one.entities]
        exits = [[(way, there.id) for way, there in room.exits.items()] for room in one.rooms]
        return [one.facts, held, exits, [thing.id for thing in one.objects], one.player_room.id]

    assert described(world) == described(expected)


def test_a_sequence_of_actions_can_be_done_as_textworld_says() -> None:
    from textworld.logic import State

    upstream, answers = State.is_sequence_applicable, set()
    game = draw(make_spec("custom", rooms=3, objects=6, quest_length=8), "train", 0)
    actions, choices = [action for quest in game.quests for action in quest.win_events[0].actions], random.Random(1)
    for _ in range(300):
        first, last = sorted(choices.choices(range(len(actions) + 1), k=2))
        some = actions[:first] + actions[last:] if choices.random() < 0.5 else choices.sample(actions, 3)
        with textworld_generator():
            answer = game.world.state.is_sequence_applicable(some)
        assert answer == upstream(game.world.state, some)
        answers.add(answer)
    assert answers == {True, False}
