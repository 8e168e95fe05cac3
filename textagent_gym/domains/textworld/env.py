"""TextWorld as a Gymnasium environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

from textagent_gym.core import Outcome, TextEnv
from textagent_gym.domains.textworld.commands import UNKNOWN_VERB, admissible_commands, listed_commands, playable
from textagent_gym.domains.textworld.engines import ENGINES, Engine
from textagent_gym.domains.textworld.logic import GameLogic
from textagent_gym.domains.textworld.milestones import MilestoneSearch
from textagent_gym.domains.textworld.planner import Planner
from textagent_gym.domains.textworld.prose import plain, plain_opening, reword_goal
from textagent_gym.domains.textworld.specs import SPECS, FilesSpec, TellingOptions, TextWorldOptions, make_spec
from textagent_gym.domains.textworld.store import StoredGame
from textagent_gym.domains.textworld.tasks import FileTasks, TextWorldTasks
from textagent_gym.errors import PlanningBudgetError, UnsupportedOperationError
from textagent_gym.knobs import OptionsClass, accepts, arguments_of
from textagent_gym.options import TextEnvKwargs
from textagent_gym.planning import Plan
from textagent_gym.tasks import Task

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


@dataclass(frozen=True, slots=True)
class _World:
    """A saved moment: the engine's, and the distance that the goal is at least away."""

    engine: object
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
    the start, by whatever path. `reward_density` says which of them pay. Distances are searched for where somebody
    asks: where milestones pay, or `infos` or `shaping` want a plan. With a sparse reward nothing is searched, and
    `info["progress"]` counts the milestones along the solution that is known from the start.

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
        self._games = FileTasks(spec) if isinstance(spec, FilesSpec) else TextWorldTasks(spec, engine=telling.engine)
        super().__init__(self._games, **arguments_of(TextEnvKwargs, options))
        self.goal = telling.goal
        self._may_cook = telling.game in ("cooking", "simple", "files")
        self._engine: Engine = ENGINES[telling.engine]()
        self._game: StoredGame
        self._milestones: MilestoneSearch | None = None

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
        planner = self._game.planner
        self._milestones = None if planner is None else MilestoneSearch(planner, task.milestones)
        return self._told(self._engine.start(self._game), opening=True)

    def _act(self, action: str) -> Outcome:
        before = self._engine.state
        reply = self._engine.step(playable(action) or UNKNOWN_VERB)
        return Outcome(
            self._told(reply.text),
            0 if self._engine.state == before else self._reached(reply.actions),
            valid=reply.actions > 0,
            success=reply.won,
            failure=reply.lost and not reply.won,
        )

    def _told(self, printed: str, *, opening: bool = False) -> str:
        """What the agent reads of what the game prints, with the goal told as much as was asked for."""
        if self.observation_format == "upstream":
            text = printed
        else:
            text = plain_opening(printed) if opening else plain(printed)
        objective = self._game.objective
        if self.goal == "detailed" or not objective:
            return text
        text = reword_goal(text, objective, self._game.brief or "" if self.goal == "brief" else "")
        return text if self.observation_format == "upstream" else text.strip("\n")

    def _reached(self, actions: int) -> int:
        """Milestones reached after a turn that has changed the facts; 0 where none are known to be new."""
        episode, state = self._episode, self._engine.state
        if episode is None or state is None or self._milestones is None:
            return 0  # What was reached before is played again, or the game's logic is not known.
        pays_before_success = episode.schedule.earned(self.task.milestones - 1, success=False) > 0.0
        if pays_before_success or self.shaping or "oracle_action" in self.infos:
            return self._milestones.after(state, actions=actions, reached=episode.milestones)
        return self._milestones.along_solution(state)

    def _admissible_actions(self) -> tuple[str, ...]:
        _, logic, state = self._known()
        return (listed_commands if self.observation_format == "upstream" else admissible_commands)(logic, state)

    def plan(self) -> Plan | None:
        """What `oracle` returns, and whether it is proven to be a shortest plan; `None` for a goal out of reach.

        Raises:
            gymnasium.error.ResetNeeded: no episode has begun.
            PlanningBudgetError: none was found within the budget; see `planner`.
            UnsupportedOperationError: the game's logic is not known.
        """
        self._current()
        planner, _, state = self._known()
        return planner.plan(state)

    def _oracle(self) -> tuple[str, ...] | None:
        planner, _, state = self._known()
        plan = planner.plan(state)
        return None if plan is None else plan.commands

    def _distance(self) -> int | None:
        planner, _, state = self._known()
        try:
            return planner.distance(state)
        except PlanningBudgetError:
            return planner.lower_bound(state)  # Shaping is policy-invariant with any function of the state.

    def _snapshot(self) -> _World:
        return _World(self._engine.snapshot(), 0.0 if self._milestones is None else self._milestones.at_least)

    def _restore(self, world: object) -> None:
        assert isinstance(world, _World)
        self._engine.restore(world.engine)
        if self._milestones is not None:
            self._milestones.at_least = world.at_least

    def _state_key(self) -> tuple[int, bytes]:
        return self._known()[2], self._engine.order

    def _known(self) -> tuple[Planner, GameLogic, int]:
        """What is known of the game: its planner, its logic, and the facts that hold."""
        planner, logic, state = self._game.planner, self._game.logic, self._engine.state
        if planner is None or logic is None or state is None:
            raise UnsupportedOperationError(
                f"{self.task.id} has no .json file beside it that describes its logic, so neither admissible actions "
                "nor an oracle are known for it."
            )
        return planner, logic, state

    def close(self) -> None:
        """Give the interpreter's memory back."""
        self._engine.close()
