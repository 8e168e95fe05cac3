"""Shortest plans, against plans by others."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from textagent_gym.domains.alfworld.data import OfficialGames
from textagent_gym.domains.alfworld.engine import State, bits
from textagent_gym.domains.alfworld.game import TASK_TYPES, Game, read_game
from textagent_gym.domains.alfworld.planner import lower_bound, solve
from textagent_gym.domains.alfworld.tasks import official_type

HOME = Path(sys.prefix, "fast-downward")
PLANNER = HOME / "up_fast_downward" / "downward" / "builds" / "release" / "bin" / "downward"


@pytest.mark.parametrize("split", ["valid_seen", "valid_train"])
def test_plans_win_and_are_never_longer_than_the_walkthrough(games: OfficialGames, split: str) -> None:
    for game_id in games.ids(split):
        start = State(read_game(games.read(game_id), game_id))
        plan = solve(start)
        assert plan is not None
        assert len(plan.commands) <= len(start.game.walkthrough or ())
        state = start.copy()
        for left, command in zip(range(len(plan.commands), 0, -1), plan.commands, strict=True):
            assert not state.won
            if left % 3 == 0:  # From anywhere on the way the rest is as long as it was.
                rest = solve(state)
                assert rest is not None
                assert len(rest.commands) == left
            assert state.step(command) is not None
        assert state.won


def test_a_plan_is_found_after_any_detour(games: OfficialGames) -> None:
    for number, game_id in enumerate(games.ids("valid_seen")[::5]):
        state = State(read_game(games.read(game_id), game_id))
        distance = len(solve(state).commands)  # type: ignore[union-attr]
        for step in range(12):
            possible = [command for command in state.commands() if not command.startswith("go to")]
            if step % 3 == 0:
                possible = list(state.commands())
            state.step(possible[(7 * number + 5 * step) % len(possible)])
            plan = solve(state)
            assert plan is not None
            # One action changes the distance by one, unless it cannot be undone by another.
            assert abs(len(plan.commands) - distance) <= 2
            distance = len(plan.commands)
            if state.won:
                assert distance == 0


def test_hardly_more_states_than_actions_prove_a_plan_to_be_shortest(games: OfficialGames) -> None:
    actions, bounds = 0, 0
    for game_id in games.ids("valid_seen")[::7]:
        state = State(read_game(games.read(game_id), game_id))
        plan = solve(state)
        assert plan is not None
        proven = solve(state, budget=len(plan.commands) + 2)
        assert proven is not None
        assert proven.exact
        bound = lower_bound(state)
        assert bound is not None
        assert len(plan.commands) - 1 <= bound <= len(plan.commands)
        actions, bounds = actions + len(plan.commands), bounds + bound
    assert bounds > 0.95 * actions


def test_what_cannot_be_taken_counts_where_it_lies(games: OfficialGames) -> None:
    two = (game_id for game_id in games.ids("valid_seen") if official_type(game_id) == "two")
    game = next(game for game_id in two for game in [read_game(games.read(game_id), game_id)] if many_places(game))
    (goal,) = game.goals
    fixed, other = list(bits(goal.objects))[:2]
    last = goal.receptacles[-1]
    contents = [objects & ~(1 << fixed) for objects in game.contents]
    around = [objects & ~(1 << fixed) for objects in game.around]
    contents[last] |= 1 << fixed
    around[game.places[last]] |= 1 << fixed
    able = {**game.able, "pickup": game.able["pickup"] & ~(1 << fixed)}
    pair = replace(goal, objects=1 << fixed | 1 << other)
    state = State(replace(game, contents=tuple(contents), around=tuple(around), able=able, goals=(pair,)))
    plan = solve(state)
    assert plan is not None
    for command in plan.commands:
        assert not state.won
        assert state.step(command) is not None
    assert state.won


def many_places(game: Game) -> bool:
    return all(len(goal.receptacles) > 1 for goal in game.goals)


def only_what_costs_a_turn(domain: str, problem: str) -> tuple[str, str]:
    """The game's own PDDL with every action at a cost of 1, without the actions that only tell something.

    A goal `(exists ...)` becomes an action of its own for each conjunct, whose price is subtracted in the end: the
    planner's heuristic knows no derived predicates.
    """
    domain = re.sub(r";[^\n]*", "", domain)
    for name in ("look", "inventory", "examineReceptacle", "examineObject", "CloseObject", "help", "SliceObject"):
        start = domain.index(f"(:action {name}\n")
        domain = domain[:start] + domain[_end(domain, start) :]
    domain = re.sub(r"\(increase \(total-cost\) \d+\)", "", domain)
    domain = domain.replace("(distance ?from ?to)", "")
    domain = domain.replace("(receptacleType ?r SinkType)", "")  # No problem declares such a type.
    domain = re.sub(
        r"\(when \(isOn \?o\)\s*\(not \(isOn \?o\)\)\)\s*\(when \(not \(isOn \?o\)\)\s*\(isOn \?o\)\)", "", domain
    )
    body, goal = problem[: problem.rindex("(:goal")], problem[problem.rindex("(:goal") :]
    variables = " ".join(f"{term} - {kind}" for term, kind in re.findall(r"(\?\w+) - (\w+)", goal))
    literals = re.findall(r"\(not \(= [^()]*\)\)|\((?!and|exists|:goal|=|\?)[^()]*\)", goal)
    literals = [literal for literal in literals if " - " not in literal]
    # All conjuncts hold at once, so one action can ask for them together.
    finish = (
        f"(:action finish :parameters ({variables})\n :precondition (and {' '.join(literals)})\n :effect (finished))\n"
    )
    # The newer translator wants what actions name to be declared as constants.
    kinds = re.compile(r"\n\s*(\w+Type - [or]type)")
    constants = f"(:constants {' '.join(kinds.findall(body))})\n (:predicates (finished)"
    domain = domain.replace("(:predicates", constants, 1)
    return domain[: domain.rindex(")")] + finish + ")", f"{kinds.sub('', body)}\n(:goal (finished)))\n"


def _end(text: str, start: int) -> int:
    depth = 0
    for position in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if not depth:
            return position + 1
    raise ValueError("unbalanced")


@pytest.mark.slow
@pytest.mark.skipif(not PLANNER.is_file(), reason=f"needs: pip install --target {HOME} up-fast-downward")
@pytest.mark.parametrize("name", TASK_TYPES.values())
def test_fast_downward_finds_no_shorter_plan(games: OfficialGames, name: str, tmp_path: Path) -> None:
    of_type = [game_id for game_id in games.ids("valid_seen") if official_type(game_id) == name]
    for game_id in of_type[:3]:
        content = games.read(game_id)
        for text, file in zip(
            only_what_costs_a_turn(content["pddl_domain"], content["pddl_problem"]), ("d.pddl", "p.pddl"), strict=True
        ):
            (tmp_path / file).write_text(text)
        environment = {**os.environ, "PYTHONPATH": str(HOME)}
        translate = [sys.executable, "-S", "-m", "fast_downward.translate", "d.pddl", "p.pddl"]
        subprocess.run(translate, cwd=tmp_path, env=environment, capture_output=True, check=True, timeout=300)
        search = [str(PLANNER), "--search", "astar(lmcut())", "--internal-plan-file", "plan"]
        with open(tmp_path / "output.sas", "rb") as task:
            subprocess.run(search, cwd=tmp_path, stdin=task, capture_output=True, check=True, timeout=300)
        actions = [
            line for line in (tmp_path / "plan").read_text().splitlines() if not line.startswith((";", "(finish"))
        ]
        plan = solve(State(read_game(content, game_id)))
        assert plan is not None
        assert len(plan.commands) == len(actions), actions
