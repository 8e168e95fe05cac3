"""ALFWorld as Gymnasium environments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Unpack

from textagent_gym.core import Outcome, TextEnv
from textagent_gym.domains.alfworld.engine import NOTHING_HAPPENS, State
from textagent_gym.domains.alfworld.feedback import reason
from textagent_gym.domains.alfworld.game import Dialect, Game
from textagent_gym.domains.alfworld.generator import RoomKind, RoomSpec
from textagent_gym.domains.alfworld.planner import lower_bound, solve
from textagent_gym.domains.alfworld.reference import ReferenceState
from textagent_gym.domains.alfworld.searcher import Searcher
from textagent_gym.domains.alfworld.tasks import OfficialOptions, OfficialTasks, RoomTasks
from textagent_gym.errors import InvalidOptionError, PlanningBudgetError
from textagent_gym.knobs import Options, OptionsClass, accepts, arguments_of, check_names, knob
from textagent_gym.options import TextEnvKwargs
from textagent_gym.planning import Plan
from textagent_gym.tasks import Task

_MOVING = "move OBJECT to RECEPTACLE"
_BANNER = "-= Welcome to TextWorld, ALFRED! =-\n\n"
INSTRUCTIONS = """\
You are in a room and act by typing one command per turn. Names are a kind and a number, such as `drawer 2`.

go to RECEPTACLE: walk there and look at it; take, open and use only what is where you are
open RECEPTACLE, close RECEPTACLE
take OBJECT from RECEPTACLE: you can hold one object at a time
{placing}: put down what you hold
clean OBJECT with SINKBASIN, heat OBJECT with MICROWAVE, cool OBJECT with FRIDGE: what you hold, where the thing stands
use OBJECT: switch on a lamp
slice OBJECT with KNIFE: with a knife in your hand
examine THING, look, inventory, help

A command that makes no sense where you are is answered by "Nothing happens."."""


@dataclass(frozen=True, kw_only=True)
class PlayOptions(Options):
    """How a game is played."""

    engine: Literal["native", "reference"] = knob(
        "native", 'player of the rules; "reference" is upstream itself (slow; needs the extra `reference`)'
    )
    feedback: Literal["upstream", "informative"] = knob(
        "upstream", 'answer to an action without effect; "informative" says why there was none'
    )


@dataclass(frozen=True, kw_only=True)
class DialectOptions(Options):
    """How the actions of a generated room are worded."""

    dialect: Dialect = knob("move", "wording of actions, `move X to Y` or `put X in/on Y`")


class ALFWorldKwargs(TextEnvKwargs, total=False):
    """Keyword arguments of every `ALFWorldEnv`, for editors."""

    engine: Literal["native", "reference"]
    feedback: Literal["upstream", "informative"]


class RoomKwargs(ALFWorldKwargs, total=False):
    """Keyword arguments of `ALFWorldRoomEnv`, for editors."""

    receptacles: int
    objects: int
    closed: float | None
    candidates: int
    place: int
    goals: int
    task_types: str | Sequence[str]
    room: RoomKind | None
    solution_length: int | None
    exploration: Sequence[float] | None
    dialect: Dialect


class OfficialKwargs(ALFWorldKwargs, total=False):
    """Keyword arguments of `ALFWorldOfficialEnv`, for editors."""

    data: str | None
    task_types: str | Sequence[str]
    dialect: Dialect | None
    shuffle: int | None


class ALFWorldEnv(TextEnv[Task]):
    """# ALFWorld

    ## Description
    A household robot in one room, told to bring, clean, heat, cool or look at something. Text and rules are those of
    ALFWorld (Shridhar et al., 2021, arXiv 2010.03768), played by an engine of our own that says the same, admits the
    same and wins at the same moment; see `engine`.

    ## Actions
    | command | effect |
    | --- | --- |
    | `go to RECEPTACLE` | walk there and look at it |
    | `open RECEPTACLE`, `close RECEPTACLE` | what stands before the agent |
    | `take OBJECT from RECEPTACLE`, `move OBJECT to RECEPTACLE` | the hand holds one object |
    | `clean OBJECT with SINKBASIN`, `heat ... with MICROWAVE`, `cool ... with FRIDGE` | what is held |
    | `use OBJECT` | switch a lamp on |
    | `slice OBJECT with KNIFE`, `examine THING`, `look`, `inventory`, `help` | |

    With `dialect="put"`, `put OBJECT in/on RECEPTACLE` takes the place of `move`. Any other string costs a turn and is
    answered by "Nothing happens.", or with `feedback="informative"` by the reason why.

    ## Observations
    What stands in the room and the task at reset, then what is seen at each receptacle.

        You arrive at dresser 1. On the dresser 1, you see a alarmclock 2, and a desklamp 1.

    ## Rewards
    Milestones: each object that the task needs is found, taken, cleaned or heated or cooled, and placed; a lamp is
    found and switched on. `reward_density` says which of them pay.

    Args:
        tasks: source of the games.
        options: knobs of `PlayOptions`, and the arguments of `TextEnv`; the turn budget is 50 unless set, as in the
            literature.

    Raises:
        InvalidOptionError: an argument has a value that does not exist.
    """

    idle_actions: ClassVar[tuple[str, ...]] = ("examine ", "look", "inventory")
    default_max_turns: ClassVar[int | str] = 50

    @accepts(PlayOptions)
    def __init__(self, tasks: RoomTasks | OfficialTasks, **options: Unpack[ALFWorldKwargs]) -> None:
        check_names("ALFWorld", options, PlayOptions)
        super().__init__(tasks, **arguments_of(TextEnvKwargs, options))
        playing = PlayOptions.of(options)
        self.engine = playing.engine
        self.feedback = playing.feedback
        self._games = tasks
        self._game: Game
        self._state: State
        self._reference: ReferenceState | None = None

    @property
    def instructions(self) -> str:
        """See `TextEnv`."""
        placing = "put OBJECT in/on RECEPTACLE" if self._task and self._game.dialect == "put" else _MOVING
        return INSTRUCTIONS.format(placing=placing)

    def _begin(self, task: Task) -> str:
        self._game = self._games.world(task)
        self._state = State(self._game)
        self._reference = ReferenceState(self._games.original(task)) if self.engine == "reference" else None
        text = (self._reference or self._state).introduction()
        return text if self.observation_format == "upstream" else text.removeprefix(_BANNER)

    def _act(self, action: str) -> Outcome:
        command = action.strip()
        answer = self._state.step(command)
        won = self._state.won
        if self._reference is not None:  # The native state follows, and knows milestones and plans.
            answer = self._reference.step(command)
            won = self._reference.won
        valid = answer is not None
        if answer is None:
            answer = reason(self._state, command) if self.feedback == "informative" else NOTHING_HAPPENS
        return Outcome(answer, self._state.milestones(), valid=valid, success=won)

    def _admissible_actions(self) -> tuple[str, ...]:
        return (self._reference or self._state).commands()

    def plan(self) -> Plan | None:
        """What `oracle` returns, and whether it is proven to be a shortest plan; `None` for a goal out of reach.

        Raises:
            gymnasium.error.ResetNeeded: no episode has begun.
            PlanningBudgetError: none was found within the budget; see `planner`.
        """
        self._current()
        return solve(self._state)

    def _oracle(self) -> tuple[str, ...] | None:
        plan = solve(self._state)
        return None if plan is None else plan.commands

    def _distance(self) -> int | None:
        try:
            plan = solve(self._state)
        except PlanningBudgetError:
            return lower_bound(self._state)  # Shaping is policy-invariant with any function of the state.
        return None if plan is None else len(plan.commands)

    def _expert(self) -> Searcher:
        return Searcher(self._game.dialect)

    def _snapshot(self) -> object:
        if self._reference is not None:
            return super()._snapshot()
        return self._state.copy()

    def _restore(self, world: object) -> None:
        assert isinstance(world, State)
        self._state = world.copy()

    def _state_key(self) -> tuple[object, ...]:
        pays_before_success = self._current().schedule.earned(self.task.milestones - 1, success=False) > 0.0
        return self._state.key(with_seen=pays_before_success)


class ALFWorldRoomEnv(ALFWorldEnv):
    """## Generated rooms
    Rooms without end, furnished like the official ones: what stands there, what lies where and what is asked for follow
    the statistics of the official training games.

    ## Difficulty
    | knob | values | axis |
    | --- | --- | --- |
    | `receptacles` | 3 to 100 | more to explore; `state_size` is measured |
    | `objects` | 1 to 300 | more to do; `action_size` is measured |
    | `solution_length` | 1 to 200 | exactly; follows from the task types, `place` and `goals` unless set |
    | `exploration` | (least, most) | expected turns of a systematic searcher |

    ## Registered ids
    `textagent/ALFWorld-v0`: 15 receptacles, 25 objects.

    Args:
        options: knobs of `textagent_gym.domains.alfworld.generator.RoomSpec`, `dialect` ("move" or "put"), and the
            arguments of `ALFWorldEnv` and `TextEnv`.

    Raises:
        InvalidOptionError: an argument has a name or value that does not exist.
        InfeasibleDifficultyError: no such room exists.
    """

    @accepts(RoomSpec, DialectOptions, PlayOptions)
    def __init__(self, **options: Unpack[RoomKwargs]) -> None:
        check_names("ALFWorld's generated rooms", options, *self.declared_options(options))
        dialect = DialectOptions.of(options).dialect
        if options.get("engine") == "reference" and dialect != "move":
            raise InvalidOptionError("engine='reference' speaks the dialect 'move' in generated rooms")
        super().__init__(RoomTasks(RoomSpec.of(options), dialect), **arguments_of(ALFWorldKwargs, options))

    @classmethod
    def declared_options(cls, given: Mapping[str, Any]) -> tuple[OptionsClass, ...]:
        """Classes that declare the knobs."""
        return RoomSpec, DialectOptions, PlayOptions


class ALFWorldOfficialEnv(ALFWorldEnv):
    """## Official games
    The games of ALFWorld's release.

    ## Difficulty
    As the release has it: each game's complexity is measured. `task_types` chooses among them.

    ## Registered ids
    `textagent/ALFWorld-official-v0`

    Args:
        options: knobs of `textagent_gym.domains.alfworld.tasks.OfficialOptions`, and the arguments of `ALFWorldEnv` and
            `TextEnv`. `split` is "train", "valid_seen", "valid_unseen" or "valid_train".

    Raises:
        MissingDataError: the games are not there; the message says how to get them.
        InvalidOptionError: an argument has a name or value that does not exist.
    """

    @accepts(OfficialOptions, PlayOptions)
    def __init__(self, **options: Unpack[OfficialKwargs]) -> None:
        check_names("ALFWorld's official games", options, *self.declared_options(options))
        official = OfficialOptions.of(options)
        shared = arguments_of(ALFWorldKwargs, options)
        PlayOptions.of(shared)  # What is misspelt is said before the games are looked for.
        if shared.get("engine") == "reference" and (official.dialect is not None or official.shuffle is not None):
            raise InvalidOptionError("engine='reference' plays a game as its file says: leave out dialect and shuffle")
        super().__init__(OfficialTasks(official), **shared)

    @classmethod
    def declared_options(cls, given: Mapping[str, Any]) -> tuple[OptionsClass, ...]:
        """Classes that declare the knobs."""
        return OfficialOptions, PlayOptions
