"""The suites that exist: fixed, versioned lists of what an evaluation plays.

A suite that has been published never changes: what is to be measured otherwise gets a new version. Its digest, which
every result holds and `verify` compares, says so.
"""

from __future__ import annotations

import difflib
import re
from contextlib import closing
from dataclasses import replace
from typing import Any

from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation.episode import base_of
from textagent_gym.evaluation.suites import Part, Suite
from textagent_gym.registration import BABYAI_LEVELS, NAMESPACE
from textagent_gym.sources import seed_bytes


def _suite(name: str, summary: str, *parts: Part) -> Suite:
    """A suite, in the order in which it is written down."""
    return Suite(name=name, summary=summary, parts=parts)


def _textworld(name: str, rooms: int, objects: int, length: int, tasks: int = 50, **more: Any) -> Part:
    """Generated games of one size."""
    kwargs = {"rooms": rooms, "objects": objects, "quest_length": length, **more}
    return Part(name=name, env=f"{NAMESPACE}/TextWorld-v0", kwargs=kwargs, tasks=tasks)


def _alfworld(name: str, tasks: int = 100, **kwargs: Any) -> Part:
    """Generated rooms."""
    return Part(name=name, env=f"{NAMESPACE}/ALFWorld-v0", kwargs=kwargs, max_turns=50, tasks=tasks)


def _official(split: str, tasks: int) -> Part:
    """All games of an official split of ALFWorld."""
    return Part(name=split, env=f"{NAMESPACE}/ALFWorld-official-v0", split=split, max_turns=50, tasks=tasks)


def _textcraft(name: str, tasks: int = 100, **kwargs: Any) -> Part:
    """Recipe graphs."""
    return Part(name=name, env=f"{NAMESPACE}/TextCraft-v0", kwargs=kwargs, tasks=tasks)


def _minecraft(name: str, max_turns: int | str, **kwargs: Any) -> Part:
    """All goals of Minecraft's recipes that are held out."""
    return Part(name=name, env=f"{NAMESPACE}/TextCraft-minecraft-v0", kwargs=kwargs, max_turns=max_turns, tasks=137)


def _babyai(name: str, tasks: int = 100, **kwargs: Any) -> Part:
    """Levels of any size."""
    return Part(name=name, env=f"{NAMESPACE}/BabyAI-v0", kwargs=kwargs, tasks=tasks)


def _babyai_level(level: str, max_turns: int | str, tasks: int, **kwargs: Any) -> Part:
    """One of Minigrid's levels."""
    return Part(name=level, env=f"{NAMESPACE}/BabyAI-{level}-v0", kwargs=kwargs, max_turns=max_turns, tasks=tasks)


def _scienceworld(name: str, max_turns: int, tasks: int, **kwargs: Any) -> Part:
    """Tasks of ScienceWorld's test split, of all sorts in turn."""
    return Part(name=name, env=f"{NAMESPACE}/ScienceWorld-v0", kwargs=kwargs, max_turns=max_turns, tasks=tasks)


def _swe(name: str, tasks: int, **kwargs: Any) -> Part:
    """Packages to repair, with functions to call."""
    settings = {"packages": _PACKAGES, "tools": "edit", **kwargs}
    return Part(name=name, env=f"{NAMESPACE}/SWE-v0", kwargs=settings, max_turns=50, tasks=tasks)


_PACKAGES = [
    *("measures", "boltons", "cachetools", "inflection", "networkx", "schema"),
    *("sqlparse", "tabulate", "tinydb", "toolz", "voluptuous", "webcolors"),
]
_PACKAGES_OF_THREE = ["measures", "inflection", "sqlparse", "toolz"]
"""Packages with three independent mistakes in their test splits."""
_SHORT_SCIENCE = [
    *("boil", "melt", "freeze", "change-the-state-of-matter-of", "use-thermometer"),
    *("measure-melting-point-known-substance", "measure-melting-point-unknown-substance"),
    *("power-component", "power-component-renewable-vs-nonrenewable-energy"),
    *("test-conductivity", "test-conductivity-of-unknown-substances"),
    *("find-living-thing", "find-non-living-thing", "find-plant", "find-animal"),
    *("chemistry-mix", "chemistry-mix-paint-secondary-color", "chemistry-mix-paint-tertiary-color"),
    *("lifespan-longest-lived", "lifespan-shortest-lived", "lifespan-longest-lived-then-shortest-lived"),
    *("identify-life-stages-1", "identify-life-stages-2"),
]
"""Tasks that AgentGym serves: all but growing, inclined planes and genetics."""
_DENSITIES: dict[str, float | str] = {"sparse": "sparse", "half": 0.5, "dense": "dense"}
"""Reward densities by the names of their parts. What is observed is the same, and only what pays differs."""
_NO_CIRCUITS: dict[str, Any] = {
    "task_types": [
        *("use-thermometer", "measure-melting-point-unknown-substance"),
        *("find-living-thing", "find-non-living-thing", "find-plant", "find-animal"),
        *("chemistry-mix", "chemistry-mix-paint-secondary-color", "chemistry-mix-paint-tertiary-color"),
        *("lifespan-longest-lived", "lifespan-shortest-lived", "lifespan-longest-lived-then-shortest-lived"),
        "identify-life-stages-2",
    ],
    "solution_length": (1, 20),
}
"""Tasks that need no electricity, and along whose gold paths valid actions were counted."""
_COOKING = {"recipe": 3, "take": 3, "open": True, "cook": True, "cut": True}

_ALL = (
    _suite("textworld-quick-v1", "five small games of TextWorld", _textworld("w2-o3-q4", 2, 3, 4, tasks=5)),
    _suite(
        "textworld-core-v1",
        "TextWorld: generated games of three sizes, cooking, coins and treasures",
        _textworld("w2-o3-q4", 2, 3, 4),
        _textworld("w4-o6-q8", 4, 6, 8),
        _textworld("w8-o12-q12", 8, 12, 12),
        Part(name="cooking", env=f"{NAMESPACE}/TextWorldCooking-v0", kwargs={**_COOKING, "rooms": 6}),
        Part(name="coin-collector", env=f"{NAMESPACE}/TextWorldCoinCollector-v0", kwargs={"level": 10}),
        Part(name="treasure-hunter", env=f"{NAMESPACE}/TextWorldTreasureHunter-v0", kwargs={"level": 10}),
    ),
    _suite(
        "textworld-state-size-v1",
        "TextWorld with 2, 4 and 8 rooms, all else equal",
        *(_textworld(f"rooms-{rooms}", rooms, 6, 8) for rooms in (2, 4, 8)),
    ),
    _suite(
        "textworld-action-size-v1",
        "TextWorld with 3, 6 and 12 objects, all else equal",
        *(_textworld(f"objects-{objects}", 4, objects, 8) for objects in (3, 6, 12)),
    ),
    _suite(
        "textworld-solution-length-v1",
        "TextWorld with shortest solutions of 4, 8 and 12 actions, all else equal",
        *(_textworld(f"length-{length}", 4, 6, length) for length in (4, 8, 12)),
    ),
    _suite(
        "textworld-reward-density-v1",
        "TextWorld, the same games at three densities of rewards",
        *(_textworld(name, 4, 6, 8, tasks=40, reward_density=density) for name, density in _DENSITIES.items()),
    ),
    _suite(
        "textworld-harder-v1",
        "TextWorld, larger and longer than the presets that agents are trained on",
        _textworld("w12-o18-q16", 12, 18, 16),
        Part(
            name="cooking",
            env=f"{NAMESPACE}/TextWorldCooking-v0",
            kwargs={**_COOKING, "rooms": 12, "recipe": 5, "take": 5},
        ),
        Part(name="coin-collector", env=f"{NAMESPACE}/TextWorldCoinCollector-v0", kwargs={"level": 30}),
        Part(name="treasure-hunter", env=f"{NAMESPACE}/TextWorldTreasureHunter-v0", kwargs={"level": 25}),
    ),
    _suite(
        "textworld-sizes-v1",
        "TextWorld: five games of each size with an id of its own, and five of tw-simple",
        *(
            Part(name=f"w{rooms}-o{objects}-q{n}", env=f"{NAMESPACE}/TextWorld-w{rooms}-o{objects}-q{n}-v0", tasks=5)
            for rooms in (2, 4, 8)
            for objects in (3, 6, 12)
            for n in (4, 8, 12)
        ),
        Part(name="simple", env=f"{NAMESPACE}/TextWorldSimple-v0", tasks=5),
    ),
    _suite(
        "textworld-tiny-v1",
        "TextWorld as the tiny recipe trains it: a coin in the last of five rooms in a row",
        Part(
            name="coin-collector",
            env=f"{NAMESPACE}/TextWorldCoinCollector-v0",
            kwargs={"level": 5, "goal": "brief"},
            max_turns="1.5x",
            tasks=100,
        ),
    ),
    _suite("alfworld-quick-v1", "twenty generated rooms of ALFWorld", _alfworld("rooms", tasks=20)),
    _suite("alfworld-core-v1", "ALFWorld in generated rooms of the official size", _alfworld("rooms", tasks=200)),
    _suite(
        "alfworld-official-v1",
        "ALFWorld's official games, seen and unseen rooms (needs: textagent-gym data alfworld)",
        _official("valid_seen", 140),
        _official("valid_unseen", 134),
    ),
    _suite(
        "alfworld-official-seen-v1",
        "ALFWorld's official games in rooms that were seen in training (needs: textagent-gym data alfworld)",
        _official("valid_seen", 140),
    ),
    _suite(
        "alfworld-state-size-v1",
        "ALFWorld with 8, 15 and 30 receptacles, all else equal",
        *(_alfworld(f"receptacles-{count}", receptacles=count) for count in (8, 15, 30)),
    ),
    _suite(
        "alfworld-action-size-v1",
        "ALFWorld with 10, 25 and 50 objects, all else equal",
        *(_alfworld(f"objects-{count}", objects=count) for count in (10, 25, 50)),
    ),
    _suite(
        "alfworld-solution-length-v1",
        "ALFWorld with shortest solutions of 4, 6 and 8 actions, all else equal",
        *(_alfworld(f"length-{length}", solution_length=length) for length in (4, 6, 8)),
    ),
    _suite(
        "alfworld-reward-density-v1",
        "ALFWorld, the same rooms at three densities of rewards",
        *(_alfworld(name, tasks=40, reward_density=density) for name, density in _DENSITIES.items()),
    ),
    _suite(
        "alfworld-harder-v1",
        "ALFWorld, larger and longer than official games: large rooms, two objects, two goals",
        _alfworld("large", receptacles=40, objects=80),
        _alfworld("place-2", place=2),
        _alfworld("goals-2", goals=2),
    ),
    _suite("textcraft-quick-v2", "twenty recipe graphs of TextCraft", _textcraft("d2-r8", tasks=20)),
    _suite(
        "textcraft-core-v2",
        "TextCraft: recipe graphs of three sizes",
        _textcraft("d1-r4", depth=1, recipes=4),
        _textcraft("d2-r8", depth=2, recipes=8),
        _textcraft("d4-r16", depth=4, recipes=16),
    ),
    _suite(
        "textcraft-minecraft-v1",
        "TextCraft with Minecraft's recipes: every held-out goal, with four times the turns that it needs",
        _minecraft("goals", "4x"),
    ),
    _suite(
        "textcraft-agentgym-v1",
        "the same goals with AgentGym-RL's turn limits: 20 in its paper, 30 in its published script",
        _minecraft("turns-20", 20),
        _minecraft("turns-30", 30),
    ),
    _suite(
        "textcraft-agentgym-v2",
        "the same goals and turn limits, in AgentGym's own text",
        _minecraft("turns-20", 20, observation_format="upstream"),
        _minecraft("turns-30", 30, observation_format="upstream"),
    ),
    _suite(
        "textcraft-state-size-v2",
        "TextCraft with 6, 12 and 24 recipes in scope, all else equal",
        *(_textcraft(f"recipes-{count}", recipes=count, solution_length=6) for count in (6, 12, 24)),
    ),
    _suite(
        "textcraft-action-size-v2",
        "TextCraft with 12, 16 and 20 items in scope, all else equal",
        *(_textcraft(f"items-{count}", items=count, solution_length=6) for count in (12, 16, 20)),
    ),
    _suite(
        "textcraft-solution-length-v2",
        "TextCraft with shortest solutions of 4, 8 and 16 actions, all else equal",
        *(_textcraft(f"length-{n}", depth=3, recipes=12, solution_length=n) for n in (4, 8, 16)),
    ),
    _suite(
        "textcraft-reward-density-v1",
        "TextCraft, the same recipe graphs at three densities of rewards",
        *(_textcraft(name, 40, depth=4, recipes=16, reward_density=each) for name, each in _DENSITIES.items()),
    ),
    _suite(
        "textcraft-harder-v2",
        "TextCraft as deep as Minecraft and longer than nearly all its goals: more counts, leftovers and distractors",
        _textcraft("length-30", depth=4, recipes=30, solution_length=30),
        _textcraft("counts", depth=4, recipes=30, counts=(1, 4), yields=(1, 4), solution_length=40),
    ),
    _suite(
        "textcraft-tiny-v2",
        "TextCraft as the tiny recipe trains it: one recipe with one ingredient or two, and new names in every task",
        Part(
            name="one-recipe",
            env=f"{NAMESPACE}/TextCraft-v0",
            kwargs={"depth": 1, "recipes": 1, "branching": [1, 2]},
            max_turns=5,
            tasks=100,
        ),
    ),
    _suite("babyai-quick-v1", "twenty levels of BabyAI with two rooms", _babyai("r1-c2", tasks=20)),
    _suite(
        "babyai-tiny-v1",
        "BabyAI as the tiny recipe trains it: one room, four objects, one of which is to be found",
        Part(
            name="one-room",
            env=f"{NAMESPACE}/BabyAI-v0",
            kwargs={"columns": 1, "room_size": 6, "objects": 4, "kinds": "goto"},
            max_turns=6,
            tasks=100,
        ),
    ),
    _suite(
        "babyai-core-v2",
        "BabyAI: one room, four rooms, and a sequence in four rooms",
        _babyai("one-room", columns=1, room_size=8),
        _babyai("four-rooms", rows=2, objects=8),
        _babyai("sequence", rows=2, objects=8, clauses=2, kinds=("goto", "pickup", "open")),
    ),
    _suite(
        "babyai-agentgym-v1",
        "AgentGym's forty levels of BabyAI with the turn limit of AgentGym-RL: 20",
        *(_babyai_level(level, 20, tasks=3) for level in BABYAI_LEVELS),
    ),
    _suite(
        "babyai-agentgym-v2",
        "the same levels and turn limit, in AgentGym's own sentences",
        *(_babyai_level(level, 20, tasks=3, observation_format="upstream") for level in BABYAI_LEVELS),
    ),
    _suite(
        "babyai-state-size-v1",
        "BabyAI with 4, 8 and 16 objects, all else equal",
        *(_babyai(f"objects-{count}", objects=count, room_size=8, solution_length=4) for count in (4, 8, 16)),
    ),
    _suite(
        "babyai-action-size-v1",
        "BabyAI with views of 3, 5 and 7 cells, in which fewer or more things can be named, all else equal",
        *(
            _babyai(f"view-{n}", 50, columns=1, room_size=8, objects=8, solution_length=3, view_size=n)
            for n in (3, 5, 7)
        ),
    ),
    _suite(
        "babyai-solution-length-v2",
        "BabyAI with shortest solutions of 2, 4 and 6 actions, all else equal",
        *(_babyai(f"length-{n}", rows=2, objects=8, solution_length=n) for n in (2, 4, 6)),
    ),
    _suite(
        "babyai-reward-density-v1",
        "BabyAI, the same sequences of three clauses in two rooms at three densities of rewards",
        *(
            _babyai(name, 40, clauses=3, kinds=("goto", "pickup", "open"), reward_density=density)
            for name, density in _DENSITIES.items()
        ),
    ),
    _suite(
        "babyai-harder-v1",
        "BabyAI, larger and longer than the core: six rooms, and sequences of three clauses",
        _babyai("six-rooms", tasks=20, rows=2, columns=3, objects=12),
        _babyai("sequence", tasks=20, rows=2, columns=3, objects=12, clauses=2, kinds=("goto", "pickup", "open")),
        _babyai("three-clauses", tasks=20, rows=2, objects=12, clauses=3, kinds=("goto", "pickup", "open")),
    ),
    _suite("scienceworld-quick-v1", "one variation of each task of ScienceWorld", _scienceworld("tasks", 200, 30)),
    _suite(
        "scienceworld-core-v1",
        "ScienceWorld: ten variations of each task of the test split, or as many as there are",
        _scienceworld("tasks", 200, 271, variations=10),
    ),
    _suite(
        "scienceworld-agentgym-v1",
        "ScienceWorld with AgentGym-RL's turn limits: 20 in its paper, 30 in training; the tasks it serves",
        *(_scienceworld(f"turns-{n}", n, 201, task_types=_SHORT_SCIENCE, variations=10) for n in (20, 30)),
    ),
    _suite(
        "scienceworld-state-size-v1",
        "ScienceWorld with 399 to 408, 411 to 426 and 435 to 471 objects, all else as equal as its tasks allow",
        *(
            _scienceworld(f"objects-{most}", 100, 15, state_size=(least, most), solution_length=(1, 60))
            for least, most in ((399, 408), (411, 426), (435, 471))
        ),
    ),
    _suite(
        "scienceworld-action-size-v1",
        "ScienceWorld without and with the actions of electricity, the same tasks, all else equal",
        _scienceworld("no-electricity", 50, 20, **_NO_CIRCUITS, simplifications="noElectricalAction"),
        _scienceworld("all-actions", 50, 20, **_NO_CIRCUITS),
    ),
    _suite(
        "scienceworld-solution-length-v1",
        "ScienceWorld with gold paths of up to 15, 40 and 193 actions, all else as equal as its tasks allow",
        *(
            _scienceworld(f"length-{most}", 200, 15, solution_length=(least, most), state_size=(399, 430))
            for least, most in ((1, 15), (20, 40), (80, 193))
        ),
    ),
    _suite(
        "scienceworld-reward-density-v1",
        "ScienceWorld, the same tasks at three densities of rewards",
        *(
            _scienceworld(name, 50, 15, solution_length=(1, 20), reward_density=density)
            for name, density in _DENSITIES.items()
        ),
    ),
    _suite(
        "scienceworld-harder-v1",
        "ScienceWorld's longest tasks: gold paths of 100 to 193 actions",
        _scienceworld("length-193", 300, 24, solution_length=(100, 193)),
    ),
    _suite(
        "scienceworld-tiny-v1",
        "ScienceWorld as the tiny recipe trains it: find the animal that lives longest, or shortest, in easy worlds",
        _scienceworld(
            "life-spans",
            8,
            64,
            task_types=["lifespan-longest-lived", "lifespan-shortest-lived"],
            simplifications="easy",
        ),
    ),
    _suite(
        "swe-quick-v1",
        "five mistakes to repair in a package that needs no download",
        _swe("measures", 5, packages=["measures"]),
    ),
    _suite(
        "swe-core-v2",
        "twelve packages with one and with two mistakes to repair",
        _swe("mutants-1", 32),
        _swe("mutants-2", 21, mutants=2),
    ),
    _suite(
        "swe-state-size-v1",
        "packages of up to 1,000, 4,000 and 20,000 lines of code, with one mistake to repair",
        _swe("lines-1000", 12, lines=(0, 1_000)),
        _swe("lines-4000", 12, lines=(1_001, 4_000)),
        _swe("lines-20000", 7, lines=(4_001, 20_000)),
    ),
    _suite(
        "swe-action-size-v1",
        "the same mistakes to repair with an editor, with a shell, and with both",
        *(_swe(f"tools-{tools}", 12, lines=(0, 1_000), tools=tools) for tools in ("edit", "shell", "all")),
    ),
    _suite(
        "swe-shell-v1",
        "the core's packages with one mistake to repair, in a shell",
        _swe("mutants-1", 32, tools="shell"),
    ),
    _suite(
        "swe-solution-length-v1",
        "one, two and three mistakes to repair in the same four packages",
        _swe("mutants-1", 17, packages=_PACKAGES_OF_THREE),
        _swe("mutants-2", 14, packages=_PACKAGES_OF_THREE, mutants=2),
        _swe("mutants-3", 11, packages=_PACKAGES_OF_THREE, mutants=3),
    ),
    _suite(
        "swe-reward-density-v1",
        "the same packages with two mistakes to repair at three densities of rewards",
        *(_swe(name, 12, mutants=2, reward_density=density) for name, density in _DENSITIES.items()),
    ),
    _suite(
        "swe-harder-v1",
        "two, three and four mistakes to repair in packages of 3,500 to 20,000 lines of code",
        _swe("mutants-2", 8, lines=(3_500, 20_000), mutants=2),
        _swe("mutants-3", 7, lines=(3_500, 20_000), mutants=3),
        _swe("mutants-4", 3, lines=(3_500, 20_000), mutants=4),
    ),
)

SUITES: dict[str, Suite] = {suite.name: suite for suite in _ALL}
"""Every suite, by name."""


_CHALLENGE = re.compile(r"(?P<suite>[a-z0-9-]+)@(?P<commitment>[0-9a-f]{64}):(?P<seed>[0-9a-f]{32})")


def suite_of(name: str) -> Suite:
    """The suite of a name; SUITE@COMMITMENT:SEED is that of a challenge (see `trust`).

    Raises:
        InvalidOptionError: there is no such suite; the message names the closest.
    """
    challenge = _CHALLENGE.fullmatch(name)
    if challenge is not None:
        return _drawn(suite_of(challenge["suite"]), challenge["commitment"], challenge["seed"])
    if name not in SUITES:
        close = difflib.get_close_matches(name[:100], SUITES, n=3, cutoff=0.3)
        hint = f" Did you mean: {', '.join(close)}?" if close else ""
        raise InvalidOptionError(f"suite {name!r:.100} does not exist.{hint} See: textagent-gym suites")
    return SUITES[name]


def check_endless(suite: Suite) -> None:
    """Refuse a suite whose tasks are all known.

    Raises:
        InvalidOptionError: a split ends, or the suite is that of a challenge already.
    """
    if suite.name not in SUITES:
        raise InvalidOptionError(
            f"suite {suite.name!r:.100} is that of a challenge; name the one that it was drawn from"
        )
    for part in suite.parts:
        with closing(part.make()) as env:
            base = base_of(env)
            if base.tasks.size(base.split) is not None:
                raise InvalidOptionError(
                    f"part {part.name} of {suite.name} has a split that ends, so everybody knows its tasks; "
                    "a challenge needs generated tasks without end"
                )


def _drawn(suite: Suite, commitment: str, seed: str) -> Suite:
    """A suite with the settings of another one, and with tasks and seeds that follow from a challenge."""
    name = f"{suite.name}@{commitment}:{seed}"
    parts = []
    for part in suite.parts:
        drawn = seed_bytes("challenge", commitment, seed, part.name)
        parts.append(replace(part, first=int.from_bytes(drawn[:4]) // 2, seed=int.from_bytes(drawn[4:8])))
    return Suite(name=name, summary=f"{suite.summary}, as a challenge", parts=tuple(parts))
