"""Observations in three formats; AgentGym's are compared with its own code where that is."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.babyai_env import upstream_class
from tests.domains.babyai.minigrid_levels import begin, play_beside, seen_by_minigrid
from textagent_gym.domains.babyai import agentgym_answers
from textagent_gym.domains.babyai.commands import admissible, macro_command, named_things, normalize
from textagent_gym.domains.babyai.grid import State, view
from textagent_gym.domains.babyai.levels import LEVELS, GridSpec, LevelSpec
from textagent_gym.domains.babyai.texts import describe

PLACE = re.compile(r"(\w+(?: \w+)? \w+ \d+), (?:(\d+) ahead)? ?(?:(\d+) (left|right))?")
BALROG = (
    re.compile(r"You carry a (\w+) (\w+)"),
    re.compile(r"a wall (\d+) steps? (forward|left|right)"),
    re.compile(
        r"a (?:(open|closed|locked) )?(\w+) (\w+) "
        r"(?=\d)(?:(\d+) steps? (left|right))?(?:(?: and )?(\d+) steps? forward)?"
    ),
)
"""What is carried, a wall, and a thing; the last two with where they are."""


def test_the_concise_format_tells_everything_that_is_seen() -> None:
    spec = GridSpec(rows=2, columns=2, objects=14)
    for seed in range(4):
        level, state = begin(spec, seed)
        for _ in play_beside(level, state, random.Random(seed), 40):
            seen = {place: cell for place, cell in seen_by_minigrid(level).items() if cell[0] not in ("wall", "empty")}
            told = {}
            for name, ahead, side, hand in PLACE.findall(describe(state, 7, "concise")):
                words = name.split()
                told[int(side or 0) * (-1 if hand == "left" else 1), int(ahead or 0)] = (words[-2], words[0])
            assert told == {place: (kind, color) for place, (kind, color, _) in seen.items()}


def test_names_are_numbered_from_the_nearest_and_each_is_its_own() -> None:
    for seed in range(5):
        _, state = begin(LevelSpec(level="SynthLoc"), seed)
        named = named_things(state, view(state, 7))
        assert len({each.name for each in named}) == len(named)
        distances = [abs(each.seen.right) + each.seen.ahead for each in named]
        assert distances == sorted(distances)


def test_balrogs_format_in_a_room_known_by_heart() -> None:
    _, state = begin(GridSpec(columns=1, room_size=6, objects=1, kinds=("pickup",)), 1)
    room = state.copy()
    room.cells = [-2 if x in (0, 5) or y in (0, 5) else -1 for y in range(6) for x in range(6)]
    room.cells[2 * 6 + 3] = 0
    room.places = [2 * 6 + 3]
    room.agent, room.direction = 3 * 6 + 2, 3  # Second column, third row, looking up.
    thing = room.world.things[0]
    assert describe(room, 7, "balrog").splitlines() == [
        "a wall 3 steps forward",
        "a wall 2 steps left",
        "a wall 3 steps right",
        f"a {thing.color} {thing.kind} 1 step right and 1 step forward",
    ]
    assert describe(room, 7, "concise") == (
        f"You see: {thing.color} {thing.kind} 1, 1 ahead 1 right. Wall 3 ahead. You carry: nothing."
    )
    assert describe(room, 7, "agentgym") == (
        "In front of you in this room, you can see several objects: "
        f"There is a {thing.color} {thing.kind} 1 1 steps in front of you and 1 steps to your right.  "
        "The room has walls around you. You are facing a wall 3 steps away. You are not carrying anything."
    )


@pytest.mark.parametrize("level", LEVELS)
def test_balrogs_lines_tell_what_minigrid_shows(level: str) -> None:
    states = {"open": 0, "closed": 1, "locked": 2}
    env, state = begin(LevelSpec(level=level, actions="primitive"), 0)
    for _ in play_beside(env, state, random.Random(level), 40):
        shown = seen_by_minigrid(env)
        carried, things, walls = None, {}, {}
        for line in describe(state, 7, "balrog").splitlines():
            carries, wall, thing = (pattern.fullmatch(line) for pattern in BALROG)
            if carries:
                carried = (carries[2], carries[1])
            elif wall:
                walls[wall[2]] = int(wall[1])
            else:
                assert thing is not None, line
                side, ahead = int(thing[4] or 0) * (-1 if thing[5] == "left" else 1), int(thing[6] or 0)
                assert (side, ahead) not in things
                things[side, ahead] = (thing[3], thing[2], states.get(thing[1], 0))
        assert things == {place: cell for place, cell in shown.items() if cell[0] not in ("wall", "empty")}
        assert carried == (env.carrying and (env.carrying.type, env.carrying.color))
        for direction, (right, ahead), reach in (("forward", (0, 1), 6), ("left", (-1, 0), 3), ("right", (1, 0), 3)):
            ray = [shown.get((right * n, ahead * n), ("empty", "", 0))[0] for n in range(1, reach + 1)]
            first = next((n for n, kind in enumerate(ray, start=1) if kind != "empty"), None)
            assert walls.get(direction) == (first if first and ray[first - 1] == "wall" else None)


def test_walks_end_where_they_say() -> None:
    walked = 0
    for seed in range(6):
        _, state = begin(GridSpec(rows=2, columns=2, objects=10), seed)
        for text, actions in admissible(state, 7).items():
            if text.startswith("go to "):
                target = next(each for each in named_things(state, view(state, 7)) if each.name == text[6:])
                after = state.copy()
                for action in actions:
                    after.step(action)
                assert after.front == target.seen.cell
                walked += 1
    assert walked > 10


def moments_beside_agentgym(level: str, folder: Path, seeds: int) -> Iterator[tuple[State, Any, tuple[Any, ...]]]:
    """The moments of random walks: the state here, AgentGym's environment, and what that makes of what is seen."""
    upstream = upstream_class(folder)
    for seed in range(seeds):
        env, state = begin(LevelSpec(level=level, actions="primitive"), seed)
        theirs = object.__new__(upstream)
        theirs.env = env
        for _ in play_beside(env, state, random.Random(seed), 40):
            yield state, theirs, theirs.postprocess_obs(env.gen_obs())


@pytest.mark.parametrize("level", LEVELS)
def test_the_sentences_are_agentgyms(level: str, upstream_folder: Path) -> None:
    for state, _, seen in moments_beside_agentgym(level, upstream_folder, 4):
        assert describe(state, 7, "agentgym") == seen[0]


@pytest.mark.parametrize("level", LEVELS)
def test_what_both_refuse_is_refused_as_agentgym_does(level: str, upstream_folder: Path) -> None:
    for state, theirs, seen in moments_beside_agentgym(level, upstream_folder, 3):
        theirs.action_space = seen[1]
        names = {each.name for each in named_things(state, view(state, 7))}
        renumbered = len({name.rpartition(" ")[0] for name in names}) < len(names)  # They count what they reach.
        for text, said in theirs.error_message.items():
            refused = macro_command(state, normalize(text), 7).refusal
            counted = "{" in said  # Their number, in this one message, is the table of all numbers.
            if refused and not counted and not (renumbered and "no path" in said):
                assert agentgym_answers.refusal(state, normalize(text), 7) == said
