"""From a spec and a seed to a TextWorld game that is as difficult as was asked.

TextWorld draws a chain of actions of the length asked for, but the shortest solution of the game that comes out can be
much shorter. Here a chain is grown whose shortest solution has that length (see `quests`). Logic comes first and text
second, because the search takes milliseconds and text does not; only the game that is kept is compiled, which takes the
most.
"""

from __future__ import annotations

import hashlib
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Any

from textagent_gym.complexity import Complexity
from textagent_gym.domains.textworld.logic import GameLogic
from textagent_gym.domains.textworld.planner import Planner, Solution
from textagent_gym.domains.textworld.quests import QuestShape, grow_quests
from textagent_gym.domains.textworld.quick import quick_upstream
from textagent_gym.domains.textworld.specs import (
    GUIDE_SPLIT,
    CoinCollectorSpec,
    CookingSpec,
    CustomSpec,
    SimpleSpec,
    Spec,
    TreasureHunterSpec,
)
from textagent_gym.errors import (
    GenerationError,
    InfeasibleDifficultyError,
    MissingDependencyError,
    PlanningBudgetError,
)
from textagent_gym.sources import seed_bytes
from textagent_gym.tasks import in_split

VERSION = 1
"""Raised whenever the same task id would give another game."""

GUIDE_GAMES = 100

_GROWTHS = 12  # Worlds in which quests are grown before a request counts as infeasible.
_TEXTS = 64  # Draws of the text of one world, until it belongs to the split.

_lock = RLock()  # TextWorld's generator uses global state.


@dataclass(frozen=True, slots=True)
class BuiltGame:
    """A game that was kept, compiled.

    Attributes:
        story: the `.z8` file's bytes, the same on every machine.
        logic: facts that hold, and actions that can be done.
        solution: a shortest way to win.
        complexity: measured difficulty.
        objective: the goal as TextWorld words it, every step told.
        brief: the goal without the way to it, in one sentence.
        content: hash of the world and the goal, equal for games that differ in their descriptions at most.
    """

    story: bytes
    logic: GameLogic
    solution: Solution
    complexity: Complexity
    objective: str
    brief: str
    content: str


def build(spec: Spec, split: str, index: int) -> BuiltGame:
    """The `index`-th game of a split of what `spec` asks for.

    Raises:
        InfeasibleDifficultyError: no game of that difficulty was found.
        GenerationError: Inform 7 did not compile the game.
        MissingDependencyError: TextWorld is not installed.
    """
    with _lock, _quiet(), quick_upstream():
        if split == GUIDE_SPLIT:
            return _compile(_guide_game(spec, index + 1))
        if isinstance(spec, CustomSpec):
            return _compile(_custom_game(spec, split, index))
        return _compile(_challenge_game(spec, split, index))


def textworld() -> Any:
    """The `textworld` package.

    Raises:
        MissingDependencyError: it is not installed.
    """
    try:
        import textworld as package
        import textworld.challenges
        import textworld.generator
    except ImportError as error:
        raise MissingDependencyError("textworld", "textworld") from error
    return package


@contextmanager
def _quiet() -> Iterator[None]:
    """TextWorld warns of what it has always done."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _seed(*parts: object) -> int:
    """A seed for TextWorld, which takes 0 to 65,634 four times over; here one number that it draws those from."""
    return int.from_bytes(seed_bytes(VERSION, *parts)[:4], "big") % (2**31)


def _options(spec: Spec, seed: int) -> Any:
    tw = textworld()
    options = tw.GameOptions()
    options.seeds = seed
    if isinstance(spec, CustomSpec):
        options.kb = tw.generator.data.KnowledgeBase.default()
        options.nb_rooms, options.nb_objects = spec.rooms, spec.objects
        options.nb_parallel_quests = spec.parallel_quests
        grammar = options.grammar
        grammar.theme = spec.theme
        grammar.include_adj = spec.include_adj
        grammar.blend_descriptions = spec.blend_descriptions
        grammar.only_last_action = spec.only_last_action
        grammar.blend_instructions = spec.blend_instructions
        grammar.allowed_variables_numbering = spec.entity_numbering
    return options


def _custom_game(spec: CustomSpec, split: str, index: int) -> Any:
    """Draw worlds until quests as long as asked are found in one, then draw their text."""
    tw = textworld()
    for attempt in range(_GROWTHS):
        options = _options(spec, _seed(spec.slug, split, index, attempt))
        rngs = options.rngs
        world = tw.generator.make_world(spec.rooms, nb_objects=0, rngs=rngs)
        shape = QuestShape(
            length=spec.quest_length,
            breadth=spec.quest_breadth,
            depth=spec.quest_depth,
            parallel=spec.parallel_quests,
            # Quests bring no more objects than were asked for, if there are some that do not.
            objects=spec.objects if attempt < _GROWTHS // 2 else None,
        )
        quests = grow_quests(world, options.kb, rngs["quest"], shape)
        if quests is None:
            continue
        _populate(world, spec.objects, rngs["objects"])
        for text in range(_TEXTS):
            rng = tw.generator.RandomState(_seed(spec.slug, split, index, attempt, text))
            grammar = tw.generator.make_grammar(options.grammar, rng=rng)
            game = tw.generator.Game(world, grammar, quests)
            if in_split(_content(game), split):
                return game
    raise InfeasibleDifficultyError(
        f"quest_length={spec.quest_length} was not reached with rooms={spec.rooms} and objects={spec.objects} in "
        f"{_GROWTHS} draws. Ask for a shorter quest, fewer sub-quests, or more rooms."
    )


def _populate(world: Any, objects: int, rng: Any) -> None:
    """Add things that the quest does not need until there are as many as asked for."""
    there = sum(1 for entity in world.entities if entity.type not in {"r", "d", "I", "P"})
    if objects > there:
        world.populate(objects - there, rng=rng)


def _challenge_game(spec: Spec, split: str, index: int) -> Any:
    for attempt in range(_TEXTS):
        game = _challenge(spec, _seed(spec.slug, split, index, attempt))
        if in_split(_content(game), split):
            return game
    raise InfeasibleDifficultyError(
        f"{spec.slug} has too few different games to keep {split!r} apart from the other splits; choose another split"
    )


def _challenge(spec: Spec, seed: int) -> Any:
    """A game of one of TextWorld's challenges, as `tw-make` makes it."""
    from textworld.challenges import CHALLENGES

    settings: dict[str, Any]
    if isinstance(spec, SimpleSpec):
        settings = {"rewards": spec.rewards, "goal": "detailed", "test": spec.test}
    elif isinstance(spec, CookingSpec):
        settings = {
            **{name: getattr(spec, name) for name in ("recipe", "take", "open", "cook", "cut", "drop", "recipe_seed")},
            "go": spec.rooms,
            "split": spec.foods,
        }
    elif isinstance(spec, CoinCollectorSpec | TreasureHunterSpec):
        settings = {"level": spec.level}
    else:
        raise TypeError(f"{spec.kind} is no challenge")
    return CHALLENGES[f"tw-{spec.kind}"][1](settings=settings, options=_options(spec, seed))


def _guide_game(spec: Spec, seed: int) -> Any:
    """The game that `tw-make` makes with this seed and its own defaults, as it is."""
    if not isinstance(spec, CustomSpec):
        return _challenge(spec, seed)
    options = _options(spec, seed)
    options.chaining.min_length = options.chaining.max_length = options.chaining.max_depth = spec.quest_length
    options.chaining.max_breadth = 5  # tw-make's default.
    if spec.quest_breadth > 1:
        options.chaining.min_breadth = options.chaining.max_breadth = spec.quest_breadth
    return textworld().generator.make_game(options)


def _content(game: Any) -> str:
    """What decides which split a game belongs to: facts, names and goal."""
    names = {name: info.name for name, info in game.infos.items()}
    facts = sorted(
        " ".join((fact.name, *(names.get(v.name) or v.name for v in fact.arguments))) for fact in game.world.facts
    )
    goals = sorted(
        " ".join((fact.name, *(names.get(v.name) or v.name for v in fact.arguments)))
        for quest in game.quests
        for event in quest.win_events
        for fact in event.condition.preconditions
    )
    return "\n".join((*facts, "", *goals))


def content_hash(game: Any) -> str:
    """Hash of what decides which split a game belongs to."""
    return hashlib.sha256(_content(game).encode()).hexdigest()


def _compile(game: Any) -> BuiltGame:
    """Compile with Inform 7, measure, and write down the goal."""
    from textworld.generator.inform7 import CouldNotCompileGameError, compile_inform7_game, generate_inform7_source

    for quest in game.quests:  # Some challenges keep these in sets, whose order changes from process to process.
        quest.fail_events = sorted(quest.fail_events, key=lambda event: sorted(map(str, event.condition.preconditions)))
    logic, solution, complexity, brief = describe(game)
    if solution is None:
        raise GenerationError("TextWorld made a game for which no way to win was found.")
    with tempfile.TemporaryDirectory(prefix="textworld-") as folder:
        story = Path(folder, "game.z8")
        try:
            compile_inform7_game(generate_inform7_source(game), str(story))
        except CouldNotCompileGameError as error:
            raise GenerationError(f"Inform 7 could not compile the game: {error}") from error
        compiled = bytearray(story.read_bytes())
    compiled[0x12:0x18] = b"000000"  # The Z-machine header's serial number is the day of compilation.
    return BuiltGame(bytes(compiled), logic, solution, complexity, game.objective, brief, content_hash(game))


def describe(game: Any) -> tuple[GameLogic, Solution | None, Complexity, str]:
    """The logic of a `textworld` game, a shortest solution, the measured complexity, and the goal in one sentence.

    The solution is `None` where none was found within the planner's budget, or none exists.
    """
    logic = GameLogic.from_game(game)
    try:
        solution = Planner(logic).solve_initial()
    except PlanningBudgetError:
        solution = None
    state, admissible = logic.initial, []
    for action in solution.actions if solution else ():
        admissible.append(len(logic.commands(state)))
        state = logic.apply(state, action)
    complexity = Complexity(
        state_size=logic.entities,
        action_size=sum(admissible) / len(admissible) if admissible else None,
        solution_length=len(solution.actions) if solution else None,
        exact=solution is not None and solution.exact,
    )
    return logic, solution, complexity, _brief(game)


_BRIEF = {
    "in": ("the {0}", "in the {1}"),
    "on": ("the {0}", "on the {1}"),
    "at": ("the {0}", "in the {1}"),
    "open": ("the {0}", "open"),
    "closed": ("the {0}", "closed"),
    "locked": ("the {0}", "locked"),
    "eaten": ("the {0}", "eaten"),
    "consumed": ("the {0}", "eaten"),
}


def _brief(game: Any) -> str:
    """The goal without the way to it, in one sentence, from the quests that must be completed.

    A quest is completed once its condition has held after a turn, whether or not it still holds later. Where there are
    several they need never hold together, and the sentence says so.
    """
    names = {name: info.name or name for name, info in game.infos.items()}
    wishes: list[tuple[str, str]] = []
    for quest in game.quests:
        if quest.optional or not quest.win_events:
            continue
        event = quest.win_events[0]
        # The last action's own effect is the goal; what it only needed (being in the room, say) is not.
        facts = event.actions[-1].added if event.actions else event.condition.preconditions
        unlocked = (
            {fact.arguments for fact in event.actions[-1].removed if fact.name == "locked"} if event.actions else set()
        )
        for fact in sorted(facts, key=str):
            arguments = [names.get(variable.name, variable.name) for variable in fact.arguments]
            if fact.name == "in" and fact.arguments[-1].type == "I":
                wish = ("you", f"carrying the {arguments[0]}")
            elif fact.name == "at" and fact.arguments[0].type == "P":
                wish = ("you", f"in the {arguments[1]}")
            elif fact.name == "closed" and fact.arguments in unlocked:
                wish = (f"the {arguments[0]}", "unlocked")
            elif fact.name in _BRIEF:
                thing, state = _BRIEF[fact.name]
                wish = (thing.format(*arguments), state.format(*arguments))
            else:
                continue
            if wish not in wishes:
                wishes.append(wish)
    if not wishes:
        return "Your goal: win the game."
    if sum(1 for quest in game.quests if not quest.optional and quest.win_events) == 1:
        return f"Your goal: {' and '.join(f'{thing} must be {state}' for thing, state in wishes)}."
    once = ", ".join(f"{thing} {'have' if thing == 'you' else 'has'} been {state}" for thing, state in wishes)
    return f"Your goal is reached when each of these has come about at some time, in whatever order: {once}."
