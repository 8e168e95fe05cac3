"""Shortest solutions against Fast Downward, an optimal planner that reads TextWorld's own rules as PDDL."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from textagent_gym.domains.textworld.generation import draw, draw_as_made, measure
from textagent_gym.domains.textworld.specs import Spec, make_spec

# Beside the environment, not in it: its translator and TextWorld's have the same name.
HOME = Path(sys.prefix, "fast-downward")
PLANNER = HOME / "up_fast_downward" / "downward" / "builds" / "release" / "bin" / "downward"
pytestmark = pytest.mark.skipif(not PLANNER.is_file(), reason=f"needs: pip install --target {HOME} up-fast-downward")

SPECS = [
    make_spec("custom", rooms=2, objects=3, quest_length=4),
    make_spec("custom", rooms=4, objects=6, quest_length=8),
    make_spec("custom", rooms=3, objects=6, quest_length=6, parallel_quests=2),
    make_spec("custom", rooms=8, objects=12, quest_length=12),
    make_spec("treasure_hunter", level=8),
    make_spec("coin_collector", level=8),
    make_spec("cooking", recipe=3, take=2, drop=True),
    make_spec("cooking", recipe=2, take=2, rooms=6, drop=True, open=True),
    make_spec("cooking", recipe=3, take=3, rooms=6, drop=True),
]


def to_pddl(game: Any) -> tuple[str, str]:
    """Domain and problem of a game, from its knowledge base, its world and its quests.

    Different variables of a rule always stand for different things; that is TextWorld's convention. A quest is an
    action without cost, because it is completed once its facts have held together, whatever becomes of them later.
    """

    from textworld.logic import Variable

    def name(text: str) -> str:
        return re.sub(r"[^a-z0-9]", "_", text.lower())

    def predicate(of: Any, terms: Sequence[Any]) -> str:
        return f"{name(of.name)}_{len(terms)}"  # Doors and hands are both "free".

    def fact(of: Any, terms: dict[Any, str]) -> str:
        return f"({' '.join((predicate(of, of.arguments), *(terms[term] for term in of.arguments)))})"

    types = game.kb.logic.types
    entities = {thing: "e_" + name(thing.name) for fact in game.world.facts for thing in fact.arguments}
    entities[Variable("I", "I")] = "e_i"  # The inventory, of which no fact need speak in the beginning.
    arities: dict[str, int] = {}
    actions = []
    ingredients = sum(one.name.startswith("ingredient_") for one in game.world.facts)
    for rule_name, rule in game.kb.rules.items():
        if rule_name.startswith("make/recipe/") and rule_name != f"make/recipe/{ingredients}":
            continue  # The compiled game asks for all ingredients; with fewer, the rules alone would allow it too.
        terms = {term: f"?v{i}" for i, term in enumerate(rule.placeholders)}

        def of(one: Any, terms: dict[Any, str] = terms) -> str:
            arities[predicate(one, one.parameters)] = len(one.parameters)
            return f"({' '.join((predicate(one, one.parameters), *(terms[term] for term in one.parameters)))})"

        needs = [of(one) for one in rule.preconditions]
        after = [of(one) for one in rule.postconditions]
        kinds = [f"(is_{name(term.type)} {terms[term]})" for term in rule.placeholders]
        apart = [f"(not (= {a} {b}))" for a, b in combinations(terms.values(), 2)]
        effects = [text for text in after if text not in needs]
        effects += [f"(not {text})" for text in needs if text not in after]
        actions.append(
            f"(:action {name(rule_name)} :parameters ({' '.join(terms.values())})\n"
            f"  :precondition (and {' '.join((*kinds, *apart, *needs))})\n"
            f"  :effect (and {' '.join(effects)} (increase (total-cost) 1)))"
        )
    completed = []
    for number, quest in enumerate(game.quests):
        if quest.optional or not quest.win_events:
            continue
        completed.append(f"(completed{number})")
        for way, event in enumerate(quest.win_events):
            wanted = " ".join(fact(one, entities) for one in event.condition.preconditions)
            actions.append(
                f"(:action complete{number}_{way} :parameters ()\n"
                f"  :precondition (and {wanted})\n  :effect (and (completed{number})))"
            )
    predicates = [f"({n} {' '.join(f'?a{i}' for i in range(arity))})" for n, arity in arities.items()]
    predicates += [f"(is_{name(kind.name)} ?a)" for kind in types] + completed
    facts = [fact(one, entities) for one in game.world.facts if predicate(one, one.arguments) in arities]
    for variable, constant in entities.items():
        kind = types.get(variable.type)
        facts += [f"(is_{name(each.name)} {constant})" for each in (kind, *kind.ancestors)]
    head = "(:requirements :strips :equality :negative-preconditions :action-costs)"
    domain = f"(define (domain game)\n{head}\n(:constants {' '.join(entities.values())})\n"
    domain += f"(:predicates {' '.join(predicates)})\n(:functions (total-cost) - number)\n{chr(10).join(actions)})\n"
    problem = f"(define (problem one) (:domain game)\n(:init (= (total-cost) 0) {' '.join(facts)})\n"
    problem += f"(:goal (and {' '.join(completed)}))\n(:metric minimize (total-cost)))\n"
    return domain, problem


def optimal_length(game: Any, folder: Path) -> int:
    """Number of actions of Fast Downward's optimal plan."""
    for text, file in zip(to_pddl(game), ("domain.pddl", "problem.pddl"), strict=True):
        (folder / file).write_text(text)
    translate = [sys.executable, "-S", "-m", "fast_downward.translate", "domain.pddl", "problem.pddl"]
    search = [str(PLANNER), "--search", "astar(lmcut())", "--internal-plan-file", "plan"]
    environment = {**os.environ, "PYTHONPATH": str(HOME)}
    subprocess.run(translate, cwd=folder, env=environment, capture_output=True, check=True, timeout=300)
    with open(folder / "output.sas", "rb") as task:
        subprocess.run(search, cwd=folder, stdin=task, capture_output=True, check=True, timeout=300)
    plan = (folder / "plan").read_text().splitlines()
    return sum(1 for line in plan if not line.startswith((";", "(complete")))


@pytest.mark.slow
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.slug)
def test_fast_downward_finds_no_shorter_solution(spec: Spec, tmp_path: Path) -> None:
    for index in range(3):
        game = draw(spec, "train", index) if spec.kind == "custom" else draw_as_made(spec, index)
        measured = measure(game)
        assert measured.solution is not None
        assert measured.complexity.exact
        assert len(measured.solution.actions) == optimal_length(game, tmp_path)
