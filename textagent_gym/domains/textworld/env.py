"""TextWorld as a Gymnasium environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, TypeVar, Unpack

from textagent_gym.core import Outcome, TextEnv
from textagent_gym.domains.textworld.specs import SPECS, FilesSpec, TellingOptions, TextWorldOptions, make_spec
from textagent_gym.domains.textworld.tasks import FileTasks, TextWorldTasks
from textagent_gym.domains.textworld.zmachine import ZMachine, plain, plain_opening, playable, upstream_feedback
from textagent_gym.errors import PlanningBudgetError, UnsupportedOperationError
from textagent_gym.knobs import OptionsClass, accepts, arguments_of
from textagent_gym.options import TextEnvKwargs
from textagent_gym.planning import Plan
from textagent_gym.tasks import Task

_Part = TypeVar("_Part")
_INSTRUCTIONS = """\
You play a text adventure: each turn, type one short command.

go north (south, east, west): walk through an exit or an open door
look, inventory, examine THING: describe the room, what you carry, or a thing
open THING, close THING: a door or a container
unlock THING with KEY, lock THING with KEY: with the key in your hands
take THING, take THING from HOLDER, drop THING
put THING on SUPPORTER, insert THING into CONTAINER: what you carry
eat THING: it is gone afterwards"""
_COOKING = """
cook FOOD with STOVE, OVEN or BBQ: fries, roasts or grills it; twice burns it
slice FOOD with KNIFE, chop FOOD with KNIFE, dice FOOD with KNIFE
prepare meal: in the kitchen, with all ingredients ready in your hands"""
_NOT_PLAYED = "xyzzy"  # Sent in place of what must not reach the story: a verb that no story knows.


@dataclass(frozen=True, slots=True)
class _World:
    """A saved moment: the interpreter's state, the facts that hold, and a distance that the goal is at least away."""

    machine: Any
    facts: Any
    at_least: float


class TextWorldEnv(TextEnv[Task]):
    """# TextWorld

    ## Description
    A text adventure in a generated house: rooms joined by doors, containers that may be locked, things to carry. The
    agent is told a goal, such as putting the milk on the stove, and types commands until it is reached. Every game is
    generated and compiled by Microsoft's TextWorld (Côté et al., 2018, arXiv 1806.11532); its text is the original's.
    What an agent is asked for is what it gets: a custom game whose shortest solution is not as long as asked for is
    never served. Shortest solutions are found by search; `complexity.exact` and `plan().exact` say whether one is
    proven, which cooking games with several ingredients and limited hands can be too large for.

    ## Actions
    | command | effect |
    | --- | --- |
    | `go north` (south, east, west) | walk through an exit or an open door |
    | `look`, `inventory`, `examine THING` | describe the room, what is carried, a thing |
    | `open THING`, `close THING` | a door or a container |
    | `unlock THING with KEY`, `lock THING with KEY` | a door or a container |
    | `take THING`, `take THING from HOLDER`, `drop THING` | pick up, put down |
    | `put THING on SUPPORTER`, `insert THING into CONTAINER` | place what is carried |
    | `eat THING` | food disappears; eating what the goal needs loses the game |

    Cooking games add `cook`, `slice`, `chop`, `dice` and `prepare meal`. Synonyms that the game's parser knows work as
    well. Any other string costs a turn and gets the game's own reply; commands about the program, such as *restart*,
    *quit* or *save*, are strings like any other.

    ## Observations
    The goal and the first room at reset, then the game's reply to each command, as a person would read it.

        You take the type J keycard from the mantle.

    ## Rewards
    Each action of the shortest solution is a milestone: the k-th is reached when the goal is k actions nearer than at
    the start, by whatever path. `reward_density` says which of them pay. The planner is only asked where a turn may
    have reached a milestone, or where `infos` or `shaping` want a plan.

    ## Difficulty
    | knob | values | axis |
    | --- | --- | --- |
    | `rooms` | 1 to 100 | more to explore; `state_size` is measured |
    | `objects` | 1 to 200 | more to do; `action_size` is measured |
    | `quest_length` | 1 to 60 | `solution_length`, exactly |

    These are the knobs of `game="custom"`; the other kinds of games have their own, see
    `textagent_gym.domains.textworld.specs` or `textagent-gym info`.

    ## Registered ids
    `textagent/TextWorld-v0` takes every argument. `textagent/TextWorld-wW-oO-qQ-v0` are the sizes of arXiv 2510.01132:
    W rooms (2, 4 or 8), O objects (3, 6 or 12) and a shortest solution of Q actions (4, 8 or 12). Upstream's own
    challenges are `textagent/TextWorldSimple-v0`, `textagent/TextWorldCooking-v0`,
    `textagent/TextWorldCoinCollector-v0` and `textagent/TextWorldTreasureHunter-v0`.

    ## Tasks
    Splits have no end, and each game of them is compiled once (about a second) and kept; `num_tasks=1000` plays the
    first thousand and no others, which is what most training runs want.

    Args:
        options: knobs of the game, `game` and `goal` (see `textagent_gym.domains.textworld.specs`), and the arguments
            of `TextEnv`.

    Raises:
        InvalidOptionError: an argument has a name or value that does not exist.
        InfeasibleDifficultyError: no such game exists.
    """

    idle_actions: ClassVar[tuple[str, ...]] = ("examine ", "look", "inventory")
    default_max_turns: ClassVar[int | str] = "4x"

    @accepts(TellingOptions, *SPECS.values())
    def __init__(self, **options: Unpack[TextWorldOptions]) -> None:
        telling = TellingOptions.of(options)
        spec = make_spec(telling.game, **{name: value for name, value in options.items() if name != "game"})
        self._games = FileTasks(spec) if isinstance(spec, FilesSpec) else TextWorldTasks(spec)
        super().__init__(self._games, **arguments_of(TextEnvKwargs, options))
        self.goal = telling.goal
        self._may_cook = telling.game in ("cooking", "simple", "files")
        self._machine = ZMachine()
        self._facts: Any = None
        self._at_least = 0.0

    @classmethod
    def declared_options(cls, given: Mapping[str, Any]) -> tuple[OptionsClass, ...]:
        """Classes that declare the knobs of the `game` that is asked for."""
        telling = TellingOptions.of(given)
        return SPECS[telling.game], TellingOptions

    @property
    def instructions(self) -> str:
        """See `TextEnv`."""
        return _INSTRUCTIONS + (_COOKING if self._may_cook else "")

    def _begin(self, task: Task) -> str:
        self._game = self._games.world(task)
        raw = self._machine.start(str(self._game.story), trace=self._game.logic is not None)
        self._facts = self._game.logic.initial if self._game.logic else None
        self._at_least = 0.0
        return self._word_goal(upstream_feedback(raw) if self.observation_format == "upstream" else plain_opening(raw))

    def _word_goal(self, text: str) -> str:
        """`text` with the goal told as much as was asked for."""
        told = self._game.objective
        if self.goal == "detailed" or not told:
            return text
        wanted = self._game.brief or "" if self.goal == "brief" else ""
        # Inform prints a line break for each of the goal's own.
        return text.replace(told.strip(), wanted).strip("\n" if self.observation_format == "plain" else "")

    def _act(self, action: str) -> Outcome:
        command = playable(action)
        before = self._machine.save()
        reply = self._machine.send(_NOT_PLAYED if command is None else command)
        if reply.meddled:
            self._machine.restore(before)
            reply = self._machine.send(_NOT_PLAYED)
        milestones = self._follow(reply.events)
        text = upstream_feedback(reply.raw) if self.observation_format == "upstream" else plain(reply.raw)
        return Outcome(
            self._word_goal(text),
            milestones,
            valid=bool(reply.events),
            success=reply.won,
            failure=reply.lost and not reply.won,
        )

    def _follow(self, events: tuple[str, ...]) -> int:
        """Keep the facts in step with the story; returns the milestones reached, or 0 where none can be new.

        An action brings the goal nearer by one at most. With that, and with the planner's lower bound, most turns are
        known to have reached nothing new, and only the others cost a search.
        """
        logic, planner = self._game.logic, self._game.planner
        if logic is None or planner is None:
            return 0
        before = self._facts
        for event in events:
            action = logic.detect(self._facts, event)
            self._facts = logic.end_turn(self._facts) if action is None else logic.apply(self._facts, action)
        if self._facts == before:
            return 0
        self._at_least -= max(1, len(events))
        most = self.task.milestones
        reached = 0 if self._episode is None else self._episode.milestones
        if most - self._at_least <= reached:
            return 0
        bound = planner.lower_bound(self._facts)
        self._at_least = inf if bound is None else max(self._at_least, bound)
        if most - self._at_least <= reached:
            return 0
        try:
            distance, proven = planner.proven_distance(self._facts)
        except PlanningBudgetError:  # No milestone is known to have been reached.
            return 0
        if proven:
            self._at_least = inf if distance is None else distance
        return 0 if distance is None else most - distance

    def _admissible_actions(self) -> tuple[str, ...]:
        logic = self._known(self._game.logic)
        return logic.listed(self._facts) if self.observation_format == "upstream" else logic.commands(self._facts)

    def plan(self) -> Plan | None:
        """What `oracle` returns, and whether it is proven to be a shortest plan; `None` for a goal out of reach.

        Raises:
            gymnasium.error.ResetNeeded: no episode has begun.
            PlanningBudgetError: none was found within the budget; see `planner`.
            UnsupportedOperationError: the game's logic is not known.
        """
        self._current()
        return self._known(self._game.planner).plan(self._facts)

    def _oracle(self) -> tuple[str, ...] | None:
        plan = self._known(self._game.planner).plan(self._facts)
        return None if plan is None else plan.commands

    def _distance(self) -> int | None:
        planner = self._known(self._game.planner)
        try:
            return planner.distance(self._facts)
        except PlanningBudgetError:
            return planner.lower_bound(self._facts)  # Shaping is policy-invariant with any function of the state.

    def _snapshot(self) -> _World:
        return _World(self._machine.save(), self._facts, self._at_least)

    def _restore(self, world: object) -> None:
        assert isinstance(world, _World)
        self._machine.restore(world.machine)
        self._facts = world.facts
        self._at_least = world.at_least

    def _known(self, part: _Part | None) -> _Part:
        if part is None:
            raise UnsupportedOperationError(
                f"{self.task.id} has no .json file beside it that describes its logic, so neither admissible actions "
                "nor an oracle are known for it."
            )
        return part

    def close(self) -> None:
        """Give the interpreter's memory back."""
        self._machine.close()
